"""Reading with a given schema: columns, order, casts, missing values and values that do not fit."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import blobs, example, floats, int64s, written
from strategies import sequence_example

EMPTY = b"\x1a\0"  # an Int64List without values


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = [
        example(i=int64s(1), f=floats(0.5), s=blobs(b"a"), v=int64s(1, 2)),
        example(i=int64s(0), s=blobs(b"b"), v=b""),
        example(f=floats(1.5), i=int64s(1), v=int64s(3, 4)),
    ]
    return written(tmp_path / "a", rows)


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("s", pa.string()), ("i", pa.int8())]),
        {"s": pa.string(), "i": pa.int8()},
        {"s": "string", "i": "int8"},
        tfr.Schema.parse({"s": "string", "i": "int8"}),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_schema_determines_columns_order_and_types(engine: str, path: Path, schema: Any, threads: int) -> None:
    table = tfr.read_table(tfr.dataset(path, threads=threads), schema=schema)
    assert table.schema == pa.schema([("s", pa.string()), ("i", pa.int8())])
    assert table.to_pydict() == {"s": ["a", "b", None], "i": [1, 0, 1]}
    with tfr.open_reader(tfr.dataset(path, threads=threads), schema=schema) as reader:
        assert reader.report.schema_source == "schema="
        assert reader.read_all() == table


def test_a_column_that_no_record_has_is_null(engine: str, path: Path) -> None:
    with pytest.warns(tfr.errors.SchemaWarning, match="2 declared columns occur in none of 3 records: 'gone', 'lists'"):
        table = tfr.read_table(path, schema={"gone": "int64", "i": "int64", "lists": pa.list_(pa.string())})
    assert table["gone"].null_count == table["lists"].null_count == 3
    assert table.schema.types == [pa.int64(), pa.int64(), pa.list_(pa.string())]


def test_columns_select_from_a_schema(engine: str, path: Path) -> None:
    schema = {"i": "int64", "gone": tfr.scalar("int64", required=False), "s": "string"}
    assert tfr.read_table(path, schema=schema, columns=["s", "i"]).column_names == ["s", "i"]
    assert tfr.read_table(path, schema=schema, columns=["!s"]).column_names == ["i", "gone"]
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="'v'"):
        tfr.read_table(path, schema=schema, columns=["v"])


def test_values_are_cast_to_the_types_declared(engine: str, path: Path) -> None:
    schema = {
        "i": pa.bool_(),
        "f": pa.float64(),
        "s": pa.dictionary(pa.int8(), pa.string()),
        "v": pa.list_(pa.timestamp("s", "UTC"), 2),
    }
    table = tfr.read_table(path, schema=schema)
    assert table.schema.types == list(schema.values())
    assert table["i"].to_pylist() == [True, False, True]
    assert table["f"].to_pylist() == [0.5, None, 1.5]
    assert table["s"].to_pylist() == ["a", "b", None]
    assert table["v"].to_pylist()[0] == [dt.datetime.fromtimestamp(n, dt.UTC) for n in (1, 2)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("type_", "bad"),
    [("int8", 128), ("uint8", -1), ("uint64", -1), ("bool", 2), ("int32", 2**31), ("time32[s]", 86_400)],
)
def test_a_value_out_of_range_names_record_and_feature(
    engine: str, tmp_path: Path, type_: str, bad: int, threads: int
) -> None:
    path = written(tmp_path / "a", [example(x=int64s(1))] * 3 + [example(x=int64s(bad))] + [example(x=int64s(0))])
    kind = pa.time32("s") if type_.startswith("time") else type_
    with pytest.raises(tfr.errors.DecodeError, match=r"record 3\b.*feature 'x': the value is not a valid") as caught:
        tfr.read_table(tfr.dataset(path, threads=threads), schema={"x": kind})
    error = caught.value
    assert error.got == bad
    assert str(bad) not in str(error).partition("feature 'x'")[2]
    assert (error.path, error.record, error.feature, error.records_intact) == (str(path), 3, "x", 3)
    reader = tfr.open_reader(tfr.dataset(path, threads=threads), schema={"x": kind})
    assert len(next(reader)) == 3
    with pytest.raises(tfr.errors.DecodeError):
        next(reader)
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        assert tfr.read_table(tfr.dataset(path, threads=threads), schema={"x": kind}, on_error="stop").num_rows == 3


@pytest.mark.fault(43)
@pytest.mark.parametrize("kind", ["string", pa.list_(pa.binary())])
def test_another_kind_than_declared_is_a_feature_type_error(engine: str, tmp_path: Path, kind: Any) -> None:
    path = written(tmp_path / "a", [example(), example(x=int64s(1))])
    with pytest.raises(tfr.errors.FeatureTypeError) as caught:
        tfr.read_table(path, schema={"x": kind})
    error = caught.value
    assert (error.feature, error.record, error.got, error.records_intact) == ("x", 1, "INT64", 1)
    assert error.expected == "BYTES"
    assert isinstance(error, TypeError)


@pytest.mark.parametrize(
    ("values", "count", "advice"),
    [
        (int64s(1, 2), 2, "declare the feature as a list: tfr.list_"),
        (EMPTY, 0, r"; declare it with tfr.scalar\(…, empty='null'\) to read null, or declare it as a list"),
    ],
    ids=["several", "none"],
)
def test_the_number_of_values_of_a_declared_scalar(
    engine: str, tmp_path: Path, values: bytes, count: int, advice: str
) -> None:
    path = written(tmp_path / "a", [example(x=int64s(1)), example(x=values)])
    with pytest.raises(tfr.errors.DecodeError, match="expected exactly 1 value") as caught:
        tfr.read_table(path, schema={"x": tfr.scalar("int64", required=False)})
    error = caught.value
    assert (error.record, error.expected, error.got) == (1, 1, count)
    assert re.search(advice, str(error))
    assert "sample=" not in str(error)


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (partial(tfr.scalar, "int64"), int64s(1)),
        (partial(tfr.scalar, "bool", default=True), int64s(0)),
        (partial(tfr.scalar, "float64"), floats(0.5)),
        (partial(tfr.scalar, pa.dictionary(pa.int8(), pa.string())), blobs(b"a")),
        (partial(tfr.scalar, pa.struct([("y", pa.int64())])), int64s(3)),
        (partial(tfr.scalar, "string"), blobs(b"a")),
        (partial(tfr.scalar, "binary"), blobs(b"")),
        (partial(tfr.list_, "int64"), int64s(1, 2)),
        (partial(tfr.list_, "int64", 2, default=7), int64s(1, 2)),
        (partial(tfr.list_, "float32", encoding="raw"), blobs(b"\0" * 8)),
        (tfr.image, blobs(b"a")),
        (partial(tfr.tensor, "int64", (2,)), int64s(1, 2)),
        (partial(tfr.tensor, "uint8", (None, 2)), blobs(b"abcd")),
    ],
    ids=lambda value: getattr(getattr(value, "func", value), "__name__", ""),
)
@pytest.mark.parametrize("threads", [1, 2])
def test_empty_null_reads_no_values_as_an_absent_feature(
    engine: str, tmp_path: Path, make: Any, values: bytes, threads: int
) -> None:
    field = make(empty="null", required=False)
    name = "x/y" if pa.types.is_struct(field.type) else "x"
    none = values[:1] + b"\0"  # the type, and a list without values
    rows = [none, values, none, b"", values, none, none, values]
    present = written(tmp_path / "a", [example(**{name: row}, z=int64s(1)) for row in rows])
    absent = written(
        tmp_path / "b", [example(**({name: values} if row == values else {}), z=int64s(1)) for row in rows]
    )
    table = tfr.read_table(tfr.dataset(present, threads=threads), schema={"x": field, "z": "int64"})
    assert table == tfr.read_table(
        tfr.dataset(absent, threads=threads), schema={"x": make(required=False), "z": "int64"}
    )
    assert "tfrecord_io.empty" not in str(table.schema)
    if field.default is None and name == "x":
        with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"record 0.*'x'"):
            tfr.read_table(present, schema={"x": make(empty="null", required=True)})


def test_empty_null_still_checks_the_type(engine: str, tmp_path: Path) -> None:
    schema = {"x": tfr.scalar("int64", required=False, empty="null")}
    path = written(tmp_path / "a", [example(x=EMPTY), example(x=b"\x12\0")])  # a list without values has no type
    assert tfr.read_table(path, schema=schema)["x"].to_pylist() == [None, None]
    path = written(tmp_path / "b", [example(x=EMPTY), example(x=floats(1))])
    with pytest.raises(tfr.errors.FeatureTypeError, match=r"record 1.*expected an Int64List, got a FloatList"):
        tfr.read_table(path, schema=schema)


def test_empty_null_by_schema_overrides(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=EMPTY, y=int64s(1)), example(x=int64s(3), y=int64s(1))])
    assert tfr.read_table(path)["x"].to_pylist() == [[], [3]]
    overrides = {"x": tfr.scalar("int64", empty="null")}
    assert tfr.read_table(tfr.dataset(path, schema_overrides=overrides))["x"].to_pylist() == [None, 3]


@pytest.mark.fault(48)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_more_or_fewer_values_than_a_fixed_size(engine: str, tmp_path: Path, count: int) -> None:
    rows = [example(x=int64s(1, 2)), example(), example(x=int64s(*range(count)) or b"\x1a\x00")]
    path = written(tmp_path / "a", rows)
    with pytest.raises(tfr.errors.DecodeError) as caught:
        tfr.read_table(path, schema={"x": pa.list_(pa.int64(), 2)})
    error = caught.value
    assert (error.feature, error.record, error.expected, error.got, error.records_intact) == ("x", 2, 2, count, 2)


@pytest.mark.fault(44)
def test_absent_and_kindless_are_null_and_an_error_where_required(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=int64s(1)), example(x=b""), example()])
    assert tfr.read_table(path, schema={"x": "int64"})["x"].to_pylist() == [1, None, None]
    assert tfr.read_table(path)["x"].to_pylist() == [1, None, None]
    with pytest.raises(tfr.errors.FeatureNotFoundError) as caught:
        tfr.read_table(path, schema=pa.schema([pa.field("x", pa.int64(), nullable=False)]))
    assert (caught.value.feature, caught.value.record, caught.value.records_intact) == ("x", 1, 1)
    assert isinstance(caught.value, KeyError)
    assert "record 1" in str(caught.value)


def test_invalid_utf8_for_a_declared_string(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=blobs(b"\x1b[0m")), example(x=blobs(b"\xff"))])
    assert tfr.read_table(path, schema={"x": "string"}, limit=1)["x"].to_pylist() == ["\x1b[0m"]
    with pytest.raises(tfr.errors.DecodeError, match="UTF-8") as caught:
        tfr.read_table(path, schema={"x": "string"})
    assert (caught.value.feature, caught.value.record) == ("x", 1)
    assert tfr.read_table(path, schema={"x": "binary"})["x"].to_pylist() == [b"\x1b[0m", b"\xff"]


@pytest.mark.fault(51)
def test_raw_bytes_of_another_length_than_their_dtype_and_shape(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    tfr.write_tfrecord({"x": [1.5, 2.5]}, path, float64="raw", embed_schema=False)
    plain = tfr.read_table(path, schema="infer")
    assert set(plain.column_names) >= {"x"}
    raw = pa.schema([pa.field("x", pa.float64(), metadata={"tfrecord_io.encoding": "raw"})])
    assert tfr.read_table(path, schema=raw)["x"].to_pylist() == [1.5, 2.5]
    short = written(tmp_path / "b", [example(x=blobs(bytes(8))), example(x=blobs(bytes(7)))])
    with pytest.raises(tfr.errors.DecodeError, match="7") as caught:
        tfr.read_table(short, schema=raw)
    assert (caught.value.feature, caught.value.record, caught.value.records_intact) == ("x", 1, 1)


def test_invalid_schemas_are_refused(engine: str, path: Path) -> None:
    for schema, error in (
        ([("i", "int64")], TypeError),
        ("int64", TypeError),
        ({"i": 5}, TypeError),
        ({"i": "int65"}, tfr.errors.SchemaError),
    ):
        with pytest.raises(error):
            tfr.read_table(path, schema=schema)
    with pytest.raises(ValueError, match="record_type"):
        tfr.read_table(tfr.dataset(path, record_type="bytes"), schema={"i": "int64"})


def test_infer_schema_is_what_reading_would_give(engine: str, path: Path) -> None:
    assert tfr.infer_schema(path).to_arrow() == tfr.read_table(path, schema="infer").schema
    assert tfr.infer_schema(path, columns=["i"]).names == ["i"]
    assert tfr.infer_schema(path, limit=1).field("v").type == pa.list_(pa.int64())


def test_read_metadata(engine: str, path: Path, tmp_path: Path) -> None:
    found = tfr.read_metadata(path)
    assert (found.schema_source, found.schema.names) == ("inferred", ["f", "i", "s", "v"])
    assert (found.bytes, found.records) == (path.stat().st_size, None)
    tfr.write_tfrecord({"n": [1, 2]}, tmp_path / "n.tfrecord.gz")
    found = tfr.read_metadata(tmp_path / "n.tfrecord.gz")
    assert (found.schema_source, found.files[0].compression) == ("embedded", "gzip")
    with pytest.raises(FileNotFoundError):
        tfr.read_metadata(tmp_path / "gone")


def as_text(value: Any) -> Any:
    """Decimals as text, at any depth."""
    if isinstance(value, list):
        return [as_text(item) for item in value]
    if isinstance(value, dict):
        return {name: as_text(item) for name, item in value.items()}
    return None if value is None else str(value)


@pytest.mark.parametrize("text", [True, False], ids=["text", "floats"])
def test_decimals_from_text_and_from_float_lists(engine: str, tmp_path: Path, text: bool) -> None:
    """The Spark connector writes decimals as FloatLists."""

    def values(*numbers: float) -> bytes:
        return blobs(*(f"{number:.2f}".encode() for number in numbers)) if text else floats(*numbers)

    records = [
        sequence_example(
            {"s": values(1.1), "l": values(1.5, -2.25), "f": values(1, 2), "z/d": values(99.99)},
            {"q": [values(0.5), values(2)]},
        ),
        sequence_example({"l": values()}, {}),
        sequence_example({"s": values(-7)}, {"q": []}),
    ]
    money = pa.decimal128(7, 2)
    schema = {
        "s": tfr.scalar(money, default=Decimal("0.50")),
        "l": pa.list_(money),
        "f": pa.list_(money, 2),
        "z": pa.struct([("d", money)]),
        "q": tfr.sequence(money),
    }
    expected = {
        "s": ["1.10", "0.50", "-7.00"],
        "l": [["1.50", "-2.25"], [], None],
        "f": [["1.00", "2.00"], None, None],
        "z": [{"d": "99.99"}, None, None],
        "q": [["0.50", "2.00"], None, []],
    }
    table = tfr.read_table(written(tmp_path / "a", records), schema=schema)
    assert {name: as_text(column) for name, column in table.to_pydict().items()} == expected


def test_decimals_from_values_that_do_not_fit_are_refused(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=int64s(1)), example(x=int64s(1000))])
    with pytest.raises(
        tfr.errors.DecodeError, match=r"record 1: feature 'x': the value is not a valid decimal128\(5, 2\)"
    ):
        tfr.read_table(path, schema={"x": "decimal128(5, 2)"})
    path = written(tmp_path / "b", [example(x=floats(1, 2))])
    with pytest.raises(tfr.errors.DecodeError, match=r"expected exactly 1 value, got 2; .*tfr.list_"):
        tfr.read_table(path, schema={"x": "decimal128(5, 2)"})
    path = written(tmp_path / "c", [example(x=floats(1)), example(x=floats(1e9))])
    with pytest.raises(
        tfr.errors.DecodeError, match=r"record 1: feature 'x': the value is not a valid decimal128\(5, 2\)"
    ):
        tfr.read_table(path, schema={"x": "decimal128(5, 2)"})
