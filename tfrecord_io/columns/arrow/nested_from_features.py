"""Columns put together from the arrays of their features, by the tree of `nested_tree`.

Files may be damaged, or of other writers: lengths are compared with the number of values before an array is made, and
a row whose features contradict each other is a RowFault. A type that is stored as another one has a row in `_MADE`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import counted
from tfrecord_io.bytes import Array
from tfrecord_io.columns.arrow.buffers import (
    ArrayBuffers,
    bitmap_buffer,
    bitmap_of,
    bytes_values,
    fixed_width,
    offset_dtype,
    offsets_of,
)
from tfrecord_io.columns.arrow.nested_to_features import INTERVAL_DTYPE, Slots, any_of, nested_columns
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.schema.column_features import (
    Lists,
    Node,
    PlainLists,
    PlainStruct,
    Represented,
    Struct,
    nested_tree,
    representation_of,
    set_encoding,
)
from tfrecord_io.columns.schema.tensor_types import NESTED
from tfrecord_io.columns.schema.types import hashable

_LONGEST = 2**31 - 1  # items of a list: no record has more


Made = tuple[pa.Array, Array | None]
"""An array, and which of its slots are valid (None: all), as unions cannot say so."""


def nested_array(tree: Node, parts: Sequence[pa.Array], rows: int) -> pa.Array:
    """The column of a tree, of the columns of its features in the order of ``tree.all_features()``.

    RowFault if the features of a row contradict each other.
    """
    return _Parts(list(tree.all_features()), parts).make(tree, Slots(rows))[0]


class _Parts:
    """The columns of features, taken one after another."""

    def __init__(self, stored: Sequence[pa.Field], arrays: Sequence[pa.Array]) -> None:
        self._stored, self._arrays, self._at = stored, arrays, 0

    def make(self, node: Node, slots: Slots) -> Made:
        if isinstance(node, Represented):
            if t.is_union(node.type):
                return self._union(node, slots)
            array, valid = self.make(node.children[0], slots)
            row = representation_of(node.type)
            assert row is not None
            try:
                return _MADE[row.name](node.type, array), valid
            except RowFault as fault:
                fault.row, fault.feature = slots.row_of(fault.row), node.feature
                raise
        if isinstance(node, Lists):
            return self._plain_lists(node) if isinstance(node, PlainLists) else self._lists(node, slots)
        if isinstance(node, Struct):
            return self._struct(node, slots)
        return self._values(node, slots)

    # ---- parts of a type

    def _values(self, node: Node, slots: Slots) -> Made:
        if slots.rows is None:
            array = self._next()[1]
            return array, ArrayBuffers(array).valid
        if t.is_null(node.type):
            self._next()
            return pa.nulls(slots.count, node.type), np.zeros(slots.count, np.bool_)
        values = self._items(slots)
        valid = self._valid(slots) if len(node.fields) > 1 else None
        if valid is not None:
            values = pa.StructArray.from_arrays([values], [""], mask=pa.array(~valid)).flatten()[0]
        return values, valid

    def _lists(self, node: Node, slots: Slots) -> Made:
        type_, (item,) = node.type, node.children
        if slots.rows is None:
            stored, column = self._stored[self._at + item.counter], self._arrays[self._at + item.counter]
            lengths, valid, feature = _lengths(column), ArrayBuffers(column).valid, stored.name
            offsets = offsets_of(lengths)
            inner = Slots(int(offsets[-1]), offsets, feature)
        else:
            feature = self._stored[self._at].name
            lengths = ArrayBuffers(self._items(slots)).numbers
            self._refuse(
                (lengths < 0) | (lengths > _LONGEST),
                lengths,
                slots=slots,
                feature=feature,
                reason="is not the length of a list",
            )
            valid, offsets = self._valid(slots), offsets_of(lengths)
            inner = Slots(int(offsets[-1]), offsets[slots.rows], feature)
        values, _ = self.make(item, inner)
        if t.is_fixed_size_list(type_):
            size = type_.list_size
            if slots.alive is not None and not slots.alive.all():  # there a list has any length
                valid = slots.alive if valid is None else slots.alive & valid
            bad = lengths != size if valid is None else (lengths != size) & valid
            self._refuse(bad, lengths, slots=slots, feature=feature, reason=f"is the length of a list of {size}")
            if valid is not None:  # the values of a list that is null are nulls
                index = (offsets[:-1, None] + np.arange(size)).reshape(-1)
                values = values.take(pa.array(index, mask=np.repeat(~valid, size)))
            return pa.Array.from_buffers(type_, slots.count, [bitmap_buffer(valid)], children=[values]), valid
        width = offset_dtype(type_)
        self._refuse(
            offsets[1:] > np.iinfo(width).max,
            offsets[1:],
            slots=slots,
            feature=feature,
            reason="is too many items for one batch",
        )
        buffers = [bitmap_buffer(valid), pa.py_buffer(offsets.astype(width, copy=False))]
        return pa.Array.from_buffers(type_, slots.count, buffers, children=[values]), valid

    def _struct(self, node: Node, slots: Slots) -> Made:
        is_plain = isinstance(node, PlainStruct)  # without a feature of its own
        present = None if is_plain else self._struct_mask(node, slots)
        parts = [self.make(child, slots if slots.rows is None else slots.within(present)) for child in node.children]
        valid = present
        if slots.rows is None:
            valid = any_of([*([] if is_plain else [present]), *(valid for _, valid in parts)], slots.count)
        arrays = [array for array, _ in parts]
        if is_plain:  # the items of a list that was made may be null, whatever the type says
            pairs = zip(node.type, arrays, strict=True)
            arrays = [array if array.type == child.type else array.cast(child.type) for child, array in pairs]
        return pa.Array.from_buffers(node.type, slots.count, [bitmap_buffer(valid)], children=arrays), valid

    def _plain_lists(self, node: Node) -> Made:
        """Lists of structs, of which a row has as many as each of its features has values; none where it has none."""
        features = range(self._at, self._at + sum(1 for _ in node.all_features()))
        typed = [at for at in features if not t.is_null(self._arrays[at].type.value_type)]
        if not typed:  # all are of the null type: nothing says how many structs a row has
            self._at, rows = features.stop, len(self._arrays[self._at])
            return pa.nulls(rows, node.type), np.zeros(rows, np.bool_)
        column = self._arrays[typed[0]]
        valid = any_of([ArrayBuffers(self._arrays[at]).valid for at in typed], len(column))
        offsets = _offsets(column)
        counted = Slots(len(_flat(column)), offsets, self._stored[typed[0]].name)
        structs, _ = self.make(node.children[0], counted)
        lengths = [] if t.is_fixed_size_list(column.type) else [pa.py_buffer(offsets)]
        buffers = [bitmap_buffer(valid), *lengths]
        return pa.Array.from_buffers(node.type, len(column), buffers, children=[structs]), valid

    def _struct_mask(self, node: Node, slots: Slots) -> Array | None:
        """Where a struct is valid; outside of a list where it is though it has no other features."""
        if slots.rows is None:
            return ArrayBuffers(self._next()[1]).valid
        if not node.children:
            self._items(slots)
        return self._valid(slots) if len(node.fields) > (not node.children) else None

    def _union(self, node: Node, slots: Slots) -> Made:
        type_, (struct,) = node.type, node.children
        present, feature = self._struct_mask(struct, slots), struct.children[0].fields[0].name
        numbers, has_code = self.make(struct.children[0], slots)
        codes = ArrayBuffers(numbers).numbers.astype(np.int8)
        for states in (has_code, slots.alive):  # elsewhere a slot has any code
            codes = codes if states is None else np.where(states, codes, type_.type_codes[0]).astype(np.int8)
        self._refuse(
            ~np.isin(codes, type_.type_codes), codes, slots=slots, feature=feature, reason="is not a type of the union"
        )
        pairs = zip(struct.children[1:], type_.type_codes, strict=True)
        children = [self.make(child, slots.within(codes == code))[0] for child, code in pairs]
        valid = present if slots.rows is not None else any_of([present, has_code], slots.count)
        buffers = [None, pa.py_buffer(codes)]  # not `from_sparse`, which makes all fields nullable
        if type_.mode == "sparse":
            return pa.Array.from_buffers(type_, slots.count, buffers, 0, children=children), valid
        offsets = np.zeros(slots.count, np.int32)
        for at, code in enumerate(type_.type_codes):
            of_type = np.flatnonzero(codes == code)
            offsets[of_type] = np.arange(len(of_type))
            children[at] = children[at].take(pa.array(of_type))
        return pa.Array.from_buffers(type_, slots.count, [*buffers, pa.py_buffer(offsets)], 0, children=children), valid

    # ---- columns

    def _next(self) -> tuple[pa.Field, pa.Array]:
        at, self._at = self._at, self._at + 1
        return self._stored[at], self._arrays[at]

    def _items(self, slots: Slots) -> pa.Array:
        """The values of the next column, one for each slot."""
        stored, column = self._next()
        assert slots.rows is not None
        if np.array_equal(_offsets(column), slots.rows):  # mostly: one pass
            return _flat(column)
        lengths, expected = _lengths(column), np.diff(slots.rows)
        if np.any(bad := lengths != expected):
            row = int(bad.argmax())
            reason = f"it has {counted(lengths[row], 'value')}, and there are {expected[row]} by '{slots.counter}'"
            raise RowFault(row, reason, feature=stored.name, expected=int(expected[row]), got=int(lengths[row]))
        return _flat(column)

    def _valid(self, slots: Slots) -> Array | None:
        """Which slots are not among the positions of nulls in the next column; None: all."""
        stored, column = self._next()
        if column.null_count == len(column):
            return None
        assert slots.rows is not None
        counts = _lengths(column)
        positions = ArrayBuffers(column.flatten()).numbers
        rows = np.repeat(np.arange(len(counts)), counts)
        bad = (positions < 0) | (positions >= np.diff(slots.rows)[rows])
        if bad.any():
            at = int(bad.argmax())
            reason = f"{positions[at]} is not the position of a value of '{slots.counter}'"
            raise RowFault(int(rows[at]), reason, feature=stored.name, got=int(positions[at]))
        valid = np.ones(slots.count, np.bool_)
        valid[slots.rows[rows] + positions] = False
        return None if valid.all() else valid

    def _refuse(self, bad: Array, values: Array, slots: Slots, feature: str, reason: str) -> None:
        if bad.any():
            at = int(bad.argmax())
            raise RowFault(slots.row_of(at), f"{values[at]} {reason}", feature=feature, got=int(values[at]))


def _lengths(column: pa.Array) -> Array:
    """The number of values of each row, 0 where it is null."""
    return np.diff(_offsets(column)).astype(np.int64, copy=False)


def _offsets(column: pa.Array) -> Array:
    """Where the values of each row begin, from 0 on, and the end; null rows have none."""
    if not t.is_fixed_size_list(column.type):
        return ArrayBuffers(column).offsets
    valid = ArrayBuffers(column).valid
    return offsets_of((np.ones(len(column), np.int64) if valid is None else valid) * column.type.list_size)


def _flat(column: pa.Array) -> pa.Array:
    """The values of all rows, without a copy: null rows are empty, or have as many slots as a list of a fixed size."""
    if t.is_fixed_size_list(column.type):
        return column.values
    return column.values.slice(0, int(_offsets(column)[-1]))


# ---- types that are stored as other ones


def _map(type_: pa.DataType, lists: pa.Array) -> pa.Array:
    entries = lists.values
    struct, children = pa.struct([type_.key_field, type_.item_field]), [entries.field(0), entries.field(1)]
    structs = pa.Array.from_buffers(struct, len(entries), [None], children=children)
    return pa.Array.from_buffers(type_, len(lists), lists.buffers()[:2], children=[structs])


def _interval(type_: pa.DataType, parts: pa.Array) -> pa.Array:
    whole, valid = np.zeros(len(parts), INTERVAL_DTYPE), ArrayBuffers(parts).valid
    for at, name in enumerate(INTERVAL_DTYPE.names or ()):
        whole[name] = ArrayBuffers(parts.field(at)).numbers
    return fixed_width(
        type_, len(parts), nulls=parts.null_count, validity=None if valid is None else bitmap_of(valid), values=whole
    )


def _dictionary(type_: pa.DataType, values: pa.Array) -> pa.Array:
    """The categories that occur, in the order of their first rows."""
    indices, categories = _distinct(values)
    if len(categories) > (limit := np.iinfo(type_.index_type.to_pandas_dtype()).max + 1):
        row = int(np.argmax(ArrayBuffers(indices).numbers == limit))
        reason = f"it is the {limit + 1}th different value, more than {type_.index_type} has numbers for"
        raise RowFault(row, reason, expected=limit, got=len(categories))
    return pa.DictionaryArray.from_arrays(indices.cast(type_.index_type), categories, ordered=type_.ordered)


def _distinct(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    import pyarrow.compute as pc

    type_ = values.type
    if t.is_null(type_):
        return pa.nulls(len(values), pa.int32()), values[:0]
    if representation_of(type_) is None and not t.is_nested(type_):
        encoded = hashable(values).dictionary_encode()
        categories = encoded.dictionary
        return encoded.indices, categories if categories.type == type_ else categories.cast(type_)
    tree = nested_tree(set_encoding(pa.field("", type_), NESTED))
    keys = [key for column in nested_columns(values, tree) for key in _keys(column)]
    codes = ArrayBuffers(
        pc.binary_join_element_wise(*keys, pa.scalar(b"", pa.large_binary())).dictionary_encode().indices
    ).numbers
    valid = None if t.is_union(type_) else ArrayBuffers(values).valid
    _, first, codes = np.unique(codes if valid is None else codes[valid], return_index=True, return_inverse=True)
    at = first if valid is None else np.flatnonzero(valid)[first]
    indices = np.zeros(len(values), np.int32)
    indices[slice(None) if valid is None else valid] = codes
    return pa.array(indices, mask=None if valid is None else ~valid), values.take(pa.array(at))


def _keys(column: pa.Array) -> list[pa.Array]:
    """Bytes for each row, which together differ where the rows do."""
    rows, valid = len(column), ArrayBuffers(column).valid
    present = np.ones(rows, np.uint8) if valid is None else valid.astype(np.uint8)
    keys = [_cells(present, np.arange(rows + 1))]
    if t.is_null(column.type):
        return keys
    values, offsets = column, np.arange(rows + 1)
    if t.is_large_list(column.type):
        lengths = _lengths(column)
        keys.append(_cells(lengths, np.arange(rows + 1)))
        values, offsets = column.flatten(), offsets_of(lengths)
    elif valid is not None:
        values = values.drop_null()
        offsets = offsets_of(present)
    if not t.is_primitive(values.type):  # text, bytes, decimals
        data, ends = bytes_values(values)
        return [*keys, _cells(np.diff(ends), offsets), _cells(data, ends[offsets])]
    return [*keys, _cells(ArrayBuffers(values).numbers, offsets)]


def _cells(values: Array, offsets: Array) -> pa.Array:
    """The bytes of the values of each row."""
    data = np.ascontiguousarray(values)
    ends = np.ascontiguousarray(offsets * data.itemsize, np.int64)
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])


_MADE: dict[str, Callable[[pa.DataType, pa.Array], pa.Array]] = {  # by the name of the representation
    "extension": pa.ExtensionArray.from_storage,
    "dictionary": _dictionary,
    "run_ends": lambda _, array: array,
    "map": _map,
    "interval": _interval,
}
