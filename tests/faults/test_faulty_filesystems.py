"""Faults 61 and 62: an fsspec filesystem with errors and short answers at each of its calls."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest
from fsspec.asyn import AsyncFileSystem

import tfrecord_io as tfr
from limited import set_limits
from reading import read_by
from records import blobs, example, framed, int64s
from rounds import COMPLETE
from tfrecord_io.store.read import ranges_ahead

pytestmark = [pytest.mark.fault(61), pytest.mark.fault(62), pytest.mark.storm]
ROWS = 100
CONTENT = framed(*[example(n=int64s(i), s=blobs(bytes([i]) * 1000)) for i in range(ROWS)])


class FaultyFileSystem(AsyncFileSystem):
    """One file, read by requests, the nth of which, or from it on all, are answered by `fault`."""

    protocol = "faulty"
    cachable = False

    def __init__(self, fault: Callable[[bytes], bytes], at: int, lasting: bool) -> None:
        super().__init__()
        self.fault, self.at, self.lasting = fault, at, lasting
        self.requests = 0

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        if not path.rstrip("/").endswith("a.tfrecord"):
            raise FileNotFoundError(path)
        return {"name": path, "size": len(CONTENT), "type": "file"}

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        return []

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        request, self.requests = self.requests, self.requests + 1
        data = CONTENT[start:end]
        return self.fault(data) if request == self.at or (self.lasting and request > self.at) else data


def failing(error: Exception) -> Callable[[bytes], bytes]:
    def answer(_: bytes) -> bytes:
        raise error

    return answer


FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "EIO": failing(OSError(errno.EIO, "Input/output error")),
    "reset": failing(ConnectionResetError("the connection was reset")),
    "timeout": failing(TimeoutError("no answer")),
    "of a library": failing(RuntimeError("503 Slow Down")),
    "short": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
}
READS: dict[str, Callable[..., int]] = {
    "read_table": lambda path, **more: read_by(tfr.read_table, path, **more)["n"].to_pylist(),
    "open_reader": lambda path, **more: [
        n for b in read_by(tfr.open_reader, path, threads=2, **more) for n in b["n"].to_pylist()
    ],
    "RecordReader": lambda path, **more: [
        tfr.decode_example(r)["n"][0] for r in tfr.RecordReader(tfr.dataset(path, filesystem=more["filesystem"]))
    ],
}


@pytest.fixture(autouse=True)
def small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(
        monkeypatch, first_range_bytes=1000, stream_range_bytes=1000, largest_range_bytes=1000, backoff_seconds=0.0
    )
    monkeypatch.setattr(ranges_ahead, "_KEPT_START_BYTES", 10_000)


@pytest.mark.matrix
@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
def test_a_fault_of_every_request(
    engine: str, read: Callable[..., Any], fault: Callable[[bytes], bytes], lasting: bool, record_property: Any
) -> None:
    """After one fault the request is repeated; lasting ones are an OSError that names the file. Never fewer records."""
    path = "faulty://a.tfrecord"
    sound = FaultyFileSystem(fault, -1, False)
    assert read(path, filesystem=sound) == [*range(ROWS)]
    assert sound.requests > 100
    step = 1 if COMPLETE and engine == "native" else 19
    for at in range(0, sound.requests, step):
        filesystem = FaultyFileSystem(fault, at, lasting)
        caught: OSError | None = None
        try:
            rows = read(path, filesystem=filesystem)
        except OSError as error:
            caught = error
        if caught is not None:
            assert lasting, at
            assert "a.tfrecord" in str(caught.filename), at
            continue
        assert rows == [*range(ROWS)], at
        assert not lasting or filesystem.requests <= at or fault(CONTENT[:4]) != b"", at
    record_property("faults at one request to a filesystem after the other", len(range(0, sound.requests, step)))
