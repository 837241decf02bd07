"""The tensor representation of a field: what TFX's features cannot say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tfrecord_io.schema.composite import VALUES, Composite, assembly_of
from tfrecord_io.schema.field import CONTEXT, Field
from tfrecord_io.schema.formats.tfx_messages import RepresentationMessage
from tfrecord_io.schema.formats.tfx_write import set_shape
from tfrecord_io.schema.types import RAW, TENSOR_PROTO, is_list_like

SPARSE_KEY = b"tfrecord_io.tfx.sparse"  # in the metadata of the values' field: JSON of the sparse tensor


def representation_of(field: Field) -> tuple[str, Any] | None:
    """Name and message of the tensor, where there is need of one: for a default, the shape of what may be absent, rows inside
    rows, and sparse tensors."""
    made = RepresentationMessage()
    assembly = assembly_of(field)
    if assembly is not None:
        if not _is_ragged(assembly):
            return None
        _ragged(made.ragged_tensor, assembly)
        return field.column, made
    if SPARSE_KEY in field.metadata:
        return _sparse(made.sparse_tensor, field), made
    shape = field.shape or ()
    has_count = None not in shape and not (field.shape is None and is_list_like(field.type))
    is_dense = has_count and field.part == CONTEXT and field.encoding not in (RAW, TENSOR_PROTO)
    default = _one_default(field)
    if not is_dense or (default is None and (field.required or len(shape) < 2)):
        return None
    made.dense_tensor.column_name = field.feature
    set_shape(made.dense_tensor.shape, shape)
    _set_default(made.dense_tensor.default_value, default)
    return field.column, made


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


def _is_ragged(assembly: Composite) -> bool:
    plain = replace(assembly, sequence=(None, *assembly.sequence[1:]), shape=())
    return len(assembly.sequence) > 1 and plain == assembly and assembly.encoding == VALUES and assembly.labels is None


def _ragged(target: Any, assembly: Composite) -> None:
    target.feature_path.step.append(assembly.values)
    for size, lengths in zip(assembly.sequence[1:], assembly.lengths, strict=True):
        if lengths is not None:
            target.partition.add(row_length=lengths)
        else:
            target.partition.add(uniform_row_length=size)


def _sparse(sparse: Any, field: Field) -> str:
    note = json.loads(field.metadata[SPARSE_KEY])
    sparse.value_column_name = field.feature
    sparse.index_column_names.extend(note["index"])
    set_shape(sparse.dense_shape, note["shape"])
    if note["sorted"]:
        sparse.already_sorted = True
    return str(note["name"])
