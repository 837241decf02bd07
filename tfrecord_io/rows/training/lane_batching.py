"""Read the parts of an epoch side by side, through one pipeline, in the order of `rows/training/order.py`.

`LaneBatching` takes rows of all lanes for many steps at once, so that many lanes cost as little as one: `StepRows`
computes which rows, and `LaneDraws` draws them.

Tests: tests/laws/test_order_laws.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import lcm
from typing import Any

import numpy as np

from tfrecord_io.bytes import Array
from tfrecord_io.columns import RowFault, offsets_of
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.read import ReadReport
from tfrecord_io.rows.arrays.stacked_or_ragged import TableRepresentation
from tfrecord_io.rows.training.batching import REFILL, ArrayChunk, Batching, Drawn, Progress
from tfrecord_io.rows.training.buckets_and_packing import Batches
from tfrecord_io.rows.training.epochs import EpochReader, Epochs, NumberedBatch
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.iterator_state import IteratorPosition
from tfrecord_io.rows.training.lane import Lane, LaneDraws, fill_lanes, rows_at_once
from tfrecord_io.rows.training.mixed_rows import move_reports
from tfrecord_io.rows.training.order import Order, OrderPosition, Seat
from tfrecord_io.rows.training.row_source import RowSource
from tfrecord_io.rows.training.shuffle_buffer import buffer_after, random_numbers
from tfrecord_io.rows.training.step_rows import StepRows, Window

_MOST_REFILL = 8  # times the shuffle buffer that are read at once, as each lane costs some calls


class LaneReader(EpochReader):
    """The lanes of an epoch as one reader, for faults and reports."""

    def __init__(self) -> None:
        super().__init__(0)
        self.lanes: dict[int, Lane] = {}
        self._ended = ReadReport()  # of passes over parts of a mixture that have ended

    def _read(self) -> Generator[NumberedBatch]:
        yield from ()  # the rows are read by lanes

    @property
    def rows_found(self) -> int:
        """Number of rows of the lanes until now, which may be those of other workers, too."""
        return sum(lane.drawn + lane.count for lane in self.lanes.values())

    def _rows(self) -> list[EpochReader]:
        return [lane.rows for lane in self.lanes.values()]

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
        return any(lane.failed for lane in self.lanes.values())

    def raise_error(self) -> None:
        for lane in self.lanes.values():
            lane.rows.raise_error()

    def close(self) -> None:
        for lane in self.lanes.values():
            lane.rows.close()


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
class BatchProgress(Progress):
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
        self._steps = StepRows(order, seat, options)
        # Each lane has a part of the shuffle buffer.
        self._lane_buffer = -(-options.shuffle_buffer // order.lanes)
        self._boundaries = KnownBoundaries()  # of byte ranges, which all epochs have in common
        self._lanes = self._open_reader()
        self._lacks: int | None = None  # the part whose rows ended too early

    def _open_reader(self) -> LaneReader:
        return LaneReader()

    def chunks(self, position: Any) -> Generator[ArrayChunk]:
        """All chunks from a position on; ValueError if the epochs never end, and have no batch of this worker."""
        has_had_batches = position.epoch > 0 or position.delivered > 0  # in this epoch or an earlier one
        while self._options.epochs is None or position.epoch < self._options.epochs:
            count = drawn_rows = 0
            self.reader = self._lanes = lanes = self._open_reader()
            with closing(lanes):
                self._epoch, self._marks, self._lacks = position.epoch, position.marks, None
                self._parts = self._parts_of(position.epoch)
                for chunk in self._epoch_chunks(position):
                    drawn_rows += chunk.rows
                    count += chunk.rows if chunk.kept is None else len(chunk.kept)
                    yield chunk
                    if chunk.error is not None:
                        return
            self._warn_of_damage(lanes)
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

    def _warn_of_damage(self, lanes: LaneReader) -> None:
        """Warn of what an epoch left out."""
        for report in lanes.reports():
            report.warn_of_skipped(self.epochs.damage.append)

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

    def _rows_before(self, position: OrderPosition) -> Array:
        """Number of rows of each part before a position."""
        return np.concatenate([self._order.taken_rows(turn, taken) for turn, taken in enumerate(position.taken)])

    def _refill(self, lanes: dict[int, Lane], position: OrderPosition, least: int, is_first: bool) -> None:
        """Read rows of some lanes, until at least so many after a position can be drawn of each."""
        wanted = max(least, self._lane_buffer // REFILL)
        rows_before = self._rows_before(position)
        fill_lanes([(lane, wanted + int(rows_before[part]) - lane.drawn) for part, lane in lanes.items()])
        if self._lane_buffer and not is_first:
            rows = min(_MOST_REFILL * self._options.shuffle_buffer, rows_at_once(lanes))
            fill_lanes([(lane, rows // len(lanes)) for lane in lanes.values()])

    # Steps ------------------------------------------------------------------------------------------------------------

    def _epoch_chunks(self, position: OrderPosition) -> Iterator[ArrayChunk]:
        """The chunks of one epoch."""
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
                end = BatchProgress(self._order, self._order.begin(self._epoch + 1, self._seat.worker), {})
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

    def _next_window(self, position: OrderPosition, is_first: bool) -> Window | None:
        """The next steps, as many as the lanes have rows for; None after the last one."""
        order, size = self._order, self._steps.size
        whole = order.whole_steps(position, size)
        if whole == 0:
            return self._last_window(position)
        seat, at_once = self._seat, order.steps_at_once(size)
        lanes = self._lanes_of(self._steps.own_parts(position), position)
        period = lcm(order.turns, seat.workers)
        fewest = -(-period // order.turns * size // order.lanes) + 1
        while True:
            self._refill(lanes, position, fewest, is_first)
            at_a_time = max(rows_at_once(lanes), self._options.shuffle_buffer // REFILL)
            # The steps of which this worker has so many rows, or at least some rows of each part.
            steps_at_once = max(at_a_time * seat.workers // self._batch_size, fewest * order.parts // size + period)
            whole = None if whole is None else min(whole, steps_at_once)
            window = self._steps.window(position, lanes, whole, at_once=at_once, most=steps_at_once)
            if window is None:
                return None
            of_window = self._lanes_of(window.parts, position)
            if of_window.keys() - lanes.keys():
                lanes |= of_window
            elif window.after != replace(position, marks={}) or window.lacks is not None:
                return window
            else:
                fewest *= 2

    def _last_window(self, position: OrderPosition) -> Window | None:
        """A step that is not full, where the numbers of rows are known."""
        window = self._steps.last_window(position)
        if window is None or not len(window.steps):
            return window
        parts, rows = window.parts, window.rows
        opened, rows_before = self._lanes_of(parts, position), self._rows_before(window.after)
        fill_lanes([(lane, int(rows_before[part]) - lane.drawn) for part, lane in opened.items()])
        assert self._order.sizes is not None
        counted = self._order.sizes.reshape(-1)
        # A part that lacks rows is an error even if the step omits these rows.
        short = [part for part, lane in opened.items() if lane.end is not None and lane.end < counted[part]]
        if not short:
            return window
        if (exist := self._steps.exist(parts, rows, opened)) is None:
            return replace(window, lacks=short[0])
        sizes, lacks = np.array([np.count_nonzero(exist)]), int(parts[~exist][0])
        return replace(window, parts=parts[exist], rows=rows[exist], sizes=sizes, lacks=lacks)

    def _draw(self, window: Window, position: OrderPosition) -> Drawn | None:
        """Draw the rows of a window; None if this worker has none."""
        order, lanes, counts = self._order, list[Lane](), list[int]()
        opened = self._lanes_of(window.parts, position)
        rows_before = self._rows_before(window.after)
        for part, lane in opened.items():
            until = int(rows_before[part])
            lane.fill(until - lane.drawn)
            lanes.append(lane)
            counts.append(min(lane.available, until - lane.drawn))
        if self._steps.reads_all:  # rows that other ranks take
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
            size=self._steps.size,
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

    def _is_last(self, window: Window) -> bool:
        """True if a window has the last rows of all workers, and this worker knows it."""
        if self._lanes.failed or not len(window.steps):
            return False
        if self._order.sizes is not None:
            is_last = window.after.ahead == self._seat.workers - 1
            return is_last and self._order.next_step(window.after, self._steps.size) is None
        lanes = self._lanes.lanes.values()
        is_only_worker = self._seat.is_alone or (self._steps.reads_all and self._seat.workers == 1)
        reads_all = is_only_worker and self._order.turns == 1 and len(lanes) == self._order.parts
        return reads_all and all(lane.end == lane.drawn for lane in lanes)
