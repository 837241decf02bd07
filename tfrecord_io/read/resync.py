"""Find record boundaries from any byte of a plain file.

A header is found by testing at every byte whether the CRC of a length matches. That alone proves little: a payload may
hold headers, even a whole TFRecord file. So the chain of records from there on must lead to a known boundary, at first
the end of the file, or go on for longer than any single record may be: a chain inside a payload ends with it. A
truncated file inside a payload continues as if the end of the payload were its own, so checksums are checked: those of
the first records, of the last one, and of all that are small enough to be read. Two cases are left: a payload made on
purpose, with a checksum that matches outside of it, and a payload that holds a file of large records whose last four
bytes are missing, where the chain was followed far enough before. Both are detected when the bytes before the false
boundary are read: they end inside a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Array, Engine
from tfrecord_io.format.framing import FRAME_BYTES, HEADER_BYTES, frame_size
from tfrecord_io.index.record_index import HeaderScanner
from tfrecord_io.options import LIMITS
from tfrecord_io.storage.read.random_access_file import RandomAccessFile


def find_boundaries(
    file: RandomAccessFile, engine: Engine, positions: Sequence[int], max_record_bytes: int = MAX_RECORD_BYTES
) -> list[int]:
    """Find the first record boundary at or after each position; the file's size where none is certain.

    Parameters
    ----------
    file : RandomAccessFile
        A plain file.
    engine : Engine
    positions : sequence of int
        Offsets in ascending order.
    max_record_bytes : int
        Of one record; it limits how far a false chain of headers is followed.
    """
    search = _BoundarySearch(file, engine, max_record_bytes)
    boundaries = []
    end = search.boundary
    for position in reversed(positions):
        search.find(position, end)
        boundaries.append(search.boundary)
        end = position
    return boundaries[::-1]


class _BoundarySearch:
    """A search from a file's end to its start; `boundary` is the last one found, at first the end."""

    def __init__(self, file: RandomAccessFile, engine: Engine, max_record_bytes: int) -> None:
        self.boundary = file.size
        self._file, self._engine, self._max_record_bytes = file, engine, max_record_bytes
        self._rejected = _OffsetSet()  # headers from which no valid chain starts
        # It bounds the time that a payload full of headers can take.
        self._bytes_left = 4 * file.size + LIMITS.spare_search_bytes

    def find(self, begin: int, end: int) -> None:
        """Set `boundary` to the first one in [begin, end), if one is certain."""
        for offset in self._headers(begin, end):
            if self._bytes_left <= 0:
                return
            if not self._rejected.intersects(np.array([offset])) and self._accepts(offset):
                self.boundary = offset
                return

    def _headers(self, begin: int, end: int) -> Iterator[int]:
        """Offsets in [begin, end) at which a header is."""
        window = LIMITS.search_window_bytes
        while begin < end:
            stop = min(begin + window, self._file.size)
            data = self._file.read(begin, stop)
            at = -1
            while True:
                at = self._engine.find_header(data, at + 1, max_record_bytes=self._max_record_bytes)
                if at < 0 or begin + at >= end:
                    break
                yield begin + at
            if stop == self._file.size:
                return
            begin = stop - HEADER_BYTES + 1
            window = min(2 * window, self._file.block_bytes)

    def _accepts(self, begin: int) -> bool:
        """Whether the records from `begin` on lead to the known boundary, or further than any record."""
        chain = [np.array([begin])]
        valid = self._follow(chain)
        self._bytes_left -= int(chain[-1][-1]) - begin
        if not valid:
            self._rejected.add(np.concatenate(chain))
        return valid

    def _follow(self, chain: list[Array]) -> bool:
        """Append the offsets of the records that follow the first to `chain`; whether the chain is valid."""
        begin = offset = int(chain[0][0])
        while len(chain) < LIMITS.checked_records and offset - begin < LIMITS.checked_bytes and offset < self.boundary:
            size = self._intact_size(offset)
            if size is None:
                return False
            offset += size
            chain.append(np.array([offset]))
        limit = self._max_record_bytes
        scanner = HeaderScanner(self._file, self._engine, offset, self.boundary, limit, check_crc=True)
        for sizes in scanner.sizes():
            if len(sizes):
                chain.append(chain[-1][-1] + np.cumsum(sizes))
            if scanner.offset - begin > limit + FRAME_BYTES:
                return True
            if self._rejected.intersects(chain[-1]):
                return False
        offsets = np.concatenate(chain)
        return scanner.fault is None and (len(offsets) < 2 or self._intact_size(int(offsets[-2])) is not None)

    def _intact_size(self, offset: int) -> int | None:
        """Frame size of the record at `offset`, if it is intact and ends at or before the known boundary."""
        if self.boundary - offset < FRAME_BYTES:
            return None
        header = self._file.read(offset, offset + HEADER_BYTES)
        size = frame_size(header)
        _, fault = self._engine.scan(header, max_record_bytes=self._max_record_bytes, final=False)
        if fault is not None or size > self.boundary - offset:
            return None
        self._bytes_left -= size
        frame = self._file.read(offset, offset + size)
        _, fault = self._engine.scan(frame, max_record_bytes=self._max_record_bytes)
        return size if fault is None else None


class _OffsetSet:
    """A growing set of offsets, as sorted arrays."""

    def __init__(self) -> None:
        self._arrays: list[Array] = []

    def add(self, offsets: Array) -> None:
        """Add ascending offsets."""
        self._arrays.append(offsets)
        if len(self._arrays) > LIMITS.search_arrays:
            self._arrays = [np.unique(np.concatenate(self._arrays))]

    def intersects(self, offsets: Array) -> bool:
        """Whether the set contains one of `offsets`."""
        for array in self._arrays:
            indices = array.searchsorted(offsets)
            inside = indices < len(array)
            if np.any(array[indices[inside]] == offsets[inside]):
                return True
        return False
