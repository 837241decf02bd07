"""The content of a directory: TFRecord files, files with records, descriptions of TFDS, and files in its folders.

Tests: tests/apps/file_formats/tables/test_table_folders.py and tests/apps/file_formats/test_choose_formats.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.filesystem.interface import Entry, FileSystem
from tfrecord_io.store.paths.file_names import natural_key
from tfrecord_io.store.paths.found_manifests import Manifests
from tfrecord_io.store.paths.path_search import (
    check_complete,
    check_single_family,
    has_magic,
    list_directory,
    other_files,
    record_files,
)
from tfrecord_io.store.paths.plain_files import tfds_descriptions
from tfrecord_io.store.paths.similar_files import files_below
from tfrecord_io.store.paths.sniff_files import files_with_records
from tfrecord_io.store.read.source import Source


@dataclass(frozen=True, slots=True)
class Listing:
    """The entries of a directory and the files in its partition folders, or what matches a pattern."""

    fs: FileSystem
    name: str  # of the directory or the pattern
    entries: list[Entry]

    @classmethod
    def of_directory(cls, fs: FileSystem, name: str) -> Listing:
        """List a directory, and the files in its partition folders."""
        return cls(fs, name, list_directory(fs, name))

    @classmethod
    def of_pattern(cls, fs: FileSystem, name: str) -> Listing:
        """List what matches a name; nothing if the name is not a pattern."""
        return cls(fs, name, fs.glob(name) if has_magic(fs, name) else [])

    def without_descriptions(self) -> Listing:
        """The entries without the files by which TFDS describes a dataset, which are JSON, and no data."""
        described = tfds_descriptions(self.fs, self.entries)
        return Listing(self.fs, self.name, [entry for entry in self.entries if entry.name not in described])

    def has_records(self) -> bool:
        """True if it has TFRecord files, the manifest of a dataset, or files with records under other names."""
        if record_files(self.entries):
            return True
        faults: list[CorruptRecordError] = []  # a damaged manifest is one: reading raises the error again
        listed = iter([self.entries])

        def find(manifests: Manifests) -> bool:
            entries = next(listed, None) or list_directory(self.fs, self.name)  # a manifest may be gone by now
            files = manifests.apply(lambda: entries, lambda name: True, whole=True)
            manifests.check(record_files(files), lambda name: True, complete=False)
            if faults or manifests.datasets or record_files(files):
                return True
            return bool(files_with_records(self.fs, other_files(files)))

        return Manifests.look(partial(Manifests, self.fs, check_sizes=False, faults=faults), find)

    def clause_about_folders(self, is_wanted: Callable[[str], bool]) -> str:
        """A clause about such files in the folders of a directory that has none itself; empty if there is none."""
        return files_below(self.fs, self.name, self.entries, is_wanted)

    def shards(self, path: str, *, complete: bool) -> list[Source]:
        """The sources of the entries, which are one family of shards, in natural order; `path` is the directory.

        Raises
        ------
        ValueError
            There are several families.
        FileNotFoundError
            With `complete`, a shard is missing or exists twice.
        """
        check_single_family(self.fs, self.entries, path)
        if complete:
            check_complete(self.fs, self.entries)
        return [Source.from_entry(self.fs, entry) for entry in sorted(self.entries, key=lambda e: natural_key(e.name))]
