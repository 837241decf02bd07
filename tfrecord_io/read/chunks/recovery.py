"""Go on behind damage, where an ``on_error`` says so, and keep account of what is left out.

Nothing here runs before a fault. `Recovery` is what a `BlockWalker` calls as its `recover`.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard, TypeVar, overload

import pyarrow as pa

from tfrecord_io.base import LINE_WIDTH, Expansion, OnDamage, byte_size, cached_property, counted, printable, warn
from tfrecord_io.bytes import Array, ColumnBuffers, Engine, FrameHeader, get_engine
from tfrecord_io.errors import (
    CompressionError,
    CorruptRecordError,
    DamagedDataWarning,
    DecodeError,
    FeatureNotFoundError,
    FeatureTypeError,
    TFRecordError,
)
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.store import Source

if TYPE_CHECKING:
    from tfrecord_io.columns import BatchBuilder, MessageBatchBuilder, RowFault
    from tfrecord_io.read.chunks.chunk import DecodedChunk, RowBudget

_NAMED_FILES = 3  # in a warning


@dataclass(frozen=True)
class SkippedRegion:
    """A damaged part of a file that a reader left out, because of ``on_error="skip"``, ``"collect"`` or a callable.

    Attributes
    ----------
    path : str
        The file.
    begin, end : int or None
        The bytes [begin, end) of the uncompressed file; None if unknown. An unknown end is that of the file.
    reason : str
        What is wrong, in a clause.
    records_before : int
        The number of records before it, which is the index of the first damaged record. Earlier regions count as one
        record each.
    error : str
        The class of the error that ``on_error="raise"`` raises here.
    """

    path: str
    begin: int | None
    end: int | None
    reason: str
    records_before: int
    error: str

    @property
    def bytes(self) -> int | None:
        """The size of the region; None if unknown."""
        return None if self.begin is None or self.end is None else self.end - self.begin


_REGION = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("first_record", pa.int64()),
        pa.field("begin_byte", pa.int64()),
        pa.field("end_byte", pa.int64()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
    ]
)


class SkippedRegions(Sequence[SkippedRegion]):
    """The regions that were left out, in the order of the files, and sums over all.

    These are the first `MOST`; with ``on_error="collect"`` all of them.

    Attributes
    ----------
    total : int
        Number of all regions.
    bytes : int
        The sum of their sizes, as far as they are known.
    files : Counter of str
        Number of regions by path.
    """

    MOST: ClassVar = 1000  # that are kept
    HEADINGS: ClassVar = ("file", "records before", "begin", "end", "left out because")

    def __init__(self, receive: Callable[[SkippedRegions], object] | None = None) -> None:
        self._receive, self._keeps_all = receive, receive is not None  # see `OnDamage.receive`
        self.clear()

    def clear(self) -> None:
        """Count from zero again."""
        self.total = self.bytes = 0
        self.files: Counter[str] = Counter()
        self._kept: list[tuple[int, int, int, int, SkippedRegion]] = []
        self._numbers: set[int] = set()
        self._errors: set[str] = set()  # the classes
        self._in_memory = False  # one is of a file object, or of a column
        self._images = 0  # that could not be decoded, of records that are intact

    def add(self, region: SkippedRegion, file: int = 0, *, in_memory: bool = False, of_image: bool = False) -> None:
        """Add a region of the file with a number in the order of reading."""
        begin = -1 if region.begin is None else region.begin
        insort(self._kept, (file, region.records_before, begin, self.total, region))
        if not self._keeps_all:
            del self._kept[self.MOST :]
        self.total += 1
        self.bytes += region.bytes or 0
        self.files[region.path] += 1
        self._errors.add(region.error)
        self._numbers.add(file)
        self._in_memory |= in_memory
        self._images += of_image

    def add_all(self, others: SkippedRegions) -> None:
        """Add the regions of another read, behind those of this one."""
        after = max(self._numbers, default=-1) + 1
        kept = [(after + file, before, begin, at, region) for file, before, begin, at, region in others._kept]
        self._receive, self._keeps_all = self._receive or others._receive, self._keeps_all or others._keeps_all
        self._kept = [*self._kept, *kept] if self._keeps_all else [*self._kept, *kept][: self.MOST]
        self.total += others.total
        self.bytes += others.bytes
        self.files += others.files
        self._errors |= others._errors
        self._in_memory |= others._in_memory
        self._images += others._images
        self._numbers.update(after + file for file in others._numbers)

    def unite(self, others: SkippedRegions) -> None:
        """Add the regions of another read of the same files, but for those that are here."""
        known = {(file, before, begin, region.end) for file, before, begin, _, region in self._kept}
        for file, before, begin, _, region in others._kept:
            if (file, before, begin, region.end) not in known:
                self.add(region, file, in_memory=others._in_memory)

    def to_table(self) -> pa.Table:
        """A row for each of the regions: see `ReadReport.skipped_table`."""
        return self.table(self)

    @staticmethod
    def table(regions: Iterable[SkippedRegion]) -> pa.Table:
        """A row for each of some regions: see `ReadReport.skipped_table`."""
        names = ("path", "records_before", "begin", "end", "reason", "error")
        columns = zip(*([getattr(region, name) for name in names] for region in regions), strict=True)
        values = list(columns) or [()] * len(names)
        arrays = [pa.array(column, field.type) for column, field in zip(values, _REGION, strict=True)]
        return pa.Table.from_arrays(arrays, schema=_REGION)

    @staticmethod
    def texts(regions: Iterable[SkippedRegion]) -> list[tuple[str, ...]]:
        """A row of text for each of some regions, below `HEADINGS`."""
        return [
            (
                printable(region.path, LINE_WIDTH),
                f"{region.records_before:,}",
                "" if region.begin is None else f"{region.begin:,}",
                "" if region.end is None else f"{region.end:,}",
                printable(region.reason),
            )
            for region in regions
        ]

    def has_file(self, file: int) -> bool:
        """True if a region of the file with this number was left out."""
        return file in self._numbers

    def __eq__(self, other: object) -> bool:
        return self._state == other._state if isinstance(other, SkippedRegions) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def _state(self) -> dict[str, Any]:
        return {**vars(self), "_receive": None}

    def __getstate__(self) -> dict[str, Any]:
        """Another process has no call that receives them."""
        return self._state

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> SkippedRegion: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SkippedRegion]: ...
    def __getitem__(self, index: int | slice) -> SkippedRegion | Sequence[SkippedRegion]:
        if isinstance(index, slice):
            return [item[-1] for item in self._kept[index]]
        return self._kept[index][-1]

    def __repr__(self) -> str:
        return f"<{self.summary()}>"

    def summary(self) -> str:
        """The sums, the files and the first reason, in a sentence."""
        if not self.total:
            return "nothing was left out"
        names = [f"{printable(path)} ({count:,})" for path, count in self.files.most_common(_NAMED_FILES)]
        if len(self.files) > _NAMED_FILES:
            names.append(counted(len(self.files) - _NAMED_FILES, "more file"))
        first = self[0]
        where = "" if first.begin is None else f" at byte {first.begin}"
        what = counted(self.total, "damaged region")
        if self.bytes or not self._in_memory:
            what += f" of {byte_size(self.bytes) if self.bytes else 'unknown size'}"
        if self._errors == {FeatureTypeError.__name__}:
            what = f"{counted(self.total, 'record')} with values of another feature type"
        first_is = f"the first is record {first.records_before}{where}: {printable(first.reason, 300)}"
        return f"{what} left out in {', '.join(names)}; {first_is}"

    def warn(self, issue: Callable[[str], object] | None = None) -> None:
        """Tell the caller of the regions, if there are any: the one who receives them, else by a warning."""
        if self.total and self._receive is not None:
            self._receive(self)
        elif self.total and not self._keeps_all:
            summary = self.summary()
            verify_cli = "tfr verify --images=full" if self._images else "tfr verify"
            if self._in_memory:
                advice = "to list them, pass a function as on_error="
            elif self._images:
                advice = "tfr.verify(path, images='full') lists them"
            else:
                advice = "tfr verify lists them, or see open_reader(on_error=…).report.skipped"
            if issue is None:
                warn(f"{summary}; {advice}", DamagedDataWarning, f"{summary}; {verify_cli} lists them")
            else:
                issue(f"{summary}; {advice}")


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
        if not is_damage(error) or walker.file is None:
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


def is_damage(error: Exception) -> TypeGuard[TFRecordError]:
    """True if an error is about damage of a file, and good records may follow.

    Not: an error of the storage, a contradiction between schemas, too little room for intact records, or a file that is
    no TFRecord file at all.
    """
    from tfrecord_io.bytes import Fault, ForeignFile

    if isinstance(error, TFRecordError) and error.of_memory:
        return False
    if isinstance(error, CorruptRecordError):
        return (
            not Fault.is_other_format(error) or error.got == ForeignFile.ZEROS
        )  # a hole at the start of a file is damage
    return isinstance(error, CompressionError | DecodeError | FeatureNotFoundError)


def _pass_damage(walker: BlockWalker, error: TFRecordError, engine: Engine) -> tuple[int, int | None, str]:
    """Move the walker behind the damage; returns its begin and end in the uncompressed file, and the reason."""
    if isinstance(error, CompressionError):
        # The lost bytes are not counted, as the uncompressed file is what can be read. The record that they are taken
        # from is damaged then, and is passed by itself.
        begin, gap = walker.unread, walker.pass_damage()
        if gap is not None:
            return gap.offset, gap.offset, str(gap)
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
    if recovery is None or not is_damage(error):
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
    room = expansion.room
    part = columns if (begin, end) == (0, rows) else ColumnBuffers.cut_all(columns, begin, end)
    batch, fault = builder.batch(part, end - begin, expansion)
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
