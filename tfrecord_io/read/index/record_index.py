"""The offsets of a file's records, and index files, which have them as text.

Tests: tests/read/index/test_record_index.py.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS
from tfrecord_io.bytes import Array, FrameHeader
from tfrecord_io.columns import arrow_file, offsets_of
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store import FileName, RandomAccessFile

SUFFIX = FileName.INDEX_SUFFIX
REWRITE = "rewrite it (tfr index)"

_LINE = re.compile(rb"[0-9]+ [0-9]+\r?")
_BLOCK_BYTES = 1 << 18  # of a text index that are searched for ends of lines at a time
_COUNTED = 1 << 10  # bytes of it, of which the ends of lines are counted; less than 8 * 256, see `LineIndex`
_LONGEST_LINE = 1 << 20  # that is not split, so that the time of other files is in proportion to their size
_FEW_RECORDS, _FEW_BYTES = 100, 1000  # for so few, a call of Arrow's reader or writer of CSV takes longer than Python
_TEXT_RECORDS = 1 << 16  # whose lines are made at a time
_FEW_LINES = re.compile(rb"(?:[0-9]{1,18} [0-9]{1,18}\r?\n)*(?:[0-9]{1,18} [0-9]{1,18}\r?)?")  # of numbers in int64
_OTHER_BYTES = bytes(set(range(256)) - set(b"0123456789 \r\n"))


@dataclass(frozen=True, slots=True, eq=False)
class RecordIndex:
    """The offsets of the records of a file, or of a part of one, without gaps.

    >>> list(RecordIndex.from_sizes([20, 16]).texts())
    [b'0 20\\n20 16\\n']
    """

    bounds: Array  # int64: the offset of each record's frame, and the end of the file or the part

    @classmethod
    def from_sizes(cls, sizes: Any, begin: int = 0) -> Self:
        """The index of frames of these sizes in bytes, each 16 more than the payload; the first one is at `begin`."""
        return cls.from_parts([sizes], begin)

    @classmethod
    def from_parts(cls, parts: Sequence[Any], begin: int = 0) -> Self:
        """As `from_sizes`, of sizes in several arrays, which need not be joined: those of all records take memory."""
        bounds = np.full(sum(map(len, parts)) + 1, begin, np.int64)
        at = 0
        for sizes in parts:
            ends = bounds[at + 1 : at + 1 + len(sizes)]
            np.cumsum(sizes, dtype=np.int64, out=ends)
            ends += bounds[at]
            at += len(sizes)
        return cls(bounds)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def offsets(self) -> Array:
        return self.bounds[:-1]

    def extent(self, number: int) -> tuple[int, int]:
        """Offset and size of a record."""
        begin, end = self.bounds[number : number + 2].tolist()
        return begin, end - begin

    @property
    def sizes(self) -> Array:
        return np.diff(self.bounds)

    @property
    def end(self) -> int:
        """Where the last record ends."""
        return int(self.bounds[-1])

    def texts(self) -> Iterator[bytes]:
        """The content of an index file, in parts: that of small records has about as many bytes as they have."""
        for begin in range(0, len(self), _TEXT_RECORDS):
            bounds = self.bounds[begin : begin + _TEXT_RECORDS + 1]
            yield _text(bounds[:-1], np.diff(bounds))

    @classmethod
    def read(cls, file: RandomAccessFile) -> Self:
        """Read an index file, block by block: that of small records has about as many bytes as they have."""
        begins = range(0, file.size, file.block_bytes)
        return cls.from_blocks(
            (file.read(at, min(at + file.block_bytes, file.size)).tobytes() for at in begins), file.path
        )

    @classmethod
    def from_blocks(cls, blocks: Iterable[bytes], path: str) -> Self:
        """Parse the content of an index file."""
        parts: list[Array] = []
        line, end = 0, 0
        for lines in _whole_lines(blocks):
            if not parts and is_pickle(lines):
                reason = "the index is a pickle, as tfd-utils writes it, which may hold code and is never loaded"
                raise CorruptRecordError(reason, path=path, hint=REWRITE)
            offsets, sizes = _numbers(lines, path, line)
            bounds = cls.from_sizes(sizes, end).bounds
            invalid = np.flatnonzero((sizes < FrameHeader.FRAME_BYTES) | (bounds[:-1] != offsets))
            if len(invalid):
                at = int(invalid[0])
                size, offset, expected = int(sizes[at]), int(offsets[at]), int(bounds[at])
                if size < FrameHeader.FRAME_BYTES:
                    raise _bad_line(path, line + at, f"a record has at least {FrameHeader.FRAME_BYTES} bytes", got=size)
                reason = f"expected the record at byte {expected}, where the last one ends, got {offset}"
                raise _bad_line(path, line + at, reason, expected=expected, got=offset)
            parts.append(sizes)
            line, end = line + len(sizes), int(bounds[-1])
        return cls.from_parts(parts)


class LineIndex:
    """The text index of a file, of which only lines that are asked for are parsed: a bad one is a CorruptRecordError.

    >>> lines = LineIndex(b"0 20\\n20 16\\n", "x.index")
    >>> len(lines), lines.extent(1), lines.end
    (2, (20, 16), 36)
    """

    def __init__(self, text: bytes | Array, path: str) -> None:
        self._text, self._path = np.frombuffer(text, np.uint8), path
        whole, width = len(self._text) // _COUNTED * _COUNTED, gcd(_COUNTED, 8)
        sums = [np.empty(0, np.uint64)]
        for begin in range(0, whole, _BLOCK_BYTES):  # which stays in the caches
            is_end = self._text[begin : min(begin + _BLOCK_BYTES, whole)] == ord("\n")
            # Eight bytes are added at a time, as one number: no byte of the sums exceeds 255.
            firsts = np.arange(0, len(is_end) // width, _COUNTED // width)
            sums.append(np.add.reduceat(is_end.view(f"u{width}"), firsts, dtype=np.uint64))
        counts = np.concatenate(sums).view(np.uint8).reshape(-1, 8) @ np.ones(8, np.int64)
        # Of lines before each _COUNTED bytes, and of all.
        self._ends = offsets_of(np.append(counts, np.count_nonzero(self._text[whole:] == ord("\n"))))
        self._is_open = len(self._text) > 0 and self._text[-1] != ord("\n")  # True if the last line has no end

    @classmethod
    def read(cls, file: RandomAccessFile) -> Self:
        """Read an index file."""
        return cls(file.read(0, file.size), file.path)

    def __len__(self) -> int:
        return int(self._ends[-1]) + self._is_open

    def _line(self, number: int) -> bytes:
        """The text of a line."""
        block = min(int(self._ends.searchsorted(number, side="right")), len(self._ends) - 1) - 1
        begin, at = block * _COUNTED, number - int(self._ends[block])
        parts = [self._block(begin).split(b"\n", at + 1)[at]]
        while not at and begin:  # the line begins in an earlier block
            begin -= _COUNTED
            _, newline, part = self._block(begin).rpartition(b"\n")
            parts.append(part)
            at = len(newline)
        return b"".join(reversed(parts))

    def _block(self, begin: int) -> bytes:
        return self._text[begin : begin + _COUNTED].tobytes()

    def extent(self, number: int) -> tuple[int, int]:
        """Offset and size of a record."""
        line = self._line(number)
        if not _LINE.fullmatch(line):
            raise _bad_line(self._path, number, "expected '<offset> <size>', two integers")
        offset, size = map(int, line.split())
        if size < FrameHeader.FRAME_BYTES:
            reason = f"a record has at least {FrameHeader.FRAME_BYTES} bytes"
            raise _bad_line(self._path, number, reason, got=size)
        if offset + size > LIMITS.INT64_MAX:
            raise _bad_line(self._path, number, "the record ends after byte 2**63 - 1", got=offset)
        return offset, size

    @property
    def end(self) -> int:
        """See `RecordIndex.end`."""
        return sum(self.extent(len(self) - 1)) if len(self) else 0


def _text(offsets: Array, sizes: Array) -> bytes:
    """The lines of an index file."""
    if len(sizes) <= _FEW_RECORDS:
        return b"".join(b"%d %d\n" % line for line in zip(offsets.tolist(), sizes.tolist(), strict=True))
    from pyarrow import csv

    out = io.BytesIO()
    table = pa.table({"offset": offsets, "size": sizes})
    csv.write_csv(table, out, csv.WriteOptions(include_header=False, delimiter=" "))
    return out.getvalue()


def is_pickle(head: bytes) -> bool:
    """True if a file begins as the index of tfd-utils does, of which text never begins so."""
    return head[:1] == b"\x80" and head[1:2] <= b"\x05"


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Divide the text of blocks into blocks of whole lines."""
    partial_line = b""
    for block in blocks:
        lines, newline, partial_line = (partial_line + block).rpartition(b"\n")
        if newline:
            yield lines + newline
        elif len(partial_line) > _LONGEST_LINE:
            yield partial_line
            partial_line = b""
    if partial_line:
        yield partial_line


def _numbers(text: bytes, path: str, line: int) -> tuple[Array, Array]:
    """The columns of offsets and sizes, of lines that begin with number `line`."""
    if len(text) <= _FEW_BYTES and _FEW_LINES.fullmatch(text):
        columns = np.array(text.split(), np.int64).reshape(-1, 2)
        return columns[:, 0], columns[:, 1]
    from pyarrow import csv

    if len(text.translate(None, _OTHER_BYTES)) == len(text):
        try:
            table = csv.read_csv(
                arrow_file(text),
                csv.ReadOptions(column_names=["offset", "size"], use_threads=False),
                csv.ParseOptions(delimiter=" ", quote_char=False, ignore_empty_lines=False),
                csv.ConvertOptions(column_types={"offset": pa.int64(), "size": pa.int64()}, null_values=[]),
            )
        except pa.ArrowInvalid:
            pass  # the line is found below
        else:
            return table["offset"].to_numpy(), table["size"].to_numpy()
    lines = text.removesuffix(b"\n").split(b"\n")
    invalid = next((number for number, line in enumerate(lines) if not _LINE.fullmatch(line)), None)
    if invalid is None:
        raise CorruptRecordError("the index has numbers over 2**63 - 1", path=path)
    raise _bad_line(path, line + invalid, "expected '<offset> <size>', two integers")


def _bad_line(path: str, line: int, reason: str, **facts: Any) -> CorruptRecordError:
    return CorruptRecordError(f"line {line + 1} of the index: {reason}", path=path, hint=REWRITE, **facts)
