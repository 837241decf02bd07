"""Tests of apps/tf_compat/row_partitions.py: partitions of two records, with three items and one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.apps.tf_compat.row_partitions import row_lengths
from tfrecord_io.apps.tf_compat.tf_features import RowLengths, RowLimits, RowSplits, RowStarts, ValueRowIds
from tfrecord_io.columns import FeatureValues

ITEMS = np.array([3, 1])


def values(*of_records: list[int]) -> FeatureValues:
    counts = np.array([len(record) for record in of_records])
    joined = np.array([value for record in of_records for value in record], np.int64)
    return FeatureValues("p", joined, counts, counts > 0)


@pytest.mark.parametrize(
    ("partition", "splits"),
    [
        (RowLengths("p"), values([2, 1], [1])),
        (RowLimits("p"), values([2, 3], [1])),
        (RowStarts("p"), values([0, 2], [0])),
        (RowSplits("p"), values([0, 2, 3], [0, 1])),
        (ValueRowIds("p"), values([0, 0, 1], [0])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_all_forms_state_the_same_rows(partition: Any, splits: FeatureValues) -> None:
    lengths, rows = row_lengths(partition, splits, ITEMS, batched=True)
    assert (lengths.tolist(), rows.tolist()) == ([2, 1, 1], [2, 1])


@pytest.mark.parametrize(
    ("partition", "splits", "message", "record"),
    [
        (RowLengths("p"), values([2, 2], [1]), "there are 3 values, but the rows have 4", 0),
        (RowLengths("p"), values([3], [-1, 2]), "-1 is out of range", 1),
        (RowLimits("p"), values([2, 1, 3], [1]), "-1 is a negative row length", 0),
        (RowSplits("p"), values([0, 3], [1, 1]), "1 is the first of the row splits, which must be 0", 1),
        (ValueRowIds("p"), values([0, 1], [0]), "expected 3 row numbers, one per value, got 2", 0),
        (ValueRowIds("p"), values([1, 0, 1], [0]), "less than the one before", 0),
    ],
)
def test_partitions_that_do_not_fit_are_refused(
    partition: Any, splits: FeatureValues, message: str, record: int
) -> None:
    with pytest.raises(tfr.errors.DecodeError, match=message) as caught:
        row_lengths(partition, splits, ITEMS, batched=True)
    assert (caught.value.record, caught.value.feature) == (record, "p")


def test_empty_splits_are_no_rows_in_a_batch_only() -> None:
    splits, items = values([]), np.array([0])
    lengths, rows = row_lengths(RowSplits("p"), splits, items, batched=True)
    assert (lengths.tolist(), rows.tolist()) == ([], [0])
    with pytest.raises(tfr.errors.DecodeError, match="expected at least 1 row split, got 0"):
        row_lengths(RowSplits("p"), splits, items, batched=False)
