"""Plan the order of an epoch: the numbers of lanes and turns, and whether its rows are counted.

Tests: tests/rows/training/test_order_state.py and tests/laws/test_order_laws.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.order import Order, Seat
from tfrecord_io.rows.training.row_source import RowSource


class OrderedRead(NamedTuple):
    """The order of a read, and the counts of rows that divide its parts, if any."""

    order: Order
    counts: Any = None


class RowCounts:
    """Numbers of records of files, which are looked up once for all iterators over them."""

    _found: tuple[list[int] | None] | None = None

    def of(self, source: RowSource, may_read: bool = False) -> list[int] | None:
        """See `RowSource.known_rows`."""
        if self._found is None or (self._found[0] is None and may_read):
            self._found = (source.known_rows(may_read),)
        return self._found[0]


def plan_order(source: RowSource, options: IterOptions, seat: Seat, counts: RowCounts) -> OrderedRead:
    """Plan the order of a read in ``parts=`` from its beginning."""
    assert options.parts is not None
    lanes, turns = options.parts if isinstance(options.parts, tuple) else (options.parts, seat.workers)
    size = seat.ranks * options.batch_units
    by_file = None if options.arranges else counts.of(source, options.uneven != "keep")
    if by_file is None and options.uneven != "keep":  # of parts that are not counted one by one
        rows = source.count_rows()
        return OrderedRead(Order.from_row_count(1, 1, size, rows))
    most_parts = source.most_parts(lanes * turns)
    if most_parts < lanes * turns:
        turns = min(turns, most_parts)
        lanes = most_parts // turns
    if by_file is None and not seat.is_alone:
        # Each step has rows of all lanes, and each rank those of the same ones: no step is empty for a worker that has
        # rows left. It would take a later one, and its state would count steps that others have not taken.
        lanes = next(n for n in range(min(lanes, size), 0, -1) if seat.ranks == 1 or size % n == 0)
    return OrderedRead(Order.from_row_count(lanes, turns, size, None if by_file is None else sum(by_file)), by_file)
