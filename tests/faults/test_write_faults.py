"""Errors of the disk while a file is written: nothing is left behind, and the error names the right file."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from limited import limited

TABLE = pa.table({"n": np.arange(3000), "s": [f"row {i}" for i in range(3000)]})
FORMS: dict[str, dict[str, Any]] = {
    "a": {},
    "a.gz": {},
    "a@3": {},
    "a@2": {"compression": "zlib"},
    "a@*": {"max_shard_bytes": 30_000},
}


@pytest.fixture(autouse=True)
def many_pieces() -> Iterator[None]:
    with limited(piece_bytes=5000), mock.patch.object(os, "sched_getaffinity", return_value=range(8), create=True):
        yield


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("target", FORMS)
@pytest.mark.parametrize("stream", [False, True])
def test_short_writes_change_nothing(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, threads: int, stream: bool
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:777]))
    data = iter(TABLE.to_batches(max_chunksize=500)) if stream else TABLE
    tfr.write_tfrecord(
        data, tmp_path / "x" / target if "@" in target else tmp_path / target, threads=threads, **FORMS[target]
    )
    report = tfr.verify(tmp_path / "x" if "@" in target else tmp_path / target)
    assert (report.ok, report.records) == (True, len(TABLE))


class FailingCall:
    """`os.write` or `os.fsync` with an error in the nth call for a file of records; `name` is that of the file."""

    def __init__(self, call: str, n: int, number: int) -> None:
        self.name: str | None = None
        self._real, self._left, self._number = getattr(os, call), n, number

    def __call__(self, fd: int, *data: Any) -> Any:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
        if name.endswith(".tmp") and "_MANIFEST" not in name:
            self._left -= 1
            if self._left < 0 and self.name is None:
                self.name = name
                raise OSError(self._number, os.strerror(self._number))
        return self._real(fd, *data)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("target", FORMS)
@pytest.mark.parametrize(("call", "number"), [("write", errno.ENOSPC), ("write", errno.EIO), ("fsync", errno.EIO)])
def test_an_error_of_the_nth_call_leaves_nothing_and_names_the_file(
    native_engine: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    threads: int,
    call: str,
    number: int,
) -> None:
    for n in range(0, 60, 5):
        failing = FailingCall(call, n, number)
        folder = tmp_path / f"{n}"
        folder.mkdir()
        monkeypatch.setattr(os, call, failing)
        try:
            tfr.write_tfrecord(TABLE, folder / target, threads=threads, **FORMS[target])
        except OSError as error:
            caught = error
        else:
            assert failing.name is None
            return
        finally:
            monkeypatch.undo()
        assert caught.errno == number
        named = os.path.basename(os.fspath(caught.filename))
        if "@" in target:  # .<id>-00001.staged.<random>.tmp is the shard a-00001
            assert failing.name is not None
            assert re.search(r"-(\d{5})", named).group() == re.search(r"-(\d{5})", failing.name).group()
        else:
            assert named == target
        assert os.listdir(folder) == []
    pytest.fail("the write made more calls than were tested")
