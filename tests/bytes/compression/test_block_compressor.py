"""Compression in blocks: one stream for any pieces and threads; errors and Ctrl-C are raised; no thread remains."""

from __future__ import annotations

import signal
import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limited import set_limits
from running_threads import running
from tfrecord_io.base import LIMITS
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.bytes.compression.block_compressor import BlockCompressor
from tfrecord_io.bytes.compression.deflate import GzipTrailer

HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"


def new(deflate: Any, threads: int) -> BlockCompressor:
    return BlockCompressor(deflate, HEADER, GzipTrailer(), threads, end=b"\x03\x00")


def compressing() -> list[threading.Thread]:
    return running("compress")


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    yield
    for thread in compressing():
        thread.join(10)
    assert compressing() == []


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 3)), max_size=12), st.sampled_from([None, 0, 1, 6]))
def test_any_pieces_give_one_member_independent_of_threads(sizes: list[tuple[int, int]], level: int | None) -> None:
    parts = [bytes(range(256)) * (n // 4) + bytes([n]) * (n << 4 * k) for n, k in sizes]
    codec = CODECS.find("gzip")
    assert codec is not None
    with pytest.MonkeyPatch.context() as patch:  # small blocks, to have many
        set_limits(patch, compression_block_bytes=2000)
        made = []
        for threads in (1, 3):
            compressor = codec.compressor(level, threads=threads)
            made.append(b"".join([*(out for part in parts for out in compressor.compress(part)), *compressor.flush()]))
    assert made[0] == made[1]
    inflate = zlib.decompressobj(31)
    assert inflate.decompress(made[0]) == b"".join(parts)
    assert (inflate.eof, inflate.unused_data) == (True, b"")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("late", [False, True])
def test_error_of_a_thread_is_raised_and_ends_the_stream(threads: int, late: bool) -> None:
    calls = []

    def deflate(block: memoryview) -> bytes:
        calls.append(len(block))
        if len(calls) == 3 or (late and len(block) < LIMITS.compression_block_bytes):
            raise MemoryError("mine")
        return b"x"

    compressor = new(deflate, threads)
    with pytest.raises(MemoryError, match="mine"):  # noqa: PT012
        for _ in range(1 if late else 100):
            list(compressor.compress(bytes(LIMITS.compression_block_bytes)))
        list(compressor.compress(b"small"))
        list(compressor.flush())
    for call in (lambda: compressor.compress(b"more"), compressor.flush):
        with pytest.raises(ValueError, match="the data is incomplete"):
            list(call())


@pytest.mark.fault(64)
def test_ctrl_c_works_while_threads_compress() -> None:
    go_on = threading.Event()
    heard: list[float] = []

    def deflate(block: memoryview) -> bytes:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        go_on.wait(20)
        return b"x"

    def interrupt(*_: Any) -> None:
        if not heard:
            heard.append(time.monotonic())
            raise KeyboardInterrupt

    compressor, data = new(deflate, 2), bytes(20 * LIMITS.compression_block_bytes)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(compressor.compress(data))
        assert time.monotonic() - heard[0] < 0.1
        with pytest.raises(ValueError, match="the data is incomplete"):  # the stream has a gap
            list(compressor.flush())
    finally:
        go_on.set()
        for thread in compressing():
            thread.join(10)
        signal.signal(signal.SIGUSR1, before)


def test_caller_waits_for_slow_threads() -> None:
    allowed = threading.Semaphore(0)
    begun: list[int] = []

    def deflate(block: memoryview) -> bytes:
        allowed.acquire(timeout=20)
        return b"x"

    def write() -> None:
        for i in range(20):
            begun.append(i)
            list(compressor.compress(bytes(LIMITS.compression_block_bytes)))

    compressor = new(deflate, 2)
    writer = threading.Thread(target=write)
    writer.start()
    writer.join(0.2)  # it is blocked
    assert len(begun) == 3
    allowed.release(20)
    writer.join()
    assert b"".join(compressor.flush()).startswith(b"x")


def test_closing_early_stops_the_threads() -> None:
    compressor = new(lambda block: b"x", 4)
    list(compressor.compress(bytes(10 * LIMITS.compression_block_bytes)))
    compressor.close()
    for thread in compressing():
        thread.join(10)
    assert compressing() == []


def test_small_data_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Thread", None)
    compressor = new(lambda block: bytes(block), 4)
    made = b"".join([*compressor.compress(b"abc"), *compressor.compress(b"def"), *compressor.flush()])
    assert made[len(HEADER) :].startswith(b"abcdef")
