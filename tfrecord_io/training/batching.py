"""From the rows of epochs to chunks of many batches: in the order of the files, or through a shuffle buffer.

Where a chunk ends does not change the batches.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import numpy as np

from tfrecord_io.arrays.array_budget import ArrayBudget
from tfrecord_io.arrays.representation import ColumnArrays, TableRepresentation
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.options import IterOptions
from tfrecord_io.read.fitting_parts import fitting_parts
from tfrecord_io.training.checkpoint import IteratorPosition
from tfrecord_io.training.epochs import EpochRows, Epochs, RowPool
from tfrecord_io.training.mixed_rows import MixedEpochs
from tfrecord_io.training.shuffle_buffer import drain, exchange, random_numbers

_REFILL = 4  # a large buffer is drawn from again once 1/4 of its size has been read: each time it is copied
_IMAGES = 64  # rows decoded at a time


@dataclass(slots=True)
class PoolState:
    """A pool before rows were drawn from it, and the random numbers drawn: they determine any position in between.

    Attributes
    ----------
    delivered : int
        Records of the epoch that were delivered before.
    numbers : int64 ndarray
        Of the rows of the pool: first those of the shuffle buffer, then the next ones.
    next : int
        Number of the record after the pool.
    buffer_size : int
        0 without a shuffle buffer.
    exchange_draws, drain_draws : float64 ndarray
        Random numbers for `exchange` and `drain`.
    """

    epoch: int
    delivered: int
    numbers: Array
    next: int
    buffer_size: int = 0
    exchange_draws: Array = field(default_factory=lambda: np.empty(0))
    drain_draws: Array = field(default_factory=lambda: np.empty(0))

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
    """Rows of many batches as arrays, in the order of delivery.

    Attributes
    ----------
    rows : int
        Drawn from the pool: batches are made of so many, and are shorter where some of them were left out.
    begin : int
        Index of the first row among the rows drawn from the pool.
    error : Exception or None
        To be raised after these rows.
    kept : int64 ndarray, optional
        The rows that `columns` have, where others were left out.
    """

    rows: int
    columns: list[ColumnArrays]
    state: PoolState
    begin: int = 0
    error: Exception | None = None
    ends_epoch: bool = False
    kept: Array | None = None

    @property
    def count(self) -> int:
        """The number of rows of `columns`."""
        return self.rows if self.kept is None else len(self.kept)

    def bounds(self, begin: int, end: int) -> tuple[int, int]:
        """The bounds in `columns` of the rows [begin, end)."""
        if self.kept is None:
            return begin, end
        first, last = self.kept.searchsorted([begin, end]).tolist()
        return first, last

    def position(self, rows: int) -> IteratorPosition:
        """The position after `rows` rows of the chunk have been delivered."""
        if self.ends_epoch and rows == self.rows:
            return IteratorPosition(self.state.epoch + 1, 0, 0)
        return self.state.position(self.begin + rows)


class Batching:
    """Makes the chunks of all epochs.

    Parameters
    ----------
    epochs : Epochs or MixedEpochs
    representation : TableRepresentation
    options : IterOptions
    seed : int
    """

    def __init__(
        self, epochs: Epochs | MixedEpochs, representation: TableRepresentation, options: IterOptions, seed: int
    ) -> None:
        self._epochs = epochs
        self._representation = representation
        self._buffer_size = options.shuffle_buffer
        self._batch_size = options.batch_size
        self._max_expansion = options.max_expansion
        self._drop_last = options.drop_last
        self._epoch_count = options.epochs
        self._seed, self._worker = seed, (options.worker or (0, 1))[0]

    def chunks(self, position: IteratorPosition) -> Generator[ArrayChunk]:
        """All chunks from a position on."""
        while self._epoch_count is None or position.epoch < self._epoch_count:
            count = 0
            self._epochs.rows = rows = self._epochs.open(position)
            try:
                for pool, state, ends_epoch in self._drawn(rows, position):
                    for chunk in self._represented(rows, pool, state, ends_epoch):
                        count += chunk.count
                        yield chunk
                        if chunk.error is not None:
                            return
            finally:
                rows.close()
            self._epochs.warn_of_damage(rows)
            if rows.failed or (not count and not position.delivered):
                return
            position = IteratorPosition(position.epoch + 1, 0, 0)

    def _drawn(self, rows: EpochRows, position: IteratorPosition) -> Iterator[tuple[RowPool, PoolState, bool]]:
        """Rows in the order of delivery, whole batches except at the end, and whether the epoch ends with them."""
        held = rows.resume(position)
        yield from self._shuffled(rows, position, held) if self._buffer_size else self._in_order(rows, position)
        rows.raise_error()

    def _in_order(self, rows: EpochRows, position: IteratorPosition) -> Iterator[tuple[RowPool, PoolState, bool]]:
        epoch, delivered = position.epoch, position.delivered
        held: list[RowPool] = []
        for pool in rows:
            missing = self._batch_size - sum(map(len, held))
            if len(pool) < missing:
                held.append(pool)
                continue
            if held:  # complete one batch, so that the remaining rows need not be copied
                first = RowPool.concat([*held, pool.slice(0, missing)])
                pool = pool.slice(missing)
                following = int(pool.numbers[0]) if len(pool) else rows.next
                yield first, PoolState(epoch, delivered, first.numbers, following), False
                delivered += len(first)
            whole = len(pool) // self._batch_size * self._batch_size
            if whole:
                yield pool.slice(0, whole), PoolState(epoch, delivered, pool.numbers, rows.next), False
                delivered += whole
            held = [pool.slice(whole)] if whole < len(pool) else []
        if held and not self._drop_last:
            pool = RowPool.concat(held)
            yield pool, PoolState(epoch, delivered, pool.numbers, rows.next), not rows.failed

    def _shuffled(
        self, rows: EpochRows, position: IteratorPosition, held: list[RowPool]
    ) -> Iterator[tuple[RowPool, PoolState, bool]]:
        size, delivered = self._buffer_size, position.delivered
        random = random_numbers(self._seed, position.epoch, self._worker, delivered)
        count = sum(map(len, held))
        for part in rows:
            held.append(part)
            count += len(part)
            if count - size < max(self._batch_size, size // _REFILL):
                continue
            pool = RowPool.concat(held)
            held.clear()
            ready = (count - size) // self._batch_size * self._batch_size
            draws = random.random(ready)
            drawn, buffer = exchange(draws, size)
            yield pool.take(drawn), PoolState(position.epoch, delivered, pool.numbers, rows.next, size, draws), False
            held.append(pool.take(np.concatenate([buffer, np.arange(size + ready, count)])))
            del pool
            delivered, count = delivered + ready, count - ready
        if count:
            pool = RowPool.concat(held)
            size = min(size, count)
            draws, drain_draws = random.random(count - size), random.random(size)
            drawn, buffer = exchange(draws, size)
            drawn = np.concatenate([drawn, buffer[drain(drain_draws, size)[0]]])
            if self._drop_last:
                drawn = drawn[: count // self._batch_size * self._batch_size]
            state = PoolState(position.epoch, delivered, pool.numbers, rows.next, size, draws, drain_draws)
            yield pool.take(drawn), state, not rows.failed

    def _represented(self, rows: EpochRows, pool: RowPool, state: PoolState, ends_epoch: bool) -> Iterator[ArrayChunk]:
        """The rows as arrays; those with images, which grow when decoded, a few at a time."""
        step = max(len(pool), 1)
        if self._representation.has_images:
            step = max(1, _IMAGES // self._batch_size) * self._batch_size
        for begin in range(0, len(pool), step):
            part = pool.slice(begin, begin + step)
            error: Exception | None = None
            kept: Array | None = None
            while True:
                try:
                    columns = self._columns(part if kept is None else part.take(kept), kept)
                    break
                except RowFault as fault:
                    failure: RowFault | None = fault
                    if kept is not None:
                        failure = fault.at(int(kept[fault.row]))
                    elif rows.goes_on:
                        kept, failure = self._fitting(rows, part)
                    if failure is not None:  # again, with the rows before it
                        error = rows.row_error(failure.at(int(part.numbers[failure.row])))
                        part = part.slice(0, failure.row)
                        kept = None if kept is None else kept[kept < failure.row]
            is_last = begin + len(part) == len(pool)
            ends = ends_epoch and is_last and error is None
            yield ArrayChunk(len(part), columns, state, begin, error, ends, kept)
            if error is not None:
                return

    def _columns(self, rows: RowPool, places: Array | None) -> list[ColumnArrays]:
        """The arrays of rows, which have these places in their batches if others are left out."""
        budget = ArrayBudget(self._max_expansion, rows.row_bytes, self._batch_size, places)
        return self._representation.represent([rows.rows], budget)

    def _fitting(self, rows: EpochRows, part: RowPool) -> tuple[Array, RowFault | None]:
        """The indices of the rows that arrays can hold, and the fault of one that may not be left out."""

        def make(begin: int, end: int) -> Array | RowFault:
            places = np.arange(begin, end)
            try:
                self._columns(part.slice(begin, end), places)
            except RowFault as fault:
                return fault
            return places

        def passes(fault: RowFault) -> bool:
            return rows.leave_out(fault.at(int(part.numbers[fault.row])))

        kept = [np.empty(0, np.int64)]
        for _, _, places in fitting_parts(len(part), make, passes):
            if isinstance(places, RowFault):
                return np.concatenate(kept), places
            kept.append(places)
        return np.concatenate(kept), None
