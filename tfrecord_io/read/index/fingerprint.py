"""Compare an index with the content of its file: by checksums of records, and by the state of a local file.

Tests: tests/read/index/test_record_index_fingerprint.py.
"""

from __future__ import annotations

import os
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from tfrecord_io.bytes import Array, FrameHeader, crc32c
from tfrecord_io.read.index import SMALL_BYTES

if TYPE_CHECKING:
    from tfrecord_io.read.index.record_index import RecordIndex
    from tfrecord_io.store import RandomAccessFile

_SOME = {True: 64, False: 8}  # records of a larger file that are compared, by whether it is on a disk
_BLOCK_BYTES = 1 << 20  # read at a time to compare all records
_GOLDEN = (5**0.5 - 1) / 2  # the fractional parts of its multiples are spread evenly, however many are taken
_TICK_NS = 50_000_000  # several ticks of the clock by which a kernel dates writes
_CRC = np.dtype("<u4")


def some_records(count: int, most: int) -> Array:
    """Choose at most `most` of `count` records: the first, the last, and others spread evenly between them; ascending.

    >>> some_records(1000, 4)
    array([  0, 236, 618, 999])
    """
    if count <= most:
        return np.arange(count)
    chosen = dict.fromkeys([0, count - 1])
    step = 0
    while len(chosen) < most:
        step += 1
        chosen[int(step * _GOLDEN % 1 * count)] = None
    return np.array(sorted(chosen))


class Fingerprint(NamedTuple):
    """The checksums of records, and where these end, and what the manifest of the dataset states."""

    # The CRC32C of the checksums of all records, one after the other; None for a larger file than `SMALL_BYTES` in a
    # bucket.
    all: int | None
    some: tuple[tuple[int, int], ...] = ()  # where a record ends, and the checksum of its payload as stored
    crc32c: int | None = None  # of the file, as a manifest states it

    @classmethod
    def from_file(cls, file: RandomAccessFile, index: RecordIndex, crc32c: int | None = None) -> Self:
        """The fingerprint of a file whose records have an index."""
        ends = index.bounds[1:][some_records(len(index), _SOME[True])].tolist()
        every = _checksum_all(file, index) if file.is_local or file.size <= SMALL_BYTES else None
        checksums = _checksums(file, ends, gap=None)  # near ranges in one request: an index needs the file
        return cls(every, tuple(zip(ends, checksums, strict=True)), crc32c)

    def compares_all(self, file: RandomAccessFile, index: RecordIndex, *, is_younger: bool) -> bool:
        """True if all records of a file are compared: the file is small, or `is_younger` than its index.

        False if the `index` is that of a part of the file.
        """
        compares_all = self.all is not None and (is_younger or file.size <= SMALL_BYTES)
        return compares_all and (int(index.bounds[0]), index.end) == (0, file.size)

    def mismatch(self, file: RandomAccessFile, index: RecordIndex, *, every: bool) -> str:
        """Say why the index does not match the file, by all records if `every`, else by some; empty if it may match."""
        if every:
            return "" if _checksum_all(file, index) == self.all else "the checksums of its records are others"
        chosen = [self.some[at] for at in some_records(len(self.some), _SOME[file.is_local]).tolist()]
        if (chosen[-1][0] if chosen else 0) != file.size:
            return f"its last record ends at another byte than {file.size}"
        for (end, stated_checksum), got in zip(chosen, _checksums(file, [end for end, _ in chosen]), strict=True):
            if got != stated_checksum:
                return f"the record that ends at byte {end} has another checksum"
        return ""

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {"all": self.all, "some": self.some, "crc32c": self.crc32c}

    @classmethod
    def parse(cls, stated: Any) -> Self:
        """The fingerprint that an index states; ValueError if it is none."""

        def is_number(value: Any, most: int = 2**32 - 1) -> bool:
            return type(value) is int and 0 <= value <= most

        some = stated.get("some") if isinstance(stated, dict) else None
        if not isinstance(some, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in some):
            raise ValueError("the fingerprint of its file's content is of another form")
        checksums, ends = [stated.get("all"), stated.get("crc32c")], [end for end, _ in some]
        are_numbers = all(is_number(crc) for _, crc in some) and all(is_number(end, 2**61) for end in ends)
        are_numbers &= all(number is None or is_number(number) for number in checksums)
        if not are_numbers or any(end < before + FrameHeader.FOOTER_BYTES for before, end in pairwise([0, *ends])):
            raise ValueError("the fingerprint of its file's content has numbers out of range")
        return cls(checksums[0], tuple((end, crc) for end, crc in some), checksums[1])


def untouched_state(file: RandomAccessFile, *, is_complete: bool = False) -> dict[str, int]:
    """The state of a local file, which changes with every write; empty where its times are too coarse to tell.

    A write may leave the time of a write just before it, so a file that was just written has no state, unless its
    writer knows that it `is_complete`.
    """
    changed = file.identity.get("ctime_ns", 0)
    # On Windows the time is that of creation; whole seconds are those of a filesystem that dates no more precisely.
    is_coarse = os.name == "nt" or changed % 1_000_000_000 == 0
    is_written_to = not is_complete and time.time_ns() - changed < _TICK_NS
    return {} if is_coarse or is_written_to else file.identity


def _checksum_all(file: RandomAccessFile, index: RecordIndex) -> int:
    """The CRC32C of the checksums of all records of a file."""
    ends, crc, done = index.bounds[1:], 0, 0
    while done < len(ends):
        begin = int(ends[done]) - FrameHeader.FOOTER_BYTES
        stop = max(done + 1, int(ends.searchsorted(begin + _BLOCK_BYTES, side="right")))
        data = file.read(begin, int(ends[stop - 1]))
        places = ends[done:stop, None] - begin - FrameHeader.FOOTER_BYTES + np.arange(FrameHeader.FOOTER_BYTES)
        crc, done = crc32c(np.ascontiguousarray(data[places]).tobytes(), crc), stop
    return crc


def _checksums(file: RandomAccessFile, ends: list[int], gap: int | None = 0) -> list[int]:
    """The checksums that stand at the ends of records."""
    begins = [end - FrameHeader.FOOTER_BYTES for end in ends]
    return [int(np.frombuffer(part.tobytes(), _CRC)[0]) for part in file.read_all(begins, ends, gap)]
