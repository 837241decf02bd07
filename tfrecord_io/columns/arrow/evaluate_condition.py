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
from tfrecord_io.columns.schema.types import EXTENSIONS, hashable, is_value_extension

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


def is_comparable(type_: pa.DataType) -> bool:
    """False for numbers that Arrow (26.0) does not compare, or not by all functions."""
    return not (t.is_float16(type_) or t.is_decimal32(type_) or t.is_decimal64(type_))


def comparable(values: Any) -> Any:
    """A value, or values, in a type that has all of their values and `is_comparable`."""
    return values if is_comparable(values.type) else hashable(values)


def cast_comparable_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn float16 into float32, and decimal32 and decimal64 into decimal128, also in dictionaries and structs.

    Columns of an extension type that `is_compared_as_storage` are that.
    """
    for at, field in enumerate(batch.schema):
        column = _cast_comparable(batch.column(at))
        if column.type != field.type:
            batch = batch.set_column(at, field.with_type(column.type), column)
    return batch


def _cast_comparable(array: pa.Array) -> pa.Array:
    if is_compared_as_storage(array.type):
        return _cast_comparable(array.storage)
    if t.is_dictionary(array.type):
        values = array.dictionary
        cast = comparable(values)
        return array if cast is values else pa.DictionaryArray.from_arrays(array.indices, cast)
    if t.is_struct(array.type):
        fields = [array.field(at) for at in range(array.type.num_fields)]
        casts = list(map(_cast_comparable, fields))
        types = [cast.type for cast in casts]
        if types == [field.type for field in fields]:
            return array
        changed = [child.with_type(type_) for child, type_ in zip(array.type, types, strict=True)]
        return pa.StructArray.from_arrays(casts, fields=changed, mask=array.is_null())
    return comparable(array)
