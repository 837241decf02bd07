"""Indexes are written with their files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.tools.index_files import check_indexes


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
    with pytest.raises(ValueError, match="write_index: a compressed file"):
        tfr.write_tfrecord({"x": [1]}, tmp_path / path, write_index=True)
    assert names(tmp_path) == []


def test_file_objects_are_refused() -> None:
    with pytest.raises(ValueError, match="write_index: a file object can have no index file"):
        tfr.write_tfrecord({"x": [1]}, io.BytesIO(), write_index=True)


def test_failure_to_write_the_index_keeps_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord.index").mkdir()
    with pytest.raises(IsADirectoryError):
        tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord", write_index=True)
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
    assert tfr.count_records("memory://indexed/*.tfrecord") == 4
    with tfr.open_random("memory://indexed/*.tfrecord") as records:
        assert records[[3, 0]]["x"].to_pylist() == [2, 1]
    memory.rm("/indexed", recursive=True)
