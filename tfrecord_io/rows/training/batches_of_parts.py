"""Batches that parts of an epoch make by the lengths of lists (`bucket_by`, `pack`), in the steps of one worker.

Tests: tests/laws/test_order_laws.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tfrecord_io.rows.training.batching import ArrayChunk, Batching
from tfrecord_io.rows.training.epochs import EpochReader
from tfrecord_io.rows.training.iterator_state import IteratorPosition
from tfrecord_io.rows.training.lane_batching import BatchProgress, LaneBatching, LaneReader
from tfrecord_io.rows.training.order import OrderPosition


class _PartsReader(LaneReader):
    """The parts of an epoch that make batches by themselves, as one reader."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: list[PartBatches] = []

    @property
    def rows_found(self) -> int:
        return sum(reader.count for reader in self._rows())

    def _rows(self) -> list[EpochReader]:
        return [stream.batching.reader for stream in self.streams if stream.batching.reader is not None]

    @property
    def failed(self) -> bool:
        return any(rows.failed for rows in self._rows())

    def close(self) -> None:
        for stream in self.streams:
            stream.close()


class PartBatching(LaneBatching):
    """Turns the rows of all epochs into batches that parts make, of the steps of one worker."""

    _lanes: _PartsReader

    def _open_reader(self) -> LaneReader:
        return _PartsReader()

    def _warn_of_damage(self, lanes: LaneReader) -> None:
        """Parts have warned."""

    def _epoch_chunks(self, position: OrderPosition) -> Iterator[ArrayChunk]:
        return self._batches_of_all_parts(position) if self._steps.reads_all else self._batches_of_parts(position)

    def _batches_of_parts(self, position: OrderPosition) -> Iterator[ArrayChunk]:
        """Batches that parts make by the lengths of lists, one in each chunk: those of the steps of this worker.

        A step has a batch for each rank. A process alone goes on where a part has none any more.
        """
        order, seat = self._order, self._seat
        streams: dict[int, PartBatches] = {}
        own_parts = {*self._steps.own_parts(position).tolist()}
        ended = set[int]()
        marks = self._resumed_marks()
        while ended < own_parts:
            after, ahead = order.after_steps(position, self._steps.size, 1), position.ahead
            position, turn, begin = replace(after, ahead=(ahead - 1) % seat.workers), position.turn, position.taken
            if ahead:
                continue
            (part,), (row,) = (
                places_found[0] for places_found in self._steps.places(turn, begin[turn], np.zeros(1, np.int64))
            )
            if int(part) in ended:
                continue
            if part not in streams:
                streams[part] = self._open_batches(int(part), int(row))
            stream = streams[part]
            if (chunk := stream.batch(int(row))) is None:
                ended.add(int(part))
                continue
            marks[int(part)] = stream.number, stream.position()
            yield _BatchOfPart.from_stream(stream, chunk, self._batch_progress(position, marks))

    def _batches_of_all_parts(self, position: OrderPosition) -> Iterator[ArrayChunk]:
        """Batches that parts make, of a worker that reads all parts, as lanes do not divide the ranks.

        A step has the next batches of all parts, one for each rank: parts that have ended are left out.
        """
        order, seat = self._order, self._seat
        streams: dict[int, PartBatches] = {}
        ended = set[int]()
        marks = self._resumed_marks()
        while len(ended) < order.parts:
            batch, count, positions = None, 0, list(position.taken)
            for turn in ((position.turn + ahead) % order.turns for ahead in range(order.turns)):
                of_turn = range(turn * order.lanes, (turn + 1) * order.lanes)
                while count < seat.ranks and not ended.issuperset(of_turn):
                    row, lane = divmod(positions[turn], order.lanes)
                    part = of_turn[lane]
                    if part not in streams:
                        streams[part] = self._open_batches(part, row)
                    stream = streams[part]
                    positions[turn] += 1
                    if part in ended or (chunk := stream.batch(row)) is None:
                        ended.add(part)
                        continue
                    marks[part] = stream.number, stream.position()
                    is_failed = stream.error() is not None
                    if is_failed or (count == seat.rank and not position.ahead):
                        batch = _BatchOfPart.from_stream(stream, chunk, self._batch_progress(position, marks))
                    count = seat.ranks if is_failed else count + 1
            after = replace(position, turn=(position.turn + 1) % order.turns, taken=tuple(positions), marks={})
            position = replace(after, ahead=(position.ahead - 1) % seat.workers)
            if batch is not None:
                batch.state = self._batch_progress(position, marks)  # once all ranks have taken theirs
                yield batch

    def _resumed_marks(self) -> dict[int, tuple[int, Callable[[], Any]]]:
        """The marks of the position from which the epoch goes on, as those of batches."""
        return {part: (number, partial(replace, place)) for part, (number, place) in self._marks.items()}

    def _batch_progress(
        self, position: OrderPosition, marks: Mapping[int, tuple[int, Callable[[], Any]]]
    ) -> BatchProgress:
        """The position after a batch of this worker."""
        return BatchProgress(self._order, replace(position, ahead=self._seat.workers - 1, marks={}), dict(marks))

    def _open_batches(self, part: int, row: int) -> PartBatches:
        """The batches of a part, from its mark or its start on."""
        first, mark = self._marks.get(part, (0, IteratorPosition(self._epoch, 0, 0)))
        if first > row:
            first, mark = 0, IteratorPosition(self._epoch, 0, 0)
        options = self._of_parts.changed(epochs=self._epoch + 1, shuffle_buffer=self._lane_buffer)
        batching = Batching(self._parts[part], self._representation, options, self._seed, stream=part)
        stream = PartBatches(batching, mark, first, options.batch_size)
        self._lanes.streams.append(stream)
        return stream


@dataclass(slots=True)
class _BatchOfPart(ArrayChunk):
    """One batch of a chunk of a part."""

    inner: ArrayChunk | None = None
    first: int = 0  # row of the chunk

    @classmethod
    def from_stream(cls, stream: PartBatches, chunk: ArrayChunk, progress: BatchProgress) -> _BatchOfPart:
        """The last batch of a stream."""
        rows, kept = (1 if chunk.rows else 0), (np.empty(0, np.int64) if stream.is_left_out else None)
        return cls(rows, [], progress, error=stream.error(), kept=kept, inner=chunk, first=stream.first)

    def batch(self, begin: int, size: int) -> tuple[int, dict[str, Any] | None]:
        """See `ArrayChunk.batch`."""
        assert self.inner is not None
        return 1, self.inner.batch(self.first, size)[1]


class PartBatches:
    """The batches of a part, one after the other, from number `number` on."""

    def __init__(self, batching: Batching, position: IteratorPosition, number: int, size: int) -> None:
        self.batching, self.number, self._size = batching, number, size
        self._chunks = batching.chunks(position)
        self._chunk: ArrayChunk | None = None
        self.first = self._end = 0  # rows of the last batch, in the chunk

    def batch(self, number: int) -> ArrayChunk | None:
        """The chunk that has the batch of a number, from row `first` on; None if there are fewer batches.

        A chunk without rows has the error that ended the part.
        """
        while True:
            while self._chunk is None or self._end == self._chunk.rows:
                if (chunk := next(self._chunks, None)) is None:
                    return None
                self._chunk, self.first, self._end = chunk, 0, 0
                if not chunk.rows:
                    return chunk
            self.first, (self._end, _) = self._end, self._chunk.batch(self._end, self._size)
            self.number += 1
            if self.number > number or self.error() is not None:
                return self._chunk

    @property
    def is_left_out(self) -> bool:
        """True if all rows of the last batch were left out."""
        kept = None if self._chunk is None else self._chunk.kept
        return kept is not None and bool(kept.searchsorted(self.first) == kept.searchsorted(self._end))

    def error(self) -> Exception | None:
        """The error to be raised after the last batch."""
        assert self._chunk is not None
        return self._chunk.error if self._end == self._chunk.rows else None

    def position(self) -> Callable[[], Any]:
        """A function that computes the position after the last batch."""
        assert self._chunk is not None
        return partial(replace(self._chunk, columns=[]).position, self._end)

    def close(self) -> None:
        """End reading."""
        self._chunks.close()
