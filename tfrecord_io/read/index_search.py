"""Read less of a scan by column indexes: all values of a file, or only the records that can fulfil a filter.

`search_indexes` decides that for each file.

Tests: tests/laws/test_indexed_filter_laws.py and tests/laws/test_indexed_values_laws.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS, counted, logger, printable
from tfrecord_io.bytes import Array, FrameHeader
from tfrecord_io.columns import ArrayBuffers, EmbeddedSchema, NamePattern
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import SchemaRevision
from tfrecord_io.read.reader import Planned, Reader, open_as_it_is, plan_read
from tfrecord_io.read.scan import Scan
from tfrecord_io.store import Source

if TYPE_CHECKING:
    from tfrecord_io.read.absent_columns import AbsentColumns
    from tfrecord_io.read.index.column_search import ColumnSearch, FileMatches, FileValues, WantedColumns
    from tfrecord_io.read.index.indexed_files import IndexedFiles
    from tfrecord_io.read.row_filter import RowFilter
    from tfrecord_io.store import RandomAccessFile

    Result = FileMatches | FileValues | None  # of a search in the column index of a file

AnyScan = TypeVar("AnyScan", bound=Scan)


def open_indexed(
    scan: Scan, row_filter: RowFilter | None, absent: AbsentColumns | None = None, *, whole: bool = False
) -> Reader:
    """Open the rows of a scan by its column indexes, which may have the values or choose records."""
    indexed = search_indexes(scan, row_filter)
    if indexed is None:
        return open_as_it_is(scan.align_ranges(), absent, whole=whole)
    return open_as_it_is(indexed, absent if row_filter is None else None, whole=whole)


def use_index(planned: Planned) -> Planned:
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
        # Of all records.
        return planned.replan(ChunkReader(scan.sources, scan.options, scan.decode_selection, whole=whole), revision)

    instead.replan = None if planned.replan is None else replan
    return instead


def search_indexes(scan: AnyScan, row_filter: RowFilter | None) -> AnyScan | None:
    """A scan that reads less by column indexes: all values of a file, or which records can fulfil a filter.

    None if that would not read less. Its own filter is applied to these records, too. The first record of each file
    with an embedded schema is among them. Those that an `offset` leaves out are not.
    """
    if reason := reason_not_to_search(scan, row_filter):
        logger.debug("column indexes are not searched: %s", reason)
        return None
    from tfrecord_io.read.index.column_search import column_indexes

    indexes: list[Source | None] = column_indexes(scan.sources)
    matches: list[Result] = []
    if any(indexes):
        wanted = _wanted_columns(scan) if _names_columns(scan) else None
        matches = column_search(scan, row_filter, wanted).files(scan.sources, indexes=indexes)
    if row_filter is None and scan.options.damage.inspects and any(match is None for match in matches):
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


def reason_not_to_search(scan: AnyScan, row_filter: RowFilter | None) -> str:
    """Why column indexes are not searched; empty if they are."""
    if not scan.may_be_indexed:
        return "no file has one"
    if row_filter is None and not _names_columns(scan):
        return "no filter is given, and no columns are named"
    if row_filter is None and not all(map(_is_worth_a_look, scan.sources)):
        return "no filter is given, and the files are small"
    damage = scan.options.damage
    inspects = row_filter is None and damage.inspects
    _, to_drop = damage.split_offset(scan.selection.offset)
    if to_drop or (damage.goes_on and not inspects):
        return "damage is to be left out, wherever it is"
    if scan.gathers_categories:
        return "the categories of a column are those of all records"
    if scan.options.compression not in (None, "infer"):
        return "the files are compressed"
    if not scan.sources.can_be_read_again:
        return "the files can be read once only"
    if row_filter is None and _wanted_columns(scan) is None:  # the last question, as it makes a field of each column
        return "no filter is given, and an index does not stand for such columns"
    return ""


def indexed_fields(scan: Scan, names: Iterable[str]) -> list[pa.Field]:
    """How a scan reads columns: equal fields have equal values. Partition columns are not among them."""
    if scan.settings.as_bytes:
        return []
    fields = {field.column: field for field in scan.features}
    return [
        fields[name].to_arrow().with_type(scan.compiled.schema.field(name).type) for name in names if name in fields
    ]


def column_search(scan: Scan, row_filter: RowFilter | None, wanted: WantedColumns | None = None) -> ColumnSearch:
    """The search for the columns that are wanted of a scan, or for its rows, in column indexes."""
    from tfrecord_io.read.index.column_search import ColumnSearch
    from tfrecord_io.read.row_filter import RowFilter

    conjuncts = () if row_filter is None else row_filter.condition.conjuncts
    parts = [RowFilter(part, part.columns) for part in conjuncts]
    constants = partial(scan.added.row_of, schema=scan.compiled.schema)
    fields_of_filter = indexed_fields(scan, () if row_filter is None else row_filter.columns)
    return ColumnSearch(parts, pa.schema(fields_of_filter), constants, wanted)


def _names_columns(scan: Scan) -> bool:
    """True if the columns are named, or declared, so that others in a record change nothing.

    A pattern also selects features that no schema names.
    """
    if scan.resolved.is_declared:
        return True
    entries = scan.selection.columns
    return entries is not None and not any(NamePattern(entry).is_glob or entry.startswith("!") for entry in entries)


def _wanted_columns(scan: Scan) -> WantedColumns | None:
    """The columns of a scan, of which `_names_columns` is true, if indexes may stand for its files; else None."""
    options = scan.options
    fields = indexed_fields(scan, scan.features.names) if options.record_type is None else []
    if not fields:
        return None
    obeys = options.schema is None

    def covers(source: Source, content: bytes | None) -> bool:
        if not obeys:
            return True
        if content is None:  # then any record may have more features, unless none had an embedded schema
            return not scan.resolved.is_embedded
        return scan.embedded_check.check(source.path, 0, 0, content) is None

    def read_embedded(source: Source, file: RandomAccessFile) -> bytes | None:
        if not obeys:
            return None
        stated_schema = None if source.shard is None else source.shard.manifest.schema
        if stated_schema is not None:
            return stated_schema
        first = file.read(0, FrameHeader(file.read(0, FrameHeader.BYTES)).frame_size)
        return EmbeddedSchema.content_of(first, check_crc=options.check_crc)

    from tfrecord_io.read.index.column_search import WantedColumns

    return WantedColumns(pa.schema(fields), covers, read_embedded, options.limits.record_bytes)


def _is_worth_a_look(source: Source) -> bool:
    """True if a look for an index takes less than reading a file, or a piece of one."""
    least_bytes = LIMITS.decoded_file_bytes if source.local and source.span is None else LIMITS.least_piece_bytes
    return source.size is None or source.size >= least_bytes


def _about_search(narrowed: Scan | None, matches: Sequence[Result]) -> tuple[Any, ...]:
    """The message of a search, and its arguments."""
    indexed, files = len(matches) - matches.count(None), counted(len(matches), "file")
    if narrowed is None:
        return "column indexes are not used, of %d of %s: they would not save reading", indexed, files
    picked = narrowed.picked or ()
    records = sum(len(file.records) for file in picked if file.records is not None)
    opened = len(narrowed.sources) - sum(file.values is not None for file in picked)
    text = "column indexes are used, of %d of %s: to open %s, by them %s"
    return text, indexed, files, counted(opened, "file"), counted(records, "record")


def _select_matches(scan: AnyScan, matches: Sequence[Result]) -> tuple[AnyScan | None, Sequence[Result]]:
    """A scan of the records that match, None if it would not read less; and the matches of what is `picked`."""
    from tfrecord_io.read.index.column_search import FileMatches
    from tfrecord_io.read.index.picked_records import picked_sources

    if any(source.file_bytes is not None for source in scan.sources):
        scan, matches = _align_by_index(scan, matches)
    named = matches
    if scan.resolved.is_embedded:
        pairs = zip(scan.sources, matches, strict=True)
        matches = [_add_first(match, source) if isinstance(match, FileMatches) else match for source, match in pairs]
    begun, left = _count_skipped_files(matches, scan.selection.offset)
    sources, matches, named = scan.sources[begun:], list(matches[begun:]), named[begun:]
    match = matches[0] if matches else None
    if left and sources and match is None:  # of how many files more the offset leaves out all records is not known
        return (scan.with_sources(sources, offset=left) if begun else None), named
    if left and isinstance(match, FileMatches):
        matches[0] = replace(match, records=match.records[match.records >= left])
    files = picked_sources(sources, matches)
    read = [file.source for file in files if file.source is not None]
    if scan.sources == read and not any(file.values is not None for file in files):
        return None, named
    is_whole = bool(files) and files[0].source is sources[0]
    narrowed = scan.with_sources(read, offset=left if is_whole else 0)
    return replace(narrowed, picked=tuple(files), left_out=left), named


def _contradictions(scan: Scan, row_filter: RowFilter, named: Sequence[Result]) -> set[Result]:
    """The matches of indexes that name a record which does not fulfil the filter; it warns of them.

    Such an index is of another content, so it may leave out others that do. Where only some of a file's content was
    compared, the records that it names are read for this, before any row is delivered.
    """
    from tfrecord_io.read.index.column_search import FileMatches

    asked = [
        (file, file.source, match)
        for file, match in zip(scan.picked or (), named, strict=scan.picked is not None)
        if isinstance(match, FileMatches) and match.is_doubtful and file.source is not None and file.records is not None
    ]
    if not asked:
        return set()
    from tfrecord_io.read.index.column_index import REWRITE_COLUMNS
    from tfrecord_io.read.index.find_index import warn_of_stale
    from tfrecord_io.read.index.picked_records import keep_frames

    every = (
        replace(scan, row_filter=row_filter)
        .only([])
        .without_filter()
        .with_sources((source for _, source, _ in asked), offset=0)
        .with_options(on_error="raise", progress=False)
    )
    wrong: dict[Result, str] = {}
    try:
        with keep_frames(file.frames for file, *_ in asked), open_as_it_is(every) as reader:
            row = 0
            for batch in reader:
                for number, record, count in reader.origins.runs(row, row + len(batch)):
                    file, _, match = asked[number]
                    run, row, batch = batch.slice(0, count), row + count, batch.slice(count)
                    passes = [ArrayBuffers(part.mask(run)).numbers for part in match.parts]
                    records = cast(Array, file.records)[record : record + count][~np.all(passes, axis=0)]
                    if np.isin(records, match.records).any():
                        wrong[match] = "a record that it names does not meet the filter"
    except TFRecordError as error:  # if it is not a mistake of an index, reading the files reports it
        wrong = {match: str(error) for _, _, match in asked}
    advice = f"{REWRITE_COLUMNS}, or delete it; the index is not used"
    texts = [(printable(match.file.source.path), wrong[match]) for _, _, match in asked if match in wrong]
    warn_of_stale(f"{path}: the column index does not match the file: {reason}; {advice}" for path, reason in texts)
    return set(wrong)


def _align_by_index(scan: AnyScan, matches: Sequence[Result]) -> tuple[AnyScan, list[Result]]:
    """The byte ranges of a split moved to record boundaries: where a file has an index, by that."""
    from tfrecord_io.read.byte_ranges import align_sources

    sources: list[Source] = []
    kept: list[Result] = []
    for source, match in zip(scan.sources, matches, strict=True):
        parts: Sequence[Source] = [source]
        if source.file_bytes is not None and match is not None:
            parts = [match.file.source.piece(*match.index.bounds[[0, -1]].tolist())]
        elif source.file_bytes is not None:
            parts = align_sources(parts, scan.options.limits.record_bytes)
        sources += parts
        kept += [match] * len(parts)
    return scan.with_sources(sources), kept


def _count_skipped_files(matches: Sequence[Result], offset: int) -> tuple[int, int]:
    """The number of files that an offset leaves out wholly, by their indexes, and the offset left for the next."""
    for number, match in enumerate(matches):
        if match is None or offset < match.count:
            return number, offset
        offset -= match.count
    return len(matches), offset


def _add_first(match: FileMatches, source: Source) -> FileMatches:
    """With the first record, which may have another schema; a file that has none may have columns in any record.

    Where a manifest states the schema of all files, one without a match is not read for its own.
    """
    shard = source.shard
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
    from tfrecord_io.read.index.column_search import FileMatches

    exact, doubtful, unindexed = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for file, matches in enumerate(search.files(files.sources, files.warn_of_stale)):
        first, count = int(files.first[file]), files.count(file)
        is_partly = isinstance(matches, FileMatches) and matches.is_doubtful and not matches.exact
        if (
            not isinstance(matches, FileMatches)
            or is_partly
            or files.has_part(file)
            or matches.file.version != files.version(file)  # replaced since it was opened
            or not np.array_equal(matches.index.bounds, files.indexes[file].bounds)
        ):
            unindexed.append(np.arange(first, first + count, dtype=np.int64))
        else:
            kind = unindexed if not matches.exact else doubtful if matches.is_doubtful else exact
            kind.append(first + matches.records)
    return np.concatenate(exact), np.concatenate(doubtful), np.concatenate(unindexed)
