"""Columns without Arrow's wrappers: for each leaf, plain values and the rows that they belong to.

Resolves slices, nulls of parents, list views, run-ends, dictionaries, extension types and structs. Values below a null
row are undefined in Arrow, so they are left out. Nothing is copied if the values of the valid rows are contiguous.

Tests: tests/columns/arrow/encode/test_encode_columns.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import printable
from tfrecord_io.bytes import Array, ColumnBuffers, Kind, Layout
from tfrecord_io.columns.arrow.buffers import (
    ArrayBuffers,
    bitmap_of,
    offset_dtype,
    offsets_of,
    scatter,
    selectable,
    typed_view,
)
from tfrecord_io.columns.schema.tensor_types import is_any_tensor
from tfrecord_io.columns.schema.types import is_list_like, is_list_view
from tfrecord_io.errors import EncodeError

ValuesOf = Callable[[pa.Array, "Rows"], pa.Array]
"""Makes the values of a leaf, one for each slot."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A position in the tree of a column's type, and the rows that the values there belong to."""

    feature: str
    base: int  # number of the first row, for messages
    count: int
    valid: Array | None = None  # bool for each row; None: no nulls
    offsets: Array | None = None  # inside a list: int64, count + 1, from 0, null rows are empty
    index: Array | None = None  # slot → position in the array at hand; None: the same
    column: str = ""  # the name of the whole column, for messages

    @property
    def slots(self) -> int:
        """Number of values: one a row, or as many as the lists hold."""
        return self.count if self.offsets is None else int(self.offsets[-1])

    def row_of(self, slot: int) -> int:
        """Number of the row that a value belongs to."""
        inside = slot if self.offsets is None else int(np.searchsorted(self.offsets, slot, side="right")) - 1
        return self.base + inside

    def error(self, slot: int, reason: str, advice: str, **context: Any) -> EncodeError:
        """An error about one value."""
        return EncodeError(reason, feature=self.feature, record=self.row_of(slot), hint=advice, **context)

    def needs_nesting(self, slot: int, reason: str) -> EncodeError:
        """An error about a value that plain features cannot say."""
        nested = f"column_encoding={{'{printable(self.column)}': 'nested'}}"
        advice = "fill it, make the whole row null, or pass"
        option = f"--column-encoding {printable(self.column)}=nested"
        return self.error(slot, reason, f"{advice} {nested}", hint_cli=f"{advice} {option}")


def flatten(array: pa.Array, feature: str, base: int = 0) -> Iterator[tuple[Rows, pa.Array]]:
    """Yield, leaf by leaf, the rows of a column (of any type that `leaves` accepts) and their values.

    The values have ``rows.slots`` elements, and no dictionary, view, run-end or extension type but those of tensors, of
    which each is one element. A null inside a list is an EncodeError; a row without a list may be null by
    ``rows.valid``, which includes the values' own nulls. `base` is the number of the column's first row, for messages.
    """
    return _descend(array, Rows(feature, base, len(array), column=feature), _plain)


def loses(array: pa.Array) -> bool:
    """True if the plain features of a column would lose a part of its content, where the type has such features.

    They have no null inside a list, no list of the null type, and no struct that is not null while its fields are.

    >>> loses(pa.array([[1, None]])), loses(pa.array([{"a": None}, None], pa.struct([("a", pa.int8())])))
    (True, True)
    """
    try:
        leaves = list(_descend(array, Rows("", 0, len(array)), _category_nulls))
    except EncodeError:
        return True
    lists = [rows for rows, values in leaves if rows.offsets is not None and t.is_null(values.type)]
    return any(rows.count if rows.valid is None else rows.valid.any() for rows in lists)


def cut_steps(array: pa.Array, feature: str, base: int = 0) -> tuple[Rows, pa.Array]:
    """The outer lists of a feature list: its rows, cut by ``offsets`` into steps, and the array of all steps."""
    values, rows = cut_lists(*_unwrap(array, Rows(feature, base, len(array), column=feature)))
    if rows.index is not None:
        values = selectable(values).take(pa.array(rows.index))
    return replace(rows, index=None), values


def _descend(array: pa.Array, rows: Rows, values_of: ValuesOf) -> Iterator[tuple[Rows, pa.Array]]:
    array, rows = _unwrap(array, rows)
    if t.is_struct(array.type):
        yield from _descend_struct(array, _apply_nulls(array, rows), values_of)
    elif is_list_like(array.type):
        yield from _descend(*cut_lists(array, rows), values_of)
    else:
        values = values_of(array, rows)
        yield replace(_apply_nulls(values, replace(rows, index=None)), index=None), values


def _descend_struct(array: pa.StructArray, rows: Rows, values_of: ValuesOf) -> Iterator[tuple[Rows, pa.Array]]:
    """The leaves of a struct. A row that is not null, but has a value in none of them, would be read as null."""
    absent: Array | bool = True if rows.valid is None else rows.valid
    for i, child in enumerate(array.type):
        inside = replace(rows, feature=f"{rows.feature}/{child.name}")
        for leaf, values in _descend(array.field(i), inside, values_of):
            absent = False if leaf.valid is None else absent & ~leaf.valid
            yield leaf, values
    if rows.offsets is None and np.any(absent):  # a null inside a list is an error already
        reason = "a struct whose fields are all null cannot be stored without a feature of its own"
        raise rows.needs_nesting(int(np.argmax(absent)), reason)


def _unwrap(array: pa.Array, rows: Rows) -> tuple[pa.Array, Rows]:
    """The storage of extension types except tensors, and the values of run-ends with an index into them."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            if is_any_tensor(array.type):
                return array, rows
            array = array.storage
        elif t.is_run_end_encoded(array.type):
            runs = runs_of(array)
            rows = replace(rows, index=runs if rows.index is None else runs[rows.index])
            array = array.values
        else:
            return array, rows


def runs_of(array: pa.RunEndEncodedArray) -> Array:
    """The run of each slot: its position in ``array.values``."""
    ends = np.clip(ArrayBuffers(array.run_ends).numbers, array.offset, array.offset + len(array))
    return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=array.offset))


def _apply_nulls(array: pa.Array, rows: Rows) -> Rows:
    """The rows with an array's own nulls; inside a list a null is an error."""
    valid = ArrayBuffers(array).valid
    if valid is None:
        return rows
    if rows.index is not None:
        valid = valid[rows.index]
    if rows.offsets is None:
        return replace(rows, valid=valid if rows.valid is None else valid & rows.valid)
    if not valid.all():
        raise rows.needs_nesting(int(np.argmin(valid)), "a null inside a list cannot be stored in its feature")
    return rows


def cut_lists(array: pa.Array, rows: Rows) -> tuple[pa.Array, Rows]:
    """The values of a list array: only those of valid rows, in the order of the rows."""
    rows = _apply_nulls(array, rows)
    is_plain = t.is_list(array.type) or t.is_large_list(array.type)
    if rows.valid is None and rows.index is None and is_plain:  # the common case, with fewer passes
        offsets = ArrayBuffers(array).offsets.astype(np.int64, copy=False)
        begin = int(offsets[0])
        values = array.values.slice(begin, int(offsets[-1]) - begin)
        return values, replace(rows, offsets=offsets - begin if begin else offsets)
    starts, lengths = _extents(array)
    if rows.index is not None:
        starts, lengths = starts[rows.index], lengths[rows.index]
    if rows.valid is not None:
        lengths = np.where(rows.valid, lengths, 0)
    offsets = offsets_of(lengths)
    shift = (starts - offsets[:-1])[lengths > 0]
    if shift.size == 0 or shift.min() == shift.max():  # contiguous: a slice suffices
        values = array.values.slice(int(shift[0]) if shift.size else 0, int(offsets[-1]))
        return values, replace(rows, offsets=offsets, index=None)
    index = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    return array.values, replace(rows, offsets=offsets, index=index)


def _extents(array: pa.Array) -> tuple[Array, Array]:
    """First value and number of values of each list, in `array.values`."""
    count, begin = len(array), array.offset
    if t.is_fixed_size_list(array.type):
        size = array.type.list_size
        return np.arange(begin, begin + count, dtype=np.int64) * size, np.full(count, size, np.int64)
    buffers = array.buffers()
    if is_list_view(array.type):
        width = offset_dtype(array.type)
        starts, lengths = (typed_view(buffer, width, begin, count) for buffer in buffers[1:3])
        return starts.astype(np.int64), lengths.astype(np.int64)
    offsets = ArrayBuffers(array).offsets.astype(np.int64, copy=False)
    return offsets[:-1], np.diff(offsets)


def _plain(array: pa.Array, rows: Rows) -> pa.Array:
    """The values of a leaf, one for each slot, as a type whose buffers are read easily."""
    if not t.is_dictionary(array.type):
        if rows.index is not None:
            return large(array).take(pa.array(rows.index))
        is_view = t.is_string_view(array.type) or t.is_binary_view(array.type)
        return large(array) if is_view else array
    indices = array.indices
    if rows.index is not None:
        indices = indices.take(pa.array(rows.index))
    if rows.valid is not None and rows.offsets is None:  # below a null parent an index may be any number
        valid = ArrayBuffers(indices).valid
        unused = ~(rows.valid if valid is None else valid & rows.valid)
        indices = pa.array(ArrayBuffers(indices).numbers, mask=unused)
    return large(array.dictionary).take(indices)


def _category_nulls(array: pa.Array, rows: Rows) -> pa.Array:
    """As `_plain`, for the nulls alone: the numbers of categories, if none of these is null."""
    is_numbered = t.is_dictionary(array.type) and not array.dictionary.null_count
    return _plain(array.indices if is_numbered else array, rows)


def large(array: pa.Array) -> pa.Array:
    """Binary with 64-bit offsets: a take, which may repeat values, cannot overflow them. Views have no take at all."""
    if t.is_string(array.type) or t.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if t.is_binary(array.type) or t.is_binary_view(array.type) else array


# ---- columns of an engine from rows


def row_offsets(offsets: Array, rows: Rows) -> Array:
    """The offsets of rows from those of the cells that are not null: null rows are empty."""
    return offsets if rows.valid is None else offsets_of(scatter(np.diff(offsets), rows.valid))


def feature_column(
    name: str,
    kind: Kind,
    rows: Rows,
    values: Array | None,
    *,
    offsets: Array | None = None,
    value_offsets: Array | None = None,
) -> ColumnBuffers:
    """The column of one feature, null where `rows` is; with `offsets` a row has any number of values."""
    column = ColumnBuffers(name, kind, Layout.SCALAR if offsets is None else Layout.LIST, rows.count)
    column.offsets, column.value_offsets = offsets, value_offsets
    if values is not None:
        column.values = np.ascontiguousarray(values)
    if rows.valid is not None and (nulls := rows.count - int(np.count_nonzero(rows.valid))):
        column.null_count, column.validity = nulls, bitmap_of(rows.valid)
    return column


def value_list(step: ColumnBuffers, rows: Rows) -> ColumnBuffers:
    """The column of a feature whose values are the rows of a column; `rows` has the offsets of the values."""
    if step.null_count:
        reason, row = "a list of arrays has a null, which cannot be stored in its feature", int(np.argmin(step.mask))
        raise EncodeError(reason, feature=step.name, record=rows.row_of(row), hint="leave the null out")
    values, ends = step.values, step.value_offsets
    return feature_column(step.name, step.kind, rows, values, offsets=rows.offsets, value_offsets=ends)


def feature_list(step: ColumnBuffers, rows: Rows) -> ColumnBuffers:
    """The column of a feature list, whose steps are the rows of a column; `rows` has the offsets of the steps."""
    return feature_column(step.name, step.kind, rows, None, offsets=rows.offsets).replace(steps=step)
