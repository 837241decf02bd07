"""The rows of an epoch's parts that each step of a worker takes: arithmetic, by the rows that its lanes can draw.

Tests: tests/laws/test_order_laws.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import NamedTuple

import numpy as np

from tfrecord_io.bytes import Array
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.lane import Lane
from tfrecord_io.rows.training.order import Order, OrderPosition, Seat


@dataclass(slots=True)
class Window:
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


class StepRows:
    """The rows that the steps of one worker take.

    size
        Rows of a full step, of all ranks; or batches, where parts make batches by themselves.
    reads_all
        True if the worker reads all lanes, to fill its steps with the rows that there are.
    """

    def __init__(self, order: Order, seat: Seat, options: IterOptions) -> None:
        self.order, self.seat, self._options = order, seat, options
        self.size = seat.ranks * options.batch_units
        self.reads_all = self._has_gaps()

    def _has_gaps(self) -> bool:
        """True if a worker may have no row in a step, and rows in a later one, as some lanes have ended.

        It would take the later step at once, and its state would count steps that others have not taken. So it reads
        all lanes, to fill steps with the rows that there are. `plan_order` makes orders without gaps.
        """
        order, seat = self.order, self.seat
        if order.sizes is not None or seat.is_alone:
            return False
        lacks_lanes = order.lanes > self.size if seat.ranks == 1 else self.size % order.lanes != 0
        return lacks_lanes or order.turns not in (1, seat.workers)

    def own_parts(self, position: OrderPosition) -> Array:
        """The parts of all rows that this worker takes, until its steps repeat the same parts: int64."""
        order, workers = self.order, self.seat.workers
        if self.reads_all:
            return np.arange(order.parts)
        period = lcm(order.turns * order.steps_at_once(self.size), workers)
        steps = np.arange(position.ahead, position.ahead + period, workers)
        if (whole := order.whole_steps(position, self.size)) is not None:
            steps = steps[steps < whole]
        return self.places_of_steps(position, steps)[0].reshape(-1)

    def window(
        self, position: OrderPosition, lanes: dict[int, Lane], whole: int | None, *, at_once: int, most: int
    ) -> Window | None:
        """The next steps, at most so many, of the rows that lanes can draw; None after the last one."""
        is_filled = self.order.sizes is None and (self.seat.is_alone or self.reads_all)
        if not is_filled or not any(lane.ended for lane in lanes.values()):
            return self._full_window(position, lanes, whole, at_once=at_once, most=most)
        fill = self._filled_window if self.order.turns == 1 else self._filled_step
        return fill(position, lanes, most)

    def places(self, turn: int, begin: int, steps: Array) -> tuple[Array, Array]:
        """Part and row of each row that this rank takes in some steps of a turn: int64 [steps, rows]."""
        order, size = self.order, self.size
        low, high = self.seat.run(size)
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
    ) -> Window | None:
        """Full steps: as many as the lanes have rows for. Rows beyond the ends of lanes are left out."""
        order, seat, size = self.order, self.seat, self.size
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
        parts, rows = self.places_of_steps(position, steps)
        sizes = np.full(len(steps), rows.shape[1])
        exist, lacks = self.exist(parts, rows, lanes), None
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
        return Window(parts, rows, sizes=sizes, steps=steps, after=after, lacks=lacks)

    def places_of_steps(self, position: OrderPosition, steps: Array) -> tuple[Array, Array]:
        """Part and row of each row that this rank takes in some steps after a position: int64 [steps, rows]."""
        order, turns = self.order, (position.turn + steps) % self.order.turns
        of_turns = list[tuple[Array, tuple[Array, Array]]]()
        for turn in set(turns.tolist()):
            of_turn = np.flatnonzero(turns == turn)
            first = (turn - position.turn) % order.turns
            places = self.places(turn, position.taken[turn], (steps[of_turn] - first) // order.turns)
            of_turns.append((of_turn, places))
        if len(of_turns) == 1:
            return places
        low, high = self.seat.run(self.size)
        parts, rows = np.empty((2, len(steps), high - low), np.int64)
        for of_turn, places in of_turns:
            parts[of_turn], rows[of_turn] = places
        return parts, rows

    def exist(self, parts: Array, rows: Array, lanes: Mapping[int, Lane]) -> Array | None:
        """True for rows before the end of their lane; None if all rows are."""
        if not any(lane.ended for lane in lanes.values()):
            return None
        ends = np.full(self.order.parts, np.iinfo(np.int64).max)
        for part, lane in lanes.items():
            ends[part] = ends[part] if lane.end is None else lane.end
        exist = rows < ends[parts]
        return None if exist.all() else exist

    def _known_rows(self, position: OrderPosition, turn: int, lanes: Mapping[int, Lane], most: int) -> _KnownRows:
        """The rows of a turn from a position on, of at most so many positions: those that can be drawn."""
        order, begin, first_part = self.order, position.taken[turn], turn * self.order.lanes
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
        exist = self.exist(parts, rows, lanes)
        at = np.arange(len(rows)) if exist is None else np.flatnonzero(exist)
        return _KnownRows(at, parts[at], rows[at], end=max(0, end - begin), ended=ended, lacks=lacks)

    def _filled_window(self, position: OrderPosition, lanes: dict[int, Lane], most: int) -> Window | None:
        """Steps of a worker that reads all lanes, which are filled across empty positions; of a single turn."""
        order, size = self.order, self.size
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
        own_steps = np.arange(position.ahead, steps, self.seat.workers)
        run = self._run_of_filled(position, len(step_of))
        return Window(
            drawable.parts[ordered[run]],
            drawable.rows[ordered[run]],
            sizes=np.bincount(step_of[run], minlength=steps)[own_steps],
            steps=own_steps,
            after=replace(after, ahead=(position.ahead - steps) % self.seat.workers),
            taken=[taken[step] for step in own_steps],
            lacks=drawable.lacks if drawable.lacks >= 0 else None,
        )

    def _filled_step(self, position: OrderPosition, lanes: dict[int, Lane], most: int) -> Window | None:
        """A step of a worker that reads all lanes: of the rows of a turn, and then of those of the next ones."""
        order, lacks = self.order, -1
        parts, rows, positions, left = list[Array](), list[Array](), list(position.taken), self.size
        for turn in ((position.turn + ahead) % order.turns for ahead in range(order.turns)):
            drawable = self._known_rows(position, turn, lanes, most * self.size)
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
        count = self.size - left
        if lacks < 0 and (not count or (left and self._options.drop_last)):
            return None
        after = replace(position, turn=(position.turn + 1) % order.turns, taken=tuple(positions), marks={})
        run = self._run_of_filled(position, count)
        all_parts, all_rows = np.concatenate(parts), np.concatenate(rows)
        ordered = np.argsort(all_parts, kind="stable")[run]
        own_steps = np.zeros(0 if position.ahead else 1, np.int64)
        return Window(
            all_parts[ordered],
            all_rows[ordered],
            sizes=np.array([len(ordered)])[: len(own_steps)],
            steps=own_steps,
            after=replace(after, ahead=(position.ahead - 1) % self.seat.workers),
            taken=[after][: len(own_steps)],
            lacks=lacks if lacks >= 0 else None,
        )

    def _run_of_filled(self, position: OrderPosition, rows: int) -> Array:
        """True for the rows of this worker among the rows of some steps, of which the last one may not be full."""
        rank, ranks, _, workers = self.seat
        step, at = np.divmod(np.arange(rows), self.size)
        sizes = np.minimum(self.size, rows - step * self.size)
        is_own_run = (at >= sizes * rank // ranks) & (at < sizes * (rank + 1) // ranks)
        return is_own_run & (step % workers == position.ahead)

    @staticmethod
    def _empty_window(after: OrderPosition) -> Window:
        nothing = np.empty(0, np.int64)
        return Window(nothing, nothing, sizes=nothing, steps=nothing, after=replace(after, marks={}))

    def last_window(self, position: OrderPosition) -> Window | None:
        """A step that is not full, where the numbers of rows are known; its rows need not exist."""
        order, seat = self.order, self.seat
        if (step := order.next_step(position, self.size)) is None:
            return None
        turn, count = step
        after = order.after(position, turn, count)
        after = replace(after, ahead=(position.ahead - 1) % seat.workers)
        rows_taken = position.taken[turn]
        drops = count < self.size and self._options.drop_last
        if position.ahead or drops:
            return self._empty_window(after)
        lanes, rows = order.places(turn, rows_taken, rows_taken + count)
        by_lane = np.argsort(lanes, kind="stable")
        low, high = seat.run_of_last(count, self._options.uneven)
        chosen = by_lane[low:high]
        return Window(
            lanes[chosen] + turn * order.lanes,
            rows[chosen],
            sizes=np.array([len(chosen)]),
            steps=np.zeros(1, np.int64),
            after=after,
            taken=[after],
        )
