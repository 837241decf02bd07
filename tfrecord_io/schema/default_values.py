"""Defaults of tensor columns: given as arrays, nested lists or one value for all; kept as what JSON and Arrow take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.format.dtypes import Element
from tfrecord_io.schema.tensor_types import Shape, element_and_shape, is_fixed_shape_tensor


def settled_default(default: Any, field: pa.Field) -> Any:
    """The default as a field keeps it.

    Of tensors of one shape: one value that stands for each, or a flat list of Arrow's values. Of others: nested lists.

    Raises
    ------
    ValueError, TypeError
        It does not have the shape, or the dtype.

    Examples
    --------
    >>> from tfrecord_io.format.dtypes import element
    >>> from tfrecord_io.schema.tensor_types import tensor_field
    >>> settled_default([[1 + 2j], [0]], tensor_field("x", element("complex64"), (2, 1)))
    [1.0, 2.0, 0.0, 0.0]
    """
    of, shape = element_and_shape(field)
    if not is_fixed_shape_tensor(field.type):
        if of.marked:
            raise ValueError(f"no default of {of.name} tensors whose shapes vary")
        return _shaped(default, of, shape).tolist()
    size = field.type.storage_type.list_size
    if of.marked:
        return default if _is_stored(default, of, size) else _stored(_whole(default, of, shape), of)
    if isinstance(default, np.generic):
        return default.item()
    return _stored(_whole(default, of, shape), of) if isinstance(default, np.ndarray | list | tuple) else default


def tensor_default(default: Any, field: pa.Field) -> pa.Array:
    """A settled default as an array of one row."""
    of, shape = element_and_shape(field)
    if is_fixed_shape_tensor(field.type):
        values = default if isinstance(default, list) else [default] * field.type.storage_type.list_size
        storage = pa.array([values], field.type.storage_type)
    else:
        array = _shaped(default, of, shape)
        storage = pa.array([{"data": array.reshape(-1).tolist(), "shape": list(array.shape)}], field.type.storage_type)
    return pa.ExtensionArray.from_storage(field.type, storage)


def _whole(default: Any, of: Element, shape: Shape) -> Any:
    """The default as an array of the whole shape."""
    array = np.asarray(default)
    if array.dtype == object:  # dates and times
        array = np.asarray(default, of.dtype)
    if not np.can_cast(array.dtype, of.dtype, "same_kind") and array.dtype.kind not in "iub":
        raise ValueError(f"{array.dtype} is no {of.name}")
    made = array.astype(of.dtype)
    if of.dtype.kind in "iu" and not np.array_equal(made, array):
        raise ValueError(f"a value does not fit {of.name}")
    if not made.ndim:
        return np.broadcast_to(made, shape)  # type: ignore[arg-type]  # the shape has no free axis here
    return made.reshape(shape)


def _shaped(default: Any, of: Element, shape: Shape) -> Any:
    """The default of a column whose shapes vary as an array."""
    array = np.asarray(default, of.dtype)
    if not array.size:
        array = array.reshape([axis or 0 for axis in shape])
    if array.ndim != len(shape) or any(axis not in (None, size) for axis, size in zip(shape, array.shape, strict=True)):
        raise ValueError(f"the shape {array.shape} is no {shape}")
    return array


def _is_stored(default: Any, of: Element, size: int) -> bool:
    if not isinstance(default, list) or len(default) != size:
        return False
    try:
        pa.array(default, of.arrow)
    except (pa.ArrowException, TypeError, ValueError):
        return False
    return True


def _stored(array: Any, of: Element) -> Any:
    """Arrow's values of an array, flat."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    width = max(of.arrow.bit_width // 8, 1)
    return pa.Array.from_buffers(of.arrow, data.size // width, [None, pa.py_buffer(data)]).to_pylist()
