"""Comparisons of columns of numbers with numbers of other types, exactly: as ones with a value of the column's type.

Arrow would cast the column, which rounds large integers, or fails: no decimal has the digits of both sides.
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

MIRRORED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


def exact_comparison(function: str, value: pa.Scalar, type_: pa.DataType) -> tuple[str, pa.Scalar] | None:
    """The function and the value of the comparison of a column of `type_` with a number; None: as they are.

    A float that is compared with decimals is the number as it is written: 0.1 is a tenth.

    >>> exact_comparison("greater", pa.scalar(1.5), pa.int64())
    ('greater', <pyarrow.Int64Scalar: 1>)
    >>> exact_comparison("equal", pa.scalar(1.5), pa.int8())  # which no value is
    ('less', <pyarrow.Int8Scalar: -128>)
    """
    if value.type == type_ or not value.is_valid or not _is_number(value.type):
        return None
    if t.is_floating(type_):
        return _with_float(function, value)
    if not (t.is_integer(type_) or t.is_decimal(type_)):
        return None
    low, high = _range(type_)
    number = _fraction(value, type_)
    if number is None:  # NaN
        return _constant(function == "not_equal", low, type_)
    scaled = number if isinstance(number, float) else number * Fraction(10) ** _scale(type_)
    if scaled > high or scaled < low:
        is_true = function == "not_equal" or function.startswith("less" if scaled > high else "greater")
        return _constant(is_true, low, type_)
    floor, ceil = math.floor(scaled), math.ceil(scaled)
    if function in ("equal", "not_equal") and floor != ceil:
        return _constant(function == "not_equal", low, type_)
    return function, _scalar_of(ceil if function in ("less", "greater_equal") else floor, type_)


def exact_members(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Those of the numbers that a column of `type_` can have, as its type; None: as they are."""
    if values.type == type_ or not _is_number(values.type):
        return None
    if t.is_integer(type_) and t.is_integer(values.type):
        with suppress(pa.ArrowInvalid):
            return values.cast(type_)
    if t.is_integer(type_) or t.is_decimal(type_):
        low, high = _range(type_)
        scale = Fraction(10) ** _scale(type_)
        numbers = [_fraction(value, type_) for value in values if value.is_valid]
        units = [number * scale for number in numbers if isinstance(number, Fraction)]
        found = [_scalar_of(int(unit), type_) for unit in units if unit.denominator == 1 and low <= unit <= high]
        nulls = [pa.scalar(None, type_)] if values.null_count else []
        return pa.array([scalar.as_py() for scalar in (*found, *nulls)], type_)
    if t.is_floating(type_) and not t.is_floating(values.type):
        numbers = [value for value in values.to_pylist() if value is None or _has_float(value)]
        return pa.array([None if value is None else float(value) for value in numbers], pa.float64())
    return None


def _has_float(number: Any) -> bool:
    """Whether a float stands for a number: for an integer exactly, for another decimal the nearest."""
    return bool(float(number) == number or Fraction(number).denominator != 1)


def _is_number(type_: pa.DataType) -> bool:
    return bool(t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_))


def _scale(type_: pa.DataType) -> int:
    return int(type_.scale) if t.is_decimal(type_) else 0


def _range(type_: pa.DataType) -> tuple[int, int]:
    """The least and the largest value; of decimals without their point."""
    if t.is_decimal(type_):
        return 1 - 10**type_.precision, 10**type_.precision - 1
    info = np.iinfo(type_.to_pandas_dtype())
    return int(info.min), int(info.max)


def _fraction(value: pa.Scalar, type_: pa.DataType) -> Fraction | float | None:
    """The number; an infinite one as a float, None for NaN."""
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


def _constant(is_true: bool, low: int, type_: pa.DataType) -> tuple[str, pa.Scalar]:
    """A comparison that is true, or false, for all values, and null for null."""
    return "greater_equal" if is_true else "less", _scalar_of(low, type_)


def _scalar_of(unit: int, type_: pa.DataType) -> pa.Scalar:
    if t.is_integer(type_):
        return pa.scalar(unit, type_)
    digits = tuple(map(int, str(abs(unit))))
    return pa.scalar(Decimal((int(unit < 0), digits, -_scale(type_))), type_)


def _with_float(function: str, value: pa.Scalar) -> tuple[str, Any] | None:
    """The comparison of a column of floats with an integer, or with the float that is nearest to another decimal."""
    if t.is_floating(value.type):
        return None
    number = value.as_py()
    near = float(number)
    if not _has_float(number):
        if function in ("equal", "not_equal"):
            return function, pa.scalar(math.nan)
        is_below = near < number
        if function in ("less", "greater_equal"):
            near = math.nextafter(near, math.inf) if is_below else near
        else:
            near = near if is_below else math.nextafter(near, -math.inf)
    return function, pa.scalar(near)
