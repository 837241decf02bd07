"""The condition of ``filters=``: a pyarrow expression, or tuples as in pandas and pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial, reduce
from itertools import starmap
from operator import attrgetter, or_
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base.messages.display import for_cli, printable
from tfrecord_io.base.options.condition import Condition, parse_expression
from tfrecord_io.base.options.condition_text import Alternatives, Term, parse_alternatives
from tfrecord_io.base.options.operators import BY_SYMBOL, NAMES, Operand, Operator

if TYPE_CHECKING:
    import pyarrow.compute as pc

_EXPECTED = "expected an expression, pc.field('x') > 1, a list of tuples, [('x', '>', 1)], or text, such as 'x > 1'"
_TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.null())
_PLAIN_TYPES = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary()}
_MIN, _MAX = -(2**63), 2**63 - 1
_NO_VALUE = (pa.ArrowException, ValueError, OverflowError, TypeError)


def condition_of(filters: Any) -> Condition:
    """The condition of ``filters=``; TypeError or ValueError for what is none, or refers to columns by their position.

    >>> condition_of([("b", ">", 1), ("a", "!=", None)]).text
    'b > 1 and a is not null'

    Tuples ``(column, operator, value)`` are as in pandas and pyarrow: a list of them is a conjunction, a list of such
    lists a disjunction. Operators without a value may be pairs, ``("a", "is null")``. Text is as `parse_alternatives`
    takes it.
    """
    if isinstance(filters, Condition):
        return filters
    if isinstance(filters, str):
        try:
            parsed = parse_alternatives(filters)
        except ValueError as error:
            raise for_cli(ValueError(f"filters={printable(repr(filters))}: {error}"), str(error)) from None
        return _join(parsed)
    import pyarrow.compute as pc

    if isinstance(filters, pc.Expression):
        return parse_expression(filters)
    if type(filters) is not list and (hasattr(filters, "__array__") or hasattr(filters, "__arrow_c_array__")):
        got = f"{type(filters).__name__}, whose values say nothing about rows that are not read yet"
        raise TypeError(f"filters: got {got}; {_EXPECTED}")
    if isinstance(filters, Iterable) and not isinstance(filters, str | bytes | tuple | Mapping):
        terms = list(filters)
        alternatives = [terms] if terms and _is_term(terms[0]) else terms
        for parts in alternatives:
            if not isinstance(parts, tuple | list) or not all(map(_is_term, parts)):
                types = ", ".join(sorted({type(term).__name__ for term in terms}))
                raise ValueError(f"filters: a list of {types}: expected tuples (column, operator, value)")
        if not alternatives or not all(alternatives):
            shown = printable(repr(filters))
            raise ValueError(f"filters={shown}: an empty list is not a condition")
        return Condition.any_of([Condition.all_of([*starmap(_condition, terms)]) for terms in alternatives])
    raise TypeError(f"filters: got {type(filters).__name__}, {_EXPECTED}")


def _join(alternatives: Alternatives) -> Condition:
    def part(parsed: Term | Alternatives) -> Condition:
        return _condition(*parsed) if isinstance(parsed, tuple) else _join(parsed)

    return Condition.any_of([Condition.all_of([*map(part, parts)]) for parts in alternatives])


def _is_term(value: Any) -> bool:
    """True if a value is (column, operator, value): a tuple, or a list, as JSON has no tuples."""
    if not isinstance(value, tuple | list) or len(value) not in (2, 3):
        return False
    is_named = isinstance(value[0], str) and isinstance(value[1], str)
    return is_named and (len(value) == 3 or _operand_of(value[1]) is Operand.NONE)


def _operand_of(symbol: str) -> Operand | None:
    return BY_SYMBOL[symbol].operand if symbol in BY_SYMBOL else None


def _condition(column: str, symbol: str, value: Any = None) -> Condition:
    """The condition of one tuple. ``==`` and ``!=`` with a missing value mean that the value is, or is not, missing."""
    import pyarrow.compute as pc

    if symbol not in BY_SYMBOL:
        raise ValueError(f"filters: {printable(repr(symbol))} is not an operator; use one of {NAMES}")
    operator = BY_SYMBOL[symbol]
    if operator.operand is Operand.LIST:
        members = reduce(or_, [_is_in(pc.field(column), values) for values in _members(column, symbol, value)])
        return parse_expression(members if operator.negates is None else ~members)
    if operator.operand is Operand.NONE:
        return parse_expression(getattr(pc.field(column), operator.function)())
    values = _pair(column, operator, value) if operator.operand is Operand.PAIR else [value]
    literals = list(map(partial(_scalar, column, operator), values))
    if operator.operand is Operand.TEXT and literals[0].type not in _TEXTS:
        raise _operand_error(column, operator, type(value).__name__)
    if not all(map(attrgetter("is_valid"), literals)):
        if operator.for_missing is None:
            reason = f"filters: column '{printable(column)}': None cannot be compared with '{operator.symbol}'"
            raise ValueError(f"{reason}; use ==, !=, in or not in")
        return _condition(column, operator.for_missing)
    arguments = Condition("field", path=(column,)), *map(partial(Condition, "literal", "", ()), literals)
    return Condition("call", operator.function, arguments=arguments)


def _is_in(field: pc.Expression, values: pa.Array | pa.ChunkedArray) -> pc.Expression:
    import pyarrow.compute as pc

    if not pa.types.is_null(values.type):
        is_nan = pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()  # Arrow (26.0) compares bits
        return field.isin(values) | (field.is_nan() & field.is_valid()) if is_nan else field.isin(values)
    return field.is_null() if len(values) else field.is_null() & field.is_valid()


def _pair(column: str, operator: Operator, value: Any) -> list[Any]:
    """The two values of an operand; ValueError if it has another form."""
    got = type(value).__name__
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        values = list(value)
        if len(values) == 2:
            return values
        got = str(len(values))
    raise _operand_error(column, operator, got)


def _scalar(column: str, operator: Operator, value: Any) -> pa.Scalar:
    value = _storable(value)
    if isinstance(value, pa.Scalar):
        return value
    with suppress(*_NO_VALUE):
        if value is None:
            return pa.nulls(1)[0]
        if type(value) in _PLAIN_TYPES:
            return _plain_scalar(value)
        scalar = pa.scalar(value)
        return _array([value])[0] if pa.types.is_temporal(scalar.type) else scalar
    try:
        return pa.array([value], from_pandas=True)[0]  # NumPy's and pandas' times, NA and NaT
    except _NO_VALUE as error:
        raise _operand_error(column, operator, type(value).__name__) from error


def _plain_scalar(value: bool | int | float | str | bytes) -> pa.Scalar:
    """As `pyarrow.scalar`, whose first call imports pandas, which takes longer than reading a small file."""
    type_ = _PLAIN_TYPES[type(value)]
    if isinstance(value, str | bytes):
        content = value.encode() if isinstance(value, str) else value
        buffers = [np.array([0, len(content)], np.int32), content]
    else:
        buffers = [np.array([value], type_.to_pandas_dtype())]
    return pa.Array.from_buffers(type_, 1, [None, *map(pa.py_buffer, buffers)])[0]


def _operand_error(column: str, operator: Operator, got: str) -> ValueError:
    takes = f"{operator.symbol} takes {operator.operand.value}, and got {got}"
    return ValueError(f"filters: column '{printable(column)}': {takes}")


def _members(column: str, symbol: str, values: Any) -> list[pa.Array | pa.ChunkedArray]:
    """The operand of ``in`` as arrays: one for each type of number, as Arrow may have no common type."""
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
