"""Row partitions of a RaggedFeature: convert each form to the lengths of rows, for all records of a batch at once.

TensorFlow checks partitions only on request, and not all of them; here partitions that do not fit the values are
always errors.

Tests: tests/apps/tf_compat/test_row_partitions.py; with TensorFlow: tests/conformance/test_parse_example.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tfrecord_io.apps.tf_compat.tf_features import Partition, RowLengths, RowLimits, RowSplits, RowStarts, ValueRowIds
from tfrecord_io.columns import FeatureValues
from tfrecord_io.errors import DecodeError
from tfrecord_io.kit import Array

_MAX_EMPTY_ROWS = 1 << 24  # in a batch: ValueRowIds can claim empty rows without a byte for each


def row_lengths(partition: Partition, splits: FeatureValues, items: Array, *, batched: bool) -> tuple[Array, Array]:
    """Compute the lengths of all rows, and the number of rows of each record.

    `splits` is the feature that describes the partition, `items` (int64) the number of items of each record, which are
    split into rows. If `batched`, empty row splits mean no rows: TensorFlow accepts them in a batch only.
    """
    if not isinstance(partition, ValueRowIds):
        _refuse(splits, (splits.values < 0) | (splits.values > items[splits.records]), items, "is out of range")
    lengths, rows = _LENGTHS[type(partition)](splits, items)
    split = replace(splits, values=lengths, counts=rows)
    _refuse(split, lengths < 0, items, "is a negative row length")
    ends = np.concatenate([[0], np.cumsum(lengths)])
    total = ends[split.starts + rows] - ends[split.starts]
    if isinstance(partition, RowSplits) and not batched:
        splits.refuse_records(splits.counts == 0, 1, reason="expected at least {} row split, got {}")
    splits.refuse_records(total != items, items, total, "there are {} values, but the rows have {}")
    return lengths, rows


def _split_by_limits(splits: FeatureValues, items: Array) -> tuple[Array, Array]:
    before = np.roll(splits.values, 1)
    before[splits.starts[splits.counts > 0]] = 0
    return splits.values - before, splits.counts


def _split_by_splits(splits: FeatureValues, items: Array) -> tuple[Array, Array]:
    first = np.zeros(len(splits.values), bool)
    first[splits.starts[splits.counts > 0]] = True
    _refuse(splits, first & (splits.values != 0), items, "is the first of the row splits, which must be 0")
    limits = replace(splits, values=splits.values[~first], counts=np.maximum(splits.counts - 1, 0))
    return _split_by_limits(limits, items)


def _split_by_starts(splits: FeatureValues, items: Array) -> tuple[Array, Array]:
    after = np.roll(splits.values, -1)
    filled = splits.counts > 0
    after[(splits.starts + splits.counts - 1)[filled]] = items[filled]
    return after - splits.values, splits.counts


def _split_by_row_ids(splits: FeatureValues, items: Array) -> tuple[Array, Array]:
    splits.refuse_records(splits.counts != items, items, reason="expected {} row numbers, one per value, got {}")
    _refuse(splits, (splits.values < 0) | (splits.values > items.sum() + _MAX_EMPTY_ROWS), items, "is not a row number")
    steps, _ = _split_by_limits(splits, items)
    _refuse(splits, steps < 0, items, "is less than the one before")
    rows = np.zeros(len(items), np.int64)
    filled = splits.counts > 0
    rows[filled] = splits.values[(splits.starts + splits.counts - 1)[filled]] + 1
    if np.any(bad := np.cumsum(rows) > np.cumsum(items) + _MAX_EMPTY_ROWS):
        reason, record = "too many rows without a value", int(bad.argmax())
        raise DecodeError(reason, record=record, feature=splits.name, expected=_MAX_EMPTY_ROWS)
    first_row = np.cumsum(rows) - rows
    return np.bincount(splits.values + first_row[splits.records], minlength=int(rows.sum())), rows


_LENGTHS: dict[type, Callable[[FeatureValues, Array], tuple[Array, Array]]] = {
    RowLengths: lambda splits, items: (splits.values, splits.counts),
    RowLimits: _split_by_limits,
    RowSplits: _split_by_splits,
    RowStarts: _split_by_starts,
    ValueRowIds: _split_by_row_ids,
}


def _refuse(splits: FeatureValues, bad: Array, items: Array, problem: str) -> None:
    """Raise DecodeError for the first bad value, if any."""
    if np.any(bad):
        first = int(bad.argmax())
        record, got = int(splits.records[first]), int(splits.values[first])
        reason, expected = f"the row partition's {got} {problem}", f"0 to {items[record]}"
        raise DecodeError(reason, record=record, feature=splits.name, expected=expected, got=got)
