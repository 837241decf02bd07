"""Indexes are written with their files."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from interposed import on_commit
from tfrecord_io.read.file_indexes import check_indexes


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_written_index_equals_the_scanned_one(engine: str, tmp_path: Path, rows: int) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": np.arange(rows) ** 5}, path, write_index=True)
    (found,) = check_indexes(path)
    assert (found.error, found.records, found.bytes) == (None, rows, path.stat().st_size)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_write_it_in_order(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"text": ["x" * (n % 1000) for n in range(100_000)]}, path, write_index=True, threads=threads)
    (found,) = check_indexes(path)
    assert (found.error, found.records) == (None, 100_000)


def test_several_writes_and_payloads(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfr.open_writer(path, record_type="bytes", write_index=True) as writer:
        for size in (0, 5, 1 << 21):
            writer.write({"record": pa.array([bytes(size)] * 2, pa.binary())})
    (found,) = check_indexes(path)
    assert (found.error, found.records) == (None, 6)


def test_no_index_without_the_keyword(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    assert names(tmp_path) == ["a.tfrecord"]


def test_discarded_writer_leaves_no_index(tmp_path: Path) -> None:
    writer = tfr.open_writer(tmp_path / "a.tfrecord", write_index=True)
    writer.write({"x": [1]})
    writer.discard()
    assert names(tmp_path) == []


@pytest.mark.parametrize("path", ["a.tfrecord.gz", "a.tfrecord.zlib"])
def test_compressed_files_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match=r"a compressed file .* cannot be indexed"):
        tfr.write_tfrecord({"x": [1]}, tmp_path / path, write_index=True)
    assert names(tmp_path) == []


def test_file_objects_are_refused() -> None:
    with pytest.raises(ValueError, match="write_index=True: a file object can have no index file"):
        tfr.write_tfrecord({"x": [1]}, io.BytesIO(), write_index=True)


def test_failure_to_write_the_index_publishes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord.index").mkdir()
    with pytest.raises(IsADirectoryError):
        tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord", write_index=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tfrecord.index"]


def test_failure_to_publish_the_index_says_that_the_file_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def replace(source: str, target: str) -> None:
        if str(target).endswith(".index"):
            raise OSError(errno.EIO, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match=r"Input/output error; the records are published nevertheless; tfr\.build_index"):
        tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord", write_index=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tfrecord"]
    assert tfr.read_table(tmp_path / "a.tfrecord").num_rows == 1


def test_on_any_filesystem() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    tfr.write_tfrecord({"x": [1, 2]}, "memory://indexed/a.tfrecord", write_index=True)
    tfr.write_tfrecord({"x": [1, 2]}, "/indexed/b.tfrecord", write_index=True, filesystem=memory)
    assert sorted(name.rpartition("/")[2] for name in memory.ls("/indexed", detail=False)) == [
        "a.tfrecord",
        "a.tfrecord.index",
        "b.tfrecord",
        "b.tfrecord.index",
    ]
    assert tfr.count("memory://indexed/*.tfrecord") == 4
    with tfr.open_random("memory://indexed/*.tfrecord") as records:
        assert records[[3, 0]]["x"].to_pylist() == [2, 1]
    memory.rm("/indexed", recursive=True)


@pytest.mark.parametrize("kind", ["table", "records", "remote"])
@pytest.mark.parametrize("write_index", [False, True])
def test_an_overwritten_file_does_not_keep_the_index_of_the_old_one(
    tmp_path: Path, kind: str, write_index: bool
) -> None:
    import fsspec

    path = f"memory://{tmp_path.name}/a.tfrecord" if kind == "remote" else f"{tmp_path}/a.tfrecord"
    tfr.write_tfrecord({"x": range(10)}, path, write_index=True)
    if kind == "records":
        with tfr.RecordWriter(path) as writer:
            writer.write(b"")
    else:
        tfr.write_tfrecord({"x": [1]}, path, write_index=write_index)
    with fsspec.open_files(f"{path}*") as files:
        assert len(files) == 1 + (write_index and kind != "records")
    assert tfr.count(path) == 1
    with tfr.open_random(tfr.dataset(path, record_type="bytes")) as records:
        assert len(records) == 1


@pytest.mark.fault(67)
@pytest.mark.parametrize("at", ["before the file", "between file and index"])
def test_a_writer_killed_between_two_renames_leaves_no_index_of_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": range(10)}, path, write_index=True)
    left = 0 if at == "before the file" else 1

    def kill(_: Any, commit: Any) -> None:
        nonlocal left
        if left == 0:
            raise SystemExit
        left -= 1
        commit()

    on_commit(monkeypatch, kill)
    with pytest.raises(SystemExit):
        tfr.write_tfrecord({"x": [1]}, path, write_index=True)
    monkeypatch.undo()
    assert names(tmp_path) == ["a.tfrecord"]
    assert tfr.count(path) == (10 if at == "before the file" else 1)


def test_an_index_that_cannot_be_removed_does_not_stop_the_write(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": range(10)}, path)
    (tmp_path / "a.tfrecord.index").mkdir()
    tfr.write_tfrecord({"x": [1]}, path)
    assert tfr.read_table(path).num_rows == 1


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("target", ["a.tfrecord", "a@3"])
@pytest.mark.parametrize("old_indexes", [True, False])
def test_indexes_of_private_files_stay_private(
    tmp_path: Path, target: str, old_indexes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tfr.write_tfrecord({"x": range(9)}, tmp_path / target, write_index=True)
    for path in tmp_path.iterdir():
        path.chmod(0o600)
    if not old_indexes:
        for path in tmp_path.glob("*.index"):
            path.unlink()
    created = []
    opened = os.open

    def recorded(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        if flags & os.O_CREAT:
            created.append(mode)
        return opened(path, flags, mode, **options)

    monkeypatch.setattr(os, "open", recorded)
    tfr.write_tfrecord({"x": range(9)}, tmp_path / target, write_index=True, mode="overwrite")
    assert modes(tmp_path) == {0o600}
    assert set(created) == {0o600}  # of the temporary files


def test_an_index_keeps_its_mode(tmp_path: Path) -> None:
    path, index = tmp_path / "a.tfrecord", tmp_path / "a.tfrecord.index"
    tfr.write_tfrecord({"x": [1]}, path, write_index=True)
    index.chmod(0o640)
    tfr.write_tfrecord({"x": [2]}, path, write_index=True, mode="overwrite")
    assert stat.S_IMODE(index.stat().st_mode) == 0o640


def test_a_new_file_does_not_get_the_index_of_a_deleted_one(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [1, 2]}, path, write_index=True)
    path.unlink()
    tfr.write_tfrecord({"x": [1]}, path)
    assert os.listdir(tmp_path) == ["a.tfrecord"]
