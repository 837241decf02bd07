"""Resolve what a call reads to one value: `Files`, whose schema is not decided yet, or a `Scan`.

Tests: tests/read/test_sources.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from tfrecord_io.base import FrameOptions, ReadOptions, ScanOptions, Selection, hide_secrets
from tfrecord_io.bytes import RecordType
from tfrecord_io.columns import Column, EmbeddedSchema, Schema
from tfrecord_io.read.added_columns import AddedColumns
from tfrecord_io.read.call_options import add_path_column
from tfrecord_io.read.find_sources import find_sources
from tfrecord_io.read.index_search import use_index
from tfrecord_io.read.reader import Planned, Reader, open_as_it_is
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import ResolvedSchema, Scan
from tfrecord_io.store import Source, Sources

if TYPE_CHECKING:
    from tfrecord_io.read.index.known_counts import KnownCounts

AnyFrameOptions = TypeVar("AnyFrameOptions", bound=FrameOptions)


class Files(Generic[AnyFrameOptions]):
    """Files that were looked up, and how to read them; their schema is not decided yet.

    `selection` is that of the call, or of the dataset that is read again.
    """

    def __init__(self, sources: Sources, options: AnyFrameOptions, selection: Selection = Selection.ALL) -> None:
        self.sources, self.options, self.selection = sources, options, selection

    def with_options(self, options: AnyFrameOptions) -> Files[AnyFrameOptions]:
        """Return the same files, to be read with other options."""
        return Files(self.sources, options, self.selection)

    def with_sources(self, sources: Sources) -> Files[AnyFrameOptions]:
        """Return other files, to be read with the same options."""
        return Files(sources, self.options, self.selection)

    def select(self, columns: Sequence[str]) -> Files[AnyFrameOptions]:
        """Return the same files, of which only some columns are read, and all rows."""
        return Files(self.sources, self.options, Selection(tuple(columns)))

    @staticmethod
    def compression_of(source: Source) -> str | None:
        """The compression of a file, by its name and first bytes; None: not compressed."""
        from tfrecord_io.read.chunks.block_walker import RecordFile

        with closing(RecordFile(source)) as file:
            return file.compression

    @staticmethod
    def from_source(source: Any, options: ReadOptions, *, as_records: bool = False) -> Files[ScanOptions]:
        """Resolve the source of a call to files, for a call that plans their read by itself.

        With `as_records`, the files have only the records that the call reads, and not the schema that is embedded.
        """
        found = resolve_source(source, options, keeps_filter=as_records)
        return found if isinstance(found, Files) else Files.from_scan(found, options, as_records=as_records)

    @staticmethod
    def from_scan(scan: Scan, options: ReadOptions, *, as_records: bool = False) -> Files[ScanOptions]:
        """The files of a scan, to be read by a call's own options with the scan's selection; see `from_source`."""
        from tfrecord_io.read.sources import add_folder_types, record_sources  # for datasets only

        of_files = add_folder_types(scan, options).of_scan
        selection = selection_of(scan)
        # The rest of a file is read by the schema at its begin.
        if not as_records and (scan.sources.are_of_manifest or all(source.begins_file for source in scan.sources)):
            return Files(scan.sources, of_files, selection)
        return Files(Sources(record_sources(scan, as_they_are=as_records)), of_files, Selection(selection.columns))

    def plan(self: Files[ScanOptions], first_files: int | None = None) -> Scan:
        """The scan of all columns and rows of the files, under one schema.

        With `first_files`, that of so many files in a bucket; of large records on a disk, as `cut_to_first_values`, and
        of very many features, as `plan_many_features`.
        """
        first: Sequence[Source] | None = None
        if first_files is not None and any(source.remote is not None for source in self.sources[:1]):
            first = self.sources[:first_files]
        elif first_files is not None and not self.sources.are_of_manifest:
            from tfrecord_io.read.first_values import cut_to_first_values
            from tfrecord_io.read.plan_many_features import plan_many_features

            first = cut_to_first_values(self.sources, self.options)
            scan = plan_many_features(Sources.of(first or self.sources), self.options, self.selection)
            if scan is not None:
                return scan.with_sources(self.sources)
        if first is None:
            return plan_sources(self.sources, self.options, self.selection)
        return plan_sources(Sources.of(first), self.options, self.selection).with_sources(self.sources)

    def plan_scan(self: Files[ScanOptions], **how: Any) -> Planned:
        """Decide the schema of the read; see `tfrecord_io.read.resolve_schema.plan_scan`, which has the keywords."""
        return plan_scan(self.sources, self.options, self.selection, **how)

    def open(self: Files[ScanOptions], *, whole: bool = False, with_index: bool = False) -> Reader:
        """Plan the read, and open it; `whole` and `with_index`: see `tfrecord_io.read.scan_rows.ScanRows.open`."""
        planned = plan_scan(self.sources, self.options, self.selection, whole=whole, with_index=with_index)
        try:
            planned.scan.refuse_conflicts()
            if not (whole and planned.scan.resolved.is_inferred):  # from all records
                planned = use_index(planned)
        except BaseException:
            planned.close()
            raise
        return Reader(planned)

    def check_embedded(self: Files[ScanOptions], embedded: EmbeddedSchema) -> None:
        """Read all records by a schema that may be embedded in them: SchemaError or DecodeError if they do not fit it.

        It has to name all features. Schemas that are embedded in the files do not count.
        """
        schema = Schema.parse(embedded.schema)
        has_steps = any(field.part == Column.FEATURE_LIST for field in schema)
        record_type = RecordType.SEQUENCE_EXAMPLE if has_steps else RecordType.DETECT
        resolved = ResolvedSchema(schema, "embedded", record_type, embedded)
        options = self.options.changed(schema=schema)
        scan = Scan(self.sources, options, Selection.ALL, resolved, partitions=AddedColumns())
        with open_as_it_is(scan) as reader:
            for _ in reader:
                pass

    def count_records(self) -> list[int]:
        """Count the records of each file: by manifests and indexes, else by the headers of records."""
        from tfrecord_io.read.chunks.count_frames import records_of_files

        return records_of_files(self.sources, self.options)

    def known_counts(
        self, *, may_scan: bool = True, is_checked: bool = True, all_machines: bool = False
    ) -> KnownCounts:
        """Numbers of records from manifests, indexes and descriptions of TFDS; see `KnownCounts`."""
        from tfrecord_io.read.index.known_counts import KnownCounts

        return KnownCounts(self.options, may_scan=may_scan, is_checked=is_checked, all_machines=all_machines)

    def find_all_indexes(self) -> list[tuple[Source, ...]]:
        """The index files next to each file."""
        from tfrecord_io.read.index.find_index import find_all_indexes

        return find_all_indexes(self.sources)

    def schema_for_manifest(self: Files[ScanOptions], records: Sequence[int]) -> tuple[bytes | None, tuple[str, ...]]:
        """Decide the schema of a manifest of the files; see `tfrecord_io.read.manifest_schema.schema_for_manifest`."""
        from tfrecord_io.read.manifest_schema import schema_for_manifest

        return schema_for_manifest(self.sources, records, self.options)


@overload
def resolve_source(
    source: Any, options: ReadOptions, *, whole: bool = False, keeps_filter: bool = False
) -> Files[ScanOptions] | Scan: ...


@overload
def resolve_source(
    source: Any, options: AnyFrameOptions, *, whole: bool = False, keeps_filter: bool = False
) -> Files[AnyFrameOptions] | Scan: ...


def resolve_source(source: Any, options: Any, *, whole: bool = False, keeps_filter: bool = False) -> Files[Any] | Scan:
    """Resolve the source of a call: a path, a file object, a dataset, a piece of one, or a list of those.

    A dataset that is read under its schema is a `Scan`, narrowed to the rows and columns that a reading call selects.
    Anything else is `Files`, with the call's selection. `whole` and `keeps_filter`: see `resolve_selection`.
    """
    found = source
    if not isinstance(source, str | os.PathLike):  # which is no dataset
        from tfrecord_io.read.sources import resolve_selection

        found, options = resolve_selection(source, options, whole=whole, keeps_filter=keeps_filter)
    if not isinstance(options, ReadOptions):
        return found if isinstance(found, Scan) else Files(find_sources(found, options), options)
    if isinstance(found, Scan):
        from tfrecord_io.read.narrow_scan import apply_selection

        return apply_selection(found, options)
    return Files(find_sources(found, options), options.of_scan, options.selection)


def selection_of(scan: Scan) -> Selection:
    """The selection to read the columns and rows of a scan from its files."""
    columns = scan.selection.columns
    if scan.selected is not None:
        columns = add_path_column(scan.selected, scan.options.include_file_paths)
    filters = None if scan.row_filter is None else scan.row_filter.condition
    return scan.selection._replace(columns=columns, filters=filters)


def plan_sources(sources: Sources, options: ScanOptions, selection: Selection) -> Scan:
    """The scan of all columns and rows of files that were looked up, under one schema."""
    for source in () if sources.are_of_manifest else sources:
        if source.is_file_object or source.pipe is not None:
            reason = "a file object, or a pipe, is read once, by a call such as tfr.read_table(dataset)"
            advice = "pass the path of a file for what is read any number of times"
            raise TypeError(f"{hide_secrets(source.path)}: {reason}; {advice}")
    return plan_scan(sources, options, selection, only_sample=True).close()
