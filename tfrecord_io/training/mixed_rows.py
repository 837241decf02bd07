"""The rows of a mixture: those of its parts, which are read side by side, in the order of its choices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from tfrecord_io.arrays.rows_by_number import PartLookup
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import CorruptRecordError, TFRecordError
from tfrecord_io.options import MIB
from tfrecord_io.options.arrays import IterOptions
from tfrecord_io.read.report import ReadReport
from tfrecord_io.training.checkpoint import IteratorPosition
from tfrecord_io.training.epochs import EpochReader, Epochs, NumberedBatch, Share
from tfrecord_io.training.mixture import Classes, Mixture
from tfrecord_io.training.shuffle_buffer import random_stream

_LEAST_BLOCK, _MOST_BLOCK, _BLOCK_BYTES = 64, 1 << 14, 4 * MIB  # rows that are put in order together
_KEPT_BYTES = MIB  # of a part, whose rows are kept where they are drawn again
_PASS = 1 << 32  # between the numbers of the passes over a part in one epoch, by which its files are shuffled


class SequenceEpochs(Epochs):
    """The rows of every epoch of a mixture, in the order of its choices."""

    def __init__(self, mixture: Mixture, options: IterOptions, counts: Sequence[int] | None) -> None:
        super().__init__()
        self.mixture = mixture
        # The ranges of positions that are read; of parts of equal size, those of this worker alone.
        self.runs: Sequence[tuple[int, int | None]] = [(0, None)]
        worker, workers = mixture.worker_of(options)
        self.has_equal_parts = counts is not None and workers > 1 and mixture.stop != "never"
        self.has_own_files = not self.has_equal_parts and mixture.has_own_files(workers)
        self.choices = mixture.choices(worker if self.has_own_files else 0)
        # Of the positions that are read.
        self.share = Share() if self.has_own_files or self.has_equal_parts else Share(worker, workers)
        if counts is not None and self.has_equal_parts:
            self.runs = Share(worker, workers, options.uneven).runs(self.choices.length(counts))

    def count(self) -> int:
        if self.has_equal_parts:
            return sum(last - first for first, last in self.runs if last is not None)
        if self.mixture.stop == "never":
            raise TypeError('the number of batches is unknown: stop="never" has no end')
        return self.share.size(self._length())

    @abstractmethod
    def _length(self) -> int:
        """How many rows the sequence has."""


class SequenceReader(EpochReader):
    """Reads the rows at the positions of a sequence: of several runs of them, one after the other."""

    def __init__(self, begin: int, runs: Sequence[tuple[int, int | None]]) -> None:
        super().__init__(begin)
        self._runs = runs

    def _read(self) -> Generator[NumberedBatch]:
        before = 0  # rows of the runs before this one
        for first, last in self._runs:
            begin = first + max(0, self.next - before)
            if last is None or begin < last:
                yield from self._run(begin, last, before - first)
            before += 0 if last is None else last - first

    def _position(self, number: int) -> int:
        """The position in the sequence of the row of this number."""
        for first, last in self._runs:
            if last is None or number < last - first:
                break
            number -= last - first
        return first + number

    @abstractmethod
    def _run(self, at: int, end: int | None, shift: int) -> Iterator[NumberedBatch]:
        """The rows at the positions [at, end) of the sequence; `shift` makes numbers of positions."""


class MixedEpochs(SequenceEpochs):
    """The rows of every epoch of a mixture, whose parts are read side by side."""

    def __init__(self, mixture: Mixture, options: IterOptions, seed: int, counts: Sequence[int] | None = None) -> None:
        super().__init__(mixture, options, counts)
        self.members = mixture.members
        worker = mixture.worker_of(options) if self.has_own_files else None
        own = replace(options, worker=worker, uneven="keep", state=None)
        self.parts = self._epochs_of(own, seed)
        self.counts = counts if self.has_equal_parts else None  # of the rows of each part
        self.whole: list[Epochs] | None = None
        if self.has_own_files and mixture.stop != "first":  # for a part of which its own files have no row
            self.whole = self._epochs_of(replace(own, worker=None), seed)

    def _epochs_of(self, options: IterOptions, seed: int) -> list[Epochs]:
        """The rows of each part, by options of all and the limits of its own."""
        found = []
        for number, member in enumerate(self.members):
            own = replace(options, offset=member.options.offset, limit=member.options.limit)
            epochs = member.epochs(own, seed + number)
            epochs.warnings, epochs.damage = self.warnings, self.damage
            found.append(epochs)
        return found

    def open(self, position: IteratorPosition) -> MixedReader:
        return MixedReader(self, position.epoch, position.begin)

    def _length(self) -> int:
        lengths = [epochs.count() for epochs in self.parts]
        if self.whole is None or 0 not in lengths:
            return self.choices.length(lengths)
        self.choices.refuse_empty([epochs.count() for epochs in self.whole])
        return self.choices.own_length(lengths)


class MixedReader(SequenceReader):
    """The rows of an epoch of a mixture, numbered by their positions in it."""

    def __init__(self, epochs: MixedEpochs, epoch: int, begin: int) -> None:
        super().__init__(begin, epochs.runs)
        self._epochs, self._epoch = epochs, epoch
        self._parts: list[_Part] = []
        self._used: list[_Part] = []  # of all runs
        self._ended = ReadReport(schema_source=epochs.mixture.schema_source)  # of the passes that have ended
        self._stopped = False  # early, because of on_error="stop"
        self._mean = 0.0  # bytes of a row

    def _run(self, at: int, end: int | None, shift: int) -> Iterator[NumberedBatch]:
        """The rows at the positions [at, end) of the sequence; `shift` makes numbers of positions."""
        epochs, choices = self._epochs, self._epochs.choices
        self._parts = [_Part(epochs, i, self._epoch, int(n), self._ended) for i, n in enumerate(choices.counts(at))]
        self._used += self._parts
        stream, is_over, begin = choices.stream(at), False, at
        while not is_over and (end is None or at < end):
            most = min(_BLOCK_BYTES / max(self._mean, 1), _MOST_BLOCK, at - begin)  # few are read behind an early end
            size = max(int(most), _LEAST_BLOCK)
            size = size if end is None else min(size, end - at)
            block = choices.datasets(stream.random(size))
            before = [part.taken for part in self._parts]
            where = [np.flatnonzero(block == number) for number in range(choices.count)]
            taken = [part.take(len(positions)) for part, positions in zip(self._parts, where, strict=True)]
            cut = self._end(before, where, len(block))
            is_over = cut < len(block)
            if cut:
                pool = self._assemble_block(taken, where, at, cut, shift)
                at += cut
                self.next = at + shift
                if len(pool):
                    yield pool
            if is_over:
                lacking = [
                    part
                    for part, first, positions in zip(self._parts, before, where, strict=True)
                    if part.taken - first < len(positions) and positions[part.taken - first] == cut
                ]
                self._stopped = any(part.stopped for part in lacking)
                for part in lacking:
                    if part.error is not None:
                        raise part.error

    def _end(self, before: list[int], where: list[Array], size: int) -> int:
        """How many rows of a block of `size` the mixture has: up to a row that a part lacks, or to the end of all."""
        ends = []
        for part, first, positions in zip(self._parts, before, where, strict=True):
            if part.taken - first < len(positions):
                size = min(size, int(positions[part.taken - first]))
            if part.total is not None:
                ends.append(int(positions[part.total - first - 1]) + 1 if part.total > first else 0)
        is_complete = self._epochs.mixture.stop == "all" and len(ends) == len(self._parts)
        return min(size, max(ends)) if is_complete else size

    def _assemble_block(
        self, taken: list[list[NumberedBatch]], where: list[Array], at: int, cut: int, shift: int
    ) -> NumberedBatch:
        """The first rows of a block in its order, those of this worker."""
        pools, positions, mixture = list[NumberedBatch](), list[Array](), self._epochs.mixture
        for number, (own, own_places) in enumerate(zip(taken, where, strict=True)):
            count = int(own_places.searchsorted(cut))
            if not count:
                continue
            pool = NumberedBatch.concat(own).slice(0, count)
            mean = float(pool.row_bytes.mean())
            self._mean += (mean - self._mean) * (0.1 if self._mean else 1)
            mine = np.flatnonzero(self._epochs.share.has(own_places[:count] + at))
            pool = pool if len(mine) == count else pool.take(mine)
            source = [] if mixture.source_column is None else [pa.array(np.full(len(pool), number, np.int64))]
            rows = pa.RecordBatch.from_arrays([*pool.rows.columns, *source], schema=mixture.schema)
            pools.append(replace(pool, rows=rows))
            positions.append(own_places[mine])
        place = np.concatenate(positions)
        order = np.argsort(place)
        pool = NumberedBatch.concat(pools).take(order)  # a copy, also of one: callers write to it, and parts keep it
        return replace(pool, numbers=place[order] + (at + shift))

    # What the parts say --------------------------------------------------------------------------------------------

    @property
    def failed(self) -> bool:
        return self._error is not None or self._stopped

    def reports(self) -> list[ReadReport]:
        return [self._ended, *(rows.report for rows in self.readers())]

    def readers(self) -> list[EpochReader]:
        return [part.rows for part in self._used]

    def origin_in(self, pool: NumberedBatch, fault: RowFault) -> tuple[Any, RowFault]:
        reader, number = (int(values[fault.row]) for values in pool.origins)
        return pool.readers[reader].origin(fault.renumber(number))

    def leave_out(self, pool: NumberedBatch, fault: RowFault) -> bool:
        left_out = super().leave_out(pool, fault)
        reader = pool.readers[int(pool.origins[0][fault.row])]
        if reader not in self.readers():
            add_ended(reader, self._ended)
        return left_out

    def close(self) -> None:
        super().close()
        for part in self._used:
            part.close()


class _Part:
    """The rows of a part of a mixture in an epoch, from row `begin` on: unless that ends with them, again and again."""

    def __init__(self, mixed: MixedEpochs, number: int, epoch: int, begin: int, ended: ReadReport) -> None:
        # Of its own files; then of all, if the former have no row.
        self._epochs = [mixed.parts[number], *([] if mixed.whole is None else [mixed.whole[number]])]
        self._member, self._stop = mixed.members[number], mixed.mixture.stop
        # How many there are, if the rows that are taken depend on it.
        self._counted = None if mixed.counts is None else mixed.counts[number]
        self.total: int | None = None  # how many there are, once the first pass has ended
        self.error: Exception | None = None  # what ended them
        self.stopped = False  # they ended early, because of ``on_error="stop"``
        self._held: NumberedBatch | None = None
        self.taken = 0  # how many were taken, those before the beginning included
        in_sequence, size = self._member.in_sequence, self._member.size
        passes, within = 0, begin if in_sequence and self._stop == "first" else 0
        keeps = self._stop != "first" and size is not None and size <= _KEPT_BYTES
        if in_sequence and self._stop != "first" and begin and (count := self._known()):
            self._counted = count
            passes, within = divmod(begin, count)
            self.taken = passes * count
            if passes and self.total is None:
                self.total = count
        passes += self.total == 0  # that over its own files
        epoch, within = (epoch, 0) if keeps else (epoch + passes * _PASS, within)
        self.taken += within
        self._open(epoch, within)
        self._pools = self._read(epoch, keeps, ended)
        while self.taken < begin and self.take(min(begin - self.taken, _MOST_BLOCK)):
            pass  # which row that is, is known by reading the rows before it only

    def _known(self) -> int:
        """The number of rows; 0 if it is unknown."""
        try:
            count = self._epochs[0].count()
            if not count and len(self._epochs) > 1:
                self.total = 0
                del self._epochs[0]
                count = self._epochs[0].count()
        except TypeError:
            return 0
        return count

    def _open(self, epoch: int, within: int) -> None:
        """Begin a pass at a row of it."""
        self._begin = self.taken - within  # the ordinal of its first row
        offset = self._member.options.offset if self._member.in_sequence else 0
        self.rows = self._epochs[0].open(IteratorPosition(epoch, 0, offset + within))

    def take(self, count: int) -> list[NumberedBatch]:
        """The next rows; fewer only if they have ended."""
        pools, end = list[NumberedBatch](), self.taken + count
        while self.taken < end and self._fill():
            assert self._held is not None
            pool, rest = self._held, None
            if len(pool) > end - self.taken:
                pool, rest = pool.slice(0, end - self.taken), pool.slice(end - self.taken)
            self._held = rest
            self.taken += len(pool)
            pools.append(pool)
        if self.total is None and (self._stop == "all" or self.taken - self._begin == self._counted):
            self._fill()  # to know whether the pass has ended
        return pools

    def _fill(self) -> bool:
        """True if there is a next row, which is held then."""
        if self._held is None:
            self._held = next(self._pools, None)
        return self._held is not None

    def _read(self, epoch: int, keeps: bool, ended: ReadReport) -> Generator[NumberedBatch]:
        """The rows of the pass that is open, and of those after it; if it `keeps` them, little data is read once."""
        kept = list[NumberedBatch]()
        while True:
            is_kept, counted, rows = bool(kept), self._counted, self.rows
            for pool in kept if is_kept else rows:
                if not is_kept:
                    origins = np.full(len(pool), id(rows)), pool.numbers
                    pool = replace(pool, origins=origins, readers={id(rows): rows})
                if counted is not None and self.taken - self._begin + len(pool) > counted:
                    self._refuse("more", counted)
                if keeps and not is_kept:
                    kept.append(pool)
                yield pool
            try:
                self.rows.raise_error()
            except Exception as error:  # raised where the mixture needs the row
                self.error = error
                return
            self.stopped = self.rows.failed
            if counted is not None and self.taken - self._begin < counted and not self.stopped:
                self._refuse("fewer", counted)
            if self.total is None and not self.stopped:
                self.total = self.taken
            if self._stop == "first" or self.stopped:
                return
            if self.taken == self._begin:  # the pass has no row
                if self.total or len(self._epochs) == 1:
                    self.error = ValueError(f"stop={self._stop!r}: a dataset of the mixture has no rows")
                    return
                del self._epochs[0]
            if kept:
                self._begin = self.taken
                continue
            self.rows.close()
            add_ended(self.rows, ended)
            epoch += 0 if keeps else _PASS
            self._open(epoch, 0)

    def _refuse(self, amount: str, counted: int) -> NoReturn:
        """Raise CorruptRecordError: there are other rows than those that were counted."""
        reason = f"a dataset of the mixture has {amount} rows than the {counted} that were counted"
        advice = "open the files again, or correct the number in their dataset_info.json"
        raise CorruptRecordError(reason, path=self._member.sources[0].path, expected=counted, hint=advice)

    def close(self) -> None:
        self._pools.close()  # it refers to this part
        self.rows.close()


def add_ended(rows: EpochReader, ended: ReadReport) -> None:
    """Add what was read of a pass that has ended, and what was left out of it since."""
    for report in rows.reports():
        ended.add(report)
        report.restart()


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
        pairs = zip(classes.lookups, mixture.prune_files().scans, strict=True)
        self.lookups = [lookup.rescan(scan) for lookup, scan in pairs]

    def open(self, position: IteratorPosition) -> BalancedReader:
        return BalancedReader(self, position.epoch, position.begin)

    def _length(self) -> int:
        return self.choices.length(self.classes.lengths)

    @property
    def bytes_read(self) -> int:
        """Bytes of all records so far."""
        return sum(lookup.bytes_read for lookup in self.lookups)

    def rows_at(self, epoch: int, groups: Array, ordinals: Array) -> tuple[Array, Array]:
        """The dataset, and the number in it, of the rows that groups have at some ordinals, passes over them joined."""
        lengths = np.diff(self.classes.ends)[groups]
        passes, positions = np.divmod(ordinals, lengths)
        if self._orders is not None:
            order = np.argsort(groups, kind="stable")
            bounds = np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1))
            for first, last in pairwise(bounds.tolist()):
                own = order[first:last]
                group, length = int(groups[own[0]]), int(lengths[own[0]])
                positions[own] = self._orders.positions(epoch, group, length, passes[own], positions[own])
        return self.classes.rows_at(groups, positions)


class _Orders:
    """The order of the rows of each group in each pass of an epoch.

    The seed of the mixture determines it, which is the same for all workers.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._held: dict[int, tuple[int, int, Array]] = {}  # of each group: epoch, pass, orders from that pass on

    def positions(self, epoch: int, group: int, length: int, passes: Array, at: Array) -> Array:
        """The rows at some positions of ascending passes over a group of `length` rows."""
        first, last = int(passes[0]), int(passes[-1])
        known, begin, orders = self._held.get(group, (-1, 0, np.empty((0, length), np.int64)))
        if known != epoch or first < begin or last >= begin + len(orders):
            stream = random_stream(self._seed, epoch, group, _ORDERS, begin=first * length)
            begin, orders = first, stream.random((last + 1 - first, length)).argsort(axis=1)
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
            mine = np.flatnonzero(epochs.share.has(np.arange(at, at + len(groups))))
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
                pools = self._pools(numbers[part], datasets[part], rows[part])
            except TFRecordError:
                if size == 1:
                    raise
                size //= 2
                continue
            for pool in pools:
                good += len(pool)
                self._count += len(pool)
                self.next = int(pool.numbers[-1]) + 1
                yield pool

    def _pools(self, numbers: Array, datasets: Array, rows: Array) -> list[NumberedBatch]:
        """One pool; several of rows that take much memory."""
        epochs, before = self._epochs, self._epochs.bytes_read
        batches = epochs.mixture.rows_of(epochs.lookups, datasets, rows).to_batches()
        ends, mean = np.cumsum(list(map(len, batches))), (epochs.bytes_read - before) / len(numbers)
        parts = zip(np.split(numbers, ends[:-1]), batches, strict=True)
        return [NumberedBatch(part, batch, np.full(len(part), mean)) for part, batch in parts]

    # What the datasets say -------------------------------------------------------------------------------------------

    def reports(self) -> list[ReadReport]:
        epochs = self._epochs
        files, source = len(epochs.mixture.sources), epochs.mixture.schema_source
        return [ReadReport(self._count, epochs.bytes_read - self._before, files, source)]

    def origin(self, fault: RowFault) -> tuple[PartLookup, RowFault]:
        position, epochs = self._position(fault.row), self._epochs
        group = next(epochs.choices.blocks(position))[:1]
        (dataset,), (row,) = epochs.rows_at(self._epoch, group, epochs.choices.counts(position)[group])
        return epochs.lookups[dataset], fault.renumber(int(row))
