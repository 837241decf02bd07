"""From the rows of epochs to chunks of many batches: in the order of the files, or through a shuffle buffer.

Where a chunk ends does not change the batches.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrays.array_budget import ArrayBudget
from tfrecord_io.arrays.representation import BatchForm, ColumnArrays, TableRepresentation, slice_columns
from tfrecord_io.arrow.buffers import list_lengths
from tfrecord_io.arrow.output.to_numpy import leaf_arrays, leaf_fields
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.display import counted
from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.numpy_output import first_fit
from tfrecord_io.options import MIB, leaves_out
from tfrecord_io.options.arrays import IterOptions
from tfrecord_io.read.chunks.recovery import fitting_parts
from tfrecord_io.training.background_generator import BackgroundGenerator
from tfrecord_io.training.checkpoint import IteratorPosition
from tfrecord_io.training.epochs import EpochReader, Epochs, JoinedBatches, NumberedBatch
from tfrecord_io.training.shuffle_buffer import drain, exchange, random_numbers


@dataclass(slots=True)
class Batches:
    """The batches that some rows complete."""

    order: Array  # int64: the rows of all batches, by number of arrival
    ends: Array  # int64: batch j has the rows ``order[ends[j - 1]:ends[j]]``
    arrived: Array  # int64: how many rows have arrived when batch j is complete
    rest: Array  # int64: the rows that are in no batch, in the order of arrival
    lengths: Array | None = None  # int64: of the padded lists of each batch
    bins: Array | None = None  # int64: the row of the packed arrays that each row of `order` becomes a part of
    filled: Array | None = None  # bool: whether a row of `order` has a value in one of the packed columns
    waiting: int = 0  # so many of the rows arrived before the others
    numbers: Array | None = None  # int64: of the rows, by arrival

    @property
    def most_rows(self) -> int:
        """Most rows of a batch."""
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


def arranged(lengths: Array, options: IterOptions, is_last: bool) -> Batches:
    """The batches of rows with these `list_lengths_of`, in the order of their arrival.

    Of the last rows of an epoch, also those that are not full.
    """
    return (_bucket_rows if options.pack is None else _packed)(lengths, options, is_last)


def _bucket_rows(lengths: Array, options: IterOptions, is_last: bool) -> Batches:
    """Batches whose lists have about one length; each has about the same number of values, padding included."""
    sizes = np.array(options.bucket_sizes, np.int64)
    longest = lengths.max(axis=1, initial=0)
    bucket_of_row = np.minimum(sizes.searchsorted(longest), len(sizes) - 1)  # arrays refuse what is too long
    batches, unfilled, rest = [], [], [np.empty(0, np.int64)]
    for bucket, size in enumerate(sizes.tolist()):
        capacity = options.batch_size * int(sizes[-1]) // size  # rows, padded to about as many values as the last one's
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


# A buffer is copied each time that it is drawn from: a large one once 1/4 of its size has been read, others later.
_REFILL, _MOST_REFILL, _REFILL_BYTES = 4, 4, 16 * MIB
_IMAGES = 64  # rows decoded at a time
_READY = 2  # batches of rows that are read ahead
_WITHOUT_BATCHES = 10  # epochs from the first one on, after which none is expected
_PIECE_BYTES = 8 * MIB  # copied at a time: less than caches hold, in memory that is used again


@dataclass(slots=True)
class DrawState:
    """A pool before rows were drawn from it, and the random numbers drawn: they determine any position in between."""

    epoch: int
    delivered: int  # records of the epoch that were delivered before
    numbers: Array  # int64: of the rows of the pool: first those of the shuffle buffer, then the next ones
    next: int  # number of the record after the pool
    buffer_size: int = 0  # 0 without a shuffle buffer
    exchange_draws: Array = field(default_factory=partial(np.empty, 0))  # float64: random numbers for `exchange`
    drain_draws: Array = field(default_factory=partial(np.empty, 0))  # and for `drain`

    def position(self, rows: int) -> IteratorPosition:
        """The position after `rows` of the rows drawn have been delivered."""
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


@dataclass(slots=True)
class ArrayChunk:
    """Rows of many batches as arrays, in the order of delivery."""

    rows: int  # drawn from the pool: batches are made of so many, and are shorter where some of them were left out
    columns: list[ColumnArrays]
    state: DrawState
    begin: int = 0  # index of the first row among the rows drawn from the pool
    error: Exception | None = None  # to be raised after these rows
    ends_epoch: bool = False
    kept: Array | None = None  # int64: the rows that `columns` have, where others were left out
    batches: Batches | None = None  # of the rows drawn from the pool, where not all batches have as many rows

    def batch(self, begin: int, size: int) -> tuple[int, dict[str, Any] | None]:
        """The batch that begins with a row: the row after it, and its arrays; None if all its rows are left out.

        It has `size` rows, unless batches differ in size or the chunk ends.
        """
        end, form = begin + size, None
        if self.batches is not None:
            number = self.batches.batch_with(self.begin + begin)
            end = int(self.batches.ends[number]) - self.begin
        end = min(end, self.rows)
        first, last = (begin, end) if self.kept is None else self.kept.searchsorted([begin, end]).tolist()
        if first == last:
            return end, None
        if self.batches is not None:
            rows = np.arange(begin, end) if self.kept is None else self.kept[first:last]
            form = self.batches.form(number, self.begin + rows)
        return end, slice_columns(self.columns, first, last, form)

    def position(self, rows: int) -> IteratorPosition:
        """The position after `rows` rows of the chunk have been delivered."""
        if self.ends_epoch and rows == self.rows:
            return IteratorPosition(self.state.epoch + 1, 0, 0)
        if self.batches is None:
            return self.state.position(self.begin + rows)
        drawn, held = self.batches.held(self.begin + rows)
        return replace(self.state.position(drawn), held=held)


@dataclass(slots=True)
class Drawn:
    """Rows in the order of delivery, and whether the epoch ends with them; `batches` where these differ in size."""

    pool: NumberedBatch | JoinedBatches
    state: DrawState
    ends_epoch: bool = False
    batches: Batches | None = None
    order: Array | None = None  # int64: the rows of joined batches that are drawn, copied a few at a time

    def __len__(self) -> int:
        return len(self.pool.numbers if self.order is None else self.order)

    def rows(self, begin: int, end: int) -> NumberedBatch:
        """The rows [begin, end)."""
        if isinstance(self.pool, NumberedBatch):
            return self.pool.slice(begin, end)
        assert self.order is not None
        return self.pool.take(self.order[begin:end])


Pools = Iterable[tuple[NumberedBatch, int]]
"""Rows as they are read, and the number of the row after them."""


def _read(rows: EpochReader) -> Generator[tuple[NumberedBatch, int]]:
    for pool in rows:
        yield pool, rows.next


class Batching:
    """Makes the chunks of all epochs."""

    # Of the epoch that was begun last; not one of the epochs, to which it refers: both are freed at once.
    reader: EpochReader | None = None

    def __init__(self, epochs: Epochs, representation: TableRepresentation, options: IterOptions, seed: int) -> None:
        self.epochs = epochs
        self._representation, self._options = representation, options
        self._buffer_size = options.shuffle_buffer
        self._batch_size = 1 if options.arranges else options.batch_size
        self._drop_last = options.drop_last and not options.arranges
        # Not where rows may be left out, of which the reader keeps account in one thread, nor where rows in order take
        # little more than to be read: threads that wait for the GIL take longer.
        is_drawn = options.thread_count > 1 and options.shuffle_buffer > 0
        self._reads_ahead = is_drawn and not leaves_out(options.on_error)
        self._seed, self._worker = seed, (options.worker or (0, 1))[0]

    def chunks(self, position: IteratorPosition) -> Generator[ArrayChunk]:
        """All chunks from a position on.

        ValueError if the epochs never end, and records of this worker are in no batch.
        """
        has_had = position.epoch > 0 or position.delivered > 0  # batches, in this epoch or one before it
        while self._options.epochs is None or position.epoch < self._options.epochs:
            count = drawn_rows = 0
            self.reader = rows = self.epochs.open(position)
            with closing(rows), closing(self._draw_rows(rows, position)) as parts:
                for drawn in parts:
                    drawn_rows += len(drawn)
                    for chunk in self._represent_rows(rows, drawn):
                        count += chunk.rows if chunk.kept is None else len(chunk.kept)
                        yield chunk
                        if chunk.error is not None:
                            return
            for report in rows.reports():
                report.skipped.warn(self.epochs.damage.append)
            if rows.failed:
                return
            has_had = has_had or count > 0
            # Epochs after one without batches may have some: in another order of the files.
            may_end = self._options.epochs is not None or has_had or position.epoch + 1 < _WITHOUT_BATCHES
            makes_others = self.epochs.varies or (self._options.arranges and rows.count > 0)
            may_follow = makes_others and self._buffer_size > 0 and may_end
            if not (count or position.delivered or may_follow):
                if self._options.epochs is None and not drawn_rows:  # else rows were left out, of which it warns
                    self._refuse_endless(rows)
                return
            position = IteratorPosition(position.epoch + 1, 0, 0)

    def _refuse_endless(self, rows: EpochReader) -> None:
        """Raise ValueError if this worker waits for batches that no epoch has; not where no file has a record."""
        worker, workers = self._options.worker or (0, 1)
        whose = f" of worker {worker} of {workers}" if workers > 1 else ""
        if rows.count:
            reason = f"no whole batch can be made of the {counted(rows.count, 'record')}{whose}"
            advice = "pass drop_last=False, or a smaller batch_size="
        elif workers > 1:
            reason = f"worker {worker} of {workers} has no record, and would never have a batch"
            advice = "pass a worker= of fewer parts"
        else:
            return
        raise ValueError(f"epochs=None: {reason}; {advice}")

    def _draw_rows(self, rows: EpochReader, position: IteratorPosition) -> Generator[Drawn]:
        """Rows in the order of delivery, whole batches except at the end."""
        buffered, held = rows.resume(position)
        read = partial(_read, rows)
        with closing(BackgroundGenerator(read, _READY) if self._reads_ahead else read()) as pools:
            if self._buffer_size > 0:
                drawn = self._shuffle_rows(rows, pools, position, buffered)
            else:
                drawn = self._in_order(rows, pools, position)
            yield from self._arrange_rows(rows, position, drawn, held) if self._options.arranges else drawn
        rows.raise_error()

    def _arrange_rows(
        self, rows: EpochReader, position: IteratorPosition, drawn: Iterator[Drawn], held: list[NumberedBatch]
    ) -> Iterator[Drawn]:
        """Arrange rows in batches of their own sizes."""
        options, count = self._options, position.delivered
        for arrived in drawn:
            pool, waiting = NumberedBatch.concat([*held, arrived.rows(0, len(arrived))]), sum(map(len, held))
            count += len(arrived)
            batches = arranged(list_lengths_of(pool.rows, options), options, False)
            batches.waiting, batches.numbers = waiting, pool.numbers
            joined = JoinedBatches([pool])
            if len(batches.order):
                yield Drawn(joined, arrived.state, False, batches, batches.order)
            held = [joined.take(batches.rest)] if len(batches.rest) else []
        for pool in held:
            batches = arranged(list_lengths_of(pool.rows, options), options, True)
            batches.waiting, batches.numbers = len(pool), pool.numbers
            if len(batches.order):
                state = DrawState(position.epoch, count, pool.numbers[:0], rows.next)
                yield Drawn(JoinedBatches([pool]), state, not rows.failed, batches, batches.order)

    def _in_order(self, rows: EpochReader, pools: Pools, position: IteratorPosition) -> Iterator[Drawn]:
        epoch, delivered = position.epoch, position.delivered
        held: list[NumberedBatch] = []
        for pool, following in pools:
            missing = self._batch_size - sum(map(len, held))
            if len(pool) < missing:
                held.append(pool)
                continue
            if held:  # complete one batch, so that the remaining rows need not be copied
                first = NumberedBatch.concat([*held, pool.slice(0, missing)])
                pool = pool.slice(missing)
                after_first = int(pool.numbers[0]) if len(pool) else following
                yield Drawn(first, DrawState(epoch, delivered, first.numbers, after_first))
                delivered += len(first)
            whole = len(pool) // self._batch_size * self._batch_size
            if whole:
                yield Drawn(pool.slice(0, whole), DrawState(epoch, delivered, pool.numbers, following))
                delivered += whole
            held = [pool.slice(whole)] if whole < len(pool) else []
        if held and not self._drop_last:
            pool = NumberedBatch.concat(held)
            yield Drawn(pool, DrawState(epoch, delivered, pool.numbers, rows.next), not rows.failed)

    def _shuffle_rows(
        self, rows: EpochReader, pools: Pools, position: IteratorPosition, held: list[NumberedBatch]
    ) -> Iterator[Drawn]:
        size, delivered = self._buffer_size, position.delivered
        random = random_numbers(self._seed, position.epoch, self._worker, delivered)
        count, fresh = sum(map(len, held)), 0  # rows, and bytes of those that were read since the last draws
        for part, following in pools:
            held.append(part)
            count += len(part)
            fresh += part.rows.nbytes
            wanted = _MOST_REFILL * size if fresh < _REFILL_BYTES and delivered > position.delivered else 0
            if count - size < max(self._batch_size, size // _REFILL, wanted):
                continue
            pool, fresh = JoinedBatches(held), 0
            held.clear()
            ready = (count - size) // self._batch_size * self._batch_size
            draws = random.random(ready)
            drawn, buffer = exchange(draws, size)
            state = DrawState(position.epoch, delivered, pool.numbers, following, size, draws)
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
            state = DrawState(position.epoch, delivered, pool.numbers, rows.next, size, draws, drain_draws)
            yield Drawn(pool, state, not rows.failed, order=drawn)

    def _ends(self, drawn: Drawn) -> list[int]:
        """Where the whole batches end that become arrays at a time."""
        count, size, most = len(drawn), self._batch_size, len(drawn)
        if self._representation.images:
            most = _IMAGES
        elif isinstance(drawn.pool, JoinedBatches):
            most = _PIECE_BYTES * len(drawn.pool.numbers) // max(drawn.pool.bytes, 1)
        if drawn.batches is None:
            batches = np.minimum(np.arange(size, count + size, size), count)
        else:
            batches = drawn.batches.ends
        ends = [0]
        while ends[-1] < count:
            fitting, following = batches.searchsorted([ends[-1] + most, ends[-1]], side="right").tolist()
            ends.append(int(batches[max(fitting - 1, following)]))
        return ends[1:] or ends

    def _represent_rows(self, rows: EpochReader, drawn: Drawn) -> Iterator[ArrayChunk]:
        """The rows as arrays, a few at a time where they are copied, or are images, which grow when decoded."""
        size = self._batch_size if drawn.batches is None else drawn.batches.most_rows
        for begin, end in pairwise([0, *self._ends(drawn)]):
            part = drawn.rows(begin, end)
            error: Exception | None = None
            kept: Array | None = None
            while True:
                try:
                    columns = self._columns(part if kept is None else part.take(kept), kept, size)
                    break
                except RowFault as fault:
                    failure: RowFault | None = fault
                    if kept is not None:
                        failure = fault.renumber(int(kept[fault.row]))
                    elif rows.goes_on:
                        kept, failure = self._fitting(rows, part, size)
                    if failure is not None:  # again, with the rows before it
                        error = rows.row_error(part, failure)
                        part = part.slice(0, failure.row)
                        kept = None if kept is None else kept[kept < failure.row]
            is_last = begin + len(part) == len(drawn)
            is_end = drawn.ends_epoch and is_last and error is None
            yield ArrayChunk(
                rows=len(part),
                columns=columns,
                state=drawn.state,
                begin=begin,
                error=error,
                ends_epoch=is_end,
                kept=kept,
                batches=drawn.batches,
            )
            if error is not None:
                return

    def _columns(self, rows: NumberedBatch, places: Array | None, size: int) -> list[ColumnArrays]:
        """The arrays of rows, which have these positions in batches of `size` if others are left out."""
        budget = ArrayBudget(self._options.limits.expansion_bytes, rows.row_bytes, size, places)
        return self._representation.represent([rows.rows], budget)

    def _fitting(self, rows: EpochReader, part: NumberedBatch, size: int) -> tuple[Array, RowFault | None]:
        """The indices of the rows that arrays can hold, and the fault of one that may not be left out."""

        def make(begin: int, end: int) -> Array:
            places = np.arange(begin, end)
            self._columns(part.slice(begin, end), places, size)
            return places

        kept = [np.empty(0, np.int64)]
        for _, _, places in fitting_parts(len(part), make, partial(rows.leave_out, part)):
            if isinstance(places, RowFault):
                return np.concatenate(kept), places
            kept.append(places)
        return np.concatenate(kept), None
