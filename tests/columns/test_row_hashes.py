"""Hashes of rows are equal exactly where the values are."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.columns.row_hashes import RowHashes
from tfrecord_io.read.diff import _is_equal

FLOATS = [0.0, -0.0, float("nan"), 1.0, float("inf"), None]
TEXTS = ["", "a", "None", "\0", "a\0", None]
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), None]),
    (pa.uint64(), [0, 1, 2**64 - 1, 2**63, None]),
    (pa.bool_(), [True, False, None]),
    (pa.float64(), FLOATS),
    (pa.float32(), FLOATS),
    (pa.float16(), [None if value is None else np.float16(value) for value in FLOATS]),
    (pa.timestamp("ns", "UTC"), [0, 1, -1, None]),
    (pa.date32(), [0, 1, None]),
    (pa.duration("s"), [0, 5, None]),
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.binary(), [None if value is None else value.encode() for value in TEXTS]),
    (pa.decimal128(5, 2), [decimal.Decimal("1.50"), decimal.Decimal("1.51"), decimal.Decimal(0), None]),
    (pa.null(), [None]),
]


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    """A column of single values, of lists, or of lists of lists, with a slice of other rows around it."""
    type_, choices = draw(st.sampled_from(VALUES))
    values: st.SearchStrategy[Any] = st.sampled_from(choices)
    kind = draw(st.sampled_from(["plain", "list", "large_list", "fixed", "nested", "dictionary"]))
    if kind == "dictionary" and pa.types.is_string(type_):
        return pa.array(draw(st.lists(values, max_size=12)), type_).dictionary_encode()
    if kind == "fixed":
        type_, values = pa.list_(type_, 2), st.none() | st.tuples(values, values).map(list)
    if kind in ("list", "large_list", "nested"):
        make = pa.large_list if kind == "large_list" else pa.list_
        type_, values = make(type_), st.none() | st.lists(values, max_size=3)
    if kind == "nested":
        type_, values = pa.list_(type_), st.none() | st.lists(values, max_size=3)
    rows = draw(st.lists(values, max_size=12))
    begin = draw(st.integers(0, 2))
    return pa.array([*rows[:begin], *rows], type_)[min(begin, len(rows)) :]


@given(columns())
def test_values_are_equal_where_their_hashes_are(column: pa.Array) -> None:
    assert RowHashes.is_for(column.type)
    hashes = RowHashes.from_columns([column], len(column)).values
    plain = column.cast(pa.int64()) if pa.types.is_temporal(column.type) and not _is_date(column.type) else column
    values = plain.to_pylist()
    for a, left in enumerate(values):
        for b, right in enumerate(values):
            assert (hashes[a] == hashes[b]) == _is_equal(left, right), (left, right)


def _is_date(type_: pa.DataType) -> bool:
    return bool(pa.types.is_date(type_))


@given(columns(), st.integers(0, 3))
def test_hashes_do_not_depend_on_the_rows_around(column: pa.Array, begin: int) -> None:
    for whole, part in zip(RowHashes.hash_column(column), RowHashes.hash_column(column[begin:]), strict=True):
        assert whole[begin:].tolist() == part.tolist()


def test_the_order_of_columns_and_items_counts() -> None:
    a, b = pa.array([1]), pa.array([2])
    assert RowHashes.from_columns([a, b], 1).values != RowHashes.from_columns([b, a], 1).values
    lists = pa.array([[1, 2], [2, 1], [1, 2, None], []], pa.list_(pa.int64()))
    assert len(set(RowHashes.from_columns([lists], 4).values.tolist())) == 4


@pytest.mark.parametrize(
    "type_", [pa.struct({"a": pa.int64()}), pa.map_(pa.string(), pa.int64()), pa.month_day_nano_interval()]
)
def test_types_without_hashes(type_: pa.DataType) -> None:
    assert not RowHashes.is_for(type_)
    assert not RowHashes.is_for(pa.list_(type_))
