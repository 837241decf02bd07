"""Read and write files of tables: the part that CSV, JSON, LIBSVM and columnar files share."""

from __future__ import annotations

import codecs
import io
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import pyarrow as pa

from tfrecord_io.base import ExportOptions, Limits, StorageOptions, undo_after
from tfrecord_io.columns import Column, Projection
from tfrecord_io.errors import DecodeError, EncodeError, SchemaError
from tfrecord_io.kit import (
    CODECS,
    Format,
    ProgressMeter,
    ReadOptions,
    RowFault,
    condition_of,
    empty_batch,
    open_output,
    printable,
    selectable,
)
from tfrecord_io.read import AddedColumns, CallSource, RowFilter
from tfrecord_io.store import Entry, PathMatch, Source
from tfrecord_io.typing import ProgressLike, SchemaLike, WriteReport
from tfrecord_io.write import FrameSink

OpenWriter = Callable[[Any, pa.Schema], Any]
Columns = Sequence[str] | str | None

_BUFFER = 1 << 20
_BYTE_ORDER_MARKS = (  # UTF-32's before UTF-16's, as it begins alike
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options to read tables: the keywords of `tfrecord_io.convert` shared by all such formats."""

    storage: StorageOptions = StorageOptions.DEFAULT
    columns: Columns = None
    filters: Any = None  # may need further columns
    schema: SchemaLike | None = None  # of the target; text is parsed as its types
    schema_overrides: Mapping[str, Any] | None = None  # types of single columns, for formats that have none
    progress: ProgressLike = False  # of formats whose files are read in order
    named: bool = False  # the caller named the format: the suffixes and the content of files do not matter
    limits: Limits = Limits.DEFAULT  # of columns, or fields of nested ones, and of rows with few of many columns
    listings: Mapping[str, list[Entry]] | None = None  # of folders that were just listed, by path

    def __post_init__(self) -> None:
        ReadOptions(limits=self.limits)  # checks them

    def projection(self, names: Sequence[str]) -> Projection:
        """The columns to read among `names`: the selected ones and those of the filter; all if it names any other."""
        needed = () if self.filters is None else condition_of(self.filters).columns
        if not set(needed) <= set(names):
            return Projection(None)
        columns = self.columns
        return Projection(RowFilter.add_columns(columns, needed) if needed and columns is not None else columns)

    def check_count(self, count: int, path: str) -> None:
        """Raise SchemaError if a file has more columns or fields than its limit, of which `count` are known."""
        if count > self.limits.features:
            reason = f"more than {self.limits.features} different columns or fields"
            advice = "raise tfr.dataset(…, limits=tfr.Limits(features=…)) if they are intended"
            raise SchemaError(reason, path=path, expected=self.limits.features, got=count, hint=advice)

    def meter(self, sources: Sequence[Source]) -> ProgressMeter:
        """The progress of reading these files."""
        return ProgressMeter(self.progress, Source.total(source.size for source in sources), "bytes")


@dataclass(frozen=True, slots=True)
class TableFiles:
    """Files of tables, and the columns of the folders that they are in: ``day=1/``."""

    sources: list[Source]
    folders: AddedColumns
    options: SourceOptions  # for columns in the files, without types declared for columns of folders

    @classmethod
    def resolve(cls, paths: Sequence[str], formats: Sequence[Format], options: SourceOptions) -> Self:
        """The files that paths mean; of a directory, those with a suffix of `formats`.

        Raises
        ------
        TypeError
            A type is declared for a column in files of a format that states types.
        FileNotFoundError
            A path means no file.
        SchemaError
            The name of a folder has no value of the declared type.
        """
        suffixes = tuple(suffix for format in formats for suffix in suffixes_of(format))
        listings = options.listings or {}
        matches = [
            PathMatch.find(path, suffixes, options.storage, partitioned=True, listed=listings.get(path))
            for path in paths
        ]
        for match in matches:
            match.warn_of_left_out(formats)
        sources = [source for match in matches for source in match.sources]
        folders, overrides = AddedColumns.from_folders(sources).override_types(options.schema_overrides, sources)
        if formats[0].typed and overrides:
            name = printable(next(iter(overrides)))
            reason = f"schema_overrides= declares '{name}', but is only for columns of folders (day=1/)"
            raise TypeError(f"{reason}, as the files state their types; schema= casts the columns to write")
        schema = options.schema
        if folders.fields and schema is not None:
            import tfrecord_io

            folders, schema = folders.declare_types(tfrecord_io.Schema.parse(schema), sources)
        return cls(sources, folders, replace(options, schema=schema, schema_overrides=overrides, listings=None))

    def select_names(self, names: Sequence[str]) -> list[str] | None:
        """The selected columns among those of the files; None: all.

        Raises
        ------
        FeatureNotFoundError
            The selection names a column that does not exist.
        SchemaError
            A folder has the name of a column.
        EncodeError
            Two of them have the same name.
        """
        self.options.check_count(len(names), self.sources[0].path)
        projection = self.projection(names)
        self.folders.refuse_features(names, self.sources)
        projection.check([*names, *self.folders.names])
        selected_names = projection.order(names)
        name, count = next(iter(Counter(selected_names).most_common(1)), ("", 0))
        if count > 1:
            advice = "rename them in the file, or exclude them with columns="
            advice_cli = "rename them in the file, or exclude them with --columns"
            path = self.sources[0].path
            raise EncodeError(
                f"{count} columns have this name", path=path, feature=name, hint=advice, hint_cli=advice_cli
            )
        return None if projection.takes_all else selected_names

    def projection(self, names: Sequence[str]) -> Projection:
        """The columns to read of those in the files and those of folders."""
        return self.options.projection([*names, *self.folders.names])

    def rows_to_convert(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
        """The rows to convert of batches that have the columns of the schema, or the selected ones."""
        options = self.options
        rows = select_columns(schema, batches, options.projection(schema.names))
        return rows if options.filters is None else filter_rows(rows, options.filters, options.columns)


@dataclass(frozen=True, slots=True)
class TableSource:
    """Files, with the schema that was decided once for all of them.

    `batches` returns the rows of one file, in the columns of the files or those that are selected, as a generator; it
    advances a meter by the bytes of the file.
    """

    files: TableFiles
    file_schema: pa.Schema  # of the columns in the files
    batches: Callable[[Source, ProgressMeter], Generator[pa.RecordBatch]]

    @property
    def sources(self) -> Sequence[Source]:
        return self.files.sources

    @property
    def schema(self) -> pa.Schema:
        """The schema of all columns, those of folders last."""
        return self._add_folders(self.file_schema)

    def _add_folders(self, schema: pa.Schema) -> pa.Schema:
        folders = self.files.folders.fields
        return pa.schema([*schema, *folders], schema.metadata) if folders else schema

    @contextmanager
    def open(self) -> Iterator[pa.RecordBatchReader]:
        """The rows of all files, one file after the other."""
        with self.files.options.meter(self.sources) as meter, self.rows(self.sources, meter) as rows:
            yield rows

    @contextmanager
    def rows(self, sources: Sequence[Source], meter: ProgressMeter) -> Iterator[pa.RecordBatchReader]:
        """The rows of some of the files, in the selected columns."""

        def batches() -> Generator[pa.RecordBatch]:
            for source in sources:
                for batch in self.batches(source, meter):
                    yield self.files.folders.add_to(batch, [source], self._add_folders(batch.schema))

        with closing(batches()) as parts:
            yield self.files.rows_to_convert(self.schema, parts)


def suffixes_of(format: Format) -> tuple[str, ...]:
    """The suffixes of files, also of compressed ones."""
    packed = CODECS.suffixes() if format.compressed else ()
    return tuple(suffix + second for suffix in format.suffixes for second in ("", *packed))


def select_columns(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], projection: Projection
) -> pa.RecordBatchReader:
    """The selected columns, in the order of the projection; `batches` have these or more."""
    if projection.takes_all:
        return pa.RecordBatchReader.from_batches(schema, batches)
    fields = pa.schema([schema.field(i) for i in projection.positions(schema.names)], schema.metadata)
    parts = (batch.select(projection.positions(batch.schema.names)) for batch in batches)
    return pa.RecordBatchReader.from_batches(fields, parts)


def filter_rows(stream: Any, filters: Any, columns: Columns) -> pa.RecordBatchReader:
    """The rows of a stream that a filter keeps, with some of the columns.

    Raises
    ------
    FeatureNotFoundError, SchemaError, TypeError, ValueError
        As in `tfrecord_io.read.row_filter.RowFilter.for_schema`, or an entry of `columns` matches no column.
    """
    projection = Projection(columns)
    projection.check(stream.schema.names)
    if filters is None:
        return select_columns(stream.schema, iter(stream), projection)
    row_filter = RowFilter.for_schema(filters, stream.schema)
    filtered_batches = (selectable(batch).filter(row_filter.mask(batch)) for batch in stream)
    return select_columns(stream.schema, filtered_batches, projection)


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
            raise SchemaError(reason, path=path, feature=name, expected=expected, got=got, hint=advice)
    reason = f"its columns differ in order or nullability from those of '{printable(first_path)}'"
    raise SchemaError(reason, path=path, expected=first.names, got=schema.names, hint=advice)


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


def meter_batches(
    batches: Iterator[pa.RecordBatch], rows: int | None, size: int | None, meter: ProgressMeter
) -> Iterator[pa.RecordBatch]:
    """Pass on the batches of a file of `size` bytes and `rows`; `meter` gets each batch's share of the bytes."""
    done = metered = 0  # rows, and bytes
    for batch in batches:
        yield batch
        done += len(batch)
        share = (size or 0) * min(done, rows) // rows if rows else 0
        meter.advance(share - metered)
        metered = share
    meter.advance((size or 0) - metered)


def open_text_file(source: Source, meter: ProgressMeter | None = None) -> io.BufferedReader:
    """Open a file of text, decompressed, to be read as UTF-8; `meter` is advanced by its bytes.

    UTF-16 and UTF-32, as spreadsheets export them, are known by their byte order mark.
    """
    file = source.open_decompressed(meter)
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


def write_table_file(source: Any, target: Any, format: Format, keywords: dict[str, Any]) -> WriteReport:
    """Write TFRecord files as one file of a format that has a `writer`, batch by batch.

    `source`, `target` and `keywords` are as in `write_npy`; `keywords` may have those that only this format writes.
    """
    assert format.writer is not None
    writer_options = {key: keywords.pop(key) for key in format.writes & keywords.keys() if key != "mode"}
    open_writer = partial(Format.load(format.writer), **writer_options)
    mode = keywords.pop("mode", None)
    options = CallSource(source).options(ExportOptions, **keywords)
    with CallSource(source).open(options) as reader:
        return _write_rows(reader, target, format, open_writer, options=options, mode=mode)


def write_table_rows(rows: pa.RecordBatchReader, target: Any, format: Format, **keywords: Any) -> WriteReport:
    """Write a stream of rows as one file of a format that has a `writer`; the keywords are those of the target."""
    assert format.writer is not None
    mode = keywords.pop("mode", None)
    options = ExportOptions.from_keywords(keywords)
    return _write_rows(rows, target, format, Format.load(format.writer), options=options, mode=mode)


def _write_rows(
    reader: Any, target: Any, format: Format, open_writer: OpenWriter, *, options: ExportOptions, mode: Any
) -> WriteReport:
    """Write the rows of a reader or a stream as one file, and publish it."""
    refuse_types(reader.schema, open_writer, format.instead)
    output = TableTarget(target, format, options, mode)
    try:
        output.write(reader, open_writer)
    except BaseException as error:
        undo_after(error, output.discard, output.path)
        raise
    output.commit()
    columns = tuple(reader.schema.names)
    return WriteReport(
        output.path, output.rows, bytes=output.bytes, compression=output.compression, columns=columns, rounded={}
    )


class NumbersRows:
    """Base class of writers that write the number of each row: in a file after others, from `first_row` on."""

    first_row = 0


class TableTarget:
    """A table file to write, compressed if its name says so and its format allows it."""

    def __init__(self, target: Any, format: Format, options: ExportOptions, mode: Any) -> None:
        self.path, self.rows, self.is_published = os.fspath(target), 0, False
        self._format = format
        self._file: Any  # a FrameSink, or a file of `open_output`
        if format.compressed:
            self._file = FrameSink(target, options.target, mode=mode, threads=options.thread_count)
        else:
            self._file = open_output(target, options.target, mode=mode)

    def write(self, rows: Any, open_writer: OpenWriter) -> None:
        """Write all rows, of a reader or a stream; the file waits for `commit`, or for `discard` after an error."""
        file = self._file
        stream = _SinkStream(file) if isinstance(file, FrameSink) else file.as_stream()
        self.rows = _write_batches(rows, stream, open_writer, self._format)
        file.finish()

    @property
    def bytes(self) -> int:
        return self._file.bytes if isinstance(self._file, FrameSink) else self._file.offset

    @property
    def compression(self) -> str | None:
        return self._file.compression if isinstance(self._file, FrameSink) else None

    def commit(self) -> None:
        """Publish the file."""
        self._file.commit()
        self.is_published = True

    def discard(self) -> None:
        """Drop what is written and not published."""
        self._file.discard()


def _write_batches(reader: Any, stream: io.RawIOBase, open_writer: OpenWriter, format: Format) -> int:
    """Write all batches; returns the number of rows, without those that a filter left out."""
    rows = 0
    with open_writer(stream, reader.schema) as writer:
        if isinstance(writer, NumbersRows):
            writer.first_row = getattr(reader, "first_row", 0)
        for batch in reader:
            if format.needs_columns and not batch.num_columns and len(batch):
                raise no_columns_error()
            try:
                writer.write_batch(batch)
            except pa.ArrowException:  # its message holds the value
                if (error := refused_value(batch, open_writer, format.instead)) is None:
                    raise
                row = rows + (error.record or 0)
                error.path, error.record = (
                    (None, row) if isinstance(reader, pa.RecordBatchReader) else reader.origin(row)
                )
                raise error from None
            rows += len(batch)
    return rows


def no_columns_error() -> EncodeError:
    """The error for records without columns, where a format has no rows of them."""
    advice = "write JSON lines (.jsonl), where such a record is {}"
    return EncodeError("records without columns cannot be stored in this file format", hint=advice)


class _SinkStream(io.RawIOBase):
    """A `FrameSink` as a Python file object, for other libraries; closing it does not publish the file."""

    def __init__(self, sink: FrameSink) -> None:
        self._sink = sink

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        self._sink.write_bytes(view)
        return len(view)


def refuse_types(schema: pa.Schema, open_writer: OpenWriter, instead: str, instead_cli: str | None = None) -> None:
    """Refuse a column of a type that the format does not have; `instead_cli` is `instead` in words of the command."""
    for field in schema:
        if _refuses(empty_batch(pa.schema([field])), open_writer):
            reason = f"a column of {Column(field.type, field.metadata).short_name} cannot be stored in this file format"
            hint, hint_cli = _hints(instead, instead_cli)
            raise EncodeError(reason, feature=field.name, hint=hint, hint_cli=hint_cli)


def _hints(instead: str, instead_cli: str | None = None) -> tuple[str, str]:
    exclude = "exclude the column with"
    return f"{exclude} columns=, or {instead}", f"{exclude} --columns, or {instead_cli or instead}"


def refused_value(batch: pa.RecordBatch, open_writer: OpenWriter, instead: str) -> EncodeError | None:
    """The error for the first value that the format cannot hold, whose ``record`` is its row in the batch."""
    for at, field in enumerate(batch.schema):
        column = batch.select([at])
        if _refuses(column, open_writer):
            row = RowFault.first_refused(len(batch), lambda begin, end: _refuses(column[begin:end], open_writer))  # noqa: B023
            type_name = Column(field.type, field.metadata).short_name
            reason = f"a value of this {type_name} is out of range for this file format"
            hint, hint_cli = _hints(instead)
            return EncodeError(reason, feature=field.name, record=row, hint=hint, hint_cli=hint_cli)
    return None


def _refuses(batch: pa.RecordBatch, open_writer: OpenWriter) -> bool:
    """True if a batch cannot be written: tried in memory."""
    try:
        with open_writer(pa.BufferOutputStream(), batch.schema) as writer:
            writer.write_batch(batch)
    except (pa.ArrowException, OSError):
        return True
    return False


class RowSlices:
    """Batches in order, some rows at a time."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._rest: pa.RecordBatch | None = None
        self._taken = 0

    def take(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The next rows, or as many as there are."""
        while rows:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                return
            self._rest = batch[rows:] if len(batch) > rows else None
            batch = batch[:rows]
            rows -= len(batch)
            self._taken += len(batch)
            yield batch

    def check_end(self, total: int) -> None:
        """EncodeError if there are more or fewer rows than were counted."""
        more = sum(map(len, self.take(1)))  # 1 if a row was left
        if self._taken - more != total or more:
            reason = f"the source had {total} rows, and {self._taken}{' or more' * more} when it was read again"
            raise EncodeError(reason, expected=total, got=self._taken, hint="try again when no program writes to it")
