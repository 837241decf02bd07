"""The offsets of a file's records: the text format of index files, and a scan of headers that skips large payloads."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS, ProgressMeter
from tfrecord_io.bytes import Array, Checks, Fault, FaultCode, FrameHeader, crc32c, get_engine
from tfrecord_io.columns import arrow_file
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.read.index import SMALL_BYTES
from tfrecord_io.store import BlockReader, FileName, RandomAccessFile

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
        checksums = _checksums(file, ends, gap=None)  # the file is read for its index: fewer requests, not fewer bytes
        return cls(every, tuple(zip(ends, checksums, strict=True)), crc32c)

    def compares_all(self, file: RandomAccessFile, index: RecordIndex, *, is_younger: bool) -> bool:
        """True if all records of a file are compared: of a small one, or one that `is_younger` than its index.

        Not if the `index` is of a part of it.
        """
        compares_all = self.all is not None and (is_younger or file.size <= SMALL_BYTES)
        return compares_all and (int(index.bounds[0]), index.end) == (0, file.size)

    def mismatch(self, file: RandomAccessFile, index: RecordIndex, *, every: bool) -> str:
        """Why a file is another one, by `every` record of it or by some; empty if it may be the same."""
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
    is_coarse = os.name == "nt" or changed % 1_000_000_000 == 0  # there, it is the time of creation
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


SUFFIX = FileName.INDEX_SUFFIX
REWRITE = "rewrite it (tfr index)"

_LINE = re.compile(rb"[0-9]+ [0-9]+\r?")
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

    def __init__(self, text: bytes, path: str) -> None:
        self._text, self._path = text, path
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
        self._ends = ends if text.endswith(b"\n") or not text else np.append(ends, len(text))

    @classmethod
    def read(cls, file: RandomAccessFile) -> Self:
        """Read an index file."""
        return cls(file.read(0, file.size).tobytes(), file.path)

    def __len__(self) -> int:
        return len(self._ends)

    def extent(self, number: int) -> tuple[int, int]:
        """Offset and size of a record."""
        begin = int(self._ends[number - 1]) + 1 if number else 0
        line = self._text[begin : int(self._ends[number])]
        if not _LINE.fullmatch(line):
            raise _bad_line(self._path, number, "expected '<offset> <size>', two integers")
        offset, size = map(int, line.split())
        if size < FrameHeader.FRAME_BYTES:
            reason = f"a record has at least {FrameHeader.FRAME_BYTES} bytes"
            raise _bad_line(self._path, number, reason, got=size)
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
    """Blocks that begin and end with a line, of others."""
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


# ---- from the headers


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
