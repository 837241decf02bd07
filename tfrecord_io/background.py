"""Threads that end before the interpreter does, and pools of them.

While the interpreter shuts down, a daemon thread that asks for the GIL is unwound on the spot, which aborts the process
where C++ code is on its stack. So every thread that may outlive the call that started it is one of these: they are
stopped and joined at exit.

Where memory runs out, a thread may not start, or end before its first line, which Python does not report. So nothing
here waits long for a thread to begin: the thread that waits for a result claims the work, if no other has, and does it.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from functools import partial
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, Generic, NoReturn, Self, TypeVar
from weakref import ReferenceType, ref

T = TypeVar("T")

AHEAD = 2  # calls for each thread that are made before their turn
WAIT_SECONDS = 1.0  # at a time: Python handles Ctrl-C that arrives just before a wait only after it
_EXIT_SECONDS = 10.0  # to wait for a thread at exit: one may hang in a read that nothing ends
_BEGIN_SECONDS = 1.0  # after which a thread that has not begun may be one that never will

_running: set[BackgroundThread] = set()


class NeverBegan(Exception):
    """A thread has not begun to run, and will not: the caller does its work."""


class BackgroundThread:
    """A daemon thread with a way to stop it; `threading.enumerate` does not list it.

    `threading.Thread.start` waits until the thread runs: without end where that ends before its first line, and in
    Python code, in which Ctrl-C may be lost or leave a lock held. So it is not used here. Each wait here is for one
    lock, which Ctrl-C ends and leaves as it was.

    `stop` makes `target` return soon, and may be called from any thread, more than once. Neither it nor `args` may
    refer to the object that owns the thread, which can be dropped without being closed.
    """

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...], stop: Callable[[], None], name: str) -> None:
        self.name, self.stop = f"tfrecord_io {name}", stop
        self._claim = threading.Lock()  # held by the thread that has begun, or by one that keeps it from beginning
        self._began, self._over = threading.Lock(), threading.Lock()  # released when it has begun, and ended
        self._began.acquire()
        self._over.acquire()
        self._never_began = False
        self._ident = 0
        self._call: Callable[[], None] | None = partial(target, *args)
        _running.add(self)
        try:
            start_new_thread(self._run, ())
        except RuntimeError:  # no memory for its stack, or too many threads
            _running.discard(self)
            self._never_began = self._claim.acquire(blocking=False)
        else:
            self._began.acquire(timeout=_BEGIN_SECONDS)  # so that it, not the caller, begins with the work

    def _run(self) -> None:
        self._ident = threading.get_ident()
        try:
            if self._claim.acquire(blocking=False):
                self._began.release()
                sys.settrace(threading.gettrace())  # what `threading.Thread` does for debuggers and profilers
                sys.setprofile(threading.getprofile())
                assert self._call is not None
                self._call()
        finally:
            self._call = None  # first: what it holds is released when `join` returns
            _running.discard(self)
            self._over.release()

    def take(self, items: SimpleQueue[T]) -> T:
        """The next item that the thread puts into a queue.

        NeverBegan if the thread does not run, MemoryError if it has ended without an item, for lack of memory.
        """
        while not self._never_began:
            with suppress(Empty):
                return items.get(timeout=_BEGIN_SECONDS) if self._claim.locked() else items.get_nowait()
            self._never_began = self._claim.acquire(blocking=False)
            if not self._never_began and not self._over.locked() and items.empty():
                raise MemoryError(f"the thread '{self.name}' has ended for lack of memory")
        raise NeverBegan

    def end(self, timeout: float | None = None) -> bool:
        """Stop the thread, and wait until it has ended; returns whether it has."""
        self.stop()
        return self._ident == threading.get_ident() or self.join(timeout)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended; returns whether it has."""
        if self._never_began:
            return True
        if not self._claim.locked():  # it has not begun, and may never do so
            timeout = _BEGIN_SECONDS
        has_ended = self._over.acquire(timeout=-1 if timeout is None else timeout)
        if has_ended:
            self._over.release()  # for others that wait
        return has_ended

    def forget(self) -> None:
        """In a forked process, which has not got the thread: neither stop it nor wait for it."""
        self.stop, self._never_began = _do_nothing, True


class Flag:
    """Set by one thread, for others to see. Ctrl-C in `threading.Event.set`, Python code, could leave its lock held."""

    is_set = False

    def set(self) -> None:
        self.is_set = True


class Task(Generic[T]):
    """A call that one thread makes: the first that claims it; `is_done` when it has returned or raised."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call: Callable[[], T] | None = call
        self._claim, self._done = threading.Lock(), threading.Lock()
        self._done.acquire()
        self.is_done = False
        self._value: T
        self._error: BaseException | None = None

    def cancel(self) -> bool:
        """Keep all threads from making the call; False if one has begun."""
        return self._claim.acquire(blocking=False)

    def run(self) -> bool:
        """Make the call in this thread, unless one has begun; returns whether it did."""
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

    def wait(self) -> None:
        """Wait for the thread that makes the call."""
        while not self.is_done:
            if self._done.acquire(timeout=WAIT_SECONDS):
                self._done.release()

    def result(self) -> T:
        """What the call returned or raised; it is made here if no thread has begun."""
        self.run()
        self.wait()
        error = self._error
        if error is None:
            return self._value
        try:
            raise error
        finally:
            del error, self  # its traceback refers to this frame


def in_background(call: Callable[[], T], name: str) -> Task[T]:
    """Let a thread of its own make a call that takes milliseconds; it ends with the call."""
    task = Task(call)
    with suppress(MemoryError):  # then it is made where the result is used
        BackgroundThread(_run_one, (task,), _do_nothing, name)
    return task


def _run_one(task: Task[Any]) -> None:
    with suppress(Exception):  # `result` raises it
        task.run()


Tasks = SimpleQueue["Task[Any] | ReferenceType[WorkerPool] | None"]


def _run_tasks(tasks: Tasks, pool: ReferenceType[WorkerPool]) -> None:
    while isinstance(task := tasks.get(), Task):
        if pool() is None:
            task.cancel()
        with suppress(BaseException):  # `result` raises it
            task.run()
        del task


def _stop_one(tasks: Tasks) -> None:
    """Let one thread end after the call that it makes; the calls that have not begun are cancelled."""
    with suppress(Empty):
        while isinstance(task := tasks.get_nowait(), Task):
            task.cancel()
        tasks.put(task)  # for another thread
    tasks.put(None)


class WorkerPool:
    """Threads that make calls, started with the first ones; a context manager that waits for their end.

    With fewer threads than wanted, or none, all results are the same: see `Task.result`. Of calls in `Ordered`, at most
    `most_ahead` are made, or wait for their turn; by default two for each thread.
    """

    def __init__(self, threads: int, name: str = "worker", most_ahead: int | None = None) -> None:
        self.threads, self._most, self._name = threads, threads, name
        self.most_ahead = AHEAD * threads if most_ahead is None else most_ahead
        self.ahead = 0  # of these calls: only the thread that takes the results counts them
        self._tasks: Tasks = SimpleQueue()
        self._threads: list[BackgroundThread] = []

    def submit(self, call: Callable[[], T]) -> Task[T]:
        """Let a thread make a call."""
        task = Task(call)
        self._tasks.put(task)
        if len(self._threads) < self._most:
            try:
                stop = partial(_stop_one, self._tasks)
                # When the pool is dropped, the thread gets this reference as its last item. A `__del__` would run
                # Python code, in which Ctrl-C is lost.
                pool = ref(self, self._tasks.put)
                self._threads.append(BackgroundThread(_run_tasks, (self._tasks, pool), stop, self._name))
            except MemoryError:
                self._most = len(self._threads)
        return task

    def close(self, *, wait: bool = True) -> None:
        """Cancel the calls that have not begun; the threads end, after those that they make."""
        threads, self._threads, self._most = self._threads, [], 0
        for thread in threads:
            thread.stop()
        for thread in threads if wait else ():
            thread.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


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
            call = partial(raise_error, error)
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
        while self._helps and not self._pending[0].is_done and any(task.run() for task in self._pending):
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

    At most `AHEAD` calls for each thread are begun or finished before their turn. `stop` is called where not all
    results are taken, before this waits for the calls that are being made: it lets them end early.
    """
    rest = iter(calls)
    if threads <= 1:
        for call in rest:
            yield call()
        return
    first = next(rest, None)
    if first is None:
        return
    try:
        second = next(rest, None)
    except Exception as error:  # raised after the result of the first, as with one thread
        second = partial(raise_error, error)
    if second is None:  # one call needs no other thread
        yield first()
        return
    with WorkerPool(threads - 1, name, AHEAD * threads) as pool:  # whose end cancels the calls that are left
        try:
            yield from Ordered(chain((first, second), rest), pool, helps=True)
        except BaseException:
            if stop is not None:
                stop()
            raise


def raise_error(error: Exception) -> NoReturn:
    """A call that fails."""
    raise error


def _end_all() -> None:
    threads = list(_running)
    for thread in threads:
        thread.stop()
    for thread in threads:
        thread.end(_EXIT_SECONDS)


def _do_nothing() -> None:
    pass


def _forget_all() -> None:
    """In a forked process, which has none of the threads; their locks may be held for ever."""
    for thread in list(_running):
        thread.forget()
    _running.clear()


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
