"""Random Arrow types, equal tables, and columns of every type and physical form that a writer takes, for Hypothesis."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

TEXT_DTYPE = str(pd.Series(["a"], dtype="str").dtype)  # of text in a DataFrame: "str", or "object" before pandas 3


def assert_equal(got: pa.Table, expected: pa.Table) -> None:
    """Assert equal schemas, with metadata, and equal values: NaN equals NaN, and zeros have signs."""
    assert got.schema.equals(expected.schema, check_metadata=True)
    assert repr(got.to_pylist()) == repr(expected.to_pylist())


def integers(type_: pa.DataType) -> st.SearchStrategy[int]:
    info = np.iinfo(type_.to_pandas_dtype())
    return st.integers(int(info.min), min(int(info.max), 2**63 - 1))


DAYS = st.integers(-30_000, 60_000)
SECONDS = st.integers(-(2**31), 2**32)
LEAVES: list[tuple[pa.DataType, st.SearchStrategy]] = [
    (pa.bool_(), st.booleans()),
    *(
        (t, integers(t))
        for t in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
    ),
    (pa.float16(), st.floats(width=16).map(np.float16)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats(width=32)),
    (pa.string(), st.text(max_size=5)),
    (pa.large_string(), st.text(max_size=5)),
    (pa.string_view(), st.text(max_size=20)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.large_binary(), st.binary(max_size=5)),
    (pa.binary_view(), st.binary(max_size=20)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.decimal128(9, 2), st.integers(-(10**8), 10**8).map(lambda n: Decimal(n).scaleb(-2))),
    (pa.decimal256(40, 2), st.integers(-(10**30), 10**30).map(lambda n: Decimal(n).scaleb(-2))),
    (pa.date32(), DAYS),
    (pa.date64(), DAYS.map(lambda d: d * 86_400_000)),
    (pa.time32("s"), st.integers(0, 86_399)),
    (pa.time32("ms"), st.integers(0, 86_399_999)),
    (pa.time64("us"), st.integers(0, 86_399_999_999)),
    (pa.time64("ns"), st.integers(0, 86_399_999_999).map(lambda n: n * 1000)),
    (pa.timestamp("s"), SECONDS),
    (pa.timestamp("ms", "Europe/Paris"), SECONDS),
    (pa.timestamp("us", "UTC"), SECONDS),
    (pa.timestamp("ns"), SECONDS),
    (pa.duration("ms"), SECONDS),
    (pa.duration("ns"), SECONDS),
]


@st.composite
def leaf_arrays(draw: st.DrawFn, rows: int, nulls: bool = True) -> pa.Array:
    """A plain array, or one as a dictionary or as run-ends."""
    type_, values = draw(st.sampled_from(LEAVES))
    form = draw(st.sampled_from(["plain", "plain", "dictionary", "run-ends"]))
    if form == "dictionary" and not pa.types.is_float16(type_):
        some = draw(st.lists(st.one_of(values, st.none()) if nulls else values, min_size=1, max_size=4))
        index = st.integers(0, len(some) - 1)
        indices = draw(st.lists(st.one_of(index, st.none()) if nulls else index, min_size=rows, max_size=rows))
        return pa.DictionaryArray.from_arrays(
            pa.array(indices, draw(st.sampled_from([pa.int8(), pa.uint32(), pa.int64()]))), pa.array(some, type_)
        )
    if form == "run-ends" and rows:
        ends = sorted({*draw(st.lists(st.integers(1, rows), max_size=3)), rows})
        runs = draw(leaf_arrays(len(ends), nulls).filter(lambda a: not pa.types.is_run_end_encoded(a.type)))
        return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), runs)
    return pa.array(
        draw(st.lists(st.one_of(values, st.none()) if nulls else values, min_size=rows, max_size=rows)), type_
    )


@st.composite
def masks(draw: st.DrawFn, rows: int, nulls: bool = True) -> pa.Array | None:
    """Null where true; a null slot keeps whatever its children hold."""
    if not nulls or draw(st.booleans()):
        return None
    return pa.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), pa.bool_())


@st.composite
def list_arrays(draw: st.DrawFn, rows: int, nulls: bool = True, depth: int = 1) -> pa.Array:
    """A list of any of the five forms, null rows with values below them, list views with overlaps."""
    mask = draw(masks(rows, nulls))
    form = draw(st.sampled_from(["list", "large_list", "fixed", "list_view", "large_list_view"]))
    begin = draw(st.integers(0, 2))  # values that no row has
    lengths = draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    if form == "fixed":
        size = draw(st.integers(1, 3))
        return pa.FixedSizeListArray.from_arrays(draw(children(rows * size, depth)), size, mask=mask)
    if form.endswith("view"):
        width = pa.int64() if "large" in form else pa.int32()
        starts = draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
        values = draw(children(8, depth))
        cls = pa.LargeListViewArray if "large" in form else pa.ListViewArray
        return cls.from_arrays(pa.array(starts, width), pa.array(lengths, width), values, mask=mask)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))) + begin
    values = draw(children(int(offsets[-1]) + 1, depth))
    cls, width = (pa.LargeListArray, pa.int64()) if "large" in form else (pa.ListArray, pa.int32())
    return cls.from_arrays(pa.array(offsets, width), values, mask=mask)


def children(rows: int, depth: int) -> st.SearchStrategy[pa.Array]:
    """Values that a list may hold: no nulls, no lists."""
    leaf = leaf_arrays(rows, nulls=False)
    return st.one_of(leaf, struct_arrays(rows, nulls=False, lists=False, depth=depth - 1)) if depth else leaf


@st.composite
def struct_arrays(draw: st.DrawFn, rows: int, nulls: bool = True, lists: bool = True, depth: int = 1) -> pa.Array:
    pad = draw(st.integers(0, 2))  # a child with an offset of its own
    fields = []
    for _ in range(draw(st.integers(1, 2))):
        options = [leaf_arrays(rows + pad, nulls)]
        if lists:
            options.append(list_arrays(rows + pad, nulls, depth=0))
        if depth > 0:
            options.append(struct_arrays(rows + pad, nulls, lists, depth - 1))
        fields.append(draw(st.one_of(options)).slice(pad))
    return pa.StructArray.from_arrays(fields, names=["f", "g"][: len(fields)], mask=draw(masks(rows, nulls)))


@st.composite
def run_arrays(draw: st.DrawFn, rows: int) -> pa.Array:
    """Run-ends over lists or structs."""
    if not rows:
        return draw(list_arrays(0))
    ends = sorted({*draw(st.lists(st.integers(1, rows), max_size=3)), rows})
    runs = draw(st.one_of(list_arrays(len(ends) + 1), struct_arrays(len(ends) + 1))).slice(1)
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), runs)


@st.composite
def columns(draw: st.DrawFn, rows: int) -> pa.Array:
    """An array of `rows` rows that may be a slice of a longer one."""
    before, after = draw(st.integers(0, 9)), draw(st.integers(0, 2))
    total = before + rows + after
    array = draw(
        st.one_of(
            leaf_arrays(total), list_arrays(total), struct_arrays(total), run_arrays(total), st.just(pa.nulls(total))
        )
    )
    return array.slice(before, rows)


@st.composite
def batches(draw: st.DrawFn, max_rows: int = 6, max_columns: int = 3) -> pa.RecordBatch:
    """A batch of any columns."""
    rows = draw(st.integers(0, max_rows))
    arrays = draw(st.lists(columns(rows), min_size=1, max_size=max_columns))
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])


# ---- types alone

_VALUE_TYPES = st.sampled_from(
    [
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.float64(),
        pa.bool_(),
        pa.string(),
        pa.large_binary(),
        pa.binary(7),
        pa.date32(),
        pa.time64("ns"),
        pa.duration("s"),
        pa.timestamp("ms", "Europe/Paris"),
        pa.decimal128(12, 3),
        pa.dictionary(pa.int8(), pa.string(), ordered=True),
        pa.null(),
    ]
)
TYPES = st.recursive(
    _VALUE_TYPES,
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        inner.map(lambda value: pa.list_(value, 2)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda values: pa.struct([(f"f{i}", v) for i, v in enumerate(values)])
        ),
    ),
    max_leaves=5,
)


def without_metadata(table: pa.Table) -> pa.Table:
    """The same columns, whose fields, also those of structs, say nothing about how they were stored."""

    def plain(type_: pa.DataType) -> pa.DataType:
        if pa.types.is_list(type_):
            return pa.list_(plain(type_.value_type))
        if pa.types.is_struct(type_):
            return pa.struct([pa.field(child.name, plain(child.type)) for child in type_])
        return type_

    schema = pa.schema([(field.name, plain(field.type)) for field in table.schema])
    columns = [column.combine_chunks().cast(type_) for column, type_ in zip(table.columns, schema.types, strict=True)]
    return pa.table(columns, schema=schema)
