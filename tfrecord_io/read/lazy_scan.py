"""The scan of a dataset: its schema is found when it is first needed.

Tests: tests/apps/test_lazy_dataset.py.
"""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

from tfrecord_io.base import ReadOptions
from tfrecord_io.read.find_sources import find_sources
from tfrecord_io.read.live_scan import refresh_scan
from tfrecord_io.read.narrow_scan import apply_filter, skip_rows
from tfrecord_io.read.scan import Origin, Scan
from tfrecord_io.read.source_resolution import Files, plan_sources
from tfrecord_io.read.sources import absolute_paths
from tfrecord_io.store import Source, Sources

if TYPE_CHECKING:
    from tfrecord_io.read.explanation import Explanation
    from tfrecord_io.read.reader import Reader

_SLOTS: Any = Scan
_SOURCES, _ORIGIN = _SLOTS.sources, _SLOTS.origin
_NAMES = {field.name for field in fields(Scan)}


def _absolute(slot: Any, scan: LazyScan) -> Any:
    """The value of a slot, once the paths of both are absolute in another working directory."""
    directory = scan.directory
    if directory is not None and Source.is_elsewhere(directory):
        origin, sources = _ORIGIN.__get__(scan), _SOURCES.__get__(scan)
        if origin is not None:
            path = absolute_paths(origin.path, origin.options.storage, directory)
            _ORIGIN.__set__(scan, origin._replace(path=path))
        _SOURCES.__set__(scan, sources.absolute(directory))
        object.__setattr__(scan, "directory", None)
    return slot.__get__(scan)


class LazyScan(Scan):
    """A scan that finds its schema later, and whose relative paths mean the same files in another working directory."""

    __slots__ = ()

    @classmethod
    def from_sources(cls, path: Any, options: ReadOptions, sources: Sources) -> Self:
        """A dataset of files that were looked up, without its schema yet."""
        scan = object.__new__(cls)
        origin = Origin(path, options.of_scan, options.selection)
        attributes = {"directory": sources.working_directory, "sources": sources, "origin": origin}
        for name, value in attributes.items():
            object.__setattr__(scan, name, value)
        return scan

    @classmethod
    def from_scan(cls, scan: Scan) -> Self:
        """A dataset from a scan, so with its schema."""
        values = dict(zip(_NAMES, attrgetter(*_NAMES)(scan), strict=True))
        return cls(**{**values, "directory": scan.directory or scan.sources.working_directory})

    def filter_rows(self, filters: Any) -> Self:
        return apply_filter(self, filters)

    filter_rows.__doc__ = apply_filter.__doc__

    def skip(self, rows: int) -> Self:
        """Leave out the first rows; ValueError if they are to be those before the scan was refreshed, and are not."""
        if self.refreshed is not None and rows == self.refreshed.rows:
            from tfrecord_io.read.followed_rows import check_added_are_last

            check_added_are_last(self, self.refreshed.version)
        return skip_rows(self, rows)

    def refresh_files(self) -> Self:
        """Look up the files that are there now; see `refresh_scan`."""
        return refresh_scan(self)

    @property
    def version(self) -> str | None:
        """The version of the dataset, as text; None if no manifest states one for all files."""
        from tfrecord_io.read.dataset_version import version_of

        version = version_of(self)
        return None if version is None else str(version)

    def check_followed(self, version: str | None, keyword: str = "since") -> None:
        """Raise the errors of `added_since` that follow from the files as they are now and from the version."""
        from tfrecord_io.read.dataset_version import Version
        from tfrecord_io.read.followed_rows import check_followed

        check_followed(self, None if version is None else Version.parse(version, keyword))

    def added_since(self, version: str | None, until: str | None = None) -> tuple[Self | None, str]:
        """Rows added after a version, and the version with these rows; see `find_added`."""
        from tfrecord_io.read.dataset_version import Version
        from tfrecord_io.read.followed_rows import find_added

        first = None if version is None else Version.parse(version)
        last = None if until is None else Version.parse(until, "until")
        added, latest = find_added(self, first, last)
        return added, str(latest)

    def open_all(self, *, with_index: bool = False, **changes: Any) -> Reader:
        """Open all rows of a dataset, under the types that all of them have; of a selection, under its schema.

        `changes`: options of `ScanOptions` instead of those of the dataset, such as the size of batches.
        """
        from tfrecord_io.read.scan_rows import ScanRows

        if self._has_open_types:  # the read is planned again, by all rows
            options = self.stated.changed(**changes)
            files = Files(find_sources(self.sources, options), options)
            return files.open(whole=True, with_index=with_index)
        scan = self.with_options(**changes) if changes else self
        return ScanRows(scan).open(whole=True, with_index=with_index, warns=True)

    @property
    def _has_open_types(self) -> bool:
        """True if a dataset has no selection, and no schema yet or a schema inferred from its first rows.

        A selection has the schema of its dataset, even where that is of the first rows only.
        """
        is_all = self.is_as_stated and not self.row_selection and not self.chooses_columns
        return is_all and (not self.has_schema or self.is_of_first_rows)

    def explanation(self) -> Explanation:
        """The plan of opening the files."""
        from tfrecord_io.read.explanation import explain_scan

        return explain_scan(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if name not in _NAMES:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            if not self.has_schema:  # or another thread has found it meanwhile
                scan = plan_sources(self.sources, self.stated, self.stated_selection)
                # "resolved" comes last, which says that the others are there.
                for attribute in sorted(_NAMES - {"origin", "directory"}, key="resolved".__eq__):
                    object.__setattr__(self, attribute, getattr(scan, attribute))
            return object.__getattribute__(self, name)

        sources = property(partial(_absolute, _SOURCES), _SOURCES.__set__)
        origin = property(partial(_absolute, _ORIGIN), _ORIGIN.__set__)
