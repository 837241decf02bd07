"""Columns built from several features by a `Composite`: shapes restored, lists split, bytes decoded.

A new way is a function from the stored bytes of items to their plain bytes, and a row of `BYTE_FORMATS`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array
from tfrecord_io.columns.arrow.buffers import ArrayBuffers, bitmap_of, bytes_values, offsets_of, scatter
from tfrecord_io.columns.arrow.casts import number_array
from tfrecord_io.columns.arrow.decode.lists import wrap
from tfrecord_io.columns.arrow.row_fault import RowFault, faults_of_lists, faults_of_present
from tfrecord_io.columns.arrow.tensor_values import misfits, shapes_of_counts
from tfrecord_io.columns.schema.composite import VALUES, Composite
from tfrecord_io.columns.schema.types import is_list_like

_MOST_EMPTY = 2**16  # lists that an array without values may have, for a shape such as (0, 3)
_MOST = 2**31 - 1  # bytes of one item, as of one record


def built_array(assembly: Composite, parts: list[pa.Array]) -> pa.Array:
    """One column from its parts, in the order of `Composite.components`; null where all of them are.

    Lengths or shapes next to absent values are those of no values, which writers leave out: lengths of [0] are [[]].
    A row whose parts contradict each other or the shape is a RowFault.
    """
    stored = parts[0]
    mask = np.asarray(stored.is_valid())
    for part in parts[1:] if is_list_like(stored.type) else []:
        mask = mask | np.asarray(part.is_valid())
    if assembly.sentinel:  # rows whose every value is the least of the type
        values, counts = _flat(stored)
        dtype = assembly.value_type.to_pandas_dtype()
        sentinel = np.finfo(dtype).min if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min
        hits = np.asarray(values.fill_null(0)) == sentinel
        sums = np.diff(offsets_of(hits)[offsets_of(counts)])
        mask = mask & ~((sums == counts) & (counts > 0) & np.asarray(stored.is_valid()))
    if not mask.all():
        present = pa.array(mask)
        parts = [part.filter(present) for part in parts]
    with faults_of_present(mask):
        values, levels = _Work(assembly, parts).run()
    return _nest(assembly, mask, values, levels)


def _refuse(bad: Array, reason: str, expected: object = None, values: Array | None = None) -> None:
    if np.any(bad):
        at = int(bad.argmax())
        raise RowFault(at, reason, expected=expected, got=None if values is None else int(values[at]))


_Level = Array | int
"""Lists at one depth: the length of each, or that of all."""


class _Work:
    """The rows of a column that are not null, and the steps from parts to values and levels."""

    def __init__(self, assembly: Composite, parts: list[pa.Array]) -> None:
        self.assembly = assembly
        self.stored, self.counts = _flat(parts[0])  # all values, and how many of them each row has
        further_parts = iter([(np.asarray(values), per_row) for values, per_row in map(_flat, parts[1:])])
        # As of the values, of the features of lengths and of the feature of shapes.
        self.lengths = [None if name is None else next(further_parts) for name in assembly.lengths]
        self.shapes = None if assembly.shape_feature is None else next(further_parts)

    def run(self) -> tuple[pa.Array, list[_Level]]:
        a = self.assembly
        if a.encoding != VALUES:
            return self._decode_items()
        values = _convert_values(self.stored, a, self.counts)
        if not a.sequence:
            shapes = self._shapes(self.counts, self.counts * 0 + 1)
            return values, _axes(a, self.counts, shapes)
        size = a.item_size
        bad = self.counts % size != 0 if size else self.counts != 0
        _refuse(bad, f"the number of values is not a multiple of {size}", expected=size)
        items = self.counts // size if size else self.counts
        return values, self._lists(items) + _axes(a, np.full(int(items.sum()), size), None)

    def _decode_items(self) -> tuple[pa.Array, list[_Level]]:
        a = self.assembly
        per_row = self.counts  # items
        shapes = self._shapes(None, per_row)
        expected = None if shapes is None else np.prod(shapes, axis=1)
        if None not in a.shape:
            expected = np.full(len(self.stored), a.item_size)
        with faults_of_lists(counts=per_row):
            values, counts = array_values(self.stored, a.encoding, a.value_type, expected)
            axes = _axes(a, counts, shapes)
        return values, self._lists(per_row) + axes

    def _shapes(self, counts: Array | None, items: Array) -> Array | None:
        """The shapes as a matrix of a row for each item, where a feature says them."""
        if self.shapes is None:
            return None
        a, (flat, per_row) = self.assembly, self.shapes
        rank = len(a.shape)
        _refuse(per_row != items * rank, f"a shape of {rank} axes is needed for each item", expected=rank)
        shapes = flat.reshape(-1, rank)
        rows = np.repeat(np.arange(len(items)), items)
        bad = np.any((shapes < 0) | (shapes > 2**31), axis=1) | misfits(shapes, a.shape)
        bad |= np.prod(shapes.astype(float), axis=1) >= 2**31
        if np.any(bad):
            at = int(bad.argmax())
            reason = f"{tuple(shapes[at].tolist())} is not of the shape {a.shape}"
            raise RowFault(int(rows[at]), reason, expected=a.shape)
        if counts is not None:
            _refuse(np.prod(shapes, axis=1) != counts, "the number of values is not that of the shape")
        return shapes

    def _lists(self, items: Array) -> list[_Level]:
        """Build the levels of lists around the items; `items` is the number of items of each row."""
        levels: list[_Level] = []
        for size, lengths in zip(reversed(self.assembly.sequence[1:]), reversed(self.lengths), strict=True):
            if lengths is None:
                assert size
                _refuse(items % size != 0, f"the number of items is not a multiple of {size}", expected=size)
                levels.append(size)
                items = items // size
                continue
            flat, per_row = lengths
            offsets = offsets_of(per_row)
            bad = (flat < 0) | (flat > items.sum()) | (False if size is None else flat != size)
            with faults_of_lists(offsets):
                _refuse(bad, "a list inside has a length that does not fit", size, flat)
            sums = np.diff(offsets_of(flat)[offsets])
            _refuse(sums != items, "the lengths of the lists do not add up to the number of items")
            levels.append(flat)
            items = per_row
        return [items, *reversed(levels)] if self.assembly.sequence else []


def _flat(array: pa.Array) -> tuple[pa.Array, Array]:
    """All values, and how many each row has; a null has none, a single value is one."""
    if not is_list_like(array.type):
        return array, np.ones(len(array), np.int64)
    return array.flatten(), ArrayBuffers(array).lengths


def _axes(a: Composite, counts: Array, shapes: Array | None) -> list[_Level]:
    """The levels of the axes of items that have so many values each."""
    if None not in a.shape:
        _refuse(counts != a.item_size, f"the shape {a.shape} has {a.item_size} values", expected=a.item_size)
        if 0 not in a.shape:
            return [size for size in a.shape if size is not None]
        shapes = np.broadcast_to(np.array(a.shape, np.int64), (len(counts), len(a.shape)))
    if shapes is None:
        item_size = a.item_size
        bad = counts % item_size != 0 if item_size else counts != 0
        _refuse(bad, f"the number of values is not a multiple of {item_size}", expected=item_size)
        shapes = shapes_of_counts(counts, a.shape)
    ones = np.ones((len(shapes), 1))  # floats cannot overflow
    before = np.cumprod(np.concatenate([ones, shapes[:, :-1]], axis=1), axis=1)
    too_many = np.any(before > np.maximum(counts, _MOST_EMPTY)[:, None], axis=1)
    _refuse(too_many, "an array without values has too many rows", expected=_MOST_EMPTY)
    return [np.repeat(shapes[:, at], before[:, at].astype(np.int64)) for at in range(len(a.shape))]


def _nest(a: Composite, mask: Array, values: pa.Array, levels: list[_Level]) -> pa.Array:
    """Values as rows, each level around the one below; rows that are not in `mask` are null."""
    rows, nulls = len(mask), int(len(mask) - np.count_nonzero(mask))
    if not levels:
        return values.take(pa.array(np.cumsum(mask) - 1, mask=~mask)) if nulls else values
    type_ = a.type
    if a.is_tensor:
        type_, levels = type_.storage_type, [a.item_size]
        values = values.cast(type_.value_type)  # bools are uint8
    types = [type_]
    for _ in levels[1:]:
        types.append(types[-1].value_type)
    for level, level_type in zip(reversed(levels[1:]), reversed(types[1:]), strict=True):
        if isinstance(level, int):
            values = pa.Array.from_buffers(level_type, len(values) // level, [None], 0, children=[values])
        else:
            values = wrap(level_type, len(level), nulls=0, validity=None, offsets=offsets_of(level), values=values)
    outer = np.full(rows - nulls, levels[0]) if isinstance(levels[0], int) else levels[0]
    offsets = offsets_of(scatter(outer, mask))
    column = wrap(type_, rows, nulls=nulls, validity=bitmap_of(mask) if nulls else None, offsets=offsets, values=values)
    return pa.ExtensionArray.from_storage(a.type, column) if a.is_tensor else column


def _convert_values(stored: pa.Array, a: Composite, counts: Array) -> pa.Array:
    """Stored values as those of the column: bits of uint64, and labels by their names."""
    if a.labels is not None:
        codes = np.asarray(stored)
        bad = (codes < -1) | (codes >= len(a.labels))
        with faults_of_lists(counts=counts):
            _refuse(bad, f"the value is not one of {len(a.labels)} labels", len(a.labels), codes)
        indices = pa.array(codes.astype(np.int32), mask=codes == -1)
        return pa.DictionaryArray.from_arrays(indices, pa.array(a.labels, pa.string()))
    return stored.view(pa.uint64()) if a.value_type == pa.uint64() else stored


def array_values(stored: pa.Array, encoding: str, type_: pa.DataType, expected: Array | None) -> tuple[pa.Array, Array]:
    """The values (of a number type or bool) of all items, and how many each has.

    `stored` is binary, without nulls: an item each; `encoding` is a row of `BYTE_FORMATS`; `expected` is how many
    values each item must have. A RowFault has the index of an item that does not fit.
    """
    width = 1 if pa.types.is_boolean(type_) else type_.bit_width // 8
    data, sizes = BYTE_FORMATS[encoding](stored, None if expected is None else expected * width)
    if np.any(bad := sizes % width != 0):
        at = int(bad.argmax())
        reason = f"{sizes[at]} bytes are not a whole number of {type_} values of {width}"
        raise RowFault(at, reason, expected=f"a multiple of {width}", got=int(sizes[at]))
    counts = sizes // width
    if expected is not None and np.any(bad := counts != expected):
        at = int(bad.argmax())
        reason = f"the shape has {expected[at]} values, the bytes hold {counts[at]}"
        raise RowFault(at, reason, expected=int(expected[at]), got=int(counts[at]))
    if pa.types.is_boolean(type_):
        with faults_of_lists(counts=counts):
            _refuse(data > 1, "a byte is not a bool", "bool", data)
    return number_array(type_, data), counts


def _plain(stored: pa.Array, _: Array | None) -> tuple[Array, Array]:
    """The bytes as they are, without a copy."""
    data, offsets = bytes_values(stored)
    return data, np.diff(offsets).astype(np.int64)


def _zlib(stored: pa.Array, expected: Array | None) -> tuple[Array, Array]:
    parts = []
    for at, item in enumerate(stored):
        limit = _MOST if expected is None else int(expected[at])
        inflater = zlib.decompressobj()
        try:
            plain = inflater.decompress(item.as_buffer(), limit + 1)  # one more than it may have, so that more is seen
        except zlib.error as error:
            raise RowFault(at, f"the bytes are not a zlib stream ({error})", expected="zlib") from None
        if len(plain) <= limit and not inflater.eof:
            raise RowFault(at, "the zlib stream is truncated", expected="zlib")
        if len(plain) > limit:
            raise RowFault(at, f"the zlib stream holds more than {limit} bytes", expected=limit)
        parts.append(plain)
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    return np.frombuffer(b"".join(parts), np.uint8), sizes


# From a binary array without nulls, and the size of each item (None: unknown), to all bytes and their sizes.
BYTE_FORMATS: dict[str, Callable[[pa.Array, Array | None], tuple[Array, Array]]] = {"bytes": _plain, "zlib": _zlib}
