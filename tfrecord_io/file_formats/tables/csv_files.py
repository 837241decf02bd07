"""Read CSV files as streams of record batches, and write TFRecord files as CSV, both by pyarrow."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.compression import compression_suffixes
from tfrecord_io.errors import DecodeError, printable
from tfrecord_io.file_formats.tables.declared_types import ADVICE, declared_types
from tfrecord_io.file_formats.tables.large_integers import inferred_names, is_too_large, may_be_rounded, refuse_rounding
from tfrecord_io.file_formats.tables.source_options import SourceOptions
from tfrecord_io.file_formats.tables.table_files import arrow_errors, check_schema, open_text_file, write_table_file
from tfrecord_io.file_formats.tables.table_source import TableFiles, TableSource
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.storage.paths.resolve_output import without_compression
from tfrecord_io.storage.read.source import Source
from tfrecord_io.write.writer import WriteReport

CSV, TSV = (".csv",), (".tsv",)

_BLOCK_BYTES = 8 << 20  # types are inferred from the first block
_STREAMED_BYTES = 2 << 20  # a block when all types are known: pyarrow reads 32 of them ahead
_CONVERSION = re.compile(r"In CSV column #(\d+): Row #(\d+): (?:CSV conversion error to )?(.*)", re.DOTALL)
_PARSING = re.compile(r"CSV parse error: Row #(\d+): (.*)", re.DOTALL)
_HEADER_BYTES = 64 << 10
_HEADER_ROWS = 2  # pyarrow counts rows from 1, and the header is one
LISTS_ADVICE = "exclude the column with columns=, or write JSON lines (.jsonl) or Parquet, which hold lists and bytes"


def csv_source(paths: list[str], options: SourceOptions) -> TableSource:
    """The rows of CSV files with the same header, one file after the other; folders and globs in natural order.

    The types are those that are declared; all others are inferred from the first 8 MiB of the first file.
    """
    files = TableFiles.of(paths, _suffixes(), options)
    first, options = files.sources[0], files.options
    with _csv(first, options) as file:
        header = file.schema
        names = files.selected(header.names)
        schema = declared_types(header, options, _can_parse)
        _refuse_rounding(file, first, header.names if names is None else names, options)
    types = {field.name: field.type for field in schema}

    def batches(source: Source, meter: ProgressMeter) -> Generator[pa.RecordBatch]:
        if source is not first:
            with _csv(source, options, types) as file:  # the header of all columns
                check_schema(file.schema, schema, source.path, first.path)
        single = len(header) == 1
        with _csv(source, options, types, names, keeps_empty=single, meter=meter) as file:
            checked: set[str] = set()
            for batch in _batches(file, source.path, header.names if names is None else names):
                for name in _infinite(batch, checked):
                    _refuse_overflow(source, options, name, batch.schema.field(name).type, keeps_empty=single)
                yield batch

    return TableSource(files, schema, batches)


def _refuse_rounding(first: Any, source: Source, names: Sequence[str], options: SourceOptions) -> None:
    """Raise DecodeError if one of the columns, of integers, has one beyond int64, among the rows for inference."""
    names = inferred_names(names, options)
    if not any(t.is_float64(first.schema.field(name).type) for name in names):
        return
    rows = next(_batches(first, source.path, first.schema.names), None)
    if rows is None:
        return
    for name in names:
        if may_be_rounded(rows[name]):
            with _csv(source, options, {name: pa.string()}, [name]) as file:
                refuse_rounding(_cells(file, source.path, name, len(rows)), name, pa.float64(), source.path)


def _infinite(batch: pa.RecordBatch, checked: set[str]) -> Iterator[str]:
    """The columns of floats that have an infinite value, of those that are not yet checked."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if t.is_floating(column.type) and name not in checked and pc.any(pc.is_inf(column)).as_py():
            checked.add(name)
            yield name


def _refuse_overflow(
    source: Source, options: SourceOptions, name: str, type_: pa.DataType, *, keeps_empty: bool
) -> None:
    """Raise DecodeError for the first number of a column that pyarrow reads as an infinity; `inf` is one."""
    row = 0
    with _csv(source, options, {name: pa.string()}, [name], keeps_empty=keeps_empty) as file:
        for batch in _batches(file, source.path, [name]):
            for at, cell in enumerate(batch[name].to_pylist(), row):
                if cell is not None and is_too_large(cell.strip(), type_):
                    reason = f"the number is too large for {type_}"
                    advice = f"declare the column as text by schema_overrides={{{name!r}: 'string'}}"
                    raise DecodeError(
                        reason, path=source.path, record=at, feature=name, expected=str(type_), advice=advice
                    )
            row += len(batch)


def _cells(file: Any, path: str, name: str, count: int) -> Iterator[str]:
    """The text of the first cells of a column, of those that are not missing."""
    for batch in _batches(file, path, [name]):
        cells = batch[name][:count]
        count -= len(cells)
        yield from (cell.strip() for cell in cells.drop_null().to_pylist())
        if not count:
            return


def _suffixes() -> tuple[str, ...]:
    return tuple(suffix + packed for suffix in (*CSV, *TSV) for packed in ("", *compression_suffixes()))


@contextmanager
def _csv(
    source: Source,
    options: SourceOptions,
    types: dict[str, pa.DataType] | None = None,
    names: Sequence[str] | None = None,
    *,
    keeps_empty: bool = False,
    meter: ProgressMeter | None = None,
) -> Iterator[Any]:
    """Open a file; `names` selects columns, and those that `types` lacks are inferred.

    With `keeps_empty`, empty lines are rows: with one column, that is how missing values are written.
    """
    from pyarrow import csv

    null_values = [options.null_values] if isinstance(options.null_values, str) else list(options.null_values)
    conversion = csv.ConvertOptions(
        null_values=null_values,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,  # "" is empty text
        column_types=types,
        include_columns=None if names is None else list(names),
    )
    parsing = csv.ParseOptions(
        delimiter=options.delimiter or delimiter_of(source.path),
        newlines_in_values=True,
        ignore_empty_lines=not keeps_empty,
    )
    # One thread: it is the caller's that reads the file, and errors have the number of the row.
    size = _BLOCK_BYTES if types is None else _STREAMED_BYTES
    reading = csv.ReadOptions(block_size=size, use_threads=False)
    with closing(open_text_file(source, meter)) as opened_file:
        start = _checked_header(opened_file, parsing.delimiter, options, source.path)
        file: Any = _Joined(start, opened_file, None if types is not None else 2 * size)
        with _csv_errors(source.path, names or ()):
            opened = csv.open_csv(file, read_options=reading, parse_options=parsing, convert_options=conversion)
        yield opened


def _checked_header(file: Any, delimiter: str, options: SourceOptions, path: str) -> bytes:
    """The first bytes of a file, with its header, whose columns are counted before pyarrow makes arrays of them."""
    start = b""
    while len(start) < _BLOCK_BYTES and (part := file.read(max(_HEADER_BYTES, len(start)))):
        start += part
        codes = np.frombuffer(start.lstrip(b"\r\n"), np.uint8)  # pyarrow leaves out empty lines
        marks = np.flatnonzero(np.isin(codes, np.frombuffer(b'"\r\n' + delimiter.encode(), np.uint8)))
        is_quote = codes[marks] == ord('"')
        marks = codes[marks[~is_quote & (np.cumsum(is_quote) % 2 == 0)]]
        ends = np.flatnonzero(marks != ord(delimiter))
        columns = 1 + (int(ends[0]) if len(ends) else len(marks))
        options.check_count(columns, path)
        if len(ends):
            break
    return start


class _Joined(io.RawIOBase):
    """The first bytes of a file and its rest, or as much of it as is needed."""

    def __init__(self, start: bytes, file: Any, size: int | None) -> None:
        self._start, self._file = memoryview(start), file
        self._left = sys.maxsize if size is None else size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")[: self._left]
        if len(self._start):
            count = min(len(view), len(self._start))
            view[:count], self._start = self._start[:count], self._start[count:]
        else:
            count = int(self._file.readinto(view)) if len(view) else 0
        self._left -= count
        return count


def delimiter_of(path: str) -> str:
    r"""The delimiter of a file by its name.

    >>> delimiter_of("a.tsv.gz"), delimiter_of("a.csv")
    ('\t', ',')
    """
    return "\t" if without_compression(path).endswith(TSV) else ","


def _batches(file: Any, path: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    while True:
        with _csv_errors(path, names):
            try:
                batch = file.read_next_batch()
            except StopIteration:
                return
        yield batch


@contextmanager
def _csv_errors(path: str, names: Sequence[str]) -> Iterator[None]:
    """Raise the errors of pyarrow about rows and values as DecodeError with column and row."""
    try:
        with arrow_errors(path, "CSV"):
            yield
    except DecodeError as error:
        text = str(error.__cause__)
        if match := _CONVERSION.match(text):
            column, row = int(match[1]), int(match[2]) - _HEADER_ROWS
            name = names[column] if column < len(names) else None
            reason = f"the value does not fit the column's type, {printable(match[3])}"
            raise DecodeError(reason, path=path, record=row, feature=name, advice=ADVICE) from error
        if match := _PARSING.match(text):
            reason = printable(match[2])
            advice = "check the quotes and the delimiter, which delimiter= changes"
            raise DecodeError(reason, path=path, record=int(match[1]) - _HEADER_ROWS, advice=advice) from error
        if "straddling object" in text:
            reason = f"a row is longer than {_STREAMED_BYTES >> 20} MiB"
            advice = 'check for a quote (") without its end'
            raise DecodeError(reason, path=path, expected=_STREAMED_BYTES, advice=advice) from error
        raise


def _can_parse(type_: pa.DataType) -> bool:
    """Whether pyarrow parses cells as this type."""
    from pyarrow import csv

    options = csv.ConvertOptions(column_types={"x": type_})
    with suppress(pa.ArrowException):
        csv.read_csv(pa.BufferReader(b"x\n"), convert_options=options)
        return True
    return False


def write_csv(source: Any, target: Any, *, delimiter: str | None = None, **keywords: Any) -> WriteReport:
    """Write TFRecord files as one CSV file with a header, compressed according to its suffix.

    Text is quoted, missing values are empty cells. Keywords: those of `to_npy`, except ``column``.
    """
    open_writer = partial(csv_writer, delimiter=delimiter or delimiter_of(str(target)))
    return write_table_file(
        source, target, open_writer, keywords, compressed=True, needs_columns=True, advice=LISTS_ADVICE
    )


def csv_writer(sink: Any, schema: pa.Schema, delimiter: str = ",") -> Any:
    """Open a writer of CSV; ArrowTypeError if a column holds bytes or lists."""
    from pyarrow import csv

    for field in schema:  # pyarrow writes bytes that happen to be UTF-8
        if any(check(field.type) for check in (t.is_binary, t.is_large_binary, t.is_fixed_size_binary)):
            raise pa.ArrowTypeError("CSV holds no bytes")
    return csv.CSVWriter(sink, schema, write_options=csv.WriteOptions(delimiter=delimiter))
