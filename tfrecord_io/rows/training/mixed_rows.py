"""Read the rows of a mixture in the order of its choices, from any position on.

The parts of a plain mixture are read side by side (`MixedEpochs`); a balanced one draws classes, and reads their rows
by number (`BalancedEpochs`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from tfrecord_io.base import MIB
from tfrecord_io.bytes import Array
from tfrecord_io.columns import RowFault
from tfrecord_io.errors import CorruptRecordError, TFRecordError
from tfrecord_io.read import ReadReport
from tfrecord_io.rows.arrays.rows_by_number import PartLookup
from tfrecord_io.rows.training.epochs import LATE, EpochReader, Epochs, NumberedBatch, RowFacts, Share
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.iterator_state import IteratorPosition
from tfrecord_io.rows.training.label_classes import Classes
from tfrecord_io.rows.training.mixture import Mixture
from tfrecord_io.rows.training.shuffle_buffer import Purpose, random_stream

_LEAST_BLOCK, _MOST_BLOCK, _BLOCK_BYTES = 64, 1 << 14, 4 * MIB  # rows that are put in order at a time
_KEPT_BYTES = MIB  # size up to which a part is kept in memory if its rows are drawn again
_PASS = 1 << 32  # distance of the epoch numbers that passes over a part in one epoch shuffle its files by


class SequenceEpochs(Epochs):
    """Rows of every epoch of a mixture, in the order of its choices."""

    def __init__(self, mixture: Mixture, options: IterOptions, counts: Sequence[int] | None) -> None:
        super().__init__()
        self.mixture = mixture
        # Ranges of positions to read: all, or where parts have equal size the ranges of this worker.
        self.runs: Sequence[tuple[int, int | None]] = [(0, None)]
        worker, workers = mixture.worker_of(options)
        self.has_equal_parts = counts is not None and workers > 1 and mixture.stop != "never"
        self.has_own_files = not self.has_equal_parts and mixture.has_own_files(workers)
        self.choices = mixture.choices(worker if self.has_own_files else 0)
        # Share of these positions that belongs to this worker.
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
        """Number of rows of the sequence."""


class SequenceReader(EpochReader):
    """Reads the rows at the positions of a sequence, in several runs, one after the other."""

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
        """Position in the sequence of the row with this number."""
        for first, last in self._runs:
            if last is None or number < last - first:
                break
            number -= last - first
        return first + number

    @abstractmethod
    def _run(self, at: int, end: int | None, shift: int) -> Iterator[NumberedBatch]:
        """Read the rows at the positions [at, end) of the sequence; a position plus `shift` is the number of a row."""


class MixedEpochs(SequenceEpochs):
    """Rows of every epoch of a mixture whose parts are read side by side."""

    def __init__(self, mixture: Mixture, options: IterOptions, seed: int, counts: Sequence[int] | None = None) -> None:
        super().__init__(mixture, options, counts)
        self.members = mixture.members
        worker = mixture.worker_of(options) if self.has_own_files else None
        of_parts = options.changed(worker=worker, uneven="keep", state=None)
        self.parts = self._epochs_of(of_parts, seed)
        self.counts = counts if self.has_equal_parts else None  # of the rows of each part
        self.whole: list[Epochs] | None = None
        if self.has_own_files and mixture.stop != "first":  # for a part whose files of this worker have no row
            self.whole = self._epochs_of(replace(of_parts, worker=None), seed)

    def _epochs_of(self, options: IterOptions, seed: int) -> list[Epochs]:
        """Epochs of each part, by the common options and the selection of the part."""
        epochs_of_parts = []
        for number, member in enumerate(self.members):
            epochs = member.epochs(options, seed + number)
            epochs.warn_through(self)
            epochs_of_parts.append(epochs)
        return epochs_of_parts

    def warn_through(self, other: Epochs) -> None:
        super().warn_through(other)
        for part in [*self.parts, *(self.whole or [])]:
            part.warn_through(other)

    def open(self, position: IteratorPosition) -> MixedReader:
        return MixedReader(self, position.epoch, position.begin)

    def _length(self) -> int:
        lengths = [epochs.count() for epochs in self.parts]
        if self.whole is None or 0 not in lengths:
            return self.choices.length(lengths)
        self.choices.refuse_empty([epochs.count() for epochs in self.whole])
        return self.choices.worker_length(lengths)


class MixedReader(SequenceReader):
    """The rows of an epoch of a mixture, numbered by their positions in it."""

    def __init__(self, epochs: MixedEpochs, epoch: int, begin: int) -> None:
        super().__init__(begin, epochs.runs)
        self._epochs, self._epoch = epochs, epoch
        self._parts: list[_Part] = []
        self._used: list[_Part] = []  # the parts of all runs so far
        self._ended = ReadReport(schema_source=epochs.mixture.schema_source)  # report of the passes that have ended
        self._stopped = False  # True if the rows ended early, because of on_error="stop"
        self._mean = 0.0  # mean bytes of a row
        self._schema, self._is_late = epochs.mixture.schema, all(member.is_late for member in epochs.members)
        if self._is_late:
            self._schema = pa.schema([*LATE, *list(self._schema)[len(epochs.mixture.names) :]])

    def _run(self, at: int, end: int | None, shift: int) -> Iterator[NumberedBatch]:
        """Read the rows at the positions [at, end), a block at a time: each part gives the rows chosen from it."""
        epochs, choices = self._epochs, self._epochs.choices
        self._parts = [
            _Part(epochs, i, epoch=self._epoch, begin=int(n), ended=self._ended)
            for i, n in enumerate(choices.counts(at))
        ]
        self._used += self._parts
        stream, is_over, begin = choices.stream(at), False, at
        while not is_over and (end is None or at < end):
            # Blocks grow with what was delivered: an early end has few rows read in vain.
            size = max(int(min(_BLOCK_BYTES / max(self._mean, 1), _MOST_BLOCK, at - begin)), _LEAST_BLOCK)
            size = size if end is None else min(size, end - at)
            block = choices.datasets(stream.random(size))
            before = [part.taken for part in self._parts]
            places = [np.flatnonzero(block == number) for number in range(choices.count)]
            pools = [part.take(len(positions)) for part, positions in zip(self._parts, places, strict=True)]
            end_of_rows = self._end(before, places, len(block))
            is_over = end_of_rows < len(block)
            if end_of_rows:
                pool = self._assemble_block(pools, places, at=at, cut=end_of_rows, shift=shift)
                at += end_of_rows
                self.next = at + shift
                if len(pool):
                    yield pool
            if is_over:
                lacking = [
                    part
                    for part, first, positions in zip(self._parts, before, places, strict=True)
                    if part.taken - first < len(positions) and positions[part.taken - first] == end_of_rows
                ]
                self._stopped = any(part.stopped for part in lacking)
                for part in lacking:
                    if part.error is not None:
                        raise part.error

    def _end(self, before: list[int], where: list[Array], size: int) -> int:
        """Number of rows of a block of `size`: up to a row that a part lacks, or to the end of all parts."""
        ends = []
        for part, first, positions in zip(self._parts, before, where, strict=True):
            if part.taken - first < len(positions):
                size = min(size, int(positions[part.taken - first]))
            if part.total is not None:
                ends.append(int(positions[part.total - first - 1]) + 1 if part.total > first else 0)
        is_complete = self._epochs.mixture.stop == "all" and len(ends) == len(self._parts)
        return min(size, max(ends)) if is_complete else size

    def _assemble_block(
        self, of_parts: list[list[NumberedBatch]], where: list[Array], at: int, cut: int, shift: int
    ) -> NumberedBatch:
        """Put the first `cut` rows of a block in order, and keep the rows of this worker.

        `of_parts` has the rows of each part, `where` their positions in the block.
        """
        pools, positions, mixture = list[NumberedBatch](), list[Array](), self._epochs.mixture
        for number, (of_part, places) in enumerate(zip(of_parts, where, strict=True)):
            count = int(places.searchsorted(cut))
            if not count:
                continue
            pool = NumberedBatch.concat(of_part).slice(0, count)
            mean = float(pool.facts.row_bytes.mean())
            self._mean += (mean - self._mean) * (0.1 if self._mean else 1)
            mine = np.flatnonzero(self._epochs.share.mask(places[:count] + at))
            pool = pool if len(mine) == count else pool.take(mine)
            pool = pool if self._is_late else pool.make_windows(shares=False)
            source = [] if mixture.source_column is None else [pa.array(np.full(len(pool), number, np.int64))]
            rows = pa.RecordBatch.from_arrays([*pool.rows.columns, *source], schema=self._schema)
            pools.append(pool.replace_rows(rows))
            positions.append(places[mine])
        place = np.concatenate(positions)
        order = np.argsort(place)
        # A copy of a single pool, too: callers write to it, and parts keep theirs.
        pool = NumberedBatch.concat(pools).take(order)
        return pool.replace_facts(numbers=place[order] + (at + shift))

    # Reports and faults ----------------------------------------------------------------------------------------------

    @property
    def failed(self) -> bool:
        return self._error is not None or self._stopped

    def reports(self) -> list[ReadReport]:
        return [self._ended, *(rows.report for rows in self.readers())]

    def readers(self) -> list[EpochReader]:
        return [part.rows for part in self._used]

    def origin_in(self, pool: NumberedBatch, fault: RowFault) -> tuple[Any, RowFault]:
        reader, number = pool.facts.origin(fault.row)
        return reader.origin(fault.renumber(number))

    def leave_out(self, pool: NumberedBatch, fault: RowFault) -> bool:
        left_out = super().leave_out(pool, fault)
        reader, _ = pool.facts.origin(fault.row)
        if reader not in self.readers():
            move_reports(reader, self._ended)
        return left_out

    def close(self) -> None:
        super().close()
        for part in self._used:
            part.close()


class _Part:
    """Rows of one part of a mixture in an epoch, from row `begin` on; passes over the part repeat as needed."""

    def __init__(self, mixed: MixedEpochs, number: int, epoch: int, begin: int, ended: ReadReport) -> None:
        # Epochs of the files of this worker; then of all files, if the former have no row.
        self._epochs = [mixed.parts[number], *([] if mixed.whole is None else [mixed.whole[number]])]
        self._member, self._stop = mixed.members[number], mixed.mixture.stop
        # Number of rows of a pass, if the rows that are drawn depend on the count.
        self._counted = None if mixed.counts is None else mixed.counts[number]
        self.total: int | None = None  # number of rows, known once the first pass has ended
        self.error: Exception | None = None  # raised where the next row is needed
        self.stopped = False  # True if the rows ended early, because of ``on_error="stop"``
        self._next_pool: NumberedBatch | None = None
        self.taken = 0  # number of rows taken, and of the rows before `begin`
        in_sequence, size = self._member.in_sequence, self._member.size
        passes, within = 0, begin if in_sequence and self._stop == "first" else 0
        keeps = self._stop != "first" and size is not None and size <= _KEPT_BYTES
        if in_sequence and self._stop != "first" and begin and (count := self._count_rows()):
            self._counted = count
            passes, within = divmod(begin, count)
            self.taken = passes * count
            if passes and self.total is None:
                self.total = count
        passes += self.total == 0  # the pass over the empty files of this worker
        epoch, within = (epoch, 0) if keeps else (epoch + passes * _PASS, within)
        self.taken += within
        self._open(epoch, within)
        self._pools = self._read(epoch, keeps, ended)
        while self.taken < begin and self.take(min(begin - self.taken, _MOST_BLOCK)):
            pass  # row `begin` is only found by reading the rows before it

    def _count_rows(self) -> int:
        """Number of rows of a pass; 0 if unknown. Files of this worker without rows are given up for all files."""
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
        """Begin a pass at the row `within` of it."""
        self._begin = self.taken - within  # ordinal of the first row of the pass
        offset = self._member.selection.offset if self._member.in_sequence else 0
        self.rows = self._epochs[0].open(IteratorPosition(epoch, 0, offset + within))

    def take(self, count: int) -> list[NumberedBatch]:
        """Take the next rows; fewer only if the rows have ended."""
        pools, end = list[NumberedBatch](), self.taken + count
        while self.taken < end and self._fill():
            assert self._next_pool is not None
            pool, self._next_pool = self._next_pool, None
            if len(pool) > end - self.taken:
                pool, self._next_pool = pool.slice(0, end - self.taken), pool.slice(end - self.taken)
            self.taken += len(pool)
            pools.append(pool)
        if self.total is None and (self._stop == "all" or self.taken - self._begin == self._counted):
            self._fill()  # to know whether the pass has ended
        return pools

    def _fill(self) -> bool:
        """Fetch the next rows; True if there are some."""
        if self._next_pool is None:
            self._next_pool = next(self._pools, None)
        return self._next_pool is not None

    def _read(self, epoch: int, keeps: bool, ended: ReadReport) -> Generator[NumberedBatch]:
        """Read the open pass and those after it; with `keeps`, files are read once and rows kept for further passes."""
        kept = list[NumberedBatch]()
        while True:
            is_kept, counted, rows = bool(kept), self._counted, self.rows
            for pool in kept if is_kept else rows:
                if not is_kept:
                    origins = np.full(len(pool), id(rows)), pool.numbers
                    pool = pool.replace_facts(origins=origins, readers={id(rows): rows})
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
            move_reports(self.rows, ended)
            epoch += 0 if keeps else _PASS
            self._open(epoch, 0)

    def _refuse(self, amount: str, counted: int) -> NoReturn:
        """Raise CorruptRecordError: the dataset has not as many rows as were counted."""
        reason = f"a dataset of the mixture has {amount} rows than the {counted} that were counted"
        advice = "open the files again, or correct the number in their dataset_info.json"
        raise CorruptRecordError(reason, path=self._member.sources[0].path, expected=counted, hint=advice)

    def close(self) -> None:
        self._pools.close()  # the generator refers to this part
        self.rows.close()


def move_reports(rows: EpochReader, ended: ReadReport) -> None:
    """Add the reports of a pass that has ended to `ended`, and restart them: rows may still be left out later."""
    for report in rows.reports():
        ended.add(report)
        report.restart()


_READ_BYTES, _LEAST_ROWS, _MOST_ROWS = 4 * MIB, 64, 1 << 14  # rows read by number at a time


class BalancedEpochs(SequenceEpochs):
    """Rows of every epoch of a balanced mixture: choices are groups of `Classes`, whose rows are read by number.

    A group is read from its first row on, or with a shuffle buffer in a new order in each pass of each epoch.
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
        """Bytes of all records read so far."""
        return sum(lookup.bytes_read for lookup in self.lookups)

    def rows_at(self, epoch: int, groups: Array, ordinals: Array) -> tuple[Array, Array]:
        """Dataset and row number of the rows at some ordinals of groups, counted on through the passes over a group."""
        lengths = np.diff(self.classes.bounds)[groups]
        passes, positions = np.divmod(ordinals, lengths)
        if self._orders is not None:
            order = np.argsort(groups, kind="stable")
            bounds = np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1))
            for first, last in pairwise(bounds.tolist()):
                at = order[first:last]  # the rows of one group
                group, length = int(groups[at[0]]), int(lengths[at[0]])
                positions[at] = self._orders.positions(epoch, group, length=length, passes=passes[at], at=positions[at])
        return self.classes.rows_at(groups, positions)


class _Orders:
    """Order of the rows of each group in each pass of an epoch.

    The seed of the mixture determines it, and is the same for all workers.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._last: dict[int, tuple[int, int, Array]] = {}  # for each group: epoch, pass, orders from that pass on

    def positions(self, epoch: int, group: int, length: int, passes: Array, at: Array) -> Array:
        """Rows at some positions of ascending passes over a group of `length` rows."""
        first, last = int(passes[0]), int(passes[-1])
        last_epoch, begin, orders = self._last.get(group, (-1, 0, np.empty((0, length), np.int64)))
        if last_epoch != epoch or first < begin or last >= begin + len(orders):
            stream = random_stream(self._seed, epoch, group, Purpose.GROUP_ORDER, begin=first * length)
            begin, orders = first, stream.random((last + 1 - first, length)).argsort(axis=1)
            self._last[group] = epoch, last, orders[-1:].copy()
        return orders[passes - begin, at]


class BalancedReader(SequenceReader):
    """The rows of an epoch of a balanced mixture, numbered by their positions in it."""

    def __init__(self, epochs: BalancedEpochs, epoch: int, begin: int) -> None:
        super().__init__(begin, epochs.runs)
        self._epochs, self._epoch = epochs, epoch
        self._count = 0
        self._before = epochs.bytes_read

    def _run(self, at: int, end: int | None, shift: int) -> Iterator[NumberedBatch]:
        """Read the rows at the positions [at, end): the rows that groups are chosen for, by number."""
        epochs = self._epochs
        mean = max(lookup.mean_bytes for lookup in epochs.lookups)
        size = int(min(max(_READ_BYTES / max(mean, 1), _LEAST_ROWS), _MOST_ROWS))
        for groups, ordinals in epochs.choices.draw(epochs.classes.lengths, at, end):
            mine = np.flatnonzero(epochs.share.mask(np.arange(at, at + len(groups))))
            datasets, rows = epochs.rows_at(self._epoch, groups[mine], ordinals[mine])
            numbers = mine + (at + shift)
            for begin in range(0, len(mine), size):
                part = slice(begin, begin + size)
                yield from self._read_rows(numbers[part], datasets[part], rows[part])
            at += len(groups)
            self.next = at + shift

    def _read_rows(self, numbers: Array, datasets: Array, rows: Array) -> Iterator[NumberedBatch]:
        """Read rows of datasets by number; the rows before a damaged one, then its error."""
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
        """Read rows as one pool, or as several if they take much memory."""
        epochs, before = self._epochs, self._epochs.bytes_read
        batches = epochs.mixture.read_rows(epochs.lookups, datasets, rows).to_batches()
        ends, mean = np.cumsum(list(map(len, batches))), (epochs.bytes_read - before) / len(numbers)
        parts = zip(np.split(numbers, ends[:-1]), batches, strict=True)
        return [NumberedBatch(RowFacts(part, np.full(len(part), mean)), batch) for part, batch in parts]

    # Reports and faults ----------------------------------------------------------------------------------------------

    def reports(self) -> list[ReadReport]:
        epochs = self._epochs
        files, source = len(epochs.mixture.sources), epochs.mixture.schema_source
        return [ReadReport(self._count, epochs.bytes_read - self._before, files, source)]

    def origin(self, fault: RowFault) -> tuple[PartLookup, RowFault]:
        position, epochs = self._position(fault.row), self._epochs
        group = next(epochs.choices.blocks(position))[:1]
        (dataset,), (row,) = epochs.rows_at(self._epoch, group, epochs.choices.counts(position)[group])
        return epochs.lookups[dataset], fault.renumber(int(row))
