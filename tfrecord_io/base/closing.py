"""Objects that hold files or threads: context managers, iterators that are consumed once, and who may use them.

Threads can share such an object: calls wait for each other. It belongs to the process that made it. In a forked process
it raises: the fork would share the positions in files with its parent, and has none of the parent's threads. Objects
cannot be pickled or copied, except those that open their files again.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, NoReturn, ParamSpec, TypeVar

from tfrecord_io.base.messages.display import printable
from tfrecord_io.errors import TFRecordError

C = TypeVar("C", bound="Closing")
T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")


class NotCopied:
    """Refuses to be pickled and copied: two objects would close, or remove, the same file."""

    def __reduce__(self) -> tuple[Any, ...]:
        reason = "it holds an open file, a thread or a lock; open one in each process"
        raise TypeError(f"cannot pickle or copy a '{type(self).__name__}': {reason}")


def quiet_at_exit(release: Callable[Concatenate[T, P], None]) -> Callable[Concatenate[T, P], None]:
    """Decorate `__del__`: exceptions during interpreter shutdown, when modules are gone, are suppressed.

    Also `__exit__`, which the end of the interpreter calls in generators that wait in a block.
    """
    is_finalizing = sys.is_finalizing

    @wraps(release)
    def quiet(self: T, /, *arguments: P.args, **keywords: P.kwargs) -> None:
        try:
            release(self, *arguments, **keywords)
        except Exception:
            if not is_finalizing():
                raise

    return quiet


class _ForkedLock:
    """Replaces a lock in a forked process."""

    def __init__(self, owner: object) -> None:
        self._name = type(owner).__name__

    def __enter__(self) -> NoReturn:
        raise RuntimeError(f"the {self._name} was opened in another process; open one in each process")

    def __exit__(self, *error: object) -> None:
        pass


class Shared:
    """Threads take turns, under `_lock`; a forked process cannot use it."""

    _lock: threading.RLock | _ForkedLock

    def _share(self) -> None:
        self._lock = threading.RLock()
        _shared.add(self)

    def _after_fork(self) -> None:
        """In a forked process, make every use raise; the old lock may be held by a thread that does not exist here."""
        self._lock = _ForkedLock(self)

    @property
    def _is_forked(self) -> bool:
        return isinstance(self._lock, _ForkedLock)


_shared: weakref.WeakSet[Shared] = weakref.WeakSet()


def _after_fork() -> None:
    for item in list(_shared):
        item._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Closing(NotCopied, ABC):
    """A context manager that returns itself and is closed at the end of its block."""

    @abstractmethod
    def close(self) -> None:
        """Release what the object holds."""

    def __enter__(self: C) -> C:  # not Self, which jedi takes for this class
        return self

    @quiet_at_exit
    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()

    def _warn_if_dropped(self, release: Callable[[], str | None]) -> None:
        """Call `release` when the object is gone or the process ends, and warn at the line of its caller.

        `release` returns the text of the ResourceWarning, None if there was nothing to release. A forked process does
        not call it. It may not refer to the object.
        """
        from tfrecord_io.base.messages.caller_warnings import caller_line

        weakref.finalize(self, _release_dropped, release, os.getpid(), caller_line())


def _release_dropped(release: Callable[[], str | None], process: int, made_at: tuple[str, int]) -> None:
    if os.getpid() == process and (text := release()) is not None:
        warnings.warn_explicit(text, ResourceWarning, *made_at)


class ConsumedOnce(Closing, Shared, Generic[T]):
    """An iterator whose items can be read once: beginning again after the end raises, and so does reading when closed.

    Threads that share it get different items.
    """

    _word: ClassVar[str]  # its name in messages

    def __init__(self) -> None:
        self.fault: Exception | None = None  # ended the iteration; every further call raises it again
        self._closed = self._started = self._ended = False
        self._share()

    def __iter__(self) -> Iterator[T]:
        self._refuse_used()
        return self

    @abstractmethod
    def __next__(self) -> T:
        """The next item; see `_take`."""

    def _take(self, items: Iterator[U]) -> U:
        """The next of `items`, or the error that ended them."""
        try:
            with self._lock:
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
        except Exception:
            raise
        except BaseException as interrupt:
            self._mark_interrupted(interrupt)
            raise

    @quiet_at_exit
    def close(self) -> None:
        """Close the files; reading is over."""
        if self._is_forked:
            return  # they are those of the parent process
        with self._lock:
            self._closed = True
            self._close()

    @abstractmethod
    def _close(self) -> None: ...

    def _end(self) -> None:
        """There are no more items."""
        self._ended = True

    def _fail(self, error: Exception) -> None:
        """After an error, every further call raises it again."""
        self.fault = error
        self._end()

    def _mark_interrupted(self, interrupt: BaseException) -> None:
        """After Ctrl-C, which may have lost an item, every further call is an error."""
        name = type(interrupt).__name__
        self.fault = ValueError(f"the {self._word} was interrupted ({name}) and may lack items; open it again")
        self._ended = False  # reading on raises this error, not that of a consumed one

    def _refuse_used(self) -> None:
        with self._lock:
            pass  # raises in a forked process
        if self._closed:
            raise ValueError(f"the {self._word} is closed")
        if self.fault is not None and not self._ended:
            raise self.fault
        if self._ended:
            raise ValueError(f"the {self._word} has been consumed; open it again")


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """`functools.cached_property` as from Python 3.12 on: threads may compute a value at the same time.

        In Python 3.11 all instances share a lock, which stays locked for ever in a process that is forked meanwhile.

        >>> class Square:
        ...     @cached_property
        ...     def corners(self):
        ...         return [0, 1, 2, 3]
        >>> square = Square()
        >>> square.corners is square.corners
        True
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            return self if instance is None else instance.__dict__.setdefault(self.attrname, self.func(instance))


class Remark(str):
    """A clause about written data, for the message of an error.

    >>> error = OSError(28, "No space left on device", "a.tfrecord")
    >>> Remark("the file is published").add_to(error)
    >>> str(error)
    "[Errno 28] No space left on device; the file is published: 'a.tfrecord'"
    """

    __slots__ = ()

    @staticmethod
    def published(text: str) -> Remark:
        """A remark that what was written can be read all the same; the error has it as `published`."""
        return Published(text)

    @staticmethod
    def unconfirmed(text: str) -> Remark:
        """A remark that written data can be read, but may be lost at a loss of power."""
        return Unconfirmed(text)

    def add_to(self, error: BaseException) -> None:
        """Append this to the message of an error of this package or of the system; to another one, add it as a note."""
        if isinstance(self, Published):
            error.published = self  # type: ignore[attr-defined]
        if isinstance(error, TFRecordError):
            error.reason = f"{error.reason}; {self}"
        elif isinstance(error, OSError) and isinstance(error.strerror, str):
            error.strerror = f"{error.strerror}; {self}"
            error.args = (error.errno, error.strerror)  # for pickling
        else:
            error.add_note(str(self))


class Published(Remark):
    """See `Remark.published`."""

    __slots__ = ()


class Unconfirmed(Published):
    """See `Remark.unconfirmed`."""

    __slots__ = ()


def undo_after(error: BaseException, undo: Callable[[], object], path: str) -> None:
    """Remove partial output after `error`, which stays the exception raised even if the removal fails."""
    try:
        undo()
    except Exception as second:
        error.add_note(f"'{printable(path)}': removing what was written failed as well: {printable(second)}")
