"""Fields as a TFX schema's message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyarrow import types as t

from tfrecord_io.schema.assembly import VALUES, Assembly, assembly_of
from tfrecord_io.schema.documents import text_of
from tfrecord_io.schema.field import CONTEXT, FEATURE_LIST, Field
from tfrecord_io.schema.fields import Schema
from tfrecord_io.schema.tfx_import import SEQUENCE, SPARSE_KEY, TAG, Import
from tfrecord_io.schema.tfx_messages import STRUCT, SchemaMessage
from tfrecord_io.schema.tfx_words import feature_of, set_shape
from tfrecord_io.schema.types import RAW, TENSOR_PROTO, is_list_like


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
    if "" in message.tensor_representation_group and SPARSE_KEY not in field.metadata:
        whole = message.tensor_representation_group[""].tensor_representation
        if field.column in whole:
            _representation(alone, field.column).CopyFrom(whole[field.column])
    return alone


def _flat(field: Field) -> Iterator[Field]:
    """The field, or of a struct a field for each leaf, as a record has them."""
    if not t.is_struct(field.type):
        yield field
        return
    for child in field.type:
        yield from _flat(Field(f"{field.column}/{child.name}", child.type, f"{field.feature}/{child.name}"))


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
        if None not in shape and (_one_default(field) is not None or (len(shape) > 1 and not field.required)):
            dense = _representation(message, field.column).dense_tensor
            dense.column_name = field.feature
            set_shape(dense.shape, shape)
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
    return len(assembly.sequence) > 1 and plain == assembly and assembly.encoding == VALUES and assembly.labels is None


def _ragged(target: Any, assembly: Assembly) -> None:
    target.feature_path.step.append(assembly.values)
    for size, lengths in zip(assembly.sequence[1:], assembly.lengths, strict=True):
        if lengths is not None:
            target.partition.add(row_length=lengths)
        else:
            target.partition.add(uniform_row_length=size)


def _sparse(message: Any, field: Field) -> None:
    note = json.loads(field.metadata[SPARSE_KEY])
    sparse = _representation(message, note["name"]).sparse_tensor
    sparse.value_column_name = field.feature
    sparse.index_column_names.extend(note["index"])
    set_shape(sparse.dense_shape, note["shape"])
    if note["sorted"]:
        sparse.already_sorted = True
