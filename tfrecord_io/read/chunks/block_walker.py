"""Walk through the records of files, block by block.

Sources go in; out come the current block, the position in it, and the error that ended the walk.

Tests: tests/read/chunks and tests/laws/test_skip_laws.py.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from tfrecord_io.base import LIMITS, FrameOptions, printable
from tfrecord_io.bytes import Checks, Engine, Fault, FaultCode, FrameHeader, Frames, PlainStream, Raw, get_engine
from tfrecord_io.errors import CompressionError, TFRecordError, TruncatedRecordError
from tfrecord_io.store import Block, BlockReader, OpenPlainFile, Source

if TYPE_CHECKING:
    from tfrecord_io.base import ProgressMeter
    from tfrecord_io.bytes import RecoveringStream
    from tfrecord_io.store import ReadAhead

_BLOCKS_AHEAD = 16  # 64 MiB


class RecordMemoryError(MemoryError):
    """Not enough memory for a record; the message names its file."""


class RecordFile:
    """One open file, or a piece of one, read in blocks of `block_bytes`.

    The compression "infer" is detected from the content. `ahead`: a thread reads the next block in advance; but not
    where it is a plain file, and is read `in_segments` after its first blocks. `recover`: damaged compressed data is
    left out, see `gaps`; if it `asks`, each damage is an error until `pass_damage` is called.
    `max_decompression_ratio` is that of `Limits`; for `raw` see `Source.open_stream`.
    """

    def __init__(
        self,
        source: Source,
        compression: str | None = "infer",
        *,
        block_bytes: int = BlockReader.BLOCK_BYTES,
        ahead: bool = False,
        in_segments: bool = False,
        recover: bool = False,
        asks: bool = False,
        max_decompression_ratio: float | None = None,
        raw: Raw | None = None,
    ) -> None:
        from tfrecord_io.store import ReadAhead

        self.path, self.size = source.path, source.size
        ratio = max_decompression_ratio
        self._stream = source.open_stream(
            compression, recover=recover, asks=asks, max_decompression_ratio=ratio, raw=raw
        )
        self.compression = self._stream.compression
        is_recovering = recover and self.compression is not None
        self.recovering = cast("RecoveringStream", self._stream) if is_recovering else None
        self.counted = 0  # bytes of it that a meter of progress has
        self.begin, self.span = source.begin, source.span
        self.origin = source.origin
        self._block_bytes = block_bytes
        reads_ahead = ahead and not (in_segments and self.plain_file() is not None)
        self._new_blocks = ReadAhead if reads_ahead else BlockReader
        self.blocks: BlockReader | ReadAhead = self._new_blocks(self._stream, block_bytes, start=source.begin)

    @property
    def used(self) -> int | None:
        """Bytes of a compressed file that have been decompressed; None if it is not compressed."""
        return None if self._stream.compression is None else self._stream.raw_offset

    @property
    def gaps(self) -> list[RecoveringStream.Gap]:
        """The gaps in a damaged compressed file so far, if it was opened to `recover`."""
        return [] if self.recovering is None else self.recovering.gaps

    def pass_damage(self) -> RecoveringStream.Gap | None:
        """After a CompressionError: go on behind the damage; None if nothing behind it can be read."""
        if self.recovering is None:
            return None
        self.blocks.close()
        gap = self.recovering.pass_damage()
        self.blocks.resume()
        return gap

    def plain_file(self) -> OpenPlainFile | None:
        """The open file, to be read at any offset; None if it is compressed, a piece, or not a regular local file."""
        stream = self._stream
        if not isinstance(stream, PlainStream) or self.span is not None:
            return None
        return OpenPlainFile.from_stream(stream)

    def decompress_ahead(self) -> None:
        """Let a thread decompress the first blocks of a compressed file that will be read later."""
        from tfrecord_io.store import ReadAhead

        if self.compression is not None and isinstance(self.blocks, ReadAhead):
            self.blocks.start(_BLOCKS_AHEAD)

    def seek(self, offset: int) -> None:
        """Read on at a byte of a `plain_file`."""
        assert isinstance(self._stream, PlainStream)
        self.blocks.close()
        self._stream.rewind(offset)
        self.blocks = self._new_blocks(self._stream, self._block_bytes, start=offset)

    def error(self, fault: Fault, *, record: int, offset: int, data: Any = b"", **context: Any) -> TFRecordError:
        """The exception for a fault in `data`, which begins at byte `offset` and record index `record` of the file."""
        if self.span is not None and FaultCode.TRUNCATED_HEADER <= fault.code <= FaultCode.TRUNCATED_FOOTER:
            return TruncatedRecordError(
                f"it continues beyond byte {self.span[1]}, where its piece of the file ends",
                path=self.path,
                record=record + fault.record,
                offset=offset + fault.offset,
                hint="if the file ends there, it is truncated; else split the file again, as it is now, or, if a "
                "payload is itself a TFRecord file, read it as a whole",
            )
        if self.origin is not None and fault.code >= FaultCode.VARINT_TRUNCATED and fault.byte >= 0:
            fault = fault._replace(byte=self.origin.byte(record + fault.record, fault.byte))
        if self.gaps:  # what is read before damage is found may not be what was written: it names no format
            data = b""
        return fault.error_in(self.path, record=record, offset=offset, data=data, **context)

    def close(self) -> None:
        """Close the file and drop its blocks, whose memory a later use of `gaps` would keep."""
        if hasattr(self, "blocks"):  # Ctrl-C may have ended an earlier call
            self.blocks.close()
            del self.blocks
        self._stream.close()


OpenFile = Callable[[Source], RecordFile]
Step = Callable[[Any, bool], tuple[int, int, Fault | None]]
"""Takes (data, whether the file ends with it); returns (number of records, their bytes, fault of the next record).

A step may take fewer records than `data` has; one that takes none asks for more data."""

Recover = Callable[["BlockWalker", Exception], bool]
"""Moves a walker past the damage that an exception is about; False if the walk is to end there."""

_NO_BYTES = np.empty(0, np.uint8)


def _resolve_in(directory: str, source: Source) -> Source:
    """A file whose relative path means the same one in another working directory."""
    return source.absolute(directory) if Source.is_elsewhere(directory) else source


class BlockWalker:
    """Walks through files. The consumer of the records calls `advance` for what it consumed, and `fail` at an error.

    `progress` is advanced by the bytes of the files that were consumed, up to their sizes; `recover` passes damage,
    where `on_error` allows it: see `tfrecord_io.read.chunks.recovery`. Without `check_crc` no checksum is compared.
    """

    # Advice about records for which memory is too small.
    LEAVES_OUT: ClassVar = (
        "tfr.dataset(source, limits=tfr.Limits(record_bytes=…), on_error='skip') leaves out larger ones"
    )

    def __init__(
        self,
        sources: Iterator[Source],
        open_file: OpenFile = RecordFile,
        *,
        max_record_bytes: int = LIMITS.MAX_RECORD_BYTES,
        progress: ProgressMeter | None = None,
        recover: Recover | None = None,
        check_crc: bool = True,
    ) -> None:
        self.max_record_bytes, self._checks_crc = max_record_bytes, check_crc
        self.file: RecordFile | None = None  # the open one
        self.number = -1  # of the file in the order of reading; −1 before the first
        self.record = 0  # record index of the record at ``data[0]``
        self.bytes = 0  # uncompressed, consumed, of all files
        self.error: Exception | None = None  # what ended the walk, to be raised after the records before it
        self.unread = 0  # if reading failed: offset of the first byte that was not consumed
        with suppress(FileNotFoundError):  # the working directory may have been removed
            sources = map(partial(_resolve_in, os.getcwd()), sources)
        self._sources = sources
        self._open_file = open_file
        self.progress = progress
        self._recover = recover
        self.block: Block | None = None  # the current one of the file
        self._begin = 0  # of the rest of the block
        # Damage of the file that `extend` passed, and the walk has not met: it is after ``data``, in order.
        self._passed: deque[tuple[CompressionError, RecoveringStream.Gap | None]] = deque()
        self._behind: Block | None = None  # once `recover` ended `block` at the first of these: what follows it
        self._closed = False
        self._upcoming: deque[RecordFile | Exception] = deque()
        self._waiting: deque[Source] = deque()  # taken from the sources, and not opened

    @classmethod
    def from_options(
        cls,
        sources: Iterator[Source],
        options: FrameOptions,
        *,
        progress: ProgressMeter | None = None,
        recover: Recover | None = None,
    ) -> Self:
        """A walk with the compression and the limits of a call."""
        open_file = partial(
            RecordFile,
            compression=options.compression,
            recover=recover is not None,
            asks=True,
            max_decompression_ratio=options.limits.decompression_ratio,
        )
        limit = options.limits.record_bytes
        return cls(
            sources, open_file, max_record_bytes=limit, progress=progress, recover=recover, check_crc=options.check_crc
        )

    @property
    def opened(self) -> RecordFile:
        """The open file."""
        assert self.file is not None
        return self.file

    @property
    def data(self) -> BlockReader.Buffer:
        """The rest of the block."""
        return _NO_BYTES if self.block is None else self.block.data[self._begin :]

    @property
    def final(self) -> bool:
        """True if the file ends with the current block."""
        return self.block is not None and self.block.final

    @property
    def offset(self) -> int:
        """Offset of ``data[0]`` in the uncompressed file."""
        assert self.block is not None
        return self.block.start + self._begin

    def load(self) -> bool:
        """Read on, through as many files as necessary, until there are bytes or an error; False at the end."""
        while not self._closed:
            if self.error is not None or (self.block is not None and self._begin < len(self.block.data)):
                return True
            if not self.open_next():
                break
            self.read_on()
        return False

    def open_next(self) -> bool:
        """Open the next file, unless one is open; False at the end."""
        if self.file is None and not self._closed:
            if not self._upcoming:
                self.open_ahead()
            if self._upcoming:
                self.number += 1
                self.record = self.unread = 0
                upcoming = self._upcoming.popleft()
                if isinstance(upcoming, Exception):
                    raise upcoming
                self.file = upcoming
        return self.file is not None

    def open_ahead(self) -> RecordFile | None:
        """Open another file in advance; None at the end, or if it cannot be opened: `open_next` raises the error."""
        failed = bool(self._upcoming) and isinstance(self._upcoming[-1], Exception)
        source = None if failed else self._waiting.popleft() if self._waiting else next(self._sources, None)
        if source is None:
            return None
        try:
            file = self._open_file(source)
        except Exception as error:
            self._upcoming.append(error)
            return None
        self._upcoming.append(file)
        return file

    def next_sources(self) -> Iterator[Source]:
        """The next files, to look at before they are opened in their turn, or passed by `pass_files`.

        Empty while a file is open, or opened in advance.
        """
        if self.file is None and not self._upcoming and not self._closed:
            yield from tuple(self._waiting)
            for source in self._sources:
                self._waiting.append(source)
                yield source

    def pass_files(self, count: int, size: int) -> None:
        """Count the first of the `next_sources`, plain files of `size` bytes together, as read."""
        for _ in range(count):
            self._waiting.popleft()
        self.number += count
        self.bytes += size
        if self.progress is not None:
            self.progress.advance(size)

    def seek(self, record: int, offset: int) -> None:
        """Read on at a record of a plain file; the bytes skipped are not counted."""
        self.opened.seek(offset)
        self.record, self.block, self._begin = record, None, 0

    def end_file(self) -> None:
        """Close the file; the walk goes on with the next one."""
        left = (self.opened.size or 0) - self.opened.counted
        if self.progress is not None and left > 0:
            self.progress.advance(left)
        self.opened.close()
        self.file = self.block = self._behind = None
        self._begin = 0
        self._passed.clear()

    def read_on(self) -> None:
        """Read the next block of the file, prefixed by the rest of the current one; close the file at its end."""
        blocks, header = self.opened.blocks, b""
        if self._behind is not None:
            self._meet_damage()
            return
        if self.block is not None:
            header = self.data[: FrameHeader.BYTES].tobytes()
            self.unread = self.offset
            if not self._checks_crc and (fault := self._beyond_file(header)) is not None:
                self.error = self.fault_error(fault)
                return
            blocks.consume(self._begin)
        self._begin = 0
        self.block = None  # so that its buffer is free before a larger one takes memory
        try:
            self.block = blocks.next_block()
        except (TFRecordError, OSError) as error:
            if isinstance(error, TFRecordError):
                error.record = error.records_intact = self.record
            self.error = error
            return
        except MemoryError as error:
            size = f" of {FrameHeader(header).payload_length:,} bytes" if FrameHeader(header).is_intact else ""
            place = f"record {self.record}{size} at byte {self.unread}"
            reason = f"{printable(self.opened.path)}: not enough memory for {place}"
            raise RecordMemoryError(f"{reason} ({error}); {self.LEAVES_OUT}") from error
        if self.block is None:
            self.end_file()

    def _beyond_file(self, header: bytes) -> Fault | None:
        """The fault of a header, without a checked CRC, whose payload would end beyond the end of a plain file."""
        file = self.opened
        if (
            len(header) < FrameHeader.BYTES
            or file.compression is not None
            or file.size is None
            or file.span is not None
        ):
            return None
        length, left = FrameHeader(header).payload_length, file.size - self.offset - FrameHeader.BYTES
        if length <= left:
            return None
        return Fault(FaultCode.TRUNCATED_PAYLOAD, 0, 0, expected=length, got=max(left, 0))

    def extend(self) -> bool:
        """Read bytes after ``data``, all of which stays; False if there are no more, or they cannot be read.

        Damage of a compressed file is passed: what can be read after it is joined as if it were the next bytes. The
        walk meets the damage, as its `error`, when the bytes before it are consumed.
        """
        assert self.block is not None
        if self._behind is not None:
            self.block, self._behind = self._behind, None
            return True
        if self.block.final:
            return False
        offset, joined = self.offset, np.empty(len(self.data) + Block.SPARE, np.uint8)
        joined[: -Block.SPARE] = self.data
        self.opened.blocks.consume(self._begin)
        self._begin = 0
        while True:
            try:
                block = self.opened.blocks.next_block()
            except (TFRecordError, OSError) as error:
                if isinstance(error, CompressionError) and self.opened.recovering is not None:
                    self._passed.append((error, self.opened.pass_damage()))
                    continue
                self.block = Block(joined[: -Block.SPARE], offset, False)
                return False
            self.block = block or Block(joined[: -Block.SPARE], offset, True)
            return True

    def pass_damage(self) -> RecoveringStream.Gap | None:
        """Go on behind the damaged compressed data that is the `error`; None if nothing behind it can be read."""
        return self._passed.popleft()[1] if self._passed else self.opened.pass_damage()

    def _meet_damage(self) -> None:
        """Make the damage at the end of ``data``, which was passed, the `error`."""
        self.unread = self.offset
        self.block, self._behind = self._behind, None
        error, _ = self._passed[0]
        error.record = error.records_intact = self.record
        self.error = error

    def discard(self, count: int) -> None:
        """Leave out bytes at the start of ``data``."""
        self._begin += count
        self.count(count, of_records=False)

    def advance(self, records: int, consumed: int) -> None:
        """Consume the next records, which have `consumed` bytes."""
        self.record += records
        self._begin += consumed
        self.count(consumed)

    def count(self, consumed: int, *, of_records: bool = True) -> None:
        """Count bytes that were consumed, by `advance` or by others.

        For a meter, bytes of the file, up to its size: of a compressed one those that have been decompressed.
        """
        if of_records:
            self.bytes += consumed
        file = self.file
        if self.progress is None or file is None:
            return
        count = consumed if file.used is None else file.used - file.counted
        if file.size is not None:
            count = min(count, file.size - file.counted)
        if count > 0:
            file.counted += count
            self.progress.advance(count)

    def frames(self, engine: Engine, max_records: int = -1, *, check_crc: bool = False) -> tuple[Frames, Fault | None]:
        """The complete records at the start of ``data``."""
        limit, checks = self.max_record_bytes, self.checks(payloads=check_crc)
        return engine.scan(self.data, max_records=max_records, checks=checks, max_record_bytes=limit, final=self.final)

    def checks(self, *, payloads: bool = False) -> Checks:
        """The checksums that are compared: none in a walk without `check_crc`."""
        return Checks.from_check_crc(self._checks_crc, payloads=payloads)

    def intact_frames(self, max_records: int = -1, *, check_crc: bool = True) -> Iterator[Frames]:
        """The complete records of each block; the walk advances past them, and the damage behind, when it goes on.

        At most `max_records` at a time. CorruptRecordError, TruncatedRecordError, CompressionError or OSError if damage
        may not be passed; it is the `error` of the walk, whose records before it were yielded.
        """
        while self.load():
            error = self.error
            if error is None:
                frames, fault = self.frames(get_engine(), max_records, check_crc=check_crc)
                error = None if fault is None else self.fault_error(fault).count_from_piece(self.opened.begin)
                if len(frames.starts):
                    yield frames
                self.advance(len(frames.starts), frames.consumed)
            if error is None:
                self.read_on()
            elif not self.recover(error):
                raise self.fail(self.locate_error(error))

    def first_embedded(self) -> bytes | None:
        """The content of the embedded schema of the next record; None if it has none, or is not a message.

        TFRecordError or OSError if the record is damaged, or cannot be read.
        """
        from tfrecord_io.columns import EmbeddedSchema  # which a count of records does not need

        frames = next(self.intact_frames(1), None)
        return None if frames is None else EmbeddedSchema.content_of(self.data[: frames.consumed], check_crc=False)

    def locate_error(self, error: Exception) -> Exception:
        """State the offset of the next record in an error; of a source of other files' records, the offset there."""
        if isinstance(error, TFRecordError) and error.record is not None and self.opened.origin is not None:
            place = self.opened.origin(error.record)
            if place is not None:
                error.path, error.record, error.offset = place
        return error

    def fault_error(self, fault: Fault, **context: Any) -> TFRecordError:
        """The exception for a fault in ``data``; `context` as for `Fault.to_error`."""
        return self.opened.error(fault, record=self.record, offset=self.offset, data=self.data, **context)

    def fail(self, error: Exception) -> Exception:
        """End the walk at `error`, and return it; see `recover` for going on instead."""
        self.close()
        self.error = error
        return error

    def recover(self, error: Exception) -> bool:
        """Go on after the damage that `error` is about: the record at ``data[0]``, or what could not be read.

        False if `on_error` does not allow that, or the error is not about damage: the walk is to `fail` then.
        """
        if self._recover is None or not self._recover(self, error):
            return False
        self.error = None
        if self._passed and self.block is not None:  # the search for the next record passed damage: `data` ends there
            end = (self._passed[0][0].offset or 0) - self.block.start
            self._behind = self.block
            if end > self._begin:
                self.block = Block(self.block.data[:end], self.block.start, False)
            else:
                self._meet_damage()
        return True

    def next_length(self) -> int:
        """Payload bytes of the next record by its header; −1 if the header is incomplete or damaged."""
        header = self.data[: FrameHeader.BYTES].tobytes()
        is_header = FrameHeader(header).is_intact if self._checks_crc else len(header) == FrameHeader.BYTES
        return FrameHeader(header).payload_length if is_header else -1

    @property
    def splits_record(self) -> bool:
        """True if ``data`` ends before the next record does."""
        data = self.data
        return len(data) < FrameHeader.BYTES or len(data) < FrameHeader(data[: FrameHeader.BYTES]).frame_size

    def close(self) -> None:
        """Close the open file; the walk is over."""
        self._closed = True
        self._open_file = RecordFile  # in place of a method of its reader: what that holds is free at once
        self.block = self._behind = None
        if self.file is not None:
            self.file.close()
            self.file = None
        while self._upcoming:
            upcoming = self._upcoming.popleft()
            if isinstance(upcoming, RecordFile):
                upcoming.close()
