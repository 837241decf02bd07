"""Read CSV files as streams of record batches, and write TFRecord files as CSV, both by pyarrow."""

from __future__ import annotations

import codecs
import io
import re
import shlex
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.apps.file_formats.tables.table_files import (
    SourceOptions,
    TableFiles,
    TableSource,
    arrow_errors,
    check_schema,
    open_text_file,
)
from tfrecord_io.apps.file_formats.tables.untyped_columns import (
    ADVICE,
    ADVICE_CLI,
    declared_types,
    has_large,
    inferred_names,
    is_rounded,
    is_too_large,
    may_be_rounded,
    refuse_rounding,
    rounding_error,
    text_hints,
)
from tfrecord_io.base import LIMITS, ordered
from tfrecord_io.columns import Column, arrow_file
from tfrecord_io.errors import DecodeError, SchemaWarning
from tfrecord_io.kit import FORMATS, Array, ProgressMeter, ReadOptions, for_cli, printable, warn
from tfrecord_io.store import FileName, Source

_TSV, _CSV = FORMATS.tsv, FORMATS.csv

_CONVERSION = re.compile(r"In CSV column #(\d+): Row #(\d+): (?:CSV conversion error to )?(.*)", re.DOTALL)
_PARSING = re.compile(r"CSV parse error: Row #(\d+): (.*)", re.DOTALL)
_LEADING_ZERO = r"^\s*[+-]?0[0-9xX]"  # also of hexadecimal numbers, which pyarrow reads
_LONG_INTEGER = r"^\s*[+-]?[0-9]{16,}\s*$"  # beyond which float64 does not have each
_MAY_FOLLOW_ZERO = np.zeros(256, np.bool_)
_MAY_FOLLOW_ZERO[list(b"0123456789xX")] = True
_NAN_IS_MISSING = (
    "if nan is a missing value, name it by null_values=",
    "if nan is a missing value, name it by --null-values",
)
_STREAMED_BYTES = 2 << 20  # a block when all types are known
_HEADER_BYTES = 64 << 10
_THREADS = 2  # parse at a time: the records are encoded next to them
_LINE_ENDS = tuple(b"\r\n")


@dataclass(frozen=True, slots=True)
class Cells:
    """The delimiter of CSV cells, the decimal point of numbers in them, and the texts of missing values."""

    delimiter: str | None = None  # None: that of the file's name
    null_values: Sequence[str] = ("",)
    decimal_point: str = "."

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            _check_delimiter(self.delimiter)
        if self.decimal_point not in (".", ","):
            text = f"{self.decimal_point!r}: expected '.' or ','"
            raise for_cli(ValueError(f"decimal_point={text}"), f"--decimal-point {text}")
        if isinstance(self.null_values, str):
            raise TypeError(f"null_values={self.null_values!r}: expected a list of texts")

    def parsing(self, path: str) -> Any:
        from pyarrow import csv

        suffix_delimiter = "\t" if FileName.without_compression(path).endswith(_TSV.suffixes) else ","
        delimiter = self.delimiter or suffix_delimiter
        if delimiter == self.decimal_point:
            text = f"{delimiter!r} is the delimiter, too: pass another {{}}, such as ';'"
            error = ValueError(f"decimal_point={text.format('delimiter=')}")
            raise for_cli(error, f"--decimal-point {text.format('--delimiter')}")
        return csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)

    def conversion(self, types: dict[str, pa.DataType] | None, names: Sequence[str] | None = None) -> Any:
        from pyarrow import csv

        return csv.ConvertOptions(
            null_values=list(self.null_values),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,  # "" is empty text
            column_types=types,
            decimal_point=self.decimal_point,
            include_columns=None if names is None else list(names),
        )


def _check_delimiter(delimiter: str) -> None:
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        text = f"{delimiter!r}: expected one ASCII character, such as ';'"
        raise for_cli(ValueError(f"delimiter={text}"), f"--delimiter {text}")


def csv_source(
    paths: list[str],
    options: SourceOptions,
    *,
    delimiter: str | None = None,
    decimal_point: str | None = None,
    null_values: Sequence[str] | None = None,
) -> TableSource:
    """The rows of CSV files with the same header, one file after the other; folders and globs in natural order.

    The types are those that are declared; all others are inferred from the first 8 MiB of the first file with values.
    """
    cells = Cells(delimiter, null_values or ("",), decimal_point or ".")
    files = TableFiles.resolve(paths, (_CSV, _TSV), options)
    options = files.options
    first, head = _first_head(files.sources, options, cells)
    header = head.schema
    if delimiter is None and len(header) == 1:
        (name,) = header.names
        if (separator := next((mark for mark in ";\t|" if mark in name), None)) is not None:
            reason = f"{first.path}: one column, '{printable(name)}', as no ',' is in the header"
            warning = f"{reason}; if these are several columns, pass"
            hint = f"source_options={ {'delimiter': separator}!r}"
            warn(f"{warning} {hint}", SchemaWarning, f"{warning} --delimiter {shlex.quote(separator)}")
    names = files.select_names(header.names)
    schema = declared_types(header, options, _can_parse)
    inferred = inferred_names(header.names if names is None else names, options)
    _refuse_rounding(head, first, inferred, cells)
    types = {field.name: field.type for field in schema}
    floats = [name for name in inferred if t.is_floating(types[name])]
    texts = [*floats, *(name for name in inferred if t.is_integer(types[name]))]

    def batches(source: Source, meter: ProgressMeter) -> Generator[pa.RecordBatch]:
        if source is not first:
            check_schema(_head(source, options, cells, types).schema, schema, source.path, first.path)
        checked: set[str] = set()
        with closing(
            _rows(
                source=source,
                cells=cells,
                types=types,
                header=header.names,
                names=names,
                meter=meter,
                texts=texts,
                floats=floats,
            )
        ) as rows:
            for batch in rows:
                for name in _infinite(batch, checked):
                    _refuse_overflow(source, cells, header=header.names, name=name, type_=batch.schema.field(name).type)
                yield batch

    return TableSource(files, schema, batches)


def _first_head(sources: Sequence[Source], options: SourceOptions, cells: Cells) -> tuple[Source, Any]:
    """The first file with a value in its first bytes, and its `_head`; the first of all if none has."""
    heads = ((source, _head(source, options, cells)) for source in sources)
    first = next(heads)
    with_values = (head for head in chain([first], heads) if not all(map(t.is_null, head[1].schema.types)))
    return next(with_values, first)


def _refuse_rounding(first: Any, source: Source, names: Sequence[str], cells: Cells) -> None:
    """Raise DecodeError if one of the columns, of integers, has one beyond int64, among the rows for inference."""
    header = first.schema
    if not any(t.is_float64(header.field(name).type) for name in names):
        return
    with _csv_errors(source.path, header.names):
        rows = next(iter(first), None)
    if rows is None:
        return
    for name in names:
        if may_be_rounded(rows[name]):
            with closing(_rows(source, cells, types={name: pa.string()}, header=header.names, names=[name])) as batches:
                refuse_rounding(_texts(batches, name, len(rows)), name, pa.float64(), source.path)


def _infinite(batch: pa.RecordBatch, checked: set[str]) -> Iterator[str]:
    """Find unchecked columns of floats with an infinite value."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if t.is_floating(column.type) and name not in checked and pc.any(pc.is_inf(column)).as_py():
            checked.add(name)
            yield name


def _refuse_overflow(source: Source, cells: Cells, header: Sequence[str], name: str, type_: pa.DataType) -> None:
    """Raise DecodeError for the first number of a column that pyarrow reads as an infinity; `inf` is one."""
    row = 0
    with closing(_rows(source, cells, types={name: pa.string()}, header=header, names=[name])) as batches:
        for batch in batches:
            for at, cell in enumerate(batch[name].to_pylist(), row):
                if cell is not None and is_too_large(cell.strip().replace(cells.decimal_point, "."), type_):
                    reason = f"the number is too large for {type_}"
                    hint, hint_cli = text_hints(name, type_)
                    raise DecodeError(
                        reason,
                        path=source.path,
                        record=at,
                        feature=name,
                        expected=str(type_),
                        hint=hint,
                        hint_cli=hint_cli,
                    )
            row += len(batch)


def _texts(batches: Iterator[pa.RecordBatch], name: str, count: int) -> Iterator[str]:
    """The text of the first cells of a column, of those that are not missing."""
    for batch in batches:
        cells = batch[name][:count]
        count -= len(cells)
        yield from (cell.strip() for cell in cells.drop_null().to_pylist())
        if not count:
            return


def _head(source: Source, options: SourceOptions, cells: Cells, types: dict[str, pa.DataType] | None = None) -> Any:
    """The first bytes of a file as a reader of batches, in whose schema the types that `types` lacks are inferred."""
    from pyarrow import csv

    with closing(open_text_file(source)) as file:
        # Its first block, and the next, where the last row of the first may end.
        start = _from_header(file.read(2 * LIMITS.text_block_bytes))
    if start and not start.endswith((b"\r", b"\n")):
        start += b"\n"  # without which pyarrow takes a header alone for no header
    parsing = cells.parsing(source.path)
    _check_header(start, parsing.delimiter, options, source.path)
    with _csv_errors(source.path, ()):
        reading = csv.ReadOptions(block_size=LIMITS.text_block_bytes, use_threads=False)
        head = csv.open_csv(arrow_file(start), reading, parsing, cells.conversion(types))
    try:
        head.schema.names  # noqa: B018
    except UnicodeDecodeError as error:
        advice = "convert it, for example with iconv -f latin1 -t utf-8"
        raise DecodeError("the header is not UTF-8", path=source.path, expected="UTF-8", hint=advice) from error
    return head


def _from_header(start: bytes) -> bytes:
    """The first bytes of a file without the byte order mark and the empty lines before the header."""
    return start.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")


def _check_header(start: bytes, delimiter: str, options: SourceOptions, path: str) -> None:
    """Count the columns of a header before pyarrow makes arrays of them."""
    size = _HEADER_BYTES
    while True:
        codes = np.frombuffer(start[:size], np.uint8)
        marks = np.flatnonzero(np.isin(codes, [ord('"'), ord(delimiter), *_LINE_ENDS]))
        is_quote = codes[marks] == ord('"')
        marks = codes[marks[~is_quote & (np.cumsum(is_quote) % 2 == 0)]]
        ends = np.flatnonzero(marks != ord(delimiter))
        options.check_count(1 + (int(ends[0]) if len(ends) else len(marks)), path)
        if len(ends) or size >= len(start):
            return
        size *= 2


def _rows(
    source: Source,
    cells: Cells,
    types: dict[str, pa.DataType],
    header: Sequence[str],
    names: Sequence[str] | None,
    meter: ProgressMeter | None = None,
    texts: list[str] | None = None,
    floats: Sequence[str] = (),
) -> Generator[pa.RecordBatch]:
    """The rows of a file with a header; `names` selects columns.

    A warning names each of the columns `texts`, of numbers, whose cells have leading zeros or are hexadecimal, and
    removes it from them. An integer of the columns `floats` that is rounded is an error.

    The caller's thread reads the file: those of pyarrow, which live on after an error, get memory of Arrow only.
    """
    from pyarrow import csv

    parsing = cells.parsing(source.path)
    parsing.ignore_empty_lines = len(header) > 1  # in one column, they are missing values
    conversion = cells.conversion(types, names)

    def parse(block: bytes, *, is_first: bool) -> tuple[pa.Table, dict[str, str], tuple[str, int] | None]:
        reading = csv.ReadOptions(block_size=len(block), use_threads=False)  # errors have the number of the row
        if not is_first:
            reading.column_names = list(header)
        table = csv.read_csv(arrow_file(block), reading, parsing, conversion)
        zeros = [*texts] if texts and _may_have_leading_zeros(block, parsing.delimiter) else []
        large = [name for name in floats if any(map(has_large, table[name].chunks))]
        if not zeros and not large:
            return table, {}, None
        text_columns = list(dict.fromkeys([*zeros, *large]))
        as_text = cells.conversion(dict.fromkeys(text_columns, pa.string()), text_columns)
        rows = csv.read_csv(arrow_file(block), reading, parsing, as_text)
        return table, _leading_zeros(rows.select(zeros)), _first_rounded(rows.select(large))

    with closing(open_text_file(source, meter)) as file:
        blocks = enumerate(_blocks(file, parsing.delimiter, source.path))
        tasks = (partial(parse, block, is_first=number == 0) for number, block in blocks)
        before = -1  # the header is a row of pyarrow's
        with closing(ordered(tasks, min(ReadOptions().thread_count, _THREADS))) as tables:
            while True:
                with _csv_errors(source.path, header if names is None else names, before):
                    parsed = next(tables, None)
                if parsed is None:
                    return
                table, zeros, rounded = parsed
                for name, cell in zeros.items():
                    if texts is not None and name in texts:
                        texts.remove(name)
                        _warn_of_leading_zeros(source.path, name, cell, types[name])
                before = max(before, 0)
                if rounded is not None:
                    name, row = rounded
                    raise rounding_error(
                        source.path, before + row, name=name, type_=types[name], alternatives=_NAN_IS_MISSING
                    )
                before += len(table)
                yield from table.to_batches()


def _may_have_leading_zeros(block: bytes, delimiter: str) -> bool:
    """True if a cell may begin with a zero and another digit or an x, after quotes, a sign or a space."""
    content = np.frombuffer(block, np.uint8)
    zeros = np.flatnonzero(content[:-1] == ord("0"))
    zeros = zeros[_MAY_FOLLOW_ZERO[content[zeros + 1]]]
    begins = [ord(delimiter), ord('"'), *_LINE_ENDS]
    before = content[zeros - 1]
    is_signed = np.isin(before, [ord("+"), ord("-"), ord(" ")]) & np.isin(content[zeros - 2], begins)
    return bool((np.isin(before, begins) | is_signed | (zeros == 0)).any())


def _leading_zeros(table: pa.Table) -> dict[str, str]:
    """The first cell of each column of text that is a number with leading zeros, or a hexadecimal one."""
    first_cells = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        cells = column.filter(pc.match_substring_regex(column, _LEADING_ZERO))
        if len(cells):
            first_cells[name] = cells[0].as_py().strip()
    return first_cells


def _first_rounded(table: pa.Table) -> tuple[str, int] | None:
    """The name of a column of text, of numbers, and the first row where float64 rounds an integer."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        is_long = pc.fill_null(pc.match_substring_regex(column, _LONG_INTEGER), False)
        for row in np.flatnonzero(is_long).tolist():
            if is_rounded(column[row].as_py().strip()):
                return name, row
    return None


def _warn_of_leading_zeros(path: str, name: str, cell: str, type_: pa.DataType) -> None:
    form = "hexadecimal form" if "x" in cell.lower() else "leading zeros"
    reason = f"'{printable(cell, 40)}' and others lose their {form}, as the column is read as {type_}"
    text, text_cli = (
        f"{path}: column '{printable(name)}': {reason}; {declaration} keeps the text"
        for declaration in Column.declaration(name, "string")
    )
    warn(text, SchemaWarning, text_cli)


def _blocks(file: io.BufferedReader, delimiter: str, path: str) -> Iterator[bytes]:
    """A file as blocks of whole rows.

    Raises
    ------
    DecodeError
        A row is longer than a block, or a quoted cell has no end.
    """
    unparsed, is_start = b"", True
    while read := file.read(_STREAMED_BYTES):
        data = _from_header(read) if is_start else unparsed + read
        is_start = not data
        end = rows_end(data, delimiter)
        if end:
            yield data[:end]
        unparsed = data[end:]
        if len(unparsed) > _STREAMED_BYTES:
            raise _too_long(path, _STREAMED_BYTES)
    if unparsed:
        if rows_end(unparsed + b"\n", delimiter) <= len(unparsed):  # pyarrow takes the rest as one cell
            begin = printable(unparsed[:40].decode(errors="replace"))
            reason = f"a quoted cell in the row that begins with '{begin}' has no end"
            raise DecodeError(reason, path=path, hint='close the quote (") or double it')
        yield unparsed + b"\n"


def rows_end(data: bytes, delimiter: str) -> int:
    r"""The end of the last whole row in `data`, which begins with a row; 0 without a whole row.

    A row ends with a line that does not end within quotes. As pyarrow reads them, quotes count if a cell begins with
    them, and a doubled quote within them is a quote of the text.

    >>> rows_end(b'1,"a\nb"\n2,"c\nd', ",")
    8
    """
    content = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(np.isin(content[:-1], _LINE_ENDS))  # \r may be followed by \n, which ends the same line
    if data.endswith(b"\n"):
        ends = np.append(ends, len(data) - 1)
    quotes = np.flatnonzero(content == ord('"'))
    cell_begins = np.isin(content[quotes - 1], [ord(delimiter), *_LINE_ENDS]) | (quotes == 0)
    follows = np.append(False, np.diff(quotes) == 1)  # a doubled quote closes the cell, and opens it again
    if not (cell_begins | follows)[::2].all():
        quotes = _drop_literal_quotes(quotes, cell_begins)
    outside = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def _drop_literal_quotes(quotes: Array, cell_begins: Array) -> Array:
    """Keep the quotes that begin or end quoted text, and drop quotes inside plain cells."""
    quotes_of_cells: list[int] = []
    for quote, begins in zip(quotes.tolist(), cell_begins.tolist(), strict=True):
        is_inside = len(quotes_of_cells) % 2 == 1
        if is_inside or begins or (quotes_of_cells and quotes_of_cells[-1] == quote - 1):
            quotes_of_cells.append(quote)
    return np.array(quotes_of_cells, np.int64)


@contextmanager
def _csv_errors(path: str, names: Sequence[str], before: int = -1) -> Iterator[None]:
    """Raise the errors of pyarrow about rows and values as DecodeError with column and row.

    `before` is the number of rows before those that pyarrow counts, −1 if it counts the header.
    """
    try:
        with arrow_errors(path, _CSV.title):
            yield
    except DecodeError as error:
        text = str(error.__cause__)
        if match := _CONVERSION.match(text):
            column, row = int(match[1]), before + int(match[2]) - 1
            name = names[column] if column < len(names) else None
            reason = f"the value does not fit the column's type, {printable(match[3])}"
            raise DecodeError(reason, path=path, record=row, feature=name, hint=ADVICE, hint_cli=ADVICE_CLI) from error
        if match := _PARSING.match(text):
            reason = printable(match[2])
            advice = "check the quotes and the delimiter, which delimiter= changes"
            advice_cli = "check the quotes and the delimiter, which --delimiter changes"
            raise DecodeError(
                reason, path=path, record=before + int(match[1]) - 1, hint=advice, hint_cli=advice_cli
            ) from error
        if "straddling object" in text:
            raise _too_long(path, LIMITS.text_block_bytes) from error
        raise


def _too_long(path: str, limit: int) -> DecodeError:
    reason = f"a row is longer than {limit >> 20} MiB"
    return DecodeError(reason, path=path, expected=limit, hint='check for a quote (") without its end')


def _can_parse(type_: pa.DataType) -> bool:
    """True if pyarrow parses cells as this type."""
    from pyarrow import csv

    options = csv.ConvertOptions(column_types={"x": type_})
    with suppress(pa.ArrowException):
        csv.read_csv(pa.BufferReader(b"x\n"), convert_options=options)
        return True
    return False


def csv_writer(sink: Any, schema: pa.Schema, delimiter: str = ",") -> _CsvWriter:
    """Open a writer of CSV with a header; ArrowTypeError if a column holds bytes or lists.

    Text is quoted, missing values are empty cells.
    """
    from pyarrow import csv

    _check_delimiter(delimiter)
    for field in schema:  # pyarrow writes bytes that happen to be UTF-8
        if any(check(field.type) for check in (t.is_binary, t.is_large_binary, t.is_fixed_size_binary)):
            raise pa.ArrowTypeError("CSV holds no bytes")
    for at in Column.uncommon_columns(schema):
        if Column(type_ := schema.field(at).type).is_compared_as_storage:
            schema = schema.set(at, schema.field(at).with_type(type_.storage_type))
    return _CsvWriter(csv.CSVWriter(sink, schema, write_options=csv.WriteOptions(delimiter=delimiter)))


class _CsvWriter(AbstractContextManager["_CsvWriter"]):
    """pyarrow's CSV writer, which refuses times outside its range (``<value out of range: -1>``)."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __exit__(self, *error: object) -> None:
        self._writer.__exit__(*error)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """ArrowInvalid for a year without four digits, a time beyond a day, or an offset from UTC with seconds."""
        for at in Column.uncommon_columns(batch.schema):
            if Column(batch.column(at).type).is_compared_as_storage:
                column = batch.column(at).storage
                batch = batch.set_column(at, batch.schema.field(at).with_type(column.type), column)
        for column in batch.columns:
            if not _is_written(column):
                raise pa.ArrowInvalid("a time is out of range")
        self._writer.write_batch(batch)


def _is_written(column: pa.Array) -> bool:
    """True if CSV has a form for all times of a column."""
    type_ = column.type
    if t.is_dictionary(type_):
        return not t.is_temporal(type_.value_type) or _is_written(column.dictionary_decode())
    if t.is_timestamp(type_) and type_.tz is not None:
        local = pc.local_timestamp(column)
        offsets = pc.subtract(local.cast(pa.int64()), column.cast(pa.int64())).drop_null().to_numpy()
        minute = np.timedelta64(1, "m").astype(f"m8[{type_.unit}]").astype(np.int64)
        return not (offsets % minute).any() and _is_written(local)  # pyarrow writes no seconds of an offset
    if t.is_time(type_):
        begin, end = np.array([0, 1], "m8[D]").astype(Column(type_).numpy_dtype).astype(np.int64).tolist()
    elif t.is_date(type_) or (t.is_timestamp(type_) and type_.unit != "ns"):  # nanoseconds end in 2262
        begin, end = np.array(["0000", "10000"], "M8[Y]").astype(Column(type_).numpy_dtype).astype(np.int64).tolist()
    else:
        return True
    earliest, latest = pc.min_max(column).values()
    return not earliest.is_valid or (begin <= earliest.value and latest.value < end)
