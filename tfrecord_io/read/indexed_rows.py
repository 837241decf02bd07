"""Rows that fulfil a condition, by the column indexes of the files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.conjuncts import conjuncts
from tfrecord_io.arrow.expression_columns import expression_columns
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.index.column_index import REWRITE_COLUMNS
from tfrecord_io.index.column_search import ColumnSearch
from tfrecord_io.index.indexed_files import IndexedFiles
from tfrecord_io.read.query import Query
from tfrecord_io.read.row_filter import RowFilter
from tfrecord_io.read.scan import Scan
from tfrecord_io.storage.read.source import Source


def filter_scan(scan: Scan, filters: Any) -> tuple[Scan, RowFilter]:
    """The scan of the columns of a filter, and the filter; they need not be among the columns of `scan`."""
    query = Query(scan.over(columns=None)).filter(filters).select([])
    assert query.row_filter is not None
    return query.decoded(), query.row_filter


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
        (exact if matches.exact else others).append(first + matches.records)
    return np.concatenate(exact), np.concatenate(others)
