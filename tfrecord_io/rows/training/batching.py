"""Turn the rows of epochs, as they are read, into chunks of arrays: each chunk has many whole batches.

Rows keep the order of the files or go through a shuffle buffer; then batches have `batch_size` rows each, or
arranged by the lengths of their lists (buckets, packed rows). Where a chunk ends does not change the batches.

Tests: tests/rows/training/test_buckets_and_packing.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np

from tfrecord_io.base import MIB, counted
from tfrecord_io.bytes import Array
from tfrecord_io.columns import RowFault
from tfrecord_io.read import RowFaultPolicy
from tfrecord_io.rows.arrays.array_budget import ArrayBudget
from tfrecord_io.rows.arrays.stacked_or_ragged import ColumnArrays, TableRepresentation, dense_values
from tfrecord_io.rows.training.background_generator import BackgroundGenerator
from tfrecord_io.rows.training.buckets_and_packing import Batches, arrange_batches, cut_documents, list_lengths_of
from tfrecord_io.rows.training.epochs import EpochReader, Epochs, JoinedBatches, NumberedBatch
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.iterator_state import IteratorPosition
from tfrecord_io.rows.training.order import OrderPosition
from tfrecord_io.rows.training.shuffle_buffer import drain, exchange, random_numbers

# The buffer is copied each time that rows are drawn. So draws wait until 1/REFILL of its size has been read, and all
# but the first until _MOST_REFILL times its size, unless what was read has REFILL_BYTES.
REFILL, _MOST_REFILL, REFILL_BYTES = 4, 4, 16 * MIB
_IMAGES = 64  # rows decoded at a time
_READY = 2  # batches of rows that a thread reads ahead
_NO_ROWS = np.empty(0, np.int64)
_WITHOUT_BATCHES = 10  # epochs: if the first ones have no batch, a later one is not expected to have any
_HEAP_BYTES = 31 * MIB  # glibc takes blocks of less than 32 MiB as the measure of what it keeps
_PIECE_BYTES = 8 * MIB  # copied at a time: less than caches hold, in memory that is used again


Position = IteratorPosition | OrderPosition
"""A position in the rows of one worker, or in those that all workers read in one order."""


class Progress(ABC):
    """State before some rows, which determines any position between their batches."""

    __slots__ = ()

    @abstractmethod
    def end(self) -> Position:
        """Position at the end of the epoch."""

    @abstractmethod
    def position_in(self, batches: Batches | None, rows: int) -> Position:
        """Position once `rows` of the rows are delivered, which are in these batches, if not all have as many."""


@dataclass(slots=True)
class DrawState(Progress):
    """A pool before rows were drawn from it, and the random numbers drawn: they determine any position in between."""

    epoch: int
    delivered: int  # records of the epoch that were delivered before
    numbers: Array  # int64: of the rows of the pool: first those of the shuffle buffer, then the next ones
    next: int  # number of the record after the pool
    buffer_size: int = 0  # 0 without a shuffle buffer
    exchange_draws: Array = field(default_factory=partial(np.empty, 0))  # float64: random numbers for `exchange`
    drain_draws: Array = field(default_factory=partial(np.empty, 0))  # and for `drain`

    def position(self, rows: int) -> IteratorPosition:
        """Position once `rows` of the drawn rows are delivered."""
        size = self.buffer_size
        exchanged = min(rows, len(self.exchange_draws)) if size else rows
        buffer = self.numbers[:size]
        if exchanged and size:
            buffer = self.numbers[exchange(self.exchange_draws[:exchanged], size)[1]]
        if rows > exchanged:
            buffer = buffer[drain(self.drain_draws[: rows - exchanged], len(buffer))[1]]
        read = size + exchanged
        following = int(self.numbers[read]) if read < len(self.numbers) else self.next
        return IteratorPosition(self.epoch, self.delivered + rows, following, buffer.tolist())

    def end(self) -> IteratorPosition:
        return IteratorPosition(self.epoch + 1, 0, 0)

    def position_in(self, batches: Batches | None, rows: int) -> IteratorPosition:
        if batches is None:
            return self.position(rows)
        drawn, waiting, cut = batches.progress_after(rows)
        return replace(self.position(drawn), waiting=waiting, cut=cut)


@dataclass(slots=True)
class ArrayChunk:
    """Rows of many batches as arrays, in the order of delivery."""

    rows: int  # drawn from the pool: batches are made of so many, and are shorter where some of them were left out
    columns: list[ColumnArrays]
    state: Progress
    begin: int = 0  # index of the first row among the rows drawn from the pool
    error: Exception | None = None  # to be raised after these rows
    ends_epoch: bool = False
    kept: Array | None = None  # int64: the rows that `columns` have, where others were left out
    batches: Batches | None = None  # of the rows drawn from the pool, where not all batches have as many rows
    dense: dict[str, Array] | None = None  # values of each column if batches are slices of the values, as most are

    @property
    def is_end(self) -> bool:
        """True if it has no rows, and states the end of the epoch."""
        return self.ends_epoch and not self.rows

    def batch(self, begin: int, size: int) -> tuple[int, dict[str, Any] | None]:
        """Batch from row `begin` on: the row after its last one, and its arrays; None if all its rows are left out.

        A batch has `size` rows, unless batches differ in size or the chunk ends.
        """
        if self.dense is not None and begin + size <= self.rows:
            end, arrays = begin + size, {}
            for name, values in self.dense.items():
                arrays[name] = values[begin:end]
            return end, arrays
        end, form = begin + size, None
        if self.batches is not None:
            number = self.batches.batch_with(self.begin + begin)
            end = int(self.batches.ends[number]) - self.begin
        end = min(end, self.rows)
        first, last = (begin, end) if self.kept is None else self.kept.searchsorted([begin, end]).tolist()
        if first == last:
            return end, None
        if self.batches is not None and self.batches.is_arranged:
            rows = np.arange(begin, end) if self.kept is None else self.kept[first:last]
            form = self.batches.form(number, self.begin + rows)
        return end, TableRepresentation.slice(self.columns, first, last, form)

    def position(self, rows: int) -> Position:
        """Position once `rows` rows of the chunk are delivered."""
        if self.ends_epoch and rows == self.rows:
            return self.state.end()
        return self.state.position_in(self.batches, self.begin + rows)


@dataclass(slots=True)
class Drawn:
    """Rows in the order of delivery; `ends_epoch` if none follow, `batches` where batches differ in size."""

    pool: NumberedBatch | JoinedBatches
    state: Progress
    ends_epoch: bool = False
    batches: Batches | None = None
    order: Array | None = None  # int64: the rows of joined batches that are drawn, copied a few at a time
    columns: list[ColumnArrays] | None = None  # of the pieces of documents that are cut
    error: Exception | None = None  # to be raised after these

    def __len__(self) -> int:
        return len(self.pool if self.order is None else self.order)

    def rows(self, begin: int, end: int) -> NumberedBatch:
        """The rows [begin, end)."""
        if isinstance(self.pool, NumberedBatch):
            return self.pool.slice(begin, end)
        assert self.order is not None
        return self.pool.take(self.order[begin:end])


Pools = Iterable[tuple[NumberedBatch, int]]
"""Batches of rows as they are read, each with the number of the row after it."""


def _read(reader: EpochReader) -> Generator[tuple[NumberedBatch, int]]:
    for pool in reader:
        yield pool, reader.next


class Batching:
    """Turns the rows of all epochs into chunks of arrays."""

    # Reader of the epoch that was begun last; no attribute of `epochs`, to which it refers: both are freed at once.
    reader: EpochReader | None = None

    def __init__(
        self,
        epochs: Epochs,
        representation: TableRepresentation,
        options: IterOptions,
        seed: int,
        stream: int | None = None,
    ) -> None:
        """`stream`: number of the stream of random numbers of the shuffle buffer, by default that of the worker."""
        self.epochs = epochs
        self._representation, self._options = representation, options
        self._buffer_size = options.shuffle_buffer
        self._batch_size = options.batch_units
        self._drop_last = options.drop_last and not options.arranges
        # A thread reads ahead only of a shuffle buffer: rows in file order take little more time than to be read, and
        # waiting for the GIL would cost more. Nor where rows may be left out: the reader counts them in one thread.
        is_drawn = options.thread_count > 1 and options.shuffle_buffer > 0
        self._reads_ahead = is_drawn and not options.damage.goes_on
        self._seed, self._stream = seed, options.share[0] if stream is None else stream
        if options.shuffle_buffer:
            # glibc returns free memory beyond twice the largest block that was freed. After this one, arrays get pages
            # that others had, and the 4,000 page faults of 400,000 rows of nine numbers in 16 parts become 2.
            np.empty(_HEAP_BYTES, np.uint8)

    def chunks(self, position: Any) -> Generator[ArrayChunk]:
        """All chunks from a position on.

        ValueError if the epochs never end, and records of this worker are in no batch.
        """
        has_had_batches = position.epoch > 0 or position.delivered > 0  # in this epoch or an earlier one
        while self._options.epochs is None or position.epoch < self._options.epochs:
            count = drawn_rows = 0
            self.reader = reader = self.epochs.open(position)
            with closing(reader), closing(self._draw_rows(reader, position)) as parts:
                for drawn in parts:
                    drawn_rows += len(drawn)
                    for chunk in self._represent_rows(reader, drawn):
                        count += chunk.rows if chunk.kept is None else len(chunk.kept)
                        yield chunk
                        if chunk.error is not None:
                            return
            for report in reader.reports():
                report.warn_of_skipped(self.epochs.damage.append)
            if reader.failed:
                return
            has_had_batches = has_had_batches or count > 0
            if not (
                count or position.delivered or self._may_have_batches_later(reader, position.epoch, has_had_batches)
            ):
                if self._options.epochs is None and not drawn_rows:  # else a warning says that rows were left out
                    self._refuse_endless(reader)
                return
            position = IteratorPosition(position.epoch + 1, 0, 0)

    def _may_have_batches_later(self, reader: EpochReader, epoch: int, has_had_batches: bool) -> bool:
        """True if an epoch after this one, which had no batch, may have some: its rows come in another order."""
        is_worthwhile = self._options.epochs is not None or has_had_batches or epoch + 1 < _WITHOUT_BATCHES
        return self._buffer_size > 0 and self._epochs_differ(reader) and is_worthwhile

    def _epochs_differ(self, reader: EpochReader) -> bool:
        """True if shuffled epochs may have different numbers of batches."""
        return self.epochs.varies or (self._options.arranges and reader.count > 0)

    def _refuse_endless(self, reader: EpochReader) -> None:
        """Raise ValueError if this worker would wait forever: its records make no batch. Empty files are allowed."""
        worker, workers = self._options.share
        whose = f" of worker {worker} of {workers}" if workers > 1 else ""
        if reader.count and self._options.cut:
            reason, advice = f"the {counted(reader.count, 'record')}{whose} have no values", "read other columns"
        elif reader.count:
            reason = f"no whole batch can be made of the {counted(reader.count, 'record')}{whose}"
            advice = "pass drop_last=False, or a smaller batch_size="
        elif workers > 1:
            reason = f"worker {worker} of {workers} has no record, and would never have a batch"
            advice = "pass a worker= of fewer parts"
        else:
            return
        raise ValueError(f"epochs=None: {reason}; {advice}")

    def _draw_rows(self, reader: EpochReader, position: IteratorPosition) -> Generator[Drawn]:
        """Rows in the order of delivery, whole batches except at the end."""
        buffered, waiting = reader.resume(position)
        read = partial(_read, reader)
        with closing(BackgroundGenerator(read, _READY) if self._reads_ahead else read()) as pools:
            if self._buffer_size > 0:
                drawn = self._shuffle_rows(reader, pools, position, buffered)
            else:
                drawn = self._cut_rows(reader, pools, position)
            if self._options.cut:
                yield from self._cut_documents(reader, position, drawn, waiting)
            elif self._options.arranges:
                yield from self._arrange_rows(reader, position, drawn, waiting)
            else:
                yield from drawn
        reader.raise_error()

    def _arrange_rows(
        self, reader: EpochReader, position: IteratorPosition, drawn: Iterator[Drawn], waiting: list[NumberedBatch]
    ) -> Iterator[Drawn]:
        """Arrange rows in batches by the lengths of their lists; rows of unfilled batches wait for later ones."""
        options, count = self._options, position.delivered
        for arrived in drawn:
            carried = sum(map(len, waiting))
            pool = NumberedBatch.concat([*waiting, arrived.rows(0, len(arrived)).make_windows(shares=False)])
            count += len(arrived)
            batches = arrange_batches(list_lengths_of(pool.rows, options), options, False)
            batches.carried, batches.numbers = carried, pool.numbers
            joined = JoinedBatches([pool])
            if len(batches.order):
                yield Drawn(joined, arrived.state, ends_epoch=False, batches=batches, order=batches.order)
            waiting = [joined.take(batches.leftover)] if len(batches.leftover) else []
        for pool in waiting:
            batches = arrange_batches(list_lengths_of(pool.rows, options), options, True)
            batches.carried, batches.numbers = len(pool), pool.numbers
            if len(batches.order):
                state = DrawState(position.epoch, count, pool.numbers[:0], reader.next)
                yield Drawn(
                    JoinedBatches([pool]), state, ends_epoch=not reader.failed, batches=batches, order=batches.order
                )

    def _cut_documents(
        self, reader: EpochReader, position: IteratorPosition, drawn: Iterator[Drawn], waiting: list[NumberedBatch]
    ) -> Iterator[Drawn]:
        """Cut documents into packed rows, one after the other; the rest of them waits for later ones."""
        options, count, given = self._options, position.delivered, position.cut
        for arrived in chain(drawn, [None]):
            is_last = arrived is None
            carried = sum(map(len, waiting))
            state: Progress = DrawState(position.epoch, count, _NO_ROWS, reader.next)
            if arrived is not None:
                waiting, state = [*waiting, arrived.rows(0, len(arrived)).make_windows(shares=False)], arrived.state
                count += len(arrived)
            if not waiting:
                return
            pool, columns, kept, error = self._represent(reader, NumberedBatch.concat(waiting), options.batch_size)
            lengths = np.zeros(len(pool), np.int64)
            lengths[slice(None) if kept is None else kept] = columns[0].lengths
            batches = cut_documents(lengths, options, is_last or error is not None, given)
            batches.carried, batches.numbers, pieces = carried, pool.numbers, batches.pieces
            assert pieces is not None
            if len(batches.order) or error is not None:
                ends_epoch = is_last and error is None and not reader.failed
                documents, begins = pieces.places()
                documents = documents if kept is None else kept.searchsorted(documents)
                cut = [column.cut(documents, begins) for column in columns]
                yield Drawn(pool, state, ends_epoch, batches, order=batches.order, columns=cut, error=error)
            if error is not None:
                return
            left = batches.leftover if kept is None else np.intersect1d(batches.leftover, kept)
            waiting = [pool.take(left)] if len(left) else []
            given = int(pieces.given[-1]) if len(pieces.given) else given

    def _cut_rows(self, reader: EpochReader, pools: Pools, position: IteratorPosition) -> Iterator[Drawn]:
        """Cut rows in file order where whole batches end."""
        epoch, delivered = position.epoch, position.delivered
        begun: list[NumberedBatch] = []  # rows of a batch that is not complete yet
        for pool, following in pools:
            missing = self._batch_size - sum(map(len, begun))
            if len(pool) < missing:
                begun.append(pool)
                continue
            if begun:  # complete one batch, so that the remaining rows need not be copied
                first = NumberedBatch.concat([*begun, pool.slice(0, missing)])
                pool = pool.slice(missing)
                after_first = int(pool.numbers[0]) if len(pool) else following
                yield Drawn(first, DrawState(epoch, delivered, first.numbers, after_first))
                delivered += len(first)
            whole = len(pool) // self._batch_size * self._batch_size
            if whole:
                yield Drawn(pool.slice(0, whole), DrawState(epoch, delivered, pool.numbers, following))
                delivered += whole
            begun = [pool.slice(whole)] if whole < len(pool) else []
        if begun and not self._drop_last:
            pool = NumberedBatch.concat(begun)
            yield Drawn(pool, DrawState(epoch, delivered, pool.numbers, reader.next), not reader.failed)

    def _shuffle_rows(
        self, reader: EpochReader, pools: Pools, position: IteratorPosition, held: list[NumberedBatch]
    ) -> Iterator[Drawn]:
        """Draw rows through the shuffle buffer, where `held` are its rows, and those read since the last draws."""
        size, delivered = self._buffer_size, position.delivered
        random = random_numbers(self._seed, position.epoch, self._stream, delivered)
        count = sum(map(len, held))
        fresh = 0  # bytes of the rows that were read since the last draws
        for part, following in pools:
            held.append(part)
            count += len(part)
            fresh += part.bytes
            refill = _MOST_REFILL * size if fresh < REFILL_BYTES and delivered > position.delivered else 0
            if count - size < max(self._batch_size, size // REFILL, refill):
                continue
            pool, fresh = JoinedBatches(held), 0
            held.clear()
            ready = (count - size) // self._batch_size * self._batch_size
            draws = random.random(ready)
            drawn, buffer = exchange(draws, size)
            numbers = pool.facts.numbers
            state = DrawState(
                position.epoch, delivered, numbers=numbers, next=following, buffer_size=size, exchange_draws=draws
            )
            yield Drawn(pool, state, order=drawn)
            held.append(pool.take(np.concatenate([buffer, np.arange(size + ready, count)])))
            del pool
            delivered, count = delivered + ready, count - ready
        if count:
            pool = JoinedBatches(held)
            held.clear()
            size = min(size, count)
            draws, drain_draws = random.random(count - size), random.random(size)
            drawn, buffer = exchange(draws, size)
            drawn = np.concatenate([drawn, buffer[drain(drain_draws, size)[0]]])
            if self._drop_last:
                drawn = drawn[: count // self._batch_size * self._batch_size]
            state = DrawState(
                position.epoch,
                delivered,
                numbers=pool.facts.numbers,
                next=reader.next,
                buffer_size=size,
                exchange_draws=draws,
                drain_draws=drain_draws,
            )
            yield Drawn(pool, state, not reader.failed, order=drawn)

    def _ends(self, drawn: Drawn) -> list[int]:
        """Ends of the runs of whole batches that become arrays together."""
        count, size, at_once = len(drawn), self._batch_size, len(drawn)
        if self._representation.images:
            at_once = _IMAGES
        elif isinstance(drawn.pool, JoinedBatches) or drawn.pool.is_late:
            at_once = _PIECE_BYTES * len(drawn.pool) // max(drawn.pool.bytes, 1)
        if drawn.batches is None:
            batches = np.minimum(np.arange(size, count + size, size), count)
        else:
            batches = drawn.batches.ends
        ends = [0]
        while ends[-1] < count:
            # Up to the last batch that ends within `at_once` rows; or the next batch alone, if it has more.
            fitting, following = batches.searchsorted([ends[-1] + at_once, ends[-1]], side="right").tolist()
            ends.append(int(batches[max(fitting - 1, following)]))
        return ends[1:] or ends  # without rows, an empty run: its chunk may end the epoch

    def _represent_rows(self, reader: EpochReader, drawn: Drawn) -> Iterator[ArrayChunk]:
        """Turn rows into arrays, a few at a time where rows are copied, or have images, which grow when decoded."""
        if drawn.columns is not None:
            yield ArrayChunk(
                rows=len(drawn),
                columns=drawn.columns,
                state=drawn.state,
                error=drawn.error,
                ends_epoch=drawn.ends_epoch,
                batches=drawn.batches,
            )
            return
        size = self._batch_size if drawn.batches is None else drawn.batches.most_rows
        for begin, end in pairwise([0, *self._ends(drawn)]):
            part, columns, kept, error = self._represent(reader, drawn.rows(begin, end), size)
            is_last = begin + len(part) == len(drawn)
            is_end = drawn.ends_epoch and is_last and error is None
            is_plain = drawn.batches is None and kept is None
            yield ArrayChunk(
                rows=len(part),
                columns=columns,
                state=drawn.state,
                begin=begin,
                error=error,
                ends_epoch=is_end,
                kept=kept,
                batches=drawn.batches,
                dense=dense_values(columns) if is_plain else None,
            )
            if error is not None:
                return

    def _represent(
        self, reader: EpochReader, part: NumberedBatch, size: int
    ) -> tuple[NumberedBatch, list[ColumnArrays], Array | None, Exception | None]:
        """Represent rows as arrays: up to one that cannot be represented, and must not be left out.

        Returns the rows, their arrays, the indices of the rows that the arrays have if others were left out, and the
        error.
        """
        error: Exception | None = None
        kept: Array | None = None
        if part.is_late:
            part = part.make_windows()
        while True:
            try:
                return part, self._columns(part if kept is None else part.take(kept), kept, size), kept, error
            except RowFault as fault:
                failure: RowFault | None = fault
                if kept is not None:
                    failure = fault.renumber(int(kept[fault.row]))
                elif reader.goes_on:
                    kept, failure = self._find_fitting_rows(reader, part, size)
                if failure is not None:  # represent the rows before it
                    error = reader.row_error(part, failure)
                    part = part.slice(0, failure.row)
                    kept = None if kept is None else kept[kept < failure.row]

    def _columns(self, rows: NumberedBatch, places: Array | None, size: int) -> list[ColumnArrays]:
        """Represent rows as arrays; where other rows are left out, `places` are the indices of these among all."""
        limit = self._options.limits.expansion_bytes
        budget = ArrayBudget(limit, len(rows), lambda: rows.facts.row_bytes, batch_rows=size, places=places)
        return self._representation.represent([rows.rows], budget, rows.episodes)

    def _find_fitting_rows(self, reader: EpochReader, part: NumberedBatch, size: int) -> tuple[Array, RowFault | None]:
        """Indices of rows that fit into arrays, up to a row that must not be left out, and the fault of that row."""

        def make(begin: int, end: int) -> Array:
            places = np.arange(begin, end)
            self._columns(part.slice(begin, end), places, size)
            return places

        kept = [np.empty(0, np.int64)]
        for _, _, places in RowFaultPolicy.fitting_parts(len(part), make, partial(reader.leave_out, part)):
            if isinstance(places, RowFault):
                return np.concatenate(kept), places
            kept.append(places)
        return np.concatenate(kept), None
