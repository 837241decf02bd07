"""The rows that fit, where others are left out: ``on_error="skip"`` and rows whose values do not fit their column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from tfrecord_io.arrow.buffers import cut
from tfrecord_io.arrow.decode.batch_builder import BatchBuilder
from tfrecord_io.arrow.decode.composite import CompositeBatchBuilder
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.errors import SkippedRegion
from tfrecord_io.format.expansion import Expansion
from tfrecord_io.read.chunks.chunk import DecodedChunk
from tfrecord_io.read.chunks.recovery import Recovery, is_damage
from tfrecord_io.read.chunks.row_budget import RowBudget

T = TypeVar("T")

_FIRST_STEP = 64  # rows that are tried after a fault; twice as many after each success


def fitting_parts(
    rows: int, make: Callable[[int, int], T | RowFault], passes: Callable[[RowFault], bool]
) -> Iterator[tuple[int, int, T | RowFault]]:
    """What can be made of all rows but those that have a fault, in parts.

    Parameters
    ----------
    rows : int
    make : callable
        Makes a part of the rows [begin, end), or returns the fault of the first one that does not fit; its ``row`` is
        counted from `begin`.
    passes : callable
        Whether the row of a fault may be left out; its ``row`` is counted from the start of all rows.

    Yields
    ------
    begin, end : int
    part
        A fault that may not be left out is the last one, after the rows before it.
    """
    begin, step = 0, max(rows, 1)
    while True:
        end = min(begin + step, rows)
        part = make(begin, end)
        if not isinstance(part, RowFault):
            yield begin, end, part
            begin, step = end, 2 * step
        else:
            fault, part.row = part, part.row + begin
            if fault.row > begin:
                yield begin, fault.row, make(begin, fault.row)
            if not passes(fault):
                yield fault.row, fault.row, fault
                return
            begin, step = fault.row + 1, _FIRST_STEP
        if begin >= rows:
            return


def leave_out(recovery: Recovery | None, fault: RowFault, path: str, file: int, record: int) -> bool:
    """Whether the record of a row with a fault may be left out; it then counts as skipped."""
    error = fault.to_error(path, record)
    if recovery is None or not is_damage(error):
        return False
    region = SkippedRegion(path, None, None, error.reason, record, type(error).__name__)
    return recovery.accept(region, file, error)


def chunk_batches(
    chunk: DecodedChunk,
    builder: BatchBuilder | CompositeBatchBuilder,
    expansion: Expansion,
    recovery: Recovery | None,
    budget: RowBudget,
) -> tuple[list[tuple[int, pa.RecordBatch]], RowFault | None]:
    """The batches of a chunk, each with the record of its first row, and the fault of the row that ends them."""
    if recovery is None:
        batch, fault = builder.batch(chunk.columns, chunk.rows, expansion)
        return [(chunk.first_record, batch)], fault

    def make(begin: int, end: int) -> pa.RecordBatch | RowFault:
        is_whole, room = (begin, end) == (0, chunk.rows), expansion.room
        columns = chunk.columns if is_whole else {name: cut(c, begin, end) for name, c in chunk.columns.items()}
        batch, fault = builder.batch(columns, end - begin, expansion)
        if fault is None:
            return batch
        expansion.room = room
        return fault

    def passes(fault: RowFault) -> bool:
        if not leave_out(recovery, fault, chunk.path, chunk.file, chunk.first_record + fault.row):
            return False
        budget.give_back(1)
        return True

    batches: list[tuple[int, pa.RecordBatch]] = []
    for begin, _, part in fitting_parts(chunk.rows, make, passes):
        if isinstance(part, RowFault):
            return batches or [(chunk.first_record, make(0, 0))], part
        batches.append((chunk.first_record + begin, part))
    return batches or [(chunk.first_record, make(0, 0))], None
