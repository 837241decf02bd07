"""The first records of files, for their schema: of large records, large features have their first values only.

The record that begins a file may have more bytes than its schema is worth.

Tests: tests/read/test_first_values.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from tfrecord_io.base import ScanOptions
from tfrecord_io.bytes import Array
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.index.header_scan import HeaderScanner
from tfrecord_io.read.sources import PieceStream
from tfrecord_io.read.stored_record import StoredRecord
from tfrecord_io.store import RandomAccessFile, Source

LARGE = 8 << 20  # bytes of a record of which features are taken one by one
_FILES = 8  # whose first records are a sample; of the others, the first record is looked at
_RECORDS, _BYTES = 10_000, 16 << 20  # of a file


def cut_to_first_values(sources: Sequence[Source], options: ScanOptions) -> list[Source] | None:
    """The files, those on a disk that begin with a large record cut to their first records; None if none does.

    Compressed files, and parts of files, stay as they are.
    """
    cut = [_cut(source, options, _RECORDS if at < _FILES else 1) for at, source in enumerate(sources)]
    return [new or old for new, old in zip(cut, sources, strict=True)] if any(cut) else None


def _cut(source: Source, options: ScanOptions, most: int) -> Source | None:
    if not source.is_whole_file or source.shard is not None or (source.size or 0) <= LARGE:
        return None
    try:
        with RandomAccessFile.open(source) as file:
            sizes = _first_sizes(file, options, most) if file.codec is None else []
            if max(sizes, default=0) <= LARGE:
                return None
            bounds = [0, *accumulate(sizes)]
            frames = [_first_values(file, begin, end) for begin, end in pairwise(bounds) if begin < _BYTES]
    except (TFRecordError, ValueError, OSError):  # the read of the file says what is wrong
        return None
    return source.replace(derived=FirstRecords(frames), size=sum(map(len, frames)))


def _first_sizes(file: RandomAccessFile, options: ScanOptions, most: int) -> list[int]:
    """The frame sizes of the first records."""
    scanner, sizes = HeaderScanner(file, options.limits.record_bytes), list[int]()
    for part in scanner.sizes():
        sizes += part.tolist()
        if len(sizes) >= most or scanner.offset >= _BYTES:
            break
    return sizes[:most]


def _first_values(file: RandomAccessFile, begin: int, end: int) -> Array:
    """The frame of a record, which is truncated if it is large."""
    if end - begin <= LARGE:
        return np.frombuffer(file.read(begin, end), np.uint8)
    record = StoredRecord.from_file(file, begin, end)
    return np.frombuffer(record.frame_of((), record.large, with_schema=True), np.uint8)


class FirstRecords:
    """Some records; see `tfrecord_io.store.read.source.DerivedContent`."""

    can_be_read_again = True
    schema: bytes | None = None

    def __init__(self, frames: Sequence[Array]) -> None:
        self._frames = frames

    def open(self) -> PieceStream:
        return PieceStream(frame for frame in self._frames)

    def read_once(self) -> None:
        """Keep the records: they are in memory."""
