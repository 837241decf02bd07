"""The order of the rows of an epoch, which any number of ranks, and of workers in each, can read and go on with.

An epoch has `turns` × `lanes` canonical parts, which the files, the seed and the number of the epoch decide. Each part
is a sequence of rows, in the order in which they are drawn from its shuffle buffer. All ranks take a step together:

1. Step s takes its rows from the lanes of turn ``s % turns``, one row of each lane in rotation. Position p of a turn is
   row ``p // lanes`` of lane ``p % lanes``, as long as no lane has ended.
2. Where the numbers of rows of the parts are known, lanes that have ended are left out, and all steps but the last one
   of an epoch are full. Where they are not, positions beyond the end of a lane are empty.
3. The rows of a step, lane after lane, are cut into equal runs, one for each rank: a rank reads neighbouring lanes.
4. Worker w of W of a rank makes every W-th step: with as many turns as workers, each of them has its own parts.

So the position of a row is arithmetic, and no worker has to know what the others read. Laws:

- The rows of a step are the same for all layouts that take as many rows together (until the first lane ends, where the
  numbers of rows are not known).
- What was taken of each turn is all that is needed to go on, in any layout and with steps of any size: each row of the
  epoch is seen once.
- All ranks that had rows in a step have the same position after it.

Tests: tests/rows/training/test_order.py; of files, windows and mixtures: tests/laws/test_order_laws.py.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import gcd
from typing import NamedTuple

import numpy as np

from tfrecord_io.base import cached_property
from tfrecord_io.bytes import Array
from tfrecord_io.rows.training.iterator_state import IteratorPosition


class Seat(NamedTuple):
    """Who reads: the worker of a rank. A rank without a loader is its own only worker."""

    rank: int = 0
    ranks: int = 1
    worker: int = 0
    workers: int = 1

    @property
    def is_alone(self) -> bool:
        """True if there is no other worker."""
        return self.ranks * self.workers == 1

    @property
    def part(self) -> tuple[int, int]:
        """Number of this worker among all workers of all ranks, and their number."""
        return self.rank * self.workers + self.worker, self.ranks * self.workers

    def run(self, size: int) -> tuple[int, int]:
        """The run of this rank among `size` rows.

        >>> [Seat(rank, 3).run(8) for rank in range(3)]
        [(0, 2), (2, 5), (5, 8)]
        """
        return size * self.rank // self.ranks, size * (self.rank + 1) // self.ranks

    def run_of_last(self, size: int, uneven: str) -> tuple[int, int]:
        """The run of this rank among the rows of a step that is not full; with "pad", it may end beyond them.

        >>> [Seat(rank, 3).run_of_last(4, "pad") for rank in range(3)], Seat(0, 3).run_of_last(4, "drop")
        ([(0, 2), (1, 3), (2, 4)], (0, 1))
        """
        if uneven == "pad":  # ranks that would have less take a row of their neighbour again
            largest = -(-size // self.ranks)
            first = min(size * self.rank // self.ranks, size - largest)
            return first, first + largest
        return self.run(size - size % self.ranks if uneven == "drop" else size)


@dataclass(frozen=True, slots=True)
class OrderPosition:
    """A position between two steps."""

    epoch: int
    turn: int  # of the next step
    taken: tuple[int, ...]  # positions of each turn that were taken
    # Positions in parts, by the number of the part, each with the row of its order: they save reading rows again.
    marks: Mapping[int, tuple[int, IteratorPosition]] = field(default_factory=dict)
    ahead: int = 0  # steps of other workers of the rank before the next one of this worker

    @property
    def delivered(self) -> int:
        """Number of positions of the epoch that were taken."""
        return sum(self.taken)


@dataclass(frozen=True, eq=False)
class Order:
    """Where each row of an epoch is: which rows of which part a step takes."""

    lanes: int
    turns: int
    size: int  # rows of a step in the run that began: they decide how many rows each part has
    sizes: Array | None = None  # int64 [turns, lanes]: rows of each part, if all are known

    @classmethod
    def from_row_count(cls, lanes: int, turns: int, size: int, rows: int | None) -> Order:
        """Order of parts of equal size, of so many rows in all; None: they are not known.

        All turns but one have whole steps, so that one step of an epoch is not full.

        >>> Order.from_row_count(lanes=2, turns=2, size=4, rows=11).sizes.tolist()
        [[3, 4], [2, 2]]
        """
        if rows is None:
            return cls(lanes, turns, size)
        steps = -(-rows // size)
        turn_rows = np.array([len(range(turn, steps, turns)) * size for turn in range(turns)], np.int64)
        if steps:
            turn_rows[(steps - 1) % turns] -= steps * size - rows
        bounds = turn_rows[:, None] * np.arange(lanes + 1) // lanes
        return cls(lanes, turns, size, np.diff(bounds, axis=1))

    @property
    def parts(self) -> int:
        """Number of parts."""
        return self.lanes * self.turns

    @property
    def rows(self) -> int | None:
        """Number of rows of an epoch; None if unknown."""
        return None if self.sizes is None else int(self.sizes.sum())

    def begin(self, epoch: int, ahead: int = 0) -> OrderPosition:
        """Position at the beginning of an epoch."""
        return OrderPosition(epoch, 0, (0,) * self.turns, ahead=ahead)

    # Positions of a turn ----------------------------------------------------------------------------------------------

    @cached_property
    def _shortest(self) -> list[int]:
        """Number of rows of the shortest lane of each turn."""
        assert self.sizes is not None
        rows: list[int] = self.sizes.min(axis=1).tolist()
        return rows

    def all_lanes_reach(self, turn: int, end: int) -> bool:
        """True if no lane of a turn ends before a position: each round before it has a row of every lane."""
        return self.sizes is None or -(-end // self.lanes) <= self._shortest[turn]

    def _before(self, turn: int, rounds: int) -> int:
        """Number of positions before a round, in which each lane gives a row."""
        assert self.sizes is not None
        return int(np.minimum(self.sizes[turn], rounds).sum())

    def _round(self, turn: int, position: int) -> int:
        """The round that a position is in."""
        assert self.sizes is not None
        rounds = range(int(self.sizes[turn].max()) + 1)
        return bisect_right(rounds, position, key=lambda number: self._before(turn, number)) - 1

    def taken_rows(self, turn: int, position: int) -> Array:
        """Number of rows of each lane before a position.

        >>> Order(lanes=3, turns=1, size=4).taken_rows(0, 7).tolist()
        [3, 2, 2]
        """
        if self.sizes is None:
            return (position + self.lanes - 1 - np.arange(self.lanes)) // self.lanes
        turn_rows = self.sizes[turn]
        rounds, first = divmod(position, self.lanes)
        if rounds < self._shortest[turn]:  # no lane has ended
            return rounds + (np.arange(self.lanes) < first)
        rounds = self._round(turn, position)
        goes_on = turn_rows > rounds
        more = goes_on & (np.cumsum(goes_on) <= position - self._before(turn, rounds))
        return np.minimum(turn_rows, rounds) + more

    def position_of(self, turn: int, lane: int, row: int) -> int:
        """Position of a row of a lane; of the row after the last one: the first position at which the lane lacks it."""
        if self.sizes is None or row < self._shortest[turn]:
            return row * self.lanes + lane
        return self._before(turn, row) + int((self.sizes[turn, :lane] > row).sum())

    def places(self, turn: int, begin: int, end: int) -> tuple[Array, Array]:
        """Lane and row of the positions from `begin` to `end`.

        >>> lanes, rows = Order(lanes=3, turns=1, size=4).places(0, 2, 6)
        >>> lanes.tolist(), rows.tolist()
        ([2, 0, 1, 2], [0, 1, 1, 1])
        """
        if self.all_lanes_reach(turn, end):
            rows, lanes = np.divmod(np.arange(begin, end), self.lanes)
            return lanes, rows
        assert self.sizes is not None
        turn_rows = self.sizes[turn]
        first = self._round(turn, begin)
        last = bisect_left(range(int(turn_rows.max()) + 1), end, key=lambda number: self._before(turn, number))
        rounds = np.arange(first, last)
        rows, lanes = np.nonzero(turn_rows > rounds[:, None])
        part = slice(begin - self._before(turn, first), end - self._before(turn, first))
        return lanes[part], rows[part] + first

    def rows_of(self, turn: int) -> int | None:
        """Number of rows of a turn; None if unknown."""
        return None if self.sizes is None else int(self.sizes[turn].sum())

    # Steps ------------------------------------------------------------------------------------------------------------

    def steps_at_once(self, size: int) -> int:
        """Number of steps of a turn after which its lanes are taken in the same places again.

        >>> Order(lanes=4, turns=1, size=6).steps_at_once(6)
        2
        """
        return self.lanes // gcd(self.lanes, size)

    def whole_steps(self, position: OrderPosition, size: int) -> int | None:
        """Number of full steps from a position on, before any turn has a step that is not full; None: no end is known.

        Step j of them is one of turn ``(position.turn + j) % turns``.
        """
        if self.sizes is None:
            return None
        whole = (self.sizes.sum(axis=1) - position.taken) // size
        first = (np.arange(self.turns) - position.turn) % self.turns
        return int((first + whole * self.turns).min())

    def next_step(self, position: OrderPosition, size: int) -> tuple[int, int] | None:
        """Turn and number of rows of the next step, where numbers of rows are known; None after the last one."""
        assert self.sizes is not None
        for ahead in range(self.turns):
            turn = (position.turn + ahead) % self.turns
            if (left := int(self.sizes[turn].sum()) - position.taken[turn]) > 0:
                return turn, min(size, left)
        return None

    def after(self, position: OrderPosition, turn: int, rows: int) -> OrderPosition:
        """Position after a step of so many rows of a turn."""
        rows_taken = tuple(n + (number == turn) * rows for number, n in enumerate(position.taken))
        return replace(position, turn=(turn + 1) % self.turns, taken=rows_taken, marks={})

    def after_steps(self, position: OrderPosition, size: int, steps: int) -> OrderPosition:
        """Position after full steps, of each turn in its turn."""
        turns = ((turn - position.turn) % self.turns for turn in range(self.turns))
        rows_taken = tuple(
            n + len(range(at, steps, self.turns)) * size for n, at in zip(position.taken, turns, strict=True)
        )
        return replace(position, turn=(position.turn + steps) % self.turns, taken=rows_taken, marks={})

    def count(self, position: OrderPosition, batch_size: int, seat: Seat, uneven: str, drop_last: bool) -> int:
        """Number of batches of a worker from a position to the end of the epoch; TypeError if it is not known."""
        size = batch_size * seat.ranks
        if (whole := self.whole_steps(position, size)) is None:
            raise TypeError("the number of batches is unknown: nothing states how many rows the parts of an epoch have")
        position, steps = self.after_steps(position, size, whole), len(range(position.ahead, whole, seat.workers))
        ahead = (position.ahead - whole) % seat.workers
        while (step := self.next_step(position, size)) is not None:
            position = self.after(position, *step)
            low, high = seat.run_of_last(step[1], uneven)
            steps += not ahead and high > low and not (drop_last and step[1] < size)
            ahead = (ahead - 1) % seat.workers
        return steps
