"""Random access to files of a filesystem that is neither a store nor a web server."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import pytest
from fsspec import AbstractFileSystem

import tfrecord_io as tfr
from limited import limited
from records import example, framed, int64s

CONTENT = framed(*[example(n=int64s(i)) for i in range(50)])
NAME = "d/a.tfrecord"


class FlakyRanges(AbstractFileSystem):
    """One file, of which the next `failures` requests for bytes fail: by an error, or with the first half of them."""

    protocol = "flaky"
    cachable = False

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error, self.failures, self.sizes = error, 0, 0

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        if path.rstrip("/") != NAME:
            raise FileNotFoundError(path)
        return {"name": NAME, "size": len(CONTENT), "type": "file"}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        return []

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        data = CONTENT[start:end]
        if not self.failures:
            return data
        self.failures -= 1
        if self.error is not None:
            raise self.error
        return data[: len(data) // 2]

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        import io

        return io.BytesIO(CONTENT)


@pytest.fixture(autouse=True)
def no_pauses() -> Iterator[None]:
    with limited(backoff_seconds=0.0, whole_object_bytes=0):
        yield


RESET = ConnectionResetError(errno.ECONNRESET, "reset")


@pytest.mark.parametrize("error", [RESET, EOFError(), None], ids=["reset", "of a library", "short"])
def test_a_range_is_asked_for_again(error: Exception | None) -> None:
    fs = FlakyRanges(error)
    with tfr.open_random(tfr.dataset(f"flaky://{NAME}", filesystem=fs)) as records:
        for failures in range(5):
            fs.failures = failures
            assert records[7 + failures]["n"] == 7 + failures
            assert fs.failures == 0
        fs.failures = 9
        with pytest.raises(OSError, match=r"\(tried 5 times\)") as caught:
            records[30]
    assert fs.failures == 4
    assert caught.value.filename == f"flaky://{NAME}"
    assert caught.value.errno == (errno.ECONNRESET if error is RESET else errno.EIO)


@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "refused"), FileNotFoundError(NAME)])
def test_an_error_that_lasts_is_raised_at_once(error: Exception) -> None:
    fs = FlakyRanges(error)
    with tfr.open_random(tfr.dataset(f"flaky://{NAME}", filesystem=fs)) as records:
        assert records[7]["n"] == 7
        fs.failures = 2
        with pytest.raises(OSError, match=r"refused|was replaced") as caught:
            records[30]
    assert fs.failures == 1
    assert caught.value.filename == f"flaky://{NAME}"
