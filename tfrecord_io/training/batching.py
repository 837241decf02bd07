"""From the records of epochs to rows in the order they are given in: straight, or through a shuffle buffer.

Work is done on chunks of many batches; where a chunk ends changes nothing about the batches.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrecord_io.arrays.representation import ColumnArrays, TableRepresentation
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.options import IterOptions
from tfrecord_io.training.checkpoint import Position
from tfrecord_io.training.epochs import Epochs, Numbered, Stream
from tfrecord_io.training.row_pool import Pool
from tfrecord_io.training.shuffle import Draws, drain, exchange

_SHARE = 4  # of a large buffer, what is read before it is drawn from again: each time the whole buffer is copied
_IMAGES = 64  # rows that are decoded at a time


@dataclass(slots=True)
class Moment:
    """A pool before a chunk was drawn from it, and the draws: what any position in the chunk follows from."""

    epoch: int
    given: int  # records of the epoch before the chunk
    numbers: Array  # of the pool: the shuffle buffer, then what comes next
    next: int  # number of the record behind the pool
    size: int = 0  # of the shuffle buffer; 0: none
    exchanged: Array = field(default_factory=lambda: np.empty(0))
    drained: Array = field(default_factory=lambda: np.empty(0))

    def after(self, rows: int) -> Position:
        """The position when so many rows of the chunk have been given."""
        taken = min(rows, len(self.exchanged)) if self.size else rows
        buffer = self.numbers[: self.size]
        if taken and self.size:
            buffer = self.numbers[exchange(self.exchanged[:taken], self.size)[1]]
        if rows > taken:
            buffer = buffer[drain(self.drained[: rows - taken], len(buffer))[1]]
        come = self.size + taken
        following = int(self.numbers[come]) if come < len(self.numbers) else self.next
        return Position(self.epoch, self.given + rows, following, buffer.tolist())


@dataclass(slots=True)
class Chunk:
    """Rows of many batches, in the order they are given in."""

    rows: int
    columns: list[ColumnArrays]
    moment: Moment
    before: int = 0  # rows of the moment's draws that earlier chunks gave
    error: Exception | None = None  # to be told behind these rows
    ends_epoch: bool = False

    def position(self, rows: int) -> Position:
        """Where one stands when so many of the rows have been given."""
        if self.ends_epoch and rows == self.rows:
            return Position(self.moment.epoch + 1, 0, 0)
        return self.moment.after(self.before + rows)


class Batching:
    """Makes the chunks of all epochs.

    Parameters
    ----------
    epochs : Epochs
    forms : TableRepresentation
    options : IterOptions
    seed : int
    """

    def __init__(self, epochs: Epochs, forms: TableRepresentation, options: IterOptions, seed: int) -> None:
        self._epochs = epochs
        self._forms = forms
        self._size = options.shuffle_buffer
        self._batch = options.batch_size
        self._drop_last = options.drop_last
        self._last = options.epochs
        self._seed, self._worker = seed, (options.worker or (0, 1))[0]

    def chunks(self, position: Position) -> Generator[Chunk]:
        """All chunks from a position on."""
        while self._last is None or position.epoch < self._last:
            rows = 0
            stream = self._epochs.open(position.epoch, max(self._epochs.first, min([position.next, *position.buffer])))
            try:
                for pool, moment, ends in self._drawn(stream, position):
                    for chunk in self._settled(stream, pool, moment, ends):
                        rows += chunk.rows
                        yield chunk
                        if chunk.error is not None:
                            return
            finally:
                stream.close()
            if stream.reader.report.stopped is not None or (not rows and not position.given):
                return
            position = Position(position.epoch + 1, 0, 0)

    def _drawn(self, stream: Stream, position: Position) -> Iterator[tuple[Pool, Moment, bool]]:
        """Rows in the order they are given in, whole batches except at the end, and whether the epoch ends with them."""
        source = _Source(stream)
        buffer = source.resume(position)
        yield from self._shuffled(source, position, buffer) if self._size else self._straight(source, position)
        source.check()

    def _straight(self, source: _Source, position: Position) -> Iterator[tuple[Pool, Moment, bool]]:
        given = position.given
        held: list[Numbered] = []
        for part in source:
            held.append(part)
            rows = sum(len(numbers) for numbers, _ in held)
            if rows < self._batch:
                continue
            if len(held) > 1:  # complete one batch, so that the rest need not be copied
                numbers, batch = held.pop()
                missing = self._batch - (rows - len(numbers))
                pool = Pool.of([*held, (numbers[:missing], batch.slice(0, missing))])
                following = int(numbers[missing]) if missing < len(numbers) else source.next
                yield pool, Moment(position.epoch, given, pool.numbers, following), False
                given += len(pool)
                held = [(numbers[missing:], batch.slice(missing))]
                rows = len(numbers) - missing
            pool, whole = Pool(*held.pop()), rows // self._batch * self._batch
            if whole:
                yield pool.cut(0, whole), Moment(position.epoch, given, pool.numbers, source.next), False
                given += whole
            if whole < rows:
                rest = pool.cut(whole, rows)
                held.append((rest.numbers, rest.rows))
        if held and not self._drop_last:
            pool = Pool.of(held)
            yield pool, Moment(position.epoch, given, pool.numbers, source.next), not source.failed

    def _shuffled(
        self, source: _Source, position: Position, buffer: list[Numbered]
    ) -> Iterator[tuple[Pool, Moment, bool]]:
        size, given = self._size, position.given
        draws = Draws(self._seed, position.epoch, self._worker, given)
        held = buffer
        rows = sum(len(numbers) for numbers, _ in held)
        for part in source:
            held.append(part)
            rows += len(part[0])
            if rows - size < max(self._batch, size // _SHARE):
                continue
            pool = Pool.of(held)
            held.clear()
            count = (rows - size) // self._batch * self._batch
            numbers = draws.take(count)
            places, left = exchange(numbers, size)
            yield pool.take(places), Moment(position.epoch, given, pool.numbers, source.next, size, numbers), False
            rest = pool.take(np.concatenate([left, np.arange(size + count, rows)]))
            del pool
            held.append((rest.numbers, rest.rows))
            given, rows = given + count, rows - count
        if rows:
            pool, moment = self._rest(
                Pool.of(held), draws, Moment(position.epoch, given, np.empty(0, np.int64), source.next)
            )
            yield pool, moment, not source.failed

    def _rest(self, pool: Pool, draws: Draws, moment: Moment) -> tuple[Pool, Moment]:
        """What is left when no record comes any more."""
        size = min(self._size, len(pool))
        moment.numbers, moment.size = pool.numbers, size
        moment.exchanged = draws.take(len(pool) - size)
        places, buffer = exchange(moment.exchanged, size)
        moment.drained = draws.take(size)
        places = np.concatenate([places, buffer[drain(moment.drained, size)[0]]])
        if self._drop_last:
            places = places[: len(places) // self._batch * self._batch]
        return pool.take(places), moment

    def _settled(self, stream: Stream, pool: Pool, moment: Moment, ends: bool) -> Iterator[Chunk]:
        """The rows in their form; of images, which grow when they are decoded, few at a time."""
        piece = max(1, _IMAGES // self._batch) * self._batch if self._forms.has_images else max(len(pool), 1)
        for begin in range(0, len(pool), piece):
            part = pool.cut(begin, min(begin + piece, len(pool)))
            rows, error = len(part), None
            while True:
                try:
                    columns = self._forms.represent([part.cut(0, rows).rows])
                    break
                except RowFault as fault:  # once more, without the rows from there on
                    origin = stream.origin(int(part.numbers[fault.row]))
                    rows, error = fault.row, fault.to_error(*stream.reader.origins.of(origin))
                    error.__cause__ = fault.__cause__
            last = begin + rows == len(pool)
            yield Chunk(rows, columns, moment, begin, error, ends and last and error is None)
            if error is not None:
                return


class _Source:
    """The rows of a stream; an error waits until the rows before it have been given."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._rows: Iterator[Any] = iter(stream)
        self._error: Exception | None = None
        self._begun: list[Numbered] = []

    @property
    def next(self) -> int:
        """Number of the record behind those given."""
        return self._stream.next

    @property
    def failed(self) -> bool:
        """Whether an error waits, or ended the reading early."""
        return self._error is not None or self._stream.reader.report.stopped is not None

    def __iter__(self) -> Iterator[Numbered]:
        yield from self._begun
        try:
            yield from self._rows
        except Exception as error:
            self._error = error

    def check(self) -> None:
        """Raise the error that waits."""
        if self._error is not None:
            raise self._error

    def resume(self, position: Position) -> list[Numbered]:
        """Pass over the records that have been given; those in the buffer come back, in its order."""
        if not position.buffer:
            return []
        buffer = np.array(position.buffer, np.int64)
        found: list[Numbered] = []
        for numbers, batch in self._rows:
            early = int(np.searchsorted(numbers, position.next))
            wanted = np.flatnonzero(np.isin(numbers[:early], buffer))
            if len(wanted):
                part = Pool(numbers, batch).take(wanted)
                found.append((part.numbers, part.rows))
            if early < len(numbers):
                self._begun = [(numbers[early:], batch.slice(early))]
                break
        pool = Pool.of(found) if found else None
        if pool is None or len(pool) != len(buffer):
            raise ValueError("the state does not fit the files: they have fewer records than it says")
        ordered = pool.take(np.argsort(np.argsort(buffer, kind="stable"), kind="stable"))
        return [(ordered.numbers, ordered.rows)]
