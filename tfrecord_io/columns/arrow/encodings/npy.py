"""The encoding "npy": the bytes that ``numpy.save`` writes, a header with dtype, order and shape, then the values.

Written in format version 1.0 (2.0 for long headers), read in 1.0 to 3.0. Pickled objects are never read.
"""

from __future__ import annotations

import io
import math
from functools import lru_cache
from typing import Any

import numpy as np

from tfrecord_io.bytes import Array, Dtype, NpyHeader
from tfrecord_io.columns.arrow.encodings.tensor_encoding import (
    DecodedCells,
    TensorEncoding,
    cells_of_one_header,
    check_shapes,
    prepend_headers,
    refuse_widening,
)
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.arrow.tensor_values import TensorValues
from tfrecord_io.columns.schema.tensor_types import Shape
from tfrecord_io.errors import DecodeError

_MAX_AXIS = 2**31 - 1  # Arrow's shapes are int32
_header = lru_cache(maxsize=256)(NpyHeader.to_bytes)


class Npy(TensorEncoding):
    """Arrays as ``.npy`` data; NumPy's headers have no dtypes of ml_dtypes."""

    name = "npy"
    self_describing = True
    dtype_kinds = "biufcmMSU"

    def encode(self, cells: TensorValues) -> tuple[Array, Array]:
        return prepend_headers(cells, lambda shape: _header(cells.element.dtype, shape))

    def decode(self, values: Array, offsets: Array, element: Dtype, shape: Shape) -> DecodedCells:
        count, decoded = len(offsets) - 1, None
        if count:
            first = _cell(values[offsets[0] : offsets[1]], 0, element, shape)
            header = _header(element.dtype, first.shape)  # that numpy.save writes; if all have it, one comparison
            decoded = cells_of_one_header(values, offsets, header=header, size=first.nbytes, shape=first.shape)
        if decoded is None:
            cells = [_cell(values[offsets[row] : offsets[row + 1]], row, element, shape) for row in range(count)]
            data = np.concatenate([np.empty(0, np.uint8), *(cell.reshape(-1).view(np.uint8) for cell in cells)])
            sizes = np.fromiter((cell.nbytes for cell in cells), np.int64, count)
            shapes = np.array([cell.shape for cell in cells], np.int64).reshape(count, len(shape))
            decoded = DecodedCells(data, sizes, shapes)
        return decoded.check(element)


def _cell(value: Array, row: int, element: Dtype, shape: Shape) -> Array:
    """The array of one cell, C order and little-endian."""
    file = io.BytesIO(value.data)
    try:
        dtype, fortran_order, axes = NpyHeader.read(file)
    except DecodeError as error:
        raise RowFault(row, error.reason, expected=error.expected, got=error.got) from error
    if not _fits(dtype, element):
        reason = f"the .npy array is of {dtype}, the column of {element.name}"
        raise RowFault(row, reason, expected=element.name, got=str(dtype))
    if axes and max(axes) > _MAX_AXIS:
        raise RowFault(row, f"the .npy array has an axis of {max(axes)}", expected=_MAX_AXIS, got=max(axes))
    try:
        check_shapes([axes], shape, "the .npy array")
    except RowFault as fault:
        fault.row = row
        raise
    begin, expected = file.tell(), math.prod(axes) * dtype.itemsize
    if len(value) - begin != expected:
        reason = f"{len(value) - begin} bytes after the header, but the shape {axes} of {dtype} has {expected}"
        raise RowFault(row, reason, expected=expected, got=len(value) - begin)
    if dtype.itemsize < element.itemsize:  # narrower text
        refuse_widening(row, math.prod(axes) * element.itemsize)
    array = np.frombuffer(value[begin:].tobytes(), dtype).reshape(axes, order="F" if fortran_order else "C")
    return np.ascontiguousarray(array, element.dtype).reshape(axes)


def _fits(dtype: np.dtype[Any], element: Dtype) -> bool:
    """True if values of the dtype, of either byte order, are of the column's; text and bytes may be narrower."""
    if dtype.kind in "SU":
        return dtype.kind == element.dtype.kind and dtype.itemsize <= element.itemsize
    try:
        return Dtype.name_of(dtype) == element.name
    except ValueError:
        return False
