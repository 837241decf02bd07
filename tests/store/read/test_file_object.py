"""The file object of a filesystem that is neither a store nor a web server: reopened after transient errors."""

from __future__ import annotations

import errno
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fsspec import AbstractFileSystem
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import limited
from records import blobs, example, framed, int64s
from servers import Web

ROWS = 60
CONTENT = framed(*[example(n=int64s(i), s=blobs(bytes([i]) * 300)) for i in range(ROWS)])
NAME = "d/a.tfrecord"
ERRORS = (ConnectionResetError(errno.ECONNRESET, "reset"), TimeoutError("no answer"), EOFError(), OSError("broken"))


class FlakyFiles(AbstractFileSystem):
    """One file; `failing` are the kinds of the next calls that fail, each once all before it have failed.

    Its reads return few bytes. A read that "ends" returns none.
    """

    protocol = "flaky"
    cachable = False

    def __init__(self, error: Exception = ERRORS[0], *, whole_reads: bool = False) -> None:
        super().__init__()
        self.error, self.whole_reads = error, whole_reads
        self.data, self.version = CONTENT, 1
        self.failing: list[str] = []
        self.following: Iterator[list[str]] = iter(())  # the next ones, once those have failed and a read has not
        self.opened = 0

    def fail(self, kind: str) -> None:
        if self.failing[:1] == [kind]:
            del self.failing[0]
            raise self.error

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        self.fail("info")
        if path.rstrip("/") != NAME:
            raise FileNotFoundError(path)
        return {"name": NAME, "size": len(self.data), "type": "file", "mtime": self.version}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        return []

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        self.fail("open")
        self.opened += 1
        return FlakyFile(self)


class FlakyFile(io.BytesIO):
    def __init__(self, fs: FlakyFiles) -> None:
        super().__init__(fs.data)
        self._fs = fs

    def read(self, size: int | None = -1, /) -> bytes:
        self._fs.fail("read")
        return super().read(size)

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        n = super().readinto(view if self._fs.whole_reads else view[:700])
        self._fs.fail("read")  # after some bytes
        if self._fs.failing[:1] == ["ends"]:
            del self._fs.failing[0]
            return 0
        if not self._fs.failing:
            self._fs.failing = next(self._fs.following, [])
        return n


@pytest.fixture(autouse=True)
def no_pauses() -> Iterator[None]:
    with limited(backoff_seconds=0.0):
        yield


def of(fs: FlakyFiles) -> tfr.Dataset:
    return tfr.dataset(f"flaky://{NAME}", filesystem=fs)


def numbers(fs: FlakyFiles) -> list[int]:
    return tfr.read_table(of(fs))["n"].to_pylist()


runs = st.lists(st.sampled_from(["read", "open", "info", "ends"]), max_size=3).map(lambda more: ["read", *more])


@given(st.lists(st.just("open"), max_size=4), st.lists(runs, max_size=12), st.sampled_from(ERRORS))
def test_four_failures_in_a_row_anywhere_change_nothing(opens: list[str], runs: list[list[str]], error: Any) -> None:
    fs = FlakyFiles(error)
    fs.failing, fs.following = list(opens), iter([list(run) for run in runs])
    with limited(backoff_seconds=0.0):
        assert numbers(fs) == [*range(ROWS)]


@given(st.integers(0, 5), st.lists(st.sampled_from(["read", "open", "info"]), min_size=4, max_size=4))
def test_five_failures_in_a_row_are_an_error(before: int, more: list[str]) -> None:
    fs = FlakyFiles()
    fs.following = iter([*[["read"]] * before, ["read", *more]])
    with limited(backoff_seconds=0.0), pytest.raises(OSError, match=r"reset \(tried 5 times\), at byte \d+") as caught:
        numbers(fs)
    assert caught.value.errno == errno.ECONNRESET
    assert caught.value.filename == f"flaky://{NAME}"


def test_an_open_that_fails_five_times_is_an_error() -> None:
    fs = FlakyFiles(ConnectionResetError(errno.ECONNRESET, "reset", "/of/the/library"))
    fs.failing = ["open"] * 5
    with pytest.raises(ConnectionResetError, match=r"reset \(tried 5 times\)") as caught:
        numbers(fs)
    assert caught.value.filename == f"flaky://{NAME}"


@pytest.mark.parametrize("call", ["open", "read"])
@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "refused"), OSError(errno.EINVAL, "wrong")])
def test_an_error_that_lasts_is_raised_at_once(call: str, error: Exception) -> None:
    fs = FlakyFiles(error)
    fs.failing = [call] * 2
    with pytest.raises(OSError, match=r"refused|wrong") as caught:
        numbers(fs)
    assert "tried" not in str(caught.value)
    assert fs.failing == [call]


@pytest.mark.parametrize("call", [tfr.count, lambda dataset: len([*tfr.RecordReader(dataset)])])
def test_other_readers_read_on(call: Callable[..., int]) -> None:
    fs = FlakyFiles()
    fs.failing, fs.following = ["open", "open"], iter([["read", "open", "read"]] * 3)
    assert call(of(fs)) == ROWS


def test_verify_reports_no_damage() -> None:
    fs = FlakyFiles()
    fs.failing, fs.following = ["open"], iter([["read"]] * 5)
    assert tfr.verify(of(fs)).ok


class ReplacedFiles(FlakyFiles):
    """Before a file is opened again, another one has its name, or none has."""

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        if self.opened:
            self.data, self.version = CONTENT[::-1], 2
            if self.error is ERRORS[1]:
                raise FileNotFoundError(path)
        return super()._open(path, mode, **more)


@pytest.mark.fault(23)
@pytest.mark.parametrize("error", ERRORS[:2], ids=["another", "none"])
def test_a_file_replaced_before_it_is_opened_again_is_an_error(error: Exception) -> None:
    fs = ReplacedFiles(error)
    fs.following = iter([[], ["read"]])
    fs.failing = ["read"]
    with pytest.raises(tfr.errors.ReplacedError, match="was replaced") as caught:
        numbers(fs)
    assert caught.value.filename == f"flaky://{NAME}"


@given(st.lists(st.tuples(st.integers(0, len(CONTENT)), runs), max_size=8))
def test_seeks_and_failures_give_the_bytes_of_the_file(steps: list[tuple[int, list[str]]]) -> None:
    from tfrecord_io.base import StorageOptions
    from tfrecord_io.store.paths.resolve import resolve_inputs

    fs = FlakyFiles()
    (source,) = resolve_inputs(f"flaky://{NAME}", StorageOptions(None, fs))
    raw: Any = source.open()
    buffer = memoryview(bytearray(100))
    with limited(backoff_seconds=0.0):
        for at, failing in steps:
            raw.seek(at)
            fs.failing = list(failing) if at < len(CONTENT) else []
            n = raw.readinto(buffer)
            assert bytes(buffer[:n]) == CONTENT[at : at + n]
            assert raw.tell() == at + n
    raw.close()
    with pytest.raises(ValueError, match="is closed"):
        raw.readinto(buffer)


# ---- a web server without ranges


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_a_web_server_without_ranges_that_ends_its_body(web: Web, tmp_path: Any, name: str) -> None:
    import random

    rows = [random.Random(i).randbytes(300) for i in range(2000)]
    tfr.write_tfrecord({"s": rows}, tmp_path / name)
    web.files[name] = (tmp_path / name).read_bytes()
    web.ranges, web.ends = False, 4
    assert tfr.read_table(web.url(name))["s"].to_pylist() == rows
    assert web.ends == 0
    web.ends = 1000
    with pytest.raises(OSError, match=r"\(tried 5 times\)") as caught:
        tfr.read_table(web.url(name))
    assert caught.value.filename == web.url(name)
