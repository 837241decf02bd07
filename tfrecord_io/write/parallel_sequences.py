"""Sequences of tasks that several threads run side by side; the results of each sequence are used in its order.

As with `ordered`, the calling thread alone takes the tasks from their sources, and runs tasks itself while there are
any. But the results are used by whichever thread has the next one of a sequence, so that several files are written at
the same time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from tfrecord_io.base import Task, WorkerPool

T = TypeVar("T")

_OPEN = 2  # sequences for each thread that are begun and not ended: those that wait for a disk leave others to run
_WAIT_SECONDS = 1.0  # after which a thread that ended for lack of memory, without a sign, is noticed


def open_at_a_time(sequences: int, threads: int) -> int:
    """How many sequences `side_by_side` has begun and not ended at a time: about as many in each round.

    >>> [open_at_a_time(n, 2) for n in (1, 4, 5, 6, 100)]
    [1, 4, 3, 3, 4]
    """
    open_at_once = _OPEN * threads if threads > 1 else 1
    rounds = -(-sequences // open_at_once)
    return -(-sequences // max(rounds, 1))


class _Sequence(Generic[T]):
    """The tasks of a sequence that were taken from its source and whose results were not used yet.

    `use` takes each result, `end` is called after the last. What was used is put into `used`, and None at the end.
    """

    def __init__(
        self,
        source: Iterator[Callable[[], T]],
        use: Callable[[T], None],
        end: Callable[[], None],
        used: SimpleQueue[T | None],
    ) -> None:
        self._source, self._use, self._end, self._used = source, use, end, used
        self._using = threading.Lock()
        self.pending: deque[Task[T | None]] = deque()
        self.has_more = True  # its source
        self.is_over = False
        self.error: BaseException | None = None

    def take(self) -> Callable[[], None]:
        """Take the next task from the source: at its end, one whose result is None; after an error, one that fails."""
        call: Callable[[], T | None] | None
        try:
            call = next(self._source, None)
        except Exception as error:
            call = Task.failing(error)
            self.has_more = False
        if call is None:
            call, self.has_more = (lambda: None), False
        task = Task(call)
        self.pending.append(task)
        return partial(self._run, task)

    def _run(self, task: Task[T | None]) -> None:
        """Run a task, then use the results whose turn it is, unless another thread does."""
        if self.is_over:
            return
        try:
            task.run()
        finally:
            while self._has_next() and self._using.acquire(blocking=False):
                try:
                    while self._has_next():
                        self._use_next(self.pending.popleft())
                finally:
                    self._using.release()

    def _has_next(self) -> bool:
        try:
            return not self.is_over and self.pending[0].is_done
        except IndexError:
            return False

    def _use_next(self, task: Task[T | None]) -> None:
        try:
            result = task.result()
            if result is not None:
                self._use(result)
            else:
                self._end()
                self.is_over = True
            self._used.put(result)
        except BaseException as error:
            self.error = error
            self.stop()
            self._used.put(None)
            if not isinstance(error, Exception):  # Ctrl-C, in the calling thread
                raise

    def stop(self) -> None:
        """Begin no further task; an error is set before, so that a sequence that is over without one has no error."""
        self.is_over, self.has_more = True, False


def side_by_side(
    sources: Sequence[Iterator[Callable[[], T]]], use: Callable[[T], None], end: Callable[[int], None], threads: int
) -> Generator[T]:
    """Run the tasks of all sequences by up to `threads` threads, this one included; yield each result after its use.

    `use` takes the results: those of one sequence in their order and never two at a time, those of different ones at
    the same time. `end` takes the number of a sequence after its last result. The sequences are begun in order,
    `open_at_a_time` of them at once, and at most two tasks for each thread are begun or finished before their turn.

    Of several exceptions, of tasks, sources, `use` or `end`, the one of the first sequence is raised, after all
    sequences before it were completed.
    """
    used: SimpleQueue[T | None] = SimpleQueue()
    waiting = deque(_Sequence(source, use, partial(end, number), used) for number, source in enumerate(sources))
    most_open, most_ahead = open_at_a_time(len(sources), threads), WorkerPool.AHEAD * threads
    opened: list[_Sequence[T]] = []
    submitted: deque[Task[None]] = deque()
    failure: BaseException | None = None
    with WorkerPool(threads - 1, "write") as pool:
        while failure is None or isinstance(failure, Exception):
            failed = next((sequence for sequence in opened if sequence.error is not None), None)
            if failed is not None:
                failure = failed.error
                waiting.clear()
                for sequence in opened[(at := opened.index(failed)) :]:
                    sequence.stop()
                del opened[at:]
            opened = [sequence for sequence in opened if not sequence.is_over or sequence.error is not None]
            while waiting and len(opened) < most_open:
                opened.append(waiting.popleft())
            if not opened:
                break
            _fill(opened, most_ahead, submitted, pool)
            while submitted and not submitted[0].run():  # a thread has begun it
                submitted.popleft()
            if not submitted:
                yield from _available(used, _WAIT_SECONDS)
            yield from _available(used)
    yield from _available(used)
    if failure is not None:
        try:
            raise failure
        finally:
            del failure, failed, sequence, opened, waiting  # its traceback refers to this frame


def _fill(opened: list[_Sequence[T]], most: int, submitted: deque[Task[None]], pool: WorkerPool) -> None:
    """Let threads run tasks, of those sequences first that have the fewest, until `most` are pending."""
    pending = sum(len(sequence.pending) for sequence in opened)
    while pending < most and (sources := [sequence for sequence in opened if sequence.has_more]):
        sequence = min(sources, key=lambda each: len(each.pending))
        submitted.append(pool.submit(sequence.take()))
        pending += 1


def _available(used: SimpleQueue[T | None], timeout: float | None = None) -> Generator[T]:
    """The results that were used; with a timeout, wait for one, or for the end of a sequence."""
    with suppress(Empty):
        while True:
            result = used.get_nowait() if timeout is None else used.get(timeout=timeout)
            if result is not None:
                yield result
            if timeout is not None:
                return
