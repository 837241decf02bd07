"""Rows that fulfil a condition, by the column indexes of the files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.conjuncts import conjuncts
from tfrecord_io.arrow.expression_columns import expression_columns
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.index.column_index import REWRITE_COLUMNS
from tfrecord_io.index.column_search import ColumnSearch, FileMatches
from tfrecord_io.index.indexed_files import IndexedFiles
from tfrecord_io.index.picked_records import picked_sources
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.open_scan import OpenScan
from tfrecord_io.read.row_filter import RowFilter
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


def indexed_scan(scan: Scan) -> Scan | None:
    """The same scan of the records that column indexes find for its filter; None if it has to read all.

    The filter is applied to these records, too. The first record of each file with an embedded schema is among them.
    """
    row_filter = None if scan.selection is None else scan.selection.row_filter
    options = scan.options
    if row_filter is None or options.offset or options.on_error not in ("raise", "stop") or scan.gathers_categories:
        return None  # an offset counts all records, and damage is skipped wherever it is
    plain = [source for source in scan.sources if source.can_be_read_again and source.span is None]
    if len(plain) < len(scan.sources) or options.compression not in (None, "infer"):
        return None
    matches = column_search(scan, row_filter).files(scan.sources)
    if scan.resolved.source == "embedded":
        matches = [None if found is None else _with_first(found) for found in matches]
    sources = picked_sources(scan.sources, matches)
    return None if sources is None else scan.over(sources)


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


def _with_first(found: FileMatches) -> FileMatches | None:
    """With the first record, which may have another schema; a file that has none may have columns in any record."""
    if not found.has_schema and len(found.index):
        return None
    if not len(found.index) or (len(found.records) and found.records[0] == 0):
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
