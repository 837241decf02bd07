"""A generator that runs in a thread of its own.

Tests: tests/rows/training/test_iterator_prefetch.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from queue import SimpleQueue
from typing import Generic, NamedTuple, TypeVar

from tfrecord_io.base import BackgroundThread, quiet_at_exit

T = TypeVar("T")


class _Channel(Generic[T]):
    """State that thread and consumer share, without a reference to either: a dropped consumer is collected."""

    def __init__(self, depth: int) -> None:
        self.items: SimpleQueue[T | _End] = SimpleQueue()
        self.free: SimpleQueue[None] = (
            SimpleQueue()
        )  # one entry for each item that may be made; after Ctrl-C no lock of a SimpleQueue stays held
        self.stopped = False
        for _ in range(depth):
            self.free.put(None)

    def stop(self) -> None:
        self.stopped = True
        self.free.put(None)


class _End(NamedTuple):
    """Follows the last item, with the error that ended the generator."""

    error: BaseException | None


def _run(make: Callable[[], Generator[T]], channel: _Channel[T]) -> None:
    error: BaseException | None = None
    try:
        with closing(make()) as source:
            while True:
                channel.free.get()
                if channel.stopped:
                    break
                channel.items.put(next(source))
    except StopIteration:
        pass
    except BaseException as raised:  # the consumer raises it, after the items before it
        error = raised
    channel.items.put(_End(error))


class BackgroundGenerator(Generic[T]):
    """Iterates over the items of a generator that runs in a single thread, as a generator cannot be shared.

    `make` returns the generator, which is made, run and closed in the thread; at most `depth` items are ready.
    """

    def __init__(self, make: Callable[[], Generator[T]], depth: int) -> None:
        self._make = make
        self._source: Generator[T] | None = None  # only if the thread never began
        self._channel: _Channel[T] = _Channel(depth)
        self._thread = BackgroundThread(_run, (make, self._channel), self._channel.stop, "batches")

    def __iter__(self) -> BackgroundGenerator[T]:
        return self

    def __next__(self) -> T:
        if self._source is not None:
            return next(self._source)
        try:
            item = self._thread.take(self._channel.items)
        except BackgroundThread.NeverBegan:  # for lack of memory
            self._source = self._make()
            return next(self._source)
        if isinstance(item, _End):
            self._channel.items.put(item)  # for further calls
            if item.error is not None:
                raise item.error
            raise StopIteration
        self._channel.free.put(None)
        return item

    def close(self) -> None:
        """End the thread, once its current item is complete."""
        self._thread.end()
        if self._source is not None:
            self._source.close()

    @quiet_at_exit
    def __del__(self) -> None:
        running = getattr(self, "_thread", None) or getattr(self, "_channel", None)  # None if Ctrl-C ended `__init__`
        if running is not None:
            running.stop()
