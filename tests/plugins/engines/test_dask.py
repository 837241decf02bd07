"""Dask reads TFRecord files in pieces."""

from __future__ import annotations

import itertools
import pickle
import sys
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading_modes import opened_scans
from records import example, int64s, written
from tfrecord_io.kit import Scan
from tfrecord_io.testing.adapter_suite import AdapterSuite, columns


@pytest.fixture(autouse=True)
def scheduler() -> Any:
    """Everything in the calling thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


class TestDask(AdapterSuite):
    def open(self, path: Any, **keywords: Any) -> dd.DataFrame:
        return tfr.dataset(path, **keywords).to_dask(npartitions=3)

    def rows(self, opened: dd.DataFrame, names: list[str] | None = None) -> dict[str, list[Any]]:
        frame = (opened if names is None else opened[names]).compute()
        values = {name: frame[name].array.__arrow_array__().to_pylist() for name in frame.columns}
        if "images" in values:
            values["images"] = np.reshape(values["images"], (-1, 2, 2)).tolist()
        return values

    def above(self, opened: dd.DataFrame, least: int) -> dd.DataFrame:
        return opened[opened["ints"] > least]

    def first(self, opened: dd.DataFrame, n: int) -> dd.DataFrame:
        return opened.head(n, npartitions=-1, compute=False)

    def count(self, opened: dd.DataFrame) -> int:
        return len(opened)

    def names(self, opened: dd.DataFrame) -> list[str]:
        return list(opened.columns)

    def test_the_frame_is_known_before_anything_is_read(self, path: Path, table: pa.Table) -> None:
        opened = self.open(path)
        for file in path.parent.glob("*"):
            file.write_bytes(b"damaged")
        assert opened.dtypes["ints"] == "int16[pyarrow]"
        assert [dtype.pyarrow_dtype for dtype in opened.dtypes] == table.schema.types

    def test_partitions_have_the_frame_that_was_announced(self, path: Path) -> None:
        opened = self.open(path)
        for at in range(opened.npartitions):
            frame = opened.partitions[at].compute()
            assert list(frame.dtypes) == list(opened.dtypes)

    def test_sizes_of_partitions(self, path: Path) -> None:
        size = tfr.dataset(path).bytes
        assert tfr.dataset(path).to_dask().npartitions == 1
        assert tfr.dataset(path).to_dask(max_bytes=size // 3).npartitions >= 3
        assert tfr.dataset(path).to_dask(npartitions=2).npartitions == 2
        with pytest.raises(ValueError, match="cannot be split"):
            tfr.dataset(path, limit=3).to_dask()
        for keyword, value in itertools.product(("npartitions", "max_bytes"), (0, -5, "x", 1.5)):
            with pytest.raises(
                (TypeError, ValueError), match=f"^{keyword}={value!r}: expected (an integer|at least 1)"
            ):
                tfr.dataset(path).to_dask(**{keyword: value})

    def test_a_part_of_a_dataset(self, path: Path) -> None:
        part = tfr.dataset(path).filter([("ints", ">", 3)]).select(["text", "int"]).to_dask(npartitions=3)
        assert self.rows(part) == {"text": ["é", "b"] * 3, "int": [4, None] * 3}

    def test_partitions_are_read_in_other_processes(self, path: Path) -> None:
        opened = self.open(path)
        with dask.config.set(scheduler="processes", num_workers=2):
            assert int(opened["ints"].sum().compute()) == 45


def test_dtypes_that_arrow_stores_as_others_are_refused(tmp_path: Path) -> None:
    tfr.write_tfrecord({"b": np.array([["a"], ["b"]]), "a": [1, 2]}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match="feature 'b': Dask has no U1; leave the column out"):
        tfr.dataset(tmp_path / "a.tfrecord").to_dask()
    assert tfr.dataset(tmp_path / "a.tfrecord", columns=["a"]).to_dask()["a"].sum().compute() == 3


# ---- writing


def test_a_shard_for_each_partition(tmp_path: Path) -> None:
    table = pa.table(columns())
    for name in "abc":
        tfr.write_tfrecord(table, tmp_path / f"{name}.tfrecord")
    frame = tfr.dataset(tmp_path / "*.tfrecord").to_dask(npartitions=3)
    report = tfr.write_tfrecord(frame, tmp_path / "out")
    assert [file.records for file in report.files] == [5, 5, 5]
    again = tfr.read_table(tmp_path / "out@3")
    assert again.schema.types == tfr.read_table(tmp_path / "*.tfrecord").schema.types
    assert repr(again.to_pylist()) == repr(tfr.read_table(tmp_path / "*.tfrecord").to_pylist())


def test_frames_of_pandas_and_their_index(tmp_path: Path) -> None:
    local = pd.DataFrame({"x": [1.5, None, 2.5], "name": ["a", None, "c"]}, index=pd.Index([10, 20, 30], name="key"))
    report = tfr.write_tfrecord(dd.from_pandas(local, npartitions=3), tmp_path / "out", float64="raw", mode="overwrite")
    assert report.index == ("key",)
    pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "out@3"), local, check_dtype=False)


@pytest.mark.parametrize("first", [0, 10])
def test_a_filter_may_leave_evenly_spaced_labels_in_some_partitions(tmp_path: Path, first: int) -> None:
    labels = None if not first else pd.Index([first + i * i for i in range(6)])
    frame = dd.from_pandas(pd.DataFrame({"x": [1, 2, 3, 4, 0, 5]}, index=labels), npartitions=2)
    chosen = frame[frame["x"] > 0]
    has_labels = not isinstance(chosen._meta.index, pd.RangeIndex)  # as it is for all frames that pandas 2 filters
    report = tfr.write_tfrecord(chosen, tmp_path / "out")
    assert report.index == (("__index_level_0__",) if has_labels else ())
    read = tfr.read_tfrecord(tmp_path / "out@*")
    assert read["x"].tolist() == [1, 2, 3, 4, 5]
    assert read.index.tolist() == (chosen.compute().index.tolist() if has_labels else [*range(5)])


@pytest.mark.parametrize("schema", [None, {"k": "int64", "v": "uint8", "w": "float64"}])
def test_integers_that_are_null_in_some_partitions(tmp_path: Path, schema: Any) -> None:
    """pandas has them as float64 there, which Dask does not announce."""
    frame = dd.from_pandas(pd.DataFrame({"k": [1, 2, 3, 4]}), npartitions=2)
    right = pd.DataFrame({"k": [1, 2, 3], "v": np.array([10, 20, 30], "uint8"), "w": [1.5, 2.0, 3.0]})
    merged = frame.merge(right, on="k", how="left")
    kinds = [part["v"].dtype.kind for part in dask.compute(*merged.to_delayed())]
    assert sorted(kinds) == ["f", "u"]
    tfr.write_tfrecord(merged, tmp_path / "out", index=False, schema=schema)
    found = tfr.read_table(tmp_path / "out")
    assert found.schema.field("v").type == pa.uint8()
    assert found.sort_by("k")["v"].to_pylist() == [10, 20, 30, None]
    halves = frame.map_partitions(lambda part: part / 4, meta=frame._meta)
    with pytest.raises(
        tfr.errors.EncodeError, match=r"'k': Dask announces int64, and a partition has float64 .*astype"
    ):
        tfr.write_tfrecord(halves, tmp_path / "halves", index=False)


def test_partitions_without_rows_get_no_shard(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [*range(100)]}, tmp_path / "in@4")
    frame = tfr.dataset(tmp_path / "in@4").to_dask(npartitions=4)
    report = tfr.write_tfrecord(frame[frame["n"] >= 60], tmp_path / "out", index=False)
    assert [file.records for file in report.files] == [15, 25]
    assert tfr.read_table(tmp_path / "out@2")["n"].to_pylist() == [*range(60, 100)]
    tfr.write_tfrecord(frame[frame["n"] > 100], tmp_path / "none", index=False)
    assert tfr.read_table(tmp_path / "none@1").schema.types == [pa.int64()]


def test_only_the_columns_that_are_written_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"a": [1, 2], "b": [3, 4]}, tmp_path / "in@2")
    frame = tfr.dataset(tmp_path / "in@2").to_dask(npartitions=2)
    opened = opened_scans(monkeypatch)
    assert tfr.write_tfrecord(frame[["b"]], tmp_path / "out").columns == ("b",)
    assert [scan.compiled.schema.names for scan in opened] == [["b"], ["b"]]


def test_an_error_of_a_partition_leaves_nothing(tmp_path: Path) -> None:
    frame = dd.from_pandas(pd.DataFrame({"x": [0.5, 0.25, 0.1, 1.0]}), npartitions=2)
    with pytest.raises(tfr.errors.EncodeError, match="x") as caught:
        tfr.write_tfrecord(frame, tmp_path / "d" / "out", float64="error")
    assert caught.value.record == 0
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="shards=3: only a writer in one process has this keyword"):
        tfr.write_tfrecord(frame, tmp_path / "out", shards=3)


def test_several_partitions_use_a_thread_each(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [*range(100)]}, tmp_path / "in@2")
    whole = Scan.of(tfr.dataset(tmp_path / "in@2"))
    assert {part.options.threads for part in whole.tasks(2, 1)} == {1}
    assert {part.options.threads for part in whole.tasks(1, 1)} == {None}
    assert {part.options.threads for part in Scan.of(tfr.dataset(tmp_path / "in@2", threads=3)).tasks(2, 1)} == {3}


def test_only_what_is_needed_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.tfrecord", [example(a=int64s(n), b=int64s(-n), c=int64s(0)) for n in range(9)])
    frame = tfr.dataset(path).to_dask(npartitions=2)
    opened = opened_scans(monkeypatch)
    assert int(frame[frame["a"] > 6]["b"].sum().compute()) == -15
    assert {tuple(sorted(scan.compiled.schema.names)) for scan in opened} == {("a", "b")}


def test_a_partition_pickles_small(tmp_path: Path) -> None:
    for number in range(300):
        written(tmp_path / f"train-{number:05d}-of-00300.tfrecord", [example(n=int64s(number))])
    frame = tfr.dataset(tmp_path).to_dask(npartitions=3)
    assert frame.npartitions == 3
    assert all(len(pickle.dumps(frame.partitions[at].dask)) < 30_000 for at in range(3))


def test_a_column_of_unions_does_not_hinder_the_others(tmp_path: Path) -> None:
    parts = [pa.array([1, 2]), pa.array(["a", "b"])]
    unions = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), parts)
    tfr.write_tfrecord(pa.table({"u": unions, "x": [1, 2]}), tmp_path / "u.tfrecord")
    frame = tfr.dataset(tmp_path / "u.tfrecord").to_dask()
    assert frame.dtypes["u"].pyarrow_dtype == unions.type
    assert frame["x"].sum().compute() == 3


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps the working directory of a process")
def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"n": [1, 2, 3]}, f"{tmp_path}/in/")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert tfr.dataset(f"{tmp_path}/in/").to_dask()["n"].sum().compute() == 6
