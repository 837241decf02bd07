"""Columns as tensors of a declared type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rounds import rounds
from tensors_of_arrays import columns
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.arrow.input.from_arrays import tensors_of
from tfrecord_io.columns.arrow.input.schema_cast import cast_columns
from tfrecord_io.columns.arrow.input.tensor_cast import tensor_cast, tensors_fit
from tfrecord_io.columns.arrow.tensor_values import cells_to_column, column_to_cells
from tfrecord_io.columns.schema.tensor_types import tensor_field
from tfrecord_io.errors import EncodeError
from tfrecord_io.testing.tensor_encoding_suite import NAMES

ANY = settings(max_examples=rounds(200))


def cells(array: pa.Array, field: pa.Field) -> list[Any]:
    array.validate(full=True)
    return [None if cell is None else (cell.shape, cell.tobytes()) for cell in column_to_cells(array, field)]


@ANY
@given(st.data())
def test_any_tensors_become_tensors_of_free_axes(data: st.DataObject) -> None:
    given_ = data.draw(columns(4).filter(lambda each: any(cell is not None and cell.ndim > 1 for cell in each.cells)))
    tensors = tensors_of(given_.data, True, None)
    assert not isinstance(tensors, pa.Array | None)
    source, array = tensors.field("x"), tensors.slice(0, 4)
    rank = next(cell.ndim for cell in given_.cells if cell is not None)
    target = tensor_field("x", Dtype.of_name(given_.name), (None,) * rank)
    assert tensors_fit(source, target)
    assert cells(tensor_cast(array, source, target), target) == cells(array, source)
    assert cells(tensor_cast(array[1:], source, target), target) == cells(array, source)[1:]


@ANY
@given(st.data())
def test_lists_are_reshaped_in_c_order(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    rows = [data.draw(st.one_of(st.none(), st.just(np.arange(at, at + np.prod(shape))))) for at in range(3)]
    form = data.draw(
        st.sampled_from([pa.list_, pa.large_list, pa.list_view, lambda type_: pa.list_(type_, int(np.prod(shape)))])
    )
    array = pa.array([None if row is None else row.tolist() for row in rows], form(pa.int64()))
    free = data.draw(st.sampled_from([None, *range(len(shape))]))
    axes = tuple(None if at == free else axis for at, axis in enumerate(shape))
    name = data.draw(st.sampled_from(["int64", "int16", "float32"]))
    target = tensor_field("x", Dtype.of_name(name), axes)
    found = cells(tensor_cast(array[1:], pa.field("x", array.type), target), target)
    assert found == [None if row is None else (shape, row.astype(name).tobytes()) for row in rows[1:]]


@ANY
@given(st.data())
def test_nested_lists_are_tensors_of_their_shape(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=4)))
    name = data.draw(st.sampled_from(["int64", "int16", "float32", "bool"]))
    count = int(np.prod(shape))
    some = st.lists(st.integers(0, 1), min_size=count, max_size=count).map(lambda v: np.array(v, name).reshape(shape))
    rows = data.draw(st.lists(st.one_of(st.none(), some), max_size=4))
    type_ = pa.bool_() if name == "bool" else pa.int64()
    for _ in shape:
        type_ = data.draw(st.sampled_from([pa.list_, pa.large_list, pa.list_view]))(type_)
    free = data.draw(st.sets(st.sampled_from(range(len(shape)))))
    if free and 0 in shape:
        return  # an empty list does not state the lengths below it
    axes = tuple(None if at in free else axis for at, axis in enumerate(shape))
    target = tensor_field("x", Dtype.of_name(name), axes)
    lists = [None if row is None else row.astype(int if name != "bool" else bool).tolist() for row in rows]
    batch = pa.record_batch([pa.array([[], *lists], type_)[1:]], names=["x"])
    (made,) = cast_columns(batch, pa.schema([target]))
    assert cells(made, target) == [None if row is None else (shape, row.tobytes()) for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_a_type_is_that_of_its_own_tensors_only(name: str) -> None:
    source, target = tensor_field("x", Dtype.of_name(name), (2,)), tensor_field("x", Dtype.of_name(name), (None,))
    assert tensors_fit(source, target)
    assert not tensors_fit(target, source)
    for other in NAMES:
        assert (other == name) == tensors_fit(source, tensor_field("x", Dtype.of_name(other), (None,)))


FIXED = tensor_field("x", Dtype.of_name("int16"), (2, 2))
NESTED = pa.list_(pa.list_(pa.int16()))


@pytest.mark.parametrize(
    ("rows", "type_", "target", "record", "message"),
    [
        ([[1, 2, 3, 4], None, [5]], pa.list_(pa.int16()), FIXED, 12, r"shape \(1,\).*\(2, 2\)"),
        ([[1, 2, 3]], pa.list_(pa.int16()), tensor_field("x", Dtype.of_name("int16"), (None, 2)), 10, r"\(None, 2\)"),
        (
            [[1, 2]],
            pa.list_(pa.int16()),
            tensor_field("x", Dtype.of_name("int16"), (None, None)),
            None,
            "2 unknown dimensions",
        ),
        (
            [[1, 2]],
            pa.list_(pa.float32()),
            tensor_field("x", Dtype.of_name("complex64"), (1,)),
            None,
            "float32.*complex64",
        ),
        ([["a"]], pa.list_(pa.string()), FIXED, None, "string"),
        ([None, [[1, 2], [3]]], NESTED, FIXED, 11, r"differ in length \(axis 1\)"),
        ([None, [[1, 2, 3], [4, 5, 6]]], NESTED, FIXED, 11, r"shape \(2, 3\).*\(2, 2\)"),
        ([[[1, 2], None]], NESTED, FIXED, 10, "a list in it is missing"),
        ([None, [[1, 2], [3, 4]], [[1, 2], [None, 3]]], NESTED, FIXED, 12, "a value in it is missing"),
        ([[[1, 2], [3, 4]]], NESTED, tensor_field("x", Dtype.of_name("int16"), (2, 2, 1)), 10, r"shape \(2, 2\)"),
        ([[[1, 2], [3, 4]]], NESTED, tensor_field("x", Dtype.of_name("int16"), (None,)), 10, r"shape \(2, 2\)"),
        ([[["a"]]], pa.list_(pa.list_(pa.string())), FIXED, None, "string"),
        ([[[1, 70_000], [3, 4]]], pa.list_(pa.list_(pa.int64())), FIXED, 10, "cannot be converted"),
        ([[[1, 0.5], [3, 4]]], pa.list_(pa.list_(pa.float64())), FIXED, 10, "cannot be converted"),
        ([5], pa.int16(), FIXED, 10, r"shape \(\)"),
    ],
)
def test_what_does_not_fit_names_its_row(
    rows: list[Any], type_: pa.DataType, target: pa.Field, record: int | None, message: str
) -> None:
    batch = pa.record_batch([pa.array(rows, type_)], names=["x"])
    with pytest.raises(EncodeError, match=message) as caught:
        cast_columns(batch, pa.schema([target]), 10)
    assert (caught.value.feature, caught.value.record) == ("x", record)


def test_values_are_not_cut() -> None:
    for values in ([[70_000, 0, 0, 0]], [[0.5, 0.0, 0.0, 0.0]]):
        array = pa.array(values)
        with pytest.raises(pa.ArrowInvalid):
            tensor_cast(array, pa.field("x", array.type), FIXED)


def test_tensors_of_one_dimension_become_lists() -> None:
    source, target = tensor_field("x", Dtype.of_name("int16"), (2,)), pa.field("x", pa.list_(pa.float32()))
    array = pa.ExtensionArray.from_storage(source.type, pa.array([[1, 2], None, [3, 4]], source.type.storage_type))
    assert tensor_cast(array, source, target).to_pylist() == [[1, 2], None, [3, 4]]
    with pytest.raises(EncodeError, match="2 dimensions"):
        tensor_cast(pa.nulls(2, FIXED.type), FIXED, target)


def test_nulls_alone_are_any_tensors() -> None:
    batch = pa.record_batch([pa.nulls(2)], names=["x"])
    assert cast_columns(batch, pa.schema([FIXED]))[0].null_count == 2


@pytest.mark.parametrize("arrays", [[None, None], [np.ones((2, 3), np.uint8), None]])
def test_null_rows_are_null_lists_of_a_fixed_number_of_tensors(arrays: list[Any]) -> None:
    element = Dtype.of_name("uint8")
    source, item = tensor_field("x", element, (2, 3)), tensor_field("x", element, (3,))
    array = cells_to_column(arrays, element, (2, 3))
    lists = tensor_cast(array, source, item.with_type(pa.list_(item.type, 2)))
    assert lists.is_valid().to_pylist() == [array is not None for array in arrays]
    assert len(lists.flatten()) == 2 * (len(arrays) - lists.null_count)
