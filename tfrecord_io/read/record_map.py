"""Where the records of files are: the offsets of every few records, found beside what is shown.

A map takes a hundredth of the memory of an index, so that of 10^8 records, too. Records have an address: the number of
their file and, in it, their record index, in which a damaged region counts as one record.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from threading import Event, RLock, Thread
from typing import NamedTuple

import numpy as np

from tfrecord_io.base import ScanOptions, byte_size, printable
from tfrecord_io.bytes import Array, Checks, FaultCode, FrameHeader, get_engine
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.chunks.recovery import Recovery
from tfrecord_io.read.index.find_index import find_indexes, read_index, unless_stale
from tfrecord_io.read.index.record_index import HeaderScanner
from tfrecord_io.read.plan_random_access import index_around_damage
from tfrecord_io.store import RandomAccessFile, Source

_CELL = 64 << 10  # bytes, in each of which the first record has its offset noted
_EVERY = 256  # records, of which one has
_SPOOLED = 8 << 20  # bytes of a compressed file that are decompressed at a time
_OPEN_FILES = 64
_UNASKED = 256 << 20  # bytes of files in a bucket, without an index, that are read before anyone asks for more
_THREADS = 8  # that read indexes from a bucket
_PATIENCE = 1.0  # seconds
_INDEXED = 4 << 30  # bytes of a file on a disk, from which on its index is read
_NOTED = 1 << 18  # records whose offsets are looked at together
_FILE = 40  # bits of an address that are the record index


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
        """Bytes of a bucket that are read to find all records; 0 where that is no question."""
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
        """Note the records behind those that are known; with `is_whole`, the file is complete."""
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


class RecordMap:
    """The records of all files; a thread finds them from `begin` to `close`.

    It is what `RandomAccess` reads records from, with addresses for numbers.
    """

    def __init__(self, sources: Sequence[Source], options: ScanOptions) -> None:
        self.sources = [source.whole_file() for source in sources]
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        indexes = find_indexes(self.sources)
        pairs = zip(self.sources, indexes, strict=True)
        self.files = [FileMap(source, index, options, self._folder) for source, index in pairs]
        self._recent: OrderedDict[int, None] = OrderedDict()  # files that may be open
        self._state = [self._version(source) for source in self.sources]
        self._firsts: tuple[list[int], bool] = ([0], False)
        self._stop, self._is_read, self.may_read_all = Event(), Event(), False
        self._lock = RLock()
        self._thread: Thread | None = None
        self._local = all(source.remote is None for source in self.sources)
        self._count()

    @staticmethod
    def _version(source: Source) -> tuple[int, int, int] | None:
        if source.remote is not None or source.pipe is not None:
            return None
        try:
            status = os.stat(source.path)
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _folder(self) -> str:
        """The folder of decompressed copies, which is removed with this map."""
        with self._lock:
            if self._temporary is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="tfr-", ignore_cleanup_errors=True)
            return self._temporary.name

    @property
    def is_stale(self) -> bool:
        """True if a local file was written to, or replaced, since it was opened."""
        return [self._version(source) for source in self.sources] != self._state

    # Finding ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Find all records, in a thread, or of a bucket those that do not cost much."""
        self._thread = Thread(target=self._find_all, daemon=True, name="tfr-browse-index")
        self._thread.start()

    def _find_all(self) -> None:
        self._is_read.wait(_PATIENCE)  # the first rows are shown first
        budget = _UNASKED
        waiting = [file for file in self.files if file.count is None or self._local]
        if not self._local:
            with ThreadPoolExecutor(_THREADS) as pool:
                free = [file for file in waiting if not file.costs]
                list(pool.map(self._find_file, free))
            waiting = [file for file in waiting if file.costs]
        for file in waiting:
            while not self.may_read_all and not self._stop.is_set() and file.costs > budget:
                self._stop.wait(0.2)
            if self._stop.is_set():
                return
            budget -= file.costs
            self._find_file(file)
        self._count()

    def _find_file(self, file: FileMap) -> None:
        while not self._stop.is_set() and file.advance():
            pass
        if file is not self.files[0]:
            file.forget()
        self._count()

    @property
    def is_complete(self) -> bool:
        """True if the number of all records is known."""
        return all(file.count is not None for file in self.files) and not self.is_finding

    @property
    def is_finding(self) -> bool:
        return self._local and any(not file.is_complete for file in self.files)

    @property
    def unread(self) -> int:
        """Bytes of a bucket that would have to be read to find all records, before anyone has asked for it."""
        left = sum(file.costs for file in self.files if file.count is None)
        return left if not self.may_read_all and left > _UNASKED else 0

    @property
    def progress(self) -> float:
        """Share of the files that was looked through."""
        sizes = [file.source.size or 1 for file in self.files]
        return sum(s * f.done for s, f in zip(sizes, self.files, strict=True)) / max(1, sum(sizes))

    def _count(self) -> list[int]:
        """The numbers of the first record of each file, as far as they are known, and of all records."""
        firsts, is_known = [0], True
        for file in self.files:
            if not is_known:
                break
            count = file.count
            is_known = count is not None
            firsts.append(firsts[-1] + (file.records if count is None else count))
        self._firsts = firsts, is_known
        return firsts

    @property
    def total(self) -> int:
        """The number of records known so far."""
        return self._count()[-1] if not self._firsts[1] else self._firsts[0][-1]

    # Rows ---------------------------------------------------------------------------------------------------------

    def find(self, rows: int) -> int:
        """Look for the first rows, until there are so many, or those of a file end; the number of those known."""
        if rows > self.total:
            first = next((file for file in self.files if file.count is None), None)
            if first is not None:
                first.find(rows - 1 - self._count()[-1] + first.records)
        return self.total

    def address(self, number: int) -> int:
        """The address of the record with a number; IndexError if it is not known."""
        self.find(number + 1)
        firsts = self._firsts[0] if self._firsts[1] else self._count()
        if not 0 <= number < firsts[-1]:
            raise IndexError(f"record {number} is not known")
        file = bisect_right(firsts, number) - 1
        return file << _FILE | number - firsts[file]

    def number(self, address: int) -> int | None:
        """The number of a record, if that of the files before is known."""
        file, record = self.place(address)
        firsts = self._firsts[0]
        return firsts[file] + record if file < len(firsts) else None

    @staticmethod
    def place(address: int) -> tuple[int, int]:
        """File and record index of an address."""
        return address >> _FILE, address & ((1 << _FILE) - 1)

    @staticmethod
    def addresses(file: int, records: Array) -> Array:
        """Addresses of records of a file."""
        return (file << _FILE) + records.astype(np.int64)

    def damage(self, address: int) -> Damage | None:
        """The damage that an address stands for; None of a record."""
        file, record = self.place(address)
        self.files[file].find(record)
        return self.files[file].damage.get(record)

    def extent(self, address: int) -> tuple[int, int]:
        """The bytes [begin, end) of a record."""
        file, record = self.place(address)
        begin, end = self._open_map(file).bounds(record, record + 1).tolist()
        return begin, end

    def frame(self, address: int) -> Array:
        """The frame of a record, unchecked."""
        return self._open_map(self.place(address)[0]).open().read(*self.extent(address))

    def _open_map(self, file: int) -> FileMap:
        if len(self.files) > _OPEN_FILES:
            self._recent[file] = None
            self._recent.move_to_end(file)
            if len(self._recent) > _OPEN_FILES:
                self.files[self._recent.popitem(last=False)[0]].forget()
        return self.files[file]

    def _runs(self, numbers: Array) -> Iterator[tuple[int, int, int]]:
        """Addresses as runs of consecutive records: file, first and last record + 1."""
        cuts = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(numbers)]
        for begin, end in pairwise(cuts):
            if begin < end:
                file, record = self.place(int(numbers[begin]))
                yield file, record, record + end - begin

    def __len__(self) -> int:
        return self.total

    def locate(self, numbers: Array) -> tuple[Array, Array]:
        """File and record index of addresses."""
        return numbers >> _FILE, numbers & ((1 << _FILE) - 1)

    def offset(self, file: int, record: int) -> int:
        """The offset of a record, or where the one before ends."""
        bounds = self.files[file].bounds(max(0, record - 1), max(1, record))
        return int(bounds[1 if record else 0])

    def chunks(self, numbers: Array, most_bytes: int) -> Iterator[Array]:
        """Split addresses into parts of at most `most_bytes`; a larger record is its own part."""
        sizes = np.concatenate([np.empty(0, np.int64), *(self._sizes(*run) for run in self._runs(numbers))])
        first = size = 0
        for at, of_record in enumerate(sizes.tolist()):
            if at > first and size + of_record > most_bytes:
                yield numbers[first:at]
                first, size = at, 0
            size += of_record
        if first < len(numbers):
            yield numbers[first:]

    def _sizes(self, file: int, begin: int, end: int) -> Array:
        return np.diff(self._open_map(file).bounds(begin, end))

    def join_frames(self, numbers: Array) -> tuple[Array, Array]:
        """The frames of records one after the other: their bytes, and a 0 and where each frame ends."""
        parts, sizes = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)]
        for file, begin, end in self._runs(numbers):
            bounds = self._open_map(file).bounds(begin, end)
            parts.append(self.files[file].open().read(int(bounds[0]), int(bounds[-1])))
            sizes.append(np.diff(bounds))
        self._is_read.set()
        return np.concatenate(parts), np.cumsum(np.concatenate(sizes))

    def close(self) -> None:
        """End the thread, close the files, and remove the decompressed copies."""
        self._stop.set()
        self._is_read.set()
        if self._thread is not None:
            self._thread.join(5)
        for file in self.files:
            file._file = None
        if self._temporary is not None:
            self._temporary.cleanup()
