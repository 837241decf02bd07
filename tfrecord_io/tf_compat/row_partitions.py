"""How the values of each record are cut into rows, by features of their own: the partitions of a RaggedFeature.

All of it is done for a batch at once; what comes out are row lengths, whichever way they were said. TensorFlow checks
partitions only if asked to, and not all: what does not fit the values is refused here always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import DecodeError
from tfrecord_io.schema.formats.row_partitions import (
    Partition,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    ValueRowIds,
)

_MOST_EMPTY = 1 << 24  # rows of a batch without a value; only ValueRowIds can claim them without a byte for each


@dataclass(frozen=True, slots=True)
class Runs:
    """The int64 values of a feature: those of all records, and how many each record has."""

    feature: str
    values: Array
    counts: Array

    @property
    def starts(self) -> Array:
        """Where each record begins."""
        return np.cumsum(self.counts) - self.counts

    @property
    def records(self) -> Array:
        """The record of each value."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


def row_lengths(partition: Partition, runs: Runs, have: Array, *, batched: bool) -> tuple[Array, Array]:
    """Lengths of all rows, and how many rows each record has.

    Parameters
    ----------
    runs : Runs
        Of the partition's feature.
    have : int64 ndarray
        How many items each record has to be cut into rows.
    batched : bool
        TensorFlow takes row splits without a single number for no rows in a batch only.

    Raises
    ------
    DecodeError
        A record's partition does not fit its items.
    """
    if not isinstance(partition, ValueRowIds):
        _refuse(runs, (runs.values < 0) | (runs.values > have[runs.records]), have, "is outside of the values")
    lengths, rows = _CUTS[type(partition)](runs, have)
    cut = Runs(runs.feature, lengths, rows)
    _refuse(cut, lengths < 0, have, "goes back")
    ends = np.concatenate([[0], np.cumsum(lengths)])
    total = ends[cut.starts + rows] - ends[cut.starts]
    bad = total != have
    if isinstance(partition, RowSplits) and not batched:
        bad = bad | (runs.counts == 0)
    if np.any(bad):
        record = int(bad.argmax())
        raise DecodeError(
            f"its rows have {total[record]} values, and there are {have[record]}",
            record=record,
            feature=runs.feature,
            expected=int(have[record]),
            got=int(total[record]),
        )
    return lengths, rows


def _by_lengths(runs: Runs, have: Array) -> tuple[Array, Array]:
    return runs.values, runs.counts


def _by_limits(runs: Runs, have: Array) -> tuple[Array, Array]:
    before = np.roll(runs.values, 1)
    before[runs.starts[runs.counts > 0]] = 0
    return runs.values - before, runs.counts


def _by_splits(runs: Runs, have: Array) -> tuple[Array, Array]:
    first = np.zeros(len(runs.values), bool)
    first[runs.starts[runs.counts > 0]] = True
    _refuse(runs, first & (runs.values != 0), have, "is not 0, and row splits begin with it")
    return _by_limits(Runs(runs.feature, runs.values[~first], np.maximum(runs.counts - 1, 0)), have)


def _by_starts(runs: Runs, have: Array) -> tuple[Array, Array]:
    after = np.roll(runs.values, -1)
    there = runs.counts > 0
    after[(runs.starts + runs.counts - 1)[there]] = have[there]
    return after - runs.values, runs.counts


def _by_row_ids(runs: Runs, have: Array) -> tuple[Array, Array]:
    if np.any(bad := runs.counts != have):
        record = int(bad.argmax())
        got, expected = int(runs.counts[record]), int(have[record])
        raise DecodeError(
            f"it has {got} row numbers for {expected} values",
            record=record,
            feature=runs.feature,
            expected=expected,
            got=got,
        )
    _refuse(runs, (runs.values < 0) | (runs.values > have.sum() + _MOST_EMPTY), have, "is no row number")
    before = np.roll(runs.values, 1)
    before[runs.starts[runs.counts > 0]] = 0
    _refuse(runs, runs.values < before, have, "goes back")
    rows = np.zeros(len(have), np.int64)
    there = runs.counts > 0
    rows[there] = runs.values[(runs.starts + runs.counts - 1)[there]] + 1
    if np.any(bad := np.cumsum(rows) > np.cumsum(have) + _MOST_EMPTY):
        raise DecodeError(
            "too many rows without a value", record=int(bad.argmax()), feature=runs.feature, expected=_MOST_EMPTY
        )
    first_row = np.cumsum(rows) - rows
    return np.bincount(runs.values + first_row[runs.records], minlength=int(rows.sum())), rows


_CUTS: dict[type, Callable[[Runs, Array], tuple[Array, Array]]] = {
    RowLengths: _by_lengths,
    RowLimits: _by_limits,
    RowSplits: _by_splits,
    RowStarts: _by_starts,
    ValueRowIds: _by_row_ids,
}


def _refuse(runs: Runs, bad: Array, have: Array, what: str) -> None:
    """Raise at the first value that is bad."""
    if np.any(bad):
        at = int(bad.argmax())
        record = int(runs.records[at])
        got = int(runs.values[at])
        raise DecodeError(
            f"the row partition's {got} {what}",
            record=record,
            feature=runs.feature,
            expected=f"0 to {have[record]}",
            got=got,
        )
