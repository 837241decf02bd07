"""Evaluate simple conditions on record batches.

pyarrow takes a fifth of a millisecond to bind an expression for each batch, as long as decoding thousands of records. A
simple condition is evaluated by pyarrow's functions, without an expression. A condition for which pyarrow would cast a
column first, other than from float32 to float64, is not simple. `type_literals` has given its literals the types of
their columns.

Tests: tests/columns/arrow/test_evaluate_condition_simple_conditions.py.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import Condition, Operator
from tfrecord_io.columns.schema.types import EXTENSIONS, is_value_extension

_OF_BOOLS = frozenset(["and_kleene", "or_kleene", "invert"])

_PLAIN = (pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary())  # compared as they are, as integers are

_FUNCTIONS = Operator.COMPARISONS | _OF_BOOLS | {"is_valid"}


class _NotSimple(Exception):
    pass


def evaluate_simple(condition: Condition, batch: pa.RecordBatch) -> pa.BooleanArray | None:
    """The values of a simple condition for the rows of a batch; None if it is not simple, or depends on no column.

    A simple condition has no calls but comparisons, ``&``, ``|``, ``~`` and ``is_valid()``, and needs no other cast.
    """
    if not condition.functions <= _FUNCTIONS:
        return None
    try:
        values = _values(condition, batch)
    except _NotSimple:
        return None
    return values if isinstance(values, pa.BooleanArray) else None


def _values(part: Condition, batch: pa.RecordBatch) -> Any:
    import pyarrow.compute as pc

    if part.kind == "literal":
        return part.value
    if part.kind == "field":
        column = batch.column(part.path[0])
        return column.storage if is_compared_as_storage(column.type) else column
    arguments = list(map(partial(_values, batch=batch), part.arguments))
    if part.is_comparison:
        arguments = _unify_argument_types(*arguments)
    elif part.name in _OF_BOOLS and not all(t.is_boolean(argument.type) for argument in arguments):
        raise _NotSimple
    return pc.call_function(part.name, arguments)


def _unify_argument_types(first: Any, second: Any) -> list[Any]:
    """The arguments of a comparison, a literal number in the type of the column if that has its value."""
    if isinstance(first, pa.Scalar) and not isinstance(second, pa.Scalar):
        return _unify_argument_types(second, first)[::-1]
    type_ = first.type
    if isinstance(first, pa.Scalar) or not (t.is_integer(type_) or type_ in _PLAIN):
        raise _NotSimple
    if second.type == type_:
        return [first, second]
    is_integer = t.is_integer(type_) and t.is_integer(second.type)
    is_float = t.is_float32(type_) and t.is_float64(second.type)
    if not isinstance(second, pa.Scalar) or not (is_integer or is_float) or not second.is_valid:
        raise _NotSimple
    try:
        cast = second.cast(type_)
    except pa.ArrowInvalid:
        raise _NotSimple from None
    if cast.as_py() == second.as_py():
        return [first, cast]
    if is_float:  # such as 0.1, which no float32 is
        return [first.cast(pa.float64()), second]
    raise _NotSimple


def is_compared_as_storage(type_: pa.DataType) -> bool:
    """True for an extension type of single values that Arrow knows nothing of."""
    if not isinstance(type_, pa.BaseExtensionType) or type_.extension_name in EXTENSIONS:
        return False
    return is_value_extension(type_)


def float16_as_float32(values: Any) -> Any:
    """A value, or values, of float16 as float32; see `cast_comparable_columns`."""
    return values.cast(pa.float32()) if t.is_float16(values.type) else values


def cast_comparable_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn columns of float16 into float32, which has all of their values: Arrow (26.0) compares no float16.

    Columns of an extension type that `is_compared_as_storage` are that.
    """
    for at, field in enumerate(batch.schema):
        if is_compared_as_storage(field.type):
            field = field.with_type(field.type.storage_type)
            batch = batch.set_column(at, field, batch.column(at).storage)
        if t.is_float16(field.type):
            batch = batch.set_column(at, field.with_type(pa.float32()), float16_as_float32(batch.column(at)))
    return batch
