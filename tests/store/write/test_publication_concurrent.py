"""Two overwriters at once: the last one wins whole, and an error of the other is true and destroys nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from rounds import each_step
from servers import Bucket
from tfrecord_io.store import operating_systems
from tfrecord_io.store.filesystem.interface import LocalFileSystem
from tfrecord_io.store.filesystem.remote import FsspecFileSystem

TRUE = "another writer has written this dataset at the same time"


@pytest.fixture(params=["disk", "s3", "azure"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    if request.param == "disk":
        return str(tmp_path), {}
    bucket: Bucket = request.getfixturevalue(request.param)
    return bucket.url("x"), {"storage_options": bucket.storage_options}


def table(value: int, shards: int) -> pa.Table:
    return pa.table({"n": [value] * shards, "p": [value] * shards})


def act_after(patch: pytest.MonkeyPatch, at: int, act: Callable[[], None]) -> list[int]:
    """Call `act` once, after the request `at` by which the filesystem is asked what there is, or the next one.

    Not while the directory is locked: another writer would wait. Returns the number of requests, and of calls.
    """
    asked, locked = [0, 0], [0]

    def interposed(real: Any) -> Any:
        def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
            answer = real(self, *arguments, **keywords)
            asked[0] += 1
            if asked[0] > at and not locked[0] and not asked[1]:
                asked[1] = 1
                act()
            return answer

        return method

    @contextmanager
    def lock(self: Any, path: str) -> Iterator[bool]:
        with real_lock(self, path) as is_locked:
            locked[0] += 1
            try:
                yield is_locked
            finally:
                locked[0] -= 1

    real_lock = type(operating_systems.current).lock_directory
    patch.setattr(type(operating_systems.current), "lock_directory", lock)
    for kind in (LocalFileSystem, FsspecFileSystem):
        for name in ("listing", "entry"):
            patch.setattr(kind, name, interposed(getattr(kind, name)))
    return asked


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "shards"), [("d/", 5), ("d/train@{}", 1)], ids=["directory", "named"])
def test_two_overwriters(store: tuple[str, dict[str, Any]], name: str, shards: int) -> None:
    """The second one publishes as a whole after any step of the first, which has three shards."""
    root, storage = store
    for at in each_step(shards, most=40):
        folder = f"{root}/{at}"
        path = f"{folder}/{name}"
        kind: dict[str, Any] = {} if "@" in name else {"shards": 3}
        tfr.write_tfrecord(table(1, 2), path.format(2), **({**kind, "shards": 2} if kind else {}), **storage)

        def overwrite(path: str = path, kind: Any = kind) -> None:
            own = {"shards": shards} if kind else {}
            tfr.write_tfrecord(table(2, shards), path.format(shards), mode="overwrite", **own, **storage)

        with pytest.MonkeyPatch.context() as patch:
            asked = act_after(patch, at, overwrite)
            error: OSError | None = None
            try:
                tfr.write_tfrecord(table(3, 3), path.format(3), mode="overwrite", threads=1, **kind, **storage)
            except OSError as raised:
                error = raised
        assert error is None or TRUE in str(error), at
        assert error is None or asked[1]
        values = read_by(tfr.read_table, f"{folder}/d", **storage)["n"].to_pylist()
        assert set(values) == ({3} if error is None else {2}), at
        assert len(values) == (3 if set(values) == {3} else shards), at
        assert read_by(tfr.verify, f"{folder}/d", **storage).ok
        if not asked[1]:
            assert at > 2
            return


def test_folders_that_appear_meanwhile_are_not_to_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the error advises leaves the data of the other writer."""
    path = tmp_path / "d"
    tfr.write_tfrecord(table(1, 2), f"{path}/", shards=2)

    def overwrite() -> None:
        tfr.write_tfrecord(table(2, 2), path, partition_by="p", mode="overwrite")

    with monkeypatch.context() as patch:
        act_after(patch, 3, overwrite)
        with pytest.raises(FileExistsError, match="the dataset is partitioned by") as caught:
            tfr.write_tfrecord(table(3, 2), f"{path}/", shards=2, mode="overwrite")
    assert "delete" not in str(caught.value)
    assert tfr.read_table(path)["n"].to_pylist() == [2, 2]
    tfr.write_tfrecord(table(3, 2), path, partition_by="p", mode="overwrite")
    assert tfr.read_table(path)["n"].to_pylist() == [3, 3]
