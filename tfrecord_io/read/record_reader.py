"""Reading records as bytes: any payload, framed as TensorFlow frames it.

Format: tensorflow/core/lib/io/record_writer.h. A record is a u64 length, the masked CRC32C of those eight bytes,
the payload and its masked CRC32C, all little-endian.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Fault, FaultCode
from tfrecord_io.engine.fault_messages import record_error
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import StoppedEarlyWarning, TFRecordError, TruncatedRecordError, warn
from tfrecord_io.options import StorageOptions
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.block_reader import Block, BlockReader
from tfrecord_io.storage.read.open_stream import open_source
from tfrecord_io.storage.read.prefetch import SourcePrefetcher
from tfrecord_io.storage.read.read_ahead import ReadAhead
from tfrecord_io.storage.read.source import Source


class RecordFile:
    """One open file: its blocks of uncompressed bytes, and the words for what is wrong in it.

    Parameters
    ----------
    source : Source
        A file, or a piece of one.
    compression : str or None
        "infer" looks at the content.
    block_bytes : int
        Size of the blocks.
    ahead : bool
        Another thread reads the next block meanwhile.
    """

    def __init__(
        self, source: Source, compression: str | None = "infer", *, block_bytes: int = 4 << 20, ahead: bool = False
    ) -> None:
        self.path = source.path
        self._stream = open_source(source, compression)
        self.compression = self._stream.compression
        self._span = source.span
        self.blocks: BlockReader | ReadAhead = (ReadAhead if ahead else BlockReader)(
            self._stream, block_bytes, start=source.begin
        )

    def error(self, fault: Fault, *, record: int, offset: int, data: Any = b"", **context: Any) -> TFRecordError:
        """The exception for a fault in a call on `data`, whose first byte is byte `offset` and first record `record` of the file."""
        if self._span is not None and FaultCode.TRUNCATED_HEADER <= fault.code <= FaultCode.TRUNCATED_FOOTER:
            return TruncatedRecordError(
                f"it goes on behind byte {self._span[1]}, where its piece of the file ends",
                path=self.path,
                record=record + fault.record,
                offset=offset + fault.offset,
                advice="a piece ends with a record: take those that splitting gives, of the file as it is now",
            )
        return record_error(self.path, fault, record=record, offset=offset, data=data, **context)

    def close(self) -> None:
        self.blocks.close()
        self._stream.close()


class RecordReader:
    """Iterate over the payloads of TFRecord files.

    Parameters
    ----------
    path : str, PathLike, list of those, or binary file object
        Every form that `tfrecord_io.read_table` takes: URLs, globs, braces, directories, shard specs.
    compression : {"infer", "gzip", "zlib", "zstd", None}
        "infer" goes by content.
    check_crc : bool
        Check the payloads' CRCs; those of the lengths are always checked.
    on_error : {"raise", "stop"}
        "stop" ends at the first damage with a StoppedEarlyWarning.
    max_record_bytes : int
        Longer records are refused.
    storage_options, filesystem
        For fsspec.

    Yields
    ------
    bytes
        A copy of its own for each record.

    Raises
    ------
    CorruptRecordError, TruncatedRecordError
        After all records before the damage were given.
    FileNotFoundError
        Nothing matches `path`.

    Examples
    --------
    >>> from tfrecord_io import RecordWriter
    >>> with RecordWriter("lines.tfrecord") as writer:
    ...     writer.write(b"first")
    ...     writer.write(b"")
    >>> with RecordReader("lines.tfrecord") as reader:
    ...     list(reader)
    [b'first', b'']
    """

    def __init__(
        self,
        path: Any,
        *,
        compression: str | None = "infer",
        check_crc: bool = True,
        on_error: str = "raise",
        max_record_bytes: int = MAX_RECORD_BYTES,
        allow_missing_shards: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> None:
        if on_error == "skip" or callable(on_error):
            raise NotImplementedError(f"on_error={on_error!r} is not built yet in this version")
        if on_error not in ("raise", "stop"):
            raise ValueError(f"on_error={on_error!r}: expected 'raise' or 'stop'")
        sources = resolve_inputs(
            path, StorageOptions(storage_options, filesystem), allow_missing_shards=allow_missing_shards
        )
        self._on_error = on_error
        self._open: RecordFile | None = None
        self._upcoming = SourcePrefetcher(sources)
        self._stopped = False
        self._records = self._walk(compression, check_crc, max_record_bytes)

    def _walk(self, compression: str | None, check_crc: bool, max_record_bytes: int) -> Iterator[bytes]:
        engine = get_engine()
        for source in self._upcoming:
            file = self._open = RecordFile(source, compression)
            try:
                record = 0
                while (block := self._next_block(file, record)) is not None:
                    frames, fault = engine.scan(
                        block.data, check_crc=check_crc, max_record_bytes=max_record_bytes, final=block.final
                    )
                    view = memoryview(block.data.data)
                    for start, length in zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True):
                        yield bytes(view[start : start + length])
                    if fault is not None:
                        self._stop(
                            file.error(fault, record=record, offset=block.start, data=block.data).in_piece(source.begin)
                        )
                        return
                    record += len(frames.starts)
                    file.blocks.consume(frames.consumed)
            finally:
                file.close()
                self._open = None
            if self._stopped:
                return

    def _next_block(self, file: RecordFile, record: int) -> Block | None:
        try:
            return file.blocks.next_block()
        except (TFRecordError, OSError) as error:
            if isinstance(error, TFRecordError):
                error.record = error.records_intact = record
            self._stop(error)
            self._stopped = True
            return None

    def _stop(self, error: Exception) -> None:
        """Raise, or say so and give no more."""
        if self._on_error == "raise":
            raise error
        warn(f"reading stopped early: {error}", StoppedEarlyWarning)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._records)

    def close(self) -> None:
        """Close the file that is open; iteration is over."""
        self._records = iter(())
        self._upcoming.close()
        if self._open is not None:
            self._open.close()
            self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
