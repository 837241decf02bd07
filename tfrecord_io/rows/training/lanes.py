"""Read the parts of an epoch side by side, through one pipeline, in the order of `rows/training/order.py`.

`Lane` is a part that is being read: its rows that are held, and the draws from its shuffle buffer. `LaneBatching` takes
rows of all lanes for many steps at once, so that many lanes cost as little as one.

Tests: tests/laws/test_order_laws.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from tfrecord_io.bytes import Array, get_engine
from tfrecord_io.columns import RowFault, offsets_of
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.read import ReadReport
from tfrecord_io.rows.arrays.representation import TableRepresentation
from tfrecord_io.rows.training.arrangement import Batches
from tfrecord_io.rows.training.batching import REFILL, REFILL_BYTES, ArrayChunk, Batching, Drawn, DrawState, Progress
from tfrecord_io.rows.training.epochs import EpochReader, Epochs, JoinedBatches, NumberedBatch, RowSlice
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.iterator_state import IteratorPosition
from tfrecord_io.rows.training.mixed_rows import move_reports
from tfrecord_io.rows.training.order import Order, OrderPosition, Seat
from tfrecord_io.rows.training.row_source import RowSource
from tfrecord_io.rows.training.shuffle_buffer import buffer_after, drain, random_numbers

_NO_DRAWS = np.empty(0)
# Times the shuffle buffer, and bytes, that are read at once: more than for one lane, as each costs some calls, and as
# there are never more than these bytes of new rows, where chunks for one lane end somewhere beyond its bytes.
_MOST_REFILL, _MOST_REFILL_BYTES = 8, 2 * REFILL_BYTES
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


def _fill(wanted: Sequence[tuple[Lane, int]]) -> None:
    """Fill several lanes at once, each until its wanted number of rows can be drawn, or it has ended."""
    for lane, rows in wanted:
        lane.ask(rows)
    for lane, rows in wanted:
        lane.fill(rows)


def _rows_at_once(lanes: Mapping[int, Lane]) -> int:
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


class LaneReader(EpochReader):
    """The lanes of an epoch as one reader, for faults and reports."""

    def __init__(self) -> None:
        super().__init__(0)
        self.lanes: dict[int, Lane] = {}
        self.streams: list[_PartBatches] = []  # where parts make batches by themselves
        self._ended = ReadReport()  # of passes over parts of a mixture that have ended

    def _read(self) -> Generator[NumberedBatch]:
        yield from ()  # the rows are read by lanes

    @property
    def rows_found(self) -> int:
        """Number of rows of the lanes until now, which may be those of other workers, too."""
        of_lanes = sum(lane.drawn + lane.count for lane in self.lanes.values())
        return of_lanes + sum(reader.count for reader in self._stream_readers)

    @property
    def _stream_readers(self) -> list[EpochReader]:
        return [stream.batching.reader for stream in self.streams if stream.batching.reader is not None]

    def _rows(self) -> list[EpochReader]:
        return [*(lane.rows for lane in self.lanes.values()), *self._stream_readers]

    def reports(self) -> list[ReadReport]:
        return [self._ended, *(report for rows in self._rows() for report in rows.reports())]

    def readers(self) -> list[Any]:
        return [reader for rows in self._rows() for reader in rows.readers()]

    def origin_in(self, pool: NumberedBatch, fault: RowFault) -> tuple[Any, RowFault]:
        reader, number = pool.facts.origin(fault.row)
        return reader.origin(fault.renumber(number))

    def leave_out(self, pool: NumberedBatch, fault: RowFault) -> bool:
        left_out = super().leave_out(pool, fault)
        reader, _ = pool.facts.origin(fault.row)
        if reader not in self._rows() and reader not in self.readers():
            move_reports(reader, self._ended)
        return left_out

    @property
    def failed(self) -> bool:
        return any(lane.failed for lane in self.lanes.values()) or any(rows.failed for rows in self._stream_readers)

    def raise_error(self) -> None:
        for lane in self.lanes.values():
            lane.rows.raise_error()

    def close(self) -> None:
        for lane in self.lanes.values():
            lane.rows.close()
        for stream in self.streams:
            stream.close()


@dataclass(slots=True)
class StepProgress(Progress):
    """The state before some steps, for the position after any of them."""

    order: Order
    before: OrderPosition
    size: int  # rows of a full step
    seat: Seat
    ends: Array  # int64: where the rows of each step of this worker end
    steps: Array  # int64: the number of each of these steps, from the first one of all workers on
    parts: Sequence[int]  # whose rows were drawn
    draws: LaneDraws
    taken: Sequence[OrderPosition] | None = None  # after each step, where steps are not full

    def end(self) -> OrderPosition:
        return self.order.begin(self.before.epoch + 1, self.seat.worker)

    def position_in(self, batches: Batches | None, rows: int) -> OrderPosition:
        """See `Progress.position_in`."""
        if not rows:
            return self.before
        number = int(self.ends.searchsorted(rows - 1, side="right"))
        if self.taken is None:
            after = self.order.after_steps(self.before, self.size, int(self.steps[number]) + 1)
        else:
            after = self.taken[number]
        marks = dict(self.before.marks)
        for at, part in enumerate(self.parts):
            turn, lane = divmod(part, self.order.lanes)
            row = int(self.order.taken_rows(turn, after.taken[turn])[lane])
            position = self.draws.position(at, row)
            marks[part] = position.delivered, position
        return replace(after, marks=marks, ahead=self.seat.workers - 1)


@dataclass(slots=True)
class _Window:
    """Positions of the rows of some steps of this worker, in their order."""

    parts: Array  # int64: of each row, or of each row of any step
    rows: Array  # int64: in the order of its part; [steps, rows of a step] where each step has the same parts
    sizes: Array  # int64: number of rows of each step
    steps: Array  # int64: see `StepProgress`
    after: OrderPosition  # after all steps, those of other workers included
    taken: Sequence[OrderPosition] | None = None  # see `StepProgress`
    lacks: int | None = None  # the part that ended before the last one of these steps


class _KnownRows(NamedTuple):
    """Rows of a turn that can be drawn, by their positions."""

    at: Array  # int64: positions, relative to the first
    parts: Array  # int64
    rows: Array  # int64: in the order of the part
    end: int  # position up to which rows are known
    ended: bool  # True if no rows follow
    lacks: int  # the part whose rows failed at the end; -1 if none did


class LaneBatching(Batching):
    """Turns the rows of all epochs into chunks of arrays, of the steps of one worker.

    order, seat
        The order of an epoch, and who reads.
    counts
        Counts of the rows by which parts are divided; see `RowSource.parts`.
    """

    def __init__(
        self,
        source: RowSource,
        representation: TableRepresentation,
        options: IterOptions,
        seed: int,
        order: Order,
        seat: Seat,
        counts: Any = None,
    ) -> None:
        from tfrecord_io.read import KnownBoundaries  # for parts only

        self._counts = counts
        self._source, self._order, self._seat = source, order, seat
        self._of_parts = options.changed(worker=None, uneven="keep", parts=None, state=None)
        super().__init__(source.epochs(self._of_parts, seed), representation, options, seed)
        self._step = self._batch_size * seat.ranks  # rows of a full step, of all ranks
        self._reads_all = self._has_gaps(order, seat)
        # Each lane has a part of the shuffle buffer.
        self._lane_buffer = -(-options.shuffle_buffer // order.lanes)
        self._boundaries = KnownBoundaries()  # of byte ranges, which all epochs have in common
        self._lanes = LaneReader()
        self._lacks: int | None = None  # the part whose rows ended too early

    def _has_gaps(self, order: Order, seat: Seat) -> bool:
        """True if a worker may have no row in a step, and rows in a later one, as some lanes have ended.

        It would take the later step at once, and its state would count steps that others have not taken. So it reads
        all lanes, to fill steps with the rows that there are. `plan_order` makes orders without gaps.
        """
        if order.sizes is not None or seat.is_alone:
            return False
        lacks_lanes = order.lanes > self._step if seat.ranks == 1 else self._step % order.lanes != 0
        return lacks_lanes or order.turns not in (1, seat.workers)

    def chunks(self, position: Any) -> Generator[ArrayChunk]:
        """All chunks from a position on; ValueError if the epochs never end, and have no batch of this worker."""
        has_had_batches = position.epoch > 0 or position.delivered > 0  # in this epoch or an earlier one
        while self._options.epochs is None or position.epoch < self._options.epochs:
            count = drawn_rows = 0
            self.reader = self._lanes = lanes = LaneReader()
            with closing(lanes):
                self._epoch, self._marks, self._lacks = position.epoch, position.marks, None
                self._parts = self._parts_of(position.epoch)
                for chunk in self._epoch_chunks(position):
                    drawn_rows += chunk.rows
                    count += chunk.rows if chunk.kept is None else len(chunk.kept)
                    yield chunk
                    if chunk.error is not None:
                        return
            for report in [] if self._options.arranges else lanes.reports():  # else parts have warned
                report.skipped.warn(self.epochs.damage.append)
            if self._lacks is not None:
                return
            has_had_batches = has_had_batches or count > 0
            if not count and not position.delivered and self._options.epochs is None:
                lanes.count = lanes.rows_found if self._order.rows is None else self._order.rows
                if not self._may_have_batches_later(lanes, position.epoch, has_had_batches):
                    if not drawn_rows:  # else a warning says that rows were left out
                        self._refuse_endless(lanes)
                    return
            position = self._order.begin(position.epoch + 1, self._seat.worker)

    def _epoch_chunks(self, position: OrderPosition) -> Iterator[ArrayChunk]:
        """The chunks of one epoch."""
        if not self._options.arranges:
            return self._chunks_of_steps(position)
        return self._batches_of_all_parts(position) if self._reads_all else self._batches_of_parts(position)

    def _epochs_differ(self, reader: EpochReader) -> bool:
        return self._order.parts > 1 or super()._epochs_differ(reader)  # each epoch deals files to parts anew

    def _parts_of(self, epoch: int) -> Sequence[Epochs]:
        """The parts of an epoch."""
        order, counts = self._order, self._counts
        if order.parts == 1 and counts is None:
            return [self.epochs]
        sizes = None if counts is None or order.sizes is None else order.sizes.reshape(-1).tolist()
        parts = self._source.part_epochs(
            self._of_parts,
            self._seed,
            epoch=epoch,
            count=order.parts,
            counts=counts,
            sizes=sizes,
            boundaries=self._boundaries,
        )
        for part in parts:
            part.warn_through(self.epochs)
        return parts

    # Lanes ------------------------------------------------------------------------------------------------------------

    def _open_lane(self, part: int, position: OrderPosition) -> Lane:
        """Open a part at a position: by its mark, or where the shuffle buffer can be computed, else at its start."""
        row = int(self._rows_before(position)[part])
        _, mark = self._marks.get(part, (0, None))
        lane = None
        if mark is not None and mark.delivered <= row:
            lane = self._lane_at(part, mark)
        elif row and self._source.in_sequence and not self._source.selection.is_range:
            lane = self._computed_lane(part, position.epoch, row)
        if lane is None:
            lane = self._lane_at(part, IteratorPosition(position.epoch, 0, 0))
        lane.skip(row)
        self._lanes.lanes[part] = lane
        return lane

    def _lane_at(self, part: int, position: IteratorPosition) -> Lane:
        rows = self._parts[part].open(position)
        return Lane(rows, position, self._lane_buffer, seed=self._seed, part=part)

    def _computed_lane(self, part: int, epoch: int, row: int) -> Lane | None:
        """A lane after `row` rows, whose shuffle buffer is computed; None if it was not full any more."""
        size, sizes = self._lane_buffer, self._order.sizes
        if not size:
            return self._lane_at(part, IteratorPosition(epoch, row, row))
        if sizes is not None and row + size > sizes.flat[part]:
            return None
        buffer = buffer_after(row, size, lambda begin: random_numbers(self._seed, epoch, part, begin))
        try:
            return self._lane_at(part, IteratorPosition(epoch, row, row + size, buffer.tolist()))
        except ValueError:  # there are fewer rows: the buffer holds the last ones
            return None

    def _own_parts(self, position: OrderPosition) -> Array:
        """The parts of all rows that this worker takes, until its steps repeat the same parts: int64."""
        order, workers = self._order, self._seat.workers
        if self._reads_all:
            return np.arange(order.parts)
        period = lcm(order.turns * order.steps_at_once(self._step), workers)
        steps = np.arange(position.ahead, position.ahead + period, workers)
        if (whole := order.whole_steps(position, self._step)) is not None:
            steps = steps[steps < whole]
        return self._places_of_steps(position, steps)[0].reshape(-1)

    def _rows_before(self, position: OrderPosition) -> Array:
        """Number of rows of each part before a position."""
        return np.concatenate([self._order.taken_rows(turn, taken) for turn, taken in enumerate(position.taken)])

    def _refill(self, lanes: dict[int, Lane], position: OrderPosition, least: int, is_first: bool) -> None:
        """Read rows of some lanes, until at least so many after a position can be drawn of each."""
        wanted = max(least, self._lane_buffer // REFILL)
        rows_before = self._rows_before(position)
        _fill([(lane, wanted + int(rows_before[part]) - lane.drawn) for part, lane in lanes.items()])
        if self._lane_buffer and not is_first:
            rows = min(_MOST_REFILL * self._options.shuffle_buffer, _rows_at_once(lanes))
            _fill([(lane, rows // len(lanes)) for lane in lanes.values()])

    # Steps ------------------------------------------------------------------------------------------------------------

    def _chunks_of_steps(self, position: OrderPosition) -> Iterator[ArrayChunk]:
        """Chunks of the steps of an epoch."""
        is_first = True
        while (window := self._next_window(position, is_first)) is not None:
            is_first = False
            drawn = self._draw(window, position)
            error: Exception | None = None
            if drawn is not None:
                for chunk in self._represent_rows(self._lanes, drawn):
                    error = chunk.error
                    yield chunk
                    if error is not None:
                        return
            if self._seat.workers == 1 and self._is_last(window) and not window.sizes[-1]:
                # A rank without a row of the last step has taken the step, too.
                end = _BatchProgress(self._order, self._order.begin(self._epoch + 1, self._seat.worker), {})
                yield ArrayChunk(0, [], end, ends_epoch=True)
            position, self._lacks = window.after, window.lacks
            if window.lacks is not None:
                self._raise_error(window.lacks)
                return

    def _raise_error(self, part: int) -> None:
        """Raise the error that ended a part, or CorruptRecordError if it has fewer rows than were counted."""
        lane = self._lanes.lanes[part]
        lane.rows.raise_error()
        if not lane.failed:
            assert self._order.sizes is not None
            counted, rows = int(self._order.sizes.flat[part]), lane.end
            reason = f"a part of the epoch has {rows} rows, but {counted} were counted"
            raise CorruptRecordError(reason, expected=counted, got=rows, hint="open the files again")

    def _lanes_of(self, parts: Array, position: OrderPosition) -> dict[int, Lane]:
        """The lanes of some parts, opened if they are not."""
        opened = self._lanes.lanes
        return {
            part: opened.get(part) or self._open_lane(part, position)
            for part in np.flatnonzero(np.bincount(parts, minlength=1)).tolist()
        }

    def _next_window(self, position: OrderPosition, is_first: bool) -> _Window | None:
        """The next steps, as many as the lanes have rows for; None after the last one."""
        order, size = self._order, self._step
        whole = order.whole_steps(position, size)
        if whole == 0:
            return self._last_window(position)
        seat, at_once = self._seat, order.steps_at_once(size)
        lanes = self._lanes_of(self._own_parts(position), position)
        period = lcm(order.turns, seat.workers)
        fewest = -(-period // order.turns * size // order.lanes) + 1
        while True:
            self._refill(lanes, position, fewest, is_first)
            rows_at_once = max(_rows_at_once(lanes), self._options.shuffle_buffer // REFILL)
            # The steps of which this worker has so many rows, or at least some rows of each part.
            steps_at_once = max(rows_at_once * seat.workers // self._batch_size, fewest * order.parts // size + period)
            whole = None if whole is None else min(whole, steps_at_once)
            is_filled = order.sizes is None and (seat.is_alone or self._reads_all)
            if is_filled and any(lane.ended for lane in lanes.values()):
                fill = self._filled_window if order.turns == 1 else self._filled_step
                window = fill(position, lanes, steps_at_once)
            else:
                window = self._full_window(position, lanes, whole, at_once=at_once, most=steps_at_once)
            if window is None:
                return None
            of_window = self._lanes_of(window.parts, position)
            if of_window.keys() - lanes.keys():
                lanes |= of_window
            elif window.after != replace(position, marks={}) or window.lacks is not None:
                return window
            else:
                fewest *= 2

    def _places(self, turn: int, begin: int, steps: Array) -> tuple[Array, Array]:
        """Part and row of each row that this rank takes in some steps of a turn: int64 [steps, rows]."""
        order, size = self._order, self._step
        low, high = self._seat.run(size)
        lane_rows, extra = divmod(size, order.lanes)
        end = begin + size * (int(steps[-1]) + 1 if len(steps) else 0)
        if not extra and begin % order.lanes == 0 and order.all_lanes_reach(turn, end):
            lanes, rows = np.divmod(np.arange(low, high), lane_rows)
            rows = begin // order.lanes + steps[:, None] * lane_rows + rows
            return np.broadcast_to(lanes + turn * order.lanes, rows.shape), rows
        lanes, rows = order.places(turn, begin, end)
        by_step = np.argsort(np.arange(end - begin) // size * order.lanes + lanes, kind="stable")
        chosen = by_step.reshape(-1, size)[steps, low:high]
        return lanes[chosen] + turn * order.lanes, rows[chosen]

    def _full_window(
        self, position: OrderPosition, lanes: dict[int, Lane], whole: int | None, *, at_once: int, most: int
    ) -> _Window | None:
        """Full steps: as many as the lanes have rows for. Rows beyond the ends of lanes are left out."""
        order, seat, size = self._order, self._seat, self._step
        ready, last = whole, 0
        for part, lane in lanes.items():
            turn, number = divmod(part, order.lanes)
            first = (turn - position.turn) % order.turns
            row = lane.drawn + lane.available
            at = order.position_of(turn, number, row - lane.ended) - position.taken[turn]
            full = first + max(at, 0) // size * order.turns
            if not lane.ended:
                ready = full if ready is None else min(ready, full)
            elif lane.failed:  # a rank that has rows of the lane lacks one within `at_once` steps
                last = max(last, full + 1 + at_once * order.turns)
            elif at >= 0:
                last = max(last, full + 1)
        if whole is None and all(lane.ended for lane in lanes.values()):
            if not last:
                return None
            ready = last if ready is None else min(ready, last)
        assert ready is not None
        ready = min(ready, most)
        steps = np.arange(position.ahead, ready, seat.workers)
        parts, rows = self._places_of_steps(position, steps)
        sizes = np.full(len(steps), rows.shape[1])
        exist, lacks = self._exist(parts, rows, lanes), None
        if exist is not None:
            short = [part for part, lane in lanes.items() if lane.failed or order.sizes is not None]
            short_rows = np.isin(parts, short) & ~exist
            if short_rows.any():
                last = int(short_rows.any(axis=1).argmax())
                lacks, ready = int(parts[last][short_rows[last]][0]), int(steps[last]) + 1
                parts, rows, steps, exist = (array[: last + 1] for array in (parts, rows, steps, exist))
        after = replace(order.after_steps(position, size, ready), ahead=int((position.ahead - ready) % seat.workers))
        if exist is not None:
            if self._options.drop_last:
                exist &= exist.all(axis=1, keepdims=True)
            parts, rows, sizes = parts[exist], rows[exist], exist.sum(axis=1)
        elif len(steps) and not parts.strides[0]:  # each step has rows of the same parts
            parts = parts[0]
        else:
            parts, rows = parts.reshape(-1), rows.reshape(-1)
        return _Window(parts, rows, sizes=sizes, steps=steps, after=after, lacks=lacks)

    def _places_of_steps(self, position: OrderPosition, steps: Array) -> tuple[Array, Array]:
        """Part and row of each row that this rank takes in some steps after a position: int64 [steps, rows]."""
        order, turns = self._order, (position.turn + steps) % self._order.turns
        of_turns = list[tuple[Array, tuple[Array, Array]]]()
        for turn in set(turns.tolist()):
            of_turn = np.flatnonzero(turns == turn)
            first = (turn - position.turn) % order.turns
            places = self._places(turn, position.taken[turn], (steps[of_turn] - first) // order.turns)
            of_turns.append((of_turn, places))
        if len(of_turns) == 1:
            return places
        low, high = self._seat.run(self._step)
        parts, rows = np.empty((2, len(steps), high - low), np.int64)
        for of_turn, places in of_turns:
            parts[of_turn], rows[of_turn] = places
        return parts, rows

    def _exist(self, parts: Array, rows: Array, lanes: Mapping[int, Lane]) -> Array | None:
        """True for rows before the end of their lane; None if all rows are."""
        if not any(lane.ended for lane in lanes.values()):
            return None
        ends = np.full(self._order.parts, np.iinfo(np.int64).max)
        for part, lane in lanes.items():
            ends[part] = ends[part] if lane.end is None else lane.end
        exist = rows < ends[parts]
        return None if exist.all() else exist

    def _known_rows(self, position: OrderPosition, turn: int, lanes: Mapping[int, Lane], most: int) -> _KnownRows:
        """The rows of a turn from a position on, of at most so many positions: those that can be drawn."""
        order, begin, first_part = self._order, position.taken[turn], turn * self._order.lanes
        last, limits = begin, list[tuple[int, int]]()  # positions that lack a row, and the part if none will follow
        of_turn = {part: lane for part, lane in lanes.items() if part // order.lanes == turn}
        for part, lane in of_turn.items():
            number, row = part - first_part, lane.drawn + lane.available
            if lane.ended:
                last = max(last, order.position_of(turn, number, row - 1) + 1)
            if not lane.ended or lane.failed:
                limits.append((order.position_of(turn, number, row), part if lane.failed else -1))
        end, lacks = min([*limits, *([(last, -1)] if not limits else []), (begin + most, -1)])
        ended = lacks >= 0 or (all(lane.ended for lane in of_turn.values()) and end >= last)
        numbers, rows = order.places(turn, begin, max(begin, end))
        parts = numbers + first_part
        exist = self._exist(parts, rows, lanes)
        at = np.arange(len(rows)) if exist is None else np.flatnonzero(exist)
        return _KnownRows(at, parts[at], rows[at], end=max(0, end - begin), ended=ended, lacks=lacks)

    def _filled_window(self, position: OrderPosition, lanes: dict[int, Lane], most: int) -> _Window | None:
        """Steps of a worker that reads all lanes, which are filled across empty positions; of a single turn."""
        order, size = self._order, self._step
        drawable = self._known_rows(position, 0, lanes, most * size)
        count = len(drawable.at)
        steps = -(-count // size) if drawable.ended and not self._options.drop_last else count // size
        if drawable.ended and not steps and drawable.lacks < 0:  # rows that are left are dropped
            return None
        step_of = np.arange(min(count, steps * size)) // size
        ordered = np.argsort(step_of * order.lanes + drawable.parts[: len(step_of)], kind="stable")
        ends = drawable.at[np.cumsum(np.bincount(step_of, minlength=steps)) - 1].tolist() if steps else []
        if drawable.ended and steps:
            ends[-1] = max(ends[-1], drawable.end - 1)
        taken = [order.after(position, 0, place + 1) for place in ends]
        after = taken[-1] if taken else replace(position, marks={})
        own_steps = np.arange(position.ahead, steps, self._seat.workers)
        run = self._run_of_filled(position, len(step_of))
        return _Window(
            drawable.parts[ordered[run]],
            drawable.rows[ordered[run]],
            sizes=np.bincount(step_of[run], minlength=steps)[own_steps],
            steps=own_steps,
            after=replace(after, ahead=(position.ahead - steps) % self._seat.workers),
            taken=[taken[step] for step in own_steps],
            lacks=drawable.lacks if drawable.lacks >= 0 else None,
        )

    def _filled_step(self, position: OrderPosition, lanes: dict[int, Lane], most: int) -> _Window | None:
        """A step of a worker that reads all lanes: of the rows of a turn, and then of those of the next ones."""
        order, lacks = self._order, -1
        parts, rows, positions, left = list[Array](), list[Array](), list(position.taken), self._step
        for turn in ((position.turn + ahead) % order.turns for ahead in range(order.turns)):
            drawable = self._known_rows(position, turn, lanes, most * self._step)
            chosen = drawable.at[:left]
            is_whole = len(chosen) < len(drawable.at) or len(chosen) == left
            if not is_whole and not drawable.ended:  # more rows have to be read
                return self._empty_window(position)
            positions[turn] += (
                drawable.end if drawable.ended and len(chosen) == len(drawable.at) else int(chosen[-1]) + 1
            )
            parts.append(drawable.parts[: len(chosen)])
            rows.append(drawable.rows[: len(chosen)])
            left -= len(chosen)
            if not left or drawable.lacks >= 0:
                lacks = drawable.lacks if left else -1
                break
        count = self._step - left
        if lacks < 0 and (not count or (left and self._options.drop_last)):
            return None
        after = replace(position, turn=(position.turn + 1) % order.turns, taken=tuple(positions), marks={})
        run = self._run_of_filled(position, count)
        all_parts, all_rows = np.concatenate(parts), np.concatenate(rows)
        ordered = np.argsort(all_parts, kind="stable")[run]
        own_steps = np.zeros(0 if position.ahead else 1, np.int64)
        return _Window(
            all_parts[ordered],
            all_rows[ordered],
            sizes=np.array([len(ordered)])[: len(own_steps)],
            steps=own_steps,
            after=replace(after, ahead=(position.ahead - 1) % self._seat.workers),
            taken=[after][: len(own_steps)],
            lacks=lacks if lacks >= 0 else None,
        )

    def _run_of_filled(self, position: OrderPosition, rows: int) -> Array:
        """True for the rows of this worker among the rows of some steps, of which the last one may not be full."""
        rank, ranks, _, workers = self._seat
        step, at = np.divmod(np.arange(rows), self._step)
        sizes = np.minimum(self._step, rows - step * self._step)
        is_own_run = (at >= sizes * rank // ranks) & (at < sizes * (rank + 1) // ranks)
        return is_own_run & (step % workers == position.ahead)

    @staticmethod
    def _empty_window(after: OrderPosition) -> _Window:
        nothing = np.empty(0, np.int64)
        return _Window(nothing, nothing, sizes=nothing, steps=nothing, after=replace(after, marks={}))

    def _last_window(self, position: OrderPosition) -> _Window | None:
        """A step that is not full, where the numbers of rows are known."""
        order, seat = self._order, self._seat
        if (step := order.next_step(position, self._step)) is None:
            return None
        turn, count = step
        after = order.after(position, turn, count)
        after = replace(after, ahead=(position.ahead - 1) % seat.workers)
        rows_taken = position.taken[turn]
        drops = count < self._step and self._options.drop_last
        if position.ahead or drops:
            return self._empty_window(after)
        lanes, rows = order.places(turn, rows_taken, rows_taken + count)
        by_lane = np.argsort(lanes, kind="stable")
        low, high = seat.run_of_last(count, self._options.uneven)
        chosen, lacks = by_lane[low:high], None
        parts, rows = lanes[chosen] + turn * order.lanes, rows[chosen]
        opened, rows_before = self._lanes_of(parts, position), self._rows_before(after)
        _fill([(lane, int(rows_before[part]) - lane.drawn) for part, lane in opened.items()])
        if (exist := self._exist(parts, rows, opened)) is not None:
            lacks = int(parts[~exist][0])
            parts, rows = parts[exist], rows[exist]
        return _Window(
            parts,
            rows,
            sizes=np.array([len(rows)]),
            steps=np.zeros(1, np.int64),
            after=after,
            taken=[after],
            lacks=lacks,
        )

    def _draw(self, window: _Window, position: OrderPosition) -> Drawn | None:
        """Draw the rows of a window; None if this worker has none."""
        order, lanes, counts = self._order, list[Lane](), list[int]()
        opened = self._lanes_of(window.parts, position)
        rows_before = self._rows_before(window.after)
        for part, lane in opened.items():
            until = int(rows_before[part])
            lane.fill(until - lane.drawn)
            lanes.append(lane)
            counts.append(min(lane.available, until - lane.drawn))
        if self._reads_all:  # rows that other ranks take
            for part in self._lanes.lanes.keys() - opened.keys():
                self._lanes.lanes[part].skip(int(rows_before[part]))
        if not window.rows.size:
            return None
        firsts = np.array([lane.drawn for lane in lanes], np.int64)
        draws = LaneDraws(lanes, counts)
        at = np.zeros(order.parts, np.int64)
        at[[*opened]] = offsets_of(np.array(counts))[:-1] - firsts
        indices = draws.order[(window.rows + at[window.parts]).reshape(-1)]
        ends = np.cumsum(window.sizes)
        before = replace(position, marks=self._marks)
        progress = StepProgress(
            order,
            before,
            size=self._step,
            seat=self._seat,
            ends=ends,
            steps=window.steps,
            parts=[*opened],
            draws=draws,
            taken=window.taken,
        )
        batches = None
        if len(indices) != len(ends) * self._batch_size:  # some step is not full
            batches = Batches(order=indices, ends=ends, arrived=ends, leftover=np.empty(0, np.int64))
        ends_epoch = self._is_last(window) and bool(window.sizes[-1])
        return Drawn(draws.joined, progress, ends_epoch, batches, order=indices)

    def _is_last(self, window: _Window) -> bool:
        """True if a window has the last rows of all workers, and this worker knows it."""
        if self._lanes.failed or not len(window.steps):
            return False
        if self._order.sizes is not None:
            is_last = window.after.ahead == self._seat.workers - 1
            return is_last and self._order.next_step(window.after, self._step) is None
        lanes = self._lanes.lanes.values()
        is_only_worker = self._seat.is_alone or (self._reads_all and self._seat.workers == 1)
        reads_all = is_only_worker and self._order.turns == 1 and len(lanes) == self._order.parts
        return reads_all and all(lane.end == lane.drawn for lane in lanes)

    # Batches of parts -------------------------------------------------------------------------------------------------

    def _batches_of_parts(self, position: OrderPosition) -> Iterator[ArrayChunk]:
        """Batches that parts make by the lengths of lists, one in each chunk: those of the steps of this worker.

        A step has a batch for each rank. A process alone goes on where a part has none any more.
        """
        order, seat = self._order, self._seat
        streams: dict[int, _PartBatches] = {}
        own = {*self._own_parts(position).tolist()}
        ended = set[int]()
        marks = self._resumed_marks()
        while ended < own:
            after, ahead = order.after_steps(position, self._step, 1), position.ahead
            position, turn, begin = replace(after, ahead=(ahead - 1) % seat.workers), position.turn, position.taken
            if ahead:
                continue
            (part,), (row,) = (
                places_found[0] for places_found in self._places(turn, begin[turn], np.zeros(1, np.int64))
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
        streams: dict[int, _PartBatches] = {}
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
    ) -> _BatchProgress:
        """The position after a batch of this worker."""
        return _BatchProgress(self._order, replace(position, ahead=self._seat.workers - 1, marks={}), dict(marks))

    def _open_batches(self, part: int, row: int) -> _PartBatches:
        """The batches of a part, from its mark or its start on."""
        first, mark = self._marks.get(part, (0, IteratorPosition(self._epoch, 0, 0)))
        if first > row:
            first, mark = 0, IteratorPosition(self._epoch, 0, 0)
        options = self._of_parts.changed(epochs=self._epoch + 1, shuffle_buffer=self._lane_buffer)
        batching = Batching(self._parts[part], self._representation, options, self._seed, stream=part)
        stream = _PartBatches(batching, mark, first, options.batch_size)
        self._lanes.streams.append(stream)
        return stream


@dataclass(slots=True)
class _BatchProgress(Progress):
    """The position after a batch of a part."""

    order: Order
    after: OrderPosition
    # By part: the number of its next batch, and a function that computes its position.
    marks: Mapping[int, tuple[int, Callable[[], Any]]]

    def end(self) -> OrderPosition:
        return self.position_in(None, 1)

    def position_in(self, batches: Batches | None, rows: int) -> OrderPosition:
        """See `Progress.position_in`."""
        return replace(self.after, marks={part: (number, find()) for part, (number, find) in self.marks.items()})


@dataclass(slots=True)
class _BatchOfPart(ArrayChunk):
    """One batch of a chunk of a part."""

    inner: ArrayChunk | None = None
    first: int = 0  # row of the chunk

    @classmethod
    def from_stream(cls, stream: _PartBatches, chunk: ArrayChunk, progress: _BatchProgress) -> _BatchOfPart:
        """The last batch of a stream."""
        rows, kept = (1 if chunk.rows else 0), (np.empty(0, np.int64) if stream.is_left_out else None)
        return cls(rows, [], progress, error=stream.error(), kept=kept, inner=chunk, first=stream.first)

    def batch(self, begin: int, size: int) -> tuple[int, dict[str, Any] | None]:
        """See `ArrayChunk.batch`."""
        assert self.inner is not None
        return 1, self.inner.batch(self.first, size)[1]


class _PartBatches:
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
