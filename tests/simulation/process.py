"""What a process has of its own: its clock, its number, its random bytes, and one thread, which makes its requests too.

`installed` replaces these calls in the whole interpreter; in threads that are not actors they stay what they are.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import random
import threading
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import fsspec.asyn
from scheduler import Death, running

from tfrecord_io.base import background
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.copies import store_copy
from tfrecord_io.store.paths import manifest, manifest_parts
from tfrecord_io.store.paths.manifest import parse_manifest
from tfrecord_io.store.paths.manifest_parts import unpack
from tfrecord_io.store.write import atomic_remote, commit_place, commit_place_remote


class InlineLoop(asyncio.BaseEventLoop):
    """An event loop that runs in the thread that asks, until what it asked for is done; its clock is the world's."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self  # it has no files
        self._time = 0.0
        self._first: Any = _First()
        self.set_exception_handler(lambda loop, context: None)  # of tasks of processes that have ended

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("a coroutine waits for ever")
        if timeout > 0:
            self._time += timeout
            actor = running()
            if actor is not None:
                actor[0].sleep(timeout)
        return []

    def time(self) -> float:
        return self._time

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def answer(self, request: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine to its end; returns the future that its caller waits for."""
        future: Future[Any] = Future()
        if self.is_running():  # asked by the garbage collector, within another request
            request.close()
            future.cancel()
            return future
        future.set_running_or_notify_cancel()
        try:
            future.set_result(self.result(request))
        except asyncio.CancelledError:
            future.set_exception(asyncio.CancelledError())
        except Death:
            raise
        except Exception as error:
            future.set_exception(error)
        return future

    def result(self, request: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine: without a task as long as it waits for nothing, as most do."""
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("another loop is running in this thread")
        asyncio._set_running_loop(self)
        asyncio.tasks._enter_task(self, self._first)
        try:
            waits_for = request.send(None)
        except StopIteration as done:
            return done.value
        finally:
            asyncio.tasks._leave_task(self, self._first)
            asyncio._set_running_loop(None)
        return self.run_until_complete(self.create_task(_rest(request, waits_for)))


class _First:
    """What stands for the task of a coroutine before it waits."""

    def cancel(self, message: Any = None) -> bool:
        return False


@types.coroutine
def _rest(request: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """A coroutine from where it waits for the first time."""
    while True:
        try:
            value = yield waits_for
        except GeneratorExit:  # the process has ended
            request.close()
            raise
        except BaseException as error:
            step = partial(request.throw, error)
        else:
            step = partial(request.send, value)
        try:
            waits_for = step()
        except StopIteration as done:
            return done.value


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    real_sleep, real_time, real_pid, real_urandom = time.sleep, time.time, os.getpid, os.urandom
    real_time_ns, real_monotonic = time.time_ns, time.monotonic
    real_uniform, real_start = random.uniform, threading.Thread.start
    real_started = background._has_started
    real_submit, real_sync = asyncio.run_coroutine_threadsafe, fsspec.asyn.sync

    def sleep(seconds: float) -> None:
        if (actor := running()) is None:
            real_sleep(seconds)
        else:
            actor[0].sleep(seconds)

    def now() -> float:
        return real_time() if (actor := running()) is None else actor[0].now + actor[1].skew

    def now_ns() -> int:
        return real_time_ns() if (actor := running()) is None else int((actor[0].now + actor[1].skew) * 1e9)

    def monotonic() -> float:
        return real_monotonic() if (actor := running()) is None else actor[0].now

    def getpid() -> int:
        return real_pid() if (actor := running()) is None else actor[1].process

    def urandom(count: int) -> bytes:
        return real_urandom(count) if (actor := running()) is None else actor[1].rng.randbytes(count)

    def uniform(a: float, b: float) -> float:
        return real_uniform(a, b) if (actor := running()) is None else actor[1].rng.uniform(a, b)

    def start(thread: threading.Thread) -> None:
        if running() is not None and thread.name.startswith("tfrecord_io "):
            raise RuntimeError("can't start new thread")  # the caller does the work
        real_start(thread)

    def started(call: Callable[[], object]) -> bool:
        return running() is None and real_started(call)  # the caller does the work

    def submit(request: Coroutine[Any, Any, Any], loop: Any) -> Future[Any]:
        return loop.answer(request) if isinstance(loop, InlineLoop) else real_submit(request, loop)

    def sync(loop: Any, call: Callable[..., Any], *arguments: Any, timeout: Any = None, **keywords: Any) -> Any:
        if not isinstance(loop, InlineLoop) or loop.is_running():
            return real_sync(loop, call, *arguments, timeout=timeout, **keywords)
        return loop.result(call(*arguments, **keywords))

    yield time, "sleep", sleep
    yield time, "time", now
    yield time, "time_ns", now_ns
    yield time, "monotonic", monotonic
    yield os, "getpid", getpid
    yield os, "urandom", urandom
    yield random, "uniform", uniform
    yield threading.Thread, "start", start
    yield asyncio, "run_coroutine_threadsafe", submit
    parsed = _kept(parse_manifest, posixpath.basename)
    for module in (manifest, commit_place):
        yield module, "parse_manifest", parsed
    unpacked = _kept(unpack, lambda path: "")
    for module in (manifest_parts, commit_place):
        yield module, "unpack", unpacked
    yield background, "_has_started", started
    yield atomic_remote, "LIMITS", atomic_remote.LIMITS  # which programs set
    for module in (fsspec.asyn, commit_place_remote, store_copy):
        yield module, "sync", sync


def _kept(parse: Callable[..., Any], name_of: Callable[[str], str]) -> Callable[..., Any]:
    """A function of contents and their path that returns what it returned before for the same contents.

    What it returns depends on a part of the path only, `name_of` it; an error shows all of it.
    """
    keeping = lru_cache(maxsize=4000)(parse)

    def parsed(*arguments: Any) -> Any:
        *contents, path = arguments
        try:
            return keeping(*contents, name_of(path))
        except CorruptRecordError:
            return parse(*arguments)

    return parsed


@contextmanager
def replaced(replacements: Iterator[tuple[Any, str, Any]]) -> Iterator[None]:
    """Substitute others for attributes during a block."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for owner, name, function in list(replacements):
            before.append((owner, name, getattr(owner, name)))
            setattr(owner, name, function)
        yield
    finally:
        for owner, name, function in reversed(before):
            setattr(owner, name, function)


@contextmanager
def installed() -> Iterator[None]:
    """Give each actor a process of its own, during a block."""
    with replaced(_replacements()):
        yield
