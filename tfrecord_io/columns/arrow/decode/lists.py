"""Columns of one feature: single values, lists of them, and the lists that feature lists make.

A chunk in which a feature has no value, or one value per row, has a narrower layout than the unified type: it is
relabelled, gets offsets, or loses the empty slots of its nulls. Values are moved at most once.

Tests: tests/columns/arrow/decode/test_batch_builder_types.py and tests/columns/arrow/decode/test_inferred_column.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import Array, ColumnBuffers, Kind, Layout
from tfrecord_io.columns.arrow.buffers import (
    ArrayBuffers,
    bitmap_of,
    fixed_width,
    list_array,
    offsets_of,
    scatter,
    split_by_kind,
    variable_width,
)
from tfrecord_io.columns.arrow.casts import Cast, checked_cast, value_cast
from tfrecord_io.columns.arrow.row_fault import RowFault, faults_of_lists
from tfrecord_io.columns.schema.column_features import Leaf
from tfrecord_io.columns.schema.types import is_list_like, is_number, other_kinds
from tfrecord_io.errors import FeatureNotFoundError, FeatureTypeError

Restore = Callable[[ColumnBuffers], pa.Array]
"""The array of one decoded column; raises RowFault."""


def leaf_restore(leaf: Leaf, dictionary: pa.Array | None = None) -> Restore:
    """How a feature whose values are those of the leaf (not encoded) becomes an array of the leaf's type."""
    kind, layout = leaf.kind, leaf.layout
    if kind is Kind.NONE:
        return partial(_nothing, leaf.type)
    value = leaf.type.value_type if is_list_like(leaf.type) else leaf.type
    text, cast = _holds_text(value), value_cast(value, dictionary)
    # Arrow makes no array of nulls of an extension type, and one of a dictionary type lacks the categories.
    kinds = (kind, *other_kinds(leaf.type))
    nulls_are_plain = not (t.is_dictionary(value) or isinstance(value, pa.BaseExtensionType))

    def restore(column: ColumnBuffers) -> pa.Array:
        if column.others:
            return from_kinds(column, restore)
        if column.layout is Layout.NULL and nulls_are_plain:
            return pa.nulls(column.rows, leaf.type)
        column = widen(column, column.kind if column.kind in kinds else kind, layout)
        if value is leaf.type:
            return _values(
                text, cast, column=column, count=column.rows, nulls=column.null_count, validity=column.validity
            )
        assert column.values is not None
        assert column.offsets is not None
        count = len(column.values) if column.value_offsets is None else len(column.value_offsets) - 1
        with faults_of_lists(column.offsets):
            values = _values(text, cast, column=column, count=count, nulls=0, validity=None)
        return wrap(
            leaf.type,
            column.rows,
            nulls=column.null_count,
            validity=column.validity,
            offsets=column.offsets,
            values=values,
        )

    return restore


def from_kinds(column: ColumnBuffers, restore: Restore) -> pa.Array:
    """The array of a column whose rows have values of several kinds, made of those of each kind."""
    parts, arrays = split_by_kind(column), []
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
        rows[part.mask] += number * column.rows
    return pa.concat_arrays(arrays).take(pa.array(rows))


def feature_list_array(type_: pa.DataType, step: Restore, column: ColumnBuffers) -> pa.Array:
    """A feature list as an array of the list `type_`, whose values are steps."""
    if column.null_count == column.rows:
        return pa.nulls(column.rows, type_)
    if column.steps is None or column.offsets is None:
        reason = "it is a context feature, not a feature list"
        raise RowFault(first_valid(column), reason, expected="a feature list")
    with faults_of_lists(column.offsets):
        values = step(column.steps)
    return wrap(
        type_, column.rows, nulls=column.null_count, validity=column.validity, offsets=column.offsets, values=values
    )


def values_as_steps(column: ColumnBuffers) -> ColumnBuffers:
    """A feature of lists of bytes as a feature list, whose steps are the values."""
    if is_nothing(column) or column.offsets is None or column.value_offsets is None:
        return column
    begin, end = int(column.offsets[0]), int(column.offsets[-1])
    steps = ColumnBuffers(column.name, column.kind, Layout.SCALAR, end - begin)
    steps.values, steps.value_offsets = column.values, column.value_offsets[begin : end + 1]
    offsets = column.offsets - begin if begin else column.offsets
    return column.replace(offsets=offsets, values=None, value_offsets=None, steps=steps)


def wrap(
    type_: pa.DataType, rows: int, nulls: int, validity: Array | None, offsets: Array, values: pa.Array
) -> pa.Array:
    """Cut `values` into rows of the list `type_`; a fixed size is checked."""
    if not t.is_fixed_size_list(type_):
        return list_array(type_, rows, nulls=nulls, validity=validity, offsets=offsets, values=values)
    size = type_.list_size
    mask = ColumnBuffers.mask_of(validity if nulls else None, rows)
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
        numbers = ArrayBuffers(values).numbers
        numbers = scatter(numbers.reshape(-1, size), mask).reshape(-1) if size else numbers
        return fixed_width(
            type_, len(numbers), nulls=0, validity=None, values=bitmap_of(numbers) if t.is_boolean(type_) else numbers
        )
    if size < _WIDE:
        slots = np.repeat(mask, size)
        return values.take(pa.array(np.cumsum(slots) - 1, mask=~slots))
    nulls = values.take(pa.nulls(size, pa.int64()))
    begins = (np.cumsum(mask) - 1) * size
    rows = zip(begins.tolist(), mask.tolist(), strict=True)
    return pa.concat_arrays([values.slice(begin, size) if valid else nulls for begin, valid in rows])


def _nothing(type_: pa.DataType, column: ColumnBuffers) -> pa.Array:
    if not is_nothing(column):
        reason = "expected no value in a column of nulls"
        raise RowFault(first_valid(column), reason, expected="NONE", got=column.kind.name)
    return pa.nulls(column.rows, type_)


def _holds_text(type_: pa.DataType) -> bool:
    """True if values of a type, the categories of a dictionary or the storage of an extension type are text."""
    if t.is_dictionary(type_):
        return _holds_text(type_.value_type)
    if isinstance(type_, pa.BaseExtensionType):
        return _holds_text(type_.storage_type)
    return bool(t.is_string(type_) or t.is_large_string(type_))


def _values(text: bool, cast: Cast, column: ColumnBuffers, count: int, nulls: int, validity: Array | None) -> pa.Array:
    """The values of a column; RowFault at the first text that is not UTF-8."""
    values, offsets = column.values, column.value_offsets
    assert values is not None
    if text and column.binary_row >= 0:  # the engine has found bytes that are not text, which the plan only tracked
        assert offsets is not None
        checked_cast(
            variable_width(pa.binary(), count, nulls=nulls, validity=validity, offsets=offsets, values=values),
            pa.string(),
        )
    return cast(count, nulls, validity, values, offsets)


def widen(column: ColumnBuffers, kind: Kind, layout: Layout) -> ColumnBuffers:
    """Turn rows into a column of `kind` and `layout`; the column itself if it is one already.

    A row that has a value of another feature type, or not one value where `layout` is SCALAR, is a RowFault.
    """
    if column.layout is layout and column.kind is kind:
        return column
    if is_nothing(column):
        return ColumnBuffers.nulls(column.name, column.rows, kind, layout)
    if column.kind is not kind and column.layout is Layout.LIST and column.value_row < 0 and column.steps is None:
        values = ColumnBuffers.nulls(column.name, 0, kind, Layout.LIST)  # an empty list of any kind is one of this kind
        column = column.replace(kind=kind, values=values.values, value_offsets=values.value_offsets)
        if layout is Layout.LIST:
            return column
    if column.kind is not kind:
        hint, hint_cli = kind.hint_for(column.kind, layout)
        raise RowFault(
            first_valid(column),
            f"expected {kind.description}, got {column.kind.description}",
            expected=kind.name,
            got=column.kind.name,
            hint=hint,
            hint_cli=hint_cli,
            error=FeatureTypeError,
        )
    if column.layout is Layout.SCALAR:
        return _list_single_values(column)
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
    """True if no row has a value; kind and layout may still be those of a plan."""
    is_null = column.null_count == column.rows or column.layout is Layout.NULL or column.kind is Kind.NONE
    return is_null and not column.others


def first_valid(column: ColumnBuffers) -> int:
    """The first row that is not null."""
    return int(ColumnBuffers.mask_of(column.validity, column.rows).argmax())


def empties_to_nulls(column: ColumnBuffers, required: bool) -> ColumnBuffers:
    """Turn rows without values into nulls; if `required`, the first of these is a RowFault."""
    if column.layout is not Layout.LIST or column.offsets is None:
        return column
    mask = column.mask
    empty = mask & (np.diff(column.offsets) == 0)
    if not empty.any():
        return column
    if required:
        reason = "the schema requires this feature and the record has no value for it"
        raise RowFault(int(empty.argmax()), reason, error=FeatureNotFoundError)
    mask &= ~empty
    nulls = column.rows - int(np.count_nonzero(mask))
    return column.replace(null_count=nulls, validity=bitmap_of(mask))


def _list_single_values(column: ColumnBuffers) -> ColumnBuffers:
    """SCALAR to LIST: a row has its one value, or none where it is null."""
    if not column.null_count:
        return column.replace(layout=Layout.LIST, offsets=np.arange(column.rows + 1, dtype=np.int32))
    mask = ColumnBuffers.mask_of(column.validity, column.rows)
    wide = column.replace(layout=Layout.LIST, offsets=offsets_of(mask, np.int32))
    if column.value_offsets is None:
        assert column.values is not None
        wide.values = column.values[mask]
    else:  # the slots of nulls are empty: without their offsets all values stay where they are
        wide.value_offsets = np.append(column.value_offsets[:-1][mask], column.value_offsets[-1:])
    return wide


def _single(column: ColumnBuffers) -> ColumnBuffers:
    """LIST to SCALAR, where every row happens to have one value."""
    if column.is_list:
        reason = "expected one value, got a feature list; declare a list type, or exclude the feature with columns="
        raise RowFault(first_valid(column), reason, expected="Feature", got="FeatureList", error=FeatureTypeError)
    assert column.offsets is not None
    assert column.values is not None
    mask = ColumnBuffers.mask_of(column.validity, column.rows)
    counts = np.diff(column.offsets)
    if np.any(bad := (counts != 1) & mask):
        row = int(bad.argmax())
        raise RowFault(row, f"expected one value, got {counts[row]}", expected=1, got=int(counts[row]))
    narrow = column.replace(layout=Layout.SCALAR, offsets=None)
    if column.value_offsets is not None:
        narrow.value_offsets = column.value_offsets[column.offsets]
    else:
        narrow.values = scatter(column.values, mask)
    return narrow
