"""Which rows make a batch where that depends on the lengths of their lists: buckets of like length, packed rows.

Rows arrive one after the other. A batch is complete with the arrival of a row, and has rows that arrived before; the
others wait. So batches depend on the order of arrival only, not on how many rows arrive at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfrecord_io.arrays.representation import BatchForm
from tfrecord_io.arrow.output.to_numpy import leaf_arrays, leaf_fields, list_lengths
from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.numpy_output import first_fit
from tfrecord_io.options.arrays import IterOptions


@dataclass(slots=True)
class Batches:
    """The batches that some rows complete.

    Attributes
    ----------
    order : int64 ndarray
        The rows of all batches, by number of arrival.
    ends : int64 ndarray
        Batch j has the rows ``order[ends[j - 1]:ends[j]]``.
    arrived : int64 ndarray
        How many rows have arrived when batch j is complete.
    rest : int64 ndarray
        The rows that are in no batch, in the order of arrival.
    lengths : int64 ndarray, optional
        Of the padded lists of each batch.
    bins : int64 ndarray, optional
        The row of the packed arrays that each row of `order` becomes a part of.
    filled : bool ndarray, optional
        Whether a row of `order` has a value in one of the packed columns.
    waiting : int
        So many of the rows arrived before the others.
    numbers : int64 ndarray
        Of the rows, by arrival.
    """

    order: Array
    ends: Array
    arrived: Array
    rest: Array
    lengths: Array | None = None
    bins: Array | None = None
    filled: Array | None = None
    waiting: int = 0
    numbers: Array | None = None

    @property
    def most_rows(self) -> int:
        """Of a batch."""
        return int(np.diff(self.ends, prepend=0).max(initial=1))

    def batch_with(self, row: int) -> int:
        """The batch that has a row of `order`."""
        return int(self.ends.searchsorted(row, side="right"))

    def held(self, rows: int) -> tuple[int, list[int]]:
        """After the first `rows` of `order`: how many rows have newly arrived, and the numbers of those that wait."""
        assert self.numbers is not None
        arrived = int(self.arrived[self.batch_with(rows - 1)])
        waits = np.zeros(len(self.numbers), np.bool_)
        waits[:arrived] = True
        waits[self.order[:rows]] = False
        return arrived - self.waiting, self.numbers[waits].tolist()

    def form(self, batch: int, rows: Array) -> BatchForm:
        """What these rows of `order`, of one batch, become."""
        if self.bins is None or self.filled is None:
            return BatchForm(None if self.lengths is None else int(self.lengths[batch]))
        last = int(self.ends[batch]) - 1  # the rows of a batch are in the order of their bins
        bins, filled = self.bins[rows], self.filled[rows]
        before = np.cumsum(filled) - filled
        segments = before - before[bins.searchsorted(bins)] + 1  # one for all columns; rows without values have none
        return BatchForm(None, bins, int(self.bins[last]) + 1, segments.astype(np.int32))


Arrange = Callable[[pa.RecordBatch, bool], Batches]
"""The batches of rows, in the order of their arrival; of the last rows of an epoch, also those that are not full."""


def arrangement(options: IterOptions) -> Arrange:
    """How options of which one `arranges` do so."""
    return lambda rows, is_last: arranged(list_lengths_of(rows, options), options, is_last)


def arranged(lengths: Array, options: IterOptions, is_last: bool) -> Batches:
    """The batches of rows with these `list_lengths_of`."""
    return (_bucketed if options.pack is None else _packed)(lengths, options, is_last)


def _bucketed(lengths: Array, options: IterOptions, is_last: bool) -> Batches:
    """Batches whose lists have about one length; each has about the same number of values, padding included."""
    sizes = np.array(options.bucket_sizes, np.int64)
    capacities = options.bucket_rows
    longest = lengths.max(axis=1, initial=0)
    bucket_of_row = np.minimum(sizes.searchsorted(longest), len(sizes) - 1)  # arrays refuse what is too long
    batches, unfilled, rest = [], [], [np.empty(0, np.int64)]
    for bucket, capacity in enumerate(capacities):
        own = np.flatnonzero(bucket_of_row == bucket)
        whole = len(own) // capacity * capacity
        batches += [(int(part[-1]) + 1, bucket, part) for part in own[:whole].reshape(-1, capacity)]
        if is_last and not options.drop_last and whole < len(own):
            unfilled.append((len(lengths), bucket, own[whole:]))
        else:
            rest.append(own[whole:])
    batches.sort(key=lambda batch: batch[0])
    batches += unfilled
    parts = [part for _, _, part in batches]
    return Batches(
        order=np.concatenate([np.empty(0, np.int64), *parts]),
        ends=np.cumsum([len(part) for part in parts], dtype=np.int64),
        arrived=np.array([arrived for arrived, _, _ in batches], np.int64),
        rest=np.sort(np.concatenate(rest)),
        lengths=sizes[np.array([bucket for _, bucket, _ in batches], np.int64)],
    )


def _packed(lengths: Array, options: IterOptions, is_last: bool) -> Batches:
    """Batches of `batch_size` packed rows; a batch is complete when a row arrives that fits into none of them."""
    assert options.pack is not None
    capacity = np.array(list(options.pack.values()), np.int64)
    lengths = np.minimum(lengths, capacity)  # arrays refuse what is too long
    bins, begins = first_fit(lengths, capacity, options.batch_size)
    ends = np.array(begins, np.int64)
    group = ends.searchsorted(np.arange(len(lengths)), side="right")
    begin_of_last = begins[-1] if begins else 0
    is_full = bool(len(lengths)) and int(bins[begin_of_last:].max()) + 1 == options.batch_size
    if is_last and len(lengths) and (is_full or not options.drop_last):
        ends = np.append(ends, len(lengths))
    count = int(ends[-1]) if len(ends) else 0
    order = np.lexsort((bins[:count], group[:count]))
    filled = lengths[order].sum(axis=1) > 0
    # The row that begins the next batch has arrived, but is drawn again.
    return Batches(order, ends, ends, np.arange(count, len(lengths)), bins=bins[order], filled=filled)


def list_lengths_of(rows: pa.RecordBatch, options: IterOptions) -> Array:
    """The lengths of the truncated lists of the columns that decide: int64 [rows, columns]."""
    names = options.arranging
    fields = {field.name: at for at, field in enumerate(leaf_fields(rows.schema))}
    arrays = leaf_arrays(rows)
    lengths = np.zeros((len(rows), len(names)), np.int64)
    for at, name in enumerate(names):
        own, most = list_lengths(arrays[fields[name]]), options.layout_of(name).max_length
        lengths[:, at] = own if most is None else np.minimum(own, most)
    return lengths
