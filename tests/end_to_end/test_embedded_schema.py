"""The schema that a file carries: which copy governs, what contradicts it, and several files."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import example, field, floats, framed, int64s, tag, varint, written

FIELD = 21574


def records(data: Any, path: Path, **keywords: Any) -> list[bytes]:
    tfr.write_tfrecord(data, path, **keywords)
    return list(tfr.RecordReader(path))


@pytest.fixture
def with_schema(tmp_path: Path) -> list[bytes]:
    """Payloads of a file with an embedded schema: a column n of int8; the first carries the schema."""
    return records({"n": pa.array([1, 2, None], pa.int8())}, tmp_path / "embedded")


@pytest.fixture
def bare(tmp_path: Path) -> list[bytes]:
    """The same without a schema."""
    return records({"n": pa.array([1, 2, None], pa.int8())}, tmp_path / "bare", embed_schema=False)


INT8 = pa.schema([("n", pa.int8())])
BOTH = pytest.mark.parametrize("threads", [1, 2])


def test_the_first_record_governs_and_other_readers_see_plain_tfrecord(
    engine: str, tmp_path: Path, with_schema: list[bytes], bare: list[bytes]
) -> None:
    assert tfr.read_table(tmp_path / "embedded").schema == INT8
    assert with_schema[1:] == bare[1:]
    assert with_schema[0].startswith(tag(FIELD, 2))
    assert with_schema[0].endswith(bare[0])
    assert b"TFRA\x01" in with_schema[0][:12]
    assert tfr.train.Example.FromString(with_schema[0]).features == tfr.train.Example.FromString(bare[0]).features
    assert tfr.read_table(tmp_path / "embedded", schema="infer").schema == pa.schema([("n", pa.int64())])
    with tfr.open_reader(tmp_path / "embedded") as reader:
        assert (reader.schema, reader.report.schema_source) == (INT8, "embedded")
    assert tfr.read_metadata(tmp_path / "embedded").schema == INT8


@BOTH
def test_a_later_copy_that_is_equal_is_skipped(
    engine: str, tmp_path: Path, with_schema: list[bytes], threads: int
) -> None:
    path = written(tmp_path / "a", with_schema + with_schema)  # as by cat a a
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = tfr.read_table(tfr.dataset(path, threads=threads))
        assert tfr.open_reader(tfr.dataset(path, threads=threads)).read_all() == table
    assert (table.schema, table["n"].to_pylist()) == (INT8, [1, 2, None] * 2)


@BOTH
def test_a_later_copy_that_differs_is_a_schema_error(
    engine: str, tmp_path: Path, with_schema: list[bytes], threads: int
) -> None:
    other = records({"n": pa.array([5], pa.int16())}, tmp_path / "other")
    path = written(tmp_path / "a", with_schema + other)
    with pytest.raises(tfr.errors.SchemaError, match="schema='infer'") as caught:
        tfr.read_table(tfr.dataset(path, threads=threads))
    assert (caught.value.path, caught.value.record, caught.value.records_intact) == (str(path), 3, 3)
    assert caught.value.offset == len(framed(*with_schema))
    for schema in ("infer", {"n": "int64"}):
        assert tfr.read_table(tfr.dataset(path, threads=threads), schema=schema)["n"].to_pylist() == [1, 2, None, 5]


@BOTH
def test_a_feature_that_the_schema_does_not_name_is_a_schema_error(
    engine: str, tmp_path: Path, with_schema: list[bytes], threads: int
) -> None:
    path = written(tmp_path / "a", [*with_schema, example(new=int64s(1))])
    with pytest.raises(tfr.errors.SchemaError, match=r"record 3\b.*feature 'new'.*schema='infer'") as caught:
        tfr.read_table(tfr.dataset(path, threads=threads))
    assert caught.value.records_intact == 3
    assert tfr.read_table(tfr.dataset(path, threads=threads), schema="infer").column_names == ["n", "new"]


@BOTH
def test_another_feature_type_is_a_feature_type_error(
    engine: str, tmp_path: Path, with_schema: list[bytes], threads: int
) -> None:
    path = written(tmp_path / "a", [*with_schema, example(n=floats(1.0))])
    with pytest.raises(tfr.errors.FeatureTypeError) as caught:
        tfr.read_table(tfr.dataset(path, threads=threads))
    assert (caught.value.record, caught.value.feature, caught.value.expected, caught.value.got) == (
        3,
        "n",
        "INT64",
        "FLOAT",
    )
    path = written(tmp_path / "b", [*with_schema, example(n=int64s(300))])
    with pytest.raises(tfr.errors.DecodeError, match="not a valid int8"):
        tfr.read_table(tfr.dataset(path, threads=threads))


@BOTH
def test_a_schema_found_only_later_is_used_with_a_warning(
    engine: str, tmp_path: Path, with_schema: list[bytes], bare: list[bytes], threads: int
) -> None:
    path = written(tmp_path / "a", [bare[1], with_schema[0], bare[2]])
    with pytest.warns(tfr.errors.SchemaWarning, match="record 1") as warned:
        table = tfr.read_table(tfr.dataset(path, threads=threads))
    assert warned[0].filename == __file__
    assert (table.schema, table["n"].to_pylist()) == (INT8, [2, 1, None])
    with pytest.warns(tfr.errors.SchemaWarning), tfr.open_reader(tfr.dataset(path, threads=threads)) as reader:
        assert (reader.schema, reader.read_all().num_rows) == (INT8, 3)
    with (
        tfr.open_reader(tfr.dataset(path, sample=1, threads=threads)) as reader,
        pytest.raises(tfr.errors.SchemaError, match="embedded schema"),
    ):
        list(reader)


UNREADABLE = {
    "no TFRA": b"TFRX\x01\x00",
    "another version": b"TFRA\x63\x00whatever",
    "unknown flags": b"TFRA\x01\x80",
    "cut": b"TFRA\x01\x00\xff\xff\xff\xff\x10",
    "nothing": b"",
}


@pytest.mark.fault(57)
@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_schema_is_a_warning_and_inference(
    engine: str, tmp_path: Path, content: bytes, bare: list[bytes]
) -> None:
    path = written(tmp_path / "a", [field(FIELD, content) + bare[0], *bare[1:]])
    for threads in (1, 2):
        with pytest.warns(tfr.errors.SchemaWarning, match="record 0") as warned:
            table = tfr.read_table(tfr.dataset(path, threads=threads))
        assert len(warned) == 1
        assert (table.schema.types, table["n"].to_pylist()) == ([pa.int64()], [1, 2, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tfr.read_table(path, schema="infer").schema.types == [pa.int64()]


@pytest.mark.fault(57)
def test_a_schema_above_16_mib_is_a_warning_and_inference(engine: str, tmp_path: Path, bare: list[bytes]) -> None:
    path = written(tmp_path / "a", [field(FIELD, b"TFRA\x01\x00" + bytes(16 << 20)) + bare[0]])
    with pytest.warns(tfr.errors.SchemaWarning, match="16777216"):
        assert tfr.read_table(path)["n"].to_pylist() == [1]


@pytest.mark.fault(57)
def test_a_truncated_copy_of_a_schema_reads_or_warns(
    engine: str, tmp_path: Path, with_schema: list[bytes], bare: list[bytes]
) -> None:
    start = with_schema[0].index(b"TFRA")
    whole = with_schema[0][start : len(with_schema[0]) - len(bare[0])]
    for end in range(0, len(whole), 37):
        path = written(tmp_path / "a", [field(FIELD, whole[:end]) + bare[0]])
        with warnings.catch_warnings(record=True):
            assert tfr.read_table(path)["n"].to_pylist() == [1]


def test_the_field_is_found_at_any_position(
    engine: str, tmp_path: Path, with_schema: list[bytes], bare: list[bytes]
) -> None:
    prefix = with_schema[0][: len(with_schema[0]) - len(bare[0])]
    for first in (bare[0] + prefix, field(99, b"x") + prefix + bare[0], prefix + prefix + bare[0]):
        assert tfr.read_table(written(tmp_path / "a", [first, *bare[1:]])).schema == INT8
    nested = field(1, prefix) + bare[0]  # inside of Features it means nothing
    assert tfr.read_table(written(tmp_path / "a", [nested])).schema.types == [pa.int64()]
    number = tag(FIELD, 0) + varint(5) + bare[0]
    assert tfr.read_table(written(tmp_path / "a", [number])).schema.types == [pa.int64()]


# Several files ------------------------------------------------------------------------------------------------


@BOTH
def test_null_unifies_and_a_missing_column_is_null(engine: str, tmp_path: Path, threads: int) -> None:
    tfr.write_tfrecord({"a": pa.array([1], pa.int8()), "b": pa.nulls(1)}, tmp_path / "1.tfrecord")
    tfr.write_tfrecord({"b": pa.array([True]), "c": pa.array(["x"])}, tmp_path / "2.tfrecord")
    for order, rows in (
        ("12", [{"a": 1, "b": None, "c": None}, {"a": None, "b": True, "c": "x"}]),
        ("21", [{"a": None, "b": True, "c": "x"}, {"a": 1, "b": None, "c": None}]),
    ):
        table = tfr.read_table(tfr.dataset([tmp_path / f"{n}.tfrecord" for n in order], threads=threads))
        assert {f.name: f.type for f in table.schema} == {"a": pa.int8(), "b": pa.bool_(), "c": pa.string()}
        assert [{k: row[k] for k in "abc"} for row in table.to_pylist()] == rows
        with tfr.open_reader(tfr.dataset([tmp_path / f"{n}.tfrecord" for n in order], sample=1)) as reader:
            assert reader.schema.equals(table.schema)
            assert reader.read_all().equals(table)


@BOTH
def test_files_that_disagree_are_both_named(engine: str, tmp_path: Path, threads: int) -> None:
    for name, kind in (("1", pa.int8()), ("2", pa.timestamp("s"))):
        tfr.write_tfrecord({"x": pa.array([1], kind)}, tmp_path / f"{name}.tfrecord")
    with pytest.raises(tfr.errors.SchemaError) as caught:
        tfr.read_table(tfr.dataset(tmp_path, threads=threads))
    assert (caught.value.path, caught.value.feature) == (f"{tmp_path}/2.tfrecord", "x")
    for part in (f"{tmp_path}/1.tfrecord", f"{tmp_path}/2.tfrecord", "int8", "timestamp[s]"):
        assert part in str(caught.value)
    assert tfr.read_table(tfr.dataset(tmp_path, threads=threads), schema="infer")["x"].to_pylist() == [1, 1]
    with pytest.raises(tfr.errors.SchemaError, match=re.escape(str(caught.value))):
        tfr.open_reader(tfr.dataset(tmp_path, threads=threads))
    assert tfr.dataset(tmp_path).select([]).count_rows() == 2


@BOTH
def test_files_without_a_schema_must_fit(
    engine: str, tmp_path: Path, with_schema: list[bytes], bare: list[bytes], threads: int
) -> None:
    first, plain = tmp_path / "embedded", tmp_path / "bare"
    for order in ([first, plain], [plain, first]):
        table = tfr.read_table(tfr.dataset(order, threads=threads))
        assert (table.schema.types, table["n"].to_pylist()) == ([pa.int8()], [1, 2, None] * 2)
    misfit = written(tmp_path / "misfit", [example(n=int64s(1000))])
    with pytest.raises(tfr.errors.DecodeError, match="not a valid int8"):
        tfr.read_table(tfr.dataset([first, misfit], threads=threads))


def test_an_index_of_a_range_comes_back_for_one_whole_file_only(engine: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 2, 3]}, index=pd.RangeIndex(10, 16, 2))
    path = tmp_path / "a"
    tfr.write_tfrecord(frame, path)
    default = pd.RangeIndex(3)
    assert tfr.read_tfrecord(path).index.equals(frame.index)
    assert tfr.read_tfrecord([path, path]).index.equals(pd.RangeIndex(6))
    assert tfr.read_tfrecord(path, limit=2).index.equals(pd.RangeIndex(2))
    assert tfr.read_tfrecord(tfr.dataset(path, offset=1)).index.equals(pd.RangeIndex(2))
    assert tfr.read_tfrecord(path, schema="infer").index.equals(default)
    payloads = list(tfr.RecordReader(path))
    assert tfr.read_tfrecord(written(tmp_path / "b", payloads[:2])).index.equals(pd.RangeIndex(2))


def test_the_columns_of_an_index_join_any_projection(engine: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 2], "y": [3, 4]}, index=pd.Index(["a", "b"], name="key"))
    tfr.write_tfrecord(frame, tmp_path / "a")
    pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "a", columns=["y"]), frame[["y"]])
    assert tfr.read_table(tmp_path / "a", columns=["y"]).column_names == ["y"]
    assert tfr.read_tfrecord(tmp_path / "a", columns=["*", "!key"]).index.equals(pd.RangeIndex(2))
    again = tfr.read_tfrecord([tmp_path / "a"] * 2)
    assert list(again.index) == ["a", "b"] * 2


def test_categories_of_several_files_are_joined(engine: str, tmp_path: Path) -> None:
    for name, values in (("1", ["b", "a"]), ("2", ["c", "b"])):
        tfr.write_tfrecord(
            pd.DataFrame({"x": pd.Categorical(values, categories=values)}), tmp_path / f"{name}.tfrecord"
        )
    frame = tfr.read_tfrecord(tmp_path)
    assert frame.x.tolist() == ["b", "a", "c", "b"]
    assert list(frame.x.cat.categories) == ["b", "a", "c"]
