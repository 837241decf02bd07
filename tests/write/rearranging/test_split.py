"""Splitting and merging files: records are copied as bytes, each output with the schema."""

from __future__ import annotations

import math
import os
import re
import tempfile
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import example, int64s, written
from rounds import COMPLETE, rounds
from servers import Bucket
from tfrecord_io.bytes.compression import CODECS

TABLE = pa.table(
    {
        "n": pa.array(range(30), pa.uint8()),
        "label": pa.array([["cat", "dog", None][i % 3] for i in range(30)], pa.string()),
    }
)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    tfr.write_tfrecord(TABLE, tmp_path / "d" / "a@4")
    return tmp_path / "d"


def payloads(path: Path | str) -> list[bytes]:
    return list(tfr.RecordReader(path))


@settings(max_examples=rounds(40))
@given(
    st.lists(st.lists(st.binary(max_size=40), max_size=12), min_size=1, max_size=4),
    st.sampled_from([{"shards": 1}, {"shards": 3}, {"max_shard_bytes": 64}]),
    st.sampled_from([None, *CODECS.names()]),
)
def test_any_payloads_are_copied_in_order(files: list[list[bytes]], how: dict, compression: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [written(Path(folder) / f"{i}.tfrecord", records) for i, records in enumerate(files)]
        report = tfr.split(paths, f"{folder}/out/x.tfrecord", compression=compression, **how)
        merged = tfr.merge(f"{folder}/out", f"{folder}/again")
        expected = [payload for records in files for payload in records]
        assert payloads(f"{folder}/again") == expected
        assert report.records == merged.records == len(expected)
        assert tfr.verify(tfr.dataset(f"{folder}/out", record_type="bytes")).ok


def test_each_output_has_the_schema(engine: str, dataset: Path, tmp_path: Path) -> None:
    report = tfr.merge(dataset, tmp_path / "one.tfrecord")
    assert report.columns == ("n", "label")
    assert tfr.read_table(tmp_path / "one.tfrecord").equals(TABLE)
    bare, embedded = payloads(tmp_path / "one.tfrecord"), payloads(dataset)
    assert [len(payload) for payload in bare[1:]] == [min(map(len, (embedded[i], bare[i]))) for i in range(1, 30)]
    tfr.split(tmp_path / "one.tfrecord", tmp_path / "s" / "x.tfrecord", shards=7)
    for path in (tmp_path / "s").glob("x*"):
        assert tfr.read_table(path).schema.equals(TABLE.schema)
    assert tfr.read_table(tmp_path / "s").equals(TABLE)
    assert tfr.verify(tmp_path / "s").ok


def test_schemas_are_united(tmp_path: Path) -> None:
    tfr.write_tfrecord(pa.table({"n": pa.array([1], pa.uint8())}), tmp_path / "a")
    tfr.write_tfrecord(pa.table({"n": pa.array([2], pa.uint8()), "m": ["x"]}), tmp_path / "b")
    tfr.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert tfr.read_table(tmp_path / "c").to_pydict() == {"n": [1, 2], "m": [None, "x"]}
    assert tfr.read_table(tmp_path / "c").schema.field("n").type == pa.uint8()
    tfr.write_tfrecord(pa.table({"n": ["text"]}), tmp_path / "d")
    with pytest.raises(tfr.errors.SchemaError, match=r"uint8 in .*/a and string in .*/d; copy the files one by one"):
        tfr.merge([tmp_path / "a", tmp_path / "d"], tmp_path / "e")
    assert not (tmp_path / "e").exists()


def test_files_without_a_schema_leave_no_schema(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1]}, tmp_path / "a")
    written(tmp_path / "b", [example(n=int64s(2), new=int64s(3))])
    with pytest.warns(tfr.errors.SchemaWarning, match="/b has none"):
        report = tfr.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert report.columns == ()
    assert tfr.read_table(tmp_path / "c").to_pydict() == {"n": [1, 2], "new": [None, 3]}


def test_a_schema_in_the_middle_of_a_file_is_taken_off(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2]}, tmp_path / "a")
    twice = (tmp_path / "a").read_bytes() * 2
    (tmp_path / "twice").write_bytes(twice)
    tfr.merge(tmp_path / "twice", tmp_path / "b")
    assert tfr.read_table(tmp_path / "b")["n"].to_pylist() == [1, 2, 1, 2]
    assert (tmp_path / "b").stat().st_size < len(twice)


def test_a_part_for_each_value(engine: str, dataset: Path, tmp_path: Path) -> None:
    reports = tfr.split(dataset, tmp_path / "by", by="label", compression="gzip")
    assert {name: report.records for name, report in reports.items()} == {"cat": 10, "dog": 10, "%missing": 10}
    assert sorted(path.name for path in (tmp_path / "by").iterdir()) == [
        "%missing.tfrecord.gz",
        "cat.tfrecord.gz",
        "dog.tfrecord.gz",
    ]
    dogs = tfr.read_table(tmp_path / "by" / "dog.tfrecord.gz")
    assert dogs.equals(TABLE.filter(pa.compute.equal(TABLE["label"], "dog")))


def test_values_become_names_of_files(tmp_path: Path) -> None:
    values = ["a/b", "..", "", "ü", "%"]
    tfr.write_tfrecord({"v": values}, tmp_path / "a.tfrecord")
    reports = tfr.split(tmp_path / "a.tfrecord", tmp_path / "by", by="v")
    assert list(reports) == ["a%2Fb", "%2E.", "%", "%C3%BC", "%25"]
    read = [tfr.read_table(report.path)["v"].to_pylist() for report in reports.values()]
    assert read == [[value] for value in values]


def test_readers_of_the_directory_find_all_parts(tmp_path: Path) -> None:
    values = ["a", "_x", ".y", "", "%missing", "__missing__", "a-00000-of-00002", None]
    tfr.write_tfrecord({"n": range(len(values)), "s": values}, tmp_path / "a")
    assert len(tfr.split(tmp_path / "a", tmp_path / "b", by="s")) == len(values)
    assert sorted(tfr.read_table(tmp_path / "b")["n"].to_pylist()) == [*range(len(values))]


@pytest.mark.parametrize("values", [[None, *range(200)], [*range(200), None]])
def test_a_missing_value_does_not_count_as_one_of_200(tmp_path: Path, values: list[int | None]) -> None:
    tfr.write_tfrecord({"n": values}, tmp_path / "a")
    assert len(tfr.split(tmp_path / "a", tmp_path / "b", by="n")) == 201
    tfr.write_tfrecord({"n": [*values, 200]}, tmp_path / "a")
    with pytest.raises(ValueError, match="more than 200 distinct values"):
        tfr.split(tmp_path / "a", tmp_path / "c", by="n")


def test_columns_that_cannot_split(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": list(range(300)), "f": [0.5] * 300, "s": ["a"] * 300}, tmp_path / "a")
    with pytest.raises(ValueError, match="more than 200 distinct values"):
        tfr.split(tmp_path / "a", tmp_path / "b", by="n")
    with pytest.raises(tfr.errors.FeatureTypeError, match="its type is double"):
        tfr.split(tmp_path / "a", tmp_path / "b", by="f")
    with pytest.raises(tfr.errors.FeatureNotFoundError):
        tfr.split(tmp_path / "a", tmp_path / "b", by="none")
    for pattern, name in (("[s]", "s"), ("s*", "s"), ("!n", "f")):
        with pytest.raises(
            tfr.errors.FeatureNotFoundError, match=rf"one column, and no pattern; did you mean '{name}'\?"
        ):
            tfr.split(tmp_path / "a", tmp_path / "b", by=pattern)
    assert not (tmp_path / "b").exists()


@settings(max_examples=rounds(60))
@given(st.integers(0, 200), st.lists(st.integers(0, 100), min_size=1, max_size=5), st.integers(0, 2**70))
def test_fractions_give_exact_counts(count: int, percents: list[int], seed: int) -> None:
    percents = percents if sum(percents) <= 100 else [100 // len(percents)] * len(percents)
    fractions = {f"part{i}": percent / 100 for i, percent in enumerate(percents)}
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "a", [example(n=int64s(i)) for i in range(count)])
        reports = tfr.split(path, f"{folder}/out", fractions=fractions, seed=seed)
        parts = [payloads(report.path) for report in reports.values()]
        all_payloads = payloads(path)
    for k in range(1, len(parts) + 1):
        expected = math.floor(count * Fraction(sum(percents[:k]), 100) + Fraction(1, 2))
        assert sum(map(len, parts[:k])) == expected
    places = {payload: i for i, payload in enumerate(all_payloads)}
    for part in parts:
        assert [places[p] for p in part] == sorted(places[p] for p in part)
    assert len({p for part in parts for p in part}) == sum(map(len, parts))


def test_parts_without_names_are_numbered(dataset: Path, tmp_path: Path) -> None:
    assert [*tfr.split(dataset, tmp_path / "five", fractions=[0.2] * 5)] == [f"part{i}" for i in range(5)]
    names = [*tfr.split(dataset, tmp_path / "many", fractions=[0.05] * 12)]
    assert names == sorted(names)
    assert (names[0], names[-1]) == ("part00", "part11")


def test_every_record_is_equally_likely_in_a_part(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(n=int64s(i)) for i in range(10)])
    counts = np.zeros(10)
    times = 300 if COMPLETE else 100
    for seed in range(times):
        tfr.split(path, tmp_path / "out", fractions=[0.7, 0.3], seed=seed)
        counts[tfr.read_arrays(tmp_path / "out" / "test.tfrecord")["n"]] += 1
    assert counts.sum() == 3 * times
    assert (abs(counts - 0.3 * times) < 5 * (0.3 * 0.7 * times) ** 0.5).all()  # five standard deviations


def test_calls_that_are_refused(dataset: Path, tmp_path: Path) -> None:
    for wrong, text in [
        ({}, "say how to split: pass one of"),
        ({"by": "n", "fractions": [0.5, 0.5]}, "pass only one"),
        ({"fractions": [0.5]}, "expected 2"),
        ({"fractions": [0.9, 0.2]}, "more than 1"),
        ({"fractions": {"a": 1.5}}, "from 0 to 1"),
        ({"fractions": [0.5, 0.5], "seed": -1}, "seed=-1"),
    ]:
        with pytest.raises(ValueError, match=text):
            tfr.split(dataset, tmp_path / "out", **wrong)
    with pytest.raises(TypeError, match="did you mean shards="):
        tfr.split(dataset, tmp_path / "out", num_shards=2)
    assert not (tmp_path / "out").exists()


def test_a_mapping_is_read_as_its_keys(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file: 'train'"):
        tfr.merge({"train": dataset}, tmp_path / "out.tfrecord")  # type: ignore[arg-type]


def test_damage_leaves_nothing(engine: str, dataset: Path, tmp_path: Path) -> None:
    shard = dataset / "a-00002-of-00004"
    content = bytearray(shard.read_bytes())
    content[-6] ^= 1
    shard.write_bytes(content)
    for how in ({"shards": 2}, {"fractions": [0.5, 0.5]}):
        with pytest.raises(tfr.errors.CorruptRecordError, match="a-00002-of-00004"):
            tfr.split(dataset, tmp_path / "out" / "x", **how)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != dataset] == []


def test_from_and_to_buckets(s3: Bucket, dataset: Path, tmp_path: Path) -> None:
    tfr.split(dataset, s3.url("x/y.tfrecord"), shards=3, storage_options=s3.storage_options)
    tfr.split(s3.url("x"), s3.url("parts"), by="label", storage_options=s3.storage_options)
    assert "parts/dog.tfrecord" in s3.names()
    tfr.merge(s3.url("x"), tmp_path / "back", storage_options=s3.storage_options)
    assert tfr.read_table(tmp_path / "back").equals(TABLE)


def test_no_records(tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE.slice(0, 0), tmp_path / "empty@2")
    assert tfr.split(tmp_path / "empty@2", tmp_path / "out", shards=2).records == 0
    with pytest.warns(tfr.errors.SchemaWarning, match="no records were written"):
        tfr.merge(tmp_path / "empty@2", tmp_path / "one.tfrecord")


def test_a_file_object_is_split_by_a_column(engine: str, dataset: Path, tmp_path: Path) -> None:
    tfr.merge(dataset, tmp_path / "whole")
    with (tmp_path / "whole").open("rb") as file:
        reports = tfr.split(file, tmp_path / "by", by="label")
    assert {name: report.records for name, report in reports.items()} == {"cat": 10, "dog": 10, "%missing": 10}


@pytest.mark.parametrize("order", ["narrow wide", "wide narrow", "narrow bare wide", "bare wide narrow"])
def test_embedded_schemas_may_differ_in_any_order(engine: str, order: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1], "label": ["a"]}, tmp_path / "narrow")
    tfr.write_tfrecord({"x": [2], "label": ["b"], "more": ["c"]}, tmp_path / "wide")
    written(tmp_path / "bare", [example(x=int64s(3), other=int64s(4))])
    paths = [tmp_path / name for name in order.split()]
    with warnings.catch_warnings():
        warnings.simplefilter("error" if "bare" not in order else "ignore", tfr.errors.SchemaWarning)
        reports = tfr.split(paths, tmp_path / "by", by="label")
        read = {name: tfr.read_table(report.path)["x"].to_pylist() for name, report in reports.items()}
    assert read == {"a": [1], "b": [2], **({"%missing": [3]} if "bare" in order else {})}


@pytest.mark.parametrize("name", ["", "../evil", "a/b", "a\\b", ".hidden", ".."])
def test_names_of_parts_that_are_refused(name: str, dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(f"a part named {name!r}")):
        tfr.split(dataset, tmp_path / "out", fractions={"train": 0.5, name: 0.5})
    assert not (tmp_path / "out").exists()


def test_records_that_are_not_examples_have_no_column(engine: str, tmp_path: Path) -> None:
    written(tmp_path / "a", [b"abc", b"\x00\xff"])
    with pytest.raises(tfr.TFRecordError, match="/a: record 0"):
        tfr.split(tmp_path / "a", tmp_path / "by", by="record")
    assert not (tmp_path / "by").exists()


@pytest.mark.parametrize("how", [{"fractions": {"a": 0.5, "x" * 300: 0.5}}, {"by": "v"}, {"by": "v", "shards": 2}])
def test_a_failed_split_leaves_directories_as_they_were(how: dict, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    tfr.write_tfrecord({"v": ["a", "x" * 300]}, tmp_path / "a.tfrecord")
    for target in (tmp_path / "kept", tmp_path / "new" / "parts"):
        with pytest.raises(OSError, match="File name too long"):
            tfr.split(tmp_path / "a.tfrecord", target, **how)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.tfrecord", "kept"]


@settings(max_examples=rounds(30))
@given(
    st.sets(st.from_regex(r"(a|part|b\.c)-[0-9]{1,5}(-of-[0-9]{1,5})?(\.x)?", fullmatch=True), min_size=1, max_size=6)
)
def test_values_that_look_like_shards_can_be_read(values: set[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord({"v": sorted(values)}, f"{folder}/a.tfrecord")
        reports = tfr.split(f"{folder}/a.tfrecord", f"{folder}/by", by="v")
        assert [unquote(name) for name in reports] == sorted(values)
        assert set(tfr.read_table(f"{folder}/by")["v"].to_pylist()) == values


@pytest.mark.parametrize("how", ["split", "salvage", "copy", "merge"])
def test_an_empty_target_is_not_the_root_directory(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        tfr.write_tfrecord({"x": range(10)}, tmp_path / f"{name}.tfrecord")
    monkeypatch.chdir(tmp_path)
    keywords: dict[str, Any] = {"fractions": [0.5, 0.5]} if how == "split" else {}
    before = {*os.listdir("/"), *os.listdir(tmp_path)}
    with pytest.raises(FileNotFoundError, match="the path of the target is empty"):
        getattr(tfr, how)(["a.tfrecord", "b.tfrecord"], "", **keywords)
    assert {*os.listdir("/"), *os.listdir(tmp_path)} == before


def test_a_part_without_records_is_warned_of(tmp_path: Path) -> None:
    """At the line of the caller."""
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"u": ["a"] * 3, "x": [1, 2, 3]}, path)
    with pytest.warns(UserWarning, match=r"no records in (train|test): .*; try another seed=") as caught:
        tfr.split(path, tmp_path / "parts", fractions=(0.5, 0.5), group="u")
    assert {warning.filename for warning in caught} == {__file__}
