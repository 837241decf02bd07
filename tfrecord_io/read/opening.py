"""Open what is read: by a path or a dataset, or as a scan.

`open_path` is what reading calls use, `open_scan` opens a scan that was planned, and `open_all` all rows of a dataset.

Tests: tests/read/test_scan.py and tests/read/test_sources.py.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tfrecord_io.base import ReadOptions, ScanOptions
from tfrecord_io.read.dataset_splits import find_sources
from tfrecord_io.read.index_search import open_indexed, use_index
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.record_checks import AbsentColumns, warn_of_schema
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.source_resolution import Files, resolve_source


def open_path(path: Any, options: ReadOptions, *, whole: bool = False, with_index: bool = False) -> Reader:
    """Plan a read and open it; see `plan_scan`.

    A dataset is read under its schema, unless that is to be inspected.
    """
    found = resolve_source(path, options, whole=whole)
    if isinstance(found, Scan) and options.inspects:
        found = Files.from_scan(found, options)
    return open_scan(found, whole=whole, with_index=with_index, warns=True)


def open_scan(
    source: Scan | Files[ScanOptions], *, whole: bool = False, with_index: bool = False, warns: bool = False
) -> Reader:
    """Open the files of a scan; or files without a schema yet, whose read is planned now.

    The reader of a scan raises if a file has more columns than the schema. A `whole` read is decoded on all threads, in
    batches as large as possible. `with_index`: with the columns that are the index of a DataFrame. `warns`: of declared
    columns that no record of a scan has. SchemaError if files have types for a column that no type has in common.
    """
    if isinstance(source, Files):
        return _open_files(source, whole=whole, with_index=with_index)
    scan = source.add_index_levels() if with_index else source
    needed = scan.prune_files().with_required_columns()
    warns = warns and len(needed.sources) == len(scan.sources) and scan.schema_source == "schema="
    absent = AbsentColumns(needed.features, warn_of_schema) if warns else None
    return open_indexed(needed, needed.row_filter, absent, whole=whole)


def _open_files(files: Files[ScanOptions], *, whole: bool, with_index: bool) -> Reader:
    planned = plan_scan(files.sources, files.options, files.selection, whole=whole, with_index=with_index)
    try:
        planned.scan.refuse_conflicts()
        if not (whole and planned.scan.resolved.is_inferred):  # from all records
            planned = use_index(planned)
    except BaseException:
        planned.close()
        raise
    return Reader(planned)


def open_all(scan: Scan, *, with_index: bool = False, **changes: Any) -> Reader:
    """Open all rows of a dataset, under the types that all of them have; of a selection, under the dataset's schema.

    `changes`: options of `ScanOptions` instead of those of the dataset, such as the size of batches.
    """
    if _has_open_types(scan):  # the read is planned again, by all rows
        options = scan.stated.changed(**changes)
        files = Files(tuple(find_sources(list(scan.sources), options)), options)
        return open_scan(files, whole=True, with_index=with_index)
    scan = scan.with_options(**changes) if changes else scan
    return open_scan(scan, whole=True, with_index=with_index, warns=True)


def _has_open_types(scan: Scan) -> bool:
    """True if a dataset that nothing is selected of has no schema yet, or one that only its first rows have shown.

    A selection has the schema of its dataset, even where that is of the first rows only.
    """
    is_all = scan.is_as_stated and not scan.chooses_rows and not scan.chooses_columns
    return is_all and (not scan.has_schema or scan.is_of_first_rows)


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
