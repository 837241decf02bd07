"""Build columns of tensors: the bytes or values of a feature, and of its companions, become an Arrow tensor array.

`TensorColumn.array` decodes the cells of all rows by the column's encoding, checks them against the column's dtype and
shape and against what the companions state, and builds the array; `steps` does so for the steps of a feature list.

Tests: tests/columns/arrow/decode/test_encoded_cells_tensor_column.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
import pyarrow as pa

from tfrecord_io.base import Expansion
from tfrecord_io.bytes import Array, ColumnBuffers, Dtype, Kind, Layout, ShapeSource
from tfrecord_io.columns.arrow.buffers import offsets_of, scatter
from tfrecord_io.columns.arrow.decode.companion_checks import CompanionColumns, Companions
from tfrecord_io.columns.arrow.decode.encoded_cells import decode_cells
from tfrecord_io.columns.arrow.decode.lists import Restore, from_kinds, is_nothing, slots, widen
from tfrecord_io.columns.arrow.encodings.tensor_encoding import DecodedCells, tensor_encoding
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.arrow.tensor_values import TensorValues, first_invalid, shapes_of_counts, tensors_to_column
from tfrecord_io.columns.schema.column_features import RAW, fixed_part, size_of
from tfrecord_io.columns.schema.tensor_types import Shape, element_and_shape, is_fixed_shape_tensor
from tfrecord_io.errors import DecodeError


class TensorColumn:
    """Makes the arrays of a column of tensors; compiled once, used by any thread.

    `tensor` is the type of the tensors, whose axes are not permuted, with the mark of their dtype.
    """

    def __init__(self, feature: str, tensor: pa.Field, encoding: str) -> None:
        self._element, self._shape = element_and_shape(tensor)
        self._type = tensor.type
        self._encoding = tensor_encoding(encoding)
        self._feature = feature
        self._size = size_of(self._shape)

    def steps(self, columns: Mapping[str, ColumnBuffers], checks: Companions) -> Restore:
        """How the steps of a feature list become tensors; their companions are feature lists of the same lengths."""
        column = columns.get(self._feature)
        offsets = None if column is None else column.offsets
        if (source := checks.shape_source) is not None:
            from tfrecord_io.columns.arrow.decode.stated_shapes import step_columns

            stated = {} if column is None or offsets is None else step_columns(columns, source, column)
            return lambda steps: self.array(steps, checks.columns(stated, steps.rows))
        step_companions = {}
        for name in ShapeSource.companions(self._feature):
            companion = columns.get(name)
            if companion is None or companion.steps is None or companion.offsets is None or offsets is None:
                continue
            if np.array_equal(companion.offsets, offsets):
                step_companions[name] = companion.steps
        return lambda steps: self.array(steps, checks.columns(step_companions, steps.rows))

    def array(self, column: ColumnBuffers, companion: CompanionColumns) -> pa.Array:
        """The column of decoded rows; one without such a tensor, or whose companions contradict it, is a RowFault."""
        if column.others:
            return from_kinds(column, lambda part: self.array(part, companion))
        nothing = is_nothing(column)
        mask = np.zeros(column.rows, bool) if nothing else column.mask
        companion.refuse_strays(mask)
        if nothing and not column.rows:
            return pa.nulls(0, self._type)
        if nothing:
            unstated = Companions.NONE.columns({}, column.rows)
            return self._build_array(DecodedCells(np.empty(0, np.uint8), np.empty(0, np.int64)), mask, unstated)
        encoding = self._encoding.for_kind(column.kind, self._element)
        if self._size is not None and encoding.name == RAW and companion.state_only(self._shape):
            uniform = self._uniform_array(column)
            if uniform is not None:
                return uniform
        if companion.companions.shape_source is not None and column.kind is Kind.BYTES:
            companion.refuse_dtype(mask, self._element, np.diff(slots(column)[0]))  # in which sizes are counted
        companion.refuse_counts(mask, self._shape, lambda: self._counts(column))
        cells = decode_cells(encoding, column, mask=mask, element=self._element, shape=self._shape)
        if column.kind is Kind.BYTES:
            companion.refuse_dtype(mask, self._element, scatter(cells.sizes, mask))
        self._refuse_sizes(cells, mask, companion)
        return self._build_array(cells, mask, companion)

    def _uniform_array(self, column: ColumnBuffers) -> pa.Array | None:
        """The array of rows that all have as many bytes as the shape; None if a row has none, others or invalid ones.

        The common case of images, which takes one look at the sizes.
        """
        if column.layout is not Layout.SCALAR or column.null_count:
            return None
        offsets, values = slots(column)
        size = fixed_part(self._shape) * self._element.itemsize
        if not (offsets[1:] - offsets[:-1] == size).all() or first_invalid(self._element, values) >= 0:
            return None
        shape: tuple[int, ...] = self._shape  # type: ignore[assignment]  # no dimension is unknown
        return tensors_to_column(TensorValues(self._element, values, offsets, shape), column.rows, self._type)

    def _counts(self, column: ColumnBuffers) -> Array:
        """The number of values of each row; of bytes that are not a whole number of values, as a fraction."""
        if column.kind is Kind.BYTES:
            sizes = np.diff(slots(column)[0])
            return sizes if self._element.itemsize == 1 else sizes / self._element.itemsize
        offsets = widen(column, column.kind, Layout.LIST).offsets
        assert offsets is not None
        return np.diff(offsets)

    def _refuse_sizes(self, cells: DecodedCells, mask: Array, companion: CompanionColumns) -> None:
        """Refuse bytes that are not a whole number of values, or not as many as the shape has."""
        part = fixed_part(self._shape) * self._element.itemsize
        bad = cells.sizes != part if self._size is not None or not part else cells.sizes % part != 0
        if not np.any(bad):
            return
        at = int(bad.argmax())
        row, size = int(np.flatnonzero(mask)[at]), int(cells.sizes[at])
        expected = f"{'' if self._size is not None else 'a multiple of '}{part}"
        reason = f"{size} bytes do not make {self._element.name} of the shape {self._shape}, which has {expected}"
        begin = int(cells.sizes[:at].sum())
        kind, advice = kind_of_bytes(cells.data[begin : begin + size].tobytes())
        reason += f"; {f'they look like {kind}' if kind else _hint(size, self._shape)}"
        reason += companion.description(row)
        raise RowFault(row, reason, expected=part if self._size is not None else expected, got=size, hint=advice)

    def _build_array(self, cells: DecodedCells, mask: Array, companion: CompanionColumns) -> pa.Array:
        shapes: Array | tuple[int, ...]
        if is_fixed_shape_tensor(self._type):
            companion.shapes(mask, self._shape, scatter(cells.sizes // max(self._element.itemsize, 1), mask))
            shapes = self._shape  # type: ignore[assignment]  # no dimension is unknown
        else:
            shapes = self._shapes(cells, mask, companion)
        valid = None if mask.all() else mask
        tensors = TensorValues(self._element, cells.data, offsets=offsets_of(cells.sizes), shapes=shapes, valid=valid)
        return tensors_to_column(tensors, len(mask), self._type)

    def _shapes(self, cells: DecodedCells, mask: Array, companion: CompanionColumns) -> Array:
        """The shape of each tensor: stated by its bytes, by its companion, or derived from its length."""
        if cells.shapes is not None:
            return cells.shapes
        counts = cells.sizes // self._element.itemsize
        by_feature, has = companion.shapes(mask, self._shape, scatter(counts, mask))
        if by_feature is not None and has is not None and has[mask].all():
            return by_feature[mask]
        unknown = self._shape.count(None)
        if unknown > 1 and len(counts):
            row = int((mask if has is None else mask & ~has).argmax())
            reason = f"no feature '{self._feature}/shape' states the {unknown} unknown dimensions of {self._shape}"
            raise RowFault(row, reason, expected=f"{self._feature}/shape")
        derived = shapes_of_counts(counts, self._shape)
        if by_feature is None or has is None:
            return derived
        return np.where(has[mask][:, None], by_feature[mask], derived)


def kind_of_bytes(content: bytes) -> tuple[str | None, str | None]:
    """Name the format of bytes that are not the values of a tensor, and how to read them; None if unknown."""
    from tfrecord_io.bytes import ForeignFile, ParsedTensor

    kind = ForeignFile.looks_like(content) if len(content) >= _LEAST_BYTES else None
    if kind is not None and kind != ForeignFile.ZEROS:
        if kind.endswith(" image"):
            return kind, "declare the column as tfr.image()"
        is_npy = content.startswith(b"\x93NUMPY")
        return (
            kind,
            "declare the column with tfr.tensor(…, encoding='npy')" if is_npy else "declare the column as binary",
        )
    with suppress(DecodeError):
        tensor = ParsedTensor.parse(content, expansion=Expansion(_HINT_BYTES, len(content)))
        return (
            f"a serialized tensor of {tensor.name} and the shape {tensor.shape}",
            "declare the column with tfr.tensor(…, encoding='tensor_proto')",
        )
    return None, None


def _hint(size: int, shape: Shape) -> str:
    """Tensors that this many bytes would be."""
    part = fixed_part(shape)
    width = size // part if part and size % part == 0 and None not in shape else 0
    names = [name for name, row in Dtype.TABLE.items() if row.itemsize == width and row.is_likely]
    names.sort(key=lambda name: name not in _USUAL)
    if names:
        return f"they are {part} values of {' or '.join(names)}"
    fitting = [(name, Dtype.TABLE[name].itemsize) for name in _USUAL if name != "float16"]
    return "they are " + " or ".join(f"{size // itemsize} {name}" for name, itemsize in fitting if size % itemsize == 0)


_USUAL = ("uint8", "float16", "float32", "float64")  # of each width, the dtype that a hint names first
_HINT_BYTES = 1 << 20  # that a tensor may take which is parsed for a hint
_LEAST_BYTES = 8  # fewer may look like anything
