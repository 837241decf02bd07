"""The time for columns is in proportion to their number: no list of all of them is made for each."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tfrecord_io.apps.file_formats.tables.columnar_files import _apply_categories, _categorical
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.columns.arrow.casts import unify_table
from tfrecord_io.columns.arrow.encode.encode_plan import plan_writing
from tfrecord_io.columns.arrow.input.batch_source import nest_lossy_columns
from tfrecord_io.columns.arrow.input.conforming import Conforming
from tfrecord_io.columns.arrow.input.from_arrays import Columns
from tfrecord_io.columns.arrow.input.tensor_cast import tensors_of_array
from tfrecord_io.columns.schema.array_attributes import add_attributes, add_dimensions
from tfrecord_io.columns.schema.column_features import RAW, set_encoding
from tfrecord_io.columns.schema.embedded import pack
from tfrecord_io.columns.schema.merged_schema import fill_in_types
from tfrecord_io.rows.training.mixture import _same_columns
from tfrecord_io.write.distributed import _refuse_other_columns
from tfrecord_io.write.schema_union import SchemaUnion

NAMES = [f"column {at}" for at in range(10_000)]
SECONDS = 2  # of the processor; with a list of all columns for each it is 10 or more


def table(values: Any) -> pa.Table:
    return pa.table(dict.fromkeys(NAMES, values))


def schema(type_: pa.DataType) -> pa.Schema:
    return pa.schema(dict.fromkeys(NAMES, type_))


def raw(columns: pa.Schema) -> pa.Schema:
    return pa.schema([set_encoding(column, RAW) for column in columns])


def nested() -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """Lists that are null inside, which plain features cannot hold."""
    whole = table(pa.array([[[1], None]]))
    return whole.schema, whole.to_batches()


def categories(*values: str) -> pa.DictionaryArray:
    return pa.array(values).dictionary_encode()


@pytest.mark.parametrize(
    ("given", "act"),
    [
        (lambda: (schema(pa.int8()), {name: {"units": "K"} for name in NAMES}), add_attributes),
        (lambda: (schema(pa.int8()), {name: ["lat"] for name in NAMES}), add_dimensions),
        (lambda: (schema(pa.null()), schema(pa.string())), fill_in_types),
        (lambda: (schema(pa.int8()), schema(pa.int8()), ""), _refuse_other_columns),
        (lambda: (pack(schema(pa.int64())), pack(schema(pa.null())), ""), SchemaUnion()),
        (lambda: (schema(pa.float64()), raw(schema(pa.float64())), WriteOptions()), Conforming.as_in_dataset),
        (nested, nest_lossy_columns),
        (
            lambda: (table(pa.nulls(1)), dict.fromkeys(range(len(NAMES)), tensors_of_array(np.zeros((1, 2, 2))))),
            lambda *both: Columns(*both).schema,
        ),
        (lambda: (table(pa.chunked_array([categories("a"), categories("b")])),), unify_table),
        (lambda: (schema(pa.dictionary(pa.int8(), pa.string())), NAMES), _categorical),
        (lambda: (table(categories("a")).to_batches()[0], dict.fromkeys(NAMES, pa.array(["b"]))), _apply_categories),
        (lambda: ([SimpleNamespace(schema=schema(pa.int8()))] * 2,), _same_columns),
        (lambda: (pa.schema(dict.fromkeys(map(str, range(30_000)), pa.int64())),), plan_writing),
    ],
)
def test_the_time_for_columns_is_in_proportion_to_their_number(
    given: Callable[[], tuple[Any, ...]], act: Callable[..., Any]
) -> None:
    arguments = given()
    begin = time.process_time()
    act(*arguments)
    assert time.process_time() - begin < SECONDS
