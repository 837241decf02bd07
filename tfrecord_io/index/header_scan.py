"""Compute an index by scanning a file; large payloads are skipped from header to header."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Array, Engine, Fault, FaultCode
from tfrecord_io.engine.fault_messages import record_error
from tfrecord_io.engine.select import get_engine
from tfrecord_io.format.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES, frame_size
from tfrecord_io.index.record_index import RecordIndex
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.storage.read.block_reader import Bytes
from tfrecord_io.storage.read.random_access_file import RandomAccessFile

_MOST_HEADERS = 1000  # at a time
_HEAD_BYTES = 4096  # enough to recognize a file format


class HeaderScanner:
    """Scans the headers of a file, from that at `begin` to the end of the last record at `end`.

    With `check_crc`, the payloads that are read anyway are checked. `offset` is the end of the records scanned so far;
    after the last sizes, `fault` is what is wrong with the record at `offset`.
    """

    def __init__(
        self,
        file: RandomAccessFile,
        engine: Engine,
        begin: int,
        end: int,
        max_record_bytes: int = MAX_RECORD_BYTES,
        *,
        check_crc: bool = False,
    ) -> None:
        self._file, self._engine, self._end, self._max_record_bytes = file, engine, end, max_record_bytes
        self._check_crc = check_crc
        self.offset = begin
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

    def _scan_block(self, block: Bytes) -> Array:
        """The sizes of the records in the next block, including the one that its end splits."""
        stop = min(self.offset + len(block), self._end)
        data = self._file.read(self.offset, stop, block)
        frames, self.fault = self._engine.scan(
            data, check_crc=self._check_crc, max_record_bytes=self._max_record_bytes, final=stop == self._end
        )
        self.offset += frames.consumed
        sizes = frames.lengths + FRAME_BYTES
        rest = data[frames.consumed :]
        if self.fault is None and len(rest) >= HEADER_BYTES:  # a valid header whose payload was not read completely
            size = self._skip_record(rest)
            sizes = sizes if size is None else np.append(sizes, size)
        return sizes

    def _scan_headers(self) -> Array:
        """The sizes of the next records, of which only the headers are read."""
        sizes: list[int] = []
        while len(sizes) < _MOST_HEADERS and self.offset + HEADER_BYTES < self._end:
            header = self._file.read(self.offset, self.offset + HEADER_BYTES)
            if self._engine.find_header(header, max_record_bytes=self._max_record_bytes) != 0:
                _, self.fault = self._engine.scan(header, check_crc=False, max_record_bytes=self._max_record_bytes)
                break
            size = self._skip_record(header)
            if size is None:
                break
            sizes.append(size)
        return np.array(sizes, np.int64)

    def _skip_record(self, header: Bytes) -> int | None:
        """Skip a record with a valid header and return its size; None if the file ends inside it."""
        size, left = frame_size(header), self._end - self.offset
        if size <= left:
            self.offset += size
            return size
        length, left = size - FRAME_BYTES, left - HEADER_BYTES
        if left < length:
            self.fault = Fault(FaultCode.TRUNCATED_PAYLOAD, 0, 0, expected=length, got=left)
        else:
            self.fault = Fault(FaultCode.TRUNCATED_FOOTER, 0, 0, expected=FOOTER_BYTES, got=left - length)
        return None


def scan_sizes(path: str, file: RandomAccessFile, max_record_bytes: int = MAX_RECORD_BYTES) -> Iterator[Array]:
    """Frame sizes of a plain file, some at a time; payloads are not checked.

    A damaged header is a CorruptRecordError or TruncatedRecordError after the sizes of all records before it;
    ``records_intact`` counts those records.
    """
    scanner = HeaderScanner(file, get_engine(), 0, file.size, max_record_bytes)
    records = 0
    for sizes in scanner.sizes():
        records += len(sizes)
        yield sizes
    if scanner.fault is not None:
        head = file.read(0, min(_HEAD_BYTES, file.size)) if scanner.offset == 0 else b""
        fault = replace(scanner.fault, record=0, offset=0)
        raise record_error(path, fault, record=records, offset=scanner.offset, data=head)


def scan_index(
    path: str, file: RandomAccessFile, max_record_bytes: int = MAX_RECORD_BYTES, progress: ProgressMeter | None = None
) -> RecordIndex:
    """The index of a plain file; see `scan_sizes`."""
    parts = [np.empty(0, np.int64)]
    for sizes in scan_sizes(path, file, max_record_bytes):
        parts.append(sizes)
        if progress is not None:
            progress.advance(int(sizes.sum()))
    return RecordIndex.of_sizes(np.concatenate(parts))
