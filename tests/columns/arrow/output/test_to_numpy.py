"""Arrow columns as NumPy rows: the same values, wherever a slice begins and however rows are split into arrays."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrow_tables import LEAVES
from rounds import rounds
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.arrow.output.to_numpy import Dense, Ragged, Rows, leaf_arrays, leaf_fields, to_rows
from tfrecord_io.columns.arrow.tensor_values import ndarray_to_column
from tfrecord_io.testing.tensor_encoding_suite import tensor_column
from traced import peak

law = settings(max_examples=rounds(200))


def listed(rows: Dense | Ragged) -> list[Any]:
    """The rows as Python values, None where one is missing."""
    if isinstance(rows, Ragged):
        return [None if cell is None else cell.tolist() for cell in rows.objects(0, len(rows))]
    valid = [True] * len(rows) if rows.valid is None else rows.valid.tolist()
    return [value if ok else None for value, ok in zip(rows.values.tolist(), valid, strict=True)]


def plain(array: pa.Array) -> list[Any]:
    """What the rows are to be: times as NumPy has them."""
    type_ = array.type
    if pa.types.is_temporal(type_):
        width = type_.bit_width
        numbers = array.cast(pa.int32() if width == 32 else pa.int64()).to_pylist()
        kind = "M8" if pa.types.is_timestamp(type_) or pa.types.is_date(type_) else "m8"
        unit = "D" if pa.types.is_date32(type_) else "ms" if pa.types.is_date64(type_) else type_.unit
        return [None if n is None else np.array(n, np.int64).view(f"{kind}[{unit}]").tolist() for n in numbers]
    return array.to_pylist()


@law
@given(
    data=st.data(),
    leaf=st.sampled_from([each for each in LEAVES if "view" not in str(each[0]) and not pa.types.is_float16(each[0])]),
)
def test_values_are_those_of_arrow(data: st.DataObject, leaf: tuple[pa.DataType, st.SearchStrategy[Any]]) -> None:
    type_, values = leaf
    array = pa.array(data.draw(st.lists(st.none() | values, max_size=8)), type_)
    begin = data.draw(st.integers(0, len(array)))
    array = array.slice(begin)
    got = listed(to_rows(array, pa.field("x", type_)))
    assert repr(got) == repr(plain(array))  # repr: NaN is NaN, and −0.0 is not 0.0


@law
@given(
    rows=st.lists(st.none() | st.lists(st.integers(0, 9), max_size=3), max_size=9),
    cuts=st.lists(st.integers(0, 9), max_size=2),
)
def test_parts_joined_are_the_whole(rows: list[list[int] | None], cuts: list[int]) -> None:
    array = pa.array(rows, pa.list_(pa.int64()))
    field = pa.field("x", array.type)
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [to_rows(array.slice(a, b - a), field) for a, b in pairwise(edges)]
    whole = Ragged.join(parts)
    assert listed(whole) == rows
    assert parts == []


def test_text_of_which_one_part_misses_some() -> None:
    field = pa.field("x", pa.string())
    whole = Ragged.join([to_rows(pa.array(["a"]), field), to_rows(pa.array([None, "b"]), field)])
    assert whole.values.tolist() == ["a", None, "b"]


def test_bytes_keep_their_trailing_nuls() -> None:
    array = pa.array([b"a\0\0", b"", b"\0"])
    assert to_rows(array, pa.field("x", array.type)).values.tolist() == [b"a\0\0", b"", b"\0"]


@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64", "uint16", "M8[s]"])
def test_tensors_of_one_shape(dtype: str) -> None:
    values = np.arange(12).reshape(2, 3, 2).astype(dtype)
    column, of = ndarray_to_column(values, np.array([True, False]))
    field = pa.field("x", column.type, metadata={b"tfrecord_io.dtype": of.name.encode()})
    rows = to_rows(column, field)
    assert isinstance(rows, Dense)
    assert rows.values.dtype == np.dtype(dtype)
    assert (rows.values[0] == values[0]).all()
    assert rows.valid is not None
    assert rows.valid.tolist() == [True, False]


def test_tensors_of_several_shapes() -> None:
    cells = [np.ones((2, 3), np.int16), None, np.zeros((0, 3), np.int16), np.full((1, 3), 7, np.int16)]
    column, _ = tensor_column(cells)
    rows = to_rows(column, pa.field("x", column.type))
    assert isinstance(rows, Ragged)
    got = rows.objects(0, 4)
    assert all(
        (a is None and b is None) or (a.shape == b.shape and (a == b).all()) for a, b in zip(got, cells, strict=True)
    )
    assert rows.shapes is not None
    assert rows.shapes.tolist() == [[2, 3], [0, 0], [0, 3], [1, 3]]
    assert rows.pad(0, 4, -1).shape == (4, 2, 3)
    assert rows.pad(2, 4, -1).tolist() == [[[-1, -1, -1]], [[7, 7, 7]]]


def test_structs_are_columns_of_their_own() -> None:
    batch = pa.record_batch({"s": [{"a": 1, "in": {"b": "x"}}, None], "l": [[{"q": 1}, {"q": 2}], []]})
    assert [field.name for field in leaf_fields(batch.schema)] == ["s/a", "s/in/b", "l/q"]
    assert [array.to_pylist() for array in leaf_arrays(batch)] == [[1, None], ["x", None], [[1, 2], []]]


def test_a_view_where_memory_has_the_same_form() -> None:
    array = pa.array(np.arange(5.0))
    rows = to_rows(array, pa.field("x", array.type))
    assert rows.values.ctypes.data == array.buffers()[1].address


@pytest.mark.parametrize("missing", [False, True])
def test_text_that_may_miss_some_later(missing: bool) -> None:
    rows = to_rows(pa.array(["a", "bc" * 20]), pa.field("x", pa.string()), missing=missing)
    assert rows.values.dtype == Dtype.text(missing=missing)
    assert rows.values.tolist() == ["a", "bc" * 20]


@pytest.mark.parametrize("missing", [False, True])
def test_texts_are_joined_in_little_more_than_their_memory(missing: bool) -> None:
    texts = ["é" * 50_000, "", "b" * 100_000, None][: 3 + missing]

    def join() -> Rows:
        some = [*[texts[:3]] * 20, texts]
        return Ragged.join([Dense(np.array(each, Dtype.text(missing=None in each))) for each in some])

    assert join().values.tolist() == [*texts[:3] * 20, *texts]
    assert peak(join) < 1.6 * 21 * 200_000
