"""Search the column indexes of files: for all values of a read, or for the records that can fulfil a condition.

`ColumnSearch.files` takes sources and returns the matches in each; `picked_sources` turns matches into sources that
have only the matching records.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS, ordered
from tfrecord_io.bytes import FRAME_BYTES, Array
from tfrecord_io.columns import int64_array
from tfrecord_io.errors import CorruptRecordError, SchemaError
from tfrecord_io.read.index.column_index import COLUMNS_SUFFIX, REWRITE_COLUMNS, ColumnIndex
from tfrecord_io.read.index.find_index import open_columns, unless_stale, warn_of_stale
from tfrecord_io.read.index.record_index import RecordIndex
from tfrecord_io.store import Bytes, Origin, RandomAccessFile, Source, find_sidecars

_THREADS = 16


class Condition(Protocol):
    """A condition on rows, and the columns that it needs."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def mask(self, batch: pa.RecordBatch, /) -> pa.BooleanArray: ...


@dataclass(frozen=True, slots=True, eq=False)
class FileMatches:
    """The records of a file, or of a piece of it, that can fulfil a condition."""

    file: Source  # the whole file
    size: int  # its bytes
    first: int  # record index of the first record of the piece
    index: RecordIndex  # of all records of the file or the piece; empty where they need not be found
    records: Array  # their numbers in `index`, ascending
    parts: Sequence[Condition]  # they all fulfil these parts of it, whose columns the index has
    exact: bool  # those are all parts
    is_doubtful: bool  # not all of the file's content was compared with the index, so they may not fulfil these parts
    has_schema: bool  # the first record of the file has an embedded schema
    version: str  # of the file (`RandomAccessFile.version`) that the index was compared with
    values: FileValues | None = None  # those of all records, none of which has to be read: `records` is empty

    @property
    def count(self) -> int:
        """The number of records of the file or the piece."""
        return len(self.index) if self.values is None else len(self.values.table)


@dataclass(frozen=True, slots=True, eq=False)
class FileValues:
    """The values that replace reading a file, or a piece of one."""

    table: pa.Table  # a row for each record
    embedded: bytes | None = None  # the embedded schema of the first record of the file, if the piece begins with that


@dataclass(frozen=True, slots=True, eq=False)
class WantedColumns:
    """The columns of a read whose values may be those of column indexes."""

    fields: pa.Schema  # how they are read; an index stands for its file if it has an equal field of each
    # Whether the plan covers a file by its first record's embedded schema; None: that is not known, or it has none.
    covers: Callable[[Source, bytes | None], bool]
    # That schema, of an open file whose index states that there is one.
    embedded: Callable[[Source, RandomAccessFile], bytes | None]
    max_record_bytes: int  # a file with a larger record is read, which is an error


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSearch:
    """A condition that column indexes are searched by."""

    parts: Sequence[Condition]  # a row fulfils the condition where it fulfils all of them
    fields: pa.Schema  # of the columns as the read has them; an index is used only for columns with an equal field
    constants: Callable[[Source], pa.RecordBatch]  # the columns whose values are those of a file, as a batch of one row
    wanted: WantedColumns | None = None  # all columns of the read

    def files(
        self,
        sources: Sequence[Source],
        warns: Callable[[Iterable[str]], None] = warn_of_stale,
        indexes: Sequence[Source | None] | None = None,
    ) -> list[FileMatches | None]:
        """The matches in each file or piece; None where it has no column index, or none that helps.

        `indexes` are the `column_indexes`, where they were looked for.

        Where an index has all columns that are wanted, and is known to be of the file's content, it is their values;
        else the records that can fulfil the condition. An index that is damaged or does not match its file is none;
        `warns` gets the texts of warnings. Nor is, for a piece of a file, one that was compared with some of its
        records only: those that it names in other pieces may be what tells that it is of another content.
        """
        if indexes is None:
            indexes = column_indexes(sources)
        if not any(indexes):
            return [None] * len(sources)
        pairs = zip(indexes, sources, strict=True)
        calls = (partial(unless_stale, partial(self._file, *both)) for both in pairs)
        results = list(ordered(calls, min(_THREADS, len(sources)), "columns"))
        warns(text for _, text in results)
        return [matches for matches, _ in results]

    def _file(self, index_source: Source | None, source: Source) -> FileMatches | None:
        if index_source is None:
            return None
        whole, wanted = source.whole_file(), self.wanted
        with RandomAccessFile.open(whole) as file:
            longest = None if wanted is None or source.span is not None else wanted.max_record_bytes
            most_rows = math.inf if source.span is None else (source.size or 0) / LIMITS.index_row_bytes[source.local]
            about: dict[str, Any] = {"most_rows": most_rows, "longest": longest}
            with open_columns(index_source, whole, file, source.span, **about) as (columns, index):
                if len(columns.numbers) > most_rows:
                    return None
                values = (
                    _values(wanted, columns, index=index, source=source, file=file)
                    if wanted and columns.is_certain
                    else None
                )
                if values is not None:
                    return values
                if not self.parts:
                    return None
                index = columns.records() if index is None else index
                matching = self._passing(columns, len(index), self.constants(source))
        is_other = source.file_bytes not in (None, file.size) or (source.span is not None and not columns.is_certain)
        if matching is None or is_other or (span := _records_of(source, index)) is None:
            return None
        (passing, parts), (begin, end) = matching, span
        records = np.flatnonzero(passing[begin:end])
        first, part = columns.numbers.start + begin, RecordIndex(index.bounds[begin : end + 1])
        exact, is_doubtful, has_schema = len(parts) == len(self.parts), not columns.is_certain, columns.has_schema
        return FileMatches(
            file=whole,
            size=file.size,
            first=first,
            index=part,
            records=records,
            parts=parts,
            exact=exact,
            is_doubtful=is_doubtful,
            has_schema=has_schema,
            version=file.version,
        )

    def _passing(
        self, columns: ColumnIndex, rows: int, constants: pa.RecordBatch
    ) -> tuple[Array, Sequence[Condition]] | None:
        """A boolean for each record: true if it can fulfil the evaluated parts, which follow; None if there is none."""
        indexed = [field for field in self.fields if columns.has(field)]
        known_columns = {*(field.name for field in indexed), *constants.schema.names}
        parts = [part for part in self.parts if known_columns.issuperset(part.columns)]
        needed = [field for field in indexed if any(field.name in part.columns for part in parts)]
        if not needed:
            return None
        passing = np.ones(rows, bool)
        begin = 0
        for batch in columns.columns(needed).to_batches(max_chunksize=1 << 20):
            zeros = int64_array(np.zeros(len(batch), np.int64))
            arrays = [*batch.columns, *(column.take(zeros) for column in constants.columns)]
            batch = pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, *constants.schema.names])
            for part in parts:
                try:
                    mask = part.mask(batch).to_numpy(zero_copy_only=False)
                except SchemaError:  # it cannot be applied to some row, which may not have to be read
                    parts = [remaining for remaining in parts if remaining is not part]
                    continue
                passing[begin : begin + len(batch)] &= mask
            begin += len(batch)
        return (passing, parts) if parts else None


def _values(
    wanted: WantedColumns, columns: ColumnIndex, index: RecordIndex | None, source: Source, file: RandomAccessFile
) -> FileMatches | None:
    """All wanted values of a file or piece; None if the records have to be read."""
    if not all(map(columns.has, wanted.fields)) or source.file_bytes not in (None, file.size):
        return None
    begin, end, part = 0, len(columns.numbers), RecordIndex.from_sizes([])
    if index is not None:
        span = _records_of(source, index)
        if span is None or (len(index) and int(index.sizes.max()) > wanted.max_record_bytes + FRAME_BYTES):
            return None
        begin, end = span
        part = RecordIndex(index.bounds[begin : end + 1])
    embedded, first = None, columns.numbers.start + begin
    if first == 0 and end:
        if columns.has_schema:
            embedded = wanted.embedded(source, file)
        if not wanted.covers(source, embedded):
            return None
    values = FileValues(columns.columns(wanted.fields).slice(begin, end - begin), embedded)
    about = (columns.has_schema, file.version, values)
    return FileMatches(source.whole_file(), file.size, first, part, np.empty(0, np.int64), (), True, False, *about)


def _records_of(source: Source, index: RecordIndex) -> tuple[int, int] | None:
    """The range of the records of a source in an index; None if the source is a piece of another file.

    A reader of such a piece raises an error.
    """
    begin, end = (0, len(index)) if source.span is None else index.bounds.searchsorted(source.span).tolist()
    bounds = index.bounds[begin : end + 1]
    is_exact = source.span is not None and source.file_bytes is None
    return None if is_exact and (not len(bounds) or (bounds[0], bounds[-1]) != source.span) else (begin, end)


def column_indexes(sources: Sequence[Source]) -> list[Source | None]:
    """The column index of each file, or of the file of each piece that is not small."""
    files = []
    for source in sources:
        is_large = source.span is not None and (source.size or 0) >= LIMITS.least_piece_bytes
        files.append(replace(source, span=None) if is_large else source)
    return find_sidecars(files, (COLUMNS_SUFFIX,))


# ---- the records that were found


_TASK_BYTES = 8 << 20
_AHEAD_BYTES = 64 << 20  # read together,


@dataclass(frozen=True, slots=True, eq=False)
class PickedSource:
    """The part of a file to read."""

    source: Source | None  # with the picked records only; None: nothing is read
    count: int | None  # the number of records in the file, if known
    records: Array | None  # the indices of the picked records; None: all
    frames: PickedFrames | None = None  # the reader of picked records
    values: FileValues | None = None  # all values of the records: the source is not opened
    path: str = ""  # of a file from which nothing is read


def picked_sources(sources: Sequence[Source], matches: Sequence[FileMatches | None]) -> list[PickedSource]:
    """Restrict files to the records that match.

    A file without matches is not read. A file stays whole if most of it is needed, or if its matches are unknown.
    """
    frames = PickedFrames()
    picked: list[PickedSource] = []
    for source, match in zip(sources, matches, strict=True):
        if match is None:
            picked.append(PickedSource(source, None, None))
            continue
        count, records = match.count, match.records
        if match.values is not None:
            picked.append(PickedSource(source, count, None, values=match.values))
        elif _bytes_read(match) > LIMITS.largest_share[source.local] * (match.index.end - int(match.index.bounds[0])):
            picked.append(PickedSource(source, count, None))
        elif not len(records):
            picked.append(PickedSource(None, count, None, path=source.path))
        else:
            file = _PickedFile(frames, source.path, frames.add(match))
            origin = _Origins(source.path, match.first + records, match.index.offsets[records])
            some = replace(Source.of_file_object(file), partitions=source.partitions, origin=origin)
            picked.append(PickedSource(some, count, records, frames))
    return picked


@dataclass(frozen=True, slots=True, eq=False)
class _Origins:
    """The record index and the offset of each picked record in its file."""

    path: str
    records: Array
    offsets: Array

    def __call__(self, record: int) -> Origin | None:
        if record >= len(self.records):
            return None
        return Origin(self.path, int(self.records[record]), int(self.offsets[record]))

    def byte(self, record: int, byte: int) -> int:
        return byte


def _ranges(matches: FileMatches) -> Array:
    """The number of the byte range of each record; neighbouring ranges are joined."""
    offsets, ends = matches.index.bounds[matches.records], matches.index.bounds[matches.records + 1]
    apart = offsets[1:] - ends[:-1] > LIMITS.gap_bytes[matches.file.remote is None]
    return np.concatenate([np.zeros(min(1, len(offsets)), np.int64), np.cumsum(apart)])


def _bytes_read(matches: FileMatches) -> int:
    """Count the bytes of the ranges that cover the records."""
    if not len(matches.records):
        return 0
    numbers, bounds = _ranges(matches), matches.index.bounds
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    last = np.append(first[1:], len(numbers)) - 1
    return int((bounds[matches.records[last] + 1] - bounds[matches.records[first]]).sum())


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """Records of one file that are read together."""

    source: Source
    size: int  # of the file
    version: str
    begins: Array
    ends: Array
    ranges: int

    def open_file(self) -> RandomAccessFile:
        """Open the file; ReplacedError if it was replaced."""
        return RandomAccessFile.open_version(self.source, self.size, self.version, self.source.path)

    def read(self) -> Bytes:
        """Read the frames of the records, one after the other.

        CorruptRecordError where the file has no records of these sizes; ReplacedError if the file was replaced.
        """
        with self.open_file() as file:
            parts = file.read_all(self.begins.tolist(), self.ends.tolist())
        data: Bytes = np.concatenate(parts)
        starts = np.cumsum(self.ends - self.begins) - (self.ends - self.begins)
        lengths = data[starts[:, None] + np.arange(8)].view("<u8")[:, 0]
        wrong = np.flatnonzero(lengths != (self.ends - self.begins - FRAME_BYTES).astype(np.uint64))
        if len(wrong):
            offset, length = int(self.begins[wrong[0]]), int(self.ends[wrong[0]] - self.begins[wrong[0]])
            reason = f"the column index does not match the file, which has no record of {length} bytes at byte {offset}"
            raise CorruptRecordError(reason, path=self.source.path, hint=f"{REWRITE_COLUMNS}, or delete it")
        return data


class PickedFrames:
    """Reader of the frames of picked records of all files; the next frames are read together."""

    def __init__(self) -> None:
        self._tasks: list[_Task] = []
        self._contents: dict[int, Bytes] = {}
        self.keeps = False  # what was read, for another read of all
        self._lock = Lock()

    def add(self, matches: FileMatches) -> range:
        """Add the records of a file; returns the numbers of their parts."""
        first = len(self._tasks)
        bounds, numbers = matches.index.bounds, _ranges(matches)
        begins, ends = bounds[matches.records], bounds[matches.records + 1]
        done = np.cumsum(ends - begins)
        begin = 0
        while begin < len(begins):
            before = done[begin - 1] if begin else 0
            fitting = int(done.searchsorted(before + _TASK_BYTES, side="right"))
            end = max(begin + 1, min(fitting, int(numbers.searchsorted(numbers[begin] + LIMITS.task_ranges))))
            ranges = int(numbers[end - 1] - numbers[begin]) + 1
            part = slice(begin, end)
            self._tasks.append(
                _Task(
                    matches.file,
                    matches.size,
                    version=matches.version,
                    begins=begins[part],
                    ends=ends[part],
                    ranges=ranges,
                )
            )
            begin = end
        return range(first, len(self._tasks))

    def take(self, number: int) -> Bytes:
        """The content of a part, read together with the next parts if it has not been."""
        with self._lock:
            if number in self._contents:
                self._tasks[number].open_file().close()  # it was read a while ago
            else:
                numbers = list(self._ahead(number))
                contents = ordered((self._tasks[at].read for at in numbers), len(numbers), "picked")
                self._contents |= zip(numbers, contents, strict=True)
            return self._contents[number] if self.keeps else self._contents.pop(number)

    @property
    def bytes(self) -> int:
        """The size of all records."""
        return sum(int((task.ends - task.begins).sum()) for task in self._tasks)

    @property
    def requests(self) -> int:
        """Number of requests to a store for all records."""
        remote = (task for task in self._tasks if task.source.remote is not None)
        return sum(RandomAccessFile.requests_for_ranges(task.size, task.ranges) for task in remote)

    def _ahead(self, number: int) -> Iterator[int]:
        ranges = size = 0
        for at in range(number, len(self._tasks)):
            task = self._tasks[at]
            ranges, size = ranges + task.ranges, size + int((task.ends - task.begins).sum())
            if at > number and (ranges > 2 * LIMITS.task_ranges or size > _AHEAD_BYTES):
                return
            yield at


@contextmanager
def keep_frames(frames: Iterable[PickedFrames | None]) -> Iterator[None]:
    """Keep the bytes of records for the next reader, unless they are many."""
    small = {picked for picked in frames if picked is not None and picked.bytes <= _AHEAD_BYTES}
    for picked in small:
        picked.keeps = True
    yield
    for picked in small:
        picked.keeps = False


class _PickedFile(io.RawIOBase):
    """Present the picked records of a file as a file of their own, to be read from the start only."""

    def __init__(self, frames: PickedFrames, name: str, parts: range) -> None:
        self.name = name
        self._frames, self._parts = frames, parts
        self._next, self._rest = iter(parts), memoryview(b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return 0

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if offset or whence:
            raise io.UnsupportedOperation("seek to another byte than the first")
        self._next, self._rest = iter(self._parts), memoryview(b"")
        return 0

    def readinto(self, buffer: Any, /) -> int:
        if not len(self._rest):
            part = next(self._next, None)
            if part is None:
                return 0
            self._rest = self._frames.take(part).data
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
