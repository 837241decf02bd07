"""Finding records again, from any byte of a plain file.

A header is found by trying every byte for a length whose CRC fits. That alone proves little: a payload may hold headers, even
a whole TFRecord file. So the chain of records from there on must lead to a boundary that is known, at first the end of the
file, or go on for longer than any one record may be: a chain inside of a payload ends with it. A file that was cut goes on
as if the end of the payload were its own, so checksums are checked: those of the first records, of the last one, and of
all that are small enough to be read. What is left is a payload made on purpose, with a checksum that fits outside of it, and a
file of large records in a payload, which was cut by its last four bytes and goes on for long before. Either shows itself when
the bytes before the false boundary are read: they end inside of a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Array, Engine
from tfrecord_io.format.framing import FRAME_BYTES, HEADER_BYTES, frame_size
from tfrecord_io.index.header_scan import HeaderScanner
from tfrecord_io.storage.read.random_access import RandomAccessFile

_WINDOW_BYTES = 64 << 10  # to look for a header in; more with each that has none
_CHECKED_RECORDS = 64  # of a chain, from its first on, whose payloads are read whatever their size
_CHECKED_BYTES = 8 << 20  # as long as they are no more than this
_SPARE_BYTES = 256 << 20
_MOST_ARRAYS = 64


def find_boundaries(
    ranges: RandomAccessFile, engine: Engine, positions: Sequence[int], max_record_bytes: int = MAX_RECORD_BYTES
) -> list[int]:
    """For each byte position, in ascending order, the first boundary of records at or after it; the file's size where none is sure.

    Parameters
    ----------
    ranges : Ranges
        Of a plain file.
    engine : Engine
    positions : sequence of int
    max_record_bytes : int
        Of one record: how far a chain of headers may lead astray.
    """
    search = _Search(ranges, engine, max_record_bytes)
    found = []
    stop = search.known
    for position in reversed(positions):
        search.find(position, stop)
        found.append(search.known)
        stop = position
    return found[::-1]


class _Search:
    """A search from a file's end to its start, which knows one boundary: that of the last find, or the end."""

    def __init__(self, ranges: RandomAccessFile, engine: Engine, max_record_bytes: int) -> None:
        self.known = ranges.size
        self._ranges, self._engine, self._most = ranges, engine, max_record_bytes
        self._wrong = _Places()  # where headers stand from which no chain leads on
        self._left = 4 * ranges.size + _SPARE_BYTES  # to go over: a payload full of headers could keep us busy for ever

    def find(self, begin: int, end: int) -> None:
        """Let `known` be the first boundary in [begin, end), if there is a sure one."""
        for at in self._headers(begin, end):
            if self._left <= 0:
                return
            if at not in self._wrong and self._leads_on(at):
                self.known = at
                return

    def _headers(self, begin: int, end: int) -> Iterator[int]:
        """Where headers stand from `begin` on, before `end`."""
        window = _WINDOW_BYTES
        while begin < end:
            stop = min(begin + window, self._ranges.size)
            data = self._ranges.read(begin, stop)
            at = -1
            while (at := self._engine.find_header(data, at + 1, max_record_bytes=self._most)) >= 0 and begin + at < end:
                yield begin + at
            if stop == self._ranges.size:
                return
            begin = stop - HEADER_BYTES + 1
            window = min(2 * window, self._ranges.block_bytes)

    def _leads_on(self, begin: int) -> bool:
        """Whether the records from `begin` on lead to the known boundary, or further than any record."""
        places = [np.array([begin])]
        sound = self._leads_out(places)
        self._left -= int(places[-1][-1]) - begin
        if not sound:
            self._wrong.add(np.concatenate(places))
        return sound

    def _leads_out(self, places: list[Array]) -> bool:
        """The same, with the places that the chain comes to put into `places`."""
        begin = at = int(places[0][0])
        while len(places) < _CHECKED_RECORDS and at - begin < _CHECKED_BYTES and at < self.known:
            size = self._sound_size(at)
            if size is None:
                return False
            at += size
            places.append(np.array([at]))
        scanner = HeaderScanner(self._ranges, self._engine, at, self.known, self._most, check_crc=True)
        for sizes in scanner.sizes():
            if len(sizes):
                places.append(places[-1][-1] + np.cumsum(sizes))
            if scanner.offset - begin > self._most + FRAME_BYTES:
                return True
            if self._wrong.any(places[-1]):
                return False
        ends = np.concatenate(places)
        return scanner.fault is None and (len(ends) < 2 or self._sound_size(int(ends[-2])) is not None)

    def _sound_size(self, at: int) -> int | None:
        """Bytes of the record at `at`, if it is whole, sound, and ends at the known boundary or before."""
        if self.known - at < FRAME_BYTES:
            return None
        header = self._ranges.read(at, at + HEADER_BYTES)
        size = frame_size(header)
        _, fault = self._engine.scan(header, max_record_bytes=self._most, final=False)
        if fault is not None or size > self.known - at:
            return None
        self._left -= size
        _, fault = self._engine.scan(self._ranges.read(at, at + size), max_record_bytes=self._most)
        return size if fault is None else None


class _Places:
    """A growing set of places in a file."""

    def __init__(self) -> None:
        self._arrays: list[Array] = []

    def add(self, places: Array) -> None:
        """Add places, which ascend."""
        self._arrays.append(places)
        if len(self._arrays) > _MOST_ARRAYS:
            self._arrays = [np.unique(np.concatenate(self._arrays))]

    def __contains__(self, place: int) -> bool:
        return self.any(np.array([place]))

    def any(self, places: Array) -> bool:
        """Whether one of `places` is in here."""
        for array in self._arrays:
            at = array.searchsorted(places)
            inside = at < len(array)
            if np.any(array[at[inside]] == places[inside]):
                return True
        return False
