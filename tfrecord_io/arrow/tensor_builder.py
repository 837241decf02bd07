"""Columns of tensors made of NumPy arrays: the same memory where that is C order and little-endian.

A tensor's bytes are the same everywhere: in NumPy, in Arrow's storage and in a record. So all of this is about views, offsets
and shapes; only arrays that are strided, big-endian or cut by nulls are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import bitmap_of, fixed_width, list_array
from tfrecord_io.arrow.tensor_values import Shape, TensorValues
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError
from tfrecord_io.format.dtypes import Element, dtype_name, element
from tfrecord_io.schema.tensor_types import tensor_type, variable_shape_tensor


def from_ndarray(values: Array, valid: Array | None = None) -> tuple[pa.Array, Element]:
    """A column of the tensors of an array, whose first axis counts the rows.

    Parameters
    ----------
    values : ndarray of shape [rows, ...]
    valid : bool ndarray of shape [rows], optional
        False: the row is null.

    Raises
    ------
    EncodeError
        The dtype is not in the table of dtypes.

    Examples
    --------
    >>> column, of = from_ndarray(np.zeros((3, 28, 28), np.uint8))
    >>> column.type.shape, of.name
    ([28, 28], 'uint8')
    """
    of = element_of_dtype(values.dtype)
    plain = _plain(values, of)
    return _fixed(of, values.shape[1:], len(values), plain, valid), of


def from_cells(cells: Sequence[Any]) -> tuple[pa.Array, Element]:
    """A column of the arrays of a sequence, None where there is none: of one dtype and rank; of one shape, or of shapes that vary.

    Raises
    ------
    EncodeError
        Dtypes or ranks differ; ``record`` is the first such row. Or the dtype is not in the table.
    """
    arrays = [None if cell is None else np.asarray(cell) for cell in cells]
    of, shape = shape_of_cells(arrays)
    return cells_to_tensors(arrays, of, shape), of


def shape_of_cells(cells: Sequence[Array | None]) -> tuple[Element, tuple[int | None, ...]]:
    """What the tensors of a sequence of arrays are: their dtype, and their shape, all of whose axes are None where shapes differ.

    Raises
    ------
    EncodeError
        As `from_cells`.
    """
    valid = np.fromiter((cell is not None for cell in cells), np.bool_, len(cells))
    arrays = [cell for cell in cells if cell is not None]
    if not arrays:
        raise EncodeError("a column of no array has no dtype")
    of = element_of_dtype(_common_dtype(arrays, valid))
    _refuse_ranks(arrays, valid)
    one = len({array.shape for array in arrays}) == 1
    return of, arrays[0].shape if one else (None,) * arrays[0].ndim


def cells_to_tensors(cells: Sequence[Array | None], of: Element, shape: tuple[int | None, ...]) -> pa.Array:
    """A column of the arrays of a sequence, which are as `shape_of_cells` says of all."""
    valid = np.fromiter((cell is not None for cell in cells), np.bool_, len(cells))
    arrays = [cell for cell in cells if cell is not None]
    given = None if valid.all() else valid
    if None not in shape:
        fixed = tuple(axis or 0 for axis in shape)
        stacked = (
            np.empty((len(cells), *fixed), of.dtype) if given is None else np.zeros((len(cells), *fixed), of.dtype)
        )
        for at, array in zip(np.flatnonzero(valid), arrays, strict=True):
            stacked[at] = array
        return _fixed(of, fixed, len(cells), _plain(stacked, of), given)
    pieces = [_plain(array, of) for array in arrays]
    offsets = np.cumsum([0, *map(len, pieces)])
    matrix = np.array([array.shape for array in arrays], np.int64).reshape(len(arrays), len(shape))
    data = np.concatenate(pieces) if pieces else np.empty(0, np.uint8)
    return from_items(TensorValues(of, data, offsets, matrix, given), len(cells))


def from_items(items: TensorValues, rows: int, type_: pa.DataType | None = None) -> pa.Array:
    """A column from the bytes of its tensors; `rows` counts the null ones, too. Of `type_`, if given, which says the same."""
    if isinstance(items.shapes, tuple):
        data = items.data[items.offsets[0] : items.offsets[-1]]
        if items.valid is not None:
            size = int(np.prod(items.shapes)) * items.of.itemsize
            spread = np.zeros((rows, size), np.uint8)
            spread[items.valid] = data.reshape(-1, size) if size else np.empty((len(items), 0), np.uint8)
            data = spread.reshape(-1)
        return _fixed(items.of, items.shapes, rows, data, items.valid, type_)
    return _variable(items, rows, type_)


def element_of_dtype(dtype: Any) -> Element:
    """The element of a NumPy dtype.

    Raises
    ------
    EncodeError
        It is not in the table.
    """
    try:
        return element(dtype_name(dtype))
    except ValueError as error:
        raise EncodeError(f"arrays of dtype {dtype} have no form in a record: {error}", got=str(dtype)) from None


def _common_dtype(arrays: list[Array], valid: Array) -> np.dtype[Any]:
    """The dtype of all; of texts, which NumPy cuts to fit, the widest."""
    first = arrays[0].dtype
    widest = first
    for at, array in zip(np.flatnonzero(valid), arrays, strict=True):
        dtype = array.dtype
        if dtype.kind in "SU" and dtype.kind == first.kind:
            widest = dtype if dtype.itemsize > widest.itemsize else widest
        elif dtype != first and dtype.newbyteorder("=") != first.newbyteorder("="):
            raise EncodeError(
                f"its array has dtype {dtype}, where those before have {first}",
                record=int(at),
                expected=str(first),
                got=str(dtype),
                advice="convert them to one dtype",
            )
    return widest


def _refuse_ranks(arrays: list[Array], valid: Array) -> None:
    rank = arrays[0].ndim
    for at, array in zip(np.flatnonzero(valid), arrays, strict=True):
        if array.ndim != rank:
            raise EncodeError(
                f"its array has {array.ndim} dimensions, where those before have {rank}",
                record=int(at),
                expected=rank,
                got=array.ndim,
                advice="reshape them to one number of dimensions",
            )


def _plain(values: Array, of: Element) -> Array:
    """The bytes of an array, C order and little-endian; a view where they lie so."""
    if values.dtype != of.dtype:
        values = values.astype(of.dtype)
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _fixed(
    of: Element, shape: Shape, rows: int, data: Array, valid: Array | None, type_: pa.DataType | None = None
) -> pa.Array:
    type_ = tensor_type(of, shape) if type_ is None else type_
    nulls = 0 if valid is None else rows - int(np.count_nonzero(valid))
    values = _values(of, data)
    buffers = [pa.py_buffer(bitmap_of(valid)) if nulls and valid is not None else None]
    storage = pa.Array.from_buffers(type_.storage_type, rows, buffers, nulls, children=[values])
    return pa.ExtensionArray.from_storage(type_, storage)


def _variable(items: TensorValues, rows: int, type_: pa.DataType | None = None) -> pa.Array:
    of, valid = items.of, items.valid
    matrix = np.asarray(items.shapes, np.int64)
    if matrix.size and matrix.max() > np.iinfo(np.int32).max:
        raise EncodeError("a shape has an axis of more than 2147483647", advice="reshape the arrays")
    inner = np.broadcast_to(np.array(of.inner, np.int64), (len(matrix), len(of.inner)))
    axes = np.concatenate([matrix, inner], axis=1).astype(np.int32)
    type_ = variable_shape_tensor(of.arrow, (None,) * items.rank + of.inner) if type_ is None else type_
    width = max(of.arrow.bit_width // 8, 1)
    counts = np.diff(items.offsets) // width
    if valid is not None:
        counts, axes = _spread(counts, valid), _spread(axes, valid)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise EncodeError("a batch of tensors has more than 2147483647 values", advice="pass smaller batches")
    lists, shapes = (type_.storage_type.field(at).type for at in (0, 1))
    data = list_array(lists, rows, 0, None, offsets, _values(of, items.data[items.offsets[0] : items.offsets[-1]]))
    flat = fixed_width(pa.int32(), axes.size, 0, None, np.ascontiguousarray(axes).reshape(-1))
    sizes = pa.Array.from_buffers(shapes, rows, [None], 0, children=[flat])
    nulls = 0 if valid is None else rows - int(np.count_nonzero(valid))
    bitmap = pa.py_buffer(bitmap_of(valid)) if nulls and valid is not None else None
    storage = pa.Array.from_buffers(type_.storage_type, rows, [bitmap], nulls, children=[data, sizes])
    return pa.ExtensionArray.from_storage(type_, storage)


def _spread(present: Array, valid: Array) -> Array:
    """An item for each row: zeros where it is null."""
    found = np.zeros((len(valid), *present.shape[1:]), present.dtype)
    found[valid] = present
    return found


def _values(of: Element, data: Array) -> pa.Array:
    """The Arrow array of values whose bytes are `data`."""
    width = max(of.arrow.bit_width // 8, 1)
    count = data.size // width
    if data.ctypes.data % min(width, 8) and not pa.types.is_fixed_size_binary(of.arrow):
        data = data.copy()
    return fixed_width(of.arrow, count, 0, None, data)
