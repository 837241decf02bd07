"""Go on after damage, where an ``on_error`` says so, and keep account of what is left out.

Nothing here runs before a fault. `Recovery` is what a `BlockWalker` calls as its `recover`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

import pyarrow as pa

from tfrecord_io.base import Expansion, OnDamage, cached_property
from tfrecord_io.bytes import Array, ColumnBuffers, Engine, FrameHeader, get_engine
from tfrecord_io.errors import CompressionError, CorruptRecordError, TFRecordError
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.read.chunks.skipped_region import SkippedRegion
from tfrecord_io.read.chunks.skipped_regions import SkippedRegions
from tfrecord_io.store import Source

if TYPE_CHECKING:
    from tfrecord_io.columns import BatchBuilder, MessageBatchBuilder, RowFault
    from tfrecord_io.read.chunks.chunk import DecodedChunk, RowBudget


class Recovery:
    """Decides at each fault whether reading goes on, moves the walker there, and keeps account.

    The `OnDamage` of an `on_error` accepts the error, with its ``region``, or not. `sources` are the files by number:
    pieces count their records from their begin.
    """

    def __init__(self, on_error: object, sources: Sequence[Source] = ()) -> None:
        self._damage = OnDamage.of(on_error)
        self.skipped = SkippedRegions(self._damage.receive)
        self._sources = sources

    @classmethod
    def of(cls, on_error: object, sources: Sequence[Source]) -> Self | None:
        """The recovery for an `on_error`; None if reading ends at the first fault."""
        return cls(on_error, sources) if OnDamage.of(on_error).goes_on else None

    def __call__(self, walker: BlockWalker, error: Exception) -> bool:
        """See `BlockWalker.recover`."""
        if not OnDamage.is_damage(error) or walker.file is None:
            return False
        path, number, record = walker.file.path, walker.number, walker.record
        begin, end, reason = _pass_damage(walker, error, get_engine())
        region = SkippedRegion(path, begin, end=end, reason=reason, records_before=record, error=type(error).__name__)
        return self.accept(region, number, error)

    def accept(self, region: SkippedRegion, file: int, error: TFRecordError) -> bool:
        """Leave a region out, if `on_error` allows; it then counts as skipped."""
        in_memory = bool(self._sources) and self._sources[file].is_file_object
        if in_memory and self._sources[file].derived is not None:  # values of a column, which are not bytes of a file
            region = replace(region, begin=None, end=None)
        if self._sources and (piece := self._sources[file].begin):
            region = replace(region, counted_from=piece)
        error.region = region
        if not self._damage.accept(error, self._place(region, file) if self._sources else None):
            return False
        self.skipped.add(region, file, in_memory=in_memory, of_image=getattr(error, "of_image", False))
        return True

    def _place(self, region: SkippedRegion, file: int) -> Hashable:
        """The identity of a region among those of its path, the same in every read of the file.

        The bytes of what is derived from a file are none of the file.
        """
        source = self._sources[file]
        if region.begin is not None and source.origin is None:
            return region.begin, self._repeats[file]
        return (source.begin, source.origin, region.records_before, self._repeats[file])

    @cached_property
    def _repeats(self) -> list[int]:
        """How many of the files before each are the same one."""
        seen: Counter[tuple[str, int]] = Counter()
        repeats = []
        for source in self._sources:
            repeats.append(seen[source.path, source.begin])
            seen[source.path, source.begin] += 1
        return repeats


def _pass_damage(walker: BlockWalker, error: TFRecordError, engine: Engine) -> tuple[int, int | None, str]:
    """Move the walker past the damage; returns its begin and end in the uncompressed file, and the reason."""
    if isinstance(error, CompressionError):
        # The lost bytes are not counted, as the uncompressed file is what can be read. The record that they are taken
        # from is damaged then, and is passed by itself.
        begin, gap = walker.unread, walker.pass_damage()
        if gap is not None:
            return gap.offset, gap.offset, str(gap)
        walker.end_file()
        return begin, None, error.detail
    if walker.block is None:  # a stream of records of another format ends here
        begin = walker.unread
        walker.end_file()
        return begin, None, error.detail
    begin = walker.offset
    if isinstance(error, CorruptRecordError):
        from tfrecord_io.read.chunks.resync import BoundarySearch

        end = BoundarySearch(walker, engine).pass_damage()
    else:
        size = FrameHeader(walker.data[: FrameHeader.BYTES]).frame_size
        walker.discard(size)
        end = begin + size
    walker.record += 1
    return begin, end, error.detail


T = TypeVar("T")

_FIRST_STEP = 64  # rows that are tried after a fault; twice as many after each success


def fitting_parts(
    rows: int, make: Callable[[int, int], T | RowFault], passes: Callable[[RowFault], bool]
) -> Iterator[tuple[int, int, T | RowFault]]:
    """Make parts of all rows but those that have a fault; yield the first row, the end and the part.

    `make` makes a part of the rows [begin, end), or returns or raises the fault of the first one that does not fit,
    whose ``row`` is counted from `begin`. `passes` says whether the row of a fault, counted from the start of all rows,
    may be left out: one that may not is the last part, after the rows before it.
    """
    from tfrecord_io.columns import RowFault  # counting decodes no rows

    begin, step = 0, max(rows, 1)
    while True:
        end = min(begin + step, rows)
        part: T | RowFault
        try:
            part = make(begin, end)
        except RowFault as raised:
            part = raised.with_traceback(None)  # whose frames would keep the rows
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
    """Leave out the record of a row with a fault, if `recovery` allows; it then counts as skipped."""
    error = fault.to_error(path, record)
    if recovery is None or not OnDamage.is_damage(error):
        return False
    region = SkippedRegion(path, None, end=None, reason=error.detail, records_before=record, error=type(error).__name__)
    return recovery.accept(region, file, error)


def batch_or_fault(
    builder: BatchBuilder | MessageBatchBuilder,
    columns: Mapping[str, ColumnBuffers],
    rows: int,
    expansion: Expansion,
    begin: int,
    end: int,
) -> pa.RecordBatch | RowFault:
    """A batch of the rows [begin, end) of columns that have `rows`, or the fault of one; then it takes no memory."""
    from tfrecord_io.columns import BatchBuilder

    room = expansion.room
    part = columns if (begin, end) == (0, rows) else ColumnBuffers.cut_all(columns, begin, end)
    if isinstance(builder, BatchBuilder):
        batch, fault = builder.batch(part, end - begin, expansion)
    else:
        counter = builder.counting()
        batch, fault = counter.batch(part, end - begin, expansion)
        if fault is None:  # else the rows before it are read again
            builder.unknown.update(counter.unknown)
    if fault is None:
        return batch
    expansion.room = room
    return fault


def chunk_batches(
    chunk: DecodedChunk,
    builder: BatchBuilder | MessageBatchBuilder,
    expansion: Expansion,
    recovery: Recovery | None,
    budget: RowBudget,
    may_pass: Callable[[Mapping[str, ColumnBuffers], int], Array] | None = None,
) -> tuple[list[tuple[int, pa.RecordBatch]], RowFault | None, Sequence[int]]:
    """The batches of a chunk, the fault of the row that ends them, and the damaged rows left out.

    Each batch has the index of its first row. Rows are counted among those that the chunk's columns have. `may_pass` is
    that of an early filter: what does not fit in a row that is known not to pass is not a fault.
    """
    from tfrecord_io.columns import RowFault

    rows, left_out = chunk.held, list[int]()

    def passes(fault: RowFault) -> bool:
        row = ColumnBuffers.cut_all(chunk.columns, fault.row, fault.row + 1)
        if may_pass is not None and not fault.of_memory and not may_pass(row, 1)[0]:
            return True
        if not leave_out(
            recovery, fault, path=chunk.path, file=chunk.file, record=chunk.first_record + chunk.row(fault.row)
        ):
            return False
        left_out.append(fault.row)
        budget.give_back(1)
        return True

    make = partial(batch_or_fault, builder, chunk.columns, rows, expansion)
    batches: list[tuple[int, pa.RecordBatch]] = []
    last: RowFault | None = None
    for begin, _, part in fitting_parts(rows, make, passes):
        if isinstance(part, RowFault):
            last = part
        else:
            batches.append((begin, part))
    return batches or [(0, make(0, 0))], last, left_out
