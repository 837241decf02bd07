"""Present several files as one sequence of records with random access."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import inf
from typing import Any, Self

import numpy as np

from tfrecord_io.base import LIMITS, MIB, FrameOptions, ordered
from tfrecord_io.bytes import Array, Checks
from tfrecord_io.columns import runs_within
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.read.index import THREADS
from tfrecord_io.read.index.find_index import find_indexes, read_index, unless_stale, warn_of_stale
from tfrecord_io.read.index.header_scan import scan_index
from tfrecord_io.read.index.record_index import RecordIndex
from tfrecord_io.store import BlockReader, PackedSources, RandomAccessFile, Source, Sources

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_HELD_BYTES = 256 * MIB  # of small objects
_LOCATED = 1 << 20  # records whose sizes are looked up at a time: each takes some 60 bytes
_OPEN_FILES = 128  # if there are more, each is opened when it is read


def _most_open() -> int:
    """Number of files that may stay open: a fourth of the files that the system allows the process."""
    if resource is None:
        return _OPEN_FILES
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _OPEN_FILES if allowed == resource.RLIM_INFINITY else min(_OPEN_FILES, allowed // 4)


def hold_small_objects(sources: Iterable[Source]) -> list[Source]:
    """Let sources hold the content of small objects in memory, up to `_HELD_BYTES` in all: a call reads each once."""
    holding, room = [], _HELD_BYTES
    for source in sources:
        if source.is_small and (room := room - (source.size or 0)) >= 0:
            source = source.holding()
        holding.append(source)
    return holding


class IndexedFiles:
    """Plain files whose records are numbered consecutively, from 0 on.

    Threads and forked processes may share it. It can be pickled; unpickling opens the files again. `indexes` has the
    index of each file: read from its index file in `index_sources`, or computed from its headers. An index file that
    does not match is skipped with a warning, or raises an error if it was `named` by the caller. Content of small
    objects of a store is held until `forget`, so that planning a read, or reading keys, does not fetch it again.

    `recover` takes a source with a damaged header, and its number. It returns an index of the records and of the
    damaged parts between them, and the numbers of the entries that are records.
    """

    def __init__(
        self,
        sources: list[Source],
        index_sources: Sequence[Source | None],
        max_record_bytes: int = LIMITS.MAX_RECORD_BYTES,
        *,
        checks: Checks = Checks.LENGTHS,
        named: bool = False,
        recover: Callable[[Source, int], tuple[RecordIndex, Array]] | None = None,
    ) -> None:
        files = hold_small_objects(
            [source.whole_file() for source in sources] + [item for item in index_sources if item is not None]
        )
        self.sources, indexes = files[: len(sources)], iter(files[len(sources) :])
        self.index_sources: list[Source | None] = [item and next(indexes) for item in index_sources]  # until `forget`
        self._directory = Sources.of(sources).working_directory  # when files are opened again, it may be another one
        self._intact: dict[int, Array] = {}  # the entries that are read, of the files where others are not
        self._max_record_bytes, self._checks, self._named = max_record_bytes, checks, named
        self._open_files: dict[int, RandomAccessFile] = {}
        self._versions: dict[int, str] = {}  # of local files that are opened again
        self._warned: set[str] = set()
        try:
            load = partial(self._load_index, recovers=recover is not None)
            calls = (partial(load, *item) for item in enumerate(self.index_sources))
            loaded = list(ordered(calls, min(THREADS, len(sources)), "index"))
            self.indexes = [index or RecordIndex.from_sizes([]) for index, _ in loaded]
            for file, (index, _) in enumerate(loaded):
                if index is None and recover is not None:
                    self.indexes[file], self._intact[file] = recover(self.sources[file], file)
                if (span := sources[file].span) is not None:
                    self._only(file, span)
        except BaseException:
            self.close()
            raise
        self._number()
        self.warn_of_stale(text for _, text in loaded)

    @classmethod
    def of(cls, sources: Sequence[Source], options: FrameOptions) -> Self:
        """The files, with the indexes that are next to them."""
        checks = Checks.from_check_crc(options.check_crc)
        return cls([*sources], find_indexes(sources), options.limits.record_bytes, checks=checks)

    def forget(self) -> None:
        """Keep no content any more that opening has read, so that later reads find out if a file was replaced."""
        for opened in self._open_files.values():
            opened.forget()
        for source in filter(None, [*self.sources, *self.index_sources]):
            if source.held is not None:
                source.held.drop()
        self.sources, self.index_sources = [source.drop_held_content() for source in self.sources], []

    def warn_of_stale(self, texts: Iterable[str]) -> None:
        """Warn of indexes that are not used, of each once."""
        new = [text for text in texts if text not in self._warned]
        self._warned.update(new)
        warn_of_stale(new)

    def _load_index(self, file: int, index_source: Source | None, *, recovers: bool) -> tuple[RecordIndex | None, str]:
        """The index of a file, and the text of a warning; with `recovers`, None for a damaged file."""
        source = self.sources[file]
        opened = self._open_files[file] = RandomAccessFile.open_plain(source, "random access")
        index, text = None, ""
        if index_source is not None:
            index, text = unless_stale(
                partial(read_index, index_source, source, opened, self._checks), is_named=self._named
            )
        if index is None:
            try:
                index = scan_index(source.path, opened, self._max_record_bytes, checks=self._checks)
            except CorruptRecordError:
                if not recovers:
                    raise
        if len(self.sources) > _most_open():
            if source.local:
                self._versions[file] = opened.version
            self._open_files.pop(file).close()
        return index, text

    def _only(self, file: int, span: tuple[int, int]) -> None:
        """Leave out the records of a file that do not begin in a piece of it."""
        begin, end = self.indexes[file].offsets.searchsorted(span).tolist()
        intact = self._intact.get(file, np.arange(len(self.indexes[file])))
        self._intact[file] = intact[(intact >= begin) & (intact < end)]

    def _number(self) -> None:
        # number of each file's first record, and the number of all records
        self.first = np.cumsum([0, *map(self.count, range(len(self.indexes)))], dtype=np.int64)
        self._firsts = self.first[:-1].tolist()

    def has_part(self, file: int) -> bool:
        """True if not all records of a file are read."""
        return file in self._intact

    def count(self, file: int) -> int:
        """The number of records of a file."""
        return len(self._intact.get(file, self.indexes[file]))

    def __len__(self) -> int:
        return int(self.first[-1])

    def locate(self, numbers: Array) -> tuple[Array, Array]:
        """The file of each record, and its record index in the file, where a damaged part counts as one record."""
        files = self.first.searchsorted(numbers, side="right") - 1
        records = numbers - self.first[files]
        for file, intact in self._intact.items():
            rows = files == file
            records[rows] = intact[records[rows]]
        return files, records

    def version(self, file: int) -> str:
        """The version of a file, as it was opened: `RandomAccessFile.version`."""
        return self.open_file(file).version

    def check_unchanged(self) -> None:
        """Raise ReplacedError if a file that no manifest names has been replaced since it was opened.

        Other reads that open it by its name, as those of filters do, are of the later file. Requests to a store name
        the version.
        """
        for file, source in enumerate(self.sources):
            if source.local and source.shard is None:
                opened = self._open_files.get(file)
                self._open(file, self._versions.get(file) if opened is None else opened.version).close()

    def offset(self, file: int, record: int) -> int:
        """The offset of a record in its file."""
        return int(self.indexes[file].bounds[record])

    def chunks(self, numbers: Array, most_bytes: int) -> Iterator[Array]:
        """Split record numbers into parts whose records have at most `most_bytes`; a larger record is its own part."""
        if len(numbers) <= 1:
            yield from [numbers] * len(numbers)
            return
        for first in range(0, len(numbers), _LOCATED):
            part = numbers[first : first + _LOCATED]
            sizes = np.empty(len(part), np.int64)
            files, records = self.locate(part)
            for file in np.unique(files).tolist():
                rows, bounds = np.flatnonzero(files == file), self.indexes[file].bounds
                sizes[rows] = bounds[records[rows] + 1] - bounds[records[rows]]
            yield from (part[begin:end] for begin, end in runs_within(sizes, most_bytes))

    def frame(self, number: int, most: float = inf) -> tuple[int, BlockReader.Buffer]:
        """The file of a record, and its frame, unchecked; as `frames`, for a single one in less time.

        A frame of more bytes than `most` is not read, and empty.
        """
        file = bisect_right(self._firsts, number) - 1
        record = number - self._firsts[file]
        if file in self._intact:
            record = self._intact[file].item(record)
        bounds = self.indexes[file].bounds
        begin, end = bounds.item(record), bounds.item(record + 1)
        if end - begin > most:
            return file, np.empty(0, np.uint8)
        opened = self._open_files.get(file) or self.open_file(file)
        return file, opened.read(begin, end)

    def join_frames(self, numbers: Array) -> tuple[BlockReader.Buffer, Array]:
        """The frames of records, as `frames`, one after the other: their bytes, and a 0 and where each frame ends."""
        files, records = self.locate(numbers)
        begins, ends = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.int64)
        used = np.unique(files).tolist()
        for file in used:
            rows, bounds = slice(None) if len(used) == 1 else files == file, self.indexes[file].bounds
            begins[rows], ends[rows] = bounds[records[rows]], bounds[records[rows] + 1]
        bounds = np.zeros(len(numbers) + 1, np.int64)
        (ends - begins).cumsum(out=bounds[1:])
        data = None
        if len(used) <= _most_open() and all(self.sources[file].local for file in used):
            data = RandomAccessFile.read_local(
                [self.open_file(file) for file in used], np.searchsorted(used, files), begins, ends
            )
        if data is None:
            data = np.concatenate([np.empty(0, np.uint8), *self.frames(numbers)])
        return data, bounds

    def frames(self, numbers: Array) -> list[BlockReader.Buffer]:
        """The frames of records, unchecked, in the order of `numbers`; CorruptRecordError if a file was changed."""
        if len(numbers) == 1:
            return [self.frame(int(numbers[0]))[1]]
        files, records = self.locate(numbers)
        frames: list[Any] = [None] * len(numbers)

        def read(file: int) -> None:
            rows = np.flatnonzero(files == file)
            distinct, nth = np.unique(records[rows], return_inverse=True)
            bounds = self.indexes[file].bounds
            parts = self.open_file(file).read_all(bounds[distinct].tolist(), bounds[distinct + 1].tolist())
            for row, part in zip(rows.tolist(), nth.tolist(), strict=True):
                frames[row] = parts[part]

        needed = np.unique(files).tolist()
        waits = any(self.sources[file].remote is not None for file in needed)
        for _ in ordered((partial(read, file) for file in needed), min(THREADS, len(needed)) if waits else 1, "read"):
            pass
        return frames

    def open_file(self, file: int) -> RandomAccessFile:
        """A file, to be read; it is closed with the others."""
        opened = self._open_files.get(file)
        if opened is None:
            opened = self._open_files[file] = self._open(file, self._versions.get(file))
            for oldest in list(self._open_files)[: max(0, len(self._open_files) - max(1, _most_open()))]:
                self._open_files.pop(oldest, None)  # it is closed once no thread reads it
        return opened

    def _open(self, file: int, version: str | None) -> RandomAccessFile:
        source = self.sources[file]
        if self._directory is not None and Source.is_elsewhere(self._directory):
            source = source.absolute(self._directory)
        return RandomAccessFile.open_version(source, self.indexes[file].end, version, self.sources[file].path)

    def close(self) -> None:
        """Close the files."""
        while self._open_files:
            self._open_files.popitem()[1].close()

    def __getstate__(self) -> tuple[PackedSources, list[RecordIndex], dict[int, Array]]:
        return PackedSources.pack(self.sources), self.indexes, self._intact

    def __setstate__(self, state: tuple[PackedSources, list[RecordIndex], dict[int, Array]]) -> None:
        sources, self.indexes, self._intact = state
        self.sources = [source.drop_held_content() for source in sources.unpack()]
        self.index_sources = []
        self._open_files, self._versions, self._warned = {}, {}, set()
        self._directory = Sources.of(self.sources).working_directory
        self._number()
        if len(self.sources) <= _most_open():
            for file in range(len(self.sources)):
                self._open_files[file] = self._open(file, None)
