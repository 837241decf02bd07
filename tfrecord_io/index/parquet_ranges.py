"""Parquet files with checksums: the parts that are needed are read by as few requests as possible, and checked.

A library that parses a damaged Parquet file may read wrong values, or crash. So the bytes between the columns and the
metadata, which readers of Parquet do not look at, have the CRC32C of each `_BLOCK_BYTES` before them, then, as three
little-endian numbers of 32 bits, that of these checksums and the metadata, how many there are, and `_MAGIC`.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.select import get_engine
from tfrecord_io.storage.read.block_reader import Bytes
from tfrecord_io.storage.read.random_access import RandomAccessFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_BLOCK_BYTES = 64 << 10
_MAGIC = int.from_bytes(b"TFRC", "little")
_TAIL_BYTES = 64 << 10  # what pyarrow reads first
_WHOLE_BYTES = 1 << 20  # a file up to this size is read at once


class Damaged(ValueError):
    """The checksums do not fit, or are not there."""


class ChecksummedSink(io.RawIOBase):
    """What a Parquet file is written to; `finish` adds the checksums. Call `begin_metadata` before it is closed."""

    def __init__(self, sink: Any) -> None:
        self._sink, self._crc32c = sink, get_engine().crc32c
        self._checksums: list[int] = []
        self._block, self._metadata = bytearray(), bytearray()
        self._in_metadata = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        if self._in_metadata:
            self._metadata += view
        else:
            self._append(view)
        return len(view)

    def _append(self, data: memoryview) -> None:
        self._sink.write(data)
        self._block += data
        while len(self._block) >= _BLOCK_BYTES:
            self._checksums.append(self._crc32c(bytes(self._block[:_BLOCK_BYTES])))
            del self._block[:_BLOCK_BYTES]

    def begin_metadata(self) -> None:
        """All columns have been written."""
        self._in_metadata = True

    def finish(self) -> None:
        """Write the metadata, with the checksums before it."""
        begin = len(self._metadata) - _metadata_bytes(self._metadata)
        self._append(memoryview(bytes(self._metadata[:begin])))
        metadata = bytes(self._metadata[begin:])
        if self._block:
            self._checksums.append(self._crc32c(bytes(self._block)))
        table = np.array(self._checksums, "<u4").tobytes()
        last = np.array([self._crc32c(table + metadata), len(self._checksums), _MAGIC], "<u4").tobytes()
        self._sink.write(table + last + metadata)


class ParquetRanges:
    """A Parquet file of which ranges are fetched in advance, several at a time, and checked.

    Errors of the storage are raised by the constructor and by `fetch`, and not through pyarrow. So is `Damaged`.
    """

    def __init__(self, opened: RandomAccessFile) -> None:
        self._opened, self._crc32c = opened, get_engine().crc32c
        size = opened.size
        begin = 0 if size <= _WHOLE_BYTES else size - _TAIL_BYTES
        tail = opened.read(begin, size).tobytes()
        metadata = size - _metadata_bytes(tail)
        if metadata - 12 < 0:
            raise Damaged("the file is truncated")
        if metadata - 12 < begin:
            begin, tail = metadata - 12, opened.read(metadata - 12, size).tobytes()
        checksum, count, magic = np.frombuffer(tail[metadata - 12 - begin : metadata - begin], "<u4").tolist()
        self._end = metadata - 12 - 4 * count  # of what has checksums
        if magic != _MAGIC or -(-self._end // _BLOCK_BYTES) != count:
            raise Damaged("it has no checksums, or is truncated")
        if self._end < begin:
            begin, tail = self._end, opened.read(self._end, size).tobytes()
        table = tail[self._end - begin : metadata - 12 - begin]
        if self._crc32c(table + tail[metadata - begin :]) != checksum:
            raise Damaged("the checksum of its metadata does not match")
        self._checksums: Array = np.frombuffer(table, "<u4")
        self._parts = [(begin, tail)]  # offset and content, of which only the metadata was checked
        self._checked: list[tuple[int, bytes]] = []

    def file(self) -> pa.PythonFile:
        """The file, which has the metadata and the ranges that were fetched."""
        return pa.PythonFile(_File(self._opened.size, self), mode="r")

    def fetch(self, metadata: pq.FileMetaData, names: Collection[str], groups: Iterable[int]) -> None:
        """Read the chunks of some columns, which have no nested values, in some row groups."""
        blocks: set[int] = set()
        for group in groups:
            row_group = metadata.row_group(group)
            if row_group.num_columns != metadata.num_columns:
                raise Damaged("its row groups have different columns")
            for column in range(metadata.num_columns):
                chunk = row_group.column(column)
                if chunk.path_in_schema in names:
                    begin = min(filter(None, (chunk.data_page_offset, chunk.dictionary_page_offset)), default=0)
                    end = begin + chunk.total_compressed_size
                    if not 0 <= begin <= end <= self._end:
                        raise Damaged(f"its metadata refers to bytes {begin} to {end}")
                    blocks.update(range(begin // _BLOCK_BYTES, -(-end // _BLOCK_BYTES)))
        self._fetch(sorted(blocks))

    def _fetch(self, blocks: Sequence[int]) -> None:
        bounds = [(block * _BLOCK_BYTES, min((block + 1) * _BLOCK_BYTES, self._end)) for block in blocks]
        wanted = [
            (block, span) for block, span in zip(blocks, bounds, strict=True) if _find(self._checked, *span) is None
        ]
        missing = [span for _, span in wanted if _find(self._parts, *span) is None]
        answers: list[Bytes] = self._opened.read_all([a for a, _ in missing], [b for _, b in missing])
        self._parts += [(begin, answer.tobytes()) for (begin, _), answer in zip(missing, answers, strict=True)]
        contents = [_find(self._parts, *span) or b"" for _, span in wanted]
        for (block, _), content in zip(wanted, contents, strict=True):
            if self._crc32c(content) != self._checksums[block]:
                raise Damaged(f"the checksum of block {block} does not match")
        runs = [0, *(at for at in range(1, len(wanted)) if wanted[at][0] != wanted[at - 1][0] + 1), len(wanted)]
        for first, last in pairwise(runs if wanted else []):
            self._checked.append((wanted[first][1][0], b"".join(contents[first:last])))
        del self._parts[1:]

    def content(self, begin: int, end: int) -> bytes:
        """Bytes of the file that were fetched; ValueError if they were not."""
        tail = _find(self._parts, begin, end)
        if tail is not None:
            return tail
        content, at = [], begin
        while at < end:
            part = next(((a, data) for a, data in self._checked if a <= at < a + len(data)), None)
            if part is None:
                raise ValueError(f"its metadata refers to bytes {begin} to {end}, where no column is")
            content.append(part[1][at - part[0] : end - part[0]])
            at += len(content[-1])
        return b"".join(content)


def _metadata_bytes(tail: bytes | bytearray) -> int:
    """The bytes of the metadata at the end of a Parquet file, with its length and Parquet's magic."""
    if len(tail) < 12 or tail[-4:] != b"PAR1":
        raise Damaged("it is not a Parquet file, or truncated")
    return 8 + int.from_bytes(tail[-8:-4], "little")


def _find(parts: list[tuple[int, bytes]], begin: int, end: int) -> bytes | None:
    for offset, content in parts:
        if offset <= begin and end <= offset + len(content):
            return content[begin - offset : end - offset]
    return None


class _File(io.RawIOBase):
    """The parts of a file as a Python file object."""

    def __init__(self, size: int, ranges: ParquetRanges) -> None:
        self._size, self._ranges, self._at = size, ranges, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset
        return self._at

    def read(self, size: int | None = -1, /) -> Any:
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        content = self._ranges.content(self._at, end)
        self._at = end
        return content
