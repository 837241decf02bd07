"""What files of tables have in common: reading as record batches, writing from TFRecord files, errors of pyarrow."""

from __future__ import annotations

import codecs
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from tfrecord_io.arrow.row_fault import first_refused
from tfrecord_io.compression import Stream
from tfrecord_io.compression.stream import DecompressedStream
from tfrecord_io.errors import DecodeError, EncodeError, SchemaError, printable
from tfrecord_io.options import ReadOptions
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.read.open_scan import open_path
from tfrecord_io.schema.column_selection import Projection
from tfrecord_io.schema.type_names import short_type_name
from tfrecord_io.storage.read.file_object import RawFile
from tfrecord_io.storage.read.open_stream import open_source
from tfrecord_io.storage.read.source import Source
from tfrecord_io.storage.write.atomic import open_output
from tfrecord_io.storage.write.output_file import OutputStream
from tfrecord_io.write.frame_sink import FrameSink, Piece
from tfrecord_io.write.writer import WriteReport

OpenWriter = Callable[[Any, pa.Schema], Any]

_ADVICE = "write an Arrow file (.arrow), or declare another type by schema=, or exclude the column with columns="
_BUFFER = 1 << 20
_BYTE_ORDER_MARKS = (  # that of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def selected(schema: pa.Schema, batches: Iterator[pa.RecordBatch], projection: Projection) -> pa.RecordBatchReader:
    """The selected columns, in the order of the projection; `batches` have these or more."""
    if projection.takes_all:
        return pa.RecordBatchReader.from_batches(schema, batches)
    fields = pa.schema([schema.field(i) for i in projection.positions(schema.names)], schema.metadata)
    parts = (batch.select(projection.positions(batch.schema.names)) for batch in batches)
    return pa.RecordBatchReader.from_batches(fields, parts)


def refuse_duplicates(names: Sequence[str], path: str) -> None:
    """Raise EncodeError if a file has several columns of the same name, which cannot be features."""
    name, count = next(iter(Counter(names).most_common(1)), ("", 0))
    if count > 1:
        advice = "rename them in the file, or exclude them with columns="
        raise EncodeError(f"{count} columns have this name", path=path, feature=name, advice=advice)


def check_schema(schema: pa.Schema, first: pa.Schema, path: str, first_path: str) -> None:
    """Raise SchemaError where the columns of a file are not those of the first file."""
    if schema.equals(first):
        return
    advice = "convert the files one by one"
    for name in dict.fromkeys([*schema.names, *first.names]):
        got, expected = (
            ", ".join(str(s.field(i).type) for i in s.get_all_field_indices(name)) for s in (schema, first)
        )
        if got != expected:
            reason = f"it is {got or 'absent'} here, but {expected or 'absent'} in '{printable(first_path)}'"
            raise SchemaError(reason, path=path, feature=name, expected=expected, got=got, advice=advice)
    reason = f"its columns differ in order or nullability from those of '{printable(first_path)}'"
    raise SchemaError(reason, path=path, expected=first.names, got=schema.names, advice=advice)


@contextmanager
def arrow_errors(path: str, format: str) -> Iterator[None]:
    """Raise the errors of pyarrow for damaged files as DecodeError."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # from the filesystem
            raise
        reason = f"damaged, or not a file of the format {format}: {printable(str(error), 300)}"
        raise DecodeError(reason, path=path, expected=format) from error


def open_decompressed_file(source: Source, meter: ProgressMeter | None = None) -> io.BufferedReader:
    """Open a file, which may be compressed, to be read in order; `meter` is advanced by the bytes of the file."""
    stream = open_source(source)
    raw = RawFile(stream, None) if meter is None else _MeteredFile(stream, source.size, meter)
    return io.BufferedReader(raw, _BUFFER)


class _MeteredFile(RawFile):
    """A file that advances a progress by the bytes that are read, compressed if they are."""

    def __init__(self, stream: Stream, size: int | None, meter: ProgressMeter) -> None:
        super().__init__(stream, None)
        self._stream, self._bytes, self._meter, self._counted = stream, size, meter, 0

    def readinto(self, buffer: Any, /) -> int | None:
        count = super().readinto(buffer)
        stream = self._stream
        used = stream.raw_offset if isinstance(stream, DecompressedStream) else stream.offset
        if count == 0 and len(buffer) and self._bytes is not None:
            used = self._bytes
        self._meter.advance(max(0, used - self._counted))
        self._counted = max(self._counted, used)
        return count


def metered(
    batches: Iterator[pa.RecordBatch], rows: int | None, size: int | None, meter: ProgressMeter
) -> Iterator[pa.RecordBatch]:
    """The batches of a file; `meter` is advanced by the part of its `size` that they are of its `rows`."""
    done = counted = 0
    for batch in batches:
        yield batch
        done += len(batch)
        share = (size or 0) * min(done, rows) // rows if rows else 0
        meter.advance(share - counted)
        counted = share
    meter.advance((size or 0) - counted)


def open_text_file(source: Source, meter: ProgressMeter | None = None) -> io.BufferedReader:
    """Open a file of text, as `open_decompressed_file`, to be read as UTF-8.

    UTF-16 and UTF-32, as spreadsheets export them, are known by their byte order mark.
    """
    file = open_decompressed_file(source, meter)
    start = file.peek(4)[:4]
    encoding = next((encoding for mark, encoding in _BYTE_ORDER_MARKS if start.startswith(mark)), None)
    return file if encoding is None else io.BufferedReader(_Utf8(file, encoding, source.path), _BUFFER)


class _Utf8(io.RawIOBase):
    """A file of text in another encoding, as UTF-8 without a byte order mark."""

    def __init__(self, file: io.BufferedReader, encoding: str, path: str) -> None:
        super().__init__()
        self._text = io.TextIOWrapper(file, encoding, newline="")
        self._encoding, self._path = encoding, path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._text.read(len(buffer) // 4).encode()  # a character has at most four bytes
        except UnicodeDecodeError as error:
            reason = f"invalid text: the byte order mark says {self._encoding}, but {error.reason}"
            raise DecodeError(reason, path=self._path, expected=self._encoding) from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._text.close()
        super().close()


def write_table_file(
    source: Any,
    target: Any,
    open_writer: OpenWriter,
    keywords: dict[str, Any],
    *,
    compressed: bool = False,
    needs_columns: bool = False,
    advice: str = _ADVICE,
) -> WriteReport:
    """Write TFRecord files as one file of tables, batch by batch.

    Parameters
    ----------
    source, target
        As in `to_npy`.
    open_writer : function
        Opens a writer of the format, a context manager with ``write_batch``, on a binary file, for a schema.
    keywords : dict
        Those of `to_npy`, except ``column``.
    compressed : bool
        Compress the whole file if the suffix of the target says so.
    needs_columns : bool
        The format has no rows without columns: EncodeError for such records.
    advice : str
        What the user can do about a column that the format cannot hold.
    """
    overwrite, target_options = keywords.pop("overwrite", None), keywords.pop("dst_storage_options", None)
    options = ReadOptions.of(keywords)
    storage = options.storage.with_options(target_options)
    with open_path(source, options) as reader:
        refuse_types(reader.schema, open_writer, advice)
        if not compressed:
            with open_output(target, storage, overwrite=overwrite) as output:
                rows = _write_batches(reader, OutputStream(output), open_writer, advice, needs_columns=needs_columns)
                size, compression = output.offset, None
        else:
            sink = FrameSink(target, storage, overwrite=overwrite, threads=options.thread_count)
            try:
                rows = _write_batches(reader, _SinkStream(sink), open_writer, advice, needs_columns=needs_columns)
            except BaseException:
                sink.discard()
                raise
            sink.commit()
            size, compression = sink.bytes, sink.compression
        columns = tuple(reader.schema.names)
        return WriteReport(os.fspath(target), rows, size, compression, columns, {})


def _write_batches(
    reader: Any, stream: io.RawIOBase, open_writer: OpenWriter, advice: str, *, needs_columns: bool
) -> int:
    """Write all batches; returns the number of rows, without those that a filter left out."""
    rows = 0
    with open_writer(stream, reader.schema) as writer:
        for batch in reader:
            if needs_columns and not batch.num_columns and len(batch):
                advice = "write JSON lines (.jsonl), where such a record is {}"
                raise EncodeError("records without columns cannot be stored in this file format", advice=advice)
            try:
                writer.write_batch(batch)
            except pa.ArrowException:  # its message holds the value
                if (error := _refused_value(batch, open_writer, advice)) is None:
                    raise
                error.path, error.record = reader.origin(rows + (error.record or 0))
                raise error from None
            rows += len(batch)
    return rows


class _SinkStream(io.RawIOBase):
    """A `FrameSink` as a Python file object, for other libraries; closing it does not publish the file."""

    def __init__(self, sink: FrameSink) -> None:
        self._sink = sink

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        self._sink.write(Piece(view, 0))
        return len(view)


def refuse_types(schema: pa.Schema, open_writer: OpenWriter, advice: str) -> None:
    """Refuse a column of a type that the format does not have."""
    for field in schema:
        if _refuses(pa.RecordBatch.from_arrays([pa.nulls(0, field.type)], schema=pa.schema([field])), open_writer):
            reason = f"a column of {short_type_name(field.type, field.metadata)} cannot be stored in this file format"
            raise EncodeError(reason, feature=field.name, advice=advice)


def _refused_value(batch: pa.RecordBatch, open_writer: OpenWriter, advice: str) -> EncodeError | None:
    """The error for the first value that the format cannot hold, whose ``record`` is its row in the batch."""
    for at, field in enumerate(batch.schema):
        column = batch.select([at])
        if _refuses(column, open_writer):
            row = first_refused(len(batch), lambda begin, end: _refuses(column[begin:end], open_writer))  # noqa: B023
            type_name = short_type_name(field.type, field.metadata)
            reason = f"a value of this {type_name} is out of range for this file format"
            return EncodeError(reason, feature=field.name, record=row, advice=advice)
    return None


def _refuses(batch: pa.RecordBatch, open_writer: OpenWriter) -> bool:
    try:
        with open_writer(pa.BufferOutputStream(), batch.schema) as writer:
            writer.write_batch(batch)
    except (pa.ArrowException, OSError):
        return True
    return False
