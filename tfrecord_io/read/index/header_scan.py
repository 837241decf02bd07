"""Find the records of a file by their headers alone: large payloads are skipped, and none is checked.

Tests: tests/read/index/test_record_index.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tfrecord_io.base import LIMITS, ProgressMeter
from tfrecord_io.bytes import Array, Checks, Fault, FaultCode, FrameHeader, get_engine
from tfrecord_io.read.index.record_index import RecordIndex
from tfrecord_io.store import BlockReader, RandomAccessFile

_MOST_HEADERS = 1000  # at a time
_HEAD_BYTES = 4096  # enough to recognize a file format


class HeaderScanner:
    """Scans the headers of a file. Payloads are not checked.

    `offset` is the end of the records scanned so far; after the last sizes, `fault` is what is wrong with the record at
    `offset`.
    """

    def __init__(self, file: RandomAccessFile, max_record_bytes: int, checks: Checks = Checks.LENGTHS) -> None:
        self._file, self._engine, self._end, self._max_record_bytes = file, get_engine(), file.size, max_record_bytes
        self._checks = checks
        self.offset = 0
        self.fault: Fault | None = None

    def sizes(self) -> Iterator[Array]:
        """Frame sizes, of a block or of a number of headers at a time."""
        block = np.empty(self._file.block_bytes, np.uint8)
        while self.offset < self._end and self.fault is None:
            sizes = self._scan_block(block)
            yield sizes
            # records so large that skipping each of them is faster than reading them
            while len(sizes) and int(sizes.mean()) > self._file.skip_bytes and self.fault is None:
                sizes = self._scan_headers()
                yield sizes

    def _scan_block(self, block: BlockReader.Buffer) -> Array:
        """The sizes of the records in the next block, including the one split by its end."""
        stop = min(self.offset + len(block), self._end)
        data = self._file.read(self.offset, stop, block)
        frames, self.fault = self._engine.scan(
            data, checks=self._checks, max_record_bytes=self._max_record_bytes, final=stop == self._end
        )
        self.offset += frames.consumed
        sizes = frames.lengths + FrameHeader.FRAME_BYTES
        tail = data[frames.consumed :]
        if (
            self.fault is None and len(tail) >= FrameHeader.BYTES
        ):  # a valid header whose payload was not read completely
            size = self._skip_record(tail)
            sizes = sizes if size is None else np.append(sizes, size)
        return sizes

    def _scan_headers(self) -> Array:
        """The sizes of the next records, of which only the headers are read."""
        sizes: list[int] = []
        while len(sizes) < _MOST_HEADERS and self.offset + FrameHeader.BYTES < self._end:
            header = self._file.read(self.offset, self.offset + FrameHeader.BYTES)
            limit = self._max_record_bytes
            _, self.fault = self._engine.scan(header, checks=self._checks, max_record_bytes=limit, final=False)
            if self.fault is not None:
                break
            size = self._skip_record(header)
            if size is None:
                break
            sizes.append(size)
        return np.array(sizes, np.int64)

    def _skip_record(self, header: BlockReader.Buffer) -> int | None:
        """Skip a record with a valid header and return its size; None if the file ends inside it."""
        size, left = FrameHeader(header).frame_size, self._end - self.offset
        if size <= left:
            self.offset += size
            return size
        length, left = size - FrameHeader.FRAME_BYTES, left - FrameHeader.BYTES
        if left < length:
            self.fault = Fault(FaultCode.TRUNCATED_PAYLOAD, 0, 0, expected=length, got=left)
        else:
            self.fault = Fault(FaultCode.TRUNCATED_FOOTER, 0, 0, expected=FrameHeader.FOOTER_BYTES, got=left - length)
        return None


def scan_sizes(
    path: str, file: RandomAccessFile, max_record_bytes: int = LIMITS.MAX_RECORD_BYTES, checks: Checks = Checks.LENGTHS
) -> Iterator[Array]:
    """Frame sizes of a plain file, some at a time; payloads are not checked.

    A damaged header is a CorruptRecordError or TruncatedRecordError after the sizes of all records before it;
    ``records_intact`` counts those records.
    """
    scanner = HeaderScanner(file, max_record_bytes, checks)
    records = 0
    for sizes in scanner.sizes():
        records += len(sizes)
        yield sizes
    if scanner.fault is not None:
        head = file.read(0, min(_HEAD_BYTES, file.size)) if scanner.offset == 0 else b""
        fault = scanner.fault._replace(record=0, offset=0)
        raise fault.error_in(path, record=records, offset=scanner.offset, data=head)


def scan_index(
    path: str,
    file: RandomAccessFile,
    max_record_bytes: int = LIMITS.MAX_RECORD_BYTES,
    progress: ProgressMeter | None = None,
    *,
    checks: Checks = Checks.LENGTHS,
) -> RecordIndex:
    """The index of a plain file; see `scan_sizes`."""
    parts = []
    for sizes in scan_sizes(path, file, max_record_bytes, checks):
        parts.append(sizes)
        if progress is not None:
            progress.advance(int(sizes.sum()))
    return RecordIndex.from_parts(parts)
