"""Open what is read: by a path or a dataset, or as a scan.

A `CallSource` is what reading calls get, and `open_scan` opens a scan that was planned.

Tests: tests/read/test_scan.py and tests/read/test_sources.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.base import FrameOptions, ReadOptions, ScanOptions, StorageOptions
from tfrecord_io.read.call_options import AnyOptions, datasets_in, pace_options, refuse_options
from tfrecord_io.read.dataset_splits import resolve_sources
from tfrecord_io.read.index_search import open_indexed, use_index
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.record_checks import AbsentColumns, warn_of_schema
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Origin, Scan, ScanHolder
from tfrecord_io.read.source_resolution import Files, resolve_source
from tfrecord_io.read.sources import add_folder_types, resolve_selection
from tfrecord_io.store import Source

if TYPE_CHECKING:
    from tfrecord_io.base import CopyOptions


class CallSource:
    """The source that a call is given: a path, a file object, a dataset, a piece of one, or a list of those."""

    def __init__(self, given: Any) -> None:
        self.given = given

    @property
    def may_be_read(self) -> bool:
        """True if it is a path, a dataset, or a list of those, and no data."""
        parts = self.given if isinstance(self.given, list | tuple) and self.given else [self.given]
        return all(isinstance(part, str | os.PathLike | ScanHolder) for part in parts)

    @property
    def datasets(self) -> list[Scan]:
        """The datasets, and the pieces of them, that it is or has."""
        return datasets_in(self.given)

    @property
    def paths(self) -> list[Any]:
        """The paths by which its files were looked up, or their own."""
        parts = self.given if isinstance(self.given, list | tuple) else [self.given]
        paths: list[Any] = []
        for part in map(Scan.unwrap, parts):
            looked_up = part.files if isinstance(part, Scan) and part.origin is None else part
            if isinstance(looked_up, Scan) and looked_up.origin is not None:
                looked_up = looked_up.origin.path
            paths += looked_up if isinstance(looked_up, list | tuple) else [looked_up]
        return paths

    @property
    def storage_keywords(self) -> dict[str, Any]:
        """The keywords of the storage of a dataset, for a call that changes its files."""
        scan = Scan.unwrap(self.given)
        return scan.stated.storage.keywords if isinstance(scan, Scan) else {}

    def listed(self) -> CallSource:
        """An iterable as a list, which can be gone through again; anything else, and a set, as it is."""
        given = self.given
        kept = isinstance(given, str | os.PathLike | ScanHolder | set | frozenset) or hasattr(given, "read")
        return self if kept or not isinstance(given, Iterable) else CallSource(list(given))

    def whole_files(self, verb: str, refused: Set[str] = frozenset()) -> Any:
        """The paths, for a call that works on whole files, which `verb` names, and takes none of the `refused` options.

        ValueError if it is a piece of a dataset, or a list with a dataset of a split.
        """
        for dataset in self.datasets if refused else ():
            refuse_options(dataset, verb, refused)
        source = Scan.unwrap(self.given)
        if isinstance(source, list | tuple):
            origins = [part.origin for part in source if isinstance(part, Scan) and part.origin is not None]
            if any(origin.options.split is not None for origin in origins):
                raise ValueError(f"{verb} takes no list with a dataset of a split: pass its datasets one by one")
            paths = (CallSource(part).whole_files(verb) for part in source)
            return [path for part in paths for path in (part if isinstance(part, list | tuple) else [part])]
        if not isinstance(source, Scan):
            return source
        if source.origin is None:
            reason = f"{verb} works on whole files, and not on a piece of a dataset"
            raise ValueError(f"{reason}: pass the dataset, or a path")
        return source.origin.path

    def one_path(self, verb: str) -> str | os.PathLike[str]:
        """The path, for a call that changes the files of one dataset; see `whole_files`."""
        path = self.whole_files(verb)
        if not isinstance(path, str | os.PathLike):
            expected = "the path of one dataset, as str or PathLike, or a Dataset"
            raise TypeError(f"{verb} takes {expected}, not a {type(path).__name__}")
        return path

    def resolve_selection(self, options: AnyOptions) -> tuple[Any, AnyOptions]:
        """See `tfrecord_io.read.sources.resolve_selection`."""
        return resolve_selection(self.given, options)

    def add_folder_types(self, options: AnyOptions) -> AnyOptions:
        """See `tfrecord_io.read.sources.add_folder_types`."""
        return add_folder_types(self.given, options)

    def files(
        self, options: FrameOptions | CopyOptions, storage: StorageOptions | None = None, **how: Any
    ) -> list[Source]:
        """The files; see `tfrecord_io.read.dataset_splits.resolve_sources`."""
        return resolve_sources(self.given, options, storage, **how)

    def resolve(self, options: ReadOptions) -> Files[ScanOptions] | Scan:
        """The rows that a reading call selects; see `tfrecord_io.read.source_resolution.resolve_source`."""
        return resolve_source(self.given, options)

    def scan(self, options: ReadOptions) -> Scan:
        """The rows that a reading call selects, to be opened later, once or several times."""
        found = self.resolve(options)
        return found if isinstance(found, Scan) else plan_scan(found.sources, found.options, found.selection).close()

    def dataset(self, options: ReadOptions) -> Scan:
        """All columns and rows of files, under one schema; see `tfrecord_io.dataset`."""
        source = Scan.unwrap(self.listed().given)
        found = resolve_source(source, options)
        if isinstance(found, Scan):
            if found.origin is None:
                return found
            paced = found.origin.options.changed(**pace_options(options))
            return replace(found, origin=found.origin._replace(options=paced))
        origin: Origin | None = Origin(source, options.of_scan, options.selection)
        if isinstance(source, Scan):
            assert source.origin is not None
            origin = Origin(source.origin.path, found.options, found.selection)
        elif scans := [part for part in source if isinstance(part, Scan)] if isinstance(source, list) else []:
            origins = [scan.origin for scan in scans if scan.origin is not None and scan.origin.options.split is None]
            are_whole = len(origins) == len(scans) and not any(scan.chooses_rows for scan in scans)
            origin = Origin(CallSource(source).paths, options.of_scan, options.selection) if are_whole else None
        return replace(found.plan(), origin=origin)

    def open(self, options: ReadOptions, *, whole: bool = False, with_index: bool = False) -> Reader:
        """Plan a read and open it; see `plan_scan`.

        A dataset is read under its schema, unless that is to be inspected.
        """
        found = resolve_source(self.given, options, whole=whole)
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
