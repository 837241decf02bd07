"""Plan the order of an epoch: the numbers of lanes and turns, and whether its rows are counted.

Tests: tests/rows/training/test_order_state.py and tests/laws/test_order_laws.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tfrecord_io.base import MIB
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.order import Order, Seat
from tfrecord_io.rows.training.row_source import RowSource

_MOST_LANES = 16  # by default
_LEAST_PART_BYTES = 8 * MIB


class OrderedRead(NamedTuple):
    """The order of a read, and the counts of rows that divide its parts, if any."""

    order: Order
    counts: Any = None


class RowCounts:
    """Numbers of records of files, which are looked up once for all iterators over them."""

    def __init__(self) -> None:
        self._found: tuple[list[int] | None] | None = None
        self._equal_parts: Any = None

    def of(self, source: RowSource, may_read: bool = False) -> list[int] | None:
        """See `RowSource.known_rows`."""
        if self._found is None or (self._found[0] is None and may_read):
            self._found = (source.known_rows(may_read),)
        return self._found[0]

    def count_equal_parts(self, source: RowSource) -> Any:
        """See `RowSource.counts`."""
        if self._equal_parts is None:
            by_file = self.of(source, may_read=True)
            self._equal_parts = source.counts() if by_file is None else by_file
        return self._equal_parts


def plan_order(
    source: RowSource, options: IterOptions, seat: Seat, counts: RowCounts, *, seeds_agree: bool
) -> OrderedRead | None:
    """Plan the order of a read from its beginning; None where each worker has files, or records, of its own.

    `seeds_agree`: False if each rank draws a seed.
    """
    parts = options.parts
    if parts is None:
        parts = _default_parts(source, options, seat, counts) if seeds_agree else None
        if parts is None:
            return None
    lanes, turns = parts if isinstance(parts, tuple) else (parts, seat.workers)
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


def _default_parts(source: RowSource, options: IterOptions, seat: Seat, counts: RowCounts) -> tuple[int, int] | None:
    """Lanes and turns for several workers, where records are counted and can be found by their numbers; else None.

    All steps but the last one are full then, and no worker reads more than its rows. A worker without others reads the
    files one after the other, and decodes them by several threads.
    """
    may_read = options.uneven != "keep"
    if seat.is_alone or options.arranges or not (may_read or source.has_counts_at_hand):
        return None
    if (search := source.row_search) is None or (by_file := counts.of(source, may_read)) is None:
        return None
    size, parts = seat.ranks * options.batch_units, (source.size or 0) // _LEAST_PART_BYTES
    if search == "headers":  # which are followed from the start of a file to its part
        parts = min(parts, len(by_file))
    # Several lanes for each rank, unless they take memory, or rows are to follow each other.
    lanes = _MOST_LANES if options.shuffle_buffer and source.can_share_memory else seat.ranks
    lanes = min(lanes, parts // seat.workers)
    return next((n for n in range(lanes, 1, -1) if size % n == 0), 1), seat.workers
