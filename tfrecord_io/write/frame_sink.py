"""Sinks for framed records, and the sink that writes one file.

Tests: tests/write/test_writer_slices.py and tests/write/test_writer.py.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tfrecord_io.base import (
    LIMITS,
    Closing,
    NotCopied,
    Remark,
    Shared,
    StorageOptions,
    counted,
    logger,
    printable,
    undo_after,
)
from tfrecord_io.bytes import CODECS, Array, Checks, FrameHeader, get_engine
from tfrecord_io.columns import BatchSource, EmbeddedSchema
from tfrecord_io.errors import EncodeError, TFRecordError
from tfrecord_io.store import FileName, Location, Output, OutputFile, open_output
from tfrecord_io.typing import IndexLike

if TYPE_CHECKING:
    from tfrecord_io.read import ColumnIndexes


@contextmanager
def indexes_of_published(records: str = "the records are published") -> Iterator[None]:
    """Make errors of the block, which publishes the indexes of records, say what has happened to the records."""
    try:
        yield
    except BaseException as error:
        Remark.published(f"{records} nevertheless; tfr.build_index makes the index").add_to(error)
        raise


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written: its path, its number of records, and its size in bytes (compressed, if it is)."""

    path: str
    records: int
    bytes: int


class Sink(NotCopied, ABC):
    """Takes framed records and publishes them atomically: one file, or a sharded dataset."""

    path: str  # for messages and the report
    compression: str | None
    keeps_schema = False  # whether the schema is stored where there is no record to embed it in
    known_schema: bytes | None = None  # packed, of the dataset to whose rows others are added
    records = 0  # written so far
    closed = False  # True after `commit` or `discard`
    is_repeated = False  # the transaction of the writing is in the dataset: nothing is written
    files: tuple[WrittenFile, ...] = ()  # after `commit`
    column_indexes: ColumnIndexes | None = None

    def split(self, source: BatchSource) -> BatchSource:
        """The batches whose rows are to be encoded, without the columns that the sink keeps elsewhere."""
        return source

    def expect(self, rows: int) -> None:
        """Announce the total number of records, before the first `write`."""

    def side_by_side(self, threads: int) -> Sequence[range] | None:
        """Ranges of all rows, which may be written side by side by so many threads; None if only in order.

        If it returns ranges, `prepare` and `write` take pieces of one range each: those of a range in order and by one
        thread at a time, and any range may be next. `end` is called after the last piece of a range.
        """
        return None

    def end(self, number: int) -> None:
        """Complete a range of rows, by its number; any thread may do so."""

    @abstractmethod
    def begin(self, schema: bytes) -> bytes:
        """Announce the packed schema to embed, before the first `write`; return the prefix of the first payload."""

    def prepare(self, data: Any, records: int, row: int) -> Piece:
        """Make a piece of complete frames, with what `write` needs to know of them; any thread may do so.

        `row` is the number of records that are written before it.
        """
        return Piece(data, records)

    @abstractmethod
    def write(self, piece: Piece) -> None:
        """Append a piece that `prepare` made; its data may change afterwards."""

    @abstractmethod
    def finish(self) -> None:
        """Complete what was written: what may fail does so here, and not in `commit`. Further calls do nothing."""

    def commit(self) -> None:
        """Publish what was written, then its indexes. If publishing fails, everything is discarded."""
        if self.closed:
            return
        try:
            indexes = None if self.column_indexes is None else self.column_indexes.resolve_columns()
            self.files = self._publish()
            with indexes_of_published():
                self.publish_indexes()
                if indexes is not None:
                    indexes.write({file.path: file.records for file in self.files})
        except BaseException as error:
            self.discard_after(error)  # of what is published, the other indexes
            raise
        self.closed = True

    def discard(self) -> None:
        """Remove what was written and is not published; after `commit`, do nothing."""
        if not self.closed:
            self.closed = True
            self._abort()

    def discard_after(self, error: BaseException) -> None:
        """Discard because of `error`, which stays the exception raised."""
        undo_after(error, self.discard, self.path)

    @abstractmethod
    def _publish(self) -> tuple[WrittenFile, ...]: ...

    def publish_indexes(self) -> None:
        """Publish the indexes of what is published."""

    @abstractmethod
    def _abort(self) -> None: ...


def make_absolute(path: Any, storage: StorageOptions) -> tuple[Any, str]:
    """Make a local path absolute, to hold after ``os.chdir``; also returns the directory put before it, if any."""
    location = Location.of(path, storage) if isinstance(path, str | os.PathLike) else None
    if location is None or not location.is_local or os.path.isabs(location.name):
        return path, ""
    directory = os.path.join(os.getcwd(), "")
    return os.path.join(directory, location.name), directory


class PublishingWriter(Closing, Shared):
    """A context manager that publishes the written records at the end of a block, or discards them after an exception.

    Threads may share it: what one call writes stays together.
    """

    _sink: Sink

    def _open(self, sink: Sink, buffer: Sized = ()) -> None:
        """Write to `sink` from here on; `buffer` has the records that did not reach it yet."""
        self._sink = sink
        try:
            self._share()
            self._warn_if_dropped(partial(_discard_abandoned, sink, buffer))
        except BaseException as error:  # Ctrl-C
            sink.discard_after(error)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:
            self._discard()

    def close(self) -> None:
        """Publish what was written."""
        with self._lock:
            if not self._sink.closed:
                self._publish()

    @abstractmethod
    def _publish(self) -> None: ...

    def _discard(self) -> None:
        if not self._is_forked:  # the parent process still writes
            with self._lock:
                self._sink.discard()


def _discard_abandoned(sink: Sink, buffer: Sized) -> str | None:
    """Discard the records of a writer that was dropped without being closed; returns what a warning says of it."""
    if sink.closed:
        return None
    records = sink.records + len(buffer)
    with suppress(OSError, TFRecordError):
        sink.discard()
    advice = "use it as a context manager, or call close()"
    loss = (
        f"{counted(records, 'record')} {'is' if records == 1 else 'are'} discarded" if records else "nothing is written"
    )
    return f"{printable(sink.path)}: the writer was never closed: {loss}; {advice}"


class FrameSink(Sink):
    """Writes framed records, through a compressor if any, to one file that is published atomically.

    With an `output`, the caller publishes it after `finish`; `path` is its name for the report, and `crc32c` is
    computed of the file's bytes. A path that was just `resolved` is not looked at again.
    """

    def __init__(
        self,
        path: Any,
        storage: StorageOptions = StorageOptions.DEFAULT,
        *,
        compression: str | None = "infer",
        compression_level: int | None = None,
        mode: str | None = None,
        write_index: IndexLike = False,
        threads: int = 1,
        output: OutputFile | None = None,
        resolved: Output | None = None,
    ) -> None:
        self._is_path = is_path = isinstance(path, str | os.PathLike)
        if compression == "infer":
            codec = CODECS.of_path(os.fspath(path)) if is_path else None
        else:
            codec = CODECS.find(compression)
        self.path = str(os.fspath(path)) if is_path else repr(path)
        self.compression = None if codec is None else codec.name
        CODECS.check_level(codec, compression_level)
        self._compressor = None if codec is None else codec.compressor(compression_level, threads=threads)
        self._is_handed_over = output is not None
        self._index = None
        if write_index:
            from tfrecord_io.read import IndexWriter

            IndexWriter.check_indexable(path, self.compression)
            self._index = IndexWriter(path, self.compression, storage) if write_index is True else None
        self.output = open_output(path, storage, mode=mode, resolved=resolved) if output is None else output
        self.records = self.bytes = self.crc32c = 0
        self._finished = False
        # An index without its file is outdated too; in a bucket, removing one would take a request for each file.
        is_local = is_path and not Location.is_url(path) and storage.filesystem is None
        is_outdated = is_path and output is None and (self.output.replaces or is_local)
        self._old_index = (path, storage) if is_outdated else None

    @property
    def file(self) -> WrittenFile:
        return WrittenFile(self.path, self.records, self.bytes)

    def begin(self, schema: bytes) -> bytes:
        return EmbeddedSchema.field_of(schema)

    def prepare(self, data: Any, records: int, row: int) -> Piece:
        sizes = None if self._index is None else frame_sizes(data)
        checked = self._is_handed_over and self._compressor is None
        return Piece(data, records, sizes, get_engine().crc32c(data) if checked else None)

    def write(self, piece: Piece) -> None:
        """Append a piece. Errors are raised here or by `commit`; after an error nothing can be published."""
        if self._index is not None:
            assert piece.sizes is not None
            self._index.add(piece.sizes)
        if self._compressor is None:
            self._append(piece.data, piece.crc32c)
        else:
            for data in self._compressor.compress(piece.data):
                self._append(data)
        self.records += piece.records

    def write_bytes(self, data: Any) -> None:
        """Append bytes that are not records, for a file of another format; as `write`."""
        self.write(Piece(data, 0))

    def _append(self, data: Any, crc32c: int | None = None) -> None:
        size = memoryview(data).nbytes
        if size:
            self.output.write(data)
            self.bytes += size
            if self._is_handed_over:
                crc32c = get_engine().crc32c(data) if crc32c is None else crc32c
                self.crc32c = get_engine().crc32c_combine(self.crc32c, crc32c, size)

    def finish(self) -> None:
        """Complete the file, which `commit` publishes, or the caller."""
        if not self._finished:
            self._finished = True
            if self._compressor is not None:
                for data in self._compressor.flush():
                    self._append(data)
                self._compressor = None
            self.output.finish()
            if self._index is not None:
                self._index.finish()

    def _publish(self) -> tuple[WrittenFile, ...]:
        self.finish()
        if self._is_handed_over:
            return (self.file,)
        if self._old_index is not None:
            path, storage = self._old_index
            for index in FileName.indexes(os.fspath(path)):
                Location.of(index, storage).remove()
        self.output.commit()
        if self._is_path:
            amounts = counted(self.records, "record"), counted(self.bytes, "byte")
            logger.info("written: %s, %s, %s", self.path, *amounts)
        return (self.file,)

    def publish_indexes(self) -> None:
        if self._index is not None:
            self._index.commit()

    def _abort(self) -> None:
        if self._compressor is not None:
            self._compressor.close()
        try:
            self.output.discard()
        finally:
            if self._index is not None:
                self._index.discard()


def add_prefix(prefix: bytes, frame: Any, path: str) -> bytes:
    """A framed record with the embedded schema, a field, in front of its payload.

    Raises
    ------
    EncodeError
        The record would be too large; `path` is named.
    """
    framed = try_add_prefix(prefix, frame)
    if framed is None:
        reason = LIMITS.too_large("a first record with the embedded schema")
        raise EncodeError(reason, path=path, hint="pass embed_schema=False", hint_cli="pass --no-embed-schema")
    return framed


def try_add_prefix(prefix: bytes, frame: Any) -> bytes | None:
    """A framed record with fields in front of its payload; None if it would be too large."""
    payload = prefix + frame[FrameHeader.BYTES : -FrameHeader.FOOTER_BYTES].tobytes()
    return None if len(payload) > LIMITS.MAX_RECORD_BYTES else get_engine().frame([payload])


class Piece(NamedTuple):
    """Complete frames, and what a sink needs to know about them."""

    data: Any  # contiguous bytes
    records: int
    sizes: Array | None = None  # bytes of each frame
    crc32c: int | None = None  # of `data`
    number: int = 0  # of the folder, or the shard, of all of them
    parts: tuple[Piece, ...] = ()  # of several folders


def frame_sizes(data: Any) -> Array:
    """The bytes of each frame of `data`, which has complete frames only."""
    frames, fault = get_engine().scan(data, checks=Checks.LENGTHS)
    assert fault is None, "only whole frames are written"
    sizes: Array = frames.lengths + FrameHeader.FRAME_BYTES
    return sizes


_LARGE = 2**31  # bytes for which offsets have 64 bits


class PayloadSink(Sink):
    """Keeps the payloads of records, for an array of them."""

    path, compression = "<records>", None
    keeps_schema = True  # the caller has the columns of data without rows

    def __init__(self) -> None:
        self._engine = get_engine()
        self._pieces: list[Piece] = []

    def begin(self, schema: bytes) -> bytes:
        return EmbeddedSchema.field_of(schema)

    def prepare(self, data: Any, records: int, row: int) -> Piece:
        frames, fault = self._engine.scan(data, checks=Checks.LENGTHS)
        assert fault is None, "only whole frames are written"
        return Piece(self._engine.payloads(data, frames), records, frames.lengths)

    def write(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self.records += piece.records

    def take(self) -> pa.Array:
        """The payloads that were written since the last call, in order."""
        pieces, self._pieces = self._pieces, []
        sizes = np.concatenate([np.empty(0, np.int64), *(piece.sizes for piece in pieces)])
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        values = np.concatenate([np.empty(0, np.uint8), *(piece.data for piece in pieces)])
        type_, dtype = (pa.binary(), np.int32) if offsets[-1] < _LARGE else (pa.large_binary(), np.int64)
        buffers = [None, pa.py_buffer(offsets.astype(dtype)), pa.py_buffer(values)]
        return pa.Array.from_buffers(type_, len(sizes), buffers, 0)

    def finish(self) -> None:
        """Nothing is buffered."""

    def _publish(self) -> tuple[WrittenFile, ...]:
        return ()

    def _abort(self) -> None:
        self._pieces.clear()
