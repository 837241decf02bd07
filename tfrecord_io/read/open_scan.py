"""Open what is read, by a path or as a scan: files, some of their records, or the values in column indexes.

`search_indexes` decides that for each file.

Tests: tests/read/test_scan.py and tests/read/test_sources.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from tfrecord_io.display import counted, name_advice
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import FeatureNotFoundError, SchemaError, TFRecordError, hide_secrets, printable
from tfrecord_io.format.framing import HEADER_BYTES, frame_size
from tfrecord_io.options import INT64_MAX, LIMITS, ReadOptions, check_integer, leaves_out
from tfrecord_io.progress import logger
from tfrecord_io.read.call_options import PACE, add_path_column
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import SchemaRevision
from tfrecord_io.read.dataset_splits import resolve_sources
from tfrecord_io.read.reader import Planned, Reader, open_as_it_is, plan_read
from tfrecord_io.read.record_checks import AbsentColumns, warn_of_schema
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Scan, unwrap_scans
from tfrecord_io.read.sources import ChosenRecords, as_list, paths_of, record_sources, resolve_selection
from tfrecord_io.schema.column_selection import is_glob
from tfrecord_io.schema.embedded import embedded_content
from tfrecord_io.storage.read.source import ManifestShard, Source

if TYPE_CHECKING:
    from tfrecord_io.index.column_search import ColumnSearch, FileMatches, WantedColumns
    from tfrecord_io.index.indexed_files import IndexedFiles
    from tfrecord_io.options.condition import Condition
    from tfrecord_io.read.row_filter import RowFilter
    from tfrecord_io.storage.read.random_access_file import RandomAccessFile

AnyScan = TypeVar("AnyScan", bound=Scan)
AnyOptions = TypeVar("AnyOptions", bound=ReadOptions)


def open_path(path: Any, options: ReadOptions, *, whole: bool = False, with_index: bool = False) -> Reader:
    """Plan a read and open it; see `plan_scan`.

    A dataset is read under its schema, unless that is to be inspected.
    """
    path, options = resolve_selection(path, options, whole=whole)
    if isinstance(path, Scan):
        if not options.inspects:
            scan = apply_selection(path, options)
            return open_scan(scan.add_index_levels() if with_index else scan, whole=whole, warns=True)
        path, options = selection_of(path, options)
    planned = plan_scan(path, options, whole=whole, with_index=with_index)
    try:
        planned.scan.refuse_conflicts()
        if not (whole and planned.scan.resolved.is_inferred):  # from all records
            planned = _use_index(planned)
    except BaseException:
        planned.close()
        raise
    return Reader(planned)


def _use_index(planned: Planned) -> Planned:
    """Read less by column indexes, if any of them helps."""
    scan, whole = planned.scan, planned.whole
    indexed = search_indexes(scan, scan.row_filter)
    if indexed is None:
        return planned
    planned.close()
    absent = planned.absent if scan.row_filter is None else None  # of all rows
    instead = plan_read(indexed, whole=whole, absent=absent)

    def replan(reader: Any, revision: SchemaRevision | TFRecordError) -> Planned:
        reader.close()
        assert planned.replan is not None
        return planned.replan(ChunkReader(scan.sources, scan.decode_options, whole=whole), revision)  # of all records

    instead.replan = None if planned.replan is None else replan
    return instead


def apply_selection(scan: AnyScan, options: ReadOptions) -> AnyScan:
    """Apply the selection of a call to a dataset, and the size of batches.

    The records of a piece are found now, as training reads its files in another way than `open_scan`.
    """
    scan = scan.align_ranges()
    if options.columns is not None:
        scan = scan.select(options.columns)
    if options.offset:
        scan = skip_rows(scan, options.offset)
    if options.filters is not None:
        scan = apply_filter(scan, options.filters)
    if options.limit is not None:
        scan = scan.limit_rows(options.limit)
    return scan.with_options(**_call_options(options))


def _call_options(options: ReadOptions) -> dict[str, Any]:
    """The options that a call may state instead of those of a dataset."""
    return {name: getattr(options, name) for name in PACE}


def skip_rows(scan: AnyScan, rows: int) -> AnyScan:
    """Skip the first rows; ValueError if the scan has a filter, which may have left out some of them."""
    if scan.row_filter is not None:
        raise ValueError("an offset counts the records of the files, before the filter: call offset() before filter()")
    limit, offset = scan.options.limit, scan.options.offset + rows
    offset = check_integer("offset", offset, 0, INT64_MAX)
    return scan.with_options(offset=offset, limit=None if limit is None else max(0, limit - rows))


def selection_of(path: Any, options: AnyOptions, *, as_records: bool = False) -> tuple[Any, AnyOptions]:
    """Resolve a path or a dataset to files and options: for those that plan reads of them by themselves.

    With `as_records`, no other records are in the files, and what the files embed is not.
    """
    path = unwrap_scans(path)
    resolved, selecting = resolve_selection(path, options)
    if not (as_records and selecting.filters is not None):  # whose rows are found under the schema of the dataset
        path, options = resolved, selecting
    if not isinstance(path, Scan):
        return resolve_sources(path, options), options
    scan = apply_selection(path, options)
    selected = _add_selection(scan, options)
    if as_records:
        return record_sources(scan, as_they_are=True), selected.changed(filters=options.filters, offset=0, limit=None)
    # The rest of a file is read by the schema at its begin.
    if not all(source.begins_file for source in scan.sources):
        return record_sources(scan), selected.changed(filters=None, offset=0, limit=None)
    return list(scan.sources), selected


def _add_selection(scan: Scan, options: AnyOptions) -> AnyOptions:
    """The options with what a scan selects."""
    columns = scan.options.columns
    if scan.selected is not None:
        columns = add_path_column(scan.selected, scan.options.include_file_paths)
    filters = None if scan.row_filter is None else scan.row_filter.condition
    limits: dict[str, Any] = {"offset": scan.options.offset, "limit": scan.options.limit}
    return options.changed(columns=columns, filters=filters, **limits)


def numbered_files(path: Any, options: ReadOptions) -> tuple[list[Source], ReadOptions, Scan | None]:
    """As `selection_of`, of files whose records are read by number; and the scan of a part, with its dataset's schema.

    It is None for anything else.
    """
    path, options = resolve_selection(path, options)
    if not isinstance(path, Scan):
        sources = resolve_sources(path, options)
        if any(isinstance(source.derived, ChosenRecords) for source in sources):  # to begin with the schema of others
            reason = "a piece of a dataset beside other sources is read from the first record to the last"
            raise ValueError(f"{reason}: open it by itself, or pass the whole dataset")
        return sources, options, None
    scan = apply_selection(path, options)
    return list(scan.sources), _add_selection(scan, options), scan if path.origin is None else None


def scan_of(path: Any, options: ReadOptions) -> Scan:
    """Plan the scan of a call, to be opened later, once or several times."""
    path, options = resolve_selection(path, options)
    return apply_selection(path, options) if isinstance(path, Scan) else plan_scan(path, options).close()


def plan_dataset(path: Any, options: ReadOptions) -> Scan:
    """The scan of all columns and rows of files, under one schema; see `tfrecord_io.dataset`."""
    path = unwrap_scans(as_list(path))
    read, stated_options = resolve_selection(path, options)
    if isinstance(read, Scan):
        scan = apply_selection(read, stated_options)
        if scan.origin is None:
            return scan
        return replace(scan, origin=(scan.origin[0], scan.origin[1].changed(**_call_options(options))))
    if isinstance(path, Scan):
        assert path.origin is not None
        return replace(plan_sources(read, stated_options), origin=(path.origin[0], stated_options))
    sources = resolve_sources(path, options)
    origin: tuple[Any, ReadOptions] | None = (path, options)
    scans = [part for part in path if isinstance(part, Scan)] if isinstance(path, list) else []
    if scans:
        are_whole = all(s.origin is not None and s.origin[1].split is None and not s.chooses_rows for s in scans)
        origin = (paths_of(path), options) if are_whole else None
    return replace(plan_sources(sources, stated_options), origin=origin)


def plan_sources(sources: Sequence[Source], options: ReadOptions) -> Scan:
    """The scan of all columns and rows of files that were looked up, under one schema."""
    for source in sources:
        if source.is_file_object or source.pipe is not None:
            reason = "a file object, or a pipe, is read once, by a call such as tfr.read_table(dataset)"
            advice = "pass the path of a file for what is read any number of times"
            raise TypeError(f"{hide_secrets(source.path)}: {reason}; {advice}")
    return plan_scan(sources, options, only_sample=True).close()


def refresh_scan(scan: AnyScan, sources: Sequence[Source] | None = None) -> AnyScan:
    """Look up the current files for the same columns and rows; or take `sources`, if they were looked up.

    ValueError if it is a part of what was opened, FeatureNotFoundError if a column that is selected does not exist any
    more.
    """
    if scan.origin is None:
        raise ValueError("only what was opened as a whole can be refreshed: call tfr.dataset(path) again")
    path, options = scan.origin
    latest = plan_sources(resolve_sources(path, options) if sources is None else sources, options)
    latest = latest.with_options(limit=scan.options.limit, offset=scan.options.offset)
    names = ("sources", "options", "resolved", "partitions", "sidecar", "compiled")
    plan: dict[str, Any] = {name: getattr(latest, name) for name in names}
    result = replace(scan, **plan, selected=None, row_filter=None)
    if scan.row_filter is not None:
        result = apply_filter(result, scan.row_filter.condition)
    if scan.selected is None:
        return result
    for name in scan.selected:
        if name not in result.compiled.schema.names:
            reason = "the files that are there now do not have this column"
            raise FeatureNotFoundError(reason, feature=name, hint=name_advice(name, result.compiled.schema.names))
    return result.only(scan.selected)


class LiveScan:
    """A scan whose files are looked up again at each use; it keeps the columns that it had at first."""

    def __init__(self, scan: Scan) -> None:
        self.scan = self._latest = scan
        self._versions = list(map(_version, scan.sources))

    def current(self) -> Scan:
        """The scan of the files that are there now.

        SchemaError if a column has another type now, FeatureNotFoundError if the column does not exist any more.
        """
        if self.scan.origin is None:  # parts of datasets, which stay as they are
            return self.scan
        sources = resolve_sources(*self.scan.origin)
        versions = list(map(_version, sources))
        if versions != self._versions:
            latest = refresh_scan(self.scan.only(self.scan.schema.names), sources)
            for field in self.scan.schema:
                if (got := latest.schema.field(field.name).type) != field.type:
                    reason = f"expected {field.type}, as it was at first, got {got}"
                    raise SchemaError(reason, path=sources[0].path, feature=field.name, hint="open the files again")
            self._latest, self._versions = latest, versions
        return self._latest

    def __reduce__(self) -> tuple[Any, ...]:
        return LiveScan, (self.scan,)


def _version(source: Source) -> tuple[Any, ...]:
    """The state of a file and its dataset, which differs once either is replaced."""
    return source.path, source.size, source.shard and source.shard.manifest.id, source.info


def apply_filter(scan: AnyScan, filters: Any) -> AnyScan:
    """Only the rows that meet a condition, and those of earlier calls; null counts as false.

    Parameters
    ----------
    filters : pyarrow.compute.Expression, str, list of tuples, or list of lists of tuples
        ``pc.field("label") == 3`` or, as in pandas, a list of tuples, ``[("label", "==", 3), ("score", ">", 0.5)]``,
        all of which must hold, or a list of such lists, one of which must hold. The operators are ``==``, ``!=``,
        ``<``, ``>``, ``<=``, ``>=``, ``in``, ``not in`` and, for lists, ``contains``; ``("label", "==", None)`` finds
        missing values. The same as text is ``"label = 3 and score > 0.5"``, with ``or``, parentheses, ``is null`` and
        ``DATE '2026-01-31'``. The condition may name columns that are not selected. Files in directories such as
        ``label=3/`` are not opened if they have no matching rows.

    Raises
    ------
    FeatureNotFoundError
        No column has that name.
    SchemaError
        The condition does not apply to the type of a column.
    """
    from tfrecord_io.options.filters import condition_of

    condition = condition_of(filters)
    return Scan.filter(_resolve_remaining_types(add_condition_columns(scan, condition), condition), condition)


def _resolve_remaining_types(scan: AnyScan, condition: Condition) -> AnyScan:
    """Resolve the types of a scan from only the files that a condition on folders leaves.

    Only types that are inferred, or that files contradict, are others than before.
    """
    if not (scan.partitions.fields and (scan.resolved.is_inferred or scan.conflicts())) or scan.options.offset:
        return scan
    from tfrecord_io.read.row_filter import RowFilter

    every = condition if scan.row_filter is None else scan.row_filter.condition & condition
    left = RowFilter(every, every.columns).possible(scan.sources, scan.partitions)
    if not left or len(left) == len(scan.sources) or any(source.span for source in scan.sources):
        return scan
    planned = plan_scan(scan.sources, scan.options.changed(filters=every), only_sample=True).close()
    names, planned_names = tuple(scan.schema.names), planned.compiled.schema.names
    if not {*planned_names}.issuperset(names):  # of columns that no file has which is left
        return scan
    plan = {name: getattr(planned, name) for name in ("resolved", "partitions", "compiled")}
    options = planned.options.changed(limit=scan.options.limit)
    selected = names if scan.selected is not None or list(names) != planned_names else None
    return replace(scan, options=options, selected=selected, sidecar=None, **plan)


def add_condition_columns(scan: AnyScan, condition: Condition) -> AnyScan:
    """Add the columns of a condition to a scan of the same rows and columns, if the files have them."""
    names = condition.columns
    schema = scan.compiled.schema
    if {*schema.names}.issuperset(names) or any(source.span for source in scan.sources):
        return scan
    planned = plan_scan(scan.sources, scan.options.changed(filters=condition), only_sample=True).close()
    selected, wider = tuple(scan.schema.names), planned.compiled.schema
    if any(wider.field(name) != schema.field(name) for name in selected):  # types from other records
        return scan
    plan = {name: getattr(planned, name) for name in ("resolved", "partitions", "compiled")}
    options = planned.options.changed(limit=scan.options.limit)
    narrow = planned.narrow_options if scan.narrow_options is None else scan.narrow_options
    return replace(scan, options=options, selected=selected, sidecar=None, narrow_options=narrow, **plan)


def open_scan(scan: Scan, *, whole: bool = False, warns: bool = False) -> Reader:
    """Open the files of a scan; the reader raises if a file has more columns than the schema.

    A `whole` read is decoded on all threads, in batches as large as possible. `warns`: of declared columns that no
    record has. SchemaError if files have types for a column that no type has in common.
    """
    needed = scan.prune_files().with_required_columns()
    warns = warns and len(needed.sources) == len(scan.sources) and scan.schema_source == "schema="
    absent = AbsentColumns(needed.features, warn_of_schema) if warns else None
    return open_indexed(needed, needed.row_filter, absent, whole=whole)


def open_indexed(
    scan: Scan, row_filter: RowFilter | None, absent: AbsentColumns | None = None, *, whole: bool = False
) -> Reader:
    """Open the rows of a scan by its column indexes, which may have the values or choose records."""
    indexed = search_indexes(scan, row_filter)
    if indexed is None:
        return open_as_it_is(scan.align_ranges(), absent, whole=whole)
    return open_as_it_is(indexed, absent if row_filter is None else None, whole=whole)


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
    if scan.row_filter is not None or not scan.options.counts_all:
        with open_scan(scan.drop_columns()) as reader:
            return sum(batch.num_rows for batch in reader)
    from tfrecord_io.read.chunks.count_frames import records_of_files

    counts = records_of_files([source for source in scan.sources if source.span is None], scan.options)
    parts = [source for source in scan.sources if source.span is not None]
    if parts:
        with open_scan(scan.only([]).with_sources(parts, limit=None, offset=0)) as reader:
            counts.append(sum(batch.num_rows for batch in reader))
    return scan.rows_within(sum(counts))


# ---- column indexes


def indexed_fields(scan: Scan, names: Iterable[str]) -> list[pa.Field]:
    """How a scan reads columns: equal fields have equal values. Partition columns are not among them."""
    if scan.settings.as_bytes:
        return []
    fields = {field.column: field for field in scan.features}
    return [
        fields[name].to_arrow().with_type(scan.compiled.schema.field(name).type) for name in names if name in fields
    ]


def _is_worth_a_look(source: Source) -> bool:
    """True if a look for an index takes less than reading a file, or a piece of one."""
    least_bytes = LIMITS.decoded_file_bytes if source.local and source.span is None else LIMITS.least_piece_bytes
    return source.size is None or source.size >= least_bytes


def _wanted_columns(scan: Scan) -> WantedColumns | None:
    """The columns of a scan, if indexes may stand for its files: with others in a record it would be the same.

    So the columns are named, or declared; a pattern also selects features that no schema names.
    """
    options, features = scan.options, scan.features.names
    is_declared = scan.resolved.source == "schema="
    if not is_declared and (
        options.columns is None or any(is_glob(entry) or entry.startswith("!") for entry in options.columns)
    ):
        return None
    fields = indexed_fields(scan, features) if options.record_type is None else []
    if not fields:
        return None
    obeys = options.schema is None

    def covers(source: Source, content: bytes | None) -> bool:
        if not obeys:
            return True
        if content is None:  # then any record may have more features, unless none had an embedded schema
            return scan.resolved.source != "embedded"
        return scan.embedded_check.check(source.path, 0, 0, content) is None

    def read_embedded(source: Source, file: RandomAccessFile) -> bytes | None:
        if not obeys:
            return None
        stated_schema = None if source.shard is None else source.shard.manifest.schema
        if stated_schema is not None:
            return stated_schema
        first = file.read(0, frame_size(file.read(0, HEADER_BYTES)))
        return embedded_content(first, check_crc=options.check_crc)

    from tfrecord_io.index.column_search import WantedColumns

    return WantedColumns(pa.schema(fields), covers, read_embedded, options.limits.record_bytes)


def column_search(scan: Scan, row_filter: RowFilter | None, wanted: WantedColumns | None = None) -> ColumnSearch:
    """The search for the columns that are wanted of a scan, or for its rows, in column indexes."""
    from tfrecord_io.index.column_search import ColumnSearch
    from tfrecord_io.read.row_filter import RowFilter

    conjuncts = () if row_filter is None else row_filter.condition.conjuncts
    parts = [RowFilter(part, part.columns) for part in conjuncts]
    path_column, partitions = scan.options.include_file_paths, scan.partitions
    fields = [field for field in partitions.fields if scan.compiled.schema.get_field_index(field.name) >= 0]
    constant = pa.schema([*fields, *([] if path_column is None else [pa.field(path_column, pa.string())])])
    of_features = replace(partitions, fields=tuple(fields))

    constants = partial(of_features.row_of, schema=constant, path_column=path_column)
    fields_of_filter = indexed_fields(scan, () if row_filter is None else row_filter.columns)
    return ColumnSearch(parts, pa.schema(fields_of_filter), constants, wanted)


def reason_not_to_search(scan: AnyScan, row_filter: RowFilter | None) -> str:
    """Why column indexes are not searched; empty if they are."""
    options = scan.options
    if not scan.may_be_indexed:
        return "no file has one"
    inspects = options.inspects and row_filter is None
    if options.rows_to_drop or (leaves_out(options.on_error) and not inspects):
        return "damage is to be left out, wherever it is"
    if scan.gathers_categories:
        return "the categories of a column are those of all records"
    if options.compression not in (None, "infer"):
        return "the files are compressed"
    if not all(map(attrgetter("can_be_read_again"), scan.sources)):
        return "the files can be read once only"
    if row_filter is None and _wanted_columns(scan) is None:
        return "no filter is given, and no columns are named"
    if row_filter is None and not all(map(_is_worth_a_look, scan.sources)):
        return "no filter is given, and the files are small"
    return ""


def search_indexes(scan: AnyScan, row_filter: RowFilter | None) -> AnyScan | None:
    """A scan that reads less by column indexes: all values of a file, or which records can fulfil a filter.

    None if that would not read less. Its own filter is applied to these records, too. The first record of each file
    with an embedded schema is among them. Those that an `offset` leaves out are not.
    """
    if reason := reason_not_to_search(scan, row_filter):
        logger.debug("column indexes are not searched: %s", reason)
        return None
    from tfrecord_io.index.column_search import column_indexes

    indexes: list[Source | None] = column_indexes(scan.sources)
    matches: list[FileMatches | None] = []
    if any(indexes):
        matches = column_search(scan, row_filter, _wanted_columns(scan)).files(scan.sources, indexes=indexes)
    if row_filter is None and scan.options.inspects and any(match is None for match in matches):
        return None  # a record may be left out
    while any(matches):
        narrowed, named = _select_matches(scan, matches)
        wrong = set() if row_filter is None or narrowed is None else _contradictions(narrowed, row_filter, named)
        if not wrong:
            logger.debug(*_about_search(narrowed, matches))
            return narrowed
        matches = [None if match in wrong else match for match in matches]
    logger.debug("column indexes are not used: no file has one with the columns that matches it")
    return None


def _about_search(narrowed: Scan | None, matches: Sequence[FileMatches | None]) -> tuple[Any, ...]:
    """The message of a search, and its arguments."""
    indexed, files = len(matches) - matches.count(None), counted(len(matches), "file")
    if narrowed is None:
        return "column indexes are not used, of %d of %s: they would not save reading", indexed, files
    picked = narrowed.picked or ()
    records = sum(len(file.records) for file in picked if file.records is not None)
    opened = len(narrowed.sources) - sum(file.values is not None for file in picked)
    text = "column indexes are used, of %d of %s: to open %s, by them %s"
    return text, indexed, files, counted(opened, "file"), counted(records, "record")


def _select_matches(
    scan: AnyScan, matches: Sequence[FileMatches | None]
) -> tuple[AnyScan | None, Sequence[FileMatches | None]]:
    """A scan of the records that match, None if it would not read less; and the matches of what is `picked`."""
    if any(source.file_bytes is not None for source in scan.sources):
        scan, matches = _align_by_index(scan, matches)
    named = matches
    if scan.resolved.source == "embedded":
        pairs = zip(scan.sources, matches, strict=True)
        matches = [
            match if match is None or match.values is not None else _add_first(match, source.shard)
            for source, match in pairs
        ]
    begun, left = _count_skipped_files(matches, scan.options.offset)
    sources, matches, named = scan.sources[begun:], list(matches[begun:]), named[begun:]
    match = matches[0] if matches else None
    if left and sources and match is None:  # of how many files more the offset leaves out all records is not known
        return (scan.with_sources(sources, offset=left) if begun else None), named
    if left and match is not None and match.values is None:
        matches[0] = replace(match, records=match.records[match.records >= left])
    from tfrecord_io.index.column_search import picked_sources

    files = picked_sources(sources, matches)
    read = [file.source for file in files if file.source is not None]
    if read == list(scan.sources) and not any(file.values is not None for file in files):
        return None, named
    is_whole = bool(files) and files[0].source is sources[0]
    narrowed = scan.with_sources(read, offset=left if is_whole else 0)
    return replace(narrowed, picked=tuple(files), left_out=left), named


def _contradictions(scan: Scan, row_filter: RowFilter, named: Sequence[FileMatches | None]) -> set[FileMatches | None]:
    """The matches of indexes that name a record which does not fulfil the filter; it warns of them.

    Such an index is of another content, so it may leave out others that do. Where only some of a file's content was
    compared, the records that it names are read for this, before any row is delivered.
    """
    asked = [
        (file, file.source, match)
        for file, match in zip(scan.picked or (), named, strict=scan.picked is not None)
        if match is not None and match.is_doubtful and file.source is not None and file.records is not None
    ]
    if not asked:
        return set()
    from tfrecord_io.index.column_index import REWRITE_COLUMNS
    from tfrecord_io.index.column_search import keep_frames
    from tfrecord_io.index.find_index import warn_of_stale

    options: dict[str, Any] = {"offset": 0, "on_error": "raise", "progress": False}
    every = (
        replace(scan, row_filter=row_filter)
        .only([])
        .without_filter()
        .with_sources((source for _, source, _ in asked), **options)
    )
    wrong: dict[FileMatches | None, str] = {}
    try:
        with keep_frames(file.frames for file, *_ in asked), open_as_it_is(every) as reader:
            row = 0
            for batch in reader:
                for number, record, count in reader.origins.runs(row, row + len(batch)):
                    file, _, match = asked[number]
                    run, row, batch = batch.slice(0, count), row + count, batch.slice(count)
                    passes = [part.mask(run).to_numpy(zero_copy_only=False) for part in match.parts]
                    records = cast(Array, file.records)[record : record + count][~np.all(passes, axis=0)]
                    if np.isin(records, match.records).any():
                        wrong[match] = "a record that it names does not meet the filter"
    except TFRecordError as error:  # if it is not a mistake of an index, reading the files reports it
        wrong = {match: str(error) for _, _, match in asked}
    advice = f"{REWRITE_COLUMNS}, or delete it; the index is not used"
    texts = [(printable(match.file.path), wrong[match]) for _, _, match in asked if match in wrong]
    warn_of_stale(f"{path}: the column index does not match the file: {reason}; {advice}" for path, reason in texts)
    return set(wrong)


def _align_by_index(scan: AnyScan, matches: Sequence[FileMatches | None]) -> tuple[AnyScan, list[FileMatches | None]]:
    """The byte ranges of a split moved to record boundaries: where a file has an index, by that."""
    from tfrecord_io.read.byte_ranges import align_sources

    sources: list[Source] = []
    kept: list[FileMatches | None] = []
    for source, match in zip(scan.sources, matches, strict=True):
        parts: Sequence[Source] = [source]
        if source.file_bytes is not None and match is not None:
            parts = [match.file.piece(*match.index.bounds[[0, -1]].tolist())]
        elif source.file_bytes is not None:
            parts = align_sources(parts, scan.options.limits.record_bytes)
        sources += parts
        kept += [match] * len(parts)
    return scan.with_sources(sources), kept


def _count_skipped_files(matches: Sequence[FileMatches | None], offset: int) -> tuple[int, int]:
    """The number of files that an offset leaves out wholly, by their indexes, and the offset left for the next."""
    for number, match in enumerate(matches):
        if match is None or offset < match.count:
            return number, offset
        offset -= match.count
    return len(matches), offset


def exclude_rows(scan: AnyScan, filters: Any) -> AnyScan:
    """Exclude files, and records of indexed files, that cannot fulfil a condition.

    The caller filters again: rows that fail the condition remain where decoding them takes less time.
    """
    filtered = scan.filter(filters).prune_files()
    assert filtered.row_filter is not None
    if scan.row_filter is not None:  # its opening searches
        return scan.with_sources(filtered.sources, offset=filtered.options.offset)
    indexed = search_indexes(filtered.with_required_columns(), filtered.row_filter)
    if indexed is not None:
        return scan.with_sources(indexed.sources, offset=indexed.options.offset)
    if 2 * len(scan.schema) < len(scan.compiled.schema):  # most of the time is spent on the names of the features
        return scan.with_sources(filtered.sources)
    return replace(filtered, row_filter=replace(filtered.row_filter, is_hint=True), may_be_indexed=False)


def _add_first(match: FileMatches, shard: ManifestShard | None) -> FileMatches:
    """With the first record, which may have another schema; a file that has none may have columns in any record.

    Where a manifest states the schema of all files, one without a match is not read for its own.
    """
    if shard is not None and shard.manifest.schema is not None and not len(match.records):
        return match
    count = len(match.index)
    if not match.has_schema:
        return replace(match, records=np.arange(count))
    if match.first or not count or (len(match.records) and match.records[0] == 0):
        return match
    return replace(match, records=np.concatenate([[0], match.records]))


def matching_numbers(files: IndexedFiles, search: ColumnSearch) -> tuple[Array, Array, Array]:
    """Find the numbers of the records that fulfil a condition, by column indexes: exact, doubtful, and unindexed.

    Exact numbers are from indexes known to match the content of their file, doubtful ones from other indexes. Unindexed
    records have to be read.
    """
    exact, doubtful, unindexed = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for file, matches in enumerate(search.files(files.sources, files.warn_of_stale)):
        first, count = int(files.first[file]), files.count(file)
        is_partly = matches is not None and matches.is_doubtful and not matches.exact
        if (
            matches is None
            or is_partly
            or files.has_part(file)
            or matches.version != files.version(file)  # replaced since it was opened
            or not np.array_equal(matches.index.bounds, files.indexes[file].bounds)
        ):
            unindexed.append(np.arange(first, first + count, dtype=np.int64))
        else:
            kind = unindexed if not matches.exact else doubtful if matches.is_doubtful else exact
            kind.append(first + matches.records)
    return np.concatenate(exact), np.concatenate(doubtful), np.concatenate(unindexed)
