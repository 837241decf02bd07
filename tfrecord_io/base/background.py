"""Calls made by other threads, on `concurrent.futures`, and threads that end before the interpreter does.

Where the system starts no thread, as for lack of memory, or the interpreter ends, the thread that needs a result makes
the call. Python waits at exit for the threads of pools, but unwinds a daemon thread on the spot when it asks for the
GIL while the interpreter shuts down, and that aborts the process if C++ code is on the thread's stack. So threads that
run until they are stopped are a `BackgroundThread`: all of these are stopped and joined at exit.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from mmap import mmap
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, Generic, NoReturn, Self, TypeVar
from weakref import WeakSet

from tfrecord_io.base.closing import Closing

T = TypeVar("T")

_THREAD_BYTES = 24 << 20  # of address space, for the stack of a thread and what Python and the C library make for it
_EXIT_SECONDS = 10.0  # to wait for a thread at exit: one may hang in a read that nothing ends

_threads: WeakSet[BackgroundThread] = WeakSet()


def _has_started(start: Callable[[], object]) -> bool:
    """Start a thread; returns False where none starts: no memory for it, too many threads, a closed pool."""
    try:
        # Python waits without end for a thread that ends before its first line, as where memory runs out then.
        mmap(-1, _THREAD_BYTES).close()
        start()
    except (RuntimeError, OSError) as error:
        # Ctrl-C in the wait for the begin of a thread, whose end releases a lock that is no longer held.
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        return False
    return True


class BackgroundThread(threading.Thread):
    """A daemon thread with a way to stop it, which is started at once.

    `stop` makes `target` return soon, and may be called from any thread, more than once. Neither it nor `args` may
    refer to the object that owns the thread, which can be dropped without being closed.
    """

    class NeverBegan(Exception):
        """The thread could not start, or belongs to the process that this one was forked from: do its work yourself."""

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...], stop: Callable[[], None], name: str) -> None:
        super().__init__(target=target, args=args, name=f"tfrecord_io {name}", daemon=True)
        self.stop = stop
        self._process: int | None = os.getpid()  # in which it runs
        _threads.add(self)
        if not _has_started(self.start):
            self._process = None

    def take(self, items: SimpleQueue[T]) -> T:
        """The next item that the thread puts into a queue.

        NeverBegan if the thread does not run, MemoryError if it has ended without an item, for lack of memory.
        """
        if self._process != os.getpid():
            raise BackgroundThread.NeverBegan
        while True:
            was_alive = self.is_alive()
            with suppress(Empty):
                return items.get(timeout=Task.WAIT_SECONDS) if was_alive else items.get_nowait()
            if not was_alive:
                raise MemoryError(f"the thread '{self.name}' has ended for lack of memory")

    def end(self, timeout: float | None = None) -> None:
        """Stop the thread, and wait until it has ended."""
        self.stop()
        if self.is_alive() and self is not threading.current_thread():  # the garbage collector may run this in it
            self.join(timeout)


@atexit.register
def _end_all() -> None:
    threads = [thread for thread in _threads if thread.is_alive()]
    for thread in threads:
        thread.stop()
    for thread in threads:
        thread.end(_EXIT_SECONDS)


class Flag:
    """Set by one thread, for others to see. Ctrl-C in `threading.Event.set`, Python code, could leave its lock held."""

    is_set = False

    def set(self) -> None:
        self.is_set = True


class Task(Generic[T]):
    """A call that one thread makes: the first that claims it; `is_done` when it has returned or raised.

    A `concurrent.futures.Future` cannot be claimed by the thread that waits for it. Ctrl-C leaves no lock held.
    """

    WAIT_SECONDS: ClassVar = 1.0  # at a time: Python handles Ctrl-C that arrives just before a wait only after it

    def __init__(self, call: Callable[[], T]) -> None:
        self._call: Callable[[], T] | None = call
        self._claim, self._done = threading.Lock(), threading.Lock()
        self._done.acquire()
        self.is_done = False
        self._value: T
        self._error: BaseException | None = None

    @staticmethod
    def start(call: Callable[[], T], name: str) -> Task[T]:
        """Let a thread of its own make a call that takes milliseconds; it ends with the call."""
        task = Task(call)
        _has_started(threading.Thread(target=task.run_quietly, name=f"tfrecord_io {name}").start)
        return task

    @staticmethod
    def failing(error: Exception) -> Callable[[], NoReturn]:
        """A call that raises an error when its turn comes."""
        return partial(_raise, error)

    def cancel(self) -> bool:
        """Keep all threads from making the call; False if one has begun."""
        return self._claim.acquire(blocking=False)

    def run(self) -> bool:
        """Make the call in this thread, unless one has begun; returns True if it did."""
        if not self._claim.acquire(blocking=False):
            return False
        try:
            assert self._call is not None
            self._value = self._call()
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):  # Ctrl-C, which is not kept for later
                raise
        finally:
            self._call, self.is_done = None, True
            self._done.release()
        return True

    def run_quietly(self) -> None:
        """As `run`, in another thread: `result` raises what the call raises."""
        with suppress(BaseException):
            self.run()

    def wait(self) -> None:
        """Wait for the thread that makes the call."""
        while not self.is_done:
            if self._done.acquire(timeout=Task.WAIT_SECONDS):
                self._done.release()

    def result(self) -> T:
        """Return or raise the outcome of the call; it is made here if no thread has begun."""
        self.run()
        self.wait()
        error = self._error
        if error is None:
            return self._value
        try:
            raise error
        finally:
            del error, self  # its traceback refers to this frame


class WorkerPool(Closing):
    """Threads that make calls, started with the first ones; a context manager that waits for their end.

    With fewer threads than wanted, or none, all results are the same: see `Task.result`. Of calls in `Ordered`, at most
    `most_ahead` are made, or wait for their turn; by default two for each thread.
    """

    AHEAD: ClassVar = 2  # calls for each thread that are made before their turn

    def __init__(self, threads: int, name: str = "worker", most_ahead: int | None = None) -> None:
        self.threads = threads
        self.most_ahead = WorkerPool.AHEAD * threads if most_ahead is None else most_ahead
        self.ahead = 0  # of these calls: only the thread that takes the results counts them
        self._name = f"tfrecord_io {name}"
        self._executor: ThreadPoolExecutor | None = None  # made for the first call: small files need no thread
        self._takes_calls = threads > 0

    def submit(self, call: Callable[[], T]) -> Task[T]:
        """Let a thread make a call."""
        task = Task(call)
        if self._takes_calls:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self.threads, self._name)
            # Without a thread, further calls would be held and never made.
            self._takes_calls = _has_started(partial(self._executor.submit, task.run_quietly))
        return task

    def map_in_order(self, calls: Iterable[Callable[[], T]]) -> Ordered[T]:
        """Iterate over the results of calls in their order; the threads make some of them in advance."""
        return Ordered(calls, self)

    def close(self, *, wait: bool = True) -> None:
        """Cancel the calls that have not begun; each thread ends after its current call."""
        self._takes_calls = False
        if self._executor is not None:
            with suppress(RuntimeError):  # the garbage collector runs this in one of the threads, which cannot wait
                self._executor.shutdown(wait, cancel_futures=True)


class Ordered(Generic[T]):
    """Iterates over the results of calls in the order of the calls, some of which a pool makes in advance.

    The thread that iterates takes the calls from their source, which no other thread uses. An exception, of a call or
    of the source, is raised in its turn. Closing cancels the calls that have not begun, and waits for none. Several of
    these may share a `pool`, and its room for calls ahead. If it `helps`, this thread makes one of the calls ahead
    rather than wait where the next result is missing.
    """

    def __init__(self, calls: Iterable[Callable[[], T]], pool: WorkerPool, *, helps: bool = False) -> None:
        self._calls, self._pool, self._helps = iter(calls), pool, helps
        self._pending: deque[Task[T]] = deque()
        self.is_submitted = False  # no call is left to submit

    def __iter__(self) -> Self:
        return self

    def submit(self) -> None:
        """Let the pool make calls, as long as it has room."""
        while self._pool.ahead < self._pool.most_ahead and self._submit_one():
            pass

    def _submit_one(self) -> bool:
        if self.is_submitted:
            return False
        try:
            call = next(self._calls, None)
        except Exception as error:  # raised after the results of the calls before it, as with one thread
            call = Task.failing(error)
        if call is None:
            self.is_submitted = True
            return False
        # A first call, which this thread will make soon, is not worth waking another for.
        is_own = self._helps and not self._pending
        self._pending.append(Task(call) if is_own else self._pool.submit(call))
        self._pool.ahead += 1
        return True

    def __next__(self) -> T:
        self.submit()
        if not self._pending and not self._submit_one():  # without room: this thread makes the call
            raise StopIteration
        while self._helps and not self._pending[0].is_done and any(map(Task.run, self._pending)):
            self.submit()
        self._pool.ahead -= 1
        return self._pending.popleft().result()

    def close(self) -> None:
        self.is_submitted, self._calls = True, iter(())  # they may refer to what has this
        while self._pending:
            self._pool.ahead -= 1
            self._pending.popleft().cancel()


def ordered(
    calls: Iterable[Callable[[], T]], threads: int, name: str = "worker", stop: Callable[[], None] | None = None
) -> Generator[T]:
    """The results of `calls`, made by up to `threads` threads, this one included, in order; see `Ordered`.

    At most `WorkerPool.AHEAD` calls for each thread are begun or finished before their turn. `stop` is called where not
    all results are taken, before this waits for the calls that are being made: it lets them end early.
    """
    if threads <= 1:
        for call in calls:
            yield call()
        return
    with WorkerPool(threads - 1, name, WorkerPool.AHEAD * threads) as pool:  # whose end cancels the calls that are left
        try:
            yield from Ordered(calls, pool, helps=True)
        except BaseException:
            if stop is not None:
                stop()
            raise


def _raise(error: Exception) -> NoReturn:
    raise error
