"""Types of tensors from what a schema message says of them, which may come from anyone.

Only what a writer of ours can have written is let through: no permutation, no name but the known ones, no axis that a record
could not hold.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.schema.tensor_types import FIXED_SHAPE, VARIABLE_SHAPE, variable_shape_tensor

_MOST_BYTES = 64 << 10  # of the metadata
_MOST_AXES = 65  # NumPy's 64, and the one that complex numbers add
_MOST_VALUES = 2**31 - 1


def described_tensor(name: str, storage: pa.DataType, text: bytes) -> pa.DataType:
    """The extension type `name` over `storage`, from its metadata.

    Raises
    ------
    ValueError
        The metadata is damaged, does not fit the storage, or says what is never written.

    Examples
    --------
    >>> described_tensor("arrow.fixed_shape_tensor", pa.list_(pa.int8(), 6), b'{"shape": [2, 3]}').shape
    [2, 3]
    >>> described_tensor("arrow.fixed_shape_tensor", pa.list_(pa.int8(), 6), b'{"shape": [-2, -3]}')
    Traceback (most recent call last):
    ValueError: an axis of a tensor is -2
    """
    said = _said(text)
    made = {FIXED_SHAPE: _fixed, VARIABLE_SHAPE: _variable}[name](storage, said)
    if made.storage_type != storage:
        raise ValueError(f"{made} is not stored as {storage}")
    return made


def _said(text: bytes) -> dict[str, Any]:
    if len(text) > _MOST_BYTES:
        raise ValueError(f"the metadata of a tensor has {len(text)} bytes")
    try:
        said = json.loads(text or b"{}")
    except RecursionError:
        raise ValueError("the metadata of a tensor is nested too deep") from None
    if not isinstance(said, dict):
        raise ValueError("the metadata of a tensor is no object")
    return said


def _fixed(storage: pa.DataType, said: dict[str, Any]) -> pa.DataType:
    if not t.is_fixed_size_list(storage) or set(said) - {"shape", "dim_names"}:
        raise ValueError("tensors of one shape are stored as lists of a fixed size, and have a shape")
    axes = _axes(said.get("shape"))
    if None in axes or math.prod(axes) != storage.list_size:  # type: ignore[arg-type]
        raise ValueError(f"the shape {axes} does not have {storage.list_size} values")
    names = _names(said, len(axes))
    return pa.fixed_shape_tensor(storage.value_type, axes, dim_names=names and list(names))


def _variable(storage: pa.DataType, said: dict[str, Any]) -> pa.DataType:
    if set(said) - {"uniform_shape", "dim_names"} or not _is_variable_storage(storage):
        raise ValueError("tensors of shapes that vary are stored as their values and their shape")
    ndim = storage.field("shape").type.list_size
    axes = _axes(said.get("uniform_shape", [None] * min(ndim, _MOST_AXES + 1)))
    if len(axes) != ndim:
        raise ValueError(f"the shape {axes} does not have {ndim} dimensions")
    return variable_shape_tensor(storage.field("data").type.value_type, axes, _names(said, ndim))


def _is_variable_storage(storage: pa.DataType) -> bool:
    if not t.is_struct(storage) or [child.name for child in storage] != ["data", "shape"]:
        return False
    data, shape = storage.field("data").type, storage.field("shape").type
    return bool(t.is_list(data) and t.is_fixed_size_list(shape))


def _axes(said: Any) -> tuple[int | None, ...]:
    if not isinstance(said, list) or len(said) > _MOST_AXES:
        raise ValueError("the shape of a tensor is no list of its axes")
    for axis in said:
        if axis is not None and (type(axis) is not int or not 0 <= axis <= _MOST_VALUES):
            raise ValueError(f"an axis of a tensor is {axis!r:.40}")
    if math.prod(axis or 1 for axis in said) > _MOST_VALUES:
        raise ValueError("the shape of a tensor has more values than a record can hold")
    return tuple(said)


def _names(said: dict[str, Any], ndim: int) -> tuple[str, ...] | None:
    names = said.get("dim_names")
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != ndim or not all(isinstance(name, str) for name in names):
        raise ValueError("the names of a tensor's axes are none")
    return tuple(names)
