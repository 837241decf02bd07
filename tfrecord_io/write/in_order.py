"""Tasks that several threads run, with their results in the order of the tasks.

The calling thread is one of them. It alone takes the tasks from their source and uses the results, so a data source or
a file is never used by another thread. Where the next result is missing it runs a task itself, so no thread waits for
another while there is work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")

_AHEAD = 2  # tasks for each thread that are taken from the source before their turn


def in_order(tasks: Iterator[Callable[[], T]], threads: int) -> Generator[T]:
    """Yield the results of `tasks`, run by up to `threads` threads, this one included.

    An exception, of a task or of the source, is raised in its turn: after the results of all tasks before it, as with
    one thread. At most two tasks for each thread are begun or finished before their turn.
    """
    if threads == 1:
        for task in tasks:
            yield task()
        return
    pending: deque[_Job[T]] = deque()
    with ThreadPoolExecutor(threads - 1, thread_name_prefix="tfrecord_io encode") as pool:
        try:
            while _fill(pending, tasks, _AHEAD * threads, pool):
                if pending[0].is_done:
                    yield pending.popleft().result()
                elif not any(job.run_here() for job in pending):
                    pending[0].wait()
        finally:
            for job in pending:
                job.cancel()


class _Job(Generic[T]):
    """A task, and its result."""

    def __init__(self, task: Callable[[], T]) -> None:
        self._task = task
        self._future: Future[T] = Future()
        self._submitted: Future[None] | None = None

    @property
    def is_done(self) -> bool:
        return self._future.done()

    def submit(self, pool: ThreadPoolExecutor) -> None:
        self._submitted = pool.submit(self._run)

    def cancel(self) -> bool:
        """Keep other threads from running the task; False if one has begun."""
        return self._submitted is None or self._submitted.cancel()

    def run_here(self) -> bool:
        """Run the task in this thread unless it has begun; returns whether it did."""
        if self.is_done or not self.cancel():
            return False
        self._run()
        return True

    def _run(self) -> None:
        try:
            self._future.set_result(self._task())
        except BaseException as error:
            self._future.set_exception(error)
            if not isinstance(error, Exception):  # Ctrl-C, which is not kept for later
                raise

    def wait(self) -> None:
        self._future.exception()

    def result(self) -> T:
        return self._future.result()


def _fill(pending: deque[_Job[T]], tasks: Iterator[Callable[[], T]], most: int, pool: ThreadPoolExecutor) -> bool:
    """Take tasks until `most` are pending, and let threads run all but a first one; returns whether any is pending."""
    while len(pending) < most:
        try:
            task = next(tasks, None)
        except Exception as error:
            task = partial(_raise, error)
        if task is None:
            break
        job = _Job(task)
        if pending:
            job.submit(pool)
        pending.append(job)
    return bool(pending)


def _raise(error: Exception) -> NoReturn:
    raise error
