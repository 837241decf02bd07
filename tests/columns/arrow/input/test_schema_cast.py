"""Columns brought to a declared schema: whole, or an error that names the row."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.columns.arrow.input.schema_cast import cast_columns
from tfrecord_io.errors import EncodeError, PrecisionWarning

CUBE = np.arange(8, dtype="f4").reshape(2, 2, 2)
HUGE = np.full((2, 2), 1e300)
SQUARES = tfr.tensor("float32", (2, 2))


@pytest.mark.parametrize(
    ("declared", "values", "row", "expected", "got"),
    [
        (SQUARES, np.zeros((3, 4), "f4"), 0, "(2, 2)", "(4,)"),
        (SQUARES, np.stack([0 * HUGE, HUGE]), 1, "tensor<float32>[2,2]", "tensor<float64>[2,2]"),
        (tfr.tensor("int32", (2, 2)), CUBE + 0.5, 0, "tensor<int32>[2,2]", "tensor<float32>[2,2]"),
        (tfr.tensor("uint8", (2,)), np.array([[1, 2], [1, 300]]), 1, "tensor<uint8>[2]", "tensor<int64>[2]"),
        (SQUARES, CUBE.astype("c8"), None, "float32", "complex64"),
        (SQUARES, [[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0]]], 1, "lists of one shape", None),
        (tfr.scalar("int8"), [1, 300], 1, "int8", "int64"),
        (tfr.scalar("float32"), [1.0, None, 1e300], 2, "float", "double"),
        (tfr.list_("float32"), [[1.0], [], [2.0, 1e300]], 2, "list<item: float>", "list<item: double>"),
        (tfr.scalar("int64"), ["1", "a"], 1, "int64", "string"),
        (tfr.scalar("int64"), [[1], [2]], None, "int64", "list<item: int64>"),
        (tfr.scalar("string"), [b"a", b"\xff"], 1, "string", "binary"),
        (tfr.scalar("int64", required=True), [1, None], 1, None, None),
        (tfr.scalar(pa.dictionary(pa.int8(), pa.string())), list(map(str, range(300))), 128, None, "string"),
        (tfr.scalar(pa.dictionary(pa.int8(), pa.int16())), [*range(300)], 128, None, "int64"),
        (tfr.scalar(pa.dictionary(pa.int8(), pa.int16())), [1, 70_000], 1, None, "int64"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_schema_names_row_and_types(
    tmp_path: Path, declared: Any, values: Any, row: int | None, expected: str | None, got: str | None
) -> None:
    with pytest.raises(EncodeError) as caught:
        tfr.write_tfrecord({"x": values}, tmp_path / "x.tfrecord", schema={"x": declared})
    error = caught.value
    assert (error.feature, error.record) == ("x", row)
    assert "extension<" not in str(error)
    if got is not None:
        assert error.got == got
    if expected is not None:
        assert error.expected == expected


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=5))
def test_a_cast_that_loses_nothing_is_done(values: list[float]) -> None:
    batch = pa.record_batch({"x": pa.array(values, pa.float64())})
    (found,) = cast_columns(batch, pa.schema([("x", pa.float32())]))
    assert found.to_pylist() == values


@pytest.mark.parametrize(
    "declared", [tfr.scalar("float32"), tfr.list_("float32"), tfr.tensor("float32", (2,))], ids=repr
)
def test_rounding_to_a_declared_float32_is_said_as_without_a_schema(tmp_path: Path, declared: Any) -> None:
    values = [0.1, 0.5] if declared == tfr.scalar("float32") else [np.array([0.1, 0.5])]
    path = tmp_path / "x.tfrecord"
    with pytest.warns(PrecisionWarning, match=r"'x' \(1 value\)"):
        report = tfr.write_tfrecord({"x": values}, path, schema={"x": declared})
    assert report.rounded == {"x": 1}
    assert tfr.write_tfrecord({"x": values}, path, schema={"x": declared}, float64="round").rounded == {}
    with pytest.raises(EncodeError, match="float32"):
        tfr.write_tfrecord({"x": values}, path, schema={"x": declared}, float64="error")


@pytest.mark.parametrize(
    "data",
    [
        {"x": CUBE},
        {"x": list(CUBE)},
        pd.DataFrame({"x": list(CUBE)}),
        pa.table({"x": pa.FixedShapeTensorArray.from_numpy_ndarray(CUBE)}),
    ],
    ids=["array", "list", "frame", "arrow"],
)
def test_batches_of_one_shape_are_some_of_a_declared_free_one(tmp_path: Path, data: Any) -> None:
    path = tmp_path / "x.tfrecord"
    with tfr.open_writer(path, schema={"x": tfr.tensor("float32", (None, 2))}) as writer:
        writer.write(data)
        writer.write({"x": [CUBE[0][:1], CUBE[1]]})
    assert [cell.tolist() for cell in tfr.read_tfrecord(path)["x"]] == [
        each.tolist() for each in (*CUBE, CUBE[0][:1], CUBE[1])
    ]


@pytest.mark.parametrize(
    ("second", "advice"),
    [
        (np.zeros((2, 3, 2), "f4"), "tfr.tensor('float32', (None, 2))"),
        (CUBE.astype("f8"), "tfr.tensor('float64', (2, 2))"),
        (CUBE[..., None], "cast tensor<float32>[2,2,1] to tensor<float32>[2,2]"),
    ],
    ids=["shape", "dtype", "rank"],
)
def test_another_shape_later_names_the_tensor_to_declare(tmp_path: Path, second: Any, advice: str) -> None:
    with tfr.open_writer(tmp_path / "x.tfrecord") as writer:
        writer.write({"x": CUBE})
        with pytest.raises(tfr.errors.SchemaError) as caught:
            writer.write({"x": second})
    assert advice in str(caught.value)
    assert "extension<" not in str(caught.value)


@pytest.mark.parametrize("values", [["cat.jpg", None], pa.array(["a", "a"]).dictionary_encode()])
def test_names_of_files_are_no_images(tmp_path: Path, values: Any) -> None:
    with pytest.raises(EncodeError, match="bytes, not text; pass the content of the files") as raised:
        tfr.write_tfrecord({"photo": values}, tmp_path / "a", schema={"photo": tfr.image()})
    assert raised.value.feature == "photo"


@pytest.mark.parametrize("narrow", ["float32", "float16"])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_stays_so_in_a_narrower_float(narrow: str, value: float, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": pa.array([1.5, value, None])}, tmp_path / "a.tfrecord", schema={"x": narrow})
    column = tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist()
    assert str([1.5, value, None]) == str([value and float(value) for value in column])


STRINGS = pa.array(["a", None, "b"], pa.string_view())


@pytest.mark.parametrize("begin", [0, 1])
@pytest.mark.parametrize(
    ("column", "declared"),
    [
        (STRINGS, pa.dictionary(pa.int8(), pa.string())),
        (pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), STRINGS[1:]), pa.string()),
        (pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array([1, 2])), pa.float32()),
        (pa.array([["a"], None, ["b", "c"]], pa.list_view(pa.string())), pa.list_(pa.string())),
        (pa.array([[[1], []], None, [None]], pa.list_view(pa.list_view(pa.int64()))), pa.list_(pa.list_(pa.int8()))),
        (pa.array([{"a": [1]}, None, {"a": []}], pa.struct({"a": pa.list_view(pa.int64())})), "struct<a: list<int8>>"),
    ],
    ids=lambda part: str(part.type) if isinstance(part, pa.Array) else str(part),
)
def test_views_and_run_ends_become_what_is_declared(
    tmp_path: Path, column: pa.Array, declared: Any, begin: int
) -> None:
    """Arrow ended the process at slices of views of lists."""
    schema = tfr.Schema({"x": declared})
    tfr.write_tfrecord(pa.table({"x": column[begin:]}), tmp_path / "a", schema=schema)
    table = tfr.read_table(tmp_path / "a")
    assert table.schema.types == schema.to_arrow().types
    assert table["x"].to_pylist() == column[begin:].to_pylist()
