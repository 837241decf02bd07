"""Read JSON lines as a stream of record batches, parsed by pyarrow, and write TFRecord files as JSON lines."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Self

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.output.to_json import json_lines
from tfrecord_io.compression import compression_suffixes
from tfrecord_io.errors import DecodeError, printable
from tfrecord_io.file_formats.tables.declared_types import ADVICE, declared_types
from tfrecord_io.file_formats.tables.json_blocks import Block, count_fields, cut, line_blocks
from tfrecord_io.file_formats.tables.json_numbers import (
    has_infinity,
    numbers_by_path,
    overflowing,
    parse_rows,
    with_numbers,
)
from tfrecord_io.file_formats.tables.json_types import decoded, parsed_type, read_type
from tfrecord_io.file_formats.tables.large_integers import inferred_names, may_be_rounded, refuse_rounding
from tfrecord_io.file_formats.tables.source_options import SourceOptions
from tfrecord_io.file_formats.tables.table_files import open_text_file, write_table_file
from tfrecord_io.file_formats.tables.table_source import TableFiles, TableSource
from tfrecord_io.format.expansion import BYTES_PER_CELL, Expansion
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.schema.column_selection import is_glob
from tfrecord_io.schema.field_makers import as_field
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.read.source import Source
from tfrecord_io.write.writer import WriteReport

JSON = (".jsonl", ".ndjson", ".json")

_NESTED = ("to array", "to object", "from array", "from object")
_ROW = re.compile(r"^(?:JSON parse error: )?(.*?)(?: in row (\d+))?$", re.DOTALL)


def json_source(paths: list[str], options: SourceOptions) -> TableSource:
    """The rows of JSON lines files, one file after the other; folders and globs in natural order.

    The types are those that are declared; all others are inferred from the first 8 MiB of the first file. Strings are
    text, and an object with the one key "base64" is bytes.
    """
    suffixes = tuple(suffix + packed for suffix in JSON for packed in ("", *compression_suffixes()))
    files = TableFiles.of(paths, suffixes, options)
    options = files.options
    inferred = _inferred(files, _known_types(options))
    schema = declared_types(inferred, options, _can_parse)
    unexpected = "error"
    if options.schema is not None:
        names = [name for name in Schema.parse(options.schema).names if name in schema.names]
        schema, unexpected = pa.schema([schema.field(name) for name in names]), "ignore"
    files.selected(schema.names)
    parsed = pa.schema([(field.name, parsed_type(field.type) or field.type) for field in schema])

    most_rows = max(1, options.max_expansion // (BYTES_PER_CELL * max(1, _width(pa.struct(list(parsed))))))

    def batches(source: Source, meter: ProgressMeter) -> Generator[pa.RecordBatch]:
        with closing(open_text_file(source, meter)) as file:
            for block in line_blocks(file, source.path):
                for part in cut(block, most_rows, source.path):
                    yield _batch(part, source.path, parsed, schema, unexpected)

    return TableSource(files, schema, batches)


def _width(type_: pa.DataType) -> int:
    """The number of values that a row has, whether it states them or not."""
    if t.is_struct(type_):
        return 1 + sum(_width(child.type) for child in type_)
    return 1


def _check_size(block: Block, path: str, options: SourceOptions) -> None:
    """Refuse fields that pyarrow would make too many columns of: each has a place in each row."""
    rows, fields = count_fields(block.data, options.max_features)
    options.check_count(fields, path)
    expansion, size = Expansion(options.max_expansion, len(block.data)), rows * fields * BYTES_PER_CELL
    if size > expansion.room:
        reason = expansion.excess(f"{rows} rows of {fields} different fields, mostly absent, take {size} bytes")
        advice = f"{expansion.advice(size)}, or convert the objects to lists of keys and values"
        raise DecodeError(reason, path=path, expected=expansion.room, got=size, advice=advice)


def _can_parse(type_: pa.DataType) -> bool:
    return parsed_type(type_) is not None


def _known_types(options: SourceOptions) -> pa.Schema:
    """The declared types by name that pyarrow parses: also of columns that the first lines lack."""
    fields = [] if options.schema is None else [field.to_arrow() for field in Schema.parse(options.schema)]
    overrides = (options.schema_overrides or {}).items()
    fields += [as_field(name, type_).to_arrow() for name, type_ in overrides if not is_glob(name)]
    known = {field.name: parsed_type(field.type) for field in fields}
    return pa.schema([(name, type_) for name, type_ in known.items() if type_ is not None])


def _inferred(files: TableFiles, known: pa.Schema) -> pa.Schema:
    """The schema of the first lines, with the types that are known."""
    for source in files.sources:
        with closing(open_text_file(source)) as file:
            block = next(line_blocks(file, source.path), None)
            if block is not None:
                _check_size(block, source.path, files.options)
                with _json_errors(source.path, block):
                    table = _parse(block, known, "infer", source.path)
                names = files.projection(table.column_names).order(table.column_names)
                _refuse_rounding(block, source.path, table.select(inferred_names(names, files.options)))
                return pa.schema([(field.name, read_type(field.type)) for field in table.schema])
    return known


def _refuse_rounding(block: Block, path: str, inferred: pa.Table) -> None:
    """Raise DecodeError if a column of integers has one beyond int64."""
    rounded = [field for field, column in zip(inferred.schema, inferred.columns, strict=True) if may_be_rounded(column)]
    try:
        numbers = numbers_by_path(parse_rows(block.data)) if rounded else {}
    except ValueError as error:
        reason, advice = "an object is not in one line", "convert the file with jq -c ."
        raise DecodeError(reason, path=path, expected="JSON lines", advice=advice) from error
    for field in rounded:
        for keys, texts in numbers.items():
            if keys[0] == field.name:
                refuse_rounding(texts, field.name, field.type, path)


def _batch(block: Block, path: str, parsed: pa.Schema, schema: pa.Schema, unexpected: str) -> pa.RecordBatch:
    with _json_errors(path, block):
        table = _parse(block, parsed, unexpected, path).select(parsed.names).combine_chunks()
        columns = []
        for name, field in zip(parsed.names, schema, strict=True):
            column = table[name]
            array = column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
            array.validate(full=True)  # UTF-8
            if has_infinity(array):
                _refuse_overflow(block, path, pa.schema([(name, array.type)]))
            columns.append(decoded(array, field.type))
    if not columns:  # the rows remain
        return pa.RecordBatch.from_struct_array(pa.array([{}] * table.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _refuse_overflow(block: Block, path: str, schema: pa.Schema) -> None:
    """Raise DecodeError for the first number that is an infinity in the type of its column, by default float64."""
    types = {field.name: field.type for field in schema}
    try:
        rows = parse_rows(block.data)
    except ValueError:  # an object in several lines
        return
    for row, value in enumerate(rows, block.row):
        for name, item in value.items() if isinstance(value, dict) else ():
            if (type_ := overflowing(item, types.get(name))) is not None:
                reason = f"the number is too large for {type_}"
                raise DecodeError(reason, path=path, record=row, feature=name, expected=str(type_), advice=ADVICE)


def _parse(block: Block, schema: pa.Schema, unexpected: str, path: str) -> pa.Table:
    from pyarrow import json

    parsing = json.ParseOptions(schema, newlines_in_values=False, unexpected_field_behavior=unexpected)

    def read(data: Any) -> pa.Table:
        reading = json.ReadOptions(use_threads=False, block_size=len(data) + 1)  # one block has one inference
        return json.read_json(pa.BufferReader(data), read_options=reading, parse_options=parsing)

    try:
        return read(block.data)
    except pa.ArrowInvalid:
        for data in with_numbers(block.data, schema, inferring=unexpected == "infer"):
            with suppress(pa.ArrowInvalid):
                return read(data)
        _refuse_overflow(block, path, schema)
        raise


@contextmanager
def _json_errors(path: str, block: Block) -> Iterator[None]:
    """Raise the errors of pyarrow as DecodeError with the row."""
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError) as error:
        text = "text is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        match = _ROW.match(text)
        assert match is not None  # all of it is optional
        row = None if match[2] is None else block.row + int(match[2])
        where = "" if match[2] else f"in the lines from {block.row + 1} on: "
        reason = f"{where}{printable(match[1], 300)}"
        advice = ADVICE if "changed from" in text or "convert" in text else None
        if "changed from" in text and any(nested in text for nested in _NESTED):
            advice = "convert the values of such a column to one type first"
        if "Column() changed from object" in text:
            reason = "a line is not an object"
            advice = "JSON lines have one object in each line: convert an array with jq -c '.[]'"
        elif "unexpected field" in text:
            reason = f"{where}a line has a field that the first lines do not have"
            advice = "declare all columns with schema=, which ignores others"
        raise DecodeError(reason, path=path, record=row, expected="JSON lines", advice=advice) from error


def write_json(source: Any, target: Any, **keywords: Any) -> WriteReport:
    """Write TFRecord files as JSON lines, compressed according to the suffix.

    Bytes are an object with the key "base64", NaN and infinities text, dates and times in ISO 8601. Keywords: those of
    `to_npy`, except ``column``.
    """
    return write_table_file(source, target, JsonWriter, keywords, compressed=True)


class JsonWriter:
    """Writes batches as JSON lines, as ``pyarrow.csv.CSVWriter`` writes CSV."""

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        self._sink = sink

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def write_batch(self, batch: pa.RecordBatch) -> None:
        lines = json_lines(pa.Table.from_batches([batch]))
        if lines:
            self._sink.write(("\n".join(lines) + "\n").encode())
