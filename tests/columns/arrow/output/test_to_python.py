"""One value of a column for Python."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.arrow.output.to_python import cell, python_values, rows_of
from tfrecord_io.columns.schema.tensor_types import tensor_field


@pytest.mark.parametrize(
    ("array", "value"),
    [
        (pa.array([5], pa.int8()), 5),
        (pa.array([True]), True),
        (pa.array(["text"]), "text"),
        (pa.array(["text"]).dictionary_encode(), "text"),
        (pa.array([b"\\x00"], pa.binary()), b"\\x00"),
        (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())), True),
        (pa.array([1.5], pa.float32()), 1.5),
        (pa.array([Decimal("1.5")]), Decimal("1.5")),
        (pa.array([1000], pa.timestamp("us")), dt.datetime(1970, 1, 1, 0, 0, 0, 1000)),
        (pa.array([{"a": 1, "b": None}]), {"a": 1, "b": None}),
        (pa.array([None], pa.list_(pa.int64())), None),
        (pa.nulls(1), None),
    ],
    ids=lambda each: str(each) if not isinstance(each, pa.Array) else str(each.type),
)
def test_scalars_are_pythons(array: pa.Array, value: Any) -> None:
    assert cell(array, 0) == value
    assert type(cell(array, 0)) is type(value)


@pytest.mark.parametrize(
    ("array", "value"),
    [
        (pa.array([[1, 2]], pa.list_(pa.int16())), np.array([1, 2], np.int16)),
        (pa.array([[]], pa.large_list(pa.float32())), np.array([], np.float32)),
        (pa.array([[True, False]]), np.array([True, False])),
        (pa.array([[1, 2]], pa.list_(pa.float64(), 2)), np.array([1.0, 2.0])),
        (pa.array([[1]], pa.list_(pa.timestamp("ms"))), np.array([1], "datetime64[ms]")),
        (pa.array([np.array([1.5], np.float16)]), np.array([1.5], np.float16)),
    ],
    ids=str,
)
def test_lists_of_numbers_are_arrays_of_the_callers_own(array: pa.Array, value: Any) -> None:
    got = cell(array, 0)
    np.testing.assert_array_equal(got, value, strict=True)
    assert got.flags.writeable
    assert got.flags.owndata


def test_slices_have_their_own_rows() -> None:
    array = pa.array([[1], [2, 3], [4, 5, 6]]).slice(1)
    assert cell(array, 1).tolist() == [4, 5, 6]


def test_lists_of_bytes_text_and_lists_are_arrays_of_objects() -> None:
    assert cell(pa.array([[b"a", b""]]), 0).tolist() == [b"a", b""]
    assert cell(pa.array([["a"]]), 0).dtype == object
    nested = cell(pa.array([[[1, 2], [], None]]), 0)
    assert nested.shape == (3,)
    assert nested[0].tolist() == [1, 2]
    assert nested[1].dtype == np.int64
    assert nested[2] is None


def test_integers_with_nulls_among_them_stay_integers() -> None:
    assert cell(pa.array([[2**62 + 1, None]]), 0).tolist() == [2**62 + 1, None]


def test_tensors_have_their_shape() -> None:
    values = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    got = cell(pa.FixedShapeTensorArray.from_numpy_ndarray(values), 1)
    np.testing.assert_array_equal(got, values[1], strict=True)
    assert got.flags.writeable


def test_tensors_in_structs_and_in_steps_have_the_dtype_of_their_field() -> None:
    field = tensor_field("x", Dtype.of_name("complex64"), (2,))
    data = np.array([[1 + 2j, 3], [4, 5j]], np.complex64)
    tensors = pa.ExtensionArray.from_storage(
        field.type, pa.FixedSizeListArray.from_arrays(data.view(np.float32).reshape(-1), 4)
    )
    struct = pa.StructArray.from_arrays([tensors], fields=[field])
    np.testing.assert_array_equal(cell(struct, 1)["x"], data[1], strict=True)
    steps = pa.ListArray.from_arrays([0, 2, 2], tensors)
    np.testing.assert_array_equal(cell(steps, 0, pa.field("x", steps.type, metadata=field.metadata)), data, strict=True)


FAR = [
    (pa.array([2**31 - 1], pa.int32()).view(pa.date32()), np.datetime64("5881580-07-11")),
    (pa.array([86_400_000 * 10**10]).view(pa.date64()), np.datetime64("27381040-01-27", "ms")),
    (pa.array([2**60]).view(pa.timestamp("us")), np.datetime64("38504-08-17T21:30:06.846976")),
    (pa.array([2**60]).view(pa.timestamp("s", "Europe/Berlin")), np.datetime64("36534630048-05-13T13:56:16")),
    (pa.array([2**30]).view(pa.timestamp("s", "No/Where")), np.datetime64("2004-01-10T13:37:04")),
    (pa.array([-(2**63)]).view(pa.timestamp("ms")), -(2**63)),
    (pa.array([2**62]).view(pa.duration("s")), np.timedelta64(2**62, "s")),
    (pa.array([1_234_567_891]).view(pa.time64("ns")), np.timedelta64(1_234_567_891, "ns")),
]


@pytest.mark.parametrize(("array", "value"), FAR, ids=lambda each: str(getattr(each, "type", "")))
def test_times_that_python_does_not_have_are_numpys(array: pa.Array, value: Any) -> None:
    one = pa.array([0, 1], pa.int32())
    lists = pa.ListArray.from_arrays(one, array)
    structs = pa.StructArray.from_arrays([array], ["a"])
    assert cell(array, 0) == value
    assert type(cell(array, 0)) is type(value)
    assert python_values(array) == rows_of(pa.chunked_array([array]), pa.field("x", array.type)) == [value]
    assert python_values(array.dictionary_encode()) == [value]
    assert python_values(lists) == [[value]]
    assert python_values(structs) == [{"a": value}]
    assert cell(structs, 0) == {"a": value}
    assert (
        cell(lists, 0).astype(np.int64).tolist()
        == array.cast(pa.int64() if array.type != pa.date32() else pa.int32()).to_pylist()
    )
    python = pa.array([0, None], array.type if array.type != pa.timestamp("s", "No/Where") else pa.timestamp("s"))
    assert python_values(python) == python.to_pylist()
