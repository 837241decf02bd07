"""Open what is read: by a path or a dataset, or as a scan.

Tests: tests/read/test_scan.py and tests/read/test_sources.py.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tfrecord_io.options import ReadOptions
from tfrecord_io.read.index_search import open_indexed, use_index
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.record_checks import AbsentColumns, warn_of_schema
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.resolve_source import Files, resolve_source
from tfrecord_io.read.scan import Scan


def open_path(path: Any, options: ReadOptions, *, whole: bool = False, with_index: bool = False) -> Reader:
    """Plan a read and open it; see `plan_scan`.

    A dataset is read under its schema, unless that is to be inspected.
    """
    found = resolve_source(path, options, whole=whole)
    if isinstance(found, Scan):
        if not options.inspects:
            return open_scan(found.add_index_levels() if with_index else found, whole=whole, warns=True)
        found = Files.from_scan(found, options)
    planned = plan_scan(found.sources, found.options, whole=whole, with_index=with_index)
    try:
        planned.scan.refuse_conflicts()
        if not (whole and planned.scan.resolved.is_inferred):  # from all records
            planned = use_index(planned)
    except BaseException:
        planned.close()
        raise
    return Reader(planned)


def open_scan(scan: Scan, *, whole: bool = False, warns: bool = False) -> Reader:
    """Open the files of a scan; the reader raises if a file has more columns than the schema.

    A `whole` read is decoded on all threads, in batches as large as possible. `warns`: of declared columns that no
    record has. SchemaError if files have types for a column that no type has in common.
    """
    needed = scan.prune_files().with_required_columns()
    warns = warns and len(needed.sources) == len(scan.sources) and scan.schema_source == "schema="
    absent = AbsentColumns(needed.features, warn_of_schema) if warns else None
    return open_indexed(needed, needed.row_filter, absent, whole=whole)


def open_all(scan: Scan, *, with_index: bool = False, **changes: Any) -> Reader:
    """Open all rows of a dataset, under the types that all of them have; of a selection, under the dataset's schema.

    `changes`: options of `ReadOptions` instead of those of the dataset, such as the size of batches.
    """
    if scan.origin is not None and not (scan.chooses_rows or scan.chooses_columns):
        return open_path(scan, scan.origin[1].changed(**changes), whole=True, with_index=with_index)
    scan = scan.with_options(**changes) if changes else scan
    return open_scan(scan.add_index_levels() if with_index else scan, whole=True, warns=True)


def read_scan(scan: Scan, *, warns: bool = False) -> pa.Table:
    """All rows as a table; `warns`: of declared columns that no record has."""
    with open_scan(scan, whole=True, warns=warns) as reader:
        return reader.read_all()


def count_scan(scan: Scan) -> int:
    """The number of rows: from manifests, index files or record headers, or by reading the columns of the filter.

    With an ``on_error`` other than "raise", by reading the rows, as damaged ones do not count.

    Raises
    ------
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged.
    """
    if scan.row_filter is not None or not scan.options.damage.counts_all:
        with open_scan(scan.drop_columns()) as reader:
            return sum(batch.num_rows for batch in reader)
    from tfrecord_io.read.chunks.count_frames import records_of_files

    counts = records_of_files([source for source in scan.sources if source.span is None], scan.options)
    parts = [source for source in scan.sources if source.span is not None]
    if parts:
        with open_scan(scan.only([]).with_sources(parts, limit=None, offset=0)) as reader:
            counts.append(sum(batch.num_rows for batch in reader))
    return scan.rows_within(sum(counts))
