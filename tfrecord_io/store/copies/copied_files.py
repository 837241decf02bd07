"""Find what `copy` copies: datasets with a manifest, other files, and the indexes and companions of both.

Tests: tests/store/copies/test_copy_files_parts.py.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tfrecord_io.base import StorageOptions, hide_secrets
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.copies.copied_dataset import Listing
from tfrecord_io.store.filesystem.interface import Entry, FileSystem
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.filesystem.os_errors import replaced_error
from tfrecord_io.store.filesystem.remote import FsspecFileSystem
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, Kind
from tfrecord_io.store.paths.found_manifests import Manifests
from tfrecord_io.store.paths.manifest import INCOMPLETE, Manifest
from tfrecord_io.store.paths.path_search import list_directory, other_files, record_files
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.paths.sidecars import sidecar_entries
from tfrecord_io.store.paths.sniff_files import files_with_records
from tfrecord_io.store.read.source import ManifestFile, ManifestShard, ManifestVersion, Source
from tfrecord_io.store.write.leftovers import LEFT

_LOOKUPS = 3
_OF_TFDS = (Source.TFDS_FEATURES, Source.TFDS_INFO)
_LABELS = ".labels.txt"  # names of classes, of TFDS

ChooseFiles = Callable[[list[Source]], Collection[str]]  # of the files of a manifest, the paths of those to copy
"""Chooses the files of a dataset to copy."""


@dataclass(frozen=True, slots=True)
class FoundDataset:
    """Files of a dataset with a manifest: all, or a part."""

    fs: FileSystem
    manifest: Manifest  # names only the files to copy
    version: ManifestVersion
    root: str  # the directory of the manifest, with its slash
    listing: Listing  # entries of the directory, by the name below `root`
    is_part: bool = False  # True if the dataset has more files

    def source(self, file: ManifestFile) -> Source:
        """Open a file as a source, checked against the manifest."""
        entry = self.listing.get(file.path) or Entry(self.root + file.path, file.bytes, False, None)
        staged = None if file.staged is None else self.root + file.staged
        shard = ManifestShard(
            self.version, file.records, bytes=file.bytes, crc32c=file.crc32c, staged=staged, watched=False
        )
        source = Source.from_entry(self.fs, entry)
        return source.replace(shard=shard, size=file.bytes, pipe=None)

    def indexes(self, paths: Iterable[str], moved: Collection[str], target: Listing) -> list[tuple[str, Source]]:
        """List the indexes to copy, with their names in a target: of files that are `moved`, or missing in the target.

        `paths` are the names of the files in the target. A staged file has no index: a file beside its final name may
        be the index of the shard that it replaces, which is being removed.
        """
        index_sources = []
        for file, path in zip(self.manifest.files, paths, strict=False):  # the target may have more
            if file.staged is not None:
                continue
            for index_path, name in zip(FileName.all_indexes(file.path), FileName.all_indexes(path), strict=True):
                entry = self.listing.get(index_path)
                if entry is not None and (path in moved or name not in target or target[name].size != entry.size):
                    index_sources.append((name, Source.from_entry(self.fs, entry)))
        return index_sources

    def select(self, choose: ChooseFiles) -> FoundDataset:
        """Select a part of the files."""
        paths = choose(self.manifest.sources(self.version))
        chosen_files = tuple(file for file in self.manifest.files if file.path in paths)
        if not (is_part := len(chosen_files) < len(self.manifest.files)):
            return replace(self, manifest=self.manifest._replace(sources_without_rows=()), is_part=False)
        part = self.manifest._replace(files=chosen_files, sources_without_rows=(), history=None)
        return replace(self, manifest=part, is_part=is_part)


@dataclass(slots=True)
class Found:
    """Datasets and files to copy."""

    datasets: list[FoundDataset] = field(default_factory=list)
    # Files with records that no manifest names, with their names in the target.
    files: list[tuple[str, Source]] = field(default_factory=list)
    # Indexes and companions of these files, in the order in which they are copied, after the files.
    others: list[tuple[str, Source]] = field(default_factory=list)
    directories: int = 0  # number of paths that are directories, whose files keep their relative names

    def check_names(self) -> None:
        """Raise ValueError if two files would get one name."""
        seen: dict[str, str] = {}
        named = [(name, source.path) for name, source in (*self.files, *self.others)]
        for dataset in self.datasets if named else ():
            named += [(name, dataset.fs.display_path(dataset.root + name)) for name in dataset.manifest.paths]
        named += [(f"dataset {dataset.manifest.dataset}", dataset.version.path) for dataset in self.datasets]
        for name, path in named:
            if (other_path := seen.get(name)) is not None:
                text = f"'{path}' would be copied twice: name each file once"
                if other_path != path:
                    text = f"'{other_path}' and '{path}' would have one name in the target: copy them one by one"
                raise ValueError(hide_secrets(text))
            seen[name] = path


def find(paths: Sequence[str | os.PathLike[str]], storage: StorageOptions, *, all_files: bool) -> Found:
    """Find the datasets and files at some paths, as `tfrecord_io.read_table` takes them."""
    for _ in range(_LOOKUPS - 1):
        with suppress(_ChangedError):
            return _find(paths, storage, all_files=all_files, may_change=False)
    return _find(paths, storage, all_files=all_files, may_change=True)


class _ChangedError(Exception):
    """A dataset was changed since its files were found, and may have more files than those to be copied."""


def _find(
    paths: Sequence[str | os.PathLike[str]], storage: StorageOptions, *, all_files: bool, may_change: bool
) -> Found:
    """As `find`, by one look; a changed dataset that `may_change` is found as the part that there was before."""
    sources_to_copy = Found()
    shards: dict[tuple[str, str], list[Source]] = {}  # by the path and the id of their manifest
    for path in paths:
        fs, name = Location.of(path, storage)
        is_directory = fs.can_list and os.fspath(path).endswith("/")
        if fs.can_list and not is_directory:
            entry = fs.entry(name)
            is_directory = entry is not None and entry.directory
        directory = f"{name.rstrip('/')}/" if name else ""
        if is_directory and not ColumnFolder.roots_of(directory):
            _find_directory(sources_to_copy, fs, directory, all_files=all_files)
        else:
            _find_files(sources_to_copy, path, storage, shards)
    sources_to_copy.datasets += (_part(sources, may_change=may_change) for sources in shards.values())
    sources_to_copy.check_names()
    return sources_to_copy


def _find_directory(found: Found, fs: FileSystem, directory: str, *, all_files: bool) -> None:
    """Find all datasets and files of a directory."""

    def find_files(manifests: Manifests) -> tuple[Manifests, list[Entry], list[Entry]]:
        listing = manifests.apply(lambda: list_directory(fs, directory), lambda name: True, whole=True)
        files = record_files(listing)
        manifests.check(files, lambda name: True, complete=True)
        return manifests, listing, files

    manifests, listing, files = Manifests.look(partial(Manifests, fs), find_files)
    below = len(directory)
    entries = {entry.name[below:]: entry for entry in (*manifests.listed.values(), *listing) if not entry.directory}
    for dataset in manifests.datasets:
        if not dataset.manifest.complete:
            raise CorruptRecordError(INCOMPLETE, path=dataset.version.path, hint="copy it when it is written")
        found.datasets.append(
            FoundDataset(fs, dataset.manifest, version=dataset.version, root=directory, listing=entries)
        )
    plain = [entry for entry in files if entry.name not in manifests.shards]
    if not plain and not manifests.datasets:
        plain = files_with_records(fs, other_files(listing))
    if not (plain or manifests.datasets or all_files):
        text = "this directory has no TFRecord files; all_files=True copies all others"
        raise FileNotFoundError(errno.ENOENT, text, fs.display_path(directory))
    found.directories += 1
    for entry in sorted(plain, key=lambda entry: entry.name):
        name = entry.name[below:]
        found.files.append((name, Source.from_entry(fs, entry)))
        indexes = [index for index in FileName.all_indexes(name) if index in entries]
        found.others += [(index, Source.from_entry(fs, entries[index])) for index in indexes]
    companions = [name for name in entries if _is_companion(name)]
    if all_files:
        everything = {entry.name[below:]: entry for entry in everything_below(fs, directory)}
        entries = {**everything, **entries}
        named = [entry.name[below:] for entry in plain]
        named += [file.path for part in found.datasets for file in part.manifest.files]
        taken_names = {listed_name for name in named for listed_name in (name, *FileName.all_indexes(name))}
        taken_names.update(FileName.manifest(part.manifest.dataset) for part in found.datasets)
        # A copy has parts of its own.
        parts = tuple(FileName.manifest_part(part.manifest.dataset, "").rpartition("/")[0] for part in found.datasets)
        others = (name for name in everything if name not in taken_names and not _is_of_writer(name))
        companions = [name for name in others if name.rpartition("/")[0] not in parts]
    companions.sort(key=lambda name: (is_found_by(name), name))
    found.others += [(name, Source.from_entry(fs, entries[name])) for name in companions]


def _is_companion(name: str) -> bool:
    """True if a file describes the data of its directory: a saved schema, or a file of TFDS."""
    return name in _OF_TFDS or name.endswith(_LABELS) or FileName.of_path(name).kind is Kind.SCHEMA


def is_found_by(name: str) -> bool:
    """True if readers find a dataset by this file, which is copied last: TFDS's info, or a manifest."""
    return name == Source.TFDS_INFO or FileName.of_path(name).kind is Kind.MANIFEST


def _find_files(found: Found, path: Any, storage: StorageOptions, shards: dict[tuple[str, str], list[Source]]) -> None:
    """Find single files, patterns, and folders or `shards` of datasets."""
    for source in resolve_inputs(path, storage):
        if source.is_file_object or source.pipe is not None:
            raise ValueError(f"'{source.path}' is a pipe or a file object, which can be read only once: copy a file")
        if source.shard is not None:
            version = source.shard.manifest
            shards.setdefault((version.path, version.id), []).append(source)
            continue
        name = (
            FileName.without_query(source.path).rpartition("/")[2] if source.remote else os.path.basename(source.path)
        )
        found.files.append((name, source))
        found.others += [(index_name.rpartition("/")[2], index) for index_name, index in _indexes_beside(source)]


def _part(sources: Sequence[Source], *, may_change: bool) -> FoundDataset:
    """Make a part of a dataset from some of its files; ReplacedError if it was replaced."""
    assert sources[0].shard is not None
    version = sources[0].shard.manifest
    fs, root = version.fs, version.name[: version.name.rfind("/") + 1]
    manifest = Manifest.at(fs, fs.entry(version.name))
    if manifest is None or manifest.id != version.id:
        raise replaced_error(version.path, "dataset")
    if manifest.commit != version.commit and not may_change:
        raise _ChangedError
    names = {source.location[1][len(root) :] for source in sources}
    files = tuple(file for file in manifest.files if file.path in names)
    is_part = len(files) < len(manifest.files)
    if fs.can_list:
        entries = [entry for entry in list_directory(fs, root) if not entry.directory]
    else:  # a web server: as for single files, no indexes are looked for
        looked_up = fs.entries([root + (file.staged or file.path) for file in files], are_files=True)
        entries = [entry for entry in looked_up if entry is not None]
    listing = {entry.name[len(root) :]: entry for entry in entries}
    if is_part:
        manifest = manifest._replace(files=files, sources_without_rows=(), history=None)
    return FoundDataset(fs=fs, manifest=manifest, version=version, root=root, listing=listing, is_part=is_part)


def _indexes_beside(source: Source) -> Iterator[tuple[str, Source]]:
    """Find the indexes of a single file; on a web server, none are looked up."""
    fs, name = source.location
    if not fs.can_list:
        return
    names = FileName.all_indexes(name)
    beside = sidecar_entries(fs, names, f"{name}.") if source.beside is None else source.beside
    index_entries = (beside.get(index_name) for index_name in names)
    yield from (
        (entry.name, Source.from_entry(fs, entry))
        for entry in index_entries
        if entry is not None and not entry.directory
    )


def everything_below(fs: FileSystem, directory: str) -> Iterator[Entry]:
    """List all files below a directory, also behind links; empty objects that stand for folders are left out."""
    if isinstance(fs, FsspecFileSystem):
        files = (entry for entry in fs.files_in_partition_folders(directory) if not entry.directory)
        yield from (entry for entry in files if entry.size or not entry.name.endswith("/"))
        return
    yield from _walk_below(fs, directory, frozenset([os.path.realpath(directory or ".")]))


def _walk_below(fs: FileSystem, directory: str, within: frozenset[str]) -> Iterator[Entry]:
    """List all files below a directory on a disk; links to `within`, the directory and its parents, are left out."""
    for entry in fs.listing(directory):
        if not entry.directory:
            yield entry
        elif (real := os.path.realpath(entry.name)) not in within:
            yield from _walk_below(fs, entry.name, within | {real})


def _is_of_writer(path: str) -> bool:
    """True if a file is a by-product of writers, or an unpublished shard of this directory.

    In folders that are not those of columns there are other datasets, whose manifests may name such shards.
    """
    file = FileName.of_path(path)
    if file.kind in LEFT:
        return True
    is_added = file.shard is not None and bool(file.shard.id) and not file.is_sidecar
    return (file.kind is Kind.STAGED or is_added) and ColumnFolder.has_only(path, "")


def known_manifest(fs: FileSystem, listing: Listing, name: str) -> tuple[Manifest | None, ManifestVersion | None]:
    """Read the manifest of a target; a damaged one counts as an incomplete dataset without files.

    Raises
    ------
    ReplacedError
        The manifest is gone since it was listed, as a writer that fails removes what it began.
    """
    entry = listing.get(name)
    if entry is None:
        return None, None
    try:
        manifest = Manifest.at(fs, entry)
    except FileNotFoundError as error:
        raise replaced_error(fs.display_path(entry.name), "dataset") from error
    except CorruptRecordError:
        manifest = None
    if manifest is None:
        manifest = Manifest(FileName.parse(name).dataset or "", "0" * 16, (), complete=False)
    return manifest, manifest.version(fs, entry.name)
