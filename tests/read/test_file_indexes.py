"""Writing and checking the indexes of existing files."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

import tfrecord_io as tfr
from records import framed, written
from tfrecord_io.read.file_indexes import check_indexes, write_indexes


def test_the_index_of_golden_files(engine: str, data: Path, tmp_path: Path) -> None:
    for name in ("tutorial", "ragged", "empty"):
        path = tmp_path / f"{name}.tfrecord"
        path.write_bytes((data / path.name).read_bytes())
        (index,) = write_indexes(path)
        assert index.records == tfr.count(path, check_crc=True)
        assert check_indexes(path) == [index]


def test_several_files(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"x": [1, 2, 3]}, tmp_path / "b.tfrecord", write_index=True)
    assert [(index.records, index.error and type(index.error)) for index in check_indexes(tmp_path)] == [
        (0, tfr.errors.CorruptRecordError),
        (3, None),
    ]
    assert [index.index for index in write_indexes(tmp_path)] == [f"{tmp_path}/{name}.tfrecord.index" for name in "ab"]
    assert [index.records for index in check_indexes(tmp_path)] == [2, 3]


def test_compressed_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(framed(b"one")))
    for call in (write_indexes, check_indexes):
        with pytest.raises(ValueError, match=r"compressed \(gzip\): an index needs a plain file"):
            call(path)


def test_no_index_is_written_for_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(b"one", b"two")[:-1])
    with pytest.raises(tfr.errors.TruncatedRecordError, match="record 1 at byte 19"):
        write_indexes(path)
    assert os.listdir(tmp_path) == ["a.tfrecord"]


@pytest.mark.fault(56)
def test_check_looks_at_every_header(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that fits at both ends, but not in between; as of a large file, of which not all are compared first."""
    monkeypatch.setattr("tfrecord_io.read.index.find_index.SMALL_BYTES", 0)
    ends = "tfrecord_io.read.index.fingerprint.some_records"
    monkeypatch.setattr(ends, lambda count, most: np.array([0, count - 1]))
    path = written(tmp_path / "a.tfrecord", [b"x" * 10] * 5)
    for text in ("0 26\n26 52\n78 26\n104 26\n", "0 26\n26 30\n56 22\n78 26\n104 26\n"):
        (tmp_path / "a.tfrecord.index").write_text(text)
        (index,) = check_indexes(path)
        assert "record 1 ends at byte" in str(index.error)
    (tmp_path / "a.tfrecord.index").write_text("0 26\n26 16\n42 16\n58 20\n78 26\n104 26\n")
    assert "record 1 ends at byte 42 in the index, at byte 52 in the file" in str(check_indexes(path)[0].error)


def test_to_dict(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [b"one"])
    assert check_indexes(path)[0].to_dict() == {
        "path": str(path),
        "index": None,
        "records": 0,
        "bytes": 19,
        "error": {"class": "CorruptRecordError", "message": f"{path}: the file has no index; write one with tfr index"},
    }


def test_the_index_of_a_private_file_is_private(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [b"one"])
    path.chmod(0o600)
    (index,) = write_indexes(path)
    assert index.index is not None
    assert os.stat(index.index).st_mode & 0o777 == 0o600


def test_a_column_index_of_each_file(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"x": [3], "y": [0.5]}, tmp_path / "b.tfrecord", write_index=True)
    for _ in range(2):  # an older index is replaced, and one that does not match is not looked at
        built = tfr.build_index(tmp_path, columns=["x"])
        assert [index.index for index in built] == [f"{tmp_path}/{name}.tfrecord.column_index" for name in "ab"]
        assert [index.records for index in built] == [2, 1]
        Path(built[0].index or "").write_bytes(b"other")
    assert tfr.read_table(tmp_path)["x"].to_pylist() == [1, 2, 3]  # the directory has no other data
    assert tfr.count(tmp_path / "b.tfrecord") == 1


def test_a_column_index_needs_names_of_columns(data: Path) -> None:
    with pytest.raises(TypeError, match="columns=None: expected names"):
        tfr.build_index(data / "tutorial.tfrecord", columns=None)  # type: ignore[arg-type]


def test_compressed_and_damaged_files_have_no_column_index(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "b.tfrecord.gz")
    with pytest.raises(ValueError, match=r"b.tfrecord.gz is compressed \(gzip\)"):
        tfr.build_index(tmp_path, columns=["x"])
    path = tmp_path / "a.tfrecord"
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    with pytest.raises(tfr.errors.CorruptRecordError, match="record 1"):
        tfr.build_index(path, columns=["x"])
    assert sorted(os.listdir(tmp_path)) == ["a.tfrecord", "b.tfrecord.gz"]


def test_a_writer_removes_the_column_index(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    for target in (path, f"{tmp_path}/b@2"):
        tfr.write_tfrecord({"x": [1, 2]}, target)
        tfr.build_index(target, columns=["x"])
        assert list(tmp_path.glob("*.column_index"))
        tfr.write_tfrecord({"x": [1, 2]}, target, mode="overwrite")
        assert not list(tmp_path.glob("*.column_index"))
