"""Copy the bytes of a file, and check its records as they pass.

Tests: tests/store/copies/test_copy_files_stores.py.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrecord_io.base import LIMITS, Flag, for_cli, printable
from tfrecord_io.bytes import Fault, FaultCode, FrameHeader, crc32c, get_engine
from tfrecord_io.errors import ReplacedError, TFRecordError
from tfrecord_io.store.filesystem.os_errors import replaced_error
from tfrecord_io.store.read.block_reader import Block, BlockReader, Bytes
from tfrecord_io.store.read.file_object import SummedFile
from tfrecord_io.store.read.source import SMALL_BYTES, ManifestShard, Source
from tfrecord_io.store.write.output_file import OutputFile

_ADVICE = (
    "tfr.salvage writes the intact records to another file; verify='bytes' copies the file "
    "as it is, and tfr.read_table(path, on_error='skip') reads its intact records"
)
_ADVICE_CLI = "tfr salvage writes the intact records to another file"
_PIECE = 1 << 20
_SMALL_BLOCK = 1 << 19  # of many files that are checked as they arrive
_WINDOW = 4 * SMALL_BYTES
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *(|k|M|G|Ki|Mi|Gi)B?(?:/s)?")
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_LONGEST_SLEEP = 0.2  # seconds, after which an error elsewhere ends the wait


class Stopped(Exception):
    """Another file has failed, or the caller has interrupted the call."""


class _WriteError(Exception):
    """An error of writing: not an OSError, as readers would blame the source."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True, slots=True)
class Passed:
    """Bytes, checksum and records of a file that have been transferred."""

    bytes: int
    crc32c: int | None  # None: the store that has copied the file states its MD5 alone, which is that of the source
    records: int | None  # None: they were not checked


@dataclass(slots=True)
class Traffic:
    """State that all files of a copy share: the progress, the limit of the rate, and a flag to stop."""

    advance: Callable[[int], None]  # takes the bytes that have passed
    rate: float | None = None  # bytes a second
    stopped: Flag = field(default_factory=Flag)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _free: float = 0.0  # when the next byte may pass

    def throttle(self, count: int) -> None:
        """Count bytes that passed, and wait as long as the limit asks."""
        if self.stopped.is_set:
            raise Stopped
        self.advance(count)
        if self.rate is None:
            return
        with self._lock:
            self._free = until = max(self._free, time.monotonic()) + count / self.rate
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LONGEST_SLEEP))
            if self.stopped.is_set:
                raise Stopped


def parse_rate(value: Any) -> float | None:
    """The bytes a second of ``limit_rate=``.

    >>> parse_rate("100MB"), parse_rate("1.5 GiB/s"), parse_rate(2048), parse_rate(None)
    (100000000.0, 1610612736.0, 2048.0, None)
    """
    if value is None:
        return None
    match = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is not None:
        value = float(match[1]) * _UNITS[match[2]]
    if isinstance(value, bool | str) or not isinstance(value, int | float):
        error = ValueError(f"limit_rate={value!r}: expected bytes a second, such as 100_000_000 or '100MB'")
        raise for_cli(error, f"--limit-rate {printable(value)}: expected bytes a second, such as 100MB")
    if not 1 <= value < float("inf"):
        reason = "expected at least 1 byte a second"
        raise for_cli(ValueError(f"limit_rate={value!r}: {reason}"), f"--limit-rate {value}: {reason}")
    return float(value)


def transfer(source: Source, output: OutputFile, traffic: Traffic, *, records: bool, window_bytes: int) -> Passed:
    """Copy a file to an output, which is not published, and check its `records`.

    Raises
    ------
    TFRecordError
        A record, or the compressed data, is damaged, or the file is not what the manifest of its dataset states.
    ReplacedError
        The file or its dataset was replaced meanwhile.
    """
    try:
        if source.size is not None:
            # By a known CRC32C an upload can begin while the file is read; stores end one that is slow by a limit.
            output.expect(source.size, None if source.shard is None or traffic.rate else source.shard.crc32c)
        is_small = source.size is not None and source.size <= SMALL_BYTES
        raw = source.open_whole(_WINDOW if is_small else window_bytes, arrives=is_small)
        tee = _Tee(raw, output, traffic)
        with closing(tee):
            count = _check_records(source, tee) if records else None
            buffer = memoryview(bytearray(_PIECE))
            while tee.readinto(buffer):  # the rest: of checked records, padding that a codec leaves at the end
                pass
        passed = Passed(tee.size, tee.crc, count)
        check_passed(source, passed)
    except _WriteError as failed:
        raise failed.error from failed.error.__cause__
    except (TFRecordError, OSError) as error:
        if source.shard is not None and not isinstance(error, ReplacedError):
            _check_unchanged(source.shard, error)
        if isinstance(error, TFRecordError) and not Fault.is_other_format(error):
            is_damage = error.record is not None or error.offset is not None
            if is_damage:
                error.set_hint(_ADVICE, _ADVICE_CLI)
        raise
    return passed


def _check_unchanged(shard: ManifestShard, error: Exception) -> None:
    """Raise ReplacedError if that is what an error is about, or why this is unknown: the file may not be damaged."""
    try:
        shard.manifest.check_unchanged()
    except OSError as unknown:
        if isinstance(unknown, ReplacedError) or not isinstance(error, OSError) or isinstance(error, FileNotFoundError):
            raise


def check_passed(source: Source, passed: Passed) -> None:
    """Raise an error if a file is not what its manifest states, or was looked up as."""
    if source.shard is not None:
        source.shard.check_size(passed.bytes, source.path)
        if passed.crc32c is not None:
            source.shard.check_checksum(passed.crc32c, source.path)
        if passed.records is not None:
            source.shard.check_records(passed.records, source.path)
    elif source.size not in (None, passed.bytes):
        raise replaced_error(source.path)


class _Tee(SummedFile):
    """A raw file whose bytes are written to an output as they are read, once and in order."""

    def __init__(self, raw: Any, output: OutputFile, traffic: Traffic) -> None:
        super().__init__(raw, crc32c)
        self._output, self._traffic = output, traffic

    def readinto(self, buffer: memoryview, /) -> int | None:
        n = super().readinto(buffer)
        if n:
            try:
                self._output.write(memoryview(buffer)[:n])
            except OSError as error:
                raise _WriteError(error) from error
            self._traffic.throttle(n)
        return n

    def seekable(self) -> bool:
        return False


def _check_records(source: Source, tee: _Tee) -> int:
    """Check all records, as the stream of the file's bytes passes; returns their number."""
    engine = get_engine()
    stream = source.open_stream(raw=tee)
    is_one_of_many = source.remote is not None and source.size is not None and source.size <= SMALL_BYTES
    block_bytes = _SMALL_BLOCK if is_one_of_many else LIMITS.window_bytes
    blocks = BlockReader(stream, block_bytes)
    records = 0
    while (block := blocks.next_block()) is not None:
        frames, fault = engine.scan(block.data, final=block.final)
        if fault is not None:
            raise fault.error_in(source.path, record=records, offset=block.start, data=block.data)
        records += len(frames.starts)
        blocks.consume(frames.consumed)
        if not frames.consumed and not block.final and len(block.data) >= block_bytes:
            _check_long_record(source, blocks, block, records)
            records += 1
    return records


def _check_long_record(source: Source, blocks: BlockReader, block: Block, record: int) -> None:
    """Check a record larger than a block, piece by piece, so that memory holds one block.

    Its header is right: a scan has found no fault.
    """
    length = left = FrameHeader(block.data[: FrameHeader.BYTES]).payload_length
    begin, crc = block.start, 0
    blocks.consume(FrameHeader.BYTES)
    piece = block.data[FrameHeader.BYTES :]
    while left:
        if not len(piece):
            piece = _next_piece(blocks, 1)
            if not len(piece):
                got = length - left
                raise _fault(source, FaultCode.TRUNCATED_PAYLOAD, record, begin, expected=length, got=got)
        used = min(left, len(piece))
        crc = crc32c(piece[:used], crc)
        blocks.consume(used)
        left, piece = left - used, piece[used:]
    if len(piece) < FrameHeader.FOOTER_BYTES:
        piece = _next_piece(blocks, FrameHeader.FOOTER_BYTES)
        if len(piece) < FrameHeader.FOOTER_BYTES:
            raise _fault(
                source, FaultCode.TRUNCATED_FOOTER, record, begin, expected=FrameHeader.FOOTER_BYTES, got=len(piece)
            )
    stored = int.from_bytes(piece[: FrameHeader.FOOTER_BYTES].tobytes(), "little")
    blocks.consume(FrameHeader.FOOTER_BYTES)
    if stored != FrameHeader.mask_crc(crc):
        raise _fault(
            source, FaultCode.PAYLOAD_CRC, record, begin, byte=length, expected=FrameHeader.mask_crc(crc), got=stored
        )


def _next_piece(blocks: BlockReader, least: int) -> Bytes:
    """The next bytes, at least so many unless the file ends before."""
    while (block := blocks.next_block()) is not None:
        if len(block.data) >= least or block.final:
            return block.data
    return np.empty(0, np.uint8)


def _fault(
    source: Source, code: FaultCode, record: int, offset: int, *, byte: int = -1, expected: int, got: int
) -> TFRecordError:
    fault = Fault(code, 0, 0, byte, expected=expected, got=got)
    return fault.error_in(source.path, record=record, offset=offset)
