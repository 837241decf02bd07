"""Column indexes: the offset of each record of a file, and some of its columns, in a Parquet file next to it.

``x.tfrecord.columns.parquet`` has a row for each record: ``_path``, the name of the file, ``_record``, the record
index, ``_offset`` and ``_length``, where its frame begins and how long it is, and the values of the columns. Its
metadata has the fields that the values were read by: only a read by equal fields has the same values.
"""

from __future__ import annotations

import base64
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.buffers import int64_array
from tfrecord_io.errors import CorruptRecordError, SchemaError
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.index.parquet_ranges import ChecksummedSink, Damaged, ParquetRanges
from tfrecord_io.index.record_index import RecordIndex
from tfrecord_io.options import MAX_EXPANSION
from tfrecord_io.schema.tensor_types import is_any_tensor
from tfrecord_io.schema.type_names import logical_name
from tfrecord_io.schema.types import is_bytes, is_text
from tfrecord_io.storage.read.random_access import RandomAccessFile
from tfrecord_io.storage.write.sharded_dataset import COLUMN_INDEX_SUFFIX

if TYPE_CHECKING:
    import pyarrow.parquet as pq

COLUMNS_SUFFIX = COLUMN_INDEX_SUFFIX
REWRITE_COLUMNS = "rewrite it (tfr index --columns)"
PATH, RECORD, OFFSET, LENGTH = OWN = ("_path", "_record", "_offset", "_length")

_EMBEDDED_KEY = b"tfrecord_io.embedded_schema"
_GROUP_ROWS = 1 << 17
_VERSION_KEY = b"tfrecord_io.data_version"
_FIELDS_KEY = b"tfrecord_io.fields"  # the serialized Arrow schema of the values, in base64
_PYARROW_ERRORS = (pa.ArrowException, OSError, ValueError, KeyError, OverflowError)  # for a file that is damaged


# Writing ---------------------------------------------------------------------------------------------------------


def check_fields(fields: Iterable[pa.Field]) -> pa.Schema:
    """The schema of columns that an index can have; SchemaError for another one."""
    schema = pa.schema(list(fields))
    for field in schema:
        if field.name in OWN:
            advice = "rename it by schema=, or leave it out"
            raise SchemaError("the index has a column of this name itself", feature=field.name, advice=advice)
        value = field.type.value_type if t.is_dictionary(field.type) else field.type
        if t.is_nested(value) or t.is_null(value) or is_any_tensor(value) or isinstance(value, pa.BaseExtensionType):
            reason = f"a column index has columns of single values, not of {logical_name(field.type, field.metadata)}"
            raise SchemaError(reason, feature=field.name)
    return schema


def write_columns(
    sink: Any,
    name: str,
    records: RecordIndex,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    has_schema: bool = False,
    version: str = "",
) -> None:
    """Write the column index of a file of this name, with the values of all its records, to a binary file.

    `has_schema`: the first record has an embedded schema. `version`: that of the file (`RandomAccessFile.version`).

    Raises
    ------
    SchemaError
        A time is out of the range of the milliseconds that Parquet has in place of seconds.
    """
    import pyarrow.parquet as pq

    stored = [pa.field(field.name, _stored_type(field.type)) for field in schema]
    own = [pa.field(PATH, pa.dictionary(pa.int32(), pa.string())), *(pa.field(n, pa.int64()) for n in OWN[1:])]
    fields = base64.b64encode(schema.serialize().to_pybytes())
    metadata = {_FIELDS_KEY: fields, _EMBEDDED_KEY: str(has_schema).lower(), _VERSION_KEY: version}
    file_schema = pa.schema([*own, *stored], metadata=metadata)
    texts = [field.name for field in stored if t.is_string(field.type) or t.is_binary(field.type)]
    encodings = dict.fromkeys(OWN[1:], "DELTA_BINARY_PACKED")
    options: dict[str, Any] = {"column_encoding": encodings, "use_dictionary": [PATH, *texts]}
    checksummed = ChecksummedSink(sink)
    with pq.ParquetWriter(checksummed, file_schema, compression="zstd", **options) as writer:
        done = 0
        for values in _groups(batches):
            rows = slice(done, done := done + len(values))
            path = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(values), np.int32)), [name])
            numbers = (np.arange(rows.start, rows.stop), records.offsets[rows], records.sizes[rows])
            columns = [_to_stored(column, field) for column, field in zip(values.columns, stored, strict=True)]
            writer.write_table(pa.table([path, *map(int64_array, numbers), *columns], schema=file_schema))
        checksummed.begin_metadata()
    checksummed.finish()


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tables of about `_GROUP_ROWS` rows, the last one of fewer."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        if sum(map(len, pending)) >= _GROUP_ROWS:
            yield pa.Table.from_batches(pending)
            pending = []
    if pending:
        yield pa.Table.from_batches(pending)


def _stored_type(type_: pa.DataType) -> pa.DataType:
    value = type_.value_type if t.is_dictionary(type_) else type_
    if t.is_timestamp(value) and value.unit == "s":  # a unit that Parquet does not have
        return pa.timestamp("ms", value.tz)
    return pa.time32("ms") if t.is_time32(value) else value


def _to_stored(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        reason = f"a column index cannot store it: {str(error).partition(chr(10))[0]}"
        raise SchemaError(reason, feature=field.name, advice="leave it out of columns=") from error


# Reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ColumnIndex:
    """An open column index, or the part of it that has a span of its file; what it states is checked when it is read.

    Attributes
    ----------
    first : int
        The number of the first record that is read.
    rows : int
        How many records are read.
    is_last : bool
        The last record of the file is read.
    schema : pyarrow.Schema
        The columns, with the metadata that states how their values were read.
    has_schema : bool
        The first record of the file has an embedded schema.
    version : str
        Of the file when the index was written (`RandomAccessFile.version`); empty if unknown.
    """

    path: str
    schema: pa.Schema
    has_schema: bool
    version: str
    first: int
    rows: int
    is_last: bool
    _groups: Sequence[int]
    _data_bytes: int
    _file: pq.ParquetFile
    _ranges: ParquetRanges

    @classmethod
    def open(
        cls, opened: RandomAccessFile, path: str, data_bytes: int, span: tuple[int, int] | None = None
    ) -> ColumnIndex:
        """Open the column index of a file of `data_bytes`; CorruptRecordError if it is none.

        Of the rows, those of the records in a `span` of the file are read, and some before and after it.
        """
        import pyarrow.parquet as pq

        with _corrupt(path, storage=True):
            ranges = ParquetRanges(opened)
        with _corrupt(path):
            metadata = pq.read_metadata(ranges.file())
            fields = base64.b64decode((metadata.metadata or {})[_FIELDS_KEY], validate=True)
            schema = pa.ipc.read_schema(pa.py_buffer(fields))
            has_schema = metadata.metadata.get(_EMBEDDED_KEY) == b"true"
            version = metadata.metadata.get(_VERSION_KEY, b"").decode()
            names = metadata.schema.to_arrow_schema().names
            if names != [*OWN, *schema.names] or metadata.num_columns != len(names):
                raise ValueError(f"its columns are {names}")
            check_fields(schema)
            groups = range(metadata.num_row_groups) if span is None else _groups_of(metadata, *span)
            sizes = [metadata.row_group(group).num_rows for group in range(groups.stop)]
        if metadata.num_rows > data_bytes // FRAME_BYTES:  # before memory is allocated for them
            reason = f"it has {metadata.num_rows} rows, more than a file of {data_bytes} bytes has records"
            reason = f"the column index does not match its file: {reason}"
            raise CorruptRecordError(reason, path=path, advice=f"{REWRITE_COLUMNS}, or delete it")
        texts = [name for name in schema.names if _is_text(_stored_type(schema.field(name).type))]
        with _corrupt(path):  # as dictionaries, values that are repeated take no memory
            file = pq.ParquetFile(
                ranges.file(),
                metadata=metadata,
                read_dictionary=texts,
                pre_buffer=False,  # which would read what lies between the columns
            )
        before, rows = sum(sizes[: groups.start]), sum(sizes[groups.start :])
        is_last = groups.stop == metadata.num_row_groups
        return cls(path, schema, has_schema, version, before, rows, is_last, groups, data_bytes, file, ranges)

    def records(self) -> RecordIndex:
        """The offsets of the records."""
        table = self._read(OWN[1:])
        if all(t.is_int64(column.type) and column.null_count == 0 for column in table.columns):
            numbers, offsets, lengths = (column.to_numpy() for column in table.columns)
            index = RecordIndex.of_sizes(lengths, int(offsets[0]) if self.first and len(offsets) else 0)
            valid = bool((lengths >= FRAME_BYTES).all()) and np.array_equal(index.offsets, offsets)
            if valid and np.array_equal(numbers, self.first + np.arange(len(index))):
                return index
        reason = "its rows are not the records of a file, each of which begins where the last one ends"
        raise CorruptRecordError(f"the column index: {reason}", path=self.path, advice=REWRITE_COLUMNS)

    def columns(self, names: Collection[str]) -> pa.Table:
        """The values of some columns, a row for each record."""
        table = self._read(names)
        with _corrupt(self.path):
            text_bytes = sum(_text_bytes(column) for column in table.columns)
        if text_bytes > self._data_bytes + MAX_EXPANSION:
            reason = f"its texts have {text_bytes} bytes, and the file {self._data_bytes}"
            raise CorruptRecordError(f"the column index: {reason}", path=self.path, advice=REWRITE_COLUMNS)
        with _corrupt(self.path):
            columns = [_as_type(table[name], self.schema.field(name).type) for name in names]
        return pa.table(columns, names=list(names))

    def _read(self, names: Collection[str]) -> pa.Table:
        with _corrupt(self.path, storage=True):
            self._ranges.fetch(self._file.metadata, names, self._groups)
        with _corrupt(self.path):
            read = self._file.read_row_groups(list(self._groups), columns=list(names), use_threads=False)
            table: pa.Table = read.select(list(names))
            table.validate(full=True)
            return table


def _groups_of(metadata: pq.FileMetaData, begin: int, end: int) -> range:
    """The row groups that have the records in [begin, end), by the statistics of their offsets; all without these."""
    firsts = []
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        whole = row_group.num_columns == metadata.num_columns
        statistics = row_group.column(OWN.index(OFFSET)).statistics if whole else None
        if statistics is None or not statistics.has_min_max:
            return range(metadata.num_row_groups)
        firsts.append(statistics.min)
    return range(max(0, bisect_right(firsts, begin) - 1), bisect_left(firsts, end))


def _is_text(type_: pa.DataType) -> bool:
    return is_text(type_) or is_bytes(type_)


def _text_bytes(column: pa.ChunkedArray) -> int:
    """The bytes of all texts of a column that was read as a dictionary."""
    import pyarrow.compute as pc

    total = 0
    for chunk in column.chunks:
        if t.is_dictionary(chunk.type):
            lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
            total += pc.sum(lengths.take(chunk.indices)).as_py() or 0
        elif _is_text(chunk.type):
            total += chunk.nbytes
    return total


def _as_type(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    stored = _stored_type(type_)
    if t.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = column.cast(stored)
    return (column.dictionary_encode() if t.is_dictionary(type_) else column).cast(type_)


@contextmanager
def _corrupt(path: str, *, storage: bool = False) -> Iterator[None]:
    """Errors of pyarrow, on bytes that were read, as CorruptRecordError; while `storage` is read, Damaged only."""
    try:
        yield
    except _PYARROW_ERRORS as error:
        if storage and not isinstance(error, Damaged):
            raise
        reason = f"the column index cannot be read: {str(error).partition(chr(10))[0]}"
        raise CorruptRecordError(reason, path=path, advice=REWRITE_COLUMNS) from error
