"""The condition of ``filters=``: a pyarrow expression, or tuples as in pandas and pyarrow."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import reduce
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tfrecord_io.errors import printable
from tfrecord_io.options.condition import CONTAINS, Condition
from tfrecord_io.options.condition_text import parse_filters

if TYPE_CHECKING:
    import pyarrow.compute as pc

_EXPECTED = "expected an expression, pc.field('x') > 1, a list of tuples, [('x', '>', 1)], or text, such as 'x > 1'"
_FUNCTIONS: Mapping[str, str] = {
    "==": "equal",
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    ">": "greater",
    "<=": "less_equal",
    ">=": "greater_equal",
    CONTAINS: CONTAINS,
}
_MIN, _MAX = -(2**63), 2**63 - 1
_NO_VALUE = (pa.ArrowException, ValueError, OverflowError, TypeError)
_OPERATORS = (*(symbol for symbol in _FUNCTIONS if symbol != CONTAINS), "in", "not in", CONTAINS)


def condition_of(filters: Any) -> Condition:
    """The condition of ``filters=``; TypeError or ValueError for what is none, or refers to columns by their position.

    >>> condition_of([("b", ">", 1), ("a", "!=", None)]).text
    '((b > 1) and is_valid(a))'

    Tuples ``(column, operator, value)`` are as in pandas and pyarrow: a list of them is a conjunction, a list of such
    lists a disjunction. Text is as `parse_filters` takes it.
    """
    if isinstance(filters, Condition):
        return filters
    if isinstance(filters, str):
        try:
            filters = parse_filters(filters)
        except ValueError as error:
            raise ValueError(f"filters={printable(repr(filters))}: {error}") from None
    import pyarrow.compute as pc

    if isinstance(filters, pc.Expression):
        return Condition.parse(filters)
    if hasattr(filters, "__array__") or hasattr(filters, "__arrow_c_array__"):
        got = f"{type(filters).__name__}, whose values say nothing about rows that are not read yet"
        raise TypeError(f"filters: got {got}; {_EXPECTED}")
    if isinstance(filters, Iterable) and not isinstance(filters, str | bytes | tuple):
        terms = list(filters)
        alternatives = [terms] if terms and _is_term(terms[0]) else terms
        if not all(isinstance(terms, tuple | list) and all(map(_is_term, terms)) for terms in alternatives):
            types = ", ".join(sorted({type(term).__name__ for term in terms}))
            raise ValueError(f"filters: a list of {types}: expected tuples (column, operator, value)")
        if not alternatives or not all(alternatives):
            shown = printable(repr(filters))
            raise ValueError(f"filters={shown}: an empty list is not a condition")
        return Condition.any_of([Condition.all_of([*starmap(_condition, terms)]) for terms in alternatives])
    raise TypeError(f"filters: got {type(filters).__name__}, {_EXPECTED}")


def _is_term(value: Any) -> bool:
    """True if a value is (column, operator, value): a tuple, or a list, as JSON has no tuples."""
    is_three = isinstance(value, tuple | list) and len(value) == 3
    return is_three and isinstance(value[0], str) and isinstance(value[1], str)


def _condition(column: str, symbol: str, value: Any) -> Condition:
    """The condition of one tuple. ``==`` and ``!=`` with a missing value mean that the value is, or is not, missing."""
    import pyarrow.compute as pc

    if symbol in ("in", "not in"):
        members = reduce(operator.or_, [_is_in(pc.field(column), values) for values in _members(column, symbol, value)])
        return Condition.parse(members if symbol == "in" else ~members)
    if symbol not in _FUNCTIONS:
        operators = ", ".join(_OPERATORS)
        raise ValueError(f"filters: {printable(repr(symbol))} is not an operator; use one of {operators}")
    scalar = _scalar(column, symbol, value)
    if not scalar.is_valid:
        if symbol not in ("==", "=", "!="):
            reason = f"filters: column '{printable(column)}': None cannot be compared with '{symbol}'"
            raise ValueError(f"{reason}; use ==, !=, in or not in")
        return Condition.parse(pc.field(column).is_valid() if symbol == "!=" else pc.field(column).is_null())
    operands = Condition("field", path=(column,)), Condition("literal", value=scalar)
    return Condition("call", _FUNCTIONS[symbol], arguments=operands)


def _is_in(field: pc.Expression, values: pa.Array | pa.ChunkedArray) -> pc.Expression:
    import pyarrow.compute as pc

    if not pa.types.is_null(values.type):
        is_nan = pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()  # Arrow (26.0) compares bits
        return field.isin(values) | (field.is_nan() & field.is_valid()) if is_nan else field.isin(values)
    return field.is_null() if len(values) else field.is_null() & field.is_valid()


def _scalar(column: str, symbol: str, value: Any) -> pa.Scalar:
    value = _storable(value)
    if isinstance(value, pa.Scalar):
        return value
    with suppress(*_NO_VALUE):
        scalar = pa.scalar(value)
        return _array([value])[0] if pa.types.is_temporal(scalar.type) else scalar
    try:
        return pa.array([value], from_pandas=True)[0]  # NumPy's and pandas' times, NA and NaT
    except _NO_VALUE as error:
        reason = f"filters: column '{printable(column)}': {symbol} takes a number, text or another value of Arrow"
        raise ValueError(f"{reason}, and got {type(value).__name__}") from error


def _members(column: str, symbol: str, values: Any) -> list[pa.Array | pa.ChunkedArray]:
    """The values after ``in``; numbers of several types, of which Arrow may have none for all, in one array each."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return [values]
    where = f"filters: column '{printable(column)}': '{symbol}'"
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ValueError(f"{where} takes a list of values, and got {type(values).__name__}")
    try:
        is_array = hasattr(values, "__array__") and getattr(getattr(values, "dtype", None), "kind", "") != "O"
        return [pa.array(values)] if is_array else _arrays_of_numbers(list(values))
    except _NO_VALUE as error:
        raise ValueError(f"{where} takes values of one type, such as numbers or text") from error


def _arrays_of_numbers(values: list[Any]) -> list[pa.Array]:
    """Floats, integers and decimals apart, nulls with one of them; values that are not numbers in one array."""
    kinds: tuple[type, ...] = (float, int, Decimal)
    stored = list(map(_storable, values))
    if any(value is not None and (isinstance(value, bool) or not isinstance(value, kinds)) for value in stored):
        return [_array(stored)]
    parts = [[value for value in stored if isinstance(value, kind)] for kind in kinds]
    nulls = [None] * stored.count(None)
    first = next((at for at, part in enumerate(parts) if part), 0)
    return [pa.array(part + nulls if at == first else part) for at, part in enumerate(parts) if part or at == first]


def _array(values: list[Any]) -> pa.Array:
    """The values in an array; pandas' times keep their nanoseconds, which Arrow drops from Python objects."""
    # Of a Timestamp, and of a Timedelta.
    if not any(getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0) for value in values):
        return pa.array(values)
    import pandas as pd

    times = pd.Series(values)
    if times.dtype == object:
        raise ValueError("times with nanoseconds among values of other types")
    return pa.array(times)


_SAME = {unit: unit for unit in ("s", "ms", "us", "ns")}
_UNITS = {"M": dict.fromkeys("YMWD", "D") | dict.fromkeys("hm", "s") | _SAME, "m": dict.fromkeys("WDhm", "s") | _SAME}


def _storable(value: Any) -> Any:
    """The value; as Arrow takes it, if that is an integer of more than 64 bits, a time of NumPy, or NaT of pandas."""
    is_time = isinstance(value, np.datetime64 | np.timedelta64)
    if type(value).__name__ == "NaTType" or (is_time and np.isnat(value)):
        return None
    if is_time:  # in a unit that Arrow has
        unit = _UNITS[value.dtype.kind].get(np.datetime_data(value.dtype)[0])
        return value if unit is None else pa.array(np.array([value], f"{value.dtype.kind}8[{unit}]"))[0]
    return Decimal(value) if isinstance(value, int) and not _MIN <= value <= _MAX else value
