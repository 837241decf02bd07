"""The summary of a column in a description."""

from __future__ import annotations

import datetime as dt
import json
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.base.messages.display import short
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.arrow.output.column_statistics import DISTINCT_LIMIT, ColumnAccumulator, ColumnSummary
from tfrecord_io.columns.schema.tensor_types import dtype_metadata, tensor_type
from tfrecord_io.columns.schema.type_names import short_type_name
from tfrecord_io.testing.tensor_encoding_suite import tensor_column


def summary(array: pa.Array, pieces: int = 1) -> ColumnSummary:
    accumulator = ColumnAccumulator("x", array.type)
    size = math.ceil(len(array) / pieces) or 1
    for begin in range(0, len(array), size):
        accumulator.add(array.slice(begin, size))
    return accumulator.summary()


ARRAYS = {
    "int64": pa.array([2**63 - 1, None, 2**63 - 1, -5]),
    "uint64": pa.array([2**64 - 1, None, 2], pa.uint64()),
    "float": pa.array([1.5, math.nan, None, math.inf, -2.0], pa.float32()),
    "half": pa.array([np.float16(1), None, np.float16(2)], pa.float16()),
    "bool": pa.array([True, None, False]),
    "text": pa.array(["a", "ümlaut", None, "a"]),
    "bytes": pa.array([b"x" * 1000, None, b"y"]),
    "category": pa.array(["a", "b", None, "a"]).dictionary_encode(),
    "lists": pa.array([[1, 2], None, [], [3]]),
    "text lists": pa.array([["long", "er"], None, []]),
    "nested": pa.array([[[1.0], []], None, [[2.0, 3.0]]]),
    "timestamp": pa.array([dt.datetime(2020, 1, 1), None, dt.datetime(2021, 1, 1)], pa.timestamp("us", "UTC")),
    "date": pa.array([dt.date(2020, 1, 1), None]),
    "time": pa.array([dt.time(2), None], pa.time32("s")),
    "duration": pa.array([dt.timedelta(2), None, dt.timedelta(3)]),
    "decimal": pa.array([1, None, 2], pa.decimal128(10, 2)),
    "struct": pa.array([{"a": 1}, None]),
    "null": pa.nulls(3),
    "null lists": pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([[1]])),
    "empty": pa.array([], pa.int32()),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_summary_does_not_depend_on_the_division_into_arrays(array: pa.Array) -> None:
    assert summary(array, pieces=len(array) or 1) == summary(array)
    assert summary(array).nulls == array.null_count


def test_numbers() -> None:
    assert summary(ARRAYS["int64"]).minimum == -5
    assert summary(ARRAYS["int64"]).mean == pytest.approx((2**64 - 7) / 3)  # a sum in int64 would wrap around
    assert summary(ARRAYS["uint64"]).maximum == 2**64 - 1
    floats = summary(ARRAYS["float"])
    assert (floats.minimum, floats.maximum, floats.nans) == (-2.0, math.inf, 1)


def test_lengths_of_text_bytes_and_lists() -> None:
    assert (summary(ARRAYS["text"]).min_length, summary(ARRAYS["text"]).max_length) == (1, 6)
    assert summary(ARRAYS["bytes"]).max_length == 1000
    lists = summary(ARRAYS["lists"])
    assert (lists.min_length, lists.max_length, lists.minimum, lists.maximum) == (0, 2, 1, 3)
    assert summary(ARRAYS["text lists"]).max_length == 2
    assert summary(ARRAYS["nested"]).maximum == 3.0


def test_times_keep_their_type() -> None:
    assert summary(ARRAYS["timestamp"]).maximum == dt.datetime(2021, 1, 1, tzinfo=dt.UTC)
    assert summary(ARRAYS["duration"]).minimum == dt.timedelta(2)


def test_distinct_is_counted_up_to_a_limit() -> None:
    assert summary(ARRAYS["category"]).distinct == 2
    assert summary(pa.array(range(DISTINCT_LIMIT))).distinct == DISTINCT_LIMIT
    assert summary(pa.array(range(DISTINCT_LIMIT + 1)), pieces=7).distinct is None
    assert summary(ARRAYS["bytes"]).distinct is None


def test_type_names_are_short() -> None:
    assert short_type_name(pa.dictionary(pa.int8(), pa.string(), ordered=True)) == "ordered category"
    assert short_type_name(pa.dictionary(pa.int8(), pa.int64())) == "category<int64>"
    assert short_type_name(pa.list_(pa.list_(pa.int8()))) == "list<list<int8>>"
    assert short_type_name(pa.fixed_shape_tensor(pa.float32(), [2, 3])) == "tensor<float32>[2, 3]"
    of = Dtype.of_name("complex64")
    assert short_type_name(tensor_type(of, (None, 3)), dtype_metadata(of)) == "tensor<complex64>[?, 3]"


@pytest.mark.parametrize("shapes", [[(2, 2), (2, 2)], [(2, 2), (1, 3)]])
@pytest.mark.parametrize(
    ("dtype", "ends"),
    [
        ("bool", (False, True)),
        ("int16", (0, 3)),
        ("complex64", (None, None)),
        ("bfloat16", (0.0, 3.0)),
        ("S3", (None, None)),
    ],
)
def test_tensors_are_lists_of_their_values(
    shapes: list[tuple[int, int]], dtype: str, ends: tuple[object, object]
) -> None:
    arrays = [
        np.arange(a * b).reshape(a, b).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for a, b in shapes
    ]
    column, of = tensor_column([*arrays, None])
    accumulator = ColumnAccumulator("x", column.type, dtype_metadata(of))
    for piece in (column[:1], column[1:]):
        accumulator.add(piece)
    actual = accumulator.summary()
    sizes = [a * b for a, b in shapes]
    assert (actual.nulls, actual.min_length, actual.max_length) == (1, min(sizes), max(sizes))
    assert (actual.minimum, actual.maximum) == ends
    assert (actual.min_shape, actual.max_shape) == (tuple(np.min(shapes, axis=0)), tuple(np.max(shapes, axis=0)))
    assert actual.example == arrays[0].tolist()


@pytest.mark.parametrize("type_", [pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(30, 2)], ids=str)
def test_distinct_decimals_of_every_width(tmp_path: Path, type_: pa.DataType) -> None:
    tfr.write_tfrecord(pa.table({"x": pa.array(["1.50", "2.25", "1.50"]).cast(type_)}), tmp_path / "a")
    (column,) = tfr.describe(tmp_path / "a").columns
    assert (column.distinct, str(column.minimum), str(column.maximum)) == (2, "1.50", "2.25")


def test_the_example_of_a_tensor_is_shown_by_its_shape(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(2 * 28 * 28).reshape(2, 28, 28)}, tmp_path / "a")
    (column,) = tfr.describe(tmp_path / "a").columns
    assert column.row()[-1] == "[28, 28] 0, 1, 2, 3, …"


@pytest.mark.parametrize("large", [True, False])
@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (list(range(1000)), None),
        ([[1.5] * 1000], None),
        ("x" * 5000, None),
        (b"x" * 5000, None),
        ({"a": list(range(1000))}, None),
        (list(range(1000)), pa.list_(pa.int16(), 1000)),
        (["x"] * 1000, pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_large_example_is_its_text(value: Any, type_: pa.DataType | None, large: bool) -> None:
    """So that a description takes little memory, and its JSON few lines."""
    if not large:
        value = {"a": [1]} if isinstance(value, dict) else value[:1]
        value, type_ = ([[1.5]], None) if value == [[1.5] * 1000] else (value, None)
    column = summary(pa.array([None, value, value], type_))
    assert column.row()[-1] == short(value)
    assert (column.example == short(value)) if large else (column.example == value)


def test_a_large_tensor_as_an_example_is_its_text(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(2 * 28 * 28).reshape(2, 28, 28)}, tmp_path / "a")
    assert tfr.describe(tmp_path / "a").to_dict()["columns"][0]["example"] == "[28, 28] 0, 1, 2, 3, …"


def test_bytes_nan_and_times_as_json(tmp_path: Path) -> None:
    columns = {
        "b": [b"\xff"],
        "x": np.array([np.inf], "f4"),
        "t": np.array(["2024-01-31"], "datetime64[s]"),
        "tags": [[b"\x00", b"a"]],
    }
    tfr.write_tfrecord(columns, tmp_path / "a")
    found = json.loads(json.dumps(tfr.describe(tmp_path / "a").to_dict(), allow_nan=False))["columns"]
    tags = [{"base64": "AA=="}, {"base64": "YQ=="}]
    assert [column["example"] for column in found] == [{"base64": "/w=="}, "Infinity", "2024-01-31T00:00:00", tags]
