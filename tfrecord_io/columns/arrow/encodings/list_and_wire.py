"""The encodings "list" and "wire".

"list" stores the numbers of a cell as the values of the feature; "wire" reads these as well as raw bytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array, Dtype, Kind, Layout
from tfrecord_io.columns.arrow.casts import value_cast
from tfrecord_io.columns.arrow.encodings.tensor_encoding import DecodedCells, TensorEncoding, tensor_encoding
from tfrecord_io.columns.arrow.row_fault import RowFault, faults_of_lists
from tfrecord_io.columns.arrow.tensor_values import TensorValues, tensors_to_values
from tfrecord_io.columns.schema.column_features import fixed_part
from tfrecord_io.columns.schema.field import narrow
from tfrecord_io.columns.schema.tensor_types import Shape


class Values(TensorEncoding):
    """The encoding "list": the schema states the shape of a cell; one unknown dimension follows from the count."""

    name = "list"
    one_value_per_cell = False
    dtype_kinds = "biufmM"

    def kind(self, element: Dtype) -> Kind:
        kind = number_kind(element)
        if kind is None:
            raise ValueError(f"a list of numbers cannot be a tensor of {element.name}")
        return kind

    def check(self, element: Dtype | None, shape: Shape = ()) -> None:
        super().check(element, shape)
        if len(shape) > 1 and None in shape:
            raise ValueError(f"lists do not state the shapes of tensors that vary in {len(shape)} dimensions")

    def encode(self, cells: TensorValues) -> tuple[Array, Array]:
        numbers = tensors_to_values(cells)
        return numbers if numbers.flags.aligned else numbers.copy(), cells.offsets // cells.element.itemsize

    def decode(self, values: Array, offsets: Array, element: Dtype, shape: Shape) -> DecodedCells:
        counts = np.diff(offsets).astype(np.int64)
        check_counts(counts, shape + element.inner)
        with faults_of_lists(offsets):
            data = _number_bytes(element, values)
        return DecodedCells(data, counts * (element.itemsize // max(fixed_part(element.inner), 1)))


def number_kind(element: Dtype) -> Kind | None:
    """The feature type of lists of such numbers; None if lists do not hold them."""
    return element.feature


def check_counts(counts: Array, shape: Shape) -> None:
    """RowFault for the first cell whose number of values does not fit the shape."""
    size = fixed_part(shape)
    expected = f"a multiple of {size}" if None in shape else str(size)
    fits = counts == size if None not in shape or size == 0 else counts % size == 0
    if np.any(bad := ~fits):
        row = int(bad.argmax())
        reason = f"expected {expected} values for the shape {shape}, got {counts[row]}"
        raise RowFault(row, reason, expected=expected if None in shape else size, got=int(counts[row]))


def _number_bytes(element: Dtype, values: Array) -> Array:
    """Numbers of a feature as the bytes of the dtype; each is checked to fit."""
    if element.is_extension:
        made, misfit = narrow(values, element)
        if misfit >= 0:
            got = values[misfit].item()
            raise RowFault(misfit, f"{got} is not a value of {element.name}", expected=element.name, got=got)
        return made.view(np.uint8)
    is_bool = element.name == "bool"
    cast = value_cast(pa.bool_() if is_bool else element.arrow)
    array = cast(len(values), 0, None, values, None)
    if is_bool:
        array = array.cast(pa.uint8())  # from bits to bytes
    width = element.arrow.bit_width // 8
    return np.frombuffer(array.buffers()[1], np.uint8)[: len(array) * width] if len(array) else np.empty(0, np.uint8)


class Wire(Values):
    """The encoding "wire": each record is read as "list" or "raw", by its feature type.

    Where such a column is written, plain values become "list", and tensors "raw".
    """

    name = "wire"
    companions = True
    adaptive = True
    layout = Layout.ANY

    def kind(self, element: Dtype) -> Kind:
        return Kind.NONE

    def for_kind(self, kind: Kind, element: Dtype) -> TensorEncoding:
        return tensor_encoding("raw" if kind is Kind.BYTES or number_kind(element) is None else "list")
