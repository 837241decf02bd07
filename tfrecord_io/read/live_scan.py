"""Look up the files of a scan again.

Tests: tests/apps/test_lazy_dataset.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from tfrecord_io.base import did_you_mean
from tfrecord_io.errors import FeatureNotFoundError, SchemaError
from tfrecord_io.read.find_sources import resolve_sources
from tfrecord_io.read.narrow_scan import apply_filter
from tfrecord_io.read.scan import Before, Scan
from tfrecord_io.read.source_resolution import plan_sources
from tfrecord_io.store import Source, Sources

AnyScan = TypeVar("AnyScan", bound=Scan)


def refresh_scan(scan: AnyScan, sources: Sources | None = None) -> AnyScan:
    """Look up the current files for the same columns and rows; or take `sources`, if they were looked up.

    ValueError if it is a part of what was opened, FeatureNotFoundError if a column that is selected does not exist any
    more.
    """
    if scan.origin is None:
        raise ValueError("only what was opened as a whole can be refreshed: call tfr.dataset(path) again")
    path, options, selection = scan.origin
    latest = plan_sources(resolve_sources(path, options) if sources is None else sources, options, selection)
    latest = latest.with_selection(limit=scan.selection.limit, offset=scan.selection.offset)
    names = ("sources", "options", "selection", "resolved", "partitions", "sidecar", "compiled")
    plan: dict[str, Any] = {name: getattr(latest, name) for name in names}
    result = replace(scan, **plan, selected=None, row_filter=None, refreshed=_describe_before(scan))
    if scan.row_filter is not None:
        result = apply_filter(result, scan.row_filter.condition)
    if scan.selected is None:
        return result
    for name in scan.selected:
        if name not in result.compiled.schema.names:
            reason = "the files that are there now do not have this column"
            hint = did_you_mean(name, result.compiled.schema.names, lists_names=True)
            raise FeatureNotFoundError(reason, feature=name, hint=hint)
    return result.only(scan.selected)


def _describe_before(scan: Scan) -> Before | None:
    """What `LazyScan.skip` has to know of a scan whose rows have the order of folders; None for other scans."""
    from tfrecord_io.read.dataset_version import version_of

    rows, version = scan.rows, version_of(scan)
    return Before(rows, str(version)) if scan.partitions.names and rows and version is not None else None


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
        path, options, _ = self.scan.origin
        sources = resolve_sources(path, options)
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
