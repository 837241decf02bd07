"""An object that is read while it arrives has its bytes, in order, after errors too, and waits for its reader."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from limited import set_limits
from servers import Bucket
from tfrecord_io.base import StorageOptions
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.arriving_object import ArrivingObject
from tfrecord_io.store.read.range_requests import RemoteObject
from tfrecord_io.store.read.ranges_ahead import Window

DATA = random.Random(0).randbytes(3 << 20)


class Pieces(RemoteObject):
    """Bytes in memory that arrive in pieces; `script` has the number of them before each error."""

    def __init__(self, script: list[tuple[int, Exception | None]]) -> None:
        import fsspec.asyn

        self.script, self.begins, self.sent = script, [], 0
        self.is_closed = threading.Event()
        self._loop = fsspec.asyn.get_loop()

    path = "mem://a"
    begins: list[int]

    def submit(self, request: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(request, self._loop)

    async def pieces(self, begin: int, end: int) -> AsyncGenerator[bytes]:
        self.begins.append(begin)
        count, error = self.script.pop(0) if self.script else (1 << 30, None)
        try:
            for at in range(begin, end, 100_000):
                if not count:
                    break
                count -= 1
                self.sent += 100_000
                yield DATA[at : min(at + 100_000, end)]
                await asyncio.sleep(0)
            if error is not None:
                raise error
        finally:
            self.is_closed.set()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, backoff_seconds=0.0001)


def read(raw: Any) -> bytes:
    found, buffer = bytearray(), memoryview(bytearray(70_000))
    while n := raw.readinto(buffer):
        found += buffer[:n]
    return bytes(found)


def test_a_request_goes_on_where_the_last_one_ended() -> None:
    remote = Pieces([(3, ConnectionResetError()), (0, OSError(5, "broken")), (4, None)])
    raw = ArrivingObject(remote, len(DATA))
    assert read(raw) == DATA
    assert remote.begins == [0, 300_000, 300_000, 700_000]
    assert raw.readinto(memoryview(bytearray(1))) == 0
    raw.close()


def test_an_error_follows_the_bytes_before_it() -> None:
    raw = ArrivingObject(Pieces([(2, PermissionError(13, "denied"))]), len(DATA))
    buffer = memoryview(bytearray(200_000))
    assert raw.readinto(buffer) == raw.readinto(buffer[100_000:]) == 100_000
    assert buffer == DATA[:200_000]
    for _ in range(2):
        with pytest.raises(PermissionError, match="denied"):
            raw.readinto(buffer)


def test_the_network_waits_for_a_slow_reader() -> None:
    remote = Pieces([])
    raw = ArrivingObject(remote, len(DATA))
    time.sleep(0.1)
    assert remote.sent < 800_000
    assert read(raw) == DATA


def test_closing_ends_the_request() -> None:
    remote = Pieces([])
    raw = ArrivingObject(remote, len(DATA))
    assert raw.readinto(memoryview(bytearray(10))) == 10
    raw.close()
    assert remote.is_closed.wait(10)
    with pytest.raises(ValueError, match="closed"):
        raw.readinto(memoryview(bytearray(10)))


def test_an_object_of_s3_arrives_by_one_request(s3: Bucket) -> None:
    s3.fs.pipe_file(s3.url("a"), DATA)
    (source,) = resolve_inputs(s3.url("a"), StorageOptions(s3.storage_options))
    raw = source.open(Window(iter(())), arrives=True)
    assert isinstance(raw, ArrivingObject)
    assert read(raw) == DATA
    s3.fs.pipe_file(s3.url("a"), DATA[::-1])
    with pytest.raises(OSError, match="replaced"):
        read(source.open(Window(iter(())), arrives=True))
