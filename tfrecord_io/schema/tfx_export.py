"""Fields as a TFX schema's message."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.assembly import Assembly, assembly_of
from tfrecord_io.schema.documents import text_of
from tfrecord_io.schema.field import CONTEXT, FEATURE_LIST, Field
from tfrecord_io.schema.fields import Schema
from tfrecord_io.schema.kinds import Kind
from tfrecord_io.schema.tfx_import import INTEGERS, SEQUENCE, SPARSE_KEY, TAG, Import
from tfrecord_io.schema.tfx_messages import BYTES, CATEGORICAL_YES, FLOAT, INT, STRUCT, TIME_UNITS, UNIX_DAYS, FeatureMessage, SchemaMessage
from tfrecord_io.schema.types import RAW, TENSOR_PROTO, UnsupportedType, is_list_like, kind_of

_TYPES = {Kind.BYTES: BYTES, Kind.INT64: INT, Kind.FLOAT: FLOAT}
_TIME_FORMATS = {unit: number for number, unit in TIME_UNITS.items()}
_RANGES = {type_: ends for ends, type_ in INTEGERS.items()}


def message_of(schema: Schema) -> Any:
    """The SchemaMessage of a schema.

    Raises
    ------
    SchemaError
        A type has no form in a record.
    """
    message = SchemaMessage()
    steps = None
    for column in schema:
        for field in _flat(column):
            if field.part == FEATURE_LIST:
                steps = steps or message.feature.add(name=SEQUENCE, type=STRUCT)
                target = steps.struct_domain.feature.add()
            else:
                target = message.feature.add()
            target.CopyFrom(feature_of(field))
            _represent(field, message)
            if Import(_alone(target, field, message)).fields() != [field]:
                target.annotation.tag.append(TAG + text_of(Schema([field])))
            _add_parts(field, message)
    return message


def _alone(feature: Any, field: Field, message: Any) -> Any:
    """A message of this feature and the representation of its tensor."""
    alone = SchemaMessage()
    if field.part == FEATURE_LIST:
        alone.feature.add(name=SEQUENCE, type=STRUCT).struct_domain.feature.add().CopyFrom(feature)
    else:
        alone.feature.add().CopyFrom(feature)
    group = message.tensor_representation_group
    if "" in group and field.column in group[""].tensor_representation:
        alone.tensor_representation_group[""].tensor_representation[field.column].CopyFrom(group[""].tensor_representation[field.column])
    return alone


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
        made.shape.SetInParent()
        made.shape.dim.extend([{"size": size} for size in field.shape])
    else:
        made.value_count.min = made.value_count.max = field.size
    return made


def _flat(field: Field) -> Iterator[Field]:
    """The field, or of a struct a field for each leaf, as a record has them."""
    if not t.is_struct(field.type):
        yield field
        return
    for child in field.type:
        yield from _flat(Field(f"{field.column}/{child.name}", child.type, f"{field.feature}/{child.name}"))


def _value_type(field: Field) -> pa.DataType:
    type_ = field.value
    while is_list_like(type_) or isinstance(type_, pa.FixedShapeTensorType):
        type_ = type_.value_type
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


def _add_parts(field: Field, message: Any) -> None:
    """The other features that an assembled column is made of."""
    assembly = assembly_of(field)
    for feature, type_ in [] if assembly is None else list(assembly.parts())[1:]:
        message.feature.add().CopyFrom(feature_of(Field(feature, type_)))


# ---- tensors


def _represent(field: Field, message: Any) -> None:
    """Say by a tensor representation what features cannot: a default, the shape of what may be absent, rows inside rows, sparsity."""
    assembly = assembly_of(field)
    if assembly is not None:
        if _is_ragged(assembly):
            _ragged(_representation(message, field.column).ragged_tensor, assembly)
    elif SPARSE_KEY in field.metadata:
        _sparse(message, field)
    elif field.part == CONTEXT and not (field.shape is None and is_list_like(field.type)) and field.encoding not in (RAW, TENSOR_PROTO):
        shape = field.shape or ()
        if _one_default(field) is not None or (len(shape) > 1 and not field.required):
            dense = _representation(message, field.column).dense_tensor
            dense.column_name = field.feature
            dense.shape.SetInParent()
            dense.shape.dim.extend([{"size": -1 if size is None else size} for size in shape])
            _set_default(dense.default_value, _one_default(field))


def _representation(message: Any, name: str) -> Any:
    return message.tensor_representation_group[""].tensor_representation[name]


def _one_default(field: Field) -> Any:
    """The default as one value that stands for all, in the terms of a record; None where it is none."""
    default = field.default
    while isinstance(default, list) and default and all(each == default[0] for each in default):
        default = default[0]
    return default if isinstance(default, bool | int | float | str | bytes) else None


def _set_default(target: Any, default: Any) -> None:
    if isinstance(default, str | bytes):
        target.bytes_value = default.encode() if isinstance(default, str) else default
    elif isinstance(default, float):
        target.float_value = default
    elif default is not None:
        target.int_value = int(default)


def _is_ragged(assembly: Assembly) -> bool:
    plain = replace(assembly, sequence=(None, *assembly.sequence[1:]), shape=())
    return len(assembly.sequence) > 1 and plain == assembly and assembly.encoding == "values" and assembly.labels is None


def _ragged(target: Any, assembly: Assembly) -> None:
    target.feature_path.step.append(assembly.values)
    for size, lengths in zip(assembly.sequence[1:], assembly.lengths, strict=True):
        if lengths is not None:
            target.partition.add(row_length=lengths)
        else:
            target.partition.add(uniform_row_length=size)


def _sparse(message: Any, field: Field) -> None:
    note = ast.literal_eval(field.metadata[SPARSE_KEY].decode())
    sparse = _representation(message, field.column).sparse_tensor
    sparse.value_column_name = field.feature
    sparse.index_column_names.extend(note["index"])
    sparse.dense_shape.dim.extend([{"size": -1 if size is None else size} for size in note["shape"]])
    if note["sorted"]:
        sparse.already_sorted = True
