"""Read the records that column indexes found, as if each file had no others.

`picked_sources` takes what `column_search` found, and returns what is to be read of each file. The records of all
files are read together by a `PickedFrames`, ahead of the reader.

Tests: tests/read/index/test_column_search.py, tests/laws/test_indexed_filter_laws.py and
tests/laws/test_indexed_bytes_laws.py.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from tfrecord_io.base import LIMITS, ordered
from tfrecord_io.bytes import Array, FrameHeader
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.read.index.column_index import REWRITE_COLUMNS
from tfrecord_io.read.index.column_search import ComparedFile, FileMatches, FileValues
from tfrecord_io.store import BlockReader, Origin, RandomAccessFile, Source

_TASK_BYTES = 8 << 20
_AHEAD_BYTES = 64 << 20  # read together


@dataclass(frozen=True, slots=True, eq=False)
class PickedSource:
    """The part of a file to read."""

    source: Source | None  # with the picked records only; None: nothing is read
    count: int | None  # the number of records in the file, if known
    records: Array | None  # the indices of the picked records; None: all
    frames: PickedFrames | None = None  # the reader of picked records
    values: FileValues | None = None  # all values of the records: the source is not opened
    path: str = ""  # of a file from which nothing is read


def picked_sources(sources: Sequence[Source], results: Sequence[FileMatches | FileValues | None]) -> list[PickedSource]:
    """Restrict files to the records that match.

    A file without matches is not read, nor one whose values are known. A file stays whole if most of it is needed, or
    if its matches are unknown.
    """
    frames = PickedFrames()
    picked: list[PickedSource] = []
    for source, match in zip(sources, results, strict=True):
        if match is None:
            picked.append(PickedSource(source, None, None))
            continue
        if isinstance(match, FileValues):
            picked.append(PickedSource(source, match.count, None, values=match))
            continue
        count, records = match.count, match.records
        if _bytes_read(match) > LIMITS.largest_share[source.local] * (match.index.end - int(match.index.bounds[0])):
            picked.append(PickedSource(source, count, None))
        elif not len(records):
            picked.append(PickedSource(None, count, None, path=source.path))
        else:
            file = _PickedFile(frames, source.path, frames.add(match))
            origin = _Origins(source.path, match.first + records, match.index.offsets[records])
            some = Source.from_file_object(file).replace(partitions=source.partitions, origin=origin)
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
    apart = offsets[1:] - ends[:-1] > LIMITS.gap_bytes[matches.file.source.remote is None]
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

    file: ComparedFile
    begins: Array
    ends: Array
    ranges: int

    @property
    def bytes(self) -> int:
        return int((self.ends - self.begins).sum())

    def read(self) -> BlockReader.Buffer:
        """Read the frames of the records, one after the other.

        CorruptRecordError where the file has no records of these sizes; ReplacedError if the file was replaced.
        """
        with self.file.open() as file:
            parts = file.read_all(self.begins.tolist(), self.ends.tolist())
        data: BlockReader.Buffer = np.concatenate(parts)
        starts = np.cumsum(self.ends - self.begins) - (self.ends - self.begins)
        lengths = FrameHeader.payload_lengths(data, starts)
        wrong = np.flatnonzero(lengths != (self.ends - self.begins - FrameHeader.FRAME_BYTES).astype(np.uint64))
        if len(wrong):
            offset, length = int(self.begins[wrong[0]]), int(self.ends[wrong[0]] - self.begins[wrong[0]])
            reason = f"the column index does not match the file, which has no record of {length} bytes at byte {offset}"
            raise CorruptRecordError(reason, path=self.file.source.path, hint=f"{REWRITE_COLUMNS}, or delete it")
        return data


class PickedFrames:
    """Reader of the frames of picked records of all files; the next frames are read together."""

    def __init__(self) -> None:
        self._tasks: list[_Task] = []
        self._contents: dict[int, BlockReader.Buffer] = {}
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
            self._tasks.append(_Task(matches.file, begins[begin:end], ends[begin:end], ranges))
            begin = end
        return range(first, len(self._tasks))

    def take(self, number: int) -> BlockReader.Buffer:
        """The content of a part, read together with the next parts if it has not been."""
        with self._lock:
            if number in self._contents:
                self._tasks[number].file.open().close()  # it was read a while ago
            else:
                numbers = list(self._ahead(number))
                contents = ordered((self._tasks[at].read for at in numbers), len(numbers), "picked")
                self._contents |= zip(numbers, contents, strict=True)
            return self._contents[number] if self.keeps else self._contents.pop(number)

    @property
    def bytes(self) -> int:
        """The size of all records."""
        return sum(task.bytes for task in self._tasks)

    @property
    def requests(self) -> int:
        """Number of requests to a store for all records."""
        remote = (task for task in self._tasks if task.file.source.remote is not None)
        return sum(RandomAccessFile.requests_for_ranges(task.file.size, task.ranges) for task in remote)

    def _ahead(self, number: int) -> Iterator[int]:
        ranges = size = 0
        for at in range(number, len(self._tasks)):
            task = self._tasks[at]
            ranges, size = ranges + task.ranges, size + task.bytes
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
