"""A field as TFX describes it: a feature's type, domain, presence and number of values, and its tensor."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError
from tfrecord_io.format.kinds import Kind
from tfrecord_io.plugins.tensorflow.tfx_messages import (
    BYTES,
    CATEGORICAL_YES,
    FLOAT,
    INT,
    TIME_UNITS,
    UNIX_DAYS,
    FeatureMessage,
    RepresentationMessage,
)
from tfrecord_io.schema.composite import VALUES, Composite, composite_of
from tfrecord_io.schema.default_values import CONVERSION_ERRORS
from tfrecord_io.schema.field import CONTEXT, Field
from tfrecord_io.schema.leaf import FEATURE_LIST, as_shape
from tfrecord_io.schema.tensor_encodings import encoding_rules
from tfrecord_io.schema.tensor_types import Shape, is_any_tensor, tensor_value_type
from tfrecord_io.schema.types import UnsupportedType, is_list_like, kind_of

SPARSE_KEY = b"tfrecord_io.tfx.sparse"  # in the metadata of the values' field: JSON of the sparse tensor

# The ranges of an int_domain that are exactly those of a type.
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


def feature_message(field: Field) -> Any:
    """The FeatureMessage of a field, without annotation; for a composite column that of its values."""
    if (composite := composite_of(field)) is not None:
        feature, type_ = next(composite.components())
        field = Field(field.column, type_, feature, required=field.required, part=CONTEXT)
    message = FeatureMessage(name=field.feature)
    if field.required:
        message.presence.min_fraction = 1
        message.presence.min_count = 1
    if encoding_rules(field.encoding).one_value_per_cell:
        message.type = BYTES
        _set_single(message, bool(field.required))
        return message
    value = _value_type(field)
    _set_domain(message, value, field)
    if field.part == FEATURE_LIST:
        message.value_counts.value_count.add(min=0)
        is_list = is_list_like(field.value)
        step = message.value_counts.value_count.add(min=(field.size or 0) if is_list else 1)
        if not is_list or field.size is not None:
            step.max = step.min
    elif field.type == value:
        _set_single(message, bool(field.required))
    elif field.shape is None or None in field.shape:
        message.value_count.min = 0
    elif field.required:
        set_shape(message.shape, field.shape)
    else:
        message.value_count.min = message.value_count.max = field.size
    return message


def set_shape(target: Any, shape: Shape) -> None:
    """Fill a FixedShape; −1 is an unknown dimension."""
    target.SetInParent()
    for size in shape:
        target.dim.add(size=-1 if size is None else size)


def _value_type(field: Field) -> pa.DataType:
    type_ = field.value
    while is_list_like(type_) or is_any_tensor(type_):
        type_ = tensor_value_type(type_) if is_any_tensor(type_) else type_.value_type
    return type_


def _set_single(message: Any, required: bool) -> None:
    """Describe a single value: TFX accepts a shape only for required features, and a value_count for others."""
    if required:
        message.shape.SetInParent()
    else:
        message.value_count.min = message.value_count.max = 1


def _set_domain(message: Any, value: pa.DataType, field: Field) -> None:
    """Describe the type and the domain of a value."""
    try:
        kind = kind_of(value, field.feature)
    except UnsupportedType as error:
        raise SchemaError(error.reason, feature=error.feature, expected=str(field.type), advice=error.advice) from error
    if kind == Kind.NONE:
        return
    message.type = _TYPES[kind]
    if t.is_dictionary(value) and kind == Kind.BYTES:
        message.string_domain.is_categorical = CATEGORICAL_YES
    elif t.is_boolean(value):
        message.bool_domain.SetInParent()
    elif value in _RANGES:
        message.int_domain.min, message.int_domain.max = _RANGES[value]
    elif t.is_timestamp(value):
        message.time_domain.integer_format = _TIME_FORMATS[value.unit]
    elif t.is_date32(value):
        message.time_domain.integer_format = UNIX_DAYS


# ---- tensor representations


def representation_of(field: Field) -> tuple[str, Any] | None:
    """Name and message of the tensor, if needed: for defaults, shapes, required values, nested rows, sparse tensors."""
    message = RepresentationMessage()
    if (composite := composite_of(field)) is not None:
        _set_ragged(message.ragged_tensor, composite)
        return (field.column, message) if _is_ragged(composite) else None
    if SPARSE_KEY in field.metadata:
        return _set_sparse(message.sparse_tensor, field), message
    shape = field.shape or ()
    has_count = None not in shape and not (field.shape is None and is_list_like(field.type))
    is_dense = has_count and field.part == CONTEXT and not encoding_rules(field.encoding).one_value_per_cell
    default = _uniform_default(field)
    if not is_dense or (default is None and not field.required and len(shape) < 2):
        return None
    message.dense_tensor.column_name = field.feature
    set_shape(message.dense_tensor.shape, shape)
    _set_default(message.dense_tensor.default_value, default)
    return field.column, message


def _uniform_default(field: Field) -> Any:
    """The one value of which the default consists; None where its values differ or TFX has no type for them."""
    default = field.default
    while isinstance(default, list) and default and all(item == default[0] for item in default):
        default = default[0]
    return default if isinstance(default, bool | int | float | str | bytes) else None


def _set_default(target: Any, default: Any) -> None:
    if isinstance(default, str | bytes):
        target.bytes_value = default.encode() if isinstance(default, str) else default
    elif isinstance(default, float):
        target.float_value = default
    elif default is not None:
        target.int_value = int(default)


def _is_ragged(composite: Composite) -> bool:
    is_nested = len(composite.sequence) > 1 and composite.sequence[0] is None and composite.shape == ()
    return is_nested and composite.encoding == VALUES and composite.labels is None


def _set_ragged(target: Any, composite: Composite) -> None:
    target.feature_path.step.append(composite.values)
    for size, lengths in zip(composite.sequence[1:], composite.lengths, strict=True):
        target.partition.add(**({"uniform_row_length": size} if lengths is None else {"row_length": lengths}))


def _set_sparse(sparse: Any, field: Field) -> str:
    try:
        note = json.loads(field.metadata[SPARSE_KEY])
        index, shape, name = [str(column) for column in note["index"]], as_shape(note["shape"]), str(note["name"])
        is_sorted = bool(note["sorted"])
    except CONVERSION_ERRORS as error:
        raise SchemaError("its metadata is damaged: tfrecord_io.tfx.sparse", feature=field.feature) from error
    sparse.value_column_name = field.feature
    sparse.index_column_names.extend(index)
    set_shape(sparse.dense_shape, shape)
    if is_sorted:
        sparse.already_sorted = True
    return name
