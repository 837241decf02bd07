"""Column indexes: the offset of each record of a file, and some of its columns, in a file next to it.

``x.tfrecord.column_index`` has, for groups of records, a chunk with the bytes of each record's frame and one for each
column, then

- a description as JSON: the file's name and version, the `Fingerprint` of its content, whether its first record has an
  embedded schema, the number of groups, and how each column was read: only a read by an equal field has equal values;
- a table of int64: for each group the number of records and the offset of the first record; for each chunk the offset,
  the number of bytes, the CRC32C and the `ChunkShape` without the number of rows;
- a tail: the bytes of the description and of the table, the CRC32C of both as a 64-bit number, and `_MAGIC`.

Numbers are little-endian. Anybody can write a right checksum, so no content is trusted: types are those of the reader's
fields, which the description has as text, and numbers are checked before they are used.

`write_columns` writes the file, a `ColumnIndex` reads it. `column_chunk` packs the values of a chunk.

Tests: tests/read/index/test_column_index.py.
"""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import sub
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import LIMITS, MIB, Expansion
from tfrecord_io.bytes import FrameHeader, crc32c
from tfrecord_io.columns import ArrayBuffers, Column, Projection, int64_array
from tfrecord_io.errors import CorruptRecordError, SchemaError
from tfrecord_io.read.index.column_chunk import ChunkShape, is_variable, pack_chunk, stored_type, unpack_chunk
from tfrecord_io.read.index.fingerprint import Fingerprint
from tfrecord_io.read.index.record_index import RecordIndex
from tfrecord_io.store import BlockReader, FileName, RandomAccessFile

COLUMNS_SUFFIX = FileName.COLUMN_INDEX_SUFFIX
ALL_SCALARS = "*scalars"  # in the columns of an index: all of single values
REWRITE_COLUMNS = "rewrite it (tfr index --columns)"

_MAGIC = b"TFRCOLS1"
_TAIL = struct.Struct("<QQQ8s")
_WHOLE_BYTES = MIB  # an index up to this size is read at once
_TAIL_BYTES = 64 << 10  # read first, of a file above `_WHOLE_BYTES`
_GROUP_ROWS = 1 << 17
_MOST_BYTES = 1 << 61  # of a file: offsets are sums
_GROUP_NUMBERS, _CHUNK_NUMBERS = 2, 6
_PYARROW_ERRORS = (pa.ArrowException, OSError, ValueError, KeyError, OverflowError)  # for a file that is damaged


# Writing ---------------------------------------------------------------------------------------------------------


def is_indexable(field: pa.Field) -> bool:
    """True if an index can have a column of single values."""
    stored = stored_type(field.type)
    return not Column(stored).is_tensor and (
        t.is_primitive(stored) or t.is_decimal(stored) or t.is_fixed_size_binary(stored) or is_variable(stored)
    )


def check_fields(fields: Iterable[pa.Field]) -> pa.Schema:
    """The schema of columns that an index can have; SchemaError for another one."""
    schema = pa.schema(list(fields))
    for field in schema:
        if not is_indexable(field):
            reason = f"a column index has columns of single values, not of {Column(field).logical_name}"
            raise SchemaError(reason, feature=field.name, of_argument=True)
    return schema


def expand_scalars(columns: Sequence[str] | str, fields: Iterable[pa.Field], path: str | None = None) -> Sequence[str]:
    """The columns of an index, with `ALL_SCALARS` replaced by all of `fields` that it can have.

    SchemaError, with the `path` of the file, if it can have none of them.
    """
    entries = Projection.entries(columns)
    if ALL_SCALARS not in entries:
        return entries
    scalars = [field.name for field in fields if is_indexable(field)]
    if not scalars:
        raise SchemaError("no column has single values", path=path)
    return list(dict.fromkeys([*scalars, *(entry for entry in entries if entry != ALL_SCALARS)]))


def write_columns(
    sink: Any,
    name: str,
    records: RecordIndex,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    fingerprint: Fingerprint,
    *,
    has_schema: bool = False,
    version: str = "",
    identity: Mapping[str, int] | None = None,
) -> None:
    """Write the column index of a file of this name, with the values of all its records, to a binary file.

    `has_schema`: the first record has an embedded schema. `version`: that of the file (`RandomAccessFile.version`),
    `identity`: its `untouched_state`.
    """
    numbers = []
    sink.write(_MAGIC)
    at, done, groups = len(_MAGIC), 0, 0
    for values in _groups(batches):
        rows = slice(done, done := done + len(values))
        numbers += [len(values), int(records.bounds[rows.start])]
        stored = [pa.chunked_array([int64_array(np.diff(records.bounds[rows.start : done + 1]))])]
        stored += [column.cast(stored_type(column.type)) for column in values.columns]
        for column in stored:
            content, shape = pack_chunk(column.combine_chunks())
            numbers += [at, len(content), crc32c(content), shape.nulls, shape.values, shape.size]
            sink.write(content)
            at += len(content)
        groups += 1
    header = {"file": name, "version": version, "embedded_schema": has_schema, "groups": groups}
    header |= {"content": fingerprint.to_json(), "identity": dict(identity or {})}
    description = json.dumps({**header, "columns": [_describe_field(field) for field in schema]}).encode()
    table = np.array(numbers, "<i8").tobytes()
    checksum = crc32c(table, crc32c(description))
    sink.write(description + table + _TAIL.pack(len(description), len(table), checksum, _MAGIC))


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables of about `_GROUP_ROWS` rows; of fewer if they are large, whose columns become an array each."""
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        pending.append(batch)
        size += batch.nbytes
        if size >= LIMITS.batch_bytes or sum(map(len, pending)) >= _GROUP_ROWS:
            yield pa.Table.from_batches(pending)
            pending, size = [], 0
    if pending:
        yield pa.Table.from_batches(pending)


def _describe_field(field: pa.Field) -> list[Any]:
    """How a column is read, as JSON: fields are equal if their descriptions are."""
    metadata = sorted((field.metadata or {}).items())
    texts = [[b64encode(part).decode() for part in item] for item in metadata]
    return [field.name, str(field.type), field.nullable, texts]


# Reading ---------------------------------------------------------------------------------------------------------


class _Chunk(NamedTuple):
    """Where a chunk is."""

    offset: int
    size: int
    crc: int
    shape: ChunkShape


class _Group(NamedTuple):
    """The chunks of some records: of their sizes, then of the columns."""

    rows: int
    offset: int
    chunks: Sequence[_Chunk]


class ColumnIndex:
    """An open column index, or the part for a span of its file; what it states is checked where read."""

    def __init__(
        self, opened: RandomAccessFile, path: str, data_bytes: int, span: tuple[int, int] | None = None
    ) -> None:
        """Open the column index of a file of `data_bytes`; CorruptRecordError if it is none.

        Of the rows, those of the records in a `span` of the file are read, and some before and after it.
        """
        self.path, self._opened, self._data_bytes = path, opened, data_bytes
        self.is_certain = False  # whether the whole content of the file is known to be that of the index
        size = opened.size
        self._held = opened.read(0 if size <= _WHOLE_BYTES else size - _TAIL_BYTES, size).tobytes()  # its end
        description, table, end = self._directory()
        with _convert_errors(path):
            header = _parse(description)
            self._fields: dict[str, list[Any]] = {column[0]: column for column in header["columns"]}
            self.has_schema: bool = header["embedded_schema"]  # in the first record of the file
            # `version` and `identity` of its `RandomAccessFile` when the index was written; empty if unknown.
            self.version: str = header["version"]
            self.identity = header.get("identity") or {}
            self.content = Fingerprint.parse(header["content"])
            groups = self._parse_groups(table, header["groups"], end)
        self._refuse_more_rows_than_fit(sum(group.rows for group in groups))
        begins = [group.offset for group in groups]
        part = _groups_of_span(begins, span)
        self._groups = groups[part]
        first = sum(group.rows for group in groups[: part.start])
        self.numbers = range(first, first + sum(group.rows for group in self._groups))  # of the records that are read
        self.is_last = part.stop == len(groups)  # whether the last record of the file is read
        self.most_bytes = max(map(sub, [*begins[1:], data_bytes], begins), default=0)  # of a group, so of a record

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._fields)

    def has(self, field: pa.Field) -> bool:
        """True if the index has the values of a column as this field reads them."""
        return self._fields.get(field.name) == _describe_field(field)

    def records(self) -> RecordIndex:
        """The offsets of the records."""
        chunks = self._read([(0, pa.int64())])[0]
        parts = [ArrayBuffers(chunk).numbers for chunk in chunks]
        are_sizes = all(chunk.null_count == 0 for chunk in chunks) and all(
            (part >= FrameHeader.FRAME_BYTES).all() for part in parts
        )
        if are_sizes and sum(float(sizes.sum(dtype=np.float64)) for sizes in parts) <= _MOST_BYTES:
            index = RecordIndex.from_parts(parts, self._groups[0].offset if self._groups else 0)
            firsts = np.cumsum([0, *(group.rows for group in self._groups)])[:-1]
            offsets = [group.offset for group in self._groups]
            is_begin = self.numbers.start > 0 or not offsets or offsets[0] == 0
            if is_begin and index.bounds[firsts].tolist() == offsets:
                return index
        reason = "its rows are not the records of a file, each of which begins where the last one ends"
        raise CorruptRecordError(f"the column index: {reason}", path=self.path, hint=REWRITE_COLUMNS)

    def columns(self, fields: Iterable[pa.Field]) -> pa.Table:
        """The values of columns, which it `has`, a row for each record."""
        fields, places = list(fields), {name: at for at, name in enumerate(self._fields, 1)}
        chunks = self._read([(places[field.name], stored_type(field.type)) for field in fields])
        with _convert_errors(self.path):
            size = sum(_text_bytes(chunk) for column in chunks for chunk in column)
            if size > self._data_bytes + Expansion.DEFAULT_BYTES:
                reason = f"its texts have {size} bytes, and the file {self._data_bytes}"
                raise CorruptRecordError(f"the column index: {reason}", path=self.path, hint=REWRITE_COLUMNS)
            columns = []
            for chunks_of_column, field in zip(chunks, fields, strict=True):
                stored = stored_type(field.type)
                column = pa.chunked_array([chunk.cast(stored) for chunk in chunks_of_column], stored)
                column = column.dictionary_encode() if t.is_dictionary(field.type) else column
                columns.append(column.cast(field.type))
        return pa.table(columns, names=[field.name for field in fields])

    # The file ---------------------------------------------------------------------------------------------------

    def _refuse_more_rows_than_fit(self, rows: int) -> None:
        """Raise CorruptRecordError if a file of this size cannot have so many records, before memory is allocated."""
        if rows > self._data_bytes // FrameHeader.FRAME_BYTES:
            reason = f"it has {rows} rows, more than a file of {self._data_bytes} bytes has records"
            reason = f"the column index does not match its file: {reason}"
            raise CorruptRecordError(reason, path=self.path, hint=f"{REWRITE_COLUMNS}, or delete it")

    def _directory(self) -> tuple[bytes, bytes, int]:
        """The description and the table, once their checksum has been compared, and the end of the chunks."""
        size = self._opened.size
        if self._held[-len(_MAGIC) :] != _MAGIC or size < len(_MAGIC) + _TAIL.size:
            raise self._damage_error("it is not a column index, or truncated")
        description, table, checksum, _ = _TAIL.unpack(self._held[-_TAIL.size :])
        end = size - _TAIL.size - table - description
        if end < len(_MAGIC):
            raise self._damage_error("the file is truncated")
        if size - end > len(self._held):
            self._held = self._opened.read(end, size).tobytes()
        content = self._held[end - size : -_TAIL.size]
        if crc32c(content) != checksum:
            raise self._damage_error("the checksum of its directory does not match")
        return content[:description], content[description:], end

    def _parse_groups(self, table: bytes, count: int, end: int) -> list[_Group]:
        """The groups of the table; ValueError where a number is out of range."""
        columns = 1 + len(self._fields)
        width = _GROUP_NUMBERS + _CHUNK_NUMBERS * columns
        if len(table) != 8 * count * width:
            raise ValueError(f"its table has {len(table)} bytes")
        groups = []
        for numbers in np.frombuffer(table, "<i8").reshape(count, width).tolist():
            rows, offset = numbers[:_GROUP_NUMBERS]
            if rows < 0 or not 0 <= offset <= _MOST_BYTES:
                raise ValueError(f"it has a group of {rows} records at byte {offset}")
            chunks = [
                _parse_chunk(end, rows, *numbers[at : at + _CHUNK_NUMBERS])
                for at in range(_GROUP_NUMBERS, width, _CHUNK_NUMBERS)
            ]
            groups.append(_Group(rows, offset, chunks))
        return groups

    def _read(self, columns: Sequence[tuple[int, pa.DataType]]) -> list[list[pa.Array]]:
        """The arrays of columns, given by number and type, of each group; read by as few requests as possible."""
        wanted = [group.chunks[number] for number, _ in columns for group in self._groups]
        fetched = self._fetch(wanted)
        arrays, most_text = [], self._data_bytes + Expansion.DEFAULT_BYTES
        with _convert_errors(self.path):
            for chunk in wanted:
                if crc32c(fetched[chunk]) != chunk.crc:
                    raise ValueError(f"the checksum of bytes {chunk.offset} to {chunk.offset + chunk.size} differs")
            for (_, type_), at in zip(columns, range(0, len(wanted), len(self._groups) or 1), strict=False):
                column = []
                for chunk in wanted[at : at + len(self._groups)]:
                    column.append(unpack_chunk(fetched[chunk], type_, chunk.shape, most_text))
                    most_text -= chunk.shape.size if is_variable(type_) else 0
                arrays.append(column)
        return arrays if wanted else [[] for _ in columns]

    def _fetch(self, chunks: Iterable[_Chunk]) -> dict[_Chunk, BlockReader.Buffer | bytes]:
        distinct, first = sorted(set(chunks), key=lambda chunk: chunk.offset), self._opened.size - len(self._held)
        missing = [chunk for chunk in distinct if chunk.offset < first]
        begins, ends = [chunk.offset for chunk in missing], [chunk.offset + chunk.size for chunk in missing]
        answers = self._opened.read_all(begins, ends) if missing else []
        fetched: dict[_Chunk, BlockReader.Buffer | bytes] = dict(zip(missing, answers, strict=True))
        for chunk in distinct[len(missing) :]:
            begin = chunk.offset - first
            fetched[chunk] = self._held[begin : begin + chunk.size]
        return fetched

    def _damage_error(self, reason: str) -> CorruptRecordError:
        reason = f"the column index cannot be read: {reason}"
        return CorruptRecordError(reason, path=self.path, hint=REWRITE_COLUMNS)


def _groups_of_span(begins: Sequence[int], span: tuple[int, int] | None) -> slice:
    """The groups that have the records in a span of the file, by the offset at which each group begins."""
    if span is None:
        return slice(0, len(begins))
    first = max(0, bisect_right(begins, span[0]) - 1)
    return slice(first, max(first, bisect_left(begins, span[1])))


def _parse(description: bytes) -> dict[str, Any]:
    """The description; ValueError if something in it is not as `write_columns` states it."""
    try:
        header = json.loads(description)
    except RecursionError as error:
        raise ValueError("its description is nested too deeply") from error
    types = {"version": str, "embedded_schema": bool, "groups": int, "columns": list}
    if not isinstance(header, dict) or any(type(header.get(key)) is not type_ for key, type_ in types.items()):
        raise ValueError("its description is of another form")
    columns = header["columns"]
    if not all(isinstance(column, list) and len(column) == 4 and isinstance(column[0], str) for column in columns):
        raise ValueError("its description has other columns")
    if header["groups"] < 0 or len({column[0] for column in columns}) < len(columns):
        raise ValueError("its description contradicts itself")
    return header


def _parse_chunk(end: int, rows: int, offset: int, size: int, crc: int, nulls: int, values: int, raw: int) -> _Chunk:
    """A chunk, which is in the file before byte `end`."""
    inside = len(_MAGIC) <= offset <= offset + size <= end
    if not inside or not 0 <= nulls <= rows or not -1 <= values <= rows or raw < 0:
        raise ValueError(f"it has a chunk of {rows} values at bytes {offset} to {offset + size}")
    return _Chunk(offset, size, crc, ChunkShape(rows, nulls, values, raw))


def _text_bytes(chunk: pa.Array) -> int:
    import pyarrow.compute as pc

    if t.is_dictionary(chunk.type):
        lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
        return pc.sum(lengths.take(chunk.indices)).as_py() or 0
    return chunk.nbytes if is_variable(chunk.type) else 0


@contextmanager
def _convert_errors(path: str) -> Iterator[None]:
    """Errors of pyarrow, on bytes that were read, as CorruptRecordError."""
    try:
        yield
    except CorruptRecordError:
        raise
    except _PYARROW_ERRORS as error:
        reason = f"the column index cannot be read: {str(error).partition(chr(10))[0]}"
        raise CorruptRecordError(reason, path=path, hint=REWRITE_COLUMNS) from error
