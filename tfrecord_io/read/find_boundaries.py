"""Find the first record at or after any byte of a plain file, by the bytes that follow it.

A header is found by testing at every byte whether the CRC of a length matches. That alone proves little: a payload may
hold headers, even a whole TFRecord file. So a chain of records must lead from it to the end of the file, or far enough,
through `_CHAIN_RECORDS` records and the `_CHAIN_BYTES`, or four times these bytes: a chain inside a payload
ends with it. A truncated file inside a payload continues as if the end of the payload were its own, so the checksums of
payloads are checked, but for those of records that are longer than what is read at a time. Positions that are nearer
to each other than a chain is long have the most of it in common, which is read once.

Damage ends a chain, too, as where the last record of a file is damaged. So where intact records follow a byte, but no
chain is long enough, a boundary is searched for before the byte, as far as a chain is long, and the records are
followed from it.

What is found depends on the file and the byte alone, so that all who ask for the same byte find the same boundary. One
case is left: a file inside a payload that goes on for so long after the byte. It is detected when the record before
the false boundary is read: it continues beyond it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from tfrecord_io.base import LIMITS, MIB, ordered
from tfrecord_io.bytes import Array, Engine, Fault, FaultCode, FrameHeader
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.read.chunks.resync import most_chain_bytes
from tfrecord_io.store import BlockReader, RandomAccessFile

_CHAIN_RECORDS = 16  # successive records that prove a boundary
# Bytes of these records: in a bucket, where one request of 2 MiB has them and the bytes before; and on a disk.
_CHAIN_BYTES = (3 << 19, 16 * MIB)
_LONG_CHAIN = 4  # times the bytes of a chain: as long as one needs to be, however few records it has
_FIRST_BYTES = 128 << 10  # searched for headers in a file on a disk, of which most have shorter records
_NONE = np.empty(0, np.int64)


class IntactRecords:
    """Consecutive intact records of a file: searches that follow them do not read them again.

    Those far before the last one are let go.
    """

    def __init__(self) -> None:
        self._buffer = np.empty(0, np.uint8)
        # int64: where records begin, and where the last one of the block ends; the next block begins there.
        self._blocks = list[Array]()

    def buffer(self, size: int) -> Array:
        """Memory for as many bytes, which is used again."""
        if len(self._buffer) != size:
            self._buffer = np.empty(size, np.uint8)
        return self._buffer

    def ends(self, offset: int) -> Array:
        """Where the record at an offset ends, and others after it: int64, empty if it was not found."""
        at = bisect_right(self._blocks, offset, key=lambda block: int(block[0])) - 1
        block = self._blocks[at] if at >= 0 else _NONE
        row = int(block.searchsorted(offset))
        return block[row + 1 :] if row < len(block) and block[row] == offset else _NONE

    def add(self, offset: int, ends: Array, kept_bytes: int) -> None:
        """Add records from an offset on, of which the last `kept_bytes` are kept."""
        if self._blocks and self._blocks[-1][-1] != offset:
            self._blocks.clear()
        self._blocks.append(np.concatenate([[offset], ends]))
        first = bisect_right(self._blocks, int(ends[-1]) - kept_bytes, key=lambda block: int(block[-1]))
        del self._blocks[:first]


def find_boundaries(
    file: RandomAccessFile,
    engine: Engine,
    positions: Sequence[int],
    max_record_bytes: int = LIMITS.MAX_RECORD_BYTES,
    *,
    threads: int = 1,
    records: IntactRecords | None = None,
) -> list[int]:
    """Find the first record boundary at or after each position, an offset; the file's size where none is certain.

    The first byte of the file is a boundary, and so is its end; a compressed file has no other. A header that states
    more than `max_record_bytes` is none. With several `threads`, so many positions are searched from at a time, which
    is faster where reading is waiting. Those of `records` are not read again, and those read are added, but with
    `threads`. CorruptRecordError if so many false headers follow a position that the search was given up.
    """
    shared = (IntactRecords() if records is None else records) if threads == 1 else None
    searches = (_BoundarySearch(file, engine, max_record_bytes, shared) for _ in positions)
    calls = (partial(search.find, position) for search, position in zip(searches, positions, strict=True))
    return list(ordered(calls, threads, "boundaries"))


class _BoundarySearch:
    """The search from one position on."""

    def __init__(
        self, file: RandomAccessFile, engine: Engine, max_record_bytes: int, records: IntactRecords | None
    ) -> None:
        self._file, self._engine, self._max_record_bytes = file, engine, max_record_bytes
        self._records = IntactRecords() if records is None else records
        self._end = file.size
        self._window_bytes = min(file.block_bytes, _CHAIN_BYTES[file.is_local] * 4 // 3)
        self._begin, self._window = 0, np.empty(0, np.uint8)  # what is searched for headers
        self._rejected: set[int] = set()  # offsets from which no chain leads on
        self._begins_intact = False  # the chain that was rejected last has a record
        self._spent = 0  # bytes of chains

    def find(self, begin: int) -> int:
        """The first boundary from `begin` on."""
        if begin <= 0:
            return 0
        offset, passed_intact = self._first_proven(begin, stops_at_intact=True)
        if not passed_intact:
            return offset
        for chains in (2, _LONG_CHAIN + 1):  # the second has a long chain, however large the records are
            distance = chains * _CHAIN_BYTES[self._file.is_local]
            if (reached := self._follow(max(0, begin - distance), begin)) is not None:
                return reached
        return self._first_proven(begin)[0]

    def _first_proven(self, begin: int, *, stops_at_intact: bool = False) -> tuple[int, bool]:
        """The first header that begins a chain, or the end of the file; True with an intact record that begins none."""
        for offset in self._headers(begin):
            if self._spent > most_chain_bytes(offset - begin):
                reason = f"no record boundary was found from byte {begin} on: the payloads are full of record headers"
                advice = "read the file as a whole"
                raise CorruptRecordError(reason, path=self._file.path, offset=begin, hint=advice)
            if offset in self._rejected:
                continue
            if self._is_proven(offset):
                return offset, False
            if stops_at_intact and self._begins_intact:
                return offset, True
        return self._end, False

    def _follow(self, offset: int, begin: int) -> int | None:
        """Follow the records from the first boundary at `offset` or after it to the first at `begin` or after it.

        A record with a damaged payload ends where its header says. None if no boundary is found before `begin`, or
        none after the last damaged header before it.
        """
        first = offset = self._first_proven(offset)[0] if offset else 0
        data = self._file.read(first, begin) if first < begin else b""
        while offset < begin:
            frames, _ = self._engine.scan(data[offset - first :], max_record_bytes=self._max_record_bytes)
            offset += frames.consumed
            if offset >= begin:
                break
            header = self._file.read(offset, min(offset + FrameHeader.BYTES, self._end))
            if self._engine.find_header(header, 0, max_record_bytes=self._max_record_bytes) == 0:
                offset = min(offset + FrameHeader(header).frame_size, self._end)
            elif (offset := self._first_proven(offset + 1)[0]) >= begin:
                return None
        return offset if first < begin else None

    def _headers(self, begin: int) -> Iterator[int]:
        size, searched = self._window_bytes, False
        if self._file.is_local:
            size = min(size, _FIRST_BYTES)
        while begin < self._end:
            stop = min(begin + size, self._end)
            self._begin, self._window = begin, self._file.read(begin, stop)
            at = -1
            while True:
                at = self._engine.find_header(self._window, at + 1, max_record_bytes=self._max_record_bytes)
                if at < 0:
                    break
                yield begin + at
            if stop == self._end or (not searched and self._file.codec is not None):
                return
            searched, begin = True, stop - FrameHeader.BYTES + 1
            size = min(2 * size, max(self._file.block_bytes, self._window_bytes))

    def _is_proven(self, begin: int) -> bool:
        """True if the chain of records from `begin` on leads to the end of the file, or far enough."""
        chain, offset, count = [np.array([begin])], begin, 0
        fault: Fault | None = None
        while offset < self._end and offset not in self._rejected:
            ends, fault = self._intact(offset)
            is_unread = fault is None and not len(ends)
            if is_unread:
                if self._is_long(offset - begin, count):
                    return True  # through records that were not read, to a header
                ends, fault = self._skip(offset)
            if not len(ends):
                break
            chain.append(ends)
            offset, count = int(ends[-1]), count + len(ends)
            if not is_unread and self._is_long(offset - begin, count):
                return True
            if fault is not None:
                break
        if offset == self._end and fault is None:
            return True
        self._rejected.update(np.concatenate(chain).tolist())
        self._begins_intact = count > 0
        return False

    def _is_long(self, size: int, records: int) -> bool:
        chain_bytes = _CHAIN_BYTES[self._file.is_local]
        return (size >= chain_bytes and records >= _CHAIN_RECORDS) or size >= _LONG_CHAIN * chain_bytes

    def _intact(self, offset: int) -> tuple[Array, Fault | None]:
        """Where the next intact records end, and the fault that follows.

        Neither, where there is the header of a record that is longer than what is read at a time.
        """
        if len(ends := self._records.ends(offset)):
            return ends, None
        at = offset - self._begin
        sizes, fault, is_long = _NONE, None, False
        if 0 <= at < len(self._window):
            sizes, fault, is_long = self._scan_frames(self._window[at : at + self._window_bytes], offset)
        if not len(sizes) and fault is None and not is_long:
            stop = min(offset + self._window_bytes, self._end)
            self._spent += stop - offset
            data = self._file.read(offset, stop, self._records.buffer(self._window_bytes))
            sizes, fault, _ = self._scan_frames(data, offset)
        ends = offset + np.cumsum(sizes)
        if len(ends):
            self._records.add(offset, ends, kept_bytes=2 * _CHAIN_BYTES[self._file.is_local])
        return ends, fault

    def _scan_frames(self, data: BlockReader.Buffer, offset: int) -> tuple[Array, Fault | None, bool]:
        """Frame sizes of the intact records, the fault after them, and True if the frame there is long."""
        is_last = offset + len(data) == self._end
        frames, fault = self._engine.scan(data, max_record_bytes=self._max_record_bytes, final=is_last)
        self._spent += frames.consumed
        tail = data[frames.consumed :]
        following = FrameHeader(tail[: FrameHeader.BYTES]).frame_size if len(tail) >= FrameHeader.BYTES else 0
        if fault is not None and fault.code is FaultCode.PAYLOAD_CRC:
            self._spent += following
        return frames.lengths + FrameHeader.FRAME_BYTES, fault, following > self._window_bytes

    def _skip(self, offset: int) -> tuple[Array, Fault | None]:
        """Where a long record ends, which is not read; nothing if the file ends inside it.

        The last record of the file is read: its fault is the second value.
        """
        end, fault = offset + FrameHeader(self._file.read(offset, offset + FrameHeader.BYTES)).frame_size, None
        if end > self._end:
            return _NONE, None
        if end == self._end:
            self._spent += end - offset
            _, fault = self._engine.scan(self._file.read(offset, end), max_record_bytes=self._max_record_bytes)
        return np.array([end]), fault
