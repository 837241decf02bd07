"""Columns of numbers are compared with numbers of any type as Python compares them."""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.read.row_filter import RowFilter

INTEGERS = [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.uint64()]
DECIMALS = [pa.decimal128(3, 0), pa.decimal128(9, 2), pa.decimal128(38, 10), pa.decimal256(60, 5)]
FLOATS = [pa.float32(), pa.float64()]
TYPES = st.sampled_from([*INTEGERS, *DECIMALS, *FLOATS])
EDGES = [0, 1, -1, 2**24 + 1, 2**53, 2**53 + 1, 2**60 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**53) - 1]
NUMBERS = st.one_of(
    st.sampled_from(EDGES),
    st.integers(-300, 300),
    st.sampled_from([0.1, 1.5, -0.25, 2.0**60, 1e300, -1e300, math.inf, -math.inf, math.nan, 128.0]),
    st.floats(),
    st.sampled_from([Decimal("0.1"), Decimal("1.50"), Decimal("-0.001"), Decimal(10**30), Decimal("9.99")]),
    st.decimals(-1000, 1000, places=3),
)
OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def values_of(type_: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a column, many near the numbers that it is compared with."""
    if pa.types.is_integer(type_):
        info = np.iinfo(type_.to_pandas_dtype())
        low, high = int(info.min), int(info.max)
        return st.sampled_from([n for n in EDGES if low <= n <= high]) | st.integers(low, high)
    if pa.types.is_decimal(type_):
        most = 10**type_.precision - 1
        units = [0, 1, -1, most, -most, *(n for n in (10, 150, 999, 10**9, 10**30) if n <= most)]
        return st.sampled_from(units).map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -type_.scale)))
    width = type_.bit_width
    near = st.sampled_from([0.0, 0.1, 1.5, 2.0**24, 2.0**53, 2.0**53 + 2, 2.0**60, math.inf, -math.inf, math.nan])
    return near | st.floats(width=width)


def number(value: Any, type_: pa.DataType) -> Any:
    """A number for Python, compared with a column of a type.

    Floats are as they are written among decimals, and the nearest float of the column's type among floats, as decimals
    are that are not integers.
    """
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return value
    if pa.types.is_floating(type_) and (isinstance(value, float) or Fraction(value).denominator != 1):
        with np.errstate(over="ignore"):
            near = float(type_.to_pandas_dtype()(float(value)))
        return Fraction(value if math.isinf(near) else near)
    if isinstance(value, float) and pa.types.is_decimal(type_) and not value.is_integer():
        return Fraction(repr(value))
    return Fraction(value)


def neighbours(value: Any, type_: pa.DataType) -> list[Any]:
    """Numbers next to a value of a column: integers, and what is between it and the next values of its type."""
    if value is None or not math.isfinite(value):
        return []
    near = [math.floor(value) + step for step in (-2, -1, 0, 1, 2)]
    if not pa.types.is_floating(type_):
        return [*near, *map(Decimal, near), value]
    float_type = type_.to_pandas_dtype()
    with np.errstate(over="ignore"):
        others = [float(np.nextafter(float_type(value), float_type(end))) for end in (-math.inf, math.inf)]
    between = [(Fraction(value) + Fraction(other)) / 2 for other in others if math.isfinite(other)]
    return [*near, value, *others, *(math.floor(number) + step for number in between for step in (-1, 0, 1))]


def literals(values: list[Any], type_: pa.DataType) -> st.SearchStrategy[Any]:
    """What a column with these values is compared with: any number, or a neighbour of a value."""
    near = [number for value in values for number in neighbours(value, type_)]
    return NUMBERS | st.sampled_from(near) if near else NUMBERS


def rows(column: pa.Array, filters: Any) -> list[int]:
    batch = pa.RecordBatch.from_arrays([column, pa.StructArray.from_arrays([column], ["x"])], ["x", "s"])
    mask = RowFilter.for_schema(filters, batch.schema).mask(batch)
    return [row for row, passes in enumerate(mask.to_pylist()) if passes]


@given(data=st.data(), type_=TYPES, symbol=st.sampled_from([*OPERATORS]))
def test_numbers_are_compared_exactly(data: st.DataObject, type_: pa.DataType, symbol: str) -> None:
    values = data.draw(st.lists(st.none() | values_of(type_), min_size=1, max_size=6))
    literal = data.draw(literals(values, type_))
    column = pa.array(values, type_, from_pandas=False)
    other = number(literal, type_)
    expected = [
        row
        for row, value in enumerate(column.to_pylist())
        if value is not None and OPERATORS[symbol](number(value, type_), other)
    ]
    assert rows(column, [("x", symbol, literal)]) == expected


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("type_", "power"),
    [
        *((pa.float32(), power) for power in (23, 24, 25, 40, 62)),
        *((pa.float64(), power) for power in (52, 53, 54, 62)),
    ],
)
def test_integers_are_compared_exactly_with_the_floats_next_to_them(type_: pa.DataType, power: int, sign: int) -> None:
    """Floats that follow each other, of which integers are between two, and are rounded to one of them."""
    float_type = type_.to_pandas_dtype()
    values = [float_type(2.0**power)]
    for _ in range(3):
        values = [np.nextafter(values[0], float_type(0)), *values, np.nextafter(values[-1], float_type(math.inf))]
    column = pa.array([sign * float(value) for value in values], type_)
    numbers = column.to_pylist()
    for literal in {int(near) for value in numbers[2:5] for near in neighbours(value, type_)}:
        for symbol, compare in OPERATORS.items():
            expected = [row for row, value in enumerate(numbers) if compare(Fraction(value), literal)]
            assert rows(column, [("x", symbol, literal)]) == expected, (symbol, literal)


@given(data=st.data(), type_=TYPES)
def test_members_are_compared_exactly(data: st.DataObject, type_: pa.DataType) -> None:
    values = data.draw(st.lists(st.none() | values_of(type_), min_size=1, max_size=6))
    members = data.draw(st.lists(st.none() | literals(values, type_).filter(lambda n: n == n), max_size=4))
    column = pa.array(values, type_, from_pandas=False)
    others = [None if each is None else number(each, type_) for each in members]
    found = [
        row
        for row, value in enumerate(column.to_pylist())
        if (None if value is None else number(value, type_)) in others
    ]
    assert rows(column, [("x", "in", members)]) == found
    assert rows(column, [("x", "not in", members)]) == [row for row in range(len(column)) if row not in found]


@example(2**60 + 1)
@given(st.integers(-(2**63), 2**63 - 1))
def test_fields_of_structs_and_swapped_sides_are_compared_exactly(value: int) -> None:
    import pyarrow.compute as pc

    column = pa.array([value, None], pa.int64())
    literal = pc.scalar(float(value))
    is_below = value < float(value)
    assert rows(column, pc.field("s", "x") < literal) == [0] * is_below
    assert rows(column, literal > pc.field("x")) == [0] * is_below
    assert rows(column, ~(literal == pc.field("x"))) == [0] * (value != float(value))


def test_categories_of_numbers_are_compared_exactly() -> None:
    column = pa.array([2**60 + 1, 2**60, None]).dictionary_encode()
    assert rows(column, [("x", "==", float(2**60))]) == [1]
    assert rows(column, [("x", ">", Decimal("1152921504606846976.5"))]) == [0]


@pytest.mark.parametrize("value", [True, "1"])
def test_bools_and_text_are_no_numbers(value: Any) -> None:
    import tfrecord_io as tfr

    with pytest.raises(tfr.errors.SchemaError):
        rows(pa.array([1.5]), [("x", "==", value)])


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("zero", [0, 0.0, -0.0, Decimal(0)])
def test_both_zeros_are_members_where_one_is(tmp_path: Path, type_: pa.DataType, zero: Any) -> None:
    table = pa.table({"f": pa.array([0.0, -0.0, 1.0, None], type_), "id": range(4)})
    tfr.write_tfrecord(table, tmp_path / "a")
    for index in (False, True):
        if index:
            tfr.build_index(tmp_path / "a", columns=["f"])
        for condition, found in {
            ("==", zero): [0, 1],
            ("in", (zero,)): [0, 1],
            ("in", (zero, None)): [0, 1, 3],
            ("not in", (zero,)): [2, 3],
            ("in", (1,)): [2],
        }.items():
            assert tfr.read_table(tmp_path / "a", filters=[("f", *condition)])["id"].to_pylist() == found, condition
