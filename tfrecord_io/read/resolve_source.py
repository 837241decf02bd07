"""Resolve what a call reads to one value: `Files`, whose schema is not decided yet, or a `Scan`.

Tests: tests/read/test_sources.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from tfrecord_io.errors import hide_secrets
from tfrecord_io.options import FrameOptions, ReadOptions
from tfrecord_io.read.call_options import add_path_column, pace_options
from tfrecord_io.read.dataset_splits import find_sources
from tfrecord_io.read.narrow_scan import apply_selection
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Scan, unwrap_scans
from tfrecord_io.read.sources import add_folder_types, as_list, paths_of, record_sources, resolve_selection
from tfrecord_io.storage.read.source import Source

AnyFrameOptions = TypeVar("AnyFrameOptions", bound=FrameOptions)
AnyOptions = TypeVar("AnyOptions", bound=ReadOptions)


@dataclass(frozen=True, slots=True)
class Files(Generic[AnyFrameOptions]):
    """Files that were looked up, and the options to read them by; their schema is not decided yet."""

    sources: tuple[Source, ...]
    options: AnyFrameOptions  # with the selection of the call, or of the dataset that is read anew

    @staticmethod
    def from_source(source: Any, options: AnyOptions, *, as_records: bool = False) -> Files[AnyOptions]:
        """Resolve the source of a call to files, for a call that plans their read by itself.

        With `as_records`, the files have only the records that the call reads, and not the schema that is embedded.
        """
        found = resolve_source(source, options, keeps_filter=as_records)
        return found if isinstance(found, Files) else Files.from_scan(found, options, as_records=as_records)

    @staticmethod
    def from_scan(scan: Scan, options: AnyOptions, *, as_records: bool = False) -> Files[AnyOptions]:
        """The files of a scan, to be read by a call's own options with the scan's selection; see `from_source`."""
        selected = add_selection(add_folder_types(scan, options), scan)
        # The rest of a file is read by the schema at its begin.
        if not as_records and all(source.begins_file for source in scan.sources):
            return Files(scan.sources, selected)
        sources = record_sources(scan, as_they_are=as_records)
        return Files(tuple(sources), selected.changed(filters=None, offset=0, limit=None))


def resolve_source(
    source: Any, options: AnyFrameOptions, *, whole: bool = False, keeps_filter: bool = False
) -> Files[AnyFrameOptions] | Scan:
    """Resolve the source of a call: a path, a file object, a dataset, a piece of one, or a list of those.

    A dataset that is read under its schema is a `Scan`, narrowed to the rows and columns that a reading call selects.
    Anything else is `Files`. `whole` and `keeps_filter`: see `resolve_selection`.
    """
    found, options = resolve_selection(source, options, whole=whole, keeps_filter=keeps_filter)
    if isinstance(found, Scan):
        return apply_selection(found, options) if isinstance(options, ReadOptions) else found
    return Files(tuple(find_sources(found, options)), options)


def add_selection(options: AnyOptions, scan: Scan) -> AnyOptions:
    """The options with what a scan selects."""
    columns = scan.options.columns
    if scan.selected is not None:
        columns = add_path_column(scan.selected, scan.options.include_file_paths)
    filters = None if scan.row_filter is None else scan.row_filter.condition
    limits: dict[str, Any] = {"offset": scan.options.offset, "limit": scan.options.limit}
    return options.changed(columns=columns, filters=filters, **limits)


def plan_source(source: Any, options: ReadOptions) -> Scan:
    """Plan the scan of a call, to be opened later, once or several times."""
    found = resolve_source(source, options)
    return found if isinstance(found, Scan) else plan_scan(found.sources, found.options).close()


def plan_dataset(source: Any, options: ReadOptions) -> Scan:
    """The scan of all columns and rows of files, under one schema; see `tfrecord_io.dataset`."""
    source = unwrap_scans(as_list(source))
    found = resolve_source(source, options)
    if isinstance(found, Scan):
        if found.origin is None:
            return found
        return replace(found, origin=(found.origin[0], found.origin[1].changed(**pace_options(options))))
    origin: tuple[Any, ReadOptions] | None = (source, options)
    if isinstance(source, Scan):
        assert source.origin is not None
        origin = (source.origin[0], found.options)
    elif scans := [part for part in source if isinstance(part, Scan)] if isinstance(source, list) else []:
        are_whole = all(s.origin is not None and s.origin[1].split is None and not s.chooses_rows for s in scans)
        origin = (paths_of(source), options) if are_whole else None
    return replace(plan_sources(found.sources, found.options), origin=origin)


def plan_sources(sources: Sequence[Source], options: ReadOptions) -> Scan:
    """The scan of all columns and rows of files that were looked up, under one schema."""
    for source in sources:
        if source.is_file_object or source.pipe is not None:
            reason = "a file object, or a pipe, is read once, by a call such as tfr.read_table(dataset)"
            advice = "pass the path of a file for what is read any number of times"
            raise TypeError(f"{hide_secrets(source.path)}: {reason}; {advice}")
    return plan_scan(sources, options, only_sample=True).close()
