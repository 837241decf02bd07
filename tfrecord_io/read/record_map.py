"""The records of files by address: found beside what is shown, read by address, and searched.

An address is the number of a file and, in it, a record index, in which a damaged region counts as one record.
"""

from __future__ import annotations

import os
import sys
import tempfile
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, groupby, pairwise
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from tfrecord_io.base import Registry
from tfrecord_io.bytes import Array
from tfrecord_io.columns import ArrayBuffers, empty_batch
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.chunks.recovery import Recovery
from tfrecord_io.read.file_map import Damage, FileMap
from tfrecord_io.read.first_values import LARGE
from tfrecord_io.read.index.find_index import find_indexes
from tfrecord_io.read.report import RowOrigins
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.scan_rows import ScanRows
from tfrecord_io.read.stored_record import StoredRecord
from tfrecord_io.store import ShardName, Source

if TYPE_CHECKING:
    from tfrecord_io.read.random_access import RandomAccess
    from tfrecord_io.read.reader import Reader

_OPEN_FILES = 64
_UNASKED = 256 << 20  # bytes of files in a bucket, without an index, that are read before anyone asks for more
_THREADS = 8  # that read indexes from a bucket
_PATIENCE = 1.0  # seconds
_SELECTIONS = 16  # of columns, whose decoders are kept
_READING = 2  # threads that read all rows
_TOGETHER = 256  # large records of which a part is read
_FILE = 40  # bits of an address that are the record index


class RecordMap:
    """The records of all files; a thread finds them from `begin` to `close`.

    Attributes
    ----------
    LARGE : int
        Bytes of a record of which features are taken one by one.
    may_read_all : bool
        Set it where files in a bucket that have no index may be read for their records.
    sources : list of Source
        The files.
    """

    LARGE: ClassVar = LARGE

    def __init__(self, scan: Scan) -> None:
        if scan.selection.is_range:
            raise ValueError("all rows of files have an address: pass the dataset without limit() and offset()")
        self._scan, options = scan, scan.options
        self.sources = [source.whole_file() for source in scan.sources]
        self._file_of = {source.path: file for file, source in enumerate(self.sources)}
        self._accesses: OrderedDict[tuple[tuple[str, ...], ...], RandomAccess] = OrderedDict()
        self._stored: tuple[int, StoredRecord | None] = 0, None
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

    def labels(self) -> list[str]:
        """Short names of the files, for links: without what all have in common."""
        names = [os.path.basename(source.path) for source in self.sources]
        for labels in (list(map(_shorten, names)), names, ["/".join(s.path.split("/")[-2:]) for s in self.sources]):
            if len(set(labels)) == len(labels):
                return labels
        return [f"{at}-{name}" for at, name in enumerate(names)]

    @property
    def is_remote(self) -> bool:
        """True if a file is in a bucket."""
        return not self._local

    @property
    def is_filtered(self) -> bool:
        """True if the scan has a filter, which not all records meet."""
        return self._scan.row_filter is not None

    @property
    def schema_source(self) -> str:
        """Where the schema is from, as in `ReadReport`."""
        return self._scan.schema_source

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
        self.wait_until_read()
        waiting = [file for file in self.files if file.count is None or self._local]
        waiting.sort(key=lambda file: bool(file.costs))  # those with an index first
        affordable = bisect_right([*accumulate(file.costs for file in waiting)], _UNASKED)
        with ThreadPoolExecutor(1 if self._local else _THREADS) as pool:
            list(pool.map(self._find_file, waiting[:affordable]))
            while affordable < len(waiting) and not self.may_read_all and not self._stop.wait(0.2):
                pass
            list(pool.map(self._find_file, waiting[affordable:]))
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
        """Look for the first rows, until there are so many, or all are found; the number of those known."""
        while rows > self.total:
            first = next((file for file in self.files if file.count is None), None)
            if first is None:
                break
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

    def address_in(self, file: int, record: int) -> int:
        """The address of a record of a file; IndexError if there is no such record."""
        self.files[file].bounds(record, record + 1)
        return file << _FILE | record

    def damage(self, address: int) -> Damage | None:
        """The damage that an address stands for; None of a record."""
        file, record = self.place(address)
        self.files[file].find(record)
        return self.files[file].damage.get(record)

    def extent(self, address: int) -> tuple[int, int]:
        """The bytes [begin, end) of a record."""
        file, record = self.place(address)
        begin, end = self.open_map(file).bounds(record, record + 1).tolist()
        return begin, end

    def stored(self, address: int) -> StoredRecord:
        """The record of an address, as stored in its file; the last one is kept."""
        kept, record = self._stored
        if record is None or kept != address:
            begin, end = self.extent(address)
            file = self.open_map(self.place(address)[0]).open()
            record = StoredRecord.from_file(file, begin, end)
            self._stored = address, record
        return record

    def open_map(self, file: int) -> FileMap:
        """The map of a file, which is among the few that are open."""
        if len(self.files) > _OPEN_FILES:
            self._recent[file] = None
            self._recent.move_to_end(file)
            if len(self._recent) > _OPEN_FILES:
                self.files[self._recent.popitem(last=False)[0]].forget()
        return self.files[file]

    def batches(
        self,
        addresses: Sequence[int],
        names: Sequence[str],
        taken: Sequence[str] | None = None,
        cut: Sequence[str] = (),
    ) -> Iterator[tuple[list[int], pa.RecordBatch, dict[int, str]]]:
        """Columns of records in batches, with their addresses; and by address what is wrong with other records.

        Of a record that is `LARGE`, features that are not small are null but for those of the columns that are `taken`,
        by default all; those of the columns `cut` have their first values alone.
        """
        access, left = self._access(names, names if taken is None else taken, cut), dict.fromkeys(addresses)
        nothing = empty_batch(pa.schema([self._scan.schema.field(name) for name in names]))
        for part in (list(addresses), *([address] for address in addresses)):
            wanted = [address for address in part if address in left]
            if not wanted:
                continue
            try:
                for numbers, batch in access.batches(np.array(wanted, np.int64), leaves_out=len(wanted) > 1):
                    yield numbers.tolist(), batch, {}
                    for address in numbers.tolist():
                        left.pop(address, None)
            except TFRecordError as error:
                if len(wanted) == 1:
                    yield [], nothing, {wanted[0]: error.detail}
                    left.pop(wanted[0])

    def _access(self, names: Sequence[str], taken: Sequence[str], cut: Sequence[str]) -> RandomAccess:
        key = (tuple(names), tuple(taken), tuple(cut))
        access = self._accesses.get(key)
        if access is None:
            scan = replace(self._scan, row_filter=None).leave_out_others(names).without_filter()
            frames: Any = MappedFrames(self, frozenset(taken), frozenset(cut))
            access = self._accesses[key] = ScanRows(scan).random_access(frames, Recovery.of("skip", self.sources))
            if len(self._accesses) > _SELECTIONS:
                self._accesses.popitem(last=False)
        return access

    def search(self, filters: Any = None) -> Iterator[tuple[Addresses, float]]:
        """The addresses found so far of the rows that meet a condition, and the share of the files that was read.

        Records that are damaged are left out; `Addresses.unread` counts those of which a list is too large to be read.
        """
        found = Addresses()
        for addresses, _, share in self.read((), filters, unread=found.unread):
            found.add(addresses)
            yield found, share
        yield found, 1.0

    def read(
        self, names: Sequence[str], filters: Any = None, *, takes_large: bool = True, unread: set[int] | None = None
    ) -> Iterator[tuple[Array, pa.RecordBatch, float]]:
        """Columns of the rows that meet a condition, with their addresses, and the share of the files that was read.

        Records that are damaged are left out; without `takes_large`, large features of large records are null. A record
        is left out, and its address is added to `unread`, if the condition needs all of a list, or of an encoded value,
        that is `LARGE`: of bytes and text it needs a part.
        """
        scan = (ScanRows(self._scan).filter(filters) if filters else self._scan).leave_out_others(names)
        done = 0
        for is_large, files in groupby(range(len(self.files)), self._has_large):
            group = [*files]
            is_whole = len(group) == len(self.files)
            part = scan if is_whole else scan.with_sources([scan.sources[file] for file in group])
            rows = (
                self._read_large(part, group, takes_large=takes_large, unread=unread)
                if is_large
                else self._read_small(part)
            )
            for addresses, batch, share in rows:
                yield addresses, batch, (done + share * len(group)) / len(self.files)
            done += len(group)

    def _has_large(self, file: int) -> bool:
        """True if a file has large records; of a bucket, among those that are known."""
        map_ = self.files[file]
        if self._local:
            map_.find(sys.maxsize)
        return map_.largest > self.LARGE

    def _read_small(self, scan: Scan) -> Iterator[tuple[Array, pa.RecordBatch, float]]:
        last = -1
        for on_error in ("raise", "skip"):  # column indexes are searched by the first alone
            options = {"on_error": on_error, "threads": _READING, "batch_bytes": self.LARGE}
            try:
                with ScanRows(scan.with_options(**options)).open() as reader:
                    row = 0
                    for batch in reader:
                        addresses = self._addresses_of(reader, row, row + len(batch))
                        row += len(batch)
                        is_new = addresses > last
                        share = min(1.0, reader.report.bytes / max(1, scan.bytes or reader.report.bytes))
                        if is_new.all():
                            yield addresses, batch, share
                        elif is_new.any():
                            yield addresses[is_new], batch.filter(pa.array(is_new)), share
                        last = max(last, int(addresses[-1]) if len(addresses) else -1)
                return
            except TFRecordError:
                if on_error == "skip":
                    raise

    def _addresses_of(self, reader: Reader, begin: int, end: int) -> Array:
        """The addresses of the rows [begin, end) of a reader."""
        picked = [file for file in reader.scan.picked or () if file.source is not None]
        sources, parts = reader.scan.sources, [np.empty(0, np.int64)]
        for file, records in reader.origins.numbers(begin, end):
            if picked and (chosen := picked[file].records) is not None:
                records = chosen[records]
            parts.append((self._file_of[sources[file].path] << _FILE) + records.astype(np.int64))
        return np.concatenate(parts)

    def _read_large(
        self, scan: Scan, files: Sequence[int], *, takes_large: bool, unread: set[int] | None
    ) -> Iterator[tuple[Array, pa.RecordBatch, float]]:
        condition, names = scan.row_filter, scan.schema.names
        of_condition = () if condition is None else condition.columns
        needed = list(dict.fromkeys([*names, *of_condition]))
        cut = [] if condition is None else condition.judges_by_first_values(scan.resolved.schema)
        cut = [name for name in cut if not takes_large or name not in names]
        taken = [name for name in (needed if takes_large else of_condition) if name not in cut]
        whole = set(of_condition).difference(cut)
        for at, file in enumerate(files):
            count = self.files[file].records
            for first in range(0, count, _TOGETHER):
                records = [r for r in range(first, min(first + _TOGETHER, count)) if r not in self.files[file].damage]
                wanted = [file << _FILE | record for record in records]
                if unread is not None and whole:
                    too_large = {address for address in wanted if self._is_too_large(address, whole)}
                    unread.update(too_large)
                    wanted = [address for address in wanted if address not in too_large]
                for numbers, batch, _ in self.batches(wanted, needed, taken, cut):
                    addresses = np.array(numbers, np.int64)
                    if condition is not None:
                        passes = condition.mask(batch)
                        addresses, batch = addresses[ArrayBuffers(passes).numbers], batch.filter(passes)
                    batch = self._clear_cut(addresses, batch.select(names), cut)
                    yield addresses, batch, (at + first / count) / len(files)

    def wait_until_read(self) -> None:
        """Wait until the first rows were read, or for a second: work beside is not to delay them."""
        self._is_read.wait(_PATIENCE)

    def _clear_cut(self, addresses: Array, batch: pa.RecordBatch, cut: Sequence[str]) -> pa.RecordBatch:
        """Replace truncated values by null: only a large record has them, and is a batch of its own."""
        if len(batch) == 1 and not set(cut).isdisjoint(batch.schema.names):
            begin, end = self.extent(address := int(addresses[0]))
            large = self.stored(address).large if end - begin > self.LARGE else {}
            for name in large.keys() & {*cut} & {*batch.schema.names}:
                field = batch.schema.field(name)
                batch = batch.set_column(batch.schema.names.index(name), field, pa.nulls(1, field.type))
        return batch

    def _is_too_large(self, address: int, names: Set[str]) -> bool:
        """True if a record that is not damaged has a feature of these columns that is `LARGE`."""
        begin, end = self.extent(address)
        if end - begin <= self.LARGE:
            return False
        with suppress(ValueError):
            features = self.stored(address).find_large(names).values()
            return any(len(feature.entry) > self.LARGE for feature in features)
        return False

    def note_read(self) -> None:
        """Let the search for all records begin, as the first rows were read."""
        self._is_read.set()

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


def _shorten(name: str) -> str:
    """The name of a file without the number of all shards, or the suffix of TFRecord files.

    >>> _shorten("train-00000-of-00002.tfrecord"), _shorten("a.tfrecord")
    ('train-00000', 'a')
    """
    shard, (stem, suffix) = ShardName.parse(name), os.path.splitext(name)
    if shard is not None:
        return f"{shard.base}-{shard.index:0{shard.width}}"
    return stem if suffix in Registry.RECORD_SUFFIXES else name


class Addresses:
    """Ascending addresses, of which those of a file take a bit for each record at most.

    >>> found = Addresses()
    >>> found.add(np.array([3, 4, 9]))
    >>> len(found), found[1:3]
    (3, [4, 9])

    Attributes
    ----------
    unread : set of int
        Records that may be among them.
    """

    def __init__(self) -> None:
        self._rows = RowOrigins()
        self.unread: set[int] = set()

    def __len__(self) -> int:
        return self._rows.rows

    def __getitem__(self, part: slice) -> list[int]:
        begin, end, _ = part.indices(len(self))
        parts = self._rows.numbers(begin, end)
        return [address for file, records in parts for address in ((file << _FILE) + records).tolist()]

    def add(self, addresses: Array) -> None:
        """Add addresses after those that are here."""
        files = addresses >> _FILE
        for file in np.unique(files).tolist():
            records = addresses[files == file] - (file << _FILE)
            first = int(records[0])
            self._rows.add_some("", first, records - first, file=file)


class MappedFrames:
    """The frames of the records of a map, as `RandomAccess` reads them, with addresses for numbers.

    Of large records, the features of some columns, the first values of others, and features that are small.
    """

    def __init__(self, map_: RecordMap, names: frozenset[str], cut: frozenset[str] = frozenset()) -> None:
        self._map, self._names, self._cut, self.sources = map_, names, cut, map_.sources

    def __len__(self) -> int:
        return self._map.total

    def locate(self, numbers: Array) -> tuple[Array, Array]:
        """File and record index of addresses."""
        return numbers >> _FILE, numbers & ((1 << _FILE) - 1)

    def offset(self, file: int, record: int) -> int:
        """The offset of a record, or where the one before ends."""
        bounds = self._map.files[file].bounds(max(0, record - 1), max(1, record))
        return int(bounds[1 if record else 0])

    def chunks(self, numbers: Array, most_bytes: int) -> Iterator[Array]:
        """Split addresses into parts of at most `most_bytes`; a larger record, and a large one, is its own part."""
        most_bytes = min(most_bytes, RecordMap.LARGE)
        sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(self._bounds(*run)) for run in self._runs(numbers))])
        first = size = 0
        for at, of_record in enumerate(sizes.tolist()):
            if at > first and size + of_record > most_bytes:
                yield numbers[first:at]
                first, size = at, 0
            size += of_record
        if first < len(numbers):
            yield numbers[first:]

    def join_frames(self, numbers: Array) -> tuple[Array, Array]:
        """The frames of records one after the other: their bytes, and a 0 and where each frame ends."""
        parts, sizes = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)]
        for file, begin, end in self._runs(numbers):
            bounds = self._bounds(file, begin, end)
            if end == begin + 1 and bounds[1] - bounds[0] > RecordMap.LARGE:
                frame = self._map.stored(file << _FILE | begin).frame_of(self._names, self._cut)
                parts.append(np.frombuffer(frame, np.uint8))
                sizes.append(np.array([len(frame)]))
                continue
            parts.append(self._map.files[file].open().read(int(bounds[0]), int(bounds[-1])))
            sizes.append(np.diff(bounds))
        self._map.note_read()
        return parts[1] if len(parts) == 2 else np.concatenate(parts), np.cumsum(np.concatenate(sizes))

    def _bounds(self, file: int, begin: int, end: int) -> Array:
        return self._map.open_map(file).bounds(begin, end)

    def _runs(self, numbers: Array) -> Iterator[tuple[int, int, int]]:
        """Addresses as runs of consecutive records: file, first and last record + 1."""
        cuts = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(numbers)]
        for begin, end in pairwise(cuts):
            if begin < end:
                file, record = RecordMap.place(int(numbers[begin]))
                yield file, record, record + end - begin
