"""polars scans TFRecord files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import example, int64s, written
from suites.adapter_suite import AdapterSuite


class TestPolars(AdapterSuite):
    engine: Any = "in-memory"

    def open(self, path: Any, **keywords: Any) -> pl.LazyFrame:
        return tfr.scan_polars(path, **keywords)

    def rows(self, opened: pl.LazyFrame, names: list[str] | None = None) -> dict[str, list[Any]]:
        frame = (opened if names is None else opened.select(names)).collect(engine=self.engine)
        tensors = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.BaseExtension)]
        cells = {name: frame[name].ext.storage().to_numpy().reshape(-1, 2, 2).tolist() for name in tensors}
        return {name: cells.get(name) or frame[name].to_list() for name in frame.columns}

    def above(self, opened: pl.LazyFrame, least: int) -> pl.LazyFrame:
        return opened.filter(pl.col("ints") > least)

    def first(self, opened: pl.LazyFrame, n: int) -> pl.LazyFrame:
        return opened.head(n)

    def count(self, opened: pl.LazyFrame) -> int:
        return int(opened.select(pl.len()).collect(engine=self.engine).item())

    def names(self, opened: pl.LazyFrame) -> list[str]:
        return opened.collect_schema().names()

    def test_dtypes_are_those_of_the_table(self, path: Path) -> None:
        opened = self.open(path)
        assert opened.collect(engine=self.engine).schema == opened.collect_schema()
        assert opened.collect_schema() == pl.DataFrame(tfr.read_table(path)).schema

    def test_a_part_of_a_dataset(self, path: Path) -> None:
        dataset = tfr.dataset(path).filter([("ints", ">", 3)]).select(["text", "int"])
        assert dataset.to_polars().filter(pl.col("int").is_null()).collect().to_dict(as_series=False) == {
            "text": ["b"] * 3,
            "int": [None] * 3,
        }

    def test_a_scan_may_occur_twice_in_a_query(self, path: Path) -> None:
        opened = self.open(path)
        joined = opened.select("ints").unique().join(opened.select("ints", "flag").unique(), on="ints")
        assert joined.collect(engine=self.engine).height == 5

    def test_a_filter_after_the_first_rows(self, path: Path) -> None:
        assert self.rows(self.above(self.first(self.open(path), 6), 3), ["ints"]) == {"ints": [4, 5]}

    def test_a_result_is_written_again(self, path: Path, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        lazy = self.open(path).filter(pl.col("flag"))
        tfr.write_tfrecord(lazy, tmp_path / "out" / "flags.tfrecord")
        expected = tfr.read_table(path).filter(pa.compute.field("flag"))
        assert tfr.read_table(tmp_path / "out" / "flags.tfrecord")["ints"].to_pylist() == expected["ints"].to_pylist()


class TestPolarsStreaming(TestPolars):
    engine = "streaming"


def decoded_columns(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of each scan that is opened from now on."""
    from tfrecord_io.read.scan import Scan

    opened: list[list[str]] = []
    original = Scan.open
    monkeypatch.setattr(Scan, "open", lambda scan, *rest: opened.append(scan.schema.names) or original(scan, *rest))
    return opened


def test_only_what_is_needed_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"a*": 1, "ab": 2, "!x": 3, "y": 4}
    path = written(
        tmp_path / "a.tfrecord", [example(**{name: int64s(n * v) for name, v in names.items()}) for n in range(99)]
    )
    lazy = tfr.scan_polars(path)
    opened = decoded_columns(monkeypatch)
    assert lazy.filter(pl.col("ab") > 190).select("y").collect().to_dict(as_series=False) == {"y": [384, 388, 392]}
    assert sorted(opened[-1]) == ["ab", "y"]
    assert lazy.select("a*", "!x").head(2).collect().to_dict(as_series=False) == {"a*": [0, 1], "!x": [0, 3]}


def test_reading_stops_after_the_first_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(n=int64s(n)) for n in range(5000)])
    lazy = tfr.scan_polars(path, schema={"n": "int64"})
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    assert lazy.head(3).collect()["n"].to_list() == [0, 1, 2]


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"n": [1]}, tmp_path / "a.tfrecord")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(tfr.MissingDependencyError, match=r"pip install 'tfrecord_io\[polars\]'"):
        tfr.scan_polars(tmp_path / "a.tfrecord")
