"""Buffers of an engine as Arrow arrays: the same memory under another name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.format.kinds import Layout


def fixed_width(type_: pa.DataType, count: int, nulls: int, validity: Array | None, values: Array) -> pa.Array:
    """An array of a fixed-width type over `values`, whose items have that width."""
    return pa.Array.from_buffers(type_, count, [_validity(nulls, validity), pa.py_buffer(values)], nulls)


def variable_width(
    type_: pa.DataType, count: int, nulls: int, validity: Array | None, offsets: Array, values: Array
) -> pa.Array:
    """An array of (large_)binary or (large_)string over `values`; 32-bit offsets are widened where the type asks."""
    large = type_ == pa.large_binary() or type_ == pa.large_string()
    offsets = offsets.astype(np.int64 if large else np.int32, copy=False)
    return pa.Array.from_buffers(
        type_, count, [_validity(nulls, validity), pa.py_buffer(offsets), pa.py_buffer(values)], nulls
    )


def list_array(
    type_: pa.DataType, rows: int, nulls: int, validity: Array | None, offsets: Array, values: pa.Array
) -> pa.Array:
    """An array of list or large_list that cuts `values` into rows."""
    offsets = offsets.astype(np.int64 if pa.types.is_large_list(type_) else np.int32, copy=False)
    return pa.Array.from_buffers(
        type_, rows, [_validity(nulls, validity), pa.py_buffer(offsets)], nulls, children=[values]
    )


def mask_of(validity: Array | None, count: int) -> Array:
    """True where a slot has a value."""
    if validity is None:
        return np.ones(count, bool)
    return np.unpackbits(validity, count=count, bitorder="little").view(bool)


def bitmap_of(mask: Array) -> Array:
    """The validity bitmap of a mask."""
    return np.packbits(mask, bitorder="little")


def cut(column: ColumnBuffers, begin: int, end: int) -> ColumnBuffers:
    """Rows [begin, end) of a column: views of its values under a bitmap and offsets of their own."""
    part = _cut_values(column, begin, end)
    mask = mask_of(column.validity, column.rows)[begin:end]
    part.rows = end - begin
    part.null_count = part.rows - int(np.count_nonzero(mask))
    part.validity = bitmap_of(mask) if part.null_count else None
    if column.layout is Layout.NULL:
        part.null_count = part.rows
    part.first_row, part.list_row, part.binary_row = (
        _within(r, begin, end) for r in (column.first_row, column.list_row, column.binary_row)
    )
    return part


def _cut_values(column: ColumnBuffers, begin: int, end: int) -> ColumnBuffers:
    part = replace(column)
    if column.offsets is not None:
        part.offsets, begin, end = _cut_offsets(column.offsets, begin, end)
    if column.steps is not None:
        part.steps = cut(column.steps, begin, end)
    if column.value_offsets is not None:
        part.value_offsets, begin, end = _cut_offsets(column.value_offsets, begin, end)
    if column.values is not None:
        part.values = column.values[begin:end]
    return part


def _cut_offsets(offsets: Array, begin: int, end: int) -> tuple[Array, int, int]:
    first, last = int(offsets[begin]), int(offsets[end])
    return offsets[begin : end + 1] - offsets[begin], first, last


def _within(row: int, begin: int, end: int) -> int:
    """A row of evidence as seen from `begin`; −1 where it is outside, as if it had not been looked for."""
    return row - begin if begin <= row < end else -1


def _validity(nulls: int, validity: Array | None) -> pa.Buffer | None:
    return pa.py_buffer(validity) if nulls and validity is not None else None
