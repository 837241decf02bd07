"""One value of a column for Python: numbers and text as they are, lists and tensors as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.tensor_values import is_list_of_tensors, tensor_cells
from tfrecord_io.schema.tensor_types import is_any_tensor
from tfrecord_io.schema.types import is_list_like


def cell(column: pa.Array, row: int, field: pa.Field | None = None) -> Any:
    """The value of one row; the metadata of the column's `field` may state the dtype of tensors.

    None if it is null; a new ndarray for a list or a tensor (of objects if its items are bytes, text or lists); a dict
    for a struct; else the result of pyarrow's ``as_py``.

    Examples
    --------
    >>> cell(pa.array([[1, 2], []]), 0)
    array([1, 2])
    """
    type_ = column.type
    if is_any_tensor(type_) or is_list_of_tensors(type_):
        return _owned(tensor_cells(column.slice(row, 1), field or pa.field("", type_))[0])
    scalar = column[row]
    if not scalar.is_valid:
        return None
    if isinstance(type_, pa.BaseExtensionType):
        return cell(column.storage, row)
    if is_list_like(type_):
        return _items(scalar.values)
    if t.is_struct(type_):
        return {child.name: cell(column.field(at), row, child) for at, child in enumerate(type_)}
    return scalar.as_py()


def _owned(tensor: Any) -> Any:
    """A copy of a tensor, or of an array of tensors and each of them."""
    if not isinstance(tensor, np.ndarray):
        return tensor
    if tensor.dtype != object:
        return tensor.copy()
    copies = np.empty(tensor.shape, object)
    for i, item in enumerate(tensor):
        copies[i] = _owned(item)
    return copies


def _items(values: pa.Array) -> Any:
    """The items of a list as an array."""
    plain = t.is_primitive(values.type) and not (values.null_count and not t.is_floating(values.type))
    if plain and not isinstance(values.type, pa.BaseExtensionType):
        return np.array(values.to_numpy(zero_copy_only=False))
    out = np.empty(len(values), object)
    for at in range(len(values)):
        out[at] = cell(values, at)
    return out
