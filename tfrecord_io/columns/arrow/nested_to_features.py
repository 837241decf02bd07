"""Columns of any Arrow type as the plain columns that `nested_tree` describes: values, lengths, positions of nulls.

A type that is stored as another one has a row in `_OPENED`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import Array
from tfrecord_io.columns.arrow.buffers import (
    ArrayBuffers,
    bitmap_of,
    fixed_width,
    int64_array,
    list_array,
    offsets_of,
    typed_view,
)
from tfrecord_io.columns.arrow.flatten import Rows, cut_lists, large, runs_of
from tfrecord_io.columns.schema.column_features import INTERVAL, Lists, Node, Represented, Struct, representation_of
from tfrecord_io.columns.schema.types import has_required_parts, is_list_like, is_text_or_bytes

INTERVAL_DTYPE = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])


@dataclass(frozen=True, slots=True)
class Slots:
    """The items of a part of a type, all rows' one after another."""

    count: int
    rows: Array | None = None  # inside a list: where each row's items begin, and the end
    counter: str = ""  # when read: the feature that has the number of items
    alive: Array | None = None  # False where a struct around the item is null, or a union is of another type
    present: Array | None = None  # inside a list that is written: False for the rows that are null
    keeps_nulls: bool = False  # inside a list that is written: nulls stay nulls, where features have zeros

    def within(self, alive: Array | None) -> Slots:
        return self if alive is None else replace(self, alive=_both(self.alive, alive))

    def row_of(self, slot: int) -> int:
        return slot if self.rows is None else int(self.rows.searchsorted(slot, side="right")) - 1


@dataclass(frozen=True, slots=True)
class _Items:
    """The values of slots: those of `array` at `index`, None: in order."""

    array: pa.Array
    index: Array | None = None
    valid: Array | None = None  # False where a slot is null, besides the nulls of the array

    def mask(self) -> Array | None:
        """False where a slot is null."""
        array = self.array
        valid = None if t.is_union(array.type) else ArrayBuffers(array).valid
        valid = valid[self.index] if valid is not None and self.index is not None else valid
        return _both(self.valid, valid)


def nested_columns(array: pa.Array, tree: Node, *, keeps_nulls: bool = False) -> list[pa.Array]:
    """A column as the columns of its features, in the order of ``tree.all_features()``.

    Features have no nulls among the items of a row, but zeros; with `keeps_nulls` they are nulls.

    >>> from tfrecord_io.columns.schema.column_features import nested_tree, set_encoding
    >>> lists = pa.array([[[1, 2], []], None])
    >>> tree = nested_tree(set_encoding(pa.field("x", lists.type), "nested"))
    >>> [column.to_pylist() for column in nested_columns(lists, tree)]
    [[[2, 0], None], [None, None], [[1, 2], None], [None, None]]
    """
    return _store(tree, _Items(array), Slots(len(array), keeps_nulls=keeps_nulls))


def _store(node: Node, items: _Items, slots: Slots) -> list[pa.Array]:
    row = representation_of(items.array.type)
    if row is not None and row is not representation_of(node.type):  # which is that of the file, without such types
        return _store(node, _open(items, slots), slots)
    if isinstance(node, Represented):
        if t.is_union(node.type):
            return _store_union(node.children[0], items, slots)
        return _store(node.children[0], _open(items, slots), slots)
    if isinstance(node, Lists):
        return _store_lists(node, items, slots)
    if isinstance(node, Struct):
        children = [replace(items, array=items.array.field(at), valid=None) for at in range(len(node.children))]
        return _store_struct(node, items.mask(), children=children, slots=slots, alive=[None] * len(children))
    return _store_values(node, items, slots)


def _store_values(node: Node, items: _Items, slots: Slots) -> list[pa.Array]:
    valid = items.mask()
    if slots.rows is not None and t.is_null(node.type):
        return [_per_row(int64_array(np.zeros(slots.count, np.int64)), slots)]
    written = _both(valid, slots.alive)
    index = np.arange(slots.count) if items.index is None else items.index
    array = large(items.array)
    if slots.rows is None:
        if written is not None:
            array = array.take(pa.array(index, mask=~written))
        return [array if items.index is None or written is not None else array.take(pa.array(index))]
    if written is not None and slots.keeps_nulls:
        array = array.take(pa.array(index, mask=~written))
    elif written is not None:  # Arrow's slots of nulls hold anything, such as text that is not UTF-8
        array = pa.concat_arrays([array, _zero(array.type)]).take(pa.array(np.where(written, index, len(array))))
    elif items.index is not None:
        array = array.take(pa.array(index))
    columns = [_per_row(array, slots)]
    return [*columns, _null_positions(valid, slots)] if len(node.fields) > 1 else columns


def _zero(type_: pa.DataType) -> pa.Array:
    if is_text_or_bytes(type_) and not t.is_fixed_size_binary(type_):
        return pa.array([b""], type_)
    return pa.Array.from_buffers(type_, 1, [None, pa.py_buffer(bytes(max(1, type_.bit_width // 8)))])


def _store_lists(node: Node, items: _Items, slots: Slots) -> list[pa.Array]:
    valid = items.mask()
    rows = Rows(node.feature, 0, slots.count, _both(valid, slots.alive), index=items.index)
    values, rows = cut_lists(items.array, rows)
    assert rows.offsets is not None
    within = rows.offsets if slots.rows is None else rows.offsets[slots.rows]
    present = rows.valid if slots.rows is None else slots.present
    inner = Slots(int(rows.offsets[-1]), rows=within, present=present, keeps_nulls=slots.keeps_nulls)
    columns = _store(node.children[0], _Items(values, rows.index), inner)
    if slots.rows is None:
        return columns
    return [_per_row(int64_array(np.diff(rows.offsets)), slots), _null_positions(valid, slots), *columns]


def _store_struct(
    node: Node, valid: Array | None, children: list[_Items], slots: Slots, alive: list[Array | None]
) -> list[pa.Array]:
    """The columns of a struct: a child is written where both the struct is present and the child is `alive`."""
    inside = slots.within(valid)
    columns = [
        column
        for child, items, child_alive in zip(node.children, children, alive, strict=True)
        for column in _store(child, items, inside.within(child_alive))
    ]
    if slots.rows is not None:
        counts = [] if children else [_per_row(int64_array(np.zeros(slots.count, np.int64)), slots)]
        nulls = [_null_positions(valid, slots)] if len(node.fields) > len(counts) else []
        return [*counts, *nulls, *columns]
    written = any_of([ArrayBuffers(column).valid for column in columns], slots.count)
    if written is None:
        return [pa.nulls(slots.count, pa.int64()), *columns]
    hidden = ~written if inside.alive is None else ~written & inside.alive
    ones = np.ones(slots.count, np.int64)
    count = int(np.count_nonzero(hidden))
    return [
        fixed_width(pa.int64(), slots.count, nulls=slots.count - count, validity=bitmap_of(hidden), values=ones),
        *columns,
    ]


def _store_union(node: Node, items: _Items, slots: Slots) -> list[pa.Array]:
    """A union: the struct of the code of each item's type, and a child for each type."""
    array, index = items.array, items.index
    buffers, count = array.buffers(), len(array)  # of a slice, `type_codes` (Arrow 26.0) are those of other items
    codes = typed_view(buffers[1], np.dtype(np.int8), array.offset, count)
    codes = codes if index is None else codes[index]
    if array.type.mode == "dense":
        offsets = typed_view(buffers[2], np.dtype(np.int32), array.offset, count)
        index = offsets if index is None else offsets[index]
    parts: list[_Items] = [_Items(pa.array(codes, pa.int8()))]
    alive: list[Array | None] = [None]
    for at, code in enumerate(array.type.type_codes):
        child, of_type = array.field(at), codes == code
        if index is None:
            parts.append(_Items(child))
        else:  # an offset is one into the child of its type
            parts.append(_Items(child if len(child) else pa.nulls(1, child.type), np.where(of_type, index, 0)))
        alive.append(of_type)
    return _store_struct(node, items.mask(), children=parts, slots=slots, alive=alive)


# ---- types that are stored as other ones


def _open_dictionary(items: _Items, slots: Slots) -> _Items:
    array = items.array
    valid = _both(items.mask(), slots.alive)  # where nothing is written, an index may be any number
    codes = ArrayBuffers(array.indices).numbers.astype(np.int64)
    codes = codes if items.index is None else codes[items.index]
    if not len(array.dictionary):
        return _Items(pa.nulls(1, array.type.value_type), np.zeros(slots.count, np.int64), items.mask())
    return _Items(array.dictionary, codes if valid is None else np.where(valid, codes, 0), items.mask())


def _open_runs(items: _Items, _: Slots) -> _Items:
    runs = runs_of(items.array)
    return replace(items, array=items.array.values, index=runs if items.index is None else runs[items.index])


def _entries(items: _Items, _: Slots) -> _Items:
    array = items.array
    lists = pa.list_(array.values.type)  # without a cast, of which Arrow (26.0) makes invalid unions
    buffers, nulls = array.buffers()[:2], array.null_count
    return replace(
        items, array=pa.Array.from_buffers(lists, len(array), buffers, nulls, array.offset, children=[array.values])
    )


def _interval_parts(items: _Items, _: Slots) -> _Items:
    array = items.array
    whole = typed_view(array.buffers()[1], INTERVAL_DTYPE, array.offset, len(array))
    columns = [np.ascontiguousarray(whole[part.name]) for part in INTERVAL]
    parts = [
        fixed_width(part.type, len(array), nulls=0, validity=None, values=at)
        for part, at in zip(INTERVAL, columns, strict=True)
    ]
    return _Items(pa.StructArray.from_arrays(parts, fields=list(INTERVAL)), items.index, items.mask())


_OPENED: dict[str, Callable[[_Items, Slots], _Items]] = {  # by the name of the representation
    "extension": lambda items, _: replace(items, array=items.array.storage),
    "dictionary": _open_dictionary,
    "run_ends": _open_runs,
    "map": _entries,
    "interval": _interval_parts,
}


def _open(items: _Items, slots: Slots) -> _Items:
    row = representation_of(items.array.type)
    return items if row is None else _OPENED[row.name](items, slots)


# ---- columns with a list for each row


def _per_row(values: pa.Array, slots: Slots) -> pa.Array:
    """Collect the items of each row in a list; null for rows that are null."""
    assert slots.rows is not None
    rows = len(slots.rows) - 1
    present = slots.present
    nulls = 0 if present is None else rows - int(np.count_nonzero(present))
    bitmap = None if present is None else bitmap_of(present)
    return list_array(pa.large_list(values.type), rows, nulls=nulls, validity=bitmap, offsets=slots.rows, values=values)


def _null_positions(valid: Array | None, slots: Slots) -> pa.Array:
    """The positions of nulls in each row; null in rows without any. Parents that are null have no null items."""
    assert slots.rows is not None
    rows = len(slots.rows) - 1
    missing = None if valid is None else ~valid if slots.alive is None else ~valid & slots.alive
    if missing is None or not missing.any():
        return pa.nulls(rows, pa.large_list(pa.int64()))
    at = np.flatnonzero(missing)
    row = slots.rows.searchsorted(at, side="right") - 1
    counts = np.bincount(row, minlength=rows)
    bitmap, nulls = bitmap_of(counts > 0), int(np.count_nonzero(counts == 0))
    positions = int64_array(at - slots.rows[row])
    return list_array(
        pa.large_list(pa.int64()), rows, nulls=nulls, validity=bitmap, offsets=offsets_of(counts), values=positions
    )


def _both(a: Array | None, b: Array | None) -> Array | None:
    return b if a is None else a if b is None else a & b


def any_of(masks: list[Array | None], count: int) -> Array | None:
    """True where any mask of `count` items is true; None if true everywhere."""
    partial_masks = [mask for mask in masks if mask is not None]
    if len(partial_masks) < len(masks):
        return None
    return np.logical_or.reduce(partial_masks) if partial_masks else np.zeros(count, np.bool_)


# ---- what a type says of nulls


def _plain(items: _Items) -> _Items:
    """The items without dictionaries, run-ends and extension types."""
    while not t.is_union(items.array.type) and representation_of(items.array.type) is not None:
        items = _open(items, Slots(len(items.array) if items.index is None else len(items.index)))
    return items


def first_null(array: pa.Array) -> int | None:
    """The first null row, also if the null is in a dictionary or a run, where Arrow (19.0) has no count; None: no row.

    >>> first_null(pa.DictionaryArray.from_arrays([0, 1, None], pa.array(["a", None])))
    1
    """
    items = _plain(_Items(array))
    valid = ~np.asarray(array.is_null()) if t.is_union(items.array.type) else items.mask()
    return None if valid is None or valid.all() else int(valid.argmin())


def misplaced_null(array: pa.Array) -> int | None:
    """The first row with a null in a part whose field is not nullable, other than in unions; None if there is none.

    >>> lists = pa.list_(pa.field("item", pa.int8(), nullable=False))
    >>> misplaced_null(pa.array([[1], None, [2, None]], lists)), misplaced_null(pa.array([[1], None], lists))
    (2, None)
    """
    if not has_required_parts(array.type) or _lacks_nulls(array):
        return None
    bad = _find_misplaced(_Items(array))
    return None if bad is None or not bad.any() else int(bad.argmax())


def _lacks_nulls(array: pa.Array) -> bool:
    """True if parts whose fields are not nullable have no null at all: a quick check that nearly all columns pass."""
    type_ = array.type
    if t.is_struct(type_):
        parts = [(field, array.field(at)) for at, field in enumerate(type_)]
    elif t.is_map(type_):
        parts = [(type_.key_field, array.keys), (type_.item_field, array.items)]
    elif is_list_like(type_):
        parts = [(type_.value_field, array.values)]
    else:
        return not has_required_parts(type_)
    return all((field.nullable or _plain(_Items(part)).mask() is None) and _lacks_nulls(part) for field, part in parts)


def _find_misplaced(items: _Items) -> Array | None:
    """True for each item with a null where the type allows none; None if there are no such items."""
    if t.is_union(items.array.type) or not has_required_parts(items.array.type):
        return None
    items = _plain(items)
    array, valid, bad = items.array, items.mask(), None
    if t.is_struct(array.type):
        for at, field in enumerate(array.type):
            bad = _either(bad, _missing_in(replace(items, array=array.field(at), valid=None), field))
        return bad if bad is None or valid is None else bad & valid
    if is_list_like(array.type):
        count = len(array) if items.index is None else len(items.index)
        values, rows = cut_lists(array, Rows("", 0, count, valid, index=items.index))
        below = _missing_in(_Items(values, rows.index), array.type.value_field)
        if below is not None:
            assert rows.offsets is not None
            bad = np.zeros(count, np.bool_)
            bad[rows.offsets.searchsorted(np.flatnonzero(below), side="right") - 1] = True
    return bad


def _missing_in(items: _Items, field: pa.Field) -> Array | None:
    mask = None if field.nullable else _plain(items).mask()
    return _either(_find_misplaced(items), None if mask is None else ~mask)


def _either(a: Array | None, b: Array | None) -> Array | None:
    return b if a is None else a if b is None else a | b
