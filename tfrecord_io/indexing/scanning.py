"""An index by hops from header to header: payloads are passed over where reading them costs more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tfrecord_io.engine.contract import FOOTER_BYTES, HEADER_BYTES, MAX_RECORD_BYTES, Array, Engine, Fault, FaultCode
from tfrecord_io.engine.select import get_engine
from tfrecord_io.framing import record_error
from tfrecord_io.indexing.index import FRAME_BYTES, Index
from tfrecord_io.storage.ranges import Ranges

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
        ranges: Ranges,
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
        """Sizes of whole frames, those of a block at a time."""
        room = self._ranges.block_bytes
        while self.at < self._end and self.fault is None:
            stop = min(self.at + room, self._end)
            data = self._ranges.read(self.at, stop)
            frames, self.fault = self._engine.scan(data, check_crc=self._check_crc, max_record_bytes=self._most, final=stop == self._end)
            found = frames.lengths + FRAME_BYTES
            self.at += frames.consumed
            left = data[frames.consumed :]
            if self.fault is None and len(left) >= HEADER_BYTES:  # the sound header of a record whose end was not read
                size = int.from_bytes(left[:8].tobytes(), "little") + FRAME_BYTES
                self.fault = self._cut(size)
                if self.fault is None:
                    self.at += size
                    found = np.append(found, size)
            room = self._next_room(found)
            yield found

    def _next_room(self, found: Array) -> int:
        """How much to read next: a block of records, or a header only, where records are so large that a hop costs less."""
        large = len(found) > 0 and int(found.mean()) > self._ranges.cheap_bytes
        return HEADER_BYTES if large else self._ranges.block_bytes

    def _cut(self, size: int) -> Fault | None:
        """The fault of a record of `size` bytes, if the file ends inside of it."""
        left = self._end - self.at
        if size <= left:
            return None
        length = size - FRAME_BYTES
        if left < HEADER_BYTES + length:
            return Fault(FaultCode.TRUNCATED_PAYLOAD, 0, 0, expected=length, got=left - HEADER_BYTES)
        return Fault(FaultCode.TRUNCATED_FOOTER, 0, 0, expected=FOOTER_BYTES, got=left - HEADER_BYTES - length)


def scan_index(path: str, ranges: Ranges, max_record_bytes: int = MAX_RECORD_BYTES) -> Index:
    """The index of a plain file; payloads are not checked.

    Raises
    ------
    CorruptRecordError, TruncatedRecordError
        At the first header that does not fit; ``records_intact`` counts the records before it.
    """
    hops = Hops(ranges, get_engine(), 0, ranges.size, max_record_bytes)
    found = [np.empty(0, np.int64), *hops.sizes()]
    index = Index.of_sizes(np.concatenate(found))
    if hops.fault is not None:
        head = ranges.read(hops.at, min(_HEAD_BYTES, ranges.size)) if hops.at == 0 else b""
        raise record_error(path, replace(hops.fault, record=0, offset=0), record=len(index), offset=hops.at, data=head)
    return index
