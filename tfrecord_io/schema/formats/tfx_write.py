"""One field in TFX's words: kind, domain, presence and number of values of a feature."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError
from tfrecord_io.format.kinds import Kind
from tfrecord_io.schema.composite import assembly_of
from tfrecord_io.schema.field import CONTEXT, FEATURE_LIST, Field
from tfrecord_io.schema.formats.tfx_messages import (
    BYTES,
    CATEGORICAL_YES,
    FLOAT,
    INT,
    TIME_UNITS,
    UNIX_DAYS,
    FeatureMessage,
)
from tfrecord_io.schema.shapes import Shape
from tfrecord_io.schema.tensor_types import is_any_tensor, value_type_of
from tfrecord_io.schema.types import RAW, TENSOR_PROTO, UnsupportedType, is_list_like, kind_of

# Ranges of an int_domain that are those of a type.
INTEGERS = {
    (-(2**7), 2**7 - 1): pa.int8(),
    (-(2**15), 2**15 - 1): pa.int16(),
    (-(2**31), 2**31 - 1): pa.int32(),
    (0, 2**8 - 1): pa.uint8(),
    (0, 2**16 - 1): pa.uint16(),
    (0, 2**32 - 1): pa.uint32(),
}
_TYPES = {Kind.BYTES: BYTES, Kind.INT64: INT, Kind.FLOAT: FLOAT}
_TIME_FORMATS = {unit: number for number, unit in TIME_UNITS.items()}
_RANGES = {type_: ends for ends, type_ in INTEGERS.items()}


def feature_of(field: Field) -> Any:
    """The FeatureMessage of a field, without annotation; of an assembled one that of its values."""
    assembly = assembly_of(field)
    if assembly is not None:
        feature, type_ = next(assembly.parts())
        field = Field(field.column, type_, feature, required=field.required, part=CONTEXT)
    made = FeatureMessage(name=field.feature)
    if field.required:
        made.presence.min_fraction = 1
        made.presence.min_count = 1
    value = _value_type(field)
    if field.encoding in (RAW, TENSOR_PROTO):
        made.type = BYTES
        _single(made, field.required)
        return made
    _describe(made, value, field)
    if field.part == FEATURE_LIST:
        made.value_counts.value_count.add(min=0)
        step = made.value_counts.value_count.add(min=1 if not is_list_like(field.value) else field.size or 0)
        if not is_list_like(field.value) or field.size is not None:
            step.max = step.min
    elif field.type == value:
        _single(made, field.required)
    elif field.shape is None or None in field.shape:
        made.value_count.min = 0
    elif field.required:
        set_shape(made.shape, field.shape)
    else:
        made.value_count.min = made.value_count.max = field.size
    return made


def set_shape(target: Any, shape: Shape) -> None:
    """Fill a FixedShape; −1 stands for a free axis."""
    target.SetInParent()
    for size in shape:
        target.dim.add(size=-1 if size is None else size)


def _value_type(field: Field) -> pa.DataType:
    type_ = field.value
    while is_list_like(type_) or is_any_tensor(type_):
        type_ = value_type_of(type_) if is_any_tensor(type_) else type_.value_type
    return type_


def _single(made: Any, required: bool) -> None:
    """One value: TFX wants a shape only of what is always there, and a value_count of the rest."""
    if required:
        made.shape.SetInParent()
    else:
        made.value_count.min = made.value_count.max = 1


def _describe(made: Any, value: pa.DataType, field: Field) -> None:
    """Kind and domain of a value."""
    try:
        kind = kind_of(value, field.feature)
    except UnsupportedType as error:
        raise SchemaError(error.reason, feature=error.feature, expected=str(field.type), advice=error.advice) from error
    if kind == Kind.NONE:
        return
    made.type = _TYPES[kind]
    if t.is_dictionary(value) and kind == Kind.BYTES:
        made.string_domain.is_categorical = CATEGORICAL_YES
    elif t.is_boolean(value):
        made.bool_domain.SetInParent()
    elif value in _RANGES:
        made.int_domain.min, made.int_domain.max = _RANGES[value]
    elif t.is_timestamp(value):
        made.time_domain.integer_format = _TIME_FORMATS[value.unit]
    elif t.is_date32(value):
        made.time_domain.integer_format = UNIX_DAYS
