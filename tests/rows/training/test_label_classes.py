"""Tests of rows/training/label_classes.py: groups of rows, of columns that are made by hand."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.rows.arrays.rows_by_number import PartLookup
from tfrecord_io.rows.training.label_classes import find_classes


class ColumnLookup:
    """The part of a lookup that classes are found by: one column."""

    def __init__(self, values: list[Any], type_: pa.DataType) -> None:
        self.schema = pa.schema([("kind", type_)])
        self._values = pa.chunked_array([pa.array(values, type_).dictionary_encode()])

    def column(self, name: str) -> pa.ChunkedArray:
        assert name == "kind"
        return self._values

    def row_error(self, fault: RowFault) -> Exception:
        return fault.to_error("a", fault.row)


def lookups(*columns: list[Any], type_: pa.DataType | None = None) -> list[PartLookup]:
    return [cast(PartLookup, ColumnLookup(values, type_ or pa.string())) for values in columns]


def test_rows_are_grouped_by_class_and_dataset() -> None:
    classes = find_classes(lookups(["a", "b", "a", "a"], ["b", "b"]), "kind", (0.75, 0.25))
    assert classes.parts.tolist() == [0, 0, 1]
    assert classes.lengths == [3, 1, 2]
    assert classes.weights == pytest.approx((0.5, 0.375, 0.125))
    datasets, rows = classes.rows_at(np.array([0, 0, 1, 2]), np.array([0, 2, 0, 1]))
    assert (datasets.tolist(), rows.tolist()) == ([0, 0, 0, 1], [0, 3, 1, 1])


@pytest.mark.parametrize(
    ("columns", "type_", "error", "message"),
    [
        ([[]], pa.string(), ValueError, "the datasets have no rows"),
        ([["a", None]], pa.string(), tfr.errors.DecodeError, "record 1: .*a row has no class"),
        ([[0.5]], pa.float32(), tfr.errors.SchemaError, "classes are integers, bools, text or bytes"),
    ],
)
def test_what_has_no_classes_is_refused(
    columns: list[list[Any]], type_: pa.DataType, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        find_classes(lookups(*columns, type_=type_), "kind", (1.0,))


def test_the_column_must_exist() -> None:
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="balance= names a column that does not exist"):
        find_classes(lookups(["a"]), "other", (1.0,))
