"""Rows that fulfil a condition, by the column indexes of the files, and the numbers that they have among all rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.expressions import expression_columns
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.index.column_index import REWRITE_COLUMNS
from tfrecord_io.index.column_search import ColumnSearch, FileMatches, column_indexes
from tfrecord_io.index.indexed_files import IndexedFiles
from tfrecord_io.index.picked_records import PickedSource, picked_sources
from tfrecord_io.options import leaves_out
from tfrecord_io.read.absent_columns import AbsentColumns
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.open_scan import OpenScan
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.row_filter import RowFilter, conjuncts
from tfrecord_io.read.scan import Scan
from tfrecord_io.storage.read.source import Source


def indexed_fields(scan: Scan, names: Iterable[str]) -> list[pa.Field]:
    """How a scan reads columns: equal fields have equal values. Partition columns are not among them."""
    if scan.settings.as_bytes:
        return []
    known = {field.column: field for field in scan.columns}
    return [known[name].to_arrow().with_type(scan.schema.field(name).type) for name in names if name in known]


def column_search(scan: Scan, row_filter: RowFilter) -> ColumnSearch:
    """The search for rows of a scan in column indexes."""
    parts = [RowFilter(part, expression_columns(part)) for part in conjuncts(row_filter.expression)]
    path_column, partitions = scan.options.include_file_paths, scan.partitions
    fields = [field for field in partitions.fields if scan.schema.get_field_index(field.name) >= 0]
    constant = pa.schema([*fields, *([] if path_column is None else [pa.field(path_column, pa.string())])])
    of_features = replace(partitions, fields=tuple(fields))

    def constants(source: Source) -> pa.RecordBatch:
        row = pa.RecordBatch.from_arrays([pa.nulls(1)], ["x"]).select([])
        return of_features.add_to(row, [source], constant, path_column)

    return ColumnSearch(parts, pa.schema(indexed_fields(scan, row_filter.columns)), constants)


@dataclass(frozen=True, slots=True, eq=False)
class IndexedScan:
    """A scan of some of the records of another one.

    Attributes
    ----------
    scan : Scan
    files : list of PickedSource or None
        All files of the other scan but some at its start; those of which something is read are the sources of `scan`.
        None: all records behind its `offset` are read.
    left_out : int
        So many records at the start of `files` are left out by the `offset` of the other scan.
    """

    scan: Scan
    files: list[PickedSource] | None = None
    left_out: int = 0


def indexed_scan(scan: Scan) -> Scan | None:
    """The same scan of the records that column indexes find for its filter; None if it has to read all.

    The filter is applied to these records, too.
    """
    row_filter = None if scan.selection is None else scan.selection.row_filter
    indexed = None if row_filter is None else search_indexes(scan, row_filter)
    return None if indexed is None else indexed.scan


def search_indexes(scan: Scan, row_filter: RowFilter) -> IndexedScan | None:
    """The scan of the records that can fulfil a filter, by column indexes; None if that would not read less.

    The first record of each file with an embedded schema is among them. Those that an `offset` leaves out are not.
    """
    options = scan.options
    if not scan.may_be_indexed or leaves_out(options.on_error) or scan.gathers_categories:
        return None  # damage is reported wherever it is
    if options.compression not in (None, "infer") or not all(source.can_be_read_again for source in scan.sources):
        return None
    matches = column_search(scan, row_filter).files(scan.sources)
    if not any(matches):
        return None
    if scan.resolved.source == "embedded":
        matches = [None if found is None else _with_first(found) for found in matches]
    begun, left = _left_out(matches, options.offset)
    sources, matches = scan.sources[begun:], matches[begun:]
    found = matches[0] if matches else None
    if left and sources and found is None:  # of how many files more the offset leaves out all records is not known
        return IndexedScan(scan.over(sources, offset=left)) if begun else None
    if left and found is not None:
        matches[0] = replace(found, records=found.records[found.records >= left])
    files = picked_sources(sources, matches)
    read = [file.source for file in files if file.source is not None]
    if read == list(scan.sources):
        return None
    is_whole = bool(files) and files[0].source is sources[0]
    return IndexedScan(scan.over(read, offset=left if is_whole else 0), files, left)


def _left_out(matches: Sequence[FileMatches | None], offset: int) -> tuple[int, int]:
    """How many files an offset leaves out wholly, by their indexes, and what is left of it for the others."""
    for number, found in enumerate(matches):
        if found is None or offset < len(found.index):
            return number, offset
        offset -= len(found.index)
    return len(matches), offset


def with_known_indexes(scans: Sequence[Scan]) -> list[Scan]:
    """The same scans; those that have only pieces of files without a column index do not look for one."""
    pieces = [source for scan in scans for source in scan.sources if source.span is not None]
    largest = {source.path: source for source in sorted(pieces, key=lambda source: source.size or 0)}
    indexes = dict(zip(largest, column_indexes(list(largest.values())), strict=True))
    return [
        scan if any(source.span is None or indexes[source.path] for source in scan.sources) else scan.without_indexes()
        for scan in scans
    ]


def opened_by_index(scan: Scan, opened: OpenScan) -> OpenScan | None:
    """The indexed scan in place of one that was opened, which is closed; None if there is no such scan."""
    try:
        indexed = indexed_scan(scan)
    except BaseException:
        opened.reader.close()
        raise
    if indexed is None:
        return None
    opened.reader.close()
    instead = indexed.opened(ChunkReader(indexed.sources, indexed.options))
    instead.replan = opened.replan  # it reads all records
    return instead


def _with_first(found: FileMatches) -> FileMatches:
    """With the first record, which may have another schema; a file that has none may have columns in any record."""
    count = len(found.index)
    if not found.has_schema:
        return replace(found, records=np.arange(count))
    if found.first or not count or (len(found.records) and found.records[0] == 0):
        return found
    return replace(found, records=np.concatenate([[0], found.records]))


def matching_numbers(files: IndexedFiles, search: ColumnSearch) -> tuple[Array, Array]:
    """The numbers of the records that fulfil a condition by the column indexes, and of those left to be read."""
    exact, others = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for file, matches in enumerate(search.files(files.sources)):
        first, count = int(files.first[file]), files.count(file)
        if matches is None:
            others.append(np.arange(first, first + count, dtype=np.int64))
            continue
        if len(matches.index) != count or not np.array_equal(matches.index.bounds, files.indexes[file].bounds):
            path = files.sources[file].path
            reason = f"the column index has {len(matches.index)} records, the index {count}, or at other offsets"
            raise CorruptRecordError(reason, path=path, advice=f"rewrite both: tfr index, {REWRITE_COLUMNS}")
        if matches.version != files.version(file):
            reason = "the file was replaced or changed after it was opened, and its column index was read now"
            raise CorruptRecordError(reason, path=files.sources[file].path, advice="open it again")
        (exact if matches.exact else others).append(first + matches.records)
    return np.concatenate(exact), np.concatenate(others)


def numbered_rows(scan: Scan, row_filter: RowFilter, absent: AbsentColumns | None = None) -> NumberedRows:
    """Open the rows of a scan that can fulfil a filter by column indexes; without these all, as `Scan.open`."""
    indexed = search_indexes(scan, row_filter)
    if indexed is None:
        return NumberedRows(scan.open(absent))
    return NumberedRows(indexed.scan.open(), indexed.files, indexed.left_out)


class NumberedRows:
    """The numbered rows of a reader.

    Parameters
    ----------
    reader : Reader
    files : sequence of PickedSource, optional
        Where not all records are read. Those of which something is read are the files of the reader.
    left_out : int
        So many records at the start of `files` come before the first number.

    Attributes
    ----------
    next : int
        The number after those of the rows that were read; at the end, after those of all records.
    """

    def __init__(self, reader: Reader, files: Sequence[PickedSource] | None = None, left_out: int = 0) -> None:
        self.reader, self.next = reader, 0
        self._begin, self._files, self._left_out = 0, files, left_out
        self._read = [at for at, file in enumerate(files or ()) if file.source is not None]
        self._firsts: list[int] = []  # number of the first record of each file up to the one that is read

    @property
    def is_indexed(self) -> bool:
        """Whether column indexes tell which records are read."""
        return self._files is not None

    def read(self, begin: int) -> Iterator[tuple[Array, pa.RecordBatch]]:
        """The numbers and rows of the batches; `begin` is the first number."""
        self.next = self._begin = begin
        self._firsts = [begin - self._left_out]
        rows = 0
        for batch in self.reader:
            numbers = self._following(rows, len(batch))
            rows += len(batch)
            yield numbers, batch
        if self._files is not None:
            self.next = max(self.next, self._first(len(self._files)))

    def _following(self, row: int, rows: int) -> Array:
        """The numbers of the next rows."""
        if self._files is None:
            self.next += rows
            return np.arange(self.next - rows, self.next)
        parts = []
        for run in self.reader.origins.runs(row, row + rows):
            parts.append(self._numbers(*run))
            self.next = int(parts[-1][-1]) + 1
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _numbers(self, file: int, record: int, rows: int) -> Array:
        """The numbers of consecutive records of a file, as the reader counts both."""
        assert self._files is not None
        at = self._read[file]
        records = self._files[at].records
        own = np.arange(record, record + rows) if records is None else records[record : record + rows]
        return self._first(at) + own

    def _first(self, at: int) -> int:
        """The number of the first record of a file, or after the last one; all before it have been read."""
        assert self._files is not None
        while len(self._firsts) <= at:
            before, count = self._firsts[-1], self._files[len(self._firsts) - 1].count
            self._firsts.append(max(before, self.next) if count is None else before + count)
        return self._firsts[at]

    def row(self, number: int) -> int:
        """The row with a number that was delivered, counted from the first one."""
        if self._files is None:
            return number - self._begin
        runs = self.reader.origins.runs
        return bisect_left(
            range(self.reader.origins.rows), number, key=lambda row: int(self._numbers(*next(runs(row, row + 1)))[0])
        )
