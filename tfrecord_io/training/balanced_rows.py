"""The rows of a balanced mixture: the choices of its sequence are classes, whose rows are read by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import TFRecordError
from tfrecord_io.options import MIB
from tfrecord_io.options.arrays import IterOptions
from tfrecord_io.read.report import ReadReport
from tfrecord_io.training.checkpoint import IteratorPosition
from tfrecord_io.training.epochs import NumberedBatch
from tfrecord_io.training.mixed_rows import SequenceEpochs, SequenceReader
from tfrecord_io.training.mixture import Classes, Mixture

_ORDERS = 3  # the purpose of a stream of random numbers; `shuffle_buffer` and `mixture` have others
_READ_BYTES, _LEAST_ROWS, _MOST_ROWS = 4 * MIB, 64, 1 << 14  # read together


class BalancedEpochs(SequenceEpochs):
    """The rows of every epoch of a balanced mixture: choices are classes, whose rows are read by number.

    Each group of `Classes` is gone through from its first row on, or with a shuffle buffer in an order of its own in
    each pass of each epoch.
    """

    def __init__(
        self, mixture: Mixture, classes: Classes, options: IterOptions, counts: Sequence[int] | None = None
    ) -> None:
        super().__init__(mixture, options, counts)
        self.classes = classes
        self._orders = _Orders(mixture.seed) if options.shuffle_buffer else None
        pairs = zip(classes.lookups, mixture.pruned().scans, strict=True)
        self.lookups = [lookup.of(scan) for lookup, scan in pairs]

    def open(self, position: IteratorPosition) -> BalancedReader:
        return BalancedReader(self, position.epoch, position.begin)

    def _length(self) -> int:
        return self.choices.length(self.classes.lengths)

    @property
    def bytes_read(self) -> int:
        """Of all records so far."""
        return sum(lookup.bytes_read for lookup in self.lookups)

    def rows_at(self, epoch: int, groups: Array, ordinals: Array) -> tuple[Array, Array]:
        """The dataset, and the number in it, of the rows that groups have at some ordinals, passes over them joined."""
        lengths = np.diff(self.classes.ends)[groups]
        passes, places = np.divmod(ordinals, lengths)
        if self._orders is not None:
            order = np.argsort(groups, kind="stable")
            bounds = np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1))
            for first, last in pairwise(bounds.tolist()):
                own = order[first:last]
                group, length = int(groups[own[0]]), int(lengths[own[0]])
                places[own] = self._orders.places(epoch, group, length, passes[own], places[own])
        return self.classes.rows_at(groups, places)


class _Orders:
    """The order of the rows of each group in each pass of an epoch.

    The seed of the mixture determines it, which is the same for all workers.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._held: dict[int, tuple[int, int, Array]] = {}  # of each group: epoch, pass, orders from that pass on

    def places(self, epoch: int, group: int, length: int, passes: Array, at: Array) -> Array:
        """The rows at some places of ascending passes over a group of `length` rows."""
        first, last = int(passes[0]), int(passes[-1])
        known, begin, orders = self._held.get(group, (-1, 0, np.empty((0, length), np.int64)))
        if known != epoch or first < begin or last >= begin + len(orders):
            bits = np.random.PCG64(np.random.SeedSequence([self._seed, epoch, group, _ORDERS]))
            bits.advance(first * length)
            begin, orders = first, np.random.Generator(bits).random((last + 1 - first, length)).argsort(axis=1)
            self._held[group] = epoch, last, orders[-1:].copy()
        return orders[passes - begin, at]


class BalancedReader(SequenceReader):
    """The rows of an epoch of a balanced mixture, numbered by their positions in it."""

    def __init__(self, epochs: BalancedEpochs, epoch: int, begin: int) -> None:
        super().__init__(begin, epochs.runs)
        self._epochs, self._epoch = epochs, epoch
        self._count = 0
        self._before = epochs.bytes_read

    def _run(self, at: int, end: int | None, shift: int) -> Iterator[NumberedBatch]:
        """The rows at the positions [at, end) of the sequence; `shift` makes numbers of positions."""
        epochs = self._epochs
        mean = max(lookup.mean_bytes for lookup in epochs.lookups)
        size = int(min(max(_READ_BYTES / max(mean, 1), _LEAST_ROWS), _MOST_ROWS))
        for groups, ordinals in epochs.choices.drawn(epochs.classes.lengths, at, end):
            mine = np.arange((epochs.residue - at) % epochs.modulus, len(groups), epochs.modulus)
            datasets, rows = epochs.rows_at(self._epoch, groups[mine], ordinals[mine])
            numbers = mine + (at + shift)
            for begin in range(0, len(mine), size):
                part = slice(begin, begin + size)
                yield from self._pools_of(numbers[part], datasets[part], rows[part])
            at += len(groups)
            self.next = at + shift

    def _pools_of(self, numbers: Array, datasets: Array, rows: Array) -> Iterator[NumberedBatch]:
        """The rows of datasets with these numbers; of a damaged one those before it, then its error."""
        good, size = 0, len(rows)
        while good < len(rows):
            part = slice(good, good + size)
            try:
                pool = self._pool(numbers[part], datasets[part], rows[part])
            except TFRecordError:
                if size == 1:
                    raise
                size //= 2
                continue
            good += len(pool)
            self._count += len(pool)
            self.next = int(pool.numbers[-1]) + 1
            yield pool

    def _pool(self, numbers: Array, datasets: Array, rows: Array) -> NumberedBatch:
        epochs, before = self._epochs, self._epochs.bytes_read
        (batch,) = epochs.mixture.rows_of(epochs.lookups, datasets, rows).combine_chunks().to_batches()
        return NumberedBatch(numbers, batch, np.full(len(numbers), (epochs.bytes_read - before) / len(numbers)))

    # What the datasets say -------------------------------------------------------------------------------------------

    def reports(self) -> list[ReadReport]:
        epochs = self._epochs
        files, source = len(epochs.mixture.sources), epochs.mixture.schema_source
        return [ReadReport(self._count, epochs.bytes_read - self._before, files, source)]

    def row_error(self, fault: RowFault) -> TFRecordError:
        position, epochs = self._position(fault.row), self._epochs
        group = next(epochs.choices.blocks(position))[:1]
        (dataset,), (row,) = epochs.rows_at(self._epoch, group, epochs.choices.counts(position)[group])
        return epochs.lookups[dataset].row_error(fault.at(int(row)))
