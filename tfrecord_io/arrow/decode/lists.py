"""Columns of one feature: single values, lists of them, and the lists that feature lists make."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.buffers import (
    bitmap_of,
    by_kind,
    column_mask,
    fixed_width,
    list_array,
    mask_of,
    number_view,
    scatter,
    variable_width,
)
from tfrecord_io.arrow.casts import Cast, checked_cast, other_kinds, value_cast
from tfrecord_io.arrow.decode.layout import first_valid, is_nothing, widen
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.format.kinds import Kind, Layout
from tfrecord_io.schema.leaf import Leaf
from tfrecord_io.schema.types import is_list_like, is_number

Restore = Callable[[ColumnBuffers], pa.Array]
"""The array of one decoded column; raises RowFault."""


def leaf_restore(leaf: Leaf, dictionary: pa.Array | None = None) -> Restore:
    """How a feature whose values are those of the leaf (not encoded) becomes an array of the leaf's type."""
    kind, layout = leaf.kind, leaf.layout
    if kind is Kind.NONE:
        return _nothing(leaf.type)
    if not is_list_like(leaf.type):
        plain = _scalars(leaf.type, value_cast(leaf.type, dictionary))
    else:
        plain = _lists(leaf.type, value_cast(leaf.type.value_type, dictionary))

    # Arrow makes no array of nulls of an extension type, and one of a dictionary type lacks the categories.
    value = leaf.type.value_type if is_list_like(leaf.type) else leaf.type
    kinds = (kind, *other_kinds(leaf.type))
    nulls_are_plain = not (t.is_dictionary(value) or isinstance(value, pa.BaseExtensionType))

    def restore(column: ColumnBuffers) -> pa.Array:
        if column.others:
            return from_kinds(column, restore)
        if column.layout is Layout.NULL and nulls_are_plain:
            return pa.nulls(column.rows, leaf.type)
        return plain(widen(column, column.kind if column.kind in kinds else kind, layout))

    return restore


def from_kinds(column: ColumnBuffers, restore: Restore) -> pa.Array:
    """The array of a column whose rows have values of several kinds, made of those of each kind."""
    parts, arrays = by_kind(column), []
    first: RowFault | None = None
    for part in parts:
        try:
            arrays.append(restore(part))
        except RowFault as fault:
            first = fault if first is None or fault.row < first.row else first
    if first is not None:
        raise first
    rows = np.arange(column.rows)
    for number, part in enumerate(parts):
        rows[column_mask(part)] += number * column.rows
    return pa.concat_arrays(arrays).take(pa.array(rows))


def feature_list_restore(type_: pa.DataType, step: Restore) -> Restore:
    """How a feature list becomes an array of the list `type_`, whose values are steps."""

    def restore(column: ColumnBuffers) -> pa.Array:
        if column.null_count == column.rows:
            return pa.nulls(column.rows, type_)
        if column.steps is None or column.offsets is None:
            reason = "it is a context feature, not a feature list"
            raise RowFault(first_valid(column), reason, expected="a feature list")
        try:
            values = step(column.steps)
        except RowFault as fault:
            raise fault.in_row_of(column.offsets) from None
        return wrap(type_, column.rows, column.null_count, column.validity, column.offsets, values)

    return restore


def wrap(
    type_: pa.DataType, rows: int, nulls: int, validity: Array | None, offsets: Array, values: pa.Array
) -> pa.Array:
    """Cut `values` into rows of the list `type_`; a fixed size is checked."""
    if not t.is_fixed_size_list(type_):
        return list_array(type_, rows, nulls, validity, offsets, values)
    size = type_.list_size
    mask = mask_of(validity if nulls else None, rows)
    counts = np.diff(offsets)
    if np.any(bad := (counts != size) & mask):
        row = int(bad.argmax())
        raise RowFault(row, f"expected {size} values, got {counts[row]}", expected=size, got=int(counts[row]))
    if nulls:
        values = _spread(values, mask, size)
    buffers = [pa.py_buffer(validity) if nulls and validity is not None else None]
    return pa.Array.from_buffers(type_, rows, buffers, nulls, children=[values])


_WIDE = 64  # values of a row, from which on joining rows takes less memory than gathering values, and not more time


def _spread(values: pa.Array, mask: Array, size: int) -> pa.Array:
    """The values with slots for those of null rows, which a list of fixed size has too: zeros, else nulls."""
    type_ = values.type
    if is_number(type_):
        numbers = scatter(number_view(values).reshape(-1, size), mask).reshape(-1) if size else number_view(values)
        return fixed_width(type_, len(numbers), 0, None, bitmap_of(numbers) if t.is_boolean(type_) else numbers)
    if size < _WIDE:
        slots = np.repeat(mask, size)
        return values.take(pa.array(np.cumsum(slots) - 1, mask=~slots))
    nulls = values.take(pa.nulls(size, pa.int64()))
    begins = (np.cumsum(mask) - 1) * size
    return pa.concat_arrays(
        [
            values.slice(begin, size) if valid else nulls
            for begin, valid in zip(begins.tolist(), mask.tolist(), strict=True)
        ]
    )


def _nothing(type_: pa.DataType) -> Restore:
    def restore(column: ColumnBuffers) -> pa.Array:
        if not is_nothing(column):
            reason = "expected no value in a column of nulls"
            raise RowFault(first_valid(column), reason, expected="NONE", got=column.kind.name)
        return pa.nulls(column.rows, type_)

    return restore


def _holds_text(type_: pa.DataType) -> bool:
    """Whether values of a type, the categories of a dictionary or the storage of an extension type are text."""
    if t.is_dictionary(type_):
        return _holds_text(type_.value_type)
    if isinstance(type_, pa.BaseExtensionType):
        return _holds_text(type_.storage_type)
    return bool(t.is_string(type_) or t.is_large_string(type_))


def _scalars(type_: pa.DataType, cast: Cast) -> Restore:
    text = _holds_text(type_)

    def restore(column: ColumnBuffers) -> pa.Array:
        assert column.values is not None
        run = (column.rows, column.null_count, column.validity, column.values, column.value_offsets)
        if text and _unproven(column):
            _check_text(*run)
        return cast(*run)

    return restore


def _lists(type_: pa.DataType, cast: Cast) -> Restore:
    value = type_.value_type
    text = _holds_text(value)

    def restore(column: ColumnBuffers) -> pa.Array:
        assert column.values is not None
        assert column.offsets is not None
        count = len(column.values) if column.value_offsets is None else len(column.value_offsets) - 1
        try:
            if text and _unproven(column):
                _check_text(count, 0, None, column.values, column.value_offsets)
            values = cast(count, 0, None, column.values, column.value_offsets)
        except RowFault as fault:
            raise fault.in_row_of(column.offsets) from None
        return wrap(type_, column.rows, column.null_count, column.validity, column.offsets, values)

    return restore


def _unproven(column: ColumnBuffers) -> bool:
    """Whether the engine has found bytes that are not text, which the plan only tracked; else it has checked UTF-8."""
    return column.binary_row >= 0


def _check_text(count: int, nulls: int, validity: Array | None, values: Array, offsets: Array | None) -> None:
    """Raise RowFault at the first value that is not UTF-8."""
    assert offsets is not None
    checked_cast(variable_width(pa.binary(), count, nulls, validity, offsets, values), pa.string())
