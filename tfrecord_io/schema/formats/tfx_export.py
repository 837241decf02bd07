"""Fields as a TFX schema's message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyarrow import types as t

from tfrecord_io.schema.composite import assembly_of
from tfrecord_io.schema.field import FEATURE_LIST, Field
from tfrecord_io.schema.formats.json import text_of
from tfrecord_io.schema.formats.tfx_messages import STRUCT, SchemaMessage
from tfrecord_io.schema.formats.tfx_read import SEQUENCE, TAG, Import
from tfrecord_io.schema.formats.tfx_tensors import representation_of
from tfrecord_io.schema.formats.tfx_write import feature_of
from tfrecord_io.schema.schema import Schema


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
            if Import(_alone(target, field)).fields() != [field]:
                target.annotation.tag.append(TAG + text_of(Schema([field])))
            _add_parts(field, message)
            tensor = representation_of(field)
            if tensor is not None:
                message.tensor_representation_group[""].tensor_representation[tensor[0]].CopyFrom(tensor[1])
    return message


def _alone(feature: Any, field: Field) -> Any:
    """A message of this feature and its tensor; without one that takes other features, too."""
    alone = SchemaMessage()
    if field.part == FEATURE_LIST:
        alone.feature.add(name=SEQUENCE, type=STRUCT).struct_domain.feature.add().CopyFrom(feature)
    else:
        alone.feature.add().CopyFrom(feature)
    tensor = representation_of(field)
    if tensor is not None and tensor[1].WhichOneof("kind") != "sparse_tensor":
        alone.tensor_representation_group[""].tensor_representation[tensor[0]].CopyFrom(tensor[1])
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
