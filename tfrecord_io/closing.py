"""Context managers that are closed when their block ends, and iterators that are consumed once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Generic, Self, TypeVar

T = TypeVar("T")


class Closing(ABC):
    """A context manager that returns itself and is closed at the end of its block."""

    @abstractmethod
    def close(self) -> None:
        """Release what the object holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()


class ConsumedOnce(Closing, Generic[T]):
    """An iterator whose items can be read once: beginning again after the end raises, and so does reading when closed.

    Attributes
    ----------
    fault : Exception or None
        The error that ended the iteration; every further call raises it again.
    """

    _word: ClassVar[str]  # its name in messages

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self._closed = self._started = self._ended = False

    def __iter__(self) -> Iterator[T]:
        self._refuse_used()
        return self

    @abstractmethod
    def __next__(self) -> T:
        """The next item; see `_take`."""

    def _take(self, items: Iterator[T]) -> T:
        """The next of `items`, or the error that ended them."""
        if self._closed:
            raise ValueError(f"the {self._word} is closed")
        if self.fault is not None:
            raise self.fault
        self._started = True
        try:
            return next(items)
        except StopIteration:
            self._end()
            raise
        except Exception as error:
            self._fail(error)
            raise

    def _end(self) -> None:
        """There are no more items."""
        self._ended = True

    def _fail(self, error: Exception) -> None:
        """After an error, every further call raises it again."""
        self.fault = error
        self._end()

    def _refuse_used(self) -> None:
        if self._closed:
            raise ValueError(f"the {self._word} is closed")
        if self._ended:
            raise ValueError(f"the {self._word} has been consumed; open it again")
