"""The form of a column's Arrow arrays, for columns whose arrays an engine can make of the values as they are."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.casts import integer_range
from tfrecord_io.engine.contract import Array
from tfrecord_io.schema.field import CONTEXT, Field
from tfrecord_io.schema.leaf import LIST
from tfrecord_io.schema.types import is_list_like


class Value(IntEnum):
    """What an array, or a list in it, holds. The kernel has the same numbers."""

    OTHER = -1  # values that an engine cannot make
    NULL = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    DOUBLE = 4
    BYTES = 5
    TEXT = 6


class Nesting(IntEnum):
    """Whether a row is one value or a list of them."""

    NONE = 0
    LIST = 1
    LARGE_LIST = 2
    FIXED_SIZE_LIST = 3


class Form(NamedTuple):
    """The form of the arrays of one column, as the kernel takes it."""

    value: Value
    nesting: Nesting = Nesting.NONE
    list_size: int = 0
    large: bool = False  # of bytes and text: offsets of 64 bits
    bits: int = 0  # of a number
    low: int = 0  # the least and the greatest integer
    high: int = 0
    spreads: bool = False  # null rows of a fixed-size list have zeros
    takes_nulls: bool = True  # False: a column with nulls is not made


OTHER = Form(Value.OTHER)
_BYTES = {
    pa.lib.Type_BINARY: Form(Value.BYTES),
    pa.lib.Type_STRING: Form(Value.TEXT),
    pa.lib.Type_LARGE_BINARY: Form(Value.BYTES, large=True),
    pa.lib.Type_LARGE_STRING: Form(Value.TEXT, large=True),
}
_NESTINGS = {
    pa.lib.Type_LIST: Nesting.LIST,
    pa.lib.Type_LARGE_LIST: Nesting.LARGE_LIST,
    pa.lib.Type_FIXED_SIZE_LIST: Nesting.FIXED_SIZE_LIST,
}


class Forms(NamedTuple):
    """The forms of columns: int64 arrays.

    Attributes
    ----------
    distinct : ndarray
        A row for each form that occurs.
    number : ndarray
        The row of each column's form in `distinct`.
    """

    distinct: Array
    number: Array


def forms_of(fields: Sequence[Field]) -> Forms | None:
    """The forms of columns; None if there is no column that an engine can make."""
    numbers: dict[Form, int] = {}
    common: dict[int, int] = {}  # of the fields of common types, by type id
    number = []
    for field in fields:
        known = common.get(field.type.id) if field.is_common else None
        if known is None:
            known = numbers.setdefault(_form_of(field), len(numbers))
            if field.is_common:
                common[field.type.id] = known
        number.append(known)
    if numbers.keys() <= {OTHER}:
        return None
    return Forms(np.array(list(numbers), np.int64), np.array(number, np.int64))


def _form_of(field: Field) -> Form:
    type_ = field.type
    form = _of_type(type_)
    if form is OTHER or field.part != CONTEXT or field.encoding != LIST or field.empty is not None:
        return OTHER
    if field.shape is not None and form.nesting is not Nesting.FIXED_SIZE_LIST and is_list_like(type_):
        return OTHER  # the number of values is checked
    return form if field.default is None else form._replace(takes_nulls=False)


def _of_type(type_: pa.DataType) -> Form:
    if t.is_null(type_):
        return Form(Value.NULL)
    nesting = _NESTINGS.get(type_.id)
    if nesting is None:
        return _of_value(type_)
    value = _of_value(type_.value_type)
    if value is OTHER or nesting is not Nesting.FIXED_SIZE_LIST:
        return value if value is OTHER else value._replace(nesting=nesting)
    numbers = t.is_integer(type_.value_type) or t.is_floating(type_.value_type)
    return value._replace(nesting=nesting, list_size=type_.list_size, spreads=numbers)


def _of_value(type_: pa.DataType) -> Form:
    if type_.id in _BYTES:
        return _BYTES[type_.id]
    if t.is_float32(type_):
        return Form(Value.FLOAT, bits=32)
    if t.is_float64(type_):
        return Form(Value.DOUBLE, bits=64)
    if t.is_boolean(type_):
        return Form(Value.BOOL, bits=1, low=0, high=1)
    if t.is_integer(type_) or (t.is_temporal(type_) and not t.is_interval(type_) and not t.is_date64(type_)):
        low, high = integer_range(type_)
        return Form(Value.INT, bits=type_.bit_width, low=low, high=high)
    return OTHER
