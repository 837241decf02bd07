"""Several files as one sequence of records, read at any place."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Array
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.index.header_scan import scan_index
from tfrecord_io.index.lookup import find_indexes, read_index
from tfrecord_io.index.record_index import Index
from tfrecord_io.storage.read.block_reader import Bytes
from tfrecord_io.storage.read.random_access import RandomAccessFile, open_plain, open_random_access
from tfrecord_io.storage.read.source import Source

_MOST_OPEN = 128  # files that are kept open; of more, each is opened when it is read
_AT_A_TIME = 16  # files that are asked at a time


class IndexedFiles:
    """Plain files whose records are numbered through, from 0 on.

    Threads may share it, and a fork may go on with it. It pickles, and opens the files anew where it is unpickled.

    Parameters
    ----------
    sources : list of Source
    max_record_bytes : int
        Where headers are looked at: a longer record is an error.

    Attributes
    ----------
    indexes : list of Index
        Of each file: what stands beside it, or what its headers say.
    """

    def __init__(self, sources: list[Source], max_record_bytes: int = MAX_RECORD_BYTES) -> None:
        self.sources = sources
        self._held: dict[int, RandomAccessFile] = {}
        try:
            besides = find_indexes(sources)
            with ThreadPoolExecutor(_AT_A_TIME) as pool:
                self.indexes = list(
                    pool.map(self._index_of, range(len(sources)), besides, [max_record_bytes] * len(sources))
                )
        except BaseException:
            self.close()
            raise
        self._number()

    def _index_of(self, file: int, beside: Source | None, max_record_bytes: int) -> Index:
        source = self.sources[file]
        ranges = self._held[file] = open_plain(source, "random access")
        if beside is None:
            index = scan_index(source.path, ranges, max_record_bytes)
        else:
            index = read_index(beside, source, ranges)
        if not self._keeps_open:
            self._held.pop(file).close()
        return index

    def _number(self) -> None:
        self.first = np.cumsum(
            [0, *map(len, self.indexes)], dtype=np.int64
        )  # number of each file's first record, and how many there are

    @property
    def _keeps_open(self) -> bool:
        return len(self.sources) <= _MOST_OPEN

    def __len__(self) -> int:
        return int(self.first[-1])

    def places(self, numbers: Array) -> tuple[Array, Array]:
        """The file of each record, and its number there."""
        files = self.first.searchsorted(numbers, side="right") - 1
        return files, numbers - self.first[files]

    def offset(self, file: int, record: int) -> int:
        """The first byte of a record."""
        return int(self.indexes[file].bounds[record])

    def chunks(self, numbers: Array, most_bytes: int) -> Iterator[Array]:
        """The numbers in runs of records that have so many bytes together at most, or are one."""
        if len(numbers) <= 1:
            yield from [numbers] * len(numbers)
            return
        sizes = np.empty(len(numbers) + 1, np.int64)
        sizes[0] = 0
        files, records = self.places(numbers)
        for file in np.unique(files).tolist():
            at, bounds = np.flatnonzero(files == file), self.indexes[file].bounds
            sizes[at + 1] = bounds[records[at] + 1] - bounds[records[at]]
        ends = sizes.cumsum()
        begin = 0
        while begin < len(numbers):
            end = max(begin + 1, int(ends.searchsorted(ends[begin] + most_bytes, side="right")) - 1)
            yield numbers[begin:end]
            begin = end

    def frames(self, numbers: Array) -> list[Bytes]:
        """The frames of records as they stand in the files, in the order asked.

        Raises
        ------
        CorruptRecordError
            A file is not what it was.
        OSError
            A file cannot be read.
        """
        files, records = self.places(numbers)
        if len(numbers) == 1:
            file, record = int(files[0]), int(records[0])
            with self._ranges(file) as ranges:
                return [ranges.read(self.offset(file, record), self.offset(file, record + 1))]
        found: list[Any] = [None] * len(numbers)

        def read(file: int) -> None:
            asked = np.flatnonzero(files == file)
            different, nth = np.unique(records[asked], return_inverse=True)
            bounds = self.indexes[file].bounds
            with self._ranges(file) as ranges:
                parts = ranges.read_all(bounds[different].tolist(), bounds[different + 1].tolist())
            for at, part in zip(asked.tolist(), nth.tolist(), strict=True):
                found[at] = parts[part]

        asked_files = np.unique(files).tolist()
        if len(asked_files) > 1 and any(self.sources[file].remote is not None for file in asked_files):
            with ThreadPoolExecutor(min(_AT_A_TIME, len(asked_files))) as pool:
                list(pool.map(read, asked_files))
        else:
            for file in asked_files:
                read(file)
        return found

    def _ranges(self, file: int) -> AbstractContextManager[RandomAccessFile]:
        held = self._held.get(file)
        return self._open(file) if held is None else nullcontext(held)

    def _open(self, file: int) -> RandomAccessFile:
        ranges, size = open_random_access(self.sources[file]), self.indexes[file].end
        if ranges.size == size:
            return ranges
        ranges.close()
        reason = f"the file has {ranges.size} bytes, and had {size} when its records were numbered"
        raise CorruptRecordError(
            reason, path=self.sources[file].path, expected=size, got=ranges.size, advice="open it anew"
        )

    def close(self) -> None:
        """Close the files."""
        while self._held:
            self._held.popitem()[1].close()

    def __getstate__(self) -> tuple[list[Source], list[Index]]:
        return self.sources, self.indexes

    def __setstate__(self, state: tuple[list[Source], list[Index]]) -> None:
        self.sources, self.indexes = state
        self._held = {}
        self._number()
        if self._keeps_open:
            for file in range(len(self.sources)):
                self._held[file] = self._open(file)
