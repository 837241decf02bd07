"""Which content of a file an index was written for, told from few of its bytes.

A copy has another name, age and tag; another content may have the same size, and any age. So an index is compared with
the checksums of payloads, which stand in the file: of all records of a small file, and of some of a large one. All are
compared if it is on a disk and younger than the index: it may be a copy, or some records were changed in place.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.select import get_engine
from tfrecord_io.format.framing import FOOTER_BYTES
from tfrecord_io.index.record_index import RecordIndex
from tfrecord_io.storage.read.random_access_file import RandomAccessFile

SMALL_BYTES = 256 << 10  # a file up to this size is compared by all of its records: they are one range
_SOME = {True: 64, False: 8}  # records of a larger file that are compared, by whether it is on a disk
_BLOCK_BYTES = 1 << 20  # read at a time to compare all records
_GOLDEN = (5**0.5 - 1) / 2  # whose multiples, without their integers, are spread evenly, however many are taken
_TICK_NS = 50_000_000  # several times that of the clock of a kernel
_CRC = np.dtype("<u4")


def some_records(count: int, most: int) -> Array:
    """The numbers of at most so many of `count` records, ascending: the first, the last, and others in between.

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


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The checksums of records, and where these end, and what the manifest of the dataset states.

    Attributes
    ----------
    all : int or None
        The CRC32C of the checksums of all records, one after the other; None for a larger file than `SMALL_BYTES` in a
        bucket.
    some : tuple of (int, int)
        Where a record ends, and the checksum of its payload as it stands there.
    crc32c : int or None
        Of the file, as a manifest states it.
    """

    all: int | None
    some: tuple[tuple[int, int], ...] = ()
    crc32c: int | None = None

    @classmethod
    def of(cls, file: RandomAccessFile, index: RecordIndex, crc32c: int | None = None) -> Self:
        """The fingerprint of a file whose records have an index."""
        ends = index.bounds[1:][some_records(len(index), _SOME[True])].tolist()
        every = _of_all(file, index) if file.is_local or file.size <= SMALL_BYTES else None
        checksums = _checksums(file, ends, gap=None)  # the file is read for its index: fewer requests, not fewer bytes
        return cls(every, tuple(zip(ends, checksums, strict=True)), crc32c)

    def is_of_all(self, file: RandomAccessFile, index: RecordIndex, *, is_younger: bool) -> bool:
        """Whether all records of a file are compared: of a small one, or one that `is_younger` than its index.

        Not if the `index` is of a part of it.
        """
        compares_all = self.all is not None and (is_younger or file.size <= SMALL_BYTES)
        return compares_all and (int(index.bounds[0]), index.end) == (0, file.size)

    def mismatch(self, file: RandomAccessFile, index: RecordIndex, *, every: bool) -> str:
        """What tells that a file is another one, by `every` record of it or by some; empty if nothing does."""
        if every:
            return "" if _of_all(file, index) == self.all else "the checksums of its records are others"
        chosen = [self.some[at] for at in some_records(len(self.some), _SOME[file.is_local]).tolist()]
        if (chosen[-1][0] if chosen else 0) != file.size:
            return f"its last record ends at another byte than {file.size}"
        for (end, stated), got in zip(chosen, _checksums(file, [end for end, _ in chosen]), strict=True):
            if got != stated:
                return f"the record that ends at byte {end} has another checksum"
        return ""

    def stated(self) -> dict[str, Any]:
        """As JSON."""
        return {"all": self.all, "some": self.some, "crc32c": self.crc32c}

    @classmethod
    def parse(cls, stated: Any) -> Self:
        """The fingerprint that an index states; ValueError if it is none."""

        def is_number(value: Any, most: int = 2**32 - 1) -> bool:
            return type(value) is int and 0 <= value <= most

        some = stated.get("some") if isinstance(stated, dict) else None
        if not isinstance(some, list) or not all(isinstance(each, list) and len(each) == 2 for each in some):
            raise ValueError("the fingerprint of its file's content is of another form")
        checksums, ends = [stated.get("all"), stated.get("crc32c")], [end for end, _ in some]
        are_numbers = all(is_number(crc) for _, crc in some) and all(is_number(end, 2**61) for end in ends)
        are_numbers &= all(number is None or is_number(number) for number in checksums)
        if not are_numbers or any(end < before + FOOTER_BYTES for before, end in pairwise([0, *ends])):
            raise ValueError("the fingerprint of its file's content has numbers out of range")
        return cls(checksums[0], tuple((end, crc) for end, crc in some), checksums[1])


def untouched_state(file: RandomAccessFile, *, is_complete: bool = False) -> dict[str, int]:
    """What differs in a local file once anything was written to it; empty where its times are too coarse to tell.

    A write right after another one may leave the time of the first, so a file that was just written has none, unless
    its writer knows that it `is_complete`.
    """
    changed = file.identity.get("ctime_ns", 0)
    is_coarse = os.name == "nt" or changed % 1_000_000_000 == 0  # there, it is the time of creation
    is_written_to = not is_complete and time.time_ns() - changed < _TICK_NS
    return {} if is_coarse or is_written_to else file.identity


def _of_all(file: RandomAccessFile, index: RecordIndex) -> int:
    """The CRC32C of the checksums of all records of a file."""
    ends, crc, done = index.bounds[1:], 0, 0
    while done < len(ends):
        begin = int(ends[done]) - FOOTER_BYTES
        stop = max(done + 1, int(ends.searchsorted(begin + _BLOCK_BYTES, side="right")))
        data = file.read(begin, int(ends[stop - 1]))
        places = ends[done:stop, None] - begin - FOOTER_BYTES + np.arange(FOOTER_BYTES)
        crc, done = get_engine().crc32c(np.ascontiguousarray(data[places]).tobytes(), crc), stop
    return crc


def _checksums(file: RandomAccessFile, ends: list[int], gap: int | None = 0) -> list[int]:
    """The checksums that stand at the ends of records."""
    begins = [end - FOOTER_BYTES for end in ends]
    return [int(np.frombuffer(part.tobytes(), _CRC)[0]) for part in file.read_all(begins, ends, gap)]
