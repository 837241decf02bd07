"""Check the companion features of raw bytes, ``x/shape`` and ``x/dtype``, against their column, all rows at once.

`Companions` finds the two columns; `CompanionColumns` returns the shapes of rows, or raises the RowFault of the first
bad row. A column without companions has `Companions.NONE`, whose columns state nothing and refuse nothing.

Tests: tests/columns/arrow/decode/test_batch_builder_types.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tfrecord_io.base import printable
from tfrecord_io.bytes import Array, ColumnBuffers, Dtype, Kind, Layout, ShapeSource
from tfrecord_io.columns.arrow.decode.lists import is_nothing, widen
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.arrow.tensor_values import misfits
from tfrecord_io.columns.schema.column_features import size_of
from tfrecord_io.columns.schema.tensor_types import Shape

LONGEST_AXIS = 2**31 - 1  # Arrow's shapes are of int32; no record has more values
_ADVICE = "read everything with read_table, or pass schema='infer' for the plain columns"


@dataclass(slots=True, repr=False)
class Companions:
    """The companions of a feature."""

    NONE: ClassVar[Companions]

    feature: str
    inferred_from: bool = False  # the column was inferred from them: each row has both or neither
    shape_source: ShapeSource | None = None  # features of another program in the place of companions

    def columns(self, columns: Mapping[str, ColumnBuffers], rows: int) -> CompanionColumns:
        """The companions of some decoded rows. Features of other feature types are ignored."""
        shape, dtype = ShapeSource.companions(self.feature)
        return CompanionColumns(
            self,
            _as(columns.get(shape), shape, rows=rows, kind=Kind.INT64, layout=Layout.LIST),
            _as(columns.get(dtype), dtype, rows=rows, kind=Kind.BYTES, layout=Layout.SCALAR),
        )


@dataclass(slots=True, repr=False)
class _NoCompanions(Companions):
    """Instead of the companions of a feature that has none, whatever the features named like them are."""

    def columns(self, columns: Mapping[str, ColumnBuffers], rows: int) -> CompanionColumns:
        shape, dtype = ShapeSource.companions(self.feature)
        return CompanionColumns(
            self,
            ColumnBuffers.nulls(shape, rows, Kind.INT64, Layout.LIST),
            ColumnBuffers.nulls(dtype, rows, Kind.BYTES, Layout.SCALAR),
        )


Companions.NONE = _NoCompanions("")


def _as(column: ColumnBuffers | None, name: str, rows: int, kind: Kind, layout: Layout) -> ColumnBuffers:
    """The column in the kind and layout of a companion; all null if it is another feature."""
    if column is None or column.steps is not None or is_nothing(column) or column.kind is not kind:
        return ColumnBuffers.nulls(name, rows, kind, layout)
    is_list = layout is Layout.SCALAR and column.layout is not layout
    return ColumnBuffers.nulls(name, rows, kind, layout) if is_list else widen(column, kind, layout)


@dataclass(slots=True, eq=False, repr=False)
class CompanionColumns:
    """Statements of the companions of some rows about their tensors."""

    companions: Companions
    shape: ColumnBuffers
    dtype: ColumnBuffers

    def refuse_strays(self, mask: Array) -> None:
        """If the column was inferred from its companions: refuse rows that lack one, and companions of null rows."""
        if not self.companions.inferred_from:
            return
        for column in (self.shape, self.dtype):
            if np.any(bad := column.mask != mask):
                row = int(bad.argmax())
                name, companion = printable(self.companions.feature), printable(column.name)
                reason = f"'{companion}' is missing" if mask[row] else f"'{companion}' occurs without '{name}'"
                raise RowFault(row, f"{reason}, unlike in the records before; {_ADVICE}")

    def state_only(self, shape: Shape) -> bool:
        """True if features other than companions state `shape` for every row, and nothing else."""
        return False

    def refuse_counts(self, mask: Array, shape: Shape, count: Callable[[], Array]) -> None:
        """Refuse rows without as many values as features other than companions state; companions may be missing.

        `count` returns how many each row has.
        """

    def refuse_dtype(self, mask: Array, element: Dtype, sizes: Array) -> None:
        """Refuse rows that state another dtype."""
        if is_nothing(self.dtype):
            return
        has = mask & self.dtype.mask
        if not has.any() or (has.all() and _all_equal(self.dtype, element.name.encode())):
            return
        bad = has & ~_equal(self.dtype, element.name.encode())
        if bad.any():
            row = int(bad.argmax())
            dtype, name = self._stated_dtype(row), printable(self.dtype.name)
            reason = f"its {sizes[row]} bytes are {dtype} according to '{name}', but the column is {element.name}"
            raise RowFault(row, reason, expected=element.name, got=dtype)

    def shapes(self, mask: Array, shape: Shape, counts: Array) -> tuple[Array | None, Array | None]:
        """The shape of each row, and which rows have one.

        One that is not a shape, is not `shape`, or does not have as many values as the row, is a RowFault.
        """
        if is_nothing(self.shape):
            return None, None
        has = mask & self.shape.mask
        if not has.any():
            return None, None
        flat, offsets = self.shape.values, self.shape.offsets
        assert offsets is not None
        assert flat is not None
        rank = len(shape)
        if np.any(bad := has & (np.diff(offsets) != rank)):
            self._refuse_shape(int(bad.argmax()), shape, counts)
        if not rank:
            return np.zeros((len(mask), 0), np.int64), has
        if has.all():
            matrix = flat[offsets[0] : offsets[-1]].reshape(-1, rank)
        else:
            matrix = np.zeros((len(mask), rank), np.int64)
            matrix[has] = flat[offsets[:-1][has][:, None] + np.arange(rank)]
        is_uniform = has.all() and all(np.all(matrix[:, at] == axis) for at, axis in enumerate(shape))
        if is_uniform and np.all(counts == size_of(shape)):
            return matrix, has
        wrong = ((matrix < 0) | (matrix > LONGEST_AXIS)).any(axis=1) | misfits(matrix, shape)
        if np.any(bad := has & (wrong | (product(matrix) != counts))):
            self._refuse_shape(int(bad.argmax()), shape, counts)
        return matrix, has

    def _refuse_shape(self, row: int, shape: Shape, counts: Array) -> None:
        got, name = self._stated_shape(row), printable(self.shape.name)
        reason = f"its {counts[row]} values have the shape {got} according to '{name}', but the column has {shape}"
        raise RowFault(row, reason, expected=str(shape), got=got)

    def description(self, row: int) -> str:
        """Describe the companions of a row, for an error message."""
        text = ""
        if self.dtype.mask[row]:
            text += f"; '{printable(self.dtype.name)}' says {self._stated_dtype(row)}"
        if self.shape.mask[row]:
            text += f"; '{printable(self.shape.name)}' says {self._stated_shape(row)}"
        return text

    def _stated_dtype(self, row: int) -> str:
        begin, end = self.dtype.value_offsets[row], self.dtype.value_offsets[row + 1]  # type: ignore[index]
        name = bytes(self.dtype.values[begin:end])  # type: ignore[index]
        is_known = name.isascii() and Dtype.find(name.decode(), loads=False) is not None
        return name.decode() if is_known else f"{len(name)} bytes that name no dtype"

    def _stated_shape(self, row: int) -> str:
        begin, end = self.shape.offsets[row], self.shape.offsets[row + 1]  # type: ignore[index]
        axes = self.shape.values[begin : min(end, begin + 8)].tolist()  # type: ignore[index]
        if any(not 0 <= axis <= LONGEST_AXIS for axis in axes):
            return f"{end - begin} numbers that are not a shape"
        return str(tuple(axes)) if end - begin <= len(axes) else f"({', '.join(map(str, axes))}, … {end - begin} axes)"


def product(matrix: Array) -> Array:
    """The number of values of each shape. As floats: a number that overflows an integer is not that of a record."""
    counts = np.ones(len(matrix))
    with np.errstate(over="ignore", invalid="ignore"):
        for axis in matrix.T:  # by columns: they are few and long
            counts *= axis
    return counts


def _all_equal(column: ColumnBuffers, text: bytes) -> bool:
    """True if every slot holds just this text."""
    offsets, size = column.value_offsets, len(text)
    assert offsets is not None
    assert column.values is not None
    flat = column.values[offsets[0] : offsets[-1]]
    if not np.all(np.diff(offsets) == size) or flat[:size].tobytes() != text:
        return False
    return bool(np.array_equal(flat[size:], flat[:-size]))  # each equals the one before


def _equal(column: ColumnBuffers, text: bytes) -> Array:
    """Which slots hold just this text."""
    offsets = column.value_offsets
    assert offsets is not None
    assert column.values is not None
    sizes = np.diff(offsets)
    fits = sizes == len(text)
    if np.count_nonzero(fits) == np.count_nonzero(sizes):  # the others are empty: no gaps
        texts = column.values[offsets[0] : offsets[-1]].reshape(-1, len(text))
    else:
        texts = column.values[offsets[:-1][fits][:, None] + np.arange(len(text))]
    fits[fits] = (texts == np.frombuffer(text, np.uint8)).all(axis=1)
    return fits
