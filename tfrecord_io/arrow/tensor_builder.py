"""Columns of tensors made of NumPy arrays.

A tensor's bytes are the same in NumPy, in Arrow's storage and in a record, so arrays in C order and little-endian are
not copied; those that are strided, big-endian or have null rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import bitmap_of, fixed_width, list_array, offsets_of, scatter
from tfrecord_io.arrow.tensor_values import Shape, TensorValues
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError
from tfrecord_io.format.dtypes import Element, dtype_name
from tfrecord_io.format.dtypes import element as element_named
from tfrecord_io.schema.tensor_types import tensor_type, variable_shape_tensor


def from_ndarray(values: Array, valid: Array | None = None) -> tuple[pa.Array, Element]:
    """A column of the tensors of an array, whose first axis counts the rows; null where they are not `valid`.

    Examples
    --------
    >>> column, element = from_ndarray(np.zeros((3, 28, 28), np.uint8))
    >>> column.type.shape, element.name
    ([28, 28], 'uint8')
    """
    element = element_of_dtype(values.dtype)
    return _fixed(element, values.shape[1:], len(values), _bytes_of(values, element), valid), element


def shape_of_cells(cells: Sequence[Array | None]) -> tuple[Element, tuple[int | None, ...]]:
    """The dtype of a sequence of arrays, and their shape; all of its axes are None where shapes differ.

    Raises
    ------
    EncodeError
        Dtypes or ranks differ (``record`` is the first such row), or the dtype is not in the table of dtypes.
    """
    valid = _present(cells)
    arrays = [cell for cell in cells if cell is not None]
    if not arrays:
        raise EncodeError("a column of no array has no dtype")
    element = element_of_dtype(_common_dtype(arrays, valid))
    _refuse_ranks(arrays, valid)
    is_one_shape = len({array.shape for array in arrays}) == 1
    return element, arrays[0].shape if is_one_shape else (None,) * arrays[0].ndim


def cells_to_tensors(cells: Sequence[Array | None], element: Element, shape: tuple[int | None, ...]) -> pa.Array:
    """A column of the arrays of a sequence; dtype and shape are those of the whole column by `shape_of_cells`."""
    present = _present(cells)
    arrays = [cell for cell in cells if cell is not None]
    valid = None if present.all() else present
    if None not in shape:
        fixed = tuple(axis or 0 for axis in shape)
        stacked = np.zeros((len(cells), *fixed), element.dtype)
        for row, array in zip(np.flatnonzero(present), arrays, strict=True):
            stacked[row] = array
        return _fixed(element, fixed, len(cells), _bytes_of(stacked, element), valid)
    pieces = [_bytes_of(array, element) for array in arrays]
    matrix = np.array([array.shape for array in arrays], np.int64).reshape(len(arrays), len(shape))
    data = np.concatenate([np.empty(0, np.uint8), *pieces])
    offsets = offsets_of(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    return tensor_array(TensorValues(element, data, offsets, matrix, valid), len(cells))


def _present(cells: Sequence[Array | None]) -> Array:
    return np.fromiter((cell is not None for cell in cells), np.bool_, len(cells))


def tensor_array(tensors: TensorValues, rows: int, type_: pa.DataType | None = None) -> pa.Array:
    """A column of `rows` (including the null ones) from the bytes of its tensors.

    `type_` is its tensor type, made of element and shapes if not given.
    """
    if not isinstance(tensors.shapes, tuple):
        return _variable(tensors, rows, type_)
    data = tensors.data[tensors.offsets[0] : tensors.offsets[-1]]
    if tensors.valid is not None:
        size = int(np.prod(tensors.shapes)) * tensors.element.itemsize
        data = scatter(data.reshape(len(tensors), size), tensors.valid).reshape(-1)
    return _fixed(tensors.element, tensors.shapes, rows, data, tensors.valid, type_)


def element_of_dtype(dtype: Any) -> Element:
    """The element of a NumPy dtype; one that is not in the table of dtypes is an EncodeError."""
    try:
        return element_named(dtype_name(dtype))
    except ValueError as error:
        raise EncodeError(f"arrays of dtype {dtype} cannot be stored in a TFRecord: {error}", got=str(dtype)) from None


def _common_dtype(arrays: list[Array], valid: Array) -> np.dtype[Any]:
    """The dtype of all; of texts, which NumPy makes as wide as the longest, the widest."""
    first = widest = arrays[0].dtype
    for row, array in zip(np.flatnonzero(valid), arrays, strict=True):
        dtype = array.dtype
        if dtype.kind in "SU" and dtype.kind == first.kind:
            widest = dtype if dtype.itemsize > widest.itemsize else widest
        elif dtype != first and dtype.newbyteorder("=") != first.newbyteorder("="):
            reason, advice = f"its array has dtype {dtype}, those before have {first}", "convert them to one dtype"
            raise EncodeError(reason, record=int(row), expected=str(first), got=str(dtype), advice=advice)
    return widest


def _refuse_ranks(arrays: list[Array], valid: Array) -> None:
    rank = arrays[0].ndim
    for row, array in zip(np.flatnonzero(valid), arrays, strict=True):
        if array.ndim != rank:
            reason = f"its array has {array.ndim} dimensions, those before have {rank}"
            advice = "reshape them to one number of dimensions"
            raise EncodeError(reason, record=int(row), expected=rank, got=array.ndim, advice=advice)


def _bytes_of(values: Array, element: Element) -> Array:
    """The bytes of an array, C order and little-endian; a view if the array is stored so."""
    if values.dtype != element.dtype:
        values = values.astype(element.dtype)
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _fixed(
    element: Element, shape: Shape, rows: int, data: Array, valid: Array | None, type_: pa.DataType | None = None
) -> pa.Array:
    type_ = tensor_type(element, shape) if type_ is None else type_
    return _tensors(type_, rows, valid, [_values(element, data)])


def _variable(tensors: TensorValues, rows: int, type_: pa.DataType | None = None) -> pa.Array:
    element, valid = tensors.element, tensors.valid
    matrix = np.asarray(tensors.shapes, np.int64)
    if matrix.size and matrix.max() > np.iinfo(np.int32).max:
        raise EncodeError("a shape has an axis of more than 2147483647", advice="reshape the arrays")
    inner = np.broadcast_to(np.array(element.inner, np.int64), (len(matrix), len(element.inner)))
    axes = np.concatenate([matrix, inner], axis=1).astype(np.int32)
    if type_ is None:
        type_ = variable_shape_tensor(element.arrow, (None,) * tensors.rank + element.inner)
    counts = np.diff(tensors.offsets) // max(element.arrow.bit_width // 8, 1)
    if valid is not None:
        counts, axes = scatter(counts, valid), scatter(axes, valid)
    offsets = offsets_of(counts)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise EncodeError("a batch of tensors has more than 2147483647 values", advice="pass smaller batches")
    lists, shapes = (type_.storage_type.field(at).type for at in (0, 1))
    values = _values(element, tensors.data[tensors.offsets[0] : tensors.offsets[-1]])
    flat = fixed_width(pa.int32(), axes.size, 0, None, np.ascontiguousarray(axes).reshape(-1))
    sizes = pa.Array.from_buffers(shapes, rows, [None], 0, children=[flat])
    return _tensors(type_, rows, valid, [list_array(lists, rows, 0, None, offsets, values), sizes])


def _tensors(type_: pa.DataType, rows: int, valid: Array | None, children: list[pa.Array]) -> pa.Array:
    nulls = 0 if valid is None else rows - int(np.count_nonzero(valid))
    bitmap = pa.py_buffer(bitmap_of(valid)) if nulls and valid is not None else None
    storage = pa.Array.from_buffers(type_.storage_type, rows, [bitmap], nulls, children=children)
    return pa.ExtensionArray.from_storage(type_, storage)


def _values(element: Element, data: Array) -> pa.Array:
    """The Arrow array of values whose bytes are `data`."""
    width = max(element.arrow.bit_width // 8, 1)
    if data.ctypes.data % min(width, 8) and not pa.types.is_fixed_size_binary(element.arrow):
        data = data.copy()
    return fixed_width(element.arrow, data.size // width, 0, None, data)
