"""Calls in threads: each is made once, and also if threads cannot start, or end before their first line."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from weakref import ref

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from running_threads import ends, running
from tfrecord_io.base import background
from tfrecord_io.base.background import BackgroundThread, Task, WorkerPool, ordered
from tfrecord_io.store.read.range_requests import result_of


@pytest.fixture(params=["refused", "no room"])
def no_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads do not start, as where memory runs out: the system refuses, or Python would end one in its first line."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread") if request.param == "refused" else OSError(errno.ENOMEM, "memory")

    owner, name = (threading.Thread, "start") if request.param == "refused" else (background, "mmap")
    monkeypatch.setattr(owner, name, refuse)


def test_a_thread_that_does_not_begin_is_told_of(no_threads: None) -> None:
    queue: SimpleQueue[int] = SimpleQueue()
    thread = BackgroundThread(queue.put, (1,), lambda: None, "test")
    for _ in range(2):
        with pytest.raises(BackgroundThread.NeverBegan):
            thread.take(queue)
    thread.end()


def test_a_thread_that_ends_without_an_item() -> None:
    queue: SimpleQueue[int] = SimpleQueue()
    thread = BackgroundThread(queue.put, (1,), lambda: None, "test")
    assert thread.take(queue) == 1
    with pytest.raises(MemoryError, match="'tfrecord_io test' has ended"):
        thread.take(queue)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_each_call_is_made_once(threads: int) -> None:
    made: list[int] = []

    def call(number: int) -> int:
        made.append(number)
        return number

    with WorkerPool(threads) as pool:
        tasks = [pool.submit(partial(call, number)) for number in range(50)]
        assert [task.result() for task in tasks] == list(range(50))
        assert all(task.is_done and not task.run() and not task.cancel() for task in tasks)
    assert sorted(made) == list(range(50))


def test_an_error_is_raised_to_who_takes_the_result() -> None:
    results = ordered((partial(divmod, 1, number) for number in [2, 1, 0, 1]), 2)
    assert [next(results), next(results)] == [(0, 1), (1, 0)]
    with pytest.raises(ZeroDivisionError):
        next(results)
    cancelled = Task(lambda: 1)
    assert cancelled.cancel()
    assert not cancelled.run()


def test_ctrl_c_is_not_kept() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Task(interrupt).result()


def calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """What reads and writes on several threads, by name."""
    plain, packed = folder / "a.tfrecord", folder / "a.tfrecord.gz"

    def batches(path: Path) -> list[Any]:
        with tfr.open_reader(tfr.dataset(path, threads=3), batch_size=1000) as reader:
            return pa.Table.from_batches(reader).to_pylist()

    def training() -> list[Any]:
        found = tfr.iter_arrays(
            tfr.dataset(plain, threads=3), batch_size=1000, shuffle_buffer=3000, seed=1, columns="n"
        )
        return [batch["n"].tolist() for batch in found]

    def write(name: str) -> bytes:
        tfr.write_tfrecord(tfr.read_table(tfr.dataset(plain, threads=1)), folder / name, threads=3)
        return (folder / name).read_bytes()

    def records() -> list[Any]:
        with tfr.open_random(folder / "many@*") as opened:
            return opened[:].to_pylist()

    return {
        "table": lambda: tfr.read_table(tfr.dataset(plain, threads=3)).to_pylist(),
        "gzip table": lambda: tfr.read_table(tfr.dataset(packed, threads=3)).to_pylist(),
        "stream": lambda: batches(plain),
        "gzip stream": lambda: batches(packed),
        "training": training,
        "write": lambda: write("b.tfrecord"),
        "write gzip": lambda: write("b.tfrecord.gz"),
        "random": records,
        "verify": lambda: tfr.verify(tfr.dataset(folder / "many@*", threads=3)).to_dict(),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("background")
    rng = np.random.default_rng(0)
    data = {"n": np.arange(9000), "x": [rng.bytes(600) for _ in range(9000)]}
    tfr.write_tfrecord(data, folder / "a.tfrecord")
    tfr.write_tfrecord(data, folder / "a.tfrecord.gz")
    tfr.write_tfrecord({"n": np.arange(900)}, folder / "many@20")
    return folder


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    return {name: call() for name, call in calls(folder).items()}


@pytest.mark.fault(63)
def test_nothing_is_lost_without_threads(
    folder: Path, expected: dict[str, Any], no_threads: None, native_engine: None
) -> None:
    for name, call in calls(folder).items():
        assert call() == expected[name], name


def test_a_call_in_the_background_is_made_once_and_its_error_is_raised_with_the_result() -> None:
    calls = []
    task = Task.start(lambda: calls.append(threading.current_thread()), "test")
    assert task.result() is None
    assert len(calls) == 1
    with pytest.raises(ZeroDivisionError):
        Task.start(lambda: 1 // 0, "test").result()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs signal.pthread_sigmask")
@pytest.mark.parametrize("wait", [lambda: Task(int).wait(), lambda: result_of(Future[None]())], ids=["task", "request"])
def test_an_interrupt_that_arrives_just_before_a_wait_ends_it(wait: Callable[[], object]) -> None:
    """Here another thread gets the signal, which does not wake the one that waits, either."""
    waits = threading.Event()

    def interrupt() -> None:
        waits.wait(10)
        threading.Event().wait(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread.start()
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        waits.set()
        with pytest.raises(KeyboardInterrupt):
            wait()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, handler)
        thread.join()


def test_the_threads_of_a_pool_that_is_dropped_end() -> None:
    began, ended = threading.Event(), threading.Event()
    pool = WorkerPool(2, "dropped")

    def wait() -> None:
        began.set()
        ended.wait()

    pool.submit(wait)
    assert began.wait(10)
    waiting = pool.submit(int)
    del pool
    ended.set()
    assert all(map(ends, running("dropped")))
    assert waiting.is_done


def test_a_pool_can_be_closed_by_one_of_its_threads() -> None:
    """As by the garbage collector."""
    pool = WorkerPool(2, "closed")
    assert pool.submit(pool.close).result() is None
    assert pool.submit(lambda: 3).result() == 3
    assert all(map(ends, running("closed")))


def test_ctrl_c_while_a_thread_begins_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """In `threading.Condition.wait`, where it releases a lock a second time."""
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        with (lock := threading.Lock()):
            lock.release()
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    pool = WorkerPool(1)
    for begin in (lambda: pool.submit(int), lambda: Task.start(int, "test"), lambda: next(ordered([int] * 9, 2))):
        with pytest.raises(KeyboardInterrupt):
            begin()
    queue: SimpleQueue[int] = SimpleQueue()
    with pytest.raises(KeyboardInterrupt):
        BackgroundThread(queue.put, (1,), lambda: None, "test")


def test_results_are_not_held_where_no_thread_starts(no_threads: None) -> None:
    class Result:
        pass

    pool = WorkerPool(2)
    results = [ref(pool.submit(Result).result()) for _ in range(50)]
    assert sum(result() is not None for result in results) <= 1
