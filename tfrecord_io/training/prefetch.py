"""A generator that runs in a thread of its own, a few items ahead of who takes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import closing
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class _Sink(Generic[T]):
    """What the thread and its user share; it knows neither, so that a user who is dropped is missed."""

    def __init__(self, depth: int) -> None:
        self.items: SimpleQueue[T | _End] = SimpleQueue()
        self.free = threading.Semaphore(depth)
        self.stopped = threading.Event()


class _End:
    """Behind the last item: what ended the generator."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def _run(make: Callable[[], Generator[T]], sink: _Sink[T]) -> None:
    error: BaseException | None = None
    try:
        with closing(make()) as source:
            while True:
                sink.free.acquire()
                if sink.stopped.is_set():
                    break
                sink.items.put(next(source))
    except StopIteration:
        pass
    except BaseException as raised:  # it belongs to who takes the items, behind those before it
        error = raised
    sink.items.put(_End(error))


class BackgroundGenerator(Generic[T]):
    """Takes the items of a generator that a thread runs.

    Parameters
    ----------
    make : callable
        Gives the generator; called, run and closed in the thread.
    depth : int
        How many items may be ready.
    """

    def __init__(self, make: Callable[[], Generator[T]], depth: int) -> None:
        self._sink: _Sink[T] = _Sink(depth)
        self._thread = threading.Thread(target=_run, args=(make, self._sink), name="tfrecord_io batches", daemon=True)
        self._thread.start()

    def __iter__(self) -> BackgroundGenerator[T]:
        return self

    def __next__(self) -> T:
        item = self._sink.items.get()
        if isinstance(item, _End):
            self._sink.items.put(item)  # an end stays the end
            if item.error is not None:
                raise item.error
            raise StopIteration
        self._sink.free.release()
        return item

    def close(self) -> None:
        """End the thread, once it has made what it is making."""
        self.__del__()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def __del__(self) -> None:
        self._sink.stopped.set()
        self._sink.free.release()
