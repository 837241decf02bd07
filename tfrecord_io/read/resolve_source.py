"""Resolve what a call reads to one value: `Files`, whose schema is not decided yet, or a `Scan`.

Tests: tests/read/test_sources.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tfrecord_io.errors import hide_secrets
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.call_options import add_path_column, pace_options
from tfrecord_io.read.dataset_splits import resolve_sources
from tfrecord_io.read.narrow_scan import apply_selection
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Scan, unwrap_scans
from tfrecord_io.read.sources import ChosenRecords, as_list, paths_of, record_sources, resolve_selection
from tfrecord_io.storage.read.source import Source

AnyOptions = TypeVar("AnyOptions", bound=ReadOptions)


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
        return replace(scan, origin=(scan.origin[0], scan.origin[1].changed(**pace_options(options))))
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
