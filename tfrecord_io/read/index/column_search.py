"""Search the column indexes of files: for all values of a read, or for the records that can fulfil a condition.

`ColumnSearch.files` takes sources and returns for each of them its values (`FileValues`), or the records that match
(`FileMatches`), which `tfrecord_io.read.index.picked_records` reads.

Tests: tests/read/index/test_column_search.py, tests/read/index/test_column_search_wrong_index.py and
tests/laws/test_indexed_filter_laws.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS, ordered
from tfrecord_io.bytes import Array, FrameHeader
from tfrecord_io.columns import ArrayBuffers, int64_array
from tfrecord_io.errors import SchemaError
from tfrecord_io.read.index import THREADS
from tfrecord_io.read.index.column_index import COLUMNS_SUFFIX, ColumnIndex
from tfrecord_io.read.index.find_index import open_columns, unless_stale, warn_of_stale
from tfrecord_io.read.index.record_index import RecordIndex
from tfrecord_io.store import RandomAccessFile, Source, find_sidecars


class RowPredicate(Protocol):
    """A condition on rows, and the columns that it needs."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def mask(self, batch: pa.RecordBatch, /) -> pa.BooleanArray: ...


@dataclass(frozen=True, slots=True, eq=False)
class ComparedFile:
    """A file as it was when its column index was compared with it."""

    source: Source  # the whole file
    size: int
    version: str  # see `RandomAccessFile.version`

    def open(self) -> RandomAccessFile:
        """Open the file; ReplacedError if it was replaced."""
        file = RandomAccessFile.open(self.source)
        if (file.size, file.version) != (self.size, self.version):
            file.close()
            raise self.source.replaced_error()
        return file


@dataclass(frozen=True, slots=True, eq=False)
class FileMatches:
    """The records of a file, or of a piece of it, that can fulfil a condition; they have to be read."""

    file: ComparedFile
    first: int  # record index of the first record of the piece
    index: RecordIndex  # of all records of the file or the piece
    records: Array  # the numbers in `index` of those that can fulfil the condition, ascending
    parts: Sequence[RowPredicate]  # they all fulfil these parts of it, whose columns the index has
    exact: bool  # those are all parts
    is_doubtful: bool  # not all of the file's content was compared with the index, so they may not fulfil these parts
    has_schema: bool  # the first record of the file has an embedded schema

    @property
    def count(self) -> int:
        """The number of records of the file or the piece."""
        return len(self.index)


@dataclass(frozen=True, slots=True, eq=False)
class FileValues:
    """The values of all records of a file, or of a piece of it, none of which has to be read."""

    file: ComparedFile
    index: RecordIndex  # of these records; empty where they need not be found
    table: pa.Table  # a row for each record
    embedded: bytes | None  # the embedded schema of the first record of the file, if the piece begins with that

    @property
    def count(self) -> int:
        """The number of records of the file or the piece."""
        return len(self.table)


@dataclass(frozen=True, slots=True, eq=False)
class WantedColumns:
    """The columns of a read whose values may be those of column indexes."""

    fields: pa.Schema  # how they are read; an index stands for its file if it has an equal field of each
    # Whether the plan covers a file by its first record's embedded schema; None: that is not known, or it has none.
    covers: Callable[[Source, bytes | None], bool]
    # That schema, of an open file whose index states that there is one.
    embedded: Callable[[Source, RandomAccessFile], bytes | None]
    max_record_bytes: int  # a file with a larger record is read, which is an error


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSearch:
    """A condition that column indexes are searched by."""

    parts: Sequence[RowPredicate]  # a row fulfils the condition where it fulfils all of them
    fields: pa.Schema  # of the columns as the read has them; an index is used only for columns with an equal field
    constants: Callable[[Source], pa.RecordBatch]  # the columns whose values are those of a file, as a batch of one row
    wanted: WantedColumns | None = None  # all columns of the read

    def files(
        self,
        sources: Sequence[Source],
        warns: Callable[[Iterable[str]], None] = warn_of_stale,
        indexes: Sequence[Source | None] | None = None,
    ) -> list[FileMatches | FileValues | None]:
        """The result for each file or piece; None where it has no column index, or none that helps.

        `indexes` are the `column_indexes`, where they were looked for.

        Where an index has all columns that are `wanted`, and is known to be of the file's content, these are the
        values; else the matches. An index that is damaged or does not match its file counts as none; `warns` gets the
        texts of warnings. An index that was compared with some records only counts as none for a piece of a file: the
        records that differ may be in other pieces.
        """
        if indexes is None:
            indexes = column_indexes(sources)
        if not any(indexes):
            return [None] * len(sources)

        def search(index: Source | None, source: Source) -> tuple[FileMatches | FileValues | None, str]:
            return unless_stale(partial(self._file, index, source))

        calls = (partial(search, *pair) for pair in zip(indexes, sources, strict=True))
        results = list(ordered(calls, min(THREADS, len(sources)), "columns"))
        warns(text for _, text in results)
        return [result for result, _ in results]

    def certain(self, sources: Sequence[Source]) -> list[tuple[Array, int] | None]:
        """The numbers of the records of each file that fulfil the condition, and of all; None if it has to be read."""
        return [
            (match.records, match.count)
            if isinstance(match, FileMatches) and not match.is_doubtful and (match.exact or not len(match.records))
            else None
            for match in self.files(sources)
        ]

    def _file(self, index_source: Source | None, source: Source) -> FileMatches | FileValues | None:
        if index_source is None:
            return None
        whole, wanted, span = source.whole_file(), self.wanted, source.span
        longest = None if wanted is None or span is not None else wanted.max_record_bytes
        most_rows = math.inf if span is None else (source.size or 0) / LIMITS.index_row_bytes[source.local]
        with (
            RandomAccessFile.open(whole) as file,
            open_columns(index_source, whole, file, span, most_rows=most_rows, longest=longest) as (columns, index),
        ):
            if len(columns.numbers) > most_rows:
                return None
            values = self._values(columns, index, source, file) if columns.is_certain else None
            return self._matches(columns, index, source, file) if values is None else values

    def _values(
        self, columns: ColumnIndex, index: RecordIndex | None, source: Source, file: RandomAccessFile
    ) -> FileValues | None:
        """All wanted values of a file or piece; None if the records have to be read."""
        wanted = self.wanted
        if wanted is None or not all(map(columns.has, wanted.fields)) or source.file_bytes not in (None, file.size):
            return None
        begin, end, part = 0, len(columns.numbers), RecordIndex.from_sizes([])
        if index is not None:
            span = _records_of(source, index)
            if span is None or (
                len(index) and int(index.sizes.max()) > wanted.max_record_bytes + FrameHeader.FRAME_BYTES
            ):
                return None
            begin, end = span
            part = RecordIndex(index.bounds[begin : end + 1])
        embedded = None
        if columns.numbers.start + begin == 0 and end:
            if columns.has_schema:
                embedded = wanted.embedded(source, file)
            if not wanted.covers(source, embedded):
                return None
        table = columns.columns(wanted.fields).slice(begin, end - begin)
        return FileValues(ComparedFile(source.whole_file(), file.size, file.version), part, table, embedded)

    def _matches(
        self, columns: ColumnIndex, index: RecordIndex | None, source: Source, file: RandomAccessFile
    ) -> FileMatches | None:
        """The records of a file or piece that can fulfil the condition; None if the index does not tell."""
        constants = self.constants(source)
        parts, needed = self._indexed_parts(columns, constants)
        if not needed:
            return None
        index = columns.records() if index is None else index
        matching = self._passing(columns, len(index), constants, parts=parts, needed=needed)
        is_other = source.file_bytes not in (None, file.size) or (source.span is not None and not columns.is_certain)
        if matching is None or is_other or (span := _records_of(source, index)) is None:
            return None
        (passing, parts), (begin, end) = matching, span
        return FileMatches(
            ComparedFile(source.whole_file(), file.size, file.version),
            first=columns.numbers.start + begin,
            index=RecordIndex(index.bounds[begin : end + 1]),
            records=np.flatnonzero(passing[begin:end]),
            parts=parts,
            exact=len(parts) == len(self.parts),
            is_doubtful=not columns.is_certain,
            has_schema=columns.has_schema,
        )

    def _indexed_parts(
        self, columns: ColumnIndex, constants: pa.RecordBatch
    ) -> tuple[Sequence[RowPredicate], list[pa.Field]]:
        """The parts of the condition that the index can evaluate, and the indexed columns that they need."""
        indexed = [field for field in self.fields if columns.has(field)]
        known_columns = {*(field.name for field in indexed), *constants.schema.names}
        parts = [part for part in self.parts if known_columns.issuperset(part.columns)]
        return parts, [field for field in indexed if any(field.name in part.columns for part in parts)]

    def _passing(
        self,
        columns: ColumnIndex,
        rows: int,
        constants: pa.RecordBatch,
        *,
        parts: Sequence[RowPredicate],
        needed: list[pa.Field],
    ) -> tuple[Array, Sequence[RowPredicate]] | None:
        """A boolean for each record: true if it can fulfil the evaluated parts, which follow; None if there is none."""
        passing = np.ones(rows, bool)
        begin = 0
        for batch in columns.columns(needed).to_batches(max_chunksize=1 << 20):
            zeros = int64_array(np.zeros(len(batch), np.int64))
            arrays = [*batch.columns, *(column.take(zeros) for column in constants.columns)]
            batch = pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, *constants.schema.names])
            for part in parts:
                try:
                    mask = ArrayBuffers(part.mask(batch)).numbers
                except SchemaError:  # it cannot be applied to some row, which may not have to be read
                    parts = [remaining for remaining in parts if remaining is not part]
                    continue
                passing[begin : begin + len(batch)] &= mask
            begin += len(batch)
        return (passing, parts) if parts else None


def _records_of(source: Source, index: RecordIndex) -> tuple[int, int] | None:
    """The range of the records of a source in an index; None if the source is a piece of another file.

    A reader of such a piece raises an error.
    """
    begin, end = (0, len(index)) if source.span is None else index.bounds.searchsorted(source.span).tolist()
    bounds = index.bounds[begin : end + 1]
    is_exact = source.span is not None and source.file_bytes is None
    return None if is_exact and (not len(bounds) or (bounds[0], bounds[-1]) != source.span) else (begin, end)


def column_indexes(sources: Sequence[Source]) -> list[Source | None]:
    """The column index of each file, or of the file of each piece that is not small."""
    files = []
    for source in sources:
        is_large = source.span is not None and (source.size or 0) >= LIMITS.least_piece_bytes
        files.append(source.replace(span=None) if is_large else source)
    return find_sidecars(files, (COLUMNS_SUFFIX,))
