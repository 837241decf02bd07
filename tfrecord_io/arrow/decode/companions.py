"""The features beside raw bytes, ``x/shape`` and ``x/dtype``: checked against the column, all rows at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tfrecord_io.arrow.buffers import column_mask
from tfrecord_io.arrow.decode.layout import absent, is_nothing, widen
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.errors import printable
from tfrecord_io.format.dtypes import Element
from tfrecord_io.format.kinds import Kind, Layout
from tfrecord_io.schema.leaf import companions
from tfrecord_io.schema.tensor_types import Shape

_LONGEST_AXIS = 2**31 - 1  # Arrow's shapes are of int32; no record has more values


@dataclass(frozen=True, slots=True)
class Companions:
    """Which features stand beside a feature.

    Parameters
    ----------
    feature : str
    ours : bool
        The column was inferred from them: each row has both or neither.
    """

    feature: str
    ours: bool = False

    def of(self, columns: Mapping[str, ColumnBuffers], rows: int) -> CompanionColumns:
        """Those of some decoded rows. Features of other kinds say nothing."""
        shape, dtype = companions(self.feature)
        return CompanionColumns(
            self,
            _as(columns.get(shape), shape, rows, Kind.INT64, Layout.LIST),
            _as(columns.get(dtype), dtype, rows, Kind.BYTES, Layout.SCALAR),
        )


def _as(column: ColumnBuffers | None, name: str, rows: int, kind: Kind, layout: Layout) -> ColumnBuffers:
    """The column in the form that ours have; without values where it is another feature's."""
    is_other = column is None or column.steps is not None or is_nothing(column) or column.kind is not kind
    if is_other or (layout is Layout.SCALAR and column.layout is not layout):  # type: ignore[union-attr]
        return absent(name, rows, kind, layout)
    assert column is not None
    return widen(column, kind, layout)


@dataclass(frozen=True, slots=True)
class CompanionColumns:
    """What the companions of some rows say their tensors are."""

    of: Companions
    shape: ColumnBuffers
    dtype: ColumnBuffers

    def refuse_strays(self, mask: Array) -> None:
        """Where the column was inferred from its companions: refuse rows that lack one, and companions of nothing."""
        if not self.of.ours:
            return
        for column in (self.shape, self.dtype):
            if np.any(bad := column_mask(column) != mask):
                row = int(bad.argmax())
                name, other = printable(self.of.feature), printable(column.name)
                reason = f"it stands without '{other}'" if mask[row] else f"'{other}' stands without '{name}'"
                raise RowFault(row, f"{reason}, unlike in the records before; {_ADVICE}")

    def refuse_dtype(self, mask: Array, of: Element, sizes: Array) -> None:
        """Refuse rows whose dtype is said to be another one."""
        has = mask & column_mask(self.dtype)
        if not has.any() or (has.all() and _all_equal(self.dtype, of.name.encode())):
            return
        bad = has & ~_equal(self.dtype, of.name.encode())
        if bad.any():
            row = int(bad.argmax())
            said = self._dtype_said(row)
            reason = (
                f"its {sizes[row]} bytes are {said} by '{printable(self.dtype.name)}', and the column is of {of.name}"
            )
            raise RowFault(row, reason, expected=of.name, got=said)

    def shapes(self, mask: Array, shape: Shape, counts: Array) -> tuple[Array | None, Array | None]:
        """The shape of each row, and which rows have one.

        Raises
        ------
        RowFault
            One is none, is not `shape`, or has not as many values as the row.
        """
        has = mask & column_mask(self.shape)
        if not has.any():
            return None, None
        assert self.shape.offsets is not None
        assert self.shape.values is not None
        rank = len(shape)
        ranks = np.diff(self.shape.offsets)
        if np.any(bad := has & (ranks != rank)):
            self._refuse_shape(int(bad.argmax()), shape, counts)
        if not rank:
            return np.zeros((len(mask), 0), np.int64), has
        flat, offsets = self.shape.values, self.shape.offsets
        if has.all():
            matrix = flat[offsets[0] : offsets[-1]].reshape(-1, rank)
        else:
            matrix = np.zeros((len(mask), rank), np.int64)
            matrix[has] = flat[offsets[:-1][has][:, None] + np.arange(rank)]
        fixed = np.array([-1 if axis is None else axis for axis in shape], np.int64)
        alike = has.all() and all(np.all(matrix[:, at] == axis) for at, axis in enumerate(shape))
        if alike and np.all(counts == math.prod(fixed.tolist())):
            return matrix, has
        wrong = ((matrix < 0) | (matrix > _LONGEST_AXIS) | ((fixed >= 0) & (matrix != fixed))).any(axis=1)
        if np.any(bad := has & (wrong | (product(matrix) != counts))):
            self._refuse_shape(int(bad.argmax()), shape, counts)
        return matrix, has

    def _refuse_shape(self, row: int, shape: Shape, counts: Array) -> None:
        said = self._shape_said(row)
        reason = (
            f"its {counts[row]} values have the shape {said} by '{printable(self.shape.name)}', and the column {shape}"
        )
        raise RowFault(row, reason, expected=str(shape), got=said)

    def description(self, row: int) -> str:
        """What they state about a row, for an error message."""
        found = []
        if column_mask(self.dtype)[row]:
            found.append(f"'{printable(self.dtype.name)}' says {self._dtype_said(row)}")
        if column_mask(self.shape)[row]:
            found.append(f"'{printable(self.shape.name)}' says {self._shape_said(row)}")
        return "".join(f"; {each}" for each in found)

    def _dtype_said(self, row: int) -> str:
        begin, end = self.dtype.value_offsets[row], self.dtype.value_offsets[row + 1]  # type: ignore[index]
        return printable(self.dtype.values[begin:end].tobytes(), 60)  # type: ignore[index]

    def _shape_said(self, row: int) -> str:
        begin, end = self.shape.offsets[row], self.shape.offsets[row + 1]  # type: ignore[index]
        axes = self.shape.values[begin : min(end, begin + 8)].tolist()  # type: ignore[index]
        return str(tuple(axes)) if end - begin <= len(axes) else f"({', '.join(map(str, axes))}, … {end - begin} axes)"


_ADVICE = "read the whole with read_table, or pass schema='infer' for the plain columns"


def product(matrix: Array) -> Array:
    """The number of values of each shape. As floats: what overflows an integer is no count that a record has."""
    found = np.ones(len(matrix))
    with np.errstate(over="ignore", invalid="ignore"):
        for axis in matrix.T:  # by columns: they are few and long
            found *= axis
    return found


def _all_equal(column: ColumnBuffers, text: bytes) -> bool:
    """Whether every slot holds just this text."""
    assert column.value_offsets is not None
    assert column.values is not None
    offsets, size = column.value_offsets, len(text)
    flat = column.values[offsets[0] : offsets[-1]]
    if not np.all(np.diff(offsets) == size) or flat[:size].tobytes() != text:
        return False
    return bool(np.array_equal(flat[size:], flat[:-size]))  # each is as the one before


def _equal(column: ColumnBuffers, text: bytes) -> Array:
    """Which slots hold just this text."""
    assert column.value_offsets is not None
    assert column.values is not None
    offsets = column.value_offsets
    sizes = np.diff(offsets)
    fits = sizes == len(text)
    if np.count_nonzero(fits) == np.count_nonzero(sizes):  # the others are empty: no gaps
        texts = column.values[offsets[0] : offsets[-1]].reshape(-1, len(text))
    else:
        texts = column.values[offsets[:-1][fits][:, None] + np.arange(len(text))]
    fits[fits] = (texts == np.frombuffer(text, np.uint8)).all(axis=1)
    return fits
