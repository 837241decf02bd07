"""The threads that work on segments of files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tfrecord_io.background import Task, WorkerPool
from tfrecord_io.closing import Closing
from tfrecord_io.options import cpu_count

T = TypeVar("T")


class Workers(Closing):
    """The threads that work on segments, started with the first task; none for one thread.

    Parameters
    ----------
    threads : int
    most_tasks : int, optional
        Number of segments that are worked on, or wait for their turn; by default two more than there are threads.

    Attributes
    ----------
    count : int
        Number of threads: at most one for each core, as more would only cost memory.
    """

    def __init__(self, threads: int, most_tasks: int | None = None) -> None:
        self.count = min(threads, cpu_count()) if threads > 1 else 0
        self.most_tasks = min(self.count + 2, most_tasks or self.count + 2)
        self._pool: WorkerPool | None = None
        self._tasks = 0  # whose results were not taken

    @property
    def have_room(self) -> bool:
        return self.count > 0 and self._tasks < self.most_tasks

    def submit(self, task: Callable[[], T]) -> Task[T]:
        if self._pool is None:
            self._pool = WorkerPool(self.count, "decode")
        self._tasks += 1
        return self._pool.submit(task)

    def take(self, task: Task[T]) -> T:
        """Wait for a result."""
        self._tasks -= 1
        return task.result()

    def drop(self, task: Task[T]) -> None:
        """Give up a task."""
        self._tasks -= 1
        task.cancel()

    def close(self) -> None:
        """Let the threads end after their task; the garbage collector may run this in any of them."""
        if self._pool is not None:
            self._pool.close(wait=False)
