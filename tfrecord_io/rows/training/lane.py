"""Read a part of an epoch: its rows that are held, and the draws from its shuffle buffer.

Tests: tests/laws/test_order_laws.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise

import numpy as np

from tfrecord_io.bytes import Array, get_engine
from tfrecord_io.columns import offsets_of
from tfrecord_io.rows.training.batching import REFILL_BYTES, DrawState
from tfrecord_io.rows.training.epochs import EpochReader, JoinedBatches, NumberedBatch, RowSlice
from tfrecord_io.rows.training.iterator_state import IteratorPosition
from tfrecord_io.rows.training.shuffle_buffer import drain, random_numbers

_NO_DRAWS = np.empty(0)
# Bytes that are read at once: more than for one lane, as each costs some calls, and as there are never more than these
# bytes of new rows, where chunks for one lane end somewhere beyond its bytes.
_MOST_REFILL_BYTES = 2 * REFILL_BYTES
_SKIPPED = 1 << 14  # rows drawn at a time that were delivered before


class Lane:
    """A part of an epoch that is being read, from row `drawn` of its order on."""

    def __init__(self, rows: EpochReader, position: IteratorPosition, buffer_size: int, seed: int, part: int) -> None:
        self.rows, self.drawn, self.epoch = rows, position.delivered, position.epoch
        self.random = random_numbers(seed, position.epoch, part, position.delivered)
        self._size = buffer_size
        self.held = list(map(self._add_reader, rows.resume(position)[0]))
        self.count = sum(held.rows for held in self.held)  # rows held
        self.ended = False  # True if all rows are held
        self.fresh = 0.0  # bytes read since the last draws
        self.row_bytes = 0.0  # of the last rows read
        self.following = position.next  # number of the row after those held
        self._pools = iter(rows)

    @property
    def buffered(self) -> int:
        """Number of rows in the shuffle buffer, which are the first ones held."""
        return min(self._size, self.count)

    @property
    def available(self) -> int:
        """Number of rows that can be drawn now."""
        return self.count if self.ended else max(0, self.count - self._size)

    @property
    def end(self) -> int | None:
        """Number of rows of the part; None as long as they are not read."""
        return self.drawn + self.count if self.ended else None

    @property
    def failed(self) -> bool:
        """True if an error ended the rows."""
        return self.ended and self.rows.failed

    def ask(self, wanted: int) -> None:
        """Announce that `fill` will be called with so many rows."""
        if not self.ended:
            self.rows.ask(self._size + wanted - self.count)

    def fill(self, wanted: int) -> None:
        """Read until so many rows can be drawn, or none is left."""
        # The shuffle buffer is not kept back for rows that do not come: the last draws are made at once.
        while (self.available < wanted or self.rows.is_at_end) and not self.ended:
            pool = next(self._pools, None)
            self.following = self.rows.next
            if pool is None:
                self.ended = True
            elif len(pool):
                self.held.append(self._add_reader(pool))
                size = float(pool.facts.row_bytes.sum())
                self.count += len(pool)
                self.fresh += size
                self.row_bytes = size / len(pool)

    def _add_reader(self, pool: NumberedBatch) -> RowSlice:
        """Add their reader to rows; those of a mixture, or of several parts, have it."""
        if not pool.facts.origins:
            origins = (np.full(len(pool), id(self.rows)),)
            pool = pool.replace_facts(origins=origins, readers={id(self.rows): self.rows})
        return RowSlice(pool.whole or pool, pool.first, pool.first + len(pool))

    def take(self, rows: int) -> list[RowSlice]:
        """Take the first rows of those held."""
        taken = list[RowSlice]()
        while rows:
            batch, begin, end = self.held[0]
            cut = min(begin + rows, end)
            taken.append(RowSlice(batch, begin, cut))
            rows -= cut - begin
            if cut == end:
                del self.held[0]
            else:
                self.held[0] = RowSlice(batch, cut, end)
        return taken

    def skip(self, until: int) -> None:
        """Draw the rows before row `until` of the order, of which there may be fewer."""
        while self.drawn < until:
            self.fill(min(until - self.drawn, _SKIPPED))
            if not (count := min(self.available, until - self.drawn)):
                return
            LaneDraws([self], [count])


def fill_lanes(wanted: Sequence[tuple[Lane, int]]) -> None:
    """Fill several lanes at once, each until its wanted number of rows can be drawn, or it has ended."""
    for lane, rows in wanted:
        lane.ask(rows)
    for lane, rows in wanted:
        lane.fill(rows)


def rows_at_once(lanes: Mapping[int, Lane]) -> int:
    """Number of rows of about _MOST_REFILL_BYTES, by the rows that the lanes read last."""
    row_bytes = max((lane.row_bytes for lane in lanes.values()), default=0)
    return int(_MOST_REFILL_BYTES / max(row_bytes, 1))


class LaneDraws:
    """Rows drawn of several lanes.

    joined
        The rows in the shuffle buffers of all lanes, one after the other, then those that followed.
    order
        int64: the rows drawn of them, lane after lane.
    """

    def __init__(self, lanes: Sequence[Lane], counts: Sequence[int]) -> None:
        """Draw `counts` of rows of some lanes, which keep the others."""
        held, sizes = np.array([lane.count for lane in lanes]), np.array([lane.buffered for lane in lanes])
        self.counts, self._sizes = counts, sizes
        drained = np.maximum(0, sizes + counts - held)
        exchanged = counts - drained
        buffers = [lane.take(size) for lane, size in zip(lanes, sizes.tolist(), strict=True)]
        following = [lane.take(count) for lane, count in zip(lanes, exchanged.tolist(), strict=True)]
        self.joined = JoinedBatches.of_slices([*chain.from_iterable(buffers), *chain.from_iterable(following)])
        self._slots, self._bounds = offsets_of(sizes), offsets_of(exchanged)
        self._before = [(lane.epoch, lane.drawn) for lane in lanes]
        self._next = [
            int(lane.held[0].batch.numbers[lane.held[0].begin]) if lane.held else lane.following for lane in lanes
        ]
        self._draws = [
            lane.random.random(n if size else 0)
            for lane, n, size in zip(lanes, exchanged.tolist(), sizes.tolist(), strict=True)
        ]
        self._drain_draws = [lane.random.random(n) if n else _NO_DRAWS for lane, n in zip(lanes, drained, strict=True)]
        self.order, left, ends = self._exchange()
        kept = self.joined.take(left)
        for lane, count, (begin, end) in zip(lanes, counts, pairwise(ends), strict=True):
            lane.drawn += count
            lane.count -= count
            lane.fresh = 0
            if begin < end:
                lane.held.insert(0, RowSlice(kept, begin, end))

    def _exchange(self) -> tuple[Array, Array, list[int]]:
        """The rows drawn of each lane, and those left in the buffers, and where those of each lane begin and end."""
        if self._slots[-1]:
            drawn, left = get_engine().exchange(self._draws, self._sizes)
        else:
            drawn, left = np.arange(len(self.joined)), np.arange(0)
        if not any(map(len, self._drain_draws)):
            return drawn, left, self._slots.tolist()
        of_lanes, left_of_lanes = np.split(drawn, self._bounds[1:-1]), np.split(left, self._slots[1:-1])
        for lane, draws in enumerate(self._drain_draws):
            emptied, remaining = drain(draws, len(left_of_lanes[lane]))
            of_lanes[lane] = np.concatenate([of_lanes[lane], left_of_lanes[lane][emptied]])
            left_of_lanes[lane] = left_of_lanes[lane][remaining]
        ends = offsets_of(np.array([*map(len, left_of_lanes)])).tolist()
        return np.concatenate(of_lanes), np.concatenate(left_of_lanes), ends

    def position(self, lane: int, row: int) -> IteratorPosition:
        """Position in a lane once the rows before `row` of its order are delivered, or all that were drawn."""
        numbers, slots = self.joined.numbers, int(self._slots[-1])
        (first, end), (begin, stop) = self._slots[lane : lane + 2], self._bounds[lane : lane + 2] + slots
        epoch, drawn = self._before[lane]
        state = DrawState(
            epoch,
            drawn,
            numbers=np.concatenate([numbers[first:end], numbers[begin:stop]]),
            next=self._next[lane],
            buffer_size=int(self._sizes[lane]),
            exchange_draws=self._draws[lane],
            drain_draws=self._drain_draws[lane],
        )
        return state.position(min(max(row - drawn, 0), self.counts[lane]))
