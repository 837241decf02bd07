"""The rows that fit, where others are left out: ``on_error="skip"`` and rows whose values do not fit their column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pyarrow as pa

from tfrecord_io.arrow.buffers import cut
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.options.expansion import Expansion
from tfrecord_io.read.chunks.chunk import DecodedChunk, RowBudget
from tfrecord_io.read.chunks.recovery import Recovery, SkippedRegion, is_damage

if TYPE_CHECKING:
    from tfrecord_io.arrow.messages.message_batches import AnyBatchBuilder

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
    region = SkippedRegion(path, None, None, error.detail, record, type(error).__name__)
    return recovery.accept(region, file, error)


def columns_of(columns: Mapping[str, ColumnBuffers], begin: int, end: int) -> Mapping[str, ColumnBuffers]:
    """The rows [begin, end) of columns."""
    return {name: cut(column, begin, end) for name, column in columns.items()}


class ChunkBatches(NamedTuple):
    """The batches of a chunk.

    Attributes
    ----------
    parts : list of (int, pyarrow.RecordBatch)
        Each with the index of its first row among those that the chunk's columns have.
    fault : RowFault or None
        Of the row that ends them.
    left_out : list of int
        The rows that are damaged and left out: their indexes among the rows that the chunk's columns have.
    """

    parts: list[tuple[int, pa.RecordBatch]]
    fault: RowFault | None
    left_out: Sequence[int] = ()


def chunk_batches(
    chunk: DecodedChunk,
    builder: AnyBatchBuilder,
    expansion: Expansion,
    recovery: Recovery | None,
    budget: RowBudget,
    may_pass: Callable[[Mapping[str, ColumnBuffers], int], Array] | None = None,
) -> ChunkBatches:
    """The batches of a chunk.

    `may_pass` is that of an early filter: what does not fit in a row that is known not to pass is no fault.
    """
    rows, left_out = chunk.held, list[int]()
    if recovery is None and may_pass is None:
        batch, fault = builder.batch(chunk.columns, rows, expansion)
        return ChunkBatches([(0, batch)], fault)

    def make(begin: int, end: int) -> pa.RecordBatch | RowFault:
        is_whole, room = (begin, end) == (0, rows), expansion.room
        columns = chunk.columns if is_whole else columns_of(chunk.columns, begin, end)
        batch, fault = builder.batch(columns, end - begin, expansion)
        if fault is None:
            return batch
        expansion.room = room
        return fault

    def passes(fault: RowFault) -> bool:
        row = columns_of(chunk.columns, fault.row, fault.row + 1)
        if may_pass is not None and not fault.of_memory and not may_pass(row, 1)[0]:
            return True
        if not leave_out(recovery, fault, chunk.path, chunk.file, chunk.first_record + chunk.row(fault.row)):
            return False
        left_out.append(fault.row)
        budget.give_back(1)
        return True

    batches: list[tuple[int, pa.RecordBatch]] = []
    last: RowFault | None = None
    for begin, _, part in fitting_parts(rows, make, passes):
        if isinstance(part, RowFault):
            last = part
        else:
            batches.append((begin, part))
    return ChunkBatches(batches or [(0, make(0, 0))], last, left_out)
