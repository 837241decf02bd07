"""The rows of a balanced mixture: the choices of its sequence are classes, whose rows are read by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import int64_array
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import TFRecordError
from tfrecord_io.options import MIB, IterOptions
from tfrecord_io.read.report import ReadReport
from tfrecord_io.training.checkpoint import IteratorPosition
from tfrecord_io.training.epochs import EpochRows, RowPool, RowsOfRuns, equal_part
from tfrecord_io.training.mixture import Choices, Mixture

_ORDERS = 3  # the purpose of a stream of random numbers; `shuffle_buffer` and `mixture` have others
_READ_BYTES, _LEAST_ROWS, _MOST_ROWS = 4 * MIB, 64, 1 << 14  # read together


class BalancedEpochs:
    """The rows of every epoch of a balanced mixture; see `tfrecord_io.training.epochs.Epochs`.

    Each group of `Classes` is gone through from its first row on, or with a shuffle buffer in an order of its own in
    each pass of each epoch.
    """

    def __init__(self, mixture: Mixture, options: IterOptions, counts: Sequence[int] | None = None) -> None:
        assert mixture.classes is not None
        worker, workers = mixture.worker_of(options)
        self.mixture, self.classes, self.choices = mixture, mixture.classes, Choices(mixture)
        self._orders = _Orders(mixture.seed) if options.shuffle_buffer else None
        self._equal: list[tuple[int, int]] | None = None
        self.residue, self.modulus = worker, workers
        if counts is not None and workers > 1 and mixture.stop != "never":
            self.residue, self.modulus = 0, 1
            self._equal = equal_part(self.choices.length(counts), worker, workers, pads=options.uneven == "pad")
        pairs = zip(self.classes.readers, mixture.parts, strict=True)
        self.readers = [reader.over(part.pruned()) for reader, part in pairs]
        self.warnings: list[str] = []
        self.damage: list[str] = []
        self.rows: BalancedRows | None = None

    def open(self, position: IteratorPosition) -> BalancedRows:
        """See `Epochs.open`."""
        return BalancedRows(self, position.epoch, position.begin, [(0, None)] if self._equal is None else self._equal)

    def warn_of_damage(self, rows: EpochRows) -> None:
        """See `Epochs.warn_of_damage`; rows with numbers are never left out."""

    def records(self) -> int:
        """See `Epochs.records`."""
        if self._equal is not None:
            return sum(last - first for first, last in self._equal)
        return len(range(self.residue, self.choices.length(self.classes.lengths), self.modulus))

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


class BalancedRows(RowsOfRuns):
    """The rows of an epoch of a balanced mixture, numbered by their positions in it."""

    def __init__(self, epochs: BalancedEpochs, epoch: int, begin: int, runs: Sequence[tuple[int, int | None]]) -> None:
        super().__init__(begin, runs)
        self._epochs, self._epoch = epochs, epoch
        self._count = 0
        self._before = sum(reader.bytes_read for reader in epochs.readers)

    def _run(self, at: int, end: int | None, shift: int) -> Iterator[RowPool]:
        """The rows at the positions [at, end) of the sequence; `shift` makes numbers of positions."""
        epochs = self._epochs
        mean = max(reader.mean_bytes for reader in epochs.readers)
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

    def _pools_of(self, numbers: Array, datasets: Array, rows: Array) -> Iterator[RowPool]:
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

    def _pool(self, numbers: Array, datasets: Array, rows: Array) -> RowPool:
        epochs, used = self._epochs, np.unique(datasets)
        before = sum(reader.bytes_read for reader in epochs.readers)
        places = [np.flatnonzero(datasets == dataset) for dataset in used]
        tables = [epochs.readers[dataset].table(rows[at]) for dataset, at in zip(used, places, strict=True)]
        table = pa.concat_tables(tables).combine_chunks()
        if len(used) > 1:
            table = table.take(int64_array(np.argsort(np.concatenate(places))))
        columns = [column.chunk(0) for column in table.columns]
        if epochs.mixture.source_column is not None:
            columns.append(int64_array(datasets))
        batch = pa.RecordBatch.from_arrays(columns, schema=epochs.mixture.schema)
        read = sum(reader.bytes_read for reader in epochs.readers) - before
        return RowPool(numbers, batch, np.full(len(numbers), read / len(numbers)))

    # What the datasets say -------------------------------------------------------------------------------------------

    @property
    def failed(self) -> bool:
        return self._error is not None

    @property
    def report(self) -> ReadReport:
        readers = self._epochs.readers
        read = sum(reader.bytes_read for reader in readers) - self._before
        files = sum(len(reader.scan.sources) for reader in readers)
        return ReadReport(self._count, read, files, self._epochs.mixture.schema_source)

    @property
    def goes_on(self) -> bool:
        return False

    def row_error(self, fault: RowFault) -> TFRecordError:
        position, before = fault.row, 0
        for first, last in self._runs:
            position = first + fault.row - before
            if last is None or position < last:
                break
            before += last - first
        epochs = self._epochs
        group = next(epochs.choices.blocks(position))[:1]
        (dataset,), (row,) = epochs.rows_at(self._epoch, group, epochs.choices.counts(position)[group])
        return epochs.readers[dataset].row_error(fault.at(int(row)))

    def close(self) -> None:
        """Files stay open for the next epoch."""
