"""An open file of records: its blocks of uncompressed bytes, and the errors for faults in them.

Format: tensorflow/core/lib/io/record_writer.h. A record is a u64 length, the masked CRC32C of those eight bytes,
the payload and its masked CRC32C, all little-endian.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfrecord_io.compression.stream import DecompressedStream, PlainStream, Raw
from tfrecord_io.engine.contract import Fault, FaultCode
from tfrecord_io.errors import TFRecordError, TruncatedRecordError
from tfrecord_io.storage import system
from tfrecord_io.storage.read.block_reader import BLOCK_BYTES, BlockReader
from tfrecord_io.storage.read.source import OpenPlainFile, PlainFileReader, Source

if TYPE_CHECKING:
    from tfrecord_io.compression.recovering_stream import Gap, RecoveringStream
    from tfrecord_io.storage.read.read_ahead import ReadAhead

_BLOCKS_AHEAD = 16  # 64 MiB


class RecordFile:
    """One open file.

    Parameters
    ----------
    source : Source
        A file, or a piece of one.
    compression : str or None
        "infer" detects it from the content.
    max_decompression_ratio : float or None
        As in `tfrecord_io.read_table`.
    block_bytes : int
        Size of the blocks.
    ahead : bool
        A thread reads the next block in advance.
    recover : bool
        Damaged compressed data is left out; see `gaps`.
    asks : bool
        With `recover`: each damage is an error, until `pass_damage` is called.
    raw : Raw, optional
        See `open_source`.
    """

    def __init__(
        self,
        source: Source,
        compression: str | None = "infer",
        *,
        block_bytes: int = BLOCK_BYTES,
        ahead: bool = False,
        recover: bool = False,
        asks: bool = False,
        max_decompression_ratio: float | None = None,
        raw: Raw | None = None,
    ) -> None:
        from tfrecord_io.storage.read.open_stream import open_source
        from tfrecord_io.storage.read.read_ahead import ReadAhead

        self.path, self.size = source.path, source.size
        ratio = max_decompression_ratio
        self._stream = open_source(
            source, compression, recover=recover, asks=asks, max_decompression_ratio=ratio, raw=raw
        )
        self.compression = self._stream.compression
        self._span = source.span
        self.origin = source.origin
        self._block_bytes = block_bytes
        self._new_blocks = ReadAhead if ahead else BlockReader
        self.blocks: BlockReader | ReadAhead = self._new_blocks(self._stream, block_bytes, start=source.begin)

    @property
    def used(self) -> int | None:
        """Bytes of a compressed file that have been decompressed; None if it is not compressed."""
        return self._stream.raw_offset if isinstance(self._stream, DecompressedStream) else None

    @property
    def gaps(self) -> list[Gap]:
        """What was left out of a damaged compressed file so far, if it was opened to `recover`."""
        return [] if self._recovering is None else self._recovering.gaps

    @property
    def recovers(self) -> bool:
        """Whether `pass_damage` goes on behind damaged compressed data, or to the end of the file."""
        return self._recovering is not None

    @property
    def _recovering(self) -> RecoveringStream | None:
        if self.compression is None:
            return None
        from tfrecord_io.compression.recovering_stream import RecoveringStream

        return self._stream if isinstance(self._stream, RecoveringStream) else None

    def pass_damage(self) -> Gap | None:
        """After a CompressionError: go on behind the damage; None if nothing behind it can be read."""
        stream = self._recovering
        if stream is None:
            return None
        self.blocks.close()
        gap = stream.pass_damage()
        self.blocks.resume()
        return gap

    def plain_file(self) -> OpenPlainFile | None:
        """The open file, to be read at any offset; None if it is compressed, a piece, or not a regular local file."""
        stream = self._stream
        if isinstance(stream, PlainStream) and isinstance(stream.raw, PlainFileReader):
            return stream.raw.file
        if not isinstance(stream, PlainStream) or not isinstance(stream.raw, io.FileIO) or not stream.size:
            return None
        if not system.current.has_pread:
            return None
        return OpenPlainFile(stream.raw.fileno(), stream.size)

    def decompress_ahead(self) -> None:
        """Let a thread decompress the first blocks of a compressed file that will be read later."""
        from tfrecord_io.storage.read.read_ahead import ReadAhead

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
        from tfrecord_io.engine.fault_messages import record_error

        if self._span is not None and FaultCode.TRUNCATED_HEADER <= fault.code <= FaultCode.TRUNCATED_FOOTER:
            return TruncatedRecordError(
                f"it continues beyond byte {self._span[1]}, where its piece of the file ends",
                path=self.path,
                record=record + fault.record,
                offset=offset + fault.offset,
                advice="split the file again, as it is now; if a payload is itself a TFRecord file, read it as a whole",
            )
        if self.origin is not None and fault.code >= FaultCode.VARINT_TRUNCATED and fault.byte >= 0:
            fault = replace(fault, byte=self.origin.byte(record + fault.record, fault.byte))
        if self.gaps:  # what is read before damage is found may not be what was written: it names no format
            data = b""
        return record_error(self.path, fault, record=record, offset=offset, data=data, **context)

    def close(self) -> None:
        self.blocks.close()
        self._stream.close()
