"""Columns of tensors: NumPy arrays come back with dtype, shape and bits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.arrow.tensor_values import column_to_cells, column_to_ndarray, ndarray_to_column
from tfrecord_io.columns.schema.tensor_types import dtype_metadata, logical_dim_names
from tfrecord_io.errors import EncodeError
from tfrecord_io.testing.tensor_encoding_suite import tensor_column

DTYPES = ["int8", ">i4", "?", "c8", ">c16", "S3", "U2", "M8[D]", "M8[ns]", "m8[ms]", "f2", "f8", "bfloat16"]
SHAPES = [(4,), (4, 2, 3), (4, 0, 2), (0, 2), (4, 1)]


def _array(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(0)
    count = int(np.prod(shape))
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    kind = np.dtype(dtype).kind
    if kind == "U":
        return np.array([chr(c) for c in rng.integers(1, 60_000, count)], dtype).reshape(shape)
    raw = rng.integers(0, 127 if kind == "S" else 256, count * np.dtype(dtype).itemsize, dtype=np.uint8)
    return (raw % 2).astype(bool).reshape(shape) if kind == "b" else raw.view(dtype).reshape(shape)


def _field(column: pa.Array, of: Dtype) -> pa.Field:
    return pa.field("x", column.type, metadata=dtype_metadata(of))


def _bits(array: np.ndarray, of: Dtype) -> bytes:
    return np.ascontiguousarray(array).astype(of.dtype).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    whole = _array(dtype, shape)
    for array in (whole, whole[::2], np.asfortranarray(whole)):
        column, of = ndarray_to_column(array)
        column.validate(full=True)
        for part in (slice(0, None), slice(1, None)):
            back = column_to_ndarray(column[part], _field(column, of))
            assert (back.shape, back.dtype) == (array[part].shape, of.dtype)
            assert back.tobytes() == _bits(array[part], of)


@pytest.mark.parametrize("dtype", DTYPES)
def test_cells_of_varying_shapes_come_back(dtype: str) -> None:
    whole = _array(dtype, (4, 2, 3))
    cells = [whole[0], None, whole[1][:1], whole[2][:, :2], whole[3]]
    column, of = tensor_column(cells)
    column.validate(full=True)
    for part in (slice(0, 5), slice(1, 4)):
        for given, back in zip(cells[part], column_to_cells(column[part], _field(column, of)), strict=True):
            assert (given is None) == (back is None)
            assert given is None or (given.shape == back.shape and _bits(given, of) == back.tobytes())


def test_cells_of_one_shape_are_one_tensor() -> None:
    column, _ = tensor_column([np.zeros((2, 3), np.int16), None, np.ones((2, 3), np.int16)])
    assert column.type == pa.fixed_shape_tensor(pa.int16(), (2, 3))
    assert column.null_count == 1


def test_a_permuted_tensor_is_taken_in_its_logical_order() -> None:
    type_ = pa.fixed_shape_tensor(pa.float32(), (2, 3), permutation=[1, 0], dim_names=["a", "b"])
    column = pa.ExtensionArray.from_storage(
        type_, pa.FixedSizeListArray.from_arrays(pa.array(np.arange(12, dtype=np.float32)), 6)
    )
    assert np.array_equal(column_to_ndarray(column, pa.field("x", type_)), column.to_numpy_ndarray())
    assert logical_dim_names(type_) == ("b", "a")


@pytest.mark.fault(53)
@pytest.mark.parametrize("dtype", ["O", "V8", [("a", "i4")], "M8"])
def test_dtypes_outside_the_table_are_refused(dtype: object) -> None:
    with pytest.raises(EncodeError, match="cannot be stored in a TFRecord"):
        ndarray_to_column(np.zeros((2, 2), dtype))


@pytest.mark.parametrize(
    ("cells", "reason"), [([np.zeros(2), np.zeros(2, "i4")], "dtype"), ([np.zeros(2), np.zeros((2, 1))], "dimensions")]
)
def test_cells_that_differ_are_refused_with_their_row(cells: list[np.ndarray], reason: str) -> None:
    with pytest.raises(EncodeError, match=reason) as caught:
        tensor_column([None, *cells])
    assert caught.value.record == 2
