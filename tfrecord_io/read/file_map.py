"""Where the records of one file are: the offsets of every few records, found piece by piece.

A map takes a hundredth of the memory of an index, so that of 10^8 records, too.

Tests: tests/read/test_record_map.py.
"""

from __future__ import annotations

import shutil
import tempfile
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from threading import RLock
from typing import NamedTuple

import numpy as np

from tfrecord_io.base import ScanOptions, byte_size, printable
from tfrecord_io.bytes import Array, Checks, FaultCode, FrameHeader, get_engine
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.chunks.recovery import Recovery
from tfrecord_io.read.index.find_index import read_index, unless_stale
from tfrecord_io.read.index.header_scan import HeaderScanner
from tfrecord_io.read.plan_random_access import index_around_damage
from tfrecord_io.store import RandomAccessFile, Source

_CELL = 64 << 10  # bytes, in each of which the first record has its offset noted
_EVERY = 256  # records, of which one has
_SPOOLED = 8 << 20  # bytes of a compressed file that are decompressed at a time
_INDEXED = 4 << 30  # bytes of a file on a disk, from which on its index is read
_NOTED = 1 << 18  # records whose offsets are looked at together


class Damage(NamedTuple):
    """A damaged region of a file."""

    begin: int
    end: int
    reason: str


class FileMap:
    """The records of one file, as far as they are known."""

    def __init__(self, source: Source, index: Source | None, options: ScanOptions, folder: Callable[[], str]) -> None:
        self.source, self.path = source, source.path
        self._index, self._options, self._folder = index, options, folder
        stated = source.records if source.shard is None else source.shard.records
        self._stated = None if source.span is not None else stated
        self._numbers, self._offsets = array("q"), array("q")  # of the records whose offset is noted
        self._blocks: OrderedDict[int, Array] = OrderedDict()  # the offsets of all records from a noted one on
        self.damage: dict[int, Damage] = {}
        self.largest = 0  # bytes of the largest record found so far
        self._known = 0, 0  # records, and where they end: set at once, as other threads read both
        self.is_complete = False
        self.done = 0.0  # share of the file that has been looked through
        self.is_compressed = False
        self._spool: Source | None = None
        self._file: RandomAccessFile | None = None
        self._steps: Iterator[None] | None = None
        self._lock, self._blocks_lock = RLock(), RLock()

    @property
    def records(self) -> int:
        """The number of records found so far."""
        return self._known[0]

    @property
    def end(self) -> int:
        """Where the records found so far end."""
        return self._known[1]

    @property
    def count(self) -> int | None:
        """The number of records: those found, or stated by a manifest; None if more may follow."""
        return self.records if self.is_complete else self._stated

    @property
    def costs(self) -> int:
        """Bytes of a bucket that are read to find all records; 0 where records need not be found."""
        return 0 if self.source.remote is None or self._index is not None else self.source.size or 0

    def open(self) -> RandomAccessFile:
        """The open file; the decompressed copy of a compressed one."""
        if self._file is None:
            source = self.source if self._spool is None else self._spool
            self._file = (
                RandomAccessFile.open_local(source) if self._spool is not None else RandomAccessFile.open(source)
            )
        return self._file

    def forget(self) -> None:
        """Close the file, which is opened again when it is read."""
        if not self.is_compressed:
            self._file = None  # closed once no thread reads it

    def advance(self) -> bool:
        """Look through some more of the file; False at its end."""
        with self._lock:
            if self.is_complete:
                return False
            if self._steps is None:
                self._steps = self._find()
            try:
                next(self._steps)
            except StopIteration:
                self.is_complete, self.done, self._steps = True, 1.0, None
            except (TFRecordError, OSError, ValueError) as error:
                size = self.source.size or self.end
                self._note_damage(
                    Damage(self.end, max(self.end, size), printable(getattr(error, "detail", error), 500))
                )
                self.is_complete, self.done, self._steps = True, 1.0, None
            return not self.is_complete

    def find(self, record: int) -> None:
        """Look through the file until a record is found, or the end."""
        while self.records <= record and self.advance():
            pass

    def _find(self) -> Iterator[None]:
        try:
            file = self.open()
            self.is_compressed = file.codec is not None
        except ValueError:  # records of another format, which are read from the first to the last
            self.is_compressed = True
        if self.is_compressed:
            yield from self._find_decompressed()
            return
        # On a disk, headers are followed in less time and memory than an index of many records takes.
        if self._index is not None and (self.source.remote is not None or file.size > _INDEXED):
            index, _ = unless_stale(partial(read_index, self._index, self.source, file, Checks.LENGTHS))
            if index is not None:
                self._note(index.sizes)
                return
        yield from self._scan(file, is_whole=True)

    def _scan(self, file: RandomAccessFile, *, is_whole: bool) -> Iterator[None]:
        """Note the records after those that are known; with `is_whole`, the file is complete."""
        scanner = HeaderScanner(file, self._options.limits.record_bytes)
        scanner.offset = self.end
        for sizes in scanner.sizes():
            self._note(sizes)
            if is_whole:
                self.done = self.end / max(1, file.size)
            yield
        fault = scanner.fault
        if fault is None or not is_whole:
            return
        if FaultCode.TRUNCATED_HEADER <= fault.code <= FaultCode.TRUNCATED_FOOTER:
            reason = "the file ends inside this record: it is truncated, or still being written"
            self._note_damage(Damage(self.end, file.size, reason))
            return
        recovery = Recovery.of("skip", [self.source])
        assert recovery is not None
        source = self.source if self._spool is None else self._spool
        index, intact = index_around_damage(recovery, self._options, source, 0)
        damaged = np.setdiff1d(np.arange(self.records, len(index)), intact)
        reasons = {region.begin: region.reason for region in recovery.skipped}
        bounds = index.bounds
        for number in damaged.tolist():
            self._note(np.diff(bounds[self.records : number + 1]))
            begin, end = int(bounds[number]), int(bounds[number + 1])
            self._note_damage(Damage(begin, end, reasons.get(begin, "damaged")))
        self._note(np.diff(bounds[self.records :]))

    def _find_decompressed(self) -> Iterator[None]:
        """Decompress the file to a temporary one, and note its records meanwhile."""
        folder = self._folder()
        handle, path = tempfile.mkstemp(dir=folder)
        stream = self.source.open_stream(self._options.compression)
        buffer, size, error = memoryview(bytearray(_SPOOLED)), 0, None
        with open(handle, "wb", buffering=0) as copy:
            while True:
                filled = 0
                try:
                    while filled < len(buffer) and (n := stream.readinto(buffer[filled:])):
                        filled += n
                except TFRecordError as damaged:
                    error = damaged
                copy.write(buffer[:filled])
                size += filled
                is_last = filled < len(buffer)
                self._spool, self._file = Source(path, size, True), None
                if shutil.disk_usage(folder).free < 4 * _SPOOLED + (1 << 30):
                    raise OSError(f"no room on the disk for what follows {byte_size(size)} of the decompressed file")
                yield from self._scan(self.open(), is_whole=is_last and error is None)
                self.done = min(1.0, stream.raw_offset / max(1, self.source.size or size))
                if error is not None:
                    raise error
                if is_last:
                    stream.close()
                    return

    def _note(self, sizes: Array) -> None:
        """Add records of these sizes in bytes."""
        for begin in range(0, len(sizes), _NOTED):
            self._note_some(sizes[begin : begin + _NOTED])

    def _note_some(self, sizes: Array) -> None:
        ends = self.end + np.cumsum(sizes, dtype=np.int64)
        starts = np.concatenate([np.array([self.end], np.int64), ends[:-1]])
        numbers = np.arange(self.records, self.records + len(sizes))
        before = self._offsets[-1] // _CELL if self._offsets else -1
        chosen = np.flatnonzero((np.diff(starts // _CELL, prepend=before) != 0) | (numbers % _EVERY == 0))
        if self.records - 1 in self.damage:
            chosen = np.union1d(chosen, [0])
        self._offsets.frombytes(starts[chosen].tobytes())
        self._numbers.frombytes(numbers[chosen].astype(np.int64).tobytes())
        self.largest = max(self.largest, int(np.max(sizes, initial=0)))
        self._known = self.records + len(sizes), int(ends[-1])

    def _note_damage(self, damage: Damage) -> None:
        self.damage[self.records] = damage
        self._offsets.append(damage.begin)
        self._numbers.append(self.records)
        self._known = self.records + 1, damage.end

    def bounds(self, begin: int, end: int) -> Array:
        """The offsets of the records [begin, end), and where the last one ends; IndexError if there are not so many."""
        self.find(end - 1)
        if end > self.records:
            raise IndexError(f"{printable(self.path)} has {self.records} records")
        parts = [np.empty(0, np.int64)]
        at = begin
        while at < end:
            first, offsets = self._block(bisect_right(self._numbers, at) - 1)
            stop = min(end, first + len(offsets) - 1)
            parts.append(offsets[at - first : stop - first])
            last = int(offsets[stop - first])
            at = stop
        return np.concatenate([*parts, np.array([last])])

    def _block(self, block: int) -> tuple[int, Array]:
        """The number of a noted record, and the offsets of the records up to the next noted one."""
        records, end = self._known  # before the notes, to which others are added meanwhile
        first, begin = self._numbers[block], self._offsets[block]
        if block + 1 < len(self._numbers):
            records, end = self._numbers[block + 1], self._offsets[block + 1]
        count = records - first
        if count == 1:
            return first, np.array([begin, end])
        known = self._blocks.get(block)
        if known is None or len(known) != count + 1:
            data = self.open().read(begin, min(end, begin + _CELL))
            frames, _ = get_engine().scan(
                data, checks=Checks.LENGTHS, max_record_bytes=self._options.limits.record_bytes, final=False
            )
            sizes = frames.lengths[: count - 1] + FrameHeader.FRAME_BYTES
            if len(sizes) < count - 1:
                raise OSError(f"{printable(self.path)} was changed since it was opened: load the page again")
            known = np.concatenate([[begin], begin + np.cumsum(sizes), [end]]).astype(np.int64)
            with self._blocks_lock:
                self._blocks[block] = known
                if len(self._blocks) > _EVERY:
                    self._blocks.popitem(last=False)
        return first, known
