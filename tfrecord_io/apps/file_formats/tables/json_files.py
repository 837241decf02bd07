"""Read JSON lines as a stream of record batches, parsed by pyarrow, and write TFRecord files as JSON lines."""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import math
import re
from collections.abc import Callable, Generator, Iterator, Set
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.apps.file_formats.tables.table_files import SourceOptions, TableFiles, TableSource, open_text_file
from tfrecord_io.apps.file_formats.tables.untyped_columns import (
    ADVICE,
    ADVICE_CLI,
    declared_types,
    floats_in,
    has_large,
    inferred_names,
    is_rounded,
    is_too_large,
    may_be_rounded,
    refuse_rounding,
    rounding_error,
)
from tfrecord_io.base import LIMITS, Expansion
from tfrecord_io.columns import Column, JsonRows, Projection, arrow_file
from tfrecord_io.errors import DecodeError
from tfrecord_io.kit import FORMATS, ProgressMeter, for_cli, printable
from tfrecord_io.store import Source

_LINE_BYTES = 256 << 20
_WRITTEN_BYTES = 4 << 20  # of a batch that become text at once
_NESTED = ("to array", "to object", "from array", "from object")
_SPACE = re.compile(r"[ \t\r\n]*")
_ROW = re.compile(r"^(?:JSON parse error: )?(.*?)(?: in row (\d+))?$", re.DOTALL)
MAX_DEPTH = 100

_STEPS = np.zeros(256, np.int8)  # of the depth, at each byte
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
_IS_MARK = _STEPS != 0
_IS_MARK[ord('"')] = True
# Durations as Python, NumPy and pandas show them; groups: days, hours, minutes, seconds, fraction.
_CLOCK = re.compile(r"(?:(-?[0-9]+) days?, )?([0-9]+):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?")
_ISO_DURATION = re.compile(r"P(?:(-?[0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]{1,9}))?S)?)?")
_COUNT = re.compile(r"(-?[0-9]+) ((?:milli|micro|nano)?seconds)")
_CLOCK_COUNT = re.compile(rf"^{_COUNT.pattern.replace('-?', '')}$")
_NANOSECONDS = {"seconds": 10**9, "milliseconds": 10**6, "microseconds": 10**3, "nanoseconds": 1}
_BASE64 = pa.struct([(JsonRows.BYTES_KEY, pa.string())])
_TEXT = re.compile(rb'(?<=[:\[,])(\s*)"(-?Infinity|NaN)"(?=\s*[,\]}])')
_LONG_INTEGER = re.compile(rb"[:\[,\s-][0-9]{16,}[,\]}\s]")  # beyond which float64 does not have each
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_ITEM = None  # of a list, in a path
_Path = tuple[str | None, ...]
_OF_COCO = {"images", "annotations", "categories"}  # fields of the object that a COCO file is


def json_source(paths: list[str], options: SourceOptions) -> TableSource:
    """The rows of JSON lines files, one file after the other; folders and globs in natural order.

    The types are those that are declared; all others are inferred from the first 8 MiB of the first file. Strings are
    text, and an object with the one key "base64" is bytes.
    """
    files = TableFiles.resolve(paths, (FORMATS.jsonl,), options)
    options = files.options
    inferred = _infer_schema(files)
    schema = declared_types(inferred, options, lambda type_: parsed_type(type_) is not None)
    unexpected = "error"
    if options.schema is not None:
        import tfrecord_io

        present = {*schema.names}
        names = [name for name in tfrecord_io.Schema.parse(options.schema).names if name in present]
        schema, unexpected = pa.schema([schema.field(name) for name in names]), "ignore"
    files.select_names(schema.names)
    if not options.named and {*files.projection(schema.names).order(schema.names)} >= _OF_COCO:
        text = f"'{printable(paths[0])}' looks like a COCO file;"
        hint = "source_format='coco' with images= reads its boxes; source_format='json' reads it as it is"
        hint_cli = "--from coco with --images reads its boxes; --from json reads it as it is"
        raise for_cli(ValueError(f"{text} {hint}"), f"{text} {hint_cli}")
    parsed = pa.schema([(field.name, parsed_type(field.type) or field.type) for field in schema])
    by_values = {*inferred_names(schema.names, options)}

    most_rows = max(
        1, options.limits.expansion_bytes // (Expansion.BYTES_PER_CELL * max(1, _width(pa.struct(list(parsed)))))
    )

    def batches(source: Source, meter: ProgressMeter) -> Generator[pa.RecordBatch]:
        with closing(open_text_file(source, meter)) as file:
            for block in line_blocks(file, source.path):
                for part in cut(block, most_rows, source.path):
                    batch = _batch(part, source.path, parsed=parsed, schema=schema, unexpected=unexpected)
                    _refuse_rounded(part, source.path, batch, by_values)
                    yield batch

    return TableSource(files, schema, batches)


def _width(type_: pa.DataType) -> int:
    """The number of values in a row, including absent ones."""
    if t.is_struct(type_):
        return 1 + sum(_width(child.type) for child in type_)
    return 1


def _check_size(block: Block, path: str, options: SourceOptions) -> None:
    """Refuse fields that pyarrow would make too many columns of: each is stored in each row."""
    rows, fields = count_fields(block.data, options.limits.features)
    options.check_count(fields, path)
    expansion, size = (
        Expansion(options.limits.expansion_bytes, len(block.data)),
        rows * fields * Expansion.BYTES_PER_CELL,
    )
    if size > expansion.room:
        reason = expansion.excess(f"{rows} rows of {fields} different fields, mostly absent, take {size} bytes")
        advice = f"{expansion.advice(size)}, or convert the objects to lists of keys and values"
        raise DecodeError(reason, path=path, expected=expansion.room, got=size, hint=advice)


def _infer_schema(files: TableFiles) -> pa.Schema:
    """The schema of the first lines, with the types that are declared and pyarrow parses: of other columns, too."""
    import tfrecord_io

    options, schema = files.options, tfrecord_io.Schema
    fields = [] if options.schema is None else [field.to_arrow() for field in schema.parse(options.schema)]
    overrides = (options.schema_overrides or {}).items()
    fields += [schema({name: type_})[0].to_arrow() for name, type_ in overrides if not Projection.is_glob(name)]
    types = {field.name: parsed_type(field.type) for field in fields}
    declared = pa.schema([(name, type_) for name, type_ in types.items() if type_ is not None])
    for source in files.sources:
        with closing(open_text_file(source)) as file:
            block = next(line_blocks(file, source.path), None)
            if block is not None:
                _check_size(block, source.path, options)
                with _json_errors(source.path, block):
                    table = _parse(block, declared, "infer", source.path)
                names = files.projection(table.column_names).order(table.column_names)
                _refuse_rounding(block, source.path, table.select(inferred_names(names, options)))
                return pa.schema([(field.name, read_type(field.type)) for field in table.schema])
    return declared


def _refuse_rounding(block: Block, path: str, inferred: pa.Table) -> None:
    """Raise DecodeError if a column of integers has one beyond int64."""
    rounded = [field for field, column in zip(inferred.schema, inferred.columns, strict=True) if may_be_rounded(column)]
    try:
        numbers = numbers_by_path(parse_rows(block.data)) if rounded else {}
    except ValueError as error:
        reason, advice = "an object is not in one line", "convert the file with jq -c ."
        raise DecodeError(reason, path=path, expected="JSON lines", hint=advice) from error
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
            if any(pc.any(pc.is_inf(floats)).as_py() for floats in floats_in(array)):
                _refuse_overflow(block, path, pa.schema([(name, array.type)]))
            columns.append(decode_column(array, field.type))
    if not columns:  # the rows remain
        return pa.RecordBatch.from_struct_array(pa.array([{}] * table.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _refuse_overflow(block: Block, path: str, schema: pa.Schema) -> None:
    """Raise DecodeError for the first number that is an infinity in the type of its column, by default float64."""
    for row, name, type_ in _numbers(block, schema, overflowing):
        reason = f"the number is too large for {type_}"
        raise DecodeError(
            reason, path=path, record=row, feature=name, expected=str(type_), hint=ADVICE, hint_cli=ADVICE_CLI
        )


def _refuse_rounded(block: Block, path: str, batch: pa.RecordBatch, names: Set[str]) -> None:
    """Raise DecodeError for the first integer that a column of floats would round."""
    columns = zip(batch.schema, batch.columns, strict=True)
    large = pa.schema([field for field, column in columns if field.name in names and has_large(column)])
    if not large or not _LONG_INTEGER.search(block.data):
        return
    for row, name, _ in _numbers(block, large, rounding_type):
        raise rounding_error(path, row, name, large.field(name).type)


_Find = Callable[[str, pa.DataType | None], pa.DataType | None]


def _numbers(block: Block, schema: pa.Schema, find: _Find) -> Iterator[tuple[int, str, pa.DataType]]:
    """The rows and names of columns with a number for which `find` returns a type, and this type."""
    rows = _values(block.data, parse_int=_Number, parse_float=_Number)
    for row, value in enumerate(rows, block.row):
        for path, number, number_type in numbers_in(value, pa.struct(list(schema))) if isinstance(value, dict) else ():
            if (type_ := find(number, number_type)) is not None:
                yield row, str(path[0]), type_


def _parse(block: Block, schema: pa.Schema, unexpected: str, path: str) -> pa.Table:
    from pyarrow import json

    def read(data: Any, schema: pa.Schema = schema) -> pa.Table:
        parsing = json.ParseOptions(schema, newlines_in_values=False, unexpected_field_behavior=unexpected)
        reading = json.ReadOptions(use_threads=False, block_size=len(data) + 1)  # one block has one inference
        table = json.read_json(arrow_file(data), read_options=reading, parse_options=parsing)
        try:
            table.validate()
        except pa.ArrowInvalid:  # nulls are missing in lists, unless the type of their items is known and not null
            if not table.schema.equals(schema):
                return read(data, table.schema)
            columns = [[_restore_type(chunk, chunk.type) for chunk in column.chunks] for column in table.columns]
            return pa.table([*map(pa.chunked_array, columns)], schema=table.schema)
        return table

    try:
        return read(block.data)
    except pa.ArrowInvalid:
        for data in rewrite_numbers(block.data, schema, inferring=unexpected == "infer"):
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
        invalid = "" if not text.startswith("JSON parse error: ") or "Column(" in text else "not valid JSON: "
        reason = f"{where}{invalid}{printable(match[1].removesuffix('.'), 300)}"
        is_of_type = any(part in text for part in ("changed from", "convert", "parse string"))
        advice = ADVICE if is_of_type else None
        advice_cli = ADVICE_CLI if is_of_type else None
        if "changed from" in text and any(nested in text for nested in _NESTED):
            advice = "convert the values of such a column to one type first"
            advice_cli = "convert the values of such a column to one type first"
        if "Column() changed from object" in text:
            reason = "a line is not an object"
            advice = "JSON lines have one object in each line: convert an array with jq -c '.[]'"
            advice_cli = "JSON lines have one object in each line: convert an array with jq -c '.[]'"
        elif "unexpected field" in text:
            reason = f"{where}a line has a field that the first lines do not have"
            advice = "declare all columns with schema=, which ignores others"
            advice_cli = "declare its type with --type"
        raise DecodeError(
            reason, path=path, record=row, expected="JSON lines", hint=advice, hint_cli=advice_cli
        ) from error


class JsonWriter(AbstractContextManager["JsonWriter"]):
    """Writes batches as JSON lines, as ``pyarrow.csv.CSVWriter`` writes CSV.

    Bytes are an object with the key "base64", NaN and infinities text, dates and times in ISO 8601. Maps, unions and
    intervals have the form of `plain_form`, which JSON can be read back from.
    """

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        self._sink = sink

    def __exit__(self, *error: object) -> None:
        pass

    def write_batch(self, batch: pa.RecordBatch) -> None:
        rows = 1 + len(batch) * _WRITTEN_BYTES // max(1, batch.nbytes)  # as text they take several times as much
        for at in Column.uncommon_columns(batch.schema):
            column = Column(batch.column(at).type).to_plain_form(batch.column(at))
            batch = batch.set_column(at, batch.schema.field(at).with_type(column.type), column)
        for begin in range(0, len(batch), rows):
            lines = JsonRows(pa.Table.from_batches([batch.slice(begin, rows)])).json_lines()
            self._sink.write(("\n".join(lines) + "\n").encode())


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, and the number of rows before them in the file."""

    data: bytes
    row: int


def line_blocks(file: Any, path: str) -> Iterator[Block]:
    """The lines of a binary file in blocks of about 8 MiB; blocks of blank lines, and a byte order mark, are left out.

    Raises
    ------
    DecodeError
        A line is longer than 256 MiB, or nested more than 100 levels deep.
    """
    row, parts, ended = 0, [file.read(3).removeprefix(codecs.BOM_UTF8)], False
    while not ended:
        data = file.read(LIMITS.text_block_bytes)
        ended = len(data) < LIMITS.text_block_bytes
        end = len(data) if ended else data.rfind(b"\n") + 1
        if not end and not ended:
            parts.append(data)
            if sum(map(len, parts)) > _LINE_BYTES:
                reason = f"a line is longer than {_LINE_BYTES >> 20} MiB"
                advice = "JSON lines have one object in each line: convert an array with jq -c '.[]'"
                raise DecodeError(reason, path=path, record=row, expected=_LINE_BYTES, hint=advice)
            continue
        block = b"".join([*parts, data[:end]])
        parts = [data[end:]]
        if block.strip():
            _check_depth(block, path, row)
            yield Block(block, row)
            row += 0 if ended else sum(1 for line in block.split(b"\n") if line.strip())


def count_fields(block: bytes, max_fields: int) -> tuple[int, int]:
    """The number of objects in a block of at most 100 levels, and of their different fields at all levels.

    It ends where there are more than `max_fields` fields, or text that is not JSON, on which pyarrow ends, too.

    >>> count_fields(b'{"a": 1, "b": [{"a": 2}]}\\n{"a": {"c": 3}}\\n', 10)
    (2, 4)
    """
    tree: _Tree = {}
    fields = rows = 0
    for value in _values(block, object_pairs_hook=tuple, parse_int=float):
        fields, rows = fields + _new_fields(value, tree), rows + 1
        if fields > max_fields:
            break
    return rows, fields


def _values(block: bytes, **hooks: Any) -> Iterator[Any]:
    """The values of a block, which may take several lines, up to what is not JSON; `hooks` are those of a decoder."""
    text = block.decode("utf-8", "surrogateescape")
    text = text.replace("Infinity", "Inf").replace("Inf", "Infinity")  # pyarrow parses both
    decode = json.JSONDecoder(**hooks, strict=False).raw_decode
    at = 0
    while (space := _SPACE.match(text, at)) is not None and space.end() < len(text):
        try:
            value, at = decode(text, space.end())
        except ValueError:
            return
        yield value


_Tree = dict[str, "_Tree"]


def _new_fields(value: Any, known_fields: _Tree) -> int:
    """Add the fields of a value, whose objects are tuples of pairs, to those that are known; returns their number."""
    if isinstance(value, list):
        return sum(_new_fields(item, known_fields) for item in value if isinstance(item, list | tuple))
    new = 0
    for name, item in value if isinstance(value, tuple) else ():
        if name not in known_fields:
            known_fields[name] = {}
            new += 1
        if isinstance(item, list | tuple):
            new += _new_fields(item, known_fields[name])
    return new


def cut(block: Block, most_rows: int, path: str) -> Iterator[Block]:
    """Cut a block into blocks of at most `most_rows`."""
    if block.data.count(b"\n") < most_rows:
        yield block
        return
    lines = [line for line in block.data.split(b"\n") if line.strip()]
    if not all(line.strip().startswith(b"{") and line.strip().endswith(b"}") for line in lines):
        reason, advice = "an object with so many columns is not in one line", "convert the file with jq -c ."
        raise DecodeError(reason, path=path, record=block.row, expected="JSON lines", hint=advice)
    for begin in range(0, len(lines), most_rows):
        yield Block(b"\n".join(lines[begin : begin + most_rows]) + b"\n", block.row + begin)


def _check_depth(block: bytes, path: str, row: int) -> None:
    """Refuse values nested too deep, in one line or over several, as pyarrow parses a block as one text."""
    if b"\\" in block:  # the quotes that are left begin and end strings
        block = block.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
    codes = np.frombuffer(block, np.uint8)
    marks = codes[_IS_MARK[codes]]
    steps = _STEPS[marks]
    steps[np.cumsum(marks == ord('"')) % 2 == 1] = 0  # in strings
    depth = np.cumsum(steps)
    if depth.max(initial=0) > MAX_DEPTH:
        before = slice(int(np.argmax(depth > MAX_DEPTH)))
        rows = np.count_nonzero((depth[before] == 0) & (steps[before] < 0))
        reason = f"values are nested more than {MAX_DEPTH} levels deep"
        raise DecodeError(reason, path=path, record=row + int(rows), expected=MAX_DEPTH)


def read_type(inferred: pa.DataType) -> pa.DataType:
    """The type of a column of which pyarrow inferred another: text is never a time, and base64 objects are bytes.

    >>> read_type(pa.list_(pa.timestamp("s"))), read_type(pa.struct([("base64", pa.string())]))
    (ListType(list<item: string>), DataType(binary))
    """
    if t.is_timestamp(inferred):
        return pa.string()
    if inferred == _BASE64:
        return pa.binary()
    if t.is_list(inferred):
        return pa.list_(read_type(inferred.value_type))
    if t.is_struct(inferred):
        return pa.struct([(child.name, read_type(child.type)) for child in inferred])
    return inferred


def parsed_type(type_: pa.DataType) -> pa.DataType | None:
    """The type that pyarrow parses for a column of `type_`; None if it parses none.

    >>> parsed_type(pa.list_(pa.binary()))
    ListType(list<item: struct<base64: string>>)
    """
    if t.is_binary(type_) or t.is_large_binary(type_) or t.is_fixed_size_binary(type_):
        return _BASE64
    if (form := Column(type_).plain_form) != type_:
        return parsed_type(form)
    if t.is_dictionary(type_):
        return parsed_type(type_.value_type)
    if t.is_struct(type_):
        children = {child.name: parsed_type(child.type) for child in type_}
        return None if None in children.values() else pa.struct(list(children.items()))
    if Column(type_).is_list and not isinstance(type_, pa.BaseExtensionType):
        item = parsed_type(type_.value_type)
        return None if item is None else pa.list_(item)
    if t.is_nested(type_) or isinstance(type_, pa.BaseExtensionType):
        return None
    if t.is_float16(type_):
        return pa.float32()
    is_text = t.is_large_string(type_) or t.is_temporal(type_)
    return pa.string() if is_text else type_


def decode_column(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """A parsed array as its column: objects with base64 become bytes, text in the form of ISO 8601 dates and times.

    ArrowInvalid if text is not base64 or of this form, or a value does not fit.
    """
    form = type_.value_type if t.is_dictionary(type_) else Column(type_).plain_form
    array = _restore_type(array, form)
    array = array if array.type == form else array.cast(form)
    return array if form == type_ else Column(type_).from_plain_form(array)


def _restore_type(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if t.is_dictionary(type_):
        return _restore_type(array, type_.value_type)
    if array.type == _BASE64 and not t.is_struct(type_):
        return _bytes(array)
    if t.is_timestamp(type_) and t.is_string(array.type):
        return _timestamps(array, type_)
    if t.is_time(type_) and t.is_string(array.type):
        return _times(array, type_)
    if t.is_duration(type_) and t.is_string(array.type):
        return pa.array([_duration(text, type_.unit) for text in array.to_pylist()], pa.int64()).view(type_)
    if t.is_float16(type_) and pc.any(pc.and_(pc.is_finite(array), pc.greater_equal(pc.abs(array), 65520))).as_py():
        raise pa.ArrowInvalid("a number is too large for float16")  # it would become an infinity
    if t.is_struct(array.type):
        children = [_restore_type(array.field(at), child.type) for at, child in enumerate(type_)]
        names = [child.name for child in type_]
        return pa.StructArray.from_arrays(children, names, mask=array.is_null())
    if t.is_list(array.type):
        of_nulls = t.is_null(array.type.value_type)
        values = pa.nulls(array.offsets[-1].as_py()) if of_nulls else _restore_type(array.values, type_.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, mask=array.is_null())
    return array


def _bytes(array: pa.Array) -> pa.Array:
    nulls = array.is_null().to_pylist()
    texts = array.field(0).to_pylist()
    values = []
    for missing, text in zip(nulls, texts, strict=True):
        if not missing and text is None:
            raise pa.ArrowInvalid(f'an object with the key "{JsonRows.BYTES_KEY}" has no text')
        try:
            values.append(None if missing else base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError) as error:
            raise pa.ArrowInvalid(f'the text of an object with the key "{JsonRows.BYTES_KEY}" is not base64') from error
    return pa.array(values, pa.binary())


def _timestamps(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Text as timestamps, with an offset where they have a zone, and only there.

    pyarrow's reader of JSON takes the hours of UTC for those of a type without a zone, and the other way round.
    """
    finest = "ns" if type_.unit == "ns" else "us"  # ISO 8601 of Python, which is written, has six digits
    try:
        return array.cast(pa.timestamp(finest, type_.tz)).cast(type_)
    except pa.ArrowInvalid as error:
        text = str(error).partition(". If these")[0]  # the rest is advice for users of pyarrow
        raise pa.ArrowInvalid(text) from error


def _times(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Text such as 12:30 and 12:30:00.5 as times, which pyarrow parses of timestamps only.

    Times of nanoseconds, of which Python has no clock, are written as their number since midnight.
    """
    if pc.any(pc.match_substring(array, "seconds")).as_py():
        array = pa.array([text and _CLOCK_COUNT.sub(_clock_text, text) for text in array.to_pylist()], pa.string())
    parsed = pa.timestamp("ns" if type_.unit == "ns" else "us")
    times = pc.binary_join_element_wise("1970-01-01", array, "T").cast(parsed)
    return times.cast(pa.timestamp(type_.unit)).cast(type_)


def _clock_text(match: re.Match[str]) -> str:
    """The time of day, in ISO 8601, that a number of seconds or parts of them has since midnight."""
    seconds, nanoseconds = divmod(int(match[1]) * _NANOSECONDS[match[2]], 10**9)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{nanoseconds:09}"


def _duration(text: str | None, unit: str) -> int | None:
    """A duration in a unit, of the text that is written: of Python, of NumPy beyond its years, of pandas in ISO 8601.

    >>> _duration("-1 day, 23:59:59.5", "ms"), _duration("P1DT0H0M0.000000001S", "ns"), _duration("90 seconds", "us")
    (-500, 86400000000001, 90000000)
    """
    if text is None:
        return None
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    if match := _COUNT.fullmatch(text):
        total = int(match[1]) * _NANOSECONDS[match[2]]
    elif match := _CLOCK.fullmatch(text) or _ISO_DURATION.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
        total = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 10**9 + int((match[5] or "").ljust(9, "0") or 0)
    else:
        raise pa.ArrowInvalid(f"'{printable(text, 60)}' is not a duration, such as 1 day, 0:00:30 or P1DT0H0M30S")
    value, remainder = divmod(total * per_second[unit], 10**9)
    if remainder or not -(2**63) <= value < 2**63:
        raise pa.ArrowInvalid(f"the duration '{printable(text, 60)}' is not a number of {unit} in 64 bits")
    return value


class _Number(str):
    """A number as it is written."""


def rewrite_numbers(lines: bytes, schema: pa.Schema, *, inferring: bool) -> Iterator[bytes]:
    """JSON lines with bare NaN and Infinity, which pyarrow parses as numbers, instead of text, and text for numbers.

    First NaN in all places, if the types are known; then by type: text becomes a number in columns of floats and, while
    `inferring`, in unknown ones that hold numbers; numbers become text in columns of text. None if a number is beyond
    float64.

    >>> schema = pa.schema({"x": pa.float32(), "s": pa.string()})
    >>> list(rewrite_numbers(b'{"x": "NaN", "s": 1.50}', schema, inferring=True))
    [b'{"x": NaN, "s": "1.50"}']
    """
    if not inferring:
        numbers, count = _TEXT.subn(rb"\1\2", lines)
        if count:
            yield numbers
    with suppress(ValueError):
        rows = parse_rows(lines)
        numeric = set(numbers_by_path(rows)) if inferring else set()
        type_ = pa.struct(list(schema))
        yield "\n".join(json.dumps(_convert_value(row, type_, (), numeric)) for row in rows).encode()


def parse_rows(lines: bytes) -> list[Any]:
    """The values of JSON lines, their numbers as text. ValueError if a line is not JSON, or repeats a key."""
    return [
        json.loads(line.decode(), parse_int=_Number, parse_float=_Number, object_pairs_hook=_unique)
        for line in lines.split(b"\n")
        if line.strip()
    ]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(value := dict(pairs)) < len(pairs):
        raise ValueError("an object has a key twice")
    return value


def numbers_by_path(rows: list[Any]) -> dict[_Path, list[str]]:
    """Numbers of rows by their path of keys; the key of list items is None.

    >>> numbers_by_path(parse_rows(b'{"a": [1, "x"]}'))
    {('a', None): ['1']}
    """
    numbers: dict[_Path, list[str]] = {}
    for row in rows:
        for path, number, _ in numbers_in(row, None):
            numbers.setdefault(path, []).append(number)
    return numbers


def numbers_in(
    value: Any, type_: pa.DataType | None, path: _Path = ()
) -> Iterator[tuple[_Path, str, pa.DataType | None]]:
    """The numbers at all levels of a value of parsed rows: their paths, and types where that of the value has some."""
    if isinstance(value, _Number):
        yield path, value, type_
    elif isinstance(value, list):
        item_type = _type_at(type_, _ITEM)
        for item in value:
            yield from numbers_in(item, item_type, (*path, _ITEM))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from numbers_in(item, _type_at(type_, name), (*path, name))


def _type_at(type_: pa.DataType | None, key: str | None) -> pa.DataType | None:
    """The type of a list's items or of a struct's field; None if it has no such part."""
    if type_ is None:
        return None
    if key is _ITEM:
        return type_.value_type if Column(type_).is_list else None
    at = type_.get_field_index(key) if t.is_struct(type_) else -1
    return type_.field(at).type if at >= 0 else None


def overflowing(number: str, type_: pa.DataType | None) -> pa.DataType | None:
    """The type of floats that cannot hold a number, by default float64; None if it can, or the column is text."""
    of_floats = pa.float64() if type_ is None or not t.is_floating(type_) else type_
    is_text = type_ is not None and not t.is_primitive(type_)
    return of_floats if not is_text and is_too_large(number, of_floats) else None


def rounding_type(number: str, type_: pa.DataType | None) -> pa.DataType | None:
    """The type, if it is float64 and rounds an integer."""
    return type_ if type_ is not None and t.is_float64(type_) and is_rounded(number) else None


def _convert_value(value: Any, type_: pa.DataType | None, path: _Path, numeric: set[_Path]) -> Any:
    """A value for pyarrow; `numeric` has the paths of numbers whose types are inferred."""
    if isinstance(value, _Number):
        if type_ is not None and (t.is_string(type_) or t.is_large_string(type_)):
            return str(value)
        if math.isinf(number := float(value)):
            raise ValueError("the number is too large")
        return number if set(value) & set(".eE") or value == "-0" else int(value)
    if isinstance(value, str):
        is_number = path in numeric if type_ is None else t.is_floating(type_)
        return _NUMBERS.get(value, value) if is_number else value
    if isinstance(value, list):
        item_type = _type_at(type_, _ITEM)
        return [_convert_value(item, item_type, (*path, _ITEM), numeric) for item in value]
    if isinstance(value, dict):
        return {
            name: _convert_value(item, _type_at(type_, name), (*path, name), numeric) for name, item in value.items()
        }
    return value
