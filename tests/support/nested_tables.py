"""Columns of any Arrow type, with nulls at every level, for Hypothesis."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from arrow_tables import LEAVES, masks
from tfrecord_io.columns.arrow.output.to_python import python_values


class Point(pa.ExtensionType):
    """An extension type that only this module registers."""

    def __init__(self) -> None:
        super().__init__(pa.list_(pa.float32(), 2), "tests.point")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Point:
        return cls()


with suppress(pa.ArrowKeyError):  # registered by an earlier import
    pa.register_extension_type(Point())


@st.composite
def leaf_arrays(draw: st.DrawFn, rows: int) -> pa.Array:
    type_, values = draw(st.sampled_from(LEAVES))
    values = st.floats() if pa.types.is_float64(type_) else values
    some = draw(st.lists(st.one_of(values, st.none()), min_size=rows, max_size=rows))
    return pa.array(some, type_)


@st.composite
def interval_arrays(draw: st.DrawFn, rows: int) -> pa.Array:
    number = st.integers(-(2**31), 2**31 - 1)
    value = st.tuples(number, number, st.integers(-(2**63), 2**63 - 1))
    some = draw(st.lists(st.one_of(value, st.none()), min_size=rows, max_size=rows))
    return pa.array(some, pa.month_day_nano_interval())


@st.composite
def list_arrays(draw: st.DrawFn, rows: int, depth: int) -> pa.Array:
    form = draw(st.sampled_from(["list", "large_list", "fixed", "list_view", "large_list_view"]))
    mask, begin = draw(masks(rows)), draw(st.integers(0, 2))
    lengths = draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    if form == "fixed":
        size = draw(st.integers(0, 3))
        values = draw(arrays(rows * size, depth - 1))
        if not size:
            return pa.nulls(rows, pa.list_(values.type, 0))
        return pa.FixedSizeListArray.from_arrays(values, size, mask=mask)
    if form.endswith("view"):
        width = pa.int64() if "large" in form else pa.int32()
        starts = draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
        cls = pa.LargeListViewArray if "large" in form else pa.ListViewArray
        return cls.from_arrays(pa.array(starts, width), pa.array(lengths, width), draw(arrays(8, depth - 1)), mask=mask)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))) + begin
    values = draw(arrays(int(offsets[-1]) + 1, depth - 1))
    cls, width = (pa.LargeListArray, pa.int64()) if "large" in form else (pa.ListArray, pa.int32())
    return cls.from_arrays(pa.array(offsets, width), values, mask=mask)


@st.composite
def map_arrays(draw: st.DrawFn, rows: int, depth: int) -> pa.Array:
    lengths = draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    count = int(offsets[-1])
    keys = pa.array(draw(st.lists(st.text(max_size=3), min_size=count, max_size=count)), pa.string())
    items = draw(arrays(count, depth - 1))
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items, mask=draw(masks(rows)))


@st.composite
def struct_arrays(draw: st.DrawFn, rows: int, depth: int) -> pa.Array:
    pad, names = draw(st.integers(0, 2)), ["f", "g"][: draw(st.integers(0, 2))]
    mask = draw(masks(rows))
    if not names:
        bits = None if mask is None else pa.py_buffer(np.packbits(~np.array(mask, bool), bitorder="little"))
        return pa.Array.from_buffers(pa.struct([]), rows, [bits])
    fields = [draw(arrays(rows + pad, depth - 1)).slice(pad) for _ in names]
    return pa.StructArray.from_arrays(fields, names=names, mask=mask)


@st.composite
def union_arrays(draw: st.DrawFn, rows: int, depth: int) -> pa.Array:
    codes = draw(st.lists(st.sampled_from([5, 7]), min_size=rows, max_size=rows))
    if draw(st.booleans()):
        children = [draw(arrays(rows, depth - 1)) for _ in range(2)]
        return pa.UnionArray.from_sparse(pa.array(codes, pa.int8()), children, ["a", "b"], [5, 7])
    children = [draw(arrays(3, depth - 1)) for _ in range(2)]
    offsets = draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows))
    return pa.UnionArray.from_dense(
        pa.array(codes, pa.int8()), pa.array(offsets, pa.int32()), children, ["a", "b"], [5, 7]
    )


@st.composite
def dictionary_arrays(draw: st.DrawFn, rows: int, depth: int) -> pa.Array:
    values = draw(arrays(3, depth - 1).filter(lambda array: not has_union(array.type)))
    index = st.one_of(st.integers(0, 2), st.none())
    indices = draw(st.lists(index, min_size=rows, max_size=rows))
    numbers = pa.array(indices, draw(st.sampled_from([pa.int8(), pa.uint32()])))
    return pa.DictionaryArray.from_arrays(numbers, values, ordered=draw(st.booleans()))


@st.composite
def extension_arrays(draw: st.DrawFn, rows: int, depth: int) -> pa.Array:
    del depth
    values = draw(st.lists(st.floats(width=32), min_size=2 * rows, max_size=2 * rows))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values, pa.float32()), 2, mask=draw(masks(rows)))
    return pa.ExtensionArray.from_storage(Point(), lists)


@st.composite
def arrays(draw: st.DrawFn, rows: int, depth: int) -> pa.Array:
    """An array of any type, at most `depth` levels deep."""
    leaves = [leaf_arrays(rows), leaf_arrays(rows), interval_arrays(rows), st.just(pa.nulls(rows))]
    if depth <= 0:
        return draw(st.one_of(leaves))
    deeper = [list_arrays, list_arrays, map_arrays, struct_arrays, union_arrays, dictionary_arrays, extension_arrays]
    return draw(st.one_of(*leaves, *(make(rows, depth) for make in deeper)))


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 5, max_columns: int = 3, depth: int = 3) -> pa.Table:
    """A table of any columns, which are slices of longer ones."""
    rows, before, after = draw(st.integers(0, max_rows)), draw(st.integers(0, 9)), draw(st.integers(0, 2))
    count = draw(st.integers(1, max_columns))
    columns = [draw(arrays(before + rows + after, depth)).slice(before, rows) for _ in range(count)]
    return pa.table(dict(zip("xyz", columns, strict=False)))


def has_union(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return has_union(type_.value_type)
    if isinstance(type_, pa.BaseExtensionType) or not pa.types.is_nested(type_):
        return False
    return pa.types.is_union(type_) or any(has_union(type_.field(at).type) for at in range(type_.num_fields))


def has_union_in_union(type_: pa.DataType) -> bool:
    if not has_union(type_):
        return False
    children = [type_.field(at).type for at in range(type_.num_fields)] if pa.types.is_nested(type_) else []
    inner = has_union if pa.types.is_union(type_) else has_union_in_union
    return any(map(inner, children))


def plain_value(value: Any) -> Any:
    """A value that can be compared: NaN equals itself."""
    if isinstance(value, dict):
        return {key: plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    return "NaN" if isinstance(value, float | np.floating) and value != value else value


def values_of(column: pa.ChunkedArray) -> list[Any]:
    chunks = column.chunks
    if int(pa.__version__.split(".")[0]) < 25 and has_union(column.type):  # slices may show None; a copy is not a slice
        chunks = [pa.concat_arrays([chunk, chunk]).slice(0, len(chunk)) for chunk in chunks]
    return [plain_value(value) for chunk in chunks for value in python_values(chunk)]
