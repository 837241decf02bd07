"""Tasks that several threads run, with their results in the order of the tasks.

The calling thread is one of them. It alone takes the tasks from their source and uses the results, so a data source or
a file is never used by another thread. Where the next result is missing it runs a task itself, so no thread waits for
another while there is work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import NoReturn, TypeVar

from tfrecord_io.background import Task, WorkerPool

T = TypeVar("T")

AHEAD = 2  # tasks for each thread that are taken from the source before their turn


def in_order(tasks: Iterator[Callable[[], T]], threads: int) -> Generator[T]:
    """Yield the results of `tasks`, run by up to `threads` threads, this one included.

    An exception, of a task or of the source, is raised in its turn: after the results of all tasks before it, as with
    one thread. At most two tasks for each thread are begun or finished before their turn.
    """
    if threads == 1:
        for task in tasks:
            yield task()
        return
    pending: deque[Task[T]] = deque()
    with WorkerPool(threads - 1, "encode") as pool:
        while _fill(pending, tasks, AHEAD * threads, pool):
            if pending[0].is_done:
                yield pending.popleft().result()
            elif not any(task.run() for task in pending):
                pending[0].wait()


def _fill(pending: deque[Task[T]], tasks: Iterator[Callable[[], T]], most: int, pool: WorkerPool) -> bool:
    """Take tasks until `most` are pending, and let threads run all but a first one; returns whether any is pending."""
    while len(pending) < most:
        try:
            task = next(tasks, None)
        except Exception as error:
            task = partial(raise_error, error)
        if task is None:
            break
        pending.append(pool.submit(task) if pending else Task(task))
    return bool(pending)


def raise_error(error: Exception) -> NoReturn:
    """A task that fails."""
    raise error
