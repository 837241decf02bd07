"""``filters=`` with column indexes: the rows, values and types that filtering after reading leaves."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tfrecord_io as tfr
from arrow_tables import assert_equal
from reading import read_by
from reading_modes import blocks_of, matching_records_only
from servers import Bucket
from tfrecord_io.read.index.fingerprint import Fingerprint

f = pc.field


@pytest.fixture(autouse=True, scope="module")
def only_matching_records() -> Iterator[list[int]]:
    """Yields the number of sources of each read by an index."""
    with matching_records_only() as used:
        yield used


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "a.tfrecord"
    rows = {"id": np.arange(100), "label": np.arange(100) % 10, "image": [bytes([i]) * 400 for i in range(100)]}
    tfr.write_tfrecord(rows, found)
    tfr.build_index(found, columns=["label"])
    return found


def overwrite_keeping_time(path: Path, content: bytes) -> None:
    """Change a file, but not its modification time, which its column index states."""
    modified = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(modified, modified))


def test_other_records_are_not_read(path: Path) -> None:
    for condition, ids in (
        (f("label") == 3, range(3, 100, 10)),
        ((f("label") == 3) & (f("id") > 50), range(53, 100, 10)),
    ):
        with tfr.open_reader(path, filters=condition) as reader:
            assert reader.read_all()["id"].to_pylist() == list(ids)
            assert reader.report.records == 11  # the first one has the schema
        with tfr.open_reader(path, filters=condition, schema={"id": "int64", "label": "int64"}) as reader:
            assert reader.read_all()["id"].to_pylist() == list(ids)
            assert reader.report.records == 10
    content = bytearray(path.read_bytes())
    content[-20] ^= 1  # of the last record
    overwrite_keeping_time(path, content)
    assert tfr.read_table(path, filters=f("label") == 3).num_rows == 10
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfr.errors.DamagedDataWarning)
        assert tfr.read_table(path, filters=f("label") == 9, on_error="skip")["id"].to_pylist() == list(
            range(9, 99, 10)
        )


def test_errors_name_the_record_in_the_file(path: Path) -> None:
    with tfr.open_random(path) as records:
        offset = records._files.offset(0, 13)
    content = bytearray(path.read_bytes())
    content[offset + 100] ^= 1
    overwrite_keeping_time(path, content)
    with blocks_of(500), pytest.raises(tfr.errors.CorruptRecordError, match=f"record 13 at byte {offset}") as caught:
        tfr.read_table(path, filters=f("label") == 3)
    assert (caught.value.record, caught.value.offset) == (13, offset)
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        assert tfr.read_table(path, filters=f("label") == 3, on_error="stop")["id"].to_pylist() == [3]
    with pytest.raises(tfr.errors.FeatureTypeError, match="record 3"):
        tfr.read_table(path, filters=f("label") == 3, schema={"label": "int64", "image": "float32"})


def test_errors_of_conversions_name_the_record_in_the_file(tmp_path: Path, only_matching_records: list[int]) -> None:
    path = tmp_path / "a.tfrecord"
    names = [f"{n}.txt" if n != 15 else "../a" for n in range(20)]
    rows = {"x": list(range(20)), "y": [[1]] * 17 + [[1, 2]] * 3, "image": [b"-"] * 20, "name": names}
    tfr.write_tfrecord(rows, path)
    tfr.build_index(path, columns=["x"])
    condition, schema = (f("x") == 0) | (f("x") > 14), {"x": "int64", "y": "list<int64>"}
    del only_matching_records[:]
    source = tfr.dataset(path, batch_size=1, schema=schema)
    with pytest.raises(tfr.errors.EncodeError, match="have the shape") as caught:
        tfr.formats.write_npy(tfr.dataset(source, filters=condition), tmp_path / "y.npy", "y")
    assert caught.value.record == 17
    with pytest.raises(tfr.errors.EncodeError, match="name") as caught:
        tfr.formats.write_image_folder(
            tfr.dataset(path, filters=condition), tmp_path / "out", filename="name", columns=[]
        )
    assert (caught.value.path, caught.value.record) == (str(path), 15)
    assert len(only_matching_records) == 2


def test_records_that_moved(tmp_path: Path) -> None:
    """The file has the size that it had, and the same first and last record."""
    path, other = tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"
    names = ["-", *(chr(97 + i) * (10 + i) for i in range(20)), "-"]
    tfr.write_tfrecord({"name": names, "n": list(range(22))}, path, embed_schema=False)
    tfr.build_index(path, columns=["name"])
    tfr.write_tfrecord({"name": ["-", *names[1:-1][::-1], "-"], "n": list(range(22))}, other, embed_schema=False)
    overwrite_keeping_time(path, other.read_bytes())
    schema = {"name": "string", "n": "int64"}
    with pytest.warns(tfr.errors.StaleIndexWarning, match="the checksums of its records are others"):
        table = tfr.read_table(path, schema=schema, filters=f("name") == names[3])
    assert table["n"].to_pylist() == [18]
    with pytest.MonkeyPatch.context() as patch:  # as of a large file, of which not all records are compared
        patch.setattr(Fingerprint, "mismatch", lambda *arguments, **_: "")
        with pytest.raises(tfr.errors.CorruptRecordError, match=r"no record of \d+ bytes at byte"):
            tfr.read_table(path, schema=schema, filters=f("name") == names[3])


def test_files_with_other_schemas(tmp_path: Path) -> None:
    """A later file has more columns, in its embedded schema or without one."""
    for at, (rows, embed) in enumerate(
        [({"x": [1, 2]}, True), ({"x": [3, 1], "y": [0.5, 1.5]}, True), ({"x": [1, 4], "z": ["a", "b"]}, False)]
    ):
        for folder in ("two", "three"):
            (tmp_path / folder).mkdir(exist_ok=True)
            if at < 2 or folder == "three":
                tfr.write_tfrecord(rows, tmp_path / folder / f"{at}.tfrecord", embed_schema=embed, float64="round")
    for folder in ("two", "three"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tfr.build_index(tmp_path / folder, columns=["x"])
            whole = tfr.read_table(tmp_path / folder)
            for value in range(6):
                assert_equal(tfr.read_table(tmp_path / folder, filters=f("x") == value), whole.filter(f("x") == value))


def test_categories_are_those_of_all_records(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": [1, 2, 3] * 9, "team": ["red", "blue", "green"] * 9}, path, embed_schema=False)
    tfr.build_index(path, columns=["n"])
    schema = {"n": "int64", "team": pa.dictionary(pa.int32(), pa.string())}
    expected = tfr.read_table(path, schema=schema).filter(f("n") == 2)
    got = tfr.read_table(path, schema=schema, filters=f("n") == 2)
    assert got["team"].chunk(0).dictionary == expected["team"].chunk(0).dictionary


def test_partition_columns_and_paths(tmp_path: Path) -> None:
    for label in (1, 2, 3):
        (tmp_path / f"label={label}").mkdir()
        tfr.write_tfrecord({"n": [1, 2, 3] * 9}, tmp_path / f"label={label}" / "a.tfrecord")
    tfr.build_index(tmp_path, columns=["n"])
    whole = tfr.read_table(tfr.dataset(tmp_path, include_file_paths="path"))
    for condition in (
        (f("label") == 2) & (f("n") == 1),
        (f("label") >= f("n")) & (f("n") == 3),
        (f("path") == str(tmp_path / "label=3" / "a.tfrecord")) & (f("n") == 2),
    ):
        assert_equal(
            tfr.read_table(tfr.dataset(tmp_path, include_file_paths="path"), filters=condition), whole.filter(condition)
        )


@pytest.mark.parametrize("store", ["s3", "google", "azure"])
def test_in_a_bucket(store: str, only_matching_records: list[int], request: pytest.FixtureRequest) -> None:
    bucket: Bucket = request.getfixturevalue(store)
    keywords: dict[str, Any] = {"storage_options": bucket.storage_options}
    rows = {
        "id": np.arange(300),
        "label": np.arange(300) % 50,
        "image": [bytes([i % 256]) * 10_000 for i in range(300)],
    }
    tfr.write_tfrecord(rows, bucket.url("a@3"), **keywords)
    read_by(tfr.build_index, bucket.url("a@3"), columns=["label"], **keywords)
    with read_by(tfr.open_reader, bucket.url("a@3"), filters=f("label") == 7, **keywords) as reader:
        assert reader.read_all()["id"].to_pylist() == list(range(7, 300, 50))
        assert reader.report.bytes < 100_000
    dataset = tfr.dataset(bucket.url("a@3"), **keywords).filter(f("label") == 7)
    assert dataset.count_rows() == 6
    del only_matching_records[:]
    for pieces in (dataset.pieces(7), pickle.loads(pickle.dumps(dataset.pieces(7)))):
        assert [n for piece in pieces for n in piece.read()["id"].to_pylist()] == list(range(7, 300, 50))
    assert len(only_matching_records) == 14
    batches = dataset.iter_arrays(batch_size=4, worker=(0, 2))
    assert [n for batch in batches for n in batch["id"].tolist()] == [7, 57, 207, 257]
    kept = pickle.dumps(dataset.pieces(7))
    tfr.write_tfrecord({**rows, "id": np.arange(300)[::-1]}, bucket.url("a@3"), mode="overwrite", **keywords)
    for piece in pickle.loads(kept):
        with pytest.raises(tfr.errors.ReplacedError):
            piece.read()
