"""Compare columns with numbers and times of other types exactly.

pyarrow would cast the column instead: large integers would be rounded, and a comparison would fail where no decimal has
the digits of both sides. Here all operators compare numbers exactly, whatever their type, with one exception: a float
that is compared with a column of floats of fewer bits is first rounded to these, so that 0.1 equals the 0.1 of a
float32 column.

Tests: tests/columns/arrow/test_type_literals_exact_numbers.py.
"""

from __future__ import annotations

import math
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t


def exact_comparison(function: str, value: pa.Scalar, type_: pa.DataType) -> tuple[str, pa.Scalar | None] | None:
    """An equal comparison of a column of `type_`, whose value has this type: its function and its value.

    None if the comparison with `value` needs no other. If the returned value is None, the column is compared with
    itself, for a result that is the same for all times: no time of its type is as early, or as late. A float that is
    compared with decimals is the number as it is written: 0.1 is a tenth; one that is compared with floats of fewer
    bits is the nearest of these.

    >>> exact_comparison("greater", pa.scalar(1.5), pa.int64())
    ('greater', <pyarrow.Int64Scalar: 1>)
    >>> exact_comparison("equal", pa.scalar(1.5), pa.int8())  # which no value is
    ('less', <pyarrow.Int8Scalar: -128>)
    """
    if value.type == type_ or not value.is_valid or not _is_comparable(value.type, type_):
        return None
    if t.is_floating(type_):
        return _compare_with_float(function, value, type_)
    lowest, highest = _range(type_)
    number = _fraction(value, type_)
    if number is None:  # NaN
        return _constant(function == "not_equal", lowest, type_)
    scaled = number if isinstance(number, float) else number * Fraction(10) ** _scale(type_)
    if scaled > highest or scaled < lowest:
        is_true = function == "not_equal" or function.startswith("less" if scaled > highest else "greater")
        return _constant(is_true, lowest, type_)
    floor, ceil = math.floor(scaled), math.ceil(scaled)
    if function in ("equal", "not_equal") and floor != ceil:
        return _constant(function == "not_equal", lowest, type_)
    return function, _scalar_of(ceil if function in ("less", "greater_equal") else floor, type_)


def exact_members(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Convert numbers or times to `type_`, without values that a column of the type cannot have; None: leave all."""
    if values.type == type_ or not _is_comparable(values.type, type_):
        return None
    if t.is_integer(type_) and t.is_integer(values.type):
        with suppress(pa.ArrowInvalid):
            return values.cast(type_)
    if not t.is_floating(type_):
        compared = filter(None, (exact_comparison("equal", value, type_) for value in values.drop_null()))
        members = [pa.repeat(value, 1) for function, value in compared if function == "equal" and value is not None]
        return pa.concat_arrays([*members, pa.nulls(values.null_count, type_)])
    floats = [(value, _nearest(value, type_)) for value in values.to_pylist()]
    return pa.array([near for value, near in floats if value is None or near is not None], type_)


def _nearest(number: Any, type_: pa.DataType) -> float | None:
    """The float of a type that stands for a number: for an integer exactly, else the nearest, or None."""
    if number is None:
        return None
    with np.errstate(over="ignore"):
        near = float(type_.to_pandas_dtype()(float(number)))
    if isinstance(number, float):
        return None if math.isinf(near) and not math.isinf(number) else near
    is_integer = Fraction(number).denominator == 1
    return None if math.isinf(near) or (is_integer and near != number) else near


def is_number(type_: pa.DataType) -> bool:
    return bool(t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_))


def _is_comparable(own: pa.DataType, type_: pa.DataType) -> bool:
    """True if both are numbers, or both times with a zone, or without."""
    if t.is_timestamp(own) and t.is_timestamp(type_):
        return (own.tz is None) == (type_.tz is None)
    return is_number(own) and is_number(type_)


def _scale(type_: pa.DataType) -> int:
    """The number of digits after the point: of decimals, or of the seconds of times."""
    if t.is_timestamp(type_):
        return {"s": 0, "ms": 3, "us": 6, "ns": 9}[type_.unit]
    return int(type_.scale) if t.is_decimal(type_) else 0


def _range(type_: pa.DataType) -> tuple[int, int]:
    """The least and the largest value; of decimals without their point."""
    if t.is_decimal(type_):
        return 1 - 10**type_.precision, 10**type_.precision - 1
    info = np.iinfo(np.int64 if t.is_timestamp(type_) else type_.to_pandas_dtype())
    return int(info.min), int(info.max)


def _fraction(value: pa.Scalar, type_: pa.DataType) -> Fraction | float | None:
    """The number, or the seconds of a time; an infinite one as a float, None for NaN."""
    if t.is_timestamp(type_):
        return Fraction(value.value, 10 ** _scale(value.type))
    if not t.is_floating(value.type):
        return Fraction(value.as_py())
    number = float(value.as_py())
    if math.isnan(number):
        return None
    if math.isinf(number):
        return number
    if t.is_decimal(type_) and not number.is_integer():
        return Fraction(str(value.type.to_pandas_dtype()(number)))
    return Fraction(number)


def _constant(is_true: bool, lowest: int, type_: pa.DataType) -> tuple[str, pa.Scalar | None]:
    """A comparison that is true, or false, for all values, and null for null; `lowest` is the least value."""
    if t.is_timestamp(type_):  # Python does not have its least value
        return "equal" if is_true else "not_equal", None
    return "greater_equal" if is_true else "less", _scalar_of(lowest, type_)


def _scalar_of(number: int, type_: pa.DataType) -> pa.Scalar:
    """The value that a type stores as this number: of decimals without their point, of times in their unit."""
    if t.is_integer(type_):
        return pa.scalar(number, type_)
    if t.is_timestamp(type_):
        return pa.scalar(number, pa.int64()).cast(type_)
    digits = tuple(map(int, str(abs(number))))
    return pa.scalar(Decimal((int(number < 0), digits, -_scale(type_))), type_)


def _compare_with_float(function: str, value: pa.Scalar, type_: pa.DataType) -> tuple[str, Any]:
    """The comparison of a column of floats with a number of another type."""
    number = value.as_py()
    near = _nearest(number, type_)
    if near is not None:
        return function, pa.scalar(near, type_)
    if function in ("equal", "not_equal"):
        return function, pa.scalar(math.nan, type_)  # which no value equals, as none equals the number
    float_type = type_.to_pandas_dtype()
    with np.errstate(over="ignore"):
        near = float_type(float(number))  # the next one, or infinite
    below = near if float(near) < number else np.nextafter(near, float_type(-math.inf))
    return "less_equal" if function.startswith("less") else "greater", pa.scalar(below, type_)
