"""The source that a reading call gets: a path, a dataset, or a list of those.

Tests: tests/read/test_scan.py and tests/read/test_sources.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfrecord_io.base import FrameOptions, ReadOptions, ScanOptions, Selection, StorageOptions
from tfrecord_io.read.call_options import (
    AnyOptions,
    check_equal,
    datasets_in,
    options_from_call,
    pace_options,
    refuse_options,
)
from tfrecord_io.read.find_sources import resolve_sources
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.scan import Origin, Scan, ScanHolder
from tfrecord_io.read.source_resolution import Files, resolve_source
from tfrecord_io.store import Sources

if TYPE_CHECKING:
    from tfrecord_io.base import CopyOptions


class CallSource:
    """The source that a call is given: a path, a file object, a dataset, a piece of one, or a list of those."""

    FRAME_KEYWORDS = frozenset(FrameOptions.__dataclass_fields__)  # of calls that do not look into records

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

    def options(
        self,
        kind: type[AnyOptions],
        decided: Mapping[str, Any] | None = None,
        /,
        *,
        of: Callable[..., Any] | None = None,
        **keywords: Any,
    ) -> AnyOptions:
        """The options of a call with this source and these keywords; see `tfrecord_io.read.call_options`.

        `of` is the public function, which errors name.
        """
        return options_from_call(kind, of, self.given, decided or {}, **keywords)

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

    def check_equal(self, *names: str) -> None:
        """Raise ValueError if the datasets, read together, differ in one of these options."""
        check_equal([part.options for part in self.given], names)

    def materialize(self) -> CallSource:
        """Turn an iterable into a list, which can be gone through again; anything else, and a set, stays as it is."""
        given = self.given
        kept = isinstance(given, str | os.PathLike | ScanHolder | set | frozenset) or hasattr(given, "read")
        return self if kept or not isinstance(given, Iterable) else CallSource(list(given))

    def whole_files(self, verb: str, *, takes_selection: bool = True) -> Any:
        """The paths for a call on whole files, named by `verb`; an error if it is given a selection and takes none.

        ValueError if it is a piece of a dataset, or a list with a dataset of a split.
        """
        for dataset in () if takes_selection else self.datasets:
            refuse_options(dataset, verb, Selection.KEYWORDS)
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
        from tfrecord_io.read.sources import resolve_selection  # for datasets only

        return resolve_selection(self.given, options)

    def add_folder_types(self, options: AnyOptions) -> AnyOptions:
        """See `tfrecord_io.read.sources.add_folder_types`."""
        from tfrecord_io.read.sources import add_folder_types  # for datasets only

        return add_folder_types(self.given, options)

    def files(self, options: FrameOptions | CopyOptions, storage: StorageOptions | None = None, **how: Any) -> Sources:
        """The files; see `tfrecord_io.read.find_sources.resolve_sources`."""
        return resolve_sources(self.given, options, storage, **how)

    def found_files(self, options: ReadOptions) -> Files[ScanOptions]:
        """The files and how they are read, for a call that plans their read; see `Files.from_source`."""
        return Files.from_source(self.given, options)

    def resolve(self, options: ReadOptions) -> Files[ScanOptions] | Scan:
        """The rows that a reading call selects; see `tfrecord_io.read.source_resolution.resolve_source`."""
        return resolve_source(self.given, options)

    def scan(self, options: ReadOptions) -> Scan:
        """The rows that a reading call selects, to be opened later, once or several times."""
        found = self.resolve(options)
        return found if isinstance(found, Scan) else found.plan_scan().close()

    def dataset(self, options: ReadOptions, first_files: int | None = None) -> Scan:
        """All columns and rows of files, under one schema; see `tfrecord_io.dataset`.

        `first_files`: see `Files.plan`.
        """
        source = Scan.unwrap(self.materialize().given)
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
            are_whole = len(origins) == len(scans) and not any(scan.row_selection for scan in scans)
            origin = Origin(CallSource(source).paths, options.of_scan, options.selection) if are_whole else None
        return replace(found.plan(first_files), origin=origin)

    def open(self, options: ReadOptions, *, whole: bool = False, with_index: bool = False) -> Reader:
        """Plan a read and open it; see `tfrecord_io.read.resolve_schema.plan_scan`.

        A dataset is read under its schema, unless that is to be inspected.
        """
        found = resolve_source(self.given, options, whole=whole)
        if isinstance(found, Scan) and options.damage.inspects:
            found = Files.from_scan(found, options)
        if isinstance(found, Files):
            return found.open(whole=whole, with_index=with_index)
        from tfrecord_io.read.scan_rows import ScanRows

        return ScanRows(found).open(whole=whole, with_index=with_index, warns=True)
