"""An index by hops from header to header: payloads are passed over where reading them costs more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Array, Engine, Fault, FaultCode
from tfrecord_io.engine.fault_messages import record_error
from tfrecord_io.engine.select import get_engine
from tfrecord_io.format.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES, frame_size
from tfrecord_io.index.record_index import Index
from tfrecord_io.storage.read.block_reader import Bytes
from tfrecord_io.storage.read.random_access import RandomAccessFile

_HOPS = 1000  # at a time
_HEAD_BYTES = 4096  # enough to see what a file is


class Hops:
    """Goes through the headers of a file.

    Parameters
    ----------
    ranges : Ranges
    engine : Engine
    begin : int
        Byte of a record's header.
    end : int
        Where the last record ends.
    max_record_bytes : int
    check_crc : bool
        Check the payloads that are read anyway.

    Attributes
    ----------
    at : int
        The first byte of what comes next: behind the records given, and at the end the first that is no record.
    fault : Fault or None
        Once the sizes have ended: what is wrong with the record at `at`.
    """

    def __init__(
        self,
        ranges: RandomAccessFile,
        engine: Engine,
        begin: int,
        end: int,
        max_record_bytes: int = MAX_RECORD_BYTES,
        *,
        check_crc: bool = False,
    ) -> None:
        self._ranges, self._engine, self._end, self._most = ranges, engine, end, max_record_bytes
        self._check_crc = check_crc
        self.at = begin
        self.fault: Fault | None = None

    def sizes(self) -> Iterator[Array]:
        """Sizes of whole frames, those of a block or of some hops at a time."""
        block = np.empty(self._ranges.block_bytes, np.uint8)
        while self.at < self._end and self.fault is None:
            found = self._scanned(block)
            yield found
            while len(found) and self._large(found) and self.fault is None:
                found = self._hopped()
                yield found

    def _large(self, found: Array) -> bool:
        """Whether records are so large that a hop over each costs less than reading them."""
        return int(found.mean()) > self._ranges.skip_bytes

    def _scanned(self, block: Bytes) -> Array:
        """The sizes of the records in the next block, and of the one that it cuts."""
        stop = min(self.at + len(block), self._end)
        data = self._ranges.read(self.at, stop, block)
        frames, self.fault = self._engine.scan(
            data, check_crc=self._check_crc, max_record_bytes=self._most, final=stop == self._end
        )
        self.at += frames.consumed
        found = frames.lengths + FRAME_BYTES
        left = data[frames.consumed :]
        if self.fault is None and len(left) >= HEADER_BYTES:  # the sound header of a record whose end was not read
            size = self._passed(left)
            found = found if size is None else np.append(found, size)
        return found

    def _hopped(self) -> Array:
        """The sizes of the next records, by their headers alone."""
        found: list[int] = []
        while len(found) < _HOPS and self.at + HEADER_BYTES < self._end:
            header = self._ranges.read(self.at, self.at + HEADER_BYTES)
            if self._engine.find_header(header, max_record_bytes=self._most) != 0:
                _, self.fault = self._engine.scan(header, check_crc=False, max_record_bytes=self._most)
                break
            size = self._passed(header)
            if size is None:
                break
            found.append(size)
        return np.array(found, np.int64)

    def _passed(self, header: Bytes) -> int | None:
        """Pass over a record whose header is sound, and give its size; None where the file ends inside of it."""
        size = frame_size(header)
        self.fault = self._cut(size)
        if self.fault is not None:
            return None
        self.at += size
        return size

    def _cut(self, size: int) -> Fault | None:
        """The fault of a record of `size` bytes, if the file ends inside of it."""
        left = self._end - self.at
        if size <= left:
            return None
        length = size - FRAME_BYTES
        if left < HEADER_BYTES + length:
            return Fault(FaultCode.TRUNCATED_PAYLOAD, 0, 0, expected=length, got=left - HEADER_BYTES)
        return Fault(FaultCode.TRUNCATED_FOOTER, 0, 0, expected=FOOTER_BYTES, got=left - HEADER_BYTES - length)


def scan_sizes(path: str, ranges: RandomAccessFile, max_record_bytes: int = MAX_RECORD_BYTES) -> Iterator[Array]:
    """Sizes of the frames of a plain file, some at a time; payloads are not checked.

    Raises
    ------
    CorruptRecordError, TruncatedRecordError
        Behind all records before it: a header does not fit. ``records_intact`` counts those.
    """
    hops = Hops(ranges, get_engine(), 0, ranges.size, max_record_bytes)
    records = 0
    for sizes in hops.sizes():
        records += len(sizes)
        yield sizes
    if hops.fault is not None:
        head = ranges.read(0, min(_HEAD_BYTES, ranges.size)) if hops.at == 0 else b""
        raise record_error(path, replace(hops.fault, record=0, offset=0), record=records, offset=hops.at, data=head)


def scan_index(path: str, ranges: RandomAccessFile, max_record_bytes: int = MAX_RECORD_BYTES) -> Index:
    """The index of a plain file; see `scan_sizes`."""
    return Index.of_sizes(np.concatenate([np.empty(0, np.int64), *scan_sizes(path, ranges, max_record_bytes)]))
