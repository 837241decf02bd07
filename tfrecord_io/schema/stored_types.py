"""The types that columns are restored with: those they are written with, less what belongs to memory and not to the values."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.format.dtypes import DTYPE_KEY
from tfrecord_io.schema.tensor_types import is_any_tensor, logical_dim_names, mark, tensor_type
from tfrecord_io.schema.types import described_column, is_list_like, off_run_ends


def plain_type(type: pa.DataType) -> pa.DataType:
    """The type a column is restored with: no views, no run-ends, 32-bit offsets, tensors in C order; all else as it is.

    >>> plain_type(pa.large_list(pa.large_string()))
    ListType(list<item: string>)
    """
    if t.is_run_end_encoded(type):
        return plain_type(type.value_type)
    if is_list_like(type):
        child = plain_field(type.value_field)
        return pa.list_(child, type.list_size) if t.is_fixed_size_list(type) else pa.list_(child)
    if t.is_struct(type):
        return pa.struct([plain_field(child) for child in type])
    if t.is_dictionary(type):
        return pa.dictionary(type.index_type, plain_type(type.value_type), type.ordered)
    if t.is_large_string(type) or t.is_string_view(type):
        return pa.string()
    if t.is_large_binary(type) or t.is_binary_view(type):
        return pa.binary()
    if isinstance(type, pa.BaseExtensionType) and type.extension_name == "arrow.json":
        return pa.json_(pa.string())
    return type


def plain_field(field: pa.Field) -> pa.Field:
    """The field a column is restored with: of `plain_type`, and with the mark that says the dtype of its tensors.

    The tensors of a feature list have their mark in the metadata of the column.

    Raises
    ------
    UnsupportedType
        Tensors of a type that none are written of.
    """
    type = off_run_ends(field.type)
    if is_any_tensor(type):
        of, shape = described_column(field.with_type(type), field.name)
        metadata = {key: value for key, value in (field.metadata or {}).items() if key != DTYPE_KEY} | mark(of)
        return field.with_type(tensor_type(of, shape, logical_dim_names(type))).with_metadata(metadata or None)
    if is_list_like(type) and is_any_tensor(off_run_ends(type.value_type)):
        step = plain_field(field.with_type(type.value_type))
        child = type.value_field.with_type(step.type)
        return step.with_type(pa.list_(child, type.list_size) if t.is_fixed_size_list(type) else pa.list_(child))
    return field.with_type(plain_type(type))
