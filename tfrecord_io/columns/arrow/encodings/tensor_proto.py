"""The encoding "tensor_proto": what ``tf.io.serialize_tensor`` writes, a message with dtype, shape and values.

Tensors of one dtype and shape begin with the same bytes, so a comparison and a copy read a whole column. Others are
parsed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrecord_io.base import LIMITS, Expansion
from tfrecord_io.bytes import Array, Dtype, ParsedTensor
from tfrecord_io.columns.arrow.encodings.tensor_encoding import (
    DecodedCells,
    TensorEncoding,
    cells_of_one_header,
    check_shapes,
    prepend_headers,
    refuse_widening,
)
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.arrow.tensor_values import TensorValues, tensors_to_cells
from tfrecord_io.columns.schema.tensor_types import Shape
from tfrecord_io.errors import DecodeError


class TensorProtos(TensorEncoding):
    """Serialized TensorProtos; text, and NumPy's bytes and text of one width, are strings in them."""

    name = "tensor_proto"
    self_describing = True
    dtype_kinds = "biufcVSU"
    stores_text = True

    def stores(self, element: Dtype | None) -> bool:
        return super().stores(element) and (element is None or element.kind in "SU" or element.tensor_field is not None)

    def encode(self, cells: TensorValues) -> tuple[Array, Array]:
        if cells.element.dtype.kind in "SU":
            return self.join([ParsedTensor.serialize(cell) for cell in tensors_to_cells(cells)])
        return prepend_headers(cells, lambda shape: ParsedTensor.prefix(cells.element.name, shape))

    def encode_text(self, cells: Sequence[Any]) -> tuple[Array, Array]:
        return self.join([ParsedTensor.serialize(cell) for cell in cells])

    def decode(self, values: Array, offsets: Array, element: Dtype, shape: Shape) -> DecodedCells:
        if element.dtype.kind in "SU":
            tensors = [_parse_tensor(row, offsets, values, Dtype.STRING) for row in range(len(offsets) - 1)]
            cells, shapes = _join_tensors(
                tensors, lambda row, tensor: _pad_to_one_width(row, tensor.values.tolist(), element.dtype)
            )
        else:
            cells, shapes = _decode_numbers(values, offsets, element)
        return cells._replace(shapes=check_shapes(shapes, shape, "the TensorProto"))

    def decode_text(self, values: Array, offsets: Array, shape: Shape) -> list[list[bytes]]:
        tensors = [_parse_tensor(row, offsets, values, Dtype.STRING) for row in range(len(offsets) - 1)]
        check_shapes([tensor.shape for tensor in tensors], shape, "the TensorProto")
        return [tensor.values.tolist() for tensor in tensors]


Shapes = Array | list[tuple[int, ...]]


def _decode_numbers(values: Array, offsets: Array, element: Dtype) -> tuple[DecodedCells, Shapes]:
    count = len(offsets) - 1
    if not count:
        return DecodedCells(np.empty(0, np.uint8), np.empty(0, np.int64)), []
    first = _number_tensor(0, offsets, values, None)
    if first.name != element.name:
        reason = f"the TensorProto is of {first.name}, the column of {element.name}"
        raise RowFault(0, reason, expected=element.name, got=first.name)
    size = first.values.nbytes
    decoded = cells_of_one_header(
        values, offsets, header=ParsedTensor.prefix(first.name, first.shape), size=size, shape=first.shape
    )
    is_misread = decoded is not None and first.name == "bool" and decoded.data.max(initial=0) > 1  # not a tensor
    if decoded is not None and not is_misread:
        assert decoded.shapes is not None
        return decoded, decoded.shapes
    tensors, total = [first], size
    for row in range(1, count):
        tensors.append(_number_tensor(row, offsets, values, first.name))
        total += tensors[-1].values.nbytes
        if total > max(LIMITS.MAX_RECORD_BYTES, len(values)):  # few bytes may claim many values
            reason = f"the tensors up to this one unfold to {total} bytes"
            raise RowFault(row, reason, expected=LIMITS.MAX_RECORD_BYTES, got=total, of_memory=True)
    return _join_tensors(tensors, lambda row, tensor: tensor.values.astype(element.dtype, copy=False))


def _join_tensors(
    tensors: list[ParsedTensor], convert: Callable[[int, ParsedTensor], Array]
) -> tuple[DecodedCells, Shapes]:
    pieces = [convert(row, tensor).view(np.uint8) for row, tensor in enumerate(tensors)]
    sizes = np.fromiter((piece.nbytes for piece in pieces), np.int64, len(pieces))
    return DecodedCells(np.concatenate([np.empty(0, np.uint8), *pieces]), sizes), [tensor.shape for tensor in tensors]


def _number_tensor(row: int, offsets: Array, values: Array, name: str | None) -> ParsedTensor:
    tensor = _parse_tensor(row, offsets, values, name)
    if tensor.name == Dtype.STRING:
        raise RowFault(row, "the tensor is of strings, which have no raw values", expected="numbers", got=Dtype.STRING)
    return tensor


def _parse_tensor(row: int, offsets: Array, values: Array, name: str | None) -> ParsedTensor:
    try:
        return ParsedTensor.parse(
            values[int(offsets[row]) : int(offsets[row + 1])].tobytes(), name, Expansion.current()
        )
    except DecodeError as error:
        fault = RowFault(row, error.reason, expected=error.expected, got=error.got, hint=error.advice)
        fault.of_memory = error.of_memory
        raise fault from error


def _pad_to_one_width(row: int, strings: list[bytes], dtype: np.dtype[Any]) -> Array:
    """Strings as text or bytes of one width, shorter ones filled up with NULs."""
    try:
        cells = [string.decode() for string in strings] if dtype.kind == "U" else strings
    except UnicodeDecodeError:
        raise RowFault(row, "a string of the tensor is not text", expected="UTF-8") from None
    width = dtype.itemsize // np.dtype(f"{dtype.kind}1").itemsize
    longest = max(map(len, cells), default=0)
    if longest > width:
        reason = f"a string of the tensor has {longest} characters, {dtype.str[1:]} has {width}"
        raise RowFault(row, reason, expected=width, got=longest)
    refuse_widening(row, len(cells) * dtype.itemsize)
    return np.array(cells, dtype)
