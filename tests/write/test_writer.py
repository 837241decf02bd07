"""Writing tables: they are read back with the same types and values."""

from __future__ import annotations

import datetime as dt
import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

import tfrecord_io as tfr
from arrow_tables import batches
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.columns.schema.embedded import embedded_schema
from tfrecord_io.write.writer import check_columns


def round_trip(data: Any, path: Path, **keywords: Any) -> pa.Table:
    """Write `data` and read it."""
    tfr.write_tfrecord(data, path, **keywords)
    table = tfr.read_table(path)
    table.validate(full=True)
    return table


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "flag": [True, False, True],
            "tiny": np.array([-128, 0, 127], np.int8),
            "word": np.array([0, 1, 65_535], np.uint16),
            "exact": [0.1, np.nan, -0.0],
            "when": pd.to_datetime(["2020-01-01 00:00:00.000001", None, "2262-01-01"], format="ISO8601").tz_localize(
                "Europe/Paris"
            ),
            "grade": pd.Categorical(["b", None, "a"], categories=["c", "b", "a"], ordered=True),
            "maybe": pd.array([1, None, 2**62 + 1], dtype="Int64"),
            "text": ["x", None, "ü\n"],
            "blob": [b"\xff\x00", b"", None],
            "list": [np.array([1, 2]), np.array([], int), None],
        },
        index=pd.Index([10, 20, 30], name="key"),
    )


def test_a_dataframe_is_read_back_equal(engine: str, tmp_path: Path) -> None:
    df = frame()
    tfr.write_tfrecord(df, tmp_path / "a", float64="raw")
    again = tfr.read_tfrecord(tmp_path / "a")
    pd.testing.assert_frame_equal(again, df)
    assert np.signbit(again.exact.iloc[2])
    assert list(again.grade.cat.categories) == ["c", "b", "a"]
    tfr.write_tfrecord(again, tmp_path / "b", float64="raw")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    some = tfr.read_tfrecord(tmp_path / "a", columns=["tiny"])
    assert (some.index.name, list(some.index), str(some.tiny.dtype)) == ("key", [10, 20, 30], "int8")


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(5, 11, 2, name="r"),
        pd.Index(["a", "b", None]),
        pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")], names=["n", None]),
        pd.DatetimeIndex(["2020", "2021", "2022"], tz="UTC"),
        pd.CategoricalIndex(["x", "y", "x"], name="c"),
    ],
)
def test_any_index_is_read_back(engine: str, tmp_path: Path, index: pd.Index) -> None:
    df = pd.DataFrame({"x": [1, 2, 3]}, index=index)
    tfr.write_tfrecord(df, tmp_path / "a")
    pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "a"), df)
    tfr.write_tfrecord(df, tmp_path / "b", index=False)
    pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "b"), df.reset_index(drop=True))


@given(batch=batches(max_rows=4))
@pytest.mark.fault(52)
@pytest.mark.fault(50)
def test_any_arrow_table_is_read_back(
    native_engine: None, new_folder: Callable[[], Path], batch: pa.RecordBatch
) -> None:
    path = new_folder() / "a"
    try:
        tfr.write_tfrecord(batch, path, float64="round", threads=1)
    except tfr.errors.EncodeError:
        assert not path.exists()
        return
    got = tfr.read_table(tfr.dataset(path, threads=1))
    got.validate(full=True)
    if not len(batch):  # a file without records has no schema
        assert got.num_rows == 0
        return
    assert got.schema.types == embedded_schema(batch.schema).types
    expected = [as_plain(column) for column in batch.columns]
    assert [as_plain(column) for column in got.columns] == expected


def as_plain(array: Any) -> list[Any]:
    """Python values, with NaN as text; a struct whose leaves are all null is null, as in a record."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            struct = {k: plain(v) for k, v in value.items()}
            return None if all(v is None for v in struct.values()) else struct
        if isinstance(value, list):
            return [plain(v) for v in value]
        return "NaN" if isinstance(value, (float, np.floating)) and value != value else value

    return [plain(v) for v in array.to_pylist()]


TYPES = [
    pa.array([1, None, 255], pa.uint8()),
    pa.array([0, 2**63 - 1, None], pa.uint64()),
    pa.array([np.float16(1.5), None, np.float16("inf")], pa.float16()),
    pa.array([Decimal("1.10"), None, Decimal("-99999.99")], pa.decimal128(7, 2)),
    pa.array([dt.date(1970, 1, 2), None, dt.date(1, 1, 1)], pa.date32()),
    pa.array([dt.date(1970, 1, 2), None, dt.date(9999, 12, 31)], pa.date64()),
    pa.array([dt.time(23, 59, 59, 999_999), None, dt.time()], pa.time64("us")),
    pa.array([1, None, 2**62], pa.timestamp("ns", "America/New_York")),
    pa.array([-1, None, 5], pa.duration("ms")),
    pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2)),
    pa.array([[True], [], None], pa.list_(pa.bool_())),
    pa.array(["a", None, "a"]).dictionary_encode(),
    pa.array([{"x": 1, "y": {"z": ["a"]}}, None, {"x": None, "y": {"z": []}}]),
    pa.array([[{"x": 1, "y": "a"}, {"x": 2, "y": "b"}], None, []]),
    pa.array([b"abc", None, b"xyz"], pa.binary(3)),
    pa.array([None, None, None]),
    pa.array([None, None, None], pa.list_(pa.string())),
]


@pytest.mark.parametrize("array", TYPES, ids=lambda a: str(a.type))
def test_a_type_is_read_back(engine: str, tmp_path: Path, array: pa.Array) -> None:
    for data in (pa.table({"x": array}), pa.table({"x": pa.chunked_array([array[1:], array[:0], array])})):
        table = round_trip(data, tmp_path / "a")
        assert table.schema.field("x").type == array.type
        assert table["x"].to_pylist() == data["x"].to_pylist()


def test_large_types_are_read_back_with_32_bit_offsets(engine: str, tmp_path: Path) -> None:
    data = pa.table({"l": pa.array([[1]], pa.large_list(pa.int64())), "s": pa.array(["a"], pa.large_string())})
    table = round_trip(data, tmp_path / "a")
    assert table.schema.types == [pa.list_(pa.int64()), pa.string()]
    assert table.to_pylist() == data.to_pylist()


def test_a_struct_of_nulls_is_not_null(engine: str, tmp_path: Path) -> None:
    values = pa.array([{"p": None, "q": {"r": None}}, None, {"p": None, "q": None}])
    table = round_trip(pa.table({"s": values}), tmp_path / "a.tfrecord")
    assert table.schema.field("s").type == values.type
    assert table.to_pydict() == {"s": values.to_pylist()}


@pytest.mark.parametrize(
    "names",
    [["", "a\0b", "new\nline", "a/b", "x" * 10_240, "עברית", "b", "a"], ["!not", "*", "[x]", "a/shape", "a/dtype"]],
)
@pytest.mark.fault(47)
def test_unusual_names_are_read_back_in_order(engine: str, tmp_path: Path, names: list[str]) -> None:
    data = pa.table({name: [i, None] for i, name in enumerate(names)})
    assert round_trip(data, tmp_path / "a").to_pydict() == data.to_pydict()
    assert tfr.read_table(tmp_path / "a").column_names == names
    assert tfr.read_table(tmp_path / "a", schema="infer").column_names == sorted(names)
    for name in names:
        if name != "!not":
            assert tfr.read_table(tmp_path / "a", columns=[name, "!nothing"][:1]).column_names == (
                [name] if name != "*" else names
            )


def test_float64_is_rounded_with_one_warning_at_the_callers_line(engine: str, tmp_path: Path) -> None:
    data = {"x": [0.1, 0.5, None, 0.3], "y": [1.0, 2.0, 3.0, 4.0], "z": [[0.1], [0.2, 0.2], [], [1.0]]}
    for write in (lambda: tfr.write_tfrecord(data, tmp_path / "a"), lambda: with_writer(tmp_path / "a", data)):
        with pytest.warns(tfr.errors.PrecisionWarning, match=r"'z' \(3 values\), 'x' \(2 values\)") as warned:
            report = write()
        assert len(warned) == 1
        assert warned[0].filename == __file__
        assert report.rounded == {"x": 2, "z": 3}
    assert tfr.read_table(tmp_path / "a").schema.field("x").type == pa.float64()
    assert tfr.read_table(tmp_path / "a")["x"].to_pylist() == [
        float(np.float32(0.1)),
        0.5,
        None,
        float(np.float32(0.3)),
    ]


def with_writer(path: Path, data: Any) -> Any:
    with tfr.open_writer(path) as writer:
        writer.write(data)
    return writer.report


def test_other_options_for_float64_round_silently_are_exact_or_refuse(engine: str, tmp_path: Path) -> None:
    data = {"x": [0.1, float("nan"), -0.0, 5e-324], "l": [[0.1], [], [1e300], [0.0]]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.write_tfrecord({"x": [0.1]}, tmp_path / "a", float64="round")
        tfr.write_tfrecord({"x": [0.5]}, tmp_path / "a")
        tfr.write_tfrecord(data, tmp_path / "a", float64="raw")
    table = tfr.read_table(tmp_path / "a")
    assert np.array(table["x"]).tobytes() == np.array(data["x"]).tobytes()
    assert table["l"].to_pylist() == data["l"]
    with pytest.raises(tfr.errors.EncodeError, match=r"record 1\b.*feature 'x'") as caught:
        tfr.write_tfrecord({"x": [0.5, 0.1]}, tmp_path / "b", float64="error")
    assert (caught.value.record, caught.value.feature) == (1, "x")
    for float64 in (None, "round", "error"):
        with pytest.raises(tfr.errors.EncodeError) as caught:
            tfr.write_tfrecord({"x": [0.5, 0.25, 1e300]}, tmp_path / "b", float64=float64)
        assert (caught.value.record, caught.value.feature) == (2, "x")
    assert not (tmp_path / "b").exists()


def test_raw_columns_are_stored_as_the_bytes_of_an_array(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.array([1, 2], np.int32)}, tmp_path / "a", column_encoding={"x": "raw"})
    (first, _) = tfr.RecordReader(tmp_path / "a")
    record = tfr.decode_example(first)
    assert record["x"].tolist() == [np.int32(1).tobytes()]
    assert record["x/dtype"].tolist() == [b"int32"]
    assert record["x/shape"].tolist() == []
    assert tfr.read_table(tmp_path / "a")["x"].type == pa.int32()


@pytest.mark.parametrize(
    ("data", "feature", "record", "fragment"),
    [
        (pa.table({"a": [1, 2], "x": pa.array([1, 2**63], pa.uint64())}), "x", 1, "2**63"),
        ([pa.table({"x": [[1]]}), pa.table({"x": [[2, None]]})], "x", 1, "null"),
        (pa.table([[1], [2]], ["x", "x"]), "x", None, "name"),
        (pa.table({"x/y": [1], "x": [{"y": 1}]}), "x/y", None, "rename"),
        (pa.table({"x": [[[1]]], "x/ragged_flat_values": [1]}), "x/ragged_flat_values", None, "rename"),
        (pd.DataFrame({"x": ["a", 1]}), "x", None, ""),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "x", None, "name"),
        ({"x": [1, "a"]}, "x", None, ""),
        ({"x": [1, 2], "y": [1]}, "y", None, "1"),
    ],
)
def test_an_unsupported_value_is_named_by_column_and_row_and_nothing_is_written(
    engine: str, tmp_path: Path, data: Any, feature: str, record: int | None, fragment: str
) -> None:
    with pytest.raises(tfr.errors.EncodeError) as caught:
        tfr.write_tfrecord(data, tmp_path / "a")
    assert (caught.value.feature, caught.value.record) == (feature, record)
    assert fragment in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_row_of_an_error_is_numbered_over_all_batches(engine: str, tmp_path: Path) -> None:
    parts = [pa.table({"x": pa.array([1, 2], pa.uint64())}), pa.table({"x": pa.array([3, 2**63], pa.uint64())})]
    for threads in (1, 3):
        with pytest.raises(tfr.errors.EncodeError) as caught:
            tfr.write_tfrecord(iter(parts), tmp_path / "a", threads=threads)
        assert caught.value.record == 3
    big = pa.table({"x": pa.array([*range(200_000), 2**63], pa.uint64())})
    with pytest.raises(tfr.errors.EncodeError) as caught:
        tfr.write_tfrecord(big, tmp_path / "a")
    assert caught.value.record == 200_000


@pytest.mark.parametrize(
    ("type_", "keywords", "message"),
    [
        (pa.list_(pa.list_(pa.int8())), {}, None),
        (pa.list_(pa.list_(pa.int8())), {"record_type": "sequence_example"}, None),
        (pa.list_(pa.list_(pa.int8())), {"schema": {"x": tfr.tensor("int8", (2, 2))}}, None),
        (pa.list_(pa.list_(pa.string())), {"schema": {"x": tfr.tensor("int8", (2, 2))}}, "cannot be converted"),
        (pa.string(), {"schema": {"y": "int64"}}, "the schema names a column"),
        (pa.map_(pa.string(), pa.int8()), {}, None),
        (pa.list_(pa.list_(pa.decimal128(5, -39))), {}, "cannot be written as text"),
        (pa.int8(), {"record_type": "bytes"}, "one binary column"),
        (pa.int8(), {"column_encoding": {"y": "raw"}}, "does not have this column"),
        (pa.int8(), {"column_encoding": {"x": "jpeg"}}, "jpeg"),
        (pa.int8(), {}, None),
    ],
)
def test_columns_are_checked_as_by_a_writer(
    type_: pa.DataType, keywords: dict[str, Any], message: str | None, tmp_path: Path
) -> None:
    schema = pa.schema([("x", type_)])
    options = WriteOptions.from_keywords(keywords)
    if message is None:
        check_columns(schema, options)
        return
    with pytest.raises((ValueError, TypeError), match=message) as found:
        check_columns(schema, options)
    with pytest.raises(type(found.value), match=re.escape(str(found.value))):
        tfr.write_tfrecord(pa.table([pa.array([None], type_)], schema=schema), tmp_path / "a.tfrecord", **keywords)


@pytest.mark.parametrize(
    ("path", "keywords"),
    [
        ("new/", {}),
        ("one.tfrecord", {"write_index": True}),
        ("some@2", {}),
        ("folders/", {"partition_by": "x"}),
        ("growing/", {"mode": "append", "write_index": ["x"]}),
    ],
)
def test_a_relative_path_is_that_of_the_working_directory_in_which_it_was_opened(
    path: str, keywords: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    writer, records = tfr.open_writer(path, **keywords), tfr.RecordWriter("records.tfrecord")
    monkeypatch.chdir(tmp_path / "there")
    with writer, records:
        writer.write({"x": [1, 2], "y": [3, 4]})
        records.write(b"record")
    assert not list((tmp_path / "there").iterdir())
    assert writer.report.path == path
    monkeypatch.chdir(tmp_path / "here")
    assert tfr.read_table(path)["y"].to_pylist() == [3, 4]
    assert {file.path for file in writer.report.files} == set(tfr.dataset(path).files)
    assert list(tfr.RecordReader("records.tfrecord")) == [b"record"]


def test_records_of_a_later_write_are_numbered_in_all(tmp_path: Path) -> None:
    writer = tfr.open_writer(tmp_path / "a.tfrecord")
    writer.write({"x": [1, 2, 3]})
    with pytest.raises(tfr.errors.EncodeError, match="record 4: feature 'x': an integer is outside the range of int64"):
        writer.write({"x": [4, 2**70]})
    writer.discard()
