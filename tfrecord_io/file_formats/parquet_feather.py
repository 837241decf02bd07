"""Read Parquet and Arrow IPC files as streams of record batches, and write TFRecord files as such files."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa

from tfrecord_io.arrow.row_fault import first_refused
from tfrecord_io.errors import DecodeError, EncodeError, SchemaError, printable
from tfrecord_io.options import ReadOptions, StorageOptions
from tfrecord_io.read.resolve_schema import open_scan
from tfrecord_io.schema.column_selection import Projection
from tfrecord_io.schema.type_names import short_type_name
from tfrecord_io.storage.paths.plain_files import find_files
from tfrecord_io.storage.read.open_stream import open_file
from tfrecord_io.storage.read.source import Source
from tfrecord_io.storage.write.atomic import open_output
from tfrecord_io.storage.write.output_file import OutputStream
from tfrecord_io.write.writer import WriteReport

Columns = Sequence[str] | str | None
OpenWriter = Callable[[Any, pa.Schema], Any]

PARQUET = (".parquet", ".pq")
FEATHER = (".arrow", ".feather")

_BATCH_ROWS = 16_384
_ADVICE = "write an Arrow file (.arrow), declare another type by schema=, or exclude the column with columns="
_IPC_FILE = b"ARROW1"  # an IPC stream begins with the length of its schema


@contextmanager
def open_parquet(paths: list[str], storage: StorageOptions, columns: Columns = None) -> Iterator[pa.RecordBatchReader]:
    """The rows of Parquet files with one schema, one file after the other; folders and globs in natural order.

    Only the selected columns are read.
    """
    projection = Projection(columns)
    sources = [source for path in paths for source in find_files(path, PARQUET, storage).sources]
    with _parquet(sources[0]) as first:
        schema = first.schema_arrow
    projection.check(schema.names)
    selected = None if projection.takes_all else projection.order(schema.names)

    def batches() -> Generator[pa.RecordBatch]:
        for source in sources:
            with _parquet(source) as file:
                _check_schema(file.schema_arrow, schema, source.path, sources[0].path)
                yield from _batches(file.iter_batches(_BATCH_ROWS, columns=selected), source.path, "Parquet")

    with closing(batches()) as rows:
        yield _reader(schema, rows, projection)


def _reader(schema: pa.Schema, batches: Iterator[pa.RecordBatch], projection: Projection) -> pa.RecordBatchReader:
    """The selected columns, in the order of the projection; `batches` have these or more."""
    if projection.takes_all:
        return pa.RecordBatchReader.from_batches(schema, batches)
    fields = pa.schema([schema.field(i) for i in projection.positions(schema.names)], schema.metadata)
    selected = (batch.select(projection.positions(batch.schema.names)) for batch in batches)
    return pa.RecordBatchReader.from_batches(fields, selected)


@contextmanager
def _parquet(source: Source) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with closing(open_file(source)) as opened:
        with _arrow_errors(source.path, "Parquet"):
            file = pq.ParquetFile(opened)
        yield file


@contextmanager
def open_feather(path: str, storage: StorageOptions, columns: Columns = None) -> Iterator[pa.RecordBatchReader]:
    """The rows of an Arrow IPC file, or of an IPC stream."""
    projection = Projection(columns)
    source = find_files(path, FEATHER, storage).single("convert them one by one")
    with closing(open_file(source)) as file:
        magic = file.read(len(_IPC_FILE))
        file.seek(0)
        with _arrow_errors(source.path, "Arrow IPC"):
            if magic == _IPC_FILE:
                opened: Any = pa.ipc.open_file(file)
                batches = (opened.get_batch(i) for i in range(opened.num_record_batches))
            else:
                opened = batches = pa.ipc.open_stream(file)
        projection.check(opened.schema.names)
        yield _reader(opened.schema, _batches(iter(batches), source.path, "Arrow IPC"), projection)


def _check_schema(schema: pa.Schema, first: pa.Schema, path: str, first_path: str) -> None:
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


def _batches(batches: Iterator[pa.RecordBatch], path: str, format: str) -> Iterator[pa.RecordBatch]:
    while True:
        with _arrow_errors(path, format):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@contextmanager
def _arrow_errors(path: str, format: str) -> Iterator[None]:
    """Raise the errors of pyarrow for damaged files as DecodeError."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # from the filesystem
            raise
        reason = f"damaged, or not a file of the format {format}: {printable(str(error), 300)}"
        raise DecodeError(reason, path=path, expected=format) from error


def write_parquet(source: Any, target: Any, **keywords: Any) -> WriteReport:
    """Write TFRecord files as one Parquet file. Keywords: those of `to_npy`, except ``column``."""
    import pyarrow.parquet as pq

    return _write(source, target, lambda sink, schema: pq.ParquetWriter(sink, schema), keywords)


def write_feather(source: Any, target: Any, **keywords: Any) -> WriteReport:
    """Write TFRecord files as one Arrow IPC file. Keywords: those of `to_npy`, except ``column``."""
    return _write(source, target, pa.ipc.new_file, keywords)


def _write(source: Any, target: Any, open_writer: OpenWriter, keywords: dict[str, Any]) -> WriteReport:
    overwrite, target_options = keywords.pop("overwrite", None), keywords.pop("dst_storage_options", None)
    options = ReadOptions.of(keywords)
    storage = options.storage.with_options(target_options)
    with open_scan(source, options) as reader, open_output(target, storage, overwrite=overwrite) as output:
        _refuse_types(reader.schema, open_writer)
        with open_writer(OutputStream(output), reader.schema) as writer:
            rows = 0
            for batch in reader:
                try:
                    writer.write_batch(batch)
                except pa.ArrowException:  # its message holds the value
                    if (error := _refused_value(batch, open_writer)) is None:
                        raise
                    error.path, error.record = reader.origins.of(rows + (error.record or 0))
                    raise error from None
                rows += len(batch)
        columns = tuple(reader.schema.names)
        return WriteReport(os.fspath(target), reader.report.records, output.offset, None, columns, {})


def _refuse_types(schema: pa.Schema, open_writer: OpenWriter) -> None:
    """Refuse a column of a type that the format does not have."""
    for field in schema:
        if _refuses(pa.RecordBatch.from_arrays([pa.nulls(0, field.type)], schema=pa.schema([field])), open_writer):
            reason = f"a column of {short_type_name(field.type, field.metadata)} cannot be stored in this file format"
            raise EncodeError(reason, feature=field.name, advice=_ADVICE)


def _refused_value(batch: pa.RecordBatch, open_writer: OpenWriter) -> EncodeError | None:
    """The error for the first value that the format cannot hold, whose ``record`` is its row in the batch."""
    for at, field in enumerate(batch.schema):
        column = batch.select([at])
        if _refuses(column, open_writer):
            row = first_refused(len(batch), lambda begin, end: _refuses(column[begin:end], open_writer))  # noqa: B023
            type_name = short_type_name(field.type, field.metadata)
            reason = f"a value of this {type_name} is out of range for this file format"
            return EncodeError(reason, feature=field.name, record=row, advice=_ADVICE)
    return None


def _refuses(batch: pa.RecordBatch, open_writer: OpenWriter) -> bool:
    try:
        with open_writer(pa.BufferOutputStream(), batch.schema) as writer:
            writer.write_batch(batch)
    except (pa.ArrowException, OSError):
        return True
    return False
