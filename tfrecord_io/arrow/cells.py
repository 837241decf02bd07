"""One value of a column for Python: numbers and text as they are, lists and tensors as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.schema.types import is_list_like, is_tensor


def cell(column: pa.Array, row: int) -> Any:
    """The value of one row.

    Returns
    -------
    object
        None where it is null; an ndarray of the caller's own for a list or a tensor (of objects where its items are bytes, text
        or lists); a dict for a struct; else what pyarrow's ``as_py`` gives.

    Examples
    --------
    >>> cell(pa.array([[1, 2], []]), 0)
    array([1, 2])
    """
    scalar = column[row]
    if not scalar.is_valid:
        return None
    type_ = column.type
    if is_tensor(type_):
        return np.array(scalar.to_numpy())
    if isinstance(type_, pa.BaseExtensionType):
        return cell(column.storage, row)
    if is_list_like(type_):
        return _items(scalar.values)
    if t.is_struct(type_):
        return {field.name: cell(column.field(at), row) for at, field in enumerate(type_)}
    return scalar.as_py()


def _items(values: pa.Array) -> Any:
    """The items of a list as an array."""
    plain = t.is_primitive(values.type) and not (values.null_count and not t.is_floating(values.type))
    if plain and not isinstance(values.type, pa.BaseExtensionType):
        return np.array(values.to_numpy(zero_copy_only=False))
    out = np.empty(len(values), object)
    for at in range(len(values)):
        out[at] = cell(values, at)
    return out
