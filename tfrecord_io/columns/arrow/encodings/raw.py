"""The encoding "raw": the bytes of an array in C order, little-endian; companion features hold its shape and dtype."""

from __future__ import annotations

import numpy as np

from tfrecord_io.bytes import Array, Dtype
from tfrecord_io.columns.arrow.encodings.tensor_encoding import DecodedCells, TensorEncoding
from tfrecord_io.columns.arrow.tensor_values import TensorValues
from tfrecord_io.columns.schema.tensor_types import Shape


class Raw(TensorEncoding):
    """Bytes without a header: written and read without a copy."""

    name = "raw"
    companions = True
    dtype_kinds = "biufcVSUmM"

    def encode(self, cells: TensorValues) -> tuple[Array, Array]:
        return cells.data, cells.offsets

    def decode(self, values: Array, offsets: Array, element: Dtype, shape: Shape) -> DecodedCells:
        return DecodedCells(values, np.diff(offsets).astype(np.int64)).check(element)
