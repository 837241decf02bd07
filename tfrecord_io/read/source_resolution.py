"""Resolve what a call reads to one value: `Files`, whose schema is not decided yet, or a `Scan`.

Tests: tests/read/test_sources.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload

from tfrecord_io.base import FrameOptions, ReadOptions, ScanOptions, Selection, hide_secrets
from tfrecord_io.read.call_options import add_path_column
from tfrecord_io.read.dataset_splits import find_sources
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.sources import add_folder_types, record_sources, resolve_selection
from tfrecord_io.store import Source

AnyFrameOptions = TypeVar("AnyFrameOptions", bound=FrameOptions)


@dataclass(frozen=True, slots=True)
class Files(Generic[AnyFrameOptions]):
    """Files that were looked up, and how to read them; their schema is not decided yet."""

    sources: tuple[Source, ...]
    options: AnyFrameOptions
    selection: Selection = Selection.ALL  # of the call, or of the dataset that is read anew

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
        of_files = add_folder_types(scan, options).of_scan
        selection = selection_of(scan)
        # The rest of a file is read by the schema at its begin.
        if not as_records and all(source.begins_file for source in scan.sources):
            return Files(scan.sources, of_files, selection)
        return Files(tuple(record_sources(scan, as_they_are=as_records)), of_files, Selection(selection.columns))

    def plan(self: Files[ScanOptions]) -> Scan:
        """The scan of all columns and rows of the files, under one schema."""
        return plan_sources(self.sources, self.options, self.selection)


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
        found, options = resolve_selection(source, options, whole=whole, keeps_filter=keeps_filter)
    if not isinstance(options, ReadOptions):
        return found if isinstance(found, Scan) else Files(tuple(find_sources(found, options)), options)
    if isinstance(found, Scan):
        from tfrecord_io.read.narrow_scan import apply_selection

        return apply_selection(found, options)
    return Files(tuple(find_sources(found, options)), options.of_scan, options.selection)


def selection_of(scan: Scan) -> Selection:
    """The selection to read the columns and rows of a scan from its files."""
    columns = scan.selection.columns
    if scan.selected is not None:
        columns = add_path_column(scan.selected, scan.options.include_file_paths)
    filters = None if scan.row_filter is None else scan.row_filter.condition
    return replace(scan.selection, columns=columns, filters=filters)


def plan_sources(sources: Sequence[Source], options: ScanOptions, selection: Selection) -> Scan:
    """The scan of all columns and rows of files that were looked up, under one schema."""
    for source in sources:
        if source.is_file_object or source.pipe is not None:
            reason = "a file object, or a pipe, is read once, by a call such as tfr.read_table(dataset)"
            advice = "pass the path of a file for what is read any number of times"
            raise TypeError(f"{hide_secrets(source.path)}: {reason}; {advice}")
    return plan_scan(sources, options, selection, only_sample=True).close()
