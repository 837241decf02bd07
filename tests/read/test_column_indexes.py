"""Column indexes that writers make, and that datasets keep; that answers stay the same is in `tests/laws`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from limited import set_limits
from reading_modes import matching_records_only
from servers import Bucket
from tfrecord_io.read.index import column_index
from tfrecord_io.store import Publication, clean

TABLE = pa.table({"n": range(40), "word": ["a", "b"] * 20, "list": [[1, 2]] * 40})


@pytest.fixture(autouse=True)
def no_file_is_too_small() -> Iterator[None]:
    with matching_records_only(), pytest.MonkeyPatch.context() as patch:
        set_limits(patch, decoded_file_bytes=0)
        yield


def ways_of_reading(path: Any, **options: Any) -> dict[str, int]:
    explanation = tfr.dataset(path, **options).select(["n"]).explain()
    return Counter(file.read for file in explanation.files)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "used"),
        ({"on_error": "skip"}, "not searched: damage is to be left out, wherever it is"),
        ({"on_error": "skip", "record_type": "example"}, "not searched: damage is to be left out, wherever it is"),
        ({"record_type": "example"}, "not searched: no filter is given, and an index does not stand for such columns"),
    ],
)
def test_why_an_index_is_not_searched(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "a.tfrecord", write_index=["n"])
    assert tfr.dataset(tmp_path / "a.tfrecord", **options).select(["n"]).explain().index == text


@pytest.mark.parametrize("path", ["a.tfrecord", "d/", "train@3", "train.tfrecord@2"])
def test_what_was_just_written_is_read_from_its_index(tmp_path: Path, path: str) -> None:
    for number in range(2):
        report = tfr.write_tfrecord(TABLE, f"{tmp_path}/{path}", write_index=["n"], mode="overwrite")
        assert ways_of_reading(f"{tmp_path}/{path}") == {"index": len(report.files)}, number


@pytest.mark.parametrize("path", ["d/", "train@*"])
def test_a_dataset_keeps_the_index_of_its_last_shard(tmp_path: Path, path: str) -> None:
    target = f"{tmp_path}/{path}"
    tfr.write_tfrecord(TABLE, target, mode="append", write_index=["n"])
    tfr.write_tfrecord(TABLE, target, mode="append")
    assert ways_of_reading(target) == {"index": 2}
    tfr.write_tfrecord(TABLE.append_column("more", [[0.5] * 40]), target, mode="append", evolve=True)
    assert ways_of_reading(target) == {"index": 3}
    tfr.write_tfrecord(TABLE, target, mode="append", write_index="*scalars")
    assert ways_of_reading(target) == {"index": 4}
    assert len(tfr.compact(target).files) == 1
    assert ways_of_reading(target) == {"index": 1}
    tfr.write_tfrecord(TABLE, target, mode="overwrite", shards=2)
    assert ways_of_reading(target) == {"whole": 2}
    assert not list(tmp_path.rglob("*.column_index"))


def test_a_dataset_beside_another_one_keeps_its_index(tmp_path: Path) -> None:
    """The directory does not say which of them is meant."""
    tfr.write_tfrecord(TABLE, f"{tmp_path}/d/", mode="append", write_index=["n"])
    tfr.write_tfrecord(TABLE, f"{tmp_path}/d/b@1", mode="append")
    for keywords in ({}, {"write_index": ["n"]}):
        tfr.write_tfrecord(TABLE, f"{tmp_path}/d/", mode="append", **keywords)
    assert ways_of_reading(f"{tmp_path}/d/part") == {"index": 3}
    assert ways_of_reading(f"{tmp_path}/d/b") == {"whole": 1}


def test_a_compaction_beside_which_another_dataset_is_begun_keeps_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        tfr.write_tfrecord(TABLE, f"{tmp_path}/d/", mode="append", write_index=["n"])
    publish = Publication.publish

    def publish_beside(self: Any, *arguments: Any) -> Any:
        monkeypatch.undo()
        tfr.write_tfrecord(TABLE, f"{tmp_path}/d/b@1", mode="append")
        return publish(self, *arguments)

    monkeypatch.setattr(Publication, "publish", publish_beside)
    tfr.compact(f"{tmp_path}/d/")
    assert ways_of_reading(f"{tmp_path}/d/part") == {"index": 1}


def test_folders_keep_their_index(tmp_path: Path) -> None:
    options: dict[str, Any] = {"partition_by": "word"}
    tfr.write_tfrecord(TABLE, tmp_path / "d", write_index=["n"], **options)
    for mode in ("append", "overwrite_partitions"):
        report = tfr.write_tfrecord(TABLE, tmp_path / "d", mode=mode, **options)
        assert ways_of_reading(tmp_path / "d") == {"index": 4 if mode == "append" else len(report.files)}


@pytest.mark.parametrize("store", ["s3", "google"])
def test_in_a_bucket(store: str, request: pytest.FixtureRequest) -> None:
    bucket: Bucket = request.getfixturevalue(store)
    options: dict[str, Any] = {"storage_options": bucket.storage_options}
    tfr.write_tfrecord(TABLE, bucket.url("d/"), mode="append", write_index="*scalars", **options)
    tfr.write_tfrecord(TABLE, bucket.url("d/"), mode="append", **options)
    tfr.write_tfrecord(TABLE, bucket.url("a.tfrecord"), write_index=["n"], **options)
    for path, files in (("d/", 2), ("a.tfrecord", 1)):
        assert ways_of_reading(bucket.url(path), **options) == {"index": files}
    assert tfr.read_table(bucket.url("d/"), columns=["n"], **options)["n"].to_pylist() == [*range(40)] * 2


@pytest.mark.parametrize("path", ["a.tfrecord", "d/"])
def test_a_writer_that_ends_before_its_index_leaves_none(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = f"{tmp_path}/{path}"
    tfr.write_tfrecord(TABLE, target, write_index=["n"])
    with monkeypatch.context() as patch:
        patch.setattr("tfrecord_io.read.build_column_index.write_columns", lambda *args, **keywords: 1 / 0)
        with pytest.raises(ZeroDivisionError) as caught:
            tfr.write_tfrecord(TABLE.slice(1), target, mode="overwrite", write_index=["n"])
    assert "published nevertheless" in caught.value.__notes__[0]
    assert not list(tmp_path.rglob("*.column_index"))
    assert tfr.read_table(target, columns=["n"])["n"].to_pylist() == list(range(1, 40))


@pytest.mark.parametrize("other", ["compact", "delete"])
def test_rows_are_appended_beside_a_writer_that_replaces_them_before_they_are_indexed(
    tmp_path: Path, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "d", mode="append", write_index=["n"])
    real = column_index.write_columns

    def meet(*arguments: Any, **keywords: Any) -> Any:
        monkeypatch.setattr("tfrecord_io.read.build_column_index.write_columns", real)
        if other == "compact":
            tfr.compact(tmp_path / "d")
        else:
            tfr.delete(tmp_path / "d", filters=[("n", "==", 3)])
        return real(*arguments, **keywords)

    monkeypatch.setattr("tfrecord_io.read.build_column_index.write_columns", meet)
    tfr.write_tfrecord(TABLE, tmp_path / "d", mode="append")
    assert tfr.read_table(tmp_path / "d").num_rows == (80 if other == "compact" else 78)
    assert clean(tmp_path / "d", older_than=timedelta(-1)) == []


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (["nope"], tfr.errors.FeatureNotFoundError),
        (["list"], tfr.errors.SchemaError),
        (["l*"], tfr.errors.SchemaError),
        ([], ValueError),
        ([1], TypeError),
    ],
)
def test_what_cannot_be_indexed_is_refused_before_anything_is_written(
    tmp_path: Path, columns: Any, error: type[Exception]
) -> None:
    for target in (tmp_path / "a.tfrecord", f"{tmp_path}/d@2"):
        with pytest.raises(error):
            tfr.write_tfrecord(TABLE, target, write_index=columns)
    tfr.write_tfrecord(TABLE, tmp_path / "source.tfrecord")
    with pytest.raises(error):
        tfr.merge(tmp_path / "source.tfrecord", tmp_path / "merged.tfrecord", write_index=columns)
    assert os.listdir(tmp_path) == ["source.tfrecord"]


def test_compressed_files_and_payloads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="compressed"):
        tfr.write_tfrecord(TABLE, tmp_path / "a.tfrecord.gz", write_index=["n"])
    with pytest.raises(ValueError, match="for Examples"):
        tfr.write_tfrecord({"x": [b"a"]}, tmp_path / "a.tfrecord", record_type="bytes", write_index=["x"])
    assert os.listdir(tmp_path) == []
