"""Declared types on write: what is read back has the values of the source, or the write names column and row."""

from __future__ import annotations

import datetime as dt
import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import types as t

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.columns.arrow.input.schema_cast import cast_columns
from tfrecord_io.errors import EncodeError, SchemaError

ZONE = "+02:00"
OFFSETS_AS_ZONES = pytest.mark.skipif(int(pa.__version__.split(".")[0]) < 22, reason="pyarrow 22 converts such zones")
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
DECIMALS = [pa.decimal32(5, 2), pa.decimal64(12, 3), pa.decimal128(20, 2), pa.decimal128(10, 0), pa.decimal256(50, 10)]
TEMPORAL = [
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC", ZONE)),
    *map(pa.duration, UNITS),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.date32(), pa.date64()),
]
TEXTS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(2)]
TYPES = [pa.bool_(), *INTEGERS, *FLOATS, *DECIMALS, *TEMPORAL, *TEXTS]

DAY = 86_400
INTEGER_EDGES = [0, 1, 2, 7, -1, 127, 300, 2047, 2049, 2**24 + 1, 2**53 + 1, 2**63 - 1, -(2**63), 90_000, DAY * 1000]
TIMES = [*INTEGER_EDGES, DAY, DAY * 10**3, DAY * 10**6, DAY * 10**9, DAY * 10**9 + 1, DAY // 2, 22 * 3600]
SPELLINGS = [
    "",
    "a",
    "1",
    "01",
    "1.0",
    "0.1",
    "1e3",
    "1e39",
    "-1e400",
    "nan",
    "inf",
    "true",
    "False",
    "2020-02-29",
    "aa",
]
INSTANTS = ["2020-01-01 00:00:00", "2020-01-01T12:30:00.5", "2020-01-01 00:00:00+0200", "é", "9999-12-31", "70000"]


def numbers(type_: pa.DataType) -> st.SearchStrategy[Any]:
    """Raw numbers that Arrow holds as this type."""
    bits = type_.bit_width
    unsigned = t.is_unsigned_integer(type_)
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if t.is_time(type_):
        low, high = 0, DAY * UNITS[type_.unit] - 1
    edges = [number for number in TIMES if low <= number <= high]
    return st.sampled_from(edges) | st.integers(low, high) | st.integers(max(low, -100), min(high, 100))


def values(type_: pa.DataType) -> st.SearchStrategy[Any]:
    if t.is_boolean(type_):
        return st.booleans()
    if t.is_floating(type_):
        width = type_.bit_width
        edges = [0.0, -0.0, 0.5, 2.0, 300.0, 2.0**15, math.inf, math.nan, *([2.0**53, 2.0**63] if width > 16 else [])]
        return st.sampled_from(edges) | st.floats(width=width) | st.integers(-300, 300).map(float)
    if t.is_decimal(type_):
        most = 10 ** min(type_.precision, 28) - 1
        unscaled = st.integers(-most, most) | st.integers(-500, 500)
        return unscaled.map(lambda number: Decimal(number).scaleb(-type_.scale))
    if t.is_fixed_size_binary(type_):
        return st.binary(min_size=2, max_size=2) | st.just(b"12")
    if t.is_string(type_) or t.is_large_string(type_):
        return st.sampled_from(SPELLINGS + INSTANTS) | st.text(max_size=3) | st.integers(-300, 300).map(str)
    if t.is_binary(type_) or t.is_large_binary(type_):
        return st.sampled_from([*map(str.encode, SPELLINGS), b"\xff"]) | st.binary(max_size=3)
    return numbers(type_)


def array_of(type_: pa.DataType, rows: list[Any]) -> pa.Array:
    if t.is_date64(type_):  # any number of ms, also those that are not midnight
        return pa.array(rows, pa.int64()).view(type_)
    if t.is_temporal(type_):
        return pa.array(rows, pa.int64() if type_.bit_width == 64 else pa.int32()).view(type_)
    if t.is_float16(type_):
        return pa.array([None if row is None else np.float16(row) for row in rows], type_)
    return pa.array(rows, type_)


def meaning(array: pa.Array) -> list[Any]:
    """What the values stand for: numbers and seconds as fractions, NaN and infinity by name, all else as bytes."""
    type_ = array.type
    if t.is_temporal(type_):
        raw = array.view(pa.int64() if type_.bit_width == 64 else pa.int32()).to_pylist()
        unit = Fraction(1, DAY) if t.is_date32(type_) else 1000 if t.is_date64(type_) else UNITS[type_.unit]
        return [None if row is None else Fraction(row) / unit for row in raw]
    return [None if row is None else _meaning(row) for row in array.to_pylist()]


def _meaning(value: Any) -> Any:
    if isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else value
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        return str(float(value))
    return Fraction(value) if isinstance(value, Decimal | int) else Fraction(float(value))


def nearest(number: Any, type_: pa.DataType) -> Any:
    """A number as the nearest of a float or decimal type, or itself where the type has it."""
    if isinstance(number, str):
        return number
    if t.is_decimal(type_):
        return Fraction(round(number * 10**type_.scale), 10**type_.scale)
    if not t.is_floating(type_):
        return number
    with np.errstate(over="ignore"):
        return _meaning(np.dtype(f"f{type_.bit_width // 8}").type(number.numerator / number.denominator))


def is_same(before: Any, after: Any, source: pa.DataType, target: pa.DataType, raw: Any) -> bool:
    """Whether `after` of the type `target` is `before` of the type `source`, or can be turned back into it."""
    if before is None or after is None:
        return before is after
    numeric = [t.is_boolean(x) or t.is_integer(x) or t.is_floating(x) or t.is_decimal(x) for x in (source, target)]
    if all(numeric):
        if t.is_floating(source) and t.is_floating(target):
            return bool(after == nearest(before, target))
        return bool(
            before == after or (nearest(after, source) == before and t.is_floating(source) + t.is_floating(target))
        )
    if isinstance(before, bytes) and isinstance(after, bytes):
        return before == after
    if isinstance(before, bytes):
        return _is_parsed(before.decode(), after, target)
    if isinstance(after, bytes):
        back = pa.array([after.decode()]).cast(source) if not t.is_time(source) else None
        return _is_time(after.decode(), before) if back is None else meaning(back)[0] == before
    if any(numeric):  # the numbers behind times
        scale = {"date32[day]": Fraction(1, DAY), "date64[ms]": 1000}
        of = target if numeric[0] else source
        return before * (1 if numeric[0] else scale.get(str(of)) or UNITS[of.unit]) == after * (
            1 if numeric[1] else scale.get(str(of)) or UNITS[of.unit]
        )
    if t.is_date(target) and t.is_timestamp(source) and source.tz == ZONE:
        return bool(before + 2 * 3600 == after)
    return bool(before == after)


def _is_parsed(text: str, after: Any, target: pa.DataType) -> bool:
    if t.is_boolean(target):
        return after == (text in ("true", "True"))
    if t.is_integer(target):
        return text == str(after)
    if t.is_temporal(target):
        instant = dt.datetime.fromisoformat(text)
        instant = instant if instant.tzinfo else instant.replace(tzinfo=dt.UTC)
        return bool(Fraction(instant.timestamp()) == after)
    number = float(text) if "n" in text.lower() else Fraction(int(text, 16)) if "x" in text.lower() else Fraction(text)
    return bool(after == (_meaning(number) if isinstance(number, float) else nearest(number, target)))


def _is_time(text: str, seconds: Fraction) -> bool:
    hours, minutes, rest = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + Fraction(rest) == seconds


@settings(max_examples=rounds(3000))
@given(data=st.data())
def test_values_read_back_are_those_of_the_source_or_refused(
    new_folder: Callable[[], Path], data: st.DataObject
) -> None:
    tmp_path = new_folder()
    source, target = data.draw(st.sampled_from(TYPES)), data.draw(st.sampled_from(TYPES))
    rows = data.draw(st.lists(st.none() | values(source), min_size=1, max_size=3))
    array, path = array_of(source, rows), tmp_path / "x.tfrecord"
    refused = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tfr.errors.PrecisionWarning)
            tfr.write_tfrecord(pa.table({"x": array}), path, schema={"x": tfr.scalar(target)}, float64="raw")
    except (EncodeError, SchemaError) as error:
        refused = error
    if refused is not None:
        assert refused.feature == "x"
        assert refused.record is None or rows[refused.record] is not None
        return
    found = tfr.read_table(path)["x"].combine_chunks().cast(target)
    for row, (before, after) in enumerate(zip(meaning(array), meaning(found), strict=True)):
        assert is_same(before, after, source, target, rows[row]), (array[row], found[row])


@pytest.mark.fault(72)
@pytest.mark.parametrize(
    ("array", "declared", "row"),
    [
        (pa.array([DAY, DAY + 1], pa.timestamp("s")), pa.date32(), 1),
        (pa.array([0, 1], pa.timestamp("ns", "UTC")), pa.date64(), 1),
        (pa.array([0, 1000, 1], pa.timestamp("ms")), pa.timestamp("s"), 2),
        (pa.array([0, 2**62], pa.timestamp("s")), pa.timestamp("ns"), 1),
        (pa.array([DAY], pa.timestamp("s")), pa.time32("s"), None),
        (pa.array([0, 1], pa.duration("ns")), pa.duration("us"), 1),
        (pa.array([0, 1], pa.time64("ns")), pa.time32("s"), 1),
        (pa.array([0, DAY], pa.int32()), pa.time32("s"), 1),
        (pa.array([0, 5], pa.int64()), pa.date64(), 1),
        (pa.array([1, 0, 2, 7]), pa.bool_(), 2),
        (pa.array([1.0, 0.5]), pa.bool_(), 1),
        (pa.array([1.0, 0.5]), pa.int64(), 1),
        (pa.array([1.0, 0.5]), pa.decimal128(10, 0), 1),
        (pa.array([1, 2**53 + 1]), pa.float64(), 1),
        (pa.array([2048, 2049], pa.int16()), pa.float16(), 1),
        (pa.array([1, -1]), pa.uint64(), 1),
        (pa.array([999, 1000]), pa.decimal128(3, 0), 1),
        (pa.array([[9], [-9, 10]]), pa.list_(pa.decimal32(3, 2)), 1),
        (pa.array([[1], [2, 300]]), pa.list_(pa.int8()), 1),
        (pa.array([Decimal("1.50"), Decimal("1.25")]), pa.decimal128(10, 1), 1),
        (pa.array([Decimal("1.50"), Decimal("0.12345678901234567890")]), pa.float64(), 1),
        (pa.array(["1", "1e39"]), pa.float32(), 1),
        *((pa.array(["0", text]), pa.int64(), 1) for text in ("007", "-0", "0x1F", "+5")),
        (pa.array([b"7", b"07"]), pa.uint8(), 1),
        *((pa.array(["true", text]), pa.bool_(), 1) for text in ("TRUE", "1", "False")),
        *((pa.array(["0.1", text]), pa.float64(), 1) for text in ("0.10", "1e3", ".5", "0.10000000000000001")),
        (pa.array(["0.5", "0.123456789"]), pa.float32(), 1),
        (pa.array(["0.1", "-0.0"]), pa.decimal128(10, 2), 1),
        *((pa.array([0.0, -0.0]), declared, 1) for declared in (pa.int8(), pa.bool_(), pa.decimal128(10, 2))),
        (pa.array([0, 1], pa.timestamp("s", "Asia/Tokyo")), pa.timestamp("s"), None),
        (pa.array([0, 1], pa.timestamp("s", ZONE)), pa.timestamp("ms"), None),
        (pa.array([0, 1], pa.timestamp("s")), pa.timestamp("s", "Asia/Tokyo"), None),
        (pa.array([0, 1], pa.date32()), pa.timestamp("s", "Asia/Tokyo"), None),
        (pa.array([0, 2**31 - 1], pa.date32()), pa.string(), 1),
        (pa.array([[1, 0], [2]]), pa.list_(pa.bool_()), 1),
        (pa.array([{"a": 1}, {"a": 2}]), pa.struct([("a", pa.bool_())]), 1),
        (pa.array([{"a": 1, "b": 2}]), pa.struct([("a", pa.int64())]), None),
        (pa.array([1, 2]).dictionary_encode(), pa.bool_(), 1),
        (pa.array([[1, 0], [1, 2]]), tfr.tensor("bool", (2,)), None),
        (pa.array([[1.0, 0.0], [1.0, 2049.5]]), tfr.tensor("int16", (2,)), 1),
    ],
    ids=lambda value: str(value.type if isinstance(value, pa.Array) else value),
)  # fmt: skip
def test_a_loss_names_the_row_and_both_types(tmp_path: Path, array: pa.Array, declared: Any, row: int | None) -> None:
    is_type = isinstance(declared, pa.DataType)
    schema = pa.schema([("x", declared)]) if is_type else {"x": declared}
    with pytest.raises(EncodeError, match="'x'") as caught:
        tfr.write_tfrecord(pa.table({"x": array}), tmp_path / "x.tfrecord", schema=schema)
    assert (caught.value.feature, caught.value.record) == ("x", row)
    assert caught.value.advice
    assert not (tmp_path / "x.tfrecord").exists()


@pytest.mark.parametrize(
    ("array", "declared"),
    [
        (pa.array([[1], [300]])[:1], pa.list_(pa.int8())),
        (pa.array([[300], [1], [2, 3], [300]])[1:3], pa.large_list(pa.int8())),
        (pa.ListArray.from_arrays([0, 1, 2], [300, 1], mask=pa.array([True, False])), pa.list_(pa.int8())),
        (pa.array([{"a": [1]}, {"a": [300]}])[:1], pa.struct([("a", pa.list_(pa.int8()))])),
        (pa.array([[("a", 1)], [("b", 300)]], pa.map_(pa.string(), pa.int64()))[:1], pa.map_(pa.string(), pa.int8())),
    ],
    ids=lambda value: str(value.type if isinstance(value, pa.Array) else value),
)
def test_values_of_lists_that_no_row_has_may_have_any_value(array: pa.Array, declared: pa.DataType) -> None:
    """Arrow casts the values outside a slice and under nulls, too, and refused the column for one of them."""
    (made,) = cast_columns(pa.record_batch({"x": array}), pa.schema([("x", declared)]))
    assert (made.type, made.to_pylist()) == (declared, array.to_pylist())


@pytest.mark.parametrize(
    ("array", "declared"),
    [
        (pa.array([DAY * 10**6, None, 0], pa.timestamp("us")), pa.date32()),
        pytest.param(pa.array([-7200 + DAY], pa.timestamp("s", ZONE)), pa.date32(), marks=OFFSETS_AS_ZONES),
        (pa.array([1, 0, None]), pa.bool_()),
        (pa.array([-999, None, 999]), pa.decimal128(3, 0)),
        (pa.array([255, None], pa.uint8()), pa.decimal32(5, 2)),
        (pa.array([[9], None, [-9, None]]), pa.list_(pa.decimal64(3, 2))),
        (pa.array([{"a": 1, "b": 0.5}]), pa.struct([("a", pa.decimal128(2, 0)), ("b", pa.decimal128(2, 1))])),
        (pa.array([3.0, math.nan, None]), pa.float32()),
        (pa.array([0.1, 2.5], pa.float32()), pa.decimal128(20, 10)),
        (pa.array([Decimal("3.10")]), pa.float64()),
        (pa.array([Decimal("3.10")], pa.decimal32(5, 2)), pa.decimal256(50, 10)),
        (pa.array([Decimal("3.00")], pa.decimal64(12, 2)), pa.int64()),
        (pa.array([1, 2], pa.time32("s")), pa.string()),
        (pa.array([2.0**60, -(2.0**63)]), pa.int64()),
        (pa.array([{"a": 1}]), pa.struct([("a", pa.int8()), ("b", pa.string())])),
        (pa.array([["1"], None, []]), pa.list_(pa.float32())),
        (pa.array(["1.0", None, "-0.0", "nan", "1e+300", "-inf"]), pa.float64()),
        (pa.array(["0.1", "1.5", "100"]), pa.float32()),
        (pa.array(["-7", "0"]), pa.int8()),
        (pa.array(["true", "false"]), pa.bool_()),
        (pa.array(["True", "False"]), pa.bool_()),
        (pa.array(["0.10", "12.00", "-3.5", "7", "0.100"]), pa.decimal128(10, 2)),
        (pa.array([0, None], pa.timestamp("s", "UTC")), pa.timestamp("ms")),
        (pa.array([0, None], pa.timestamp("s")), pa.timestamp("ms", "UTC")),
        (pa.array([0, None], pa.timestamp("s", "Asia/Tokyo")), pa.timestamp("s", "UTC")),
    ],
    ids=lambda value: str(value.type if isinstance(value, pa.Array) else value),
)
def test_a_cast_that_can_be_reversed_is_done(array: pa.Array, declared: pa.DataType) -> None:
    (made,) = cast_columns(pa.record_batch({"x": array}), pa.schema([("x", declared)]))
    assert (made.type, made.null_count) == (declared, array.null_count)


def test_rounding_to_a_declared_float16_is_reported(tmp_path: Path) -> None:
    path, data, schema = tmp_path / "x.tfrecord", {"x": np.array([0.5, 0.1, 0.2], "f4")}, {"x": tfr.scalar("float16")}
    with pytest.warns(tfr.errors.PrecisionWarning, match=r"float16.*'x' \(2 values\)"):
        assert tfr.write_tfrecord(data, path, schema=schema).rounded == {"x": 2}
    with pytest.raises(EncodeError, match="float16") as caught:
        tfr.write_tfrecord(data, path, schema=schema, float64="error")
    assert caught.value.record == 1
