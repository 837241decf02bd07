"""Decoded columns in the layout that their type needs, without decoding anything again.

A chunk in which a feature has no value, or one value per row, has a narrower layout than the unified type: it is
relabelled, gets offsets, or loses the empty slots of its nulls. Values are moved at most once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tfrecord_io.arrow.buffers import bitmap_of, mask_of, offsets_of, scatter
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.errors import FeatureNotFoundError, FeatureTypeError
from tfrecord_io.format.kinds import Kind, Layout

_VALUES = {Kind.INT64: np.int64, Kind.FLOAT: np.float32, Kind.BYTES: np.uint8}


def widen(column: ColumnBuffers, kind: Kind, layout: Layout) -> ColumnBuffers:
    """The same rows as a column of `kind` and `layout`; the column itself if it is one already.

    A row that has a value of another feature type, or not one value where `layout` is SCALAR, is a RowFault.
    """
    if column.layout is layout and column.kind is kind:
        return column
    if is_nothing(column):
        return absent(column.name, column.rows, kind, layout)
    if column.kind is not kind:
        reason = f"expected {kind.description}, got {column.kind.description}"
        reason += "; pass a schema that fits the records, or leave the feature out"
        raise RowFault(first_valid(column), reason, expected=kind.name, got=column.kind.name, error=FeatureTypeError)
    if column.layout is Layout.SCALAR:
        return _listed(column)
    return _single(column)


def slots(column: ColumnBuffers) -> tuple[Array, Array]:
    """Offsets from 0 on, and the bytes, of a column with one bytes value per row."""
    narrow = widen(column, Kind.BYTES, Layout.SCALAR)
    assert narrow.value_offsets is not None
    assert narrow.values is not None
    offsets = narrow.value_offsets
    if offsets[0]:
        return offsets - offsets[0], narrow.values[offsets[0] : offsets[-1]]
    return offsets, narrow.values[: offsets[-1]]


def is_nothing(column: ColumnBuffers) -> bool:
    """Whether no row has a value; kind and layout may still be those of a plan."""
    is_null = column.null_count == column.rows or column.layout is Layout.NULL or column.kind is Kind.NONE
    return is_null and not column.others


def first_valid(column: ColumnBuffers) -> int:
    """The first row that is not null."""
    return int(mask_of(column.validity, column.rows).argmax())


def without_empties(column: ColumnBuffers, required: bool) -> ColumnBuffers:
    """The same rows, those without values as nulls; if `required`, the first of these is a RowFault."""
    if column.layout is not Layout.LIST or column.offsets is None:
        return column
    mask = mask_of(column.validity if column.null_count else None, column.rows)
    empty = mask & (np.diff(column.offsets) == 0)
    if not empty.any():
        return column
    if required:
        reason = "the schema requires this feature and the record has no value for it"
        raise RowFault(int(empty.argmax()), reason, error=FeatureNotFoundError)
    mask &= ~empty
    nulls = column.rows - int(np.count_nonzero(mask))
    return replace(column, null_count=nulls, validity=bitmap_of(mask))


def absent(name: str, rows: int, kind: Kind, layout: Layout) -> ColumnBuffers:
    """A column of `rows` nulls."""
    column = ColumnBuffers(name, kind, layout, rows, null_count=rows)
    if layout is Layout.NULL:
        return column
    column.validity = np.zeros((rows + 7) // 8, np.uint8)
    slots = rows if layout is Layout.SCALAR else 0
    column.values = np.zeros(0 if kind is Kind.BYTES else slots, _VALUES[kind])
    if kind is Kind.BYTES:
        column.value_offsets = np.zeros(slots + 1, np.int32)
    if layout is Layout.LIST:
        column.offsets = np.zeros(rows + 1, np.int32)
    return column


def _listed(column: ColumnBuffers) -> ColumnBuffers:
    """SCALAR to LIST: a row has its one value, or none where it is null."""
    if not column.null_count:
        return replace(column, layout=Layout.LIST, offsets=np.arange(column.rows + 1, dtype=np.int32))
    mask = mask_of(column.validity, column.rows)
    wide = replace(column, layout=Layout.LIST, offsets=offsets_of(mask, np.int32))
    if column.value_offsets is None:
        assert column.values is not None
        wide.values = column.values[mask]
    else:  # the slots of nulls are empty: without their offsets all values stay where they are
        wide.value_offsets = np.append(column.value_offsets[:-1][mask], column.value_offsets[-1:])
    return wide


def _single(column: ColumnBuffers) -> ColumnBuffers:
    """LIST to SCALAR, where every row happens to have one value."""
    assert column.offsets is not None
    assert column.values is not None
    mask = mask_of(column.validity, column.rows)
    counts = np.diff(column.offsets)
    if np.any(bad := (counts != 1) & mask):
        row = int(bad.argmax())
        raise RowFault(row, f"expected one value, got {counts[row]}", expected=1, got=int(counts[row]))
    narrow = replace(column, layout=Layout.SCALAR, offsets=None)
    if column.value_offsets is not None:
        narrow.value_offsets = column.value_offsets[column.offsets]
    else:
        narrow.values = scatter(column.values, mask)
    return narrow
