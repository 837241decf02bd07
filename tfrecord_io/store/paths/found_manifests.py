"""The manifests of directories that are read: which files they have, in which order, and what they state of each.

Tests: tests/store/paths/test_manifest_found.py and tests/store/paths/test_manifest.py.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from tfrecord_io.base import Registry, Task, WorkerPool, counted, for_cli, logger, ordered
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store import operating_systems
from tfrecord_io.store.filesystem.interface import (
    PAGE_FILES,
    Entry,
    FileSystem,
    LocalFileSystem,
    existing_files,
    is_dangling,
)
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, Kind, ShardName, natural_key
from tfrecord_io.store.paths.manifest import INCOMPLETE, Manifest
from tfrecord_io.store.paths.manifest_files import SIZES
from tfrecord_io.store.read.source import ManifestFile, ManifestShard, ManifestVersion, NoContent, Source

T = TypeVar("T")

_MOST_READERS = 16
_LOOKS = 3  # at files whose manifests change meanwhile


@dataclass(slots=True, eq=False, repr=False)
class _Dataset:
    """A manifest, and the directory it is in."""

    manifest: Manifest
    version: ManifestVersion
    directory: str  # with its slash

    def has_place_of(self, name: str, shard: ShardName) -> bool:
        """True if a shard has this dataset's name, and is in its directory or a folder of its partition columns."""
        if shard.stem != self.manifest.dataset or not name.startswith(self.directory):
            return False
        folders = name[len(self.directory) :].split("/")[:-1]
        return not folders or tuple(ColumnFolder.column_of(folder) for folder in folders) == self.manifest.partition_by


@dataclass(eq=False, repr=False)
class Manifests:
    """The manifests in some directories, and the shards that they describe.

    What a manifest states is the truth: it was read after or while the files were listed, so that a listing may lack
    some of its files, and have others that were replaced or came later.

    With `faults`, errors about manifests are appended to it instead of raised, and these manifests are not used.
    """

    fs: FileSystem
    check_sizes: bool = True
    faults: list[CorruptRecordError] | None = None
    datasets: list[_Dataset] = field(default_factory=list)  # of the last `apply`
    shards: dict[str, ManifestShard] = field(default_factory=dict)  # by name in the filesystem; filled by `check`
    unnamed: dict[str, str] = field(default_factory=dict)  # files that were left out, and the manifest
    parsed: dict[str, tuple[bytes, Manifest | None]] = field(default_factory=dict)  # by path; paths of a list share it
    without_rows: dict[str, Source] = field(default_factory=dict)  # by name of the manifest, see `empty_manifests`
    missing: list[str] = field(default_factory=list)  # files that a manifest names and that do not exist
    listed: dict[str, Entry] = field(default_factory=dict)  # all that the last `apply` listed, by name
    _is_outdated: bool = False  # a manifest that was listed was removed before it was read
    _order: dict[str, tuple[str, int]] = field(default_factory=dict)  # by name: see `sort_key`
    _keys: dict[str, tuple[str, str]] = field(default_factory=dict)  # in natural order, of the first ones there
    _owner: dict[str, _Dataset] = field(default_factory=dict)  # of each file that a manifest names
    _in: dict[str, list[_Dataset]] = field(default_factory=dict)  # the datasets of each directory
    _damaged: dict[str, tuple[Entry, CorruptRecordError]] = field(default_factory=dict)  # by name of the manifest

    @staticmethod
    def look(begin: Callable[[], Manifests], find: Callable[[Manifests], T]) -> T:
        """Find files by new `Manifests`, again if that fails while a writer replaces or removes a dataset."""
        for _ in range(_LOOKS - 1):
            manifests = begin()
            try:
                return find(manifests)
            except (OSError, ValueError):
                if not (manifests.datasets or manifests._is_outdated):
                    raise
        return find(begin())

    def apply(
        self, list_files: Callable[[], Iterable[Entry]], wanted: Callable[[str], bool], *, whole: bool = False
    ) -> list[Entry]:
        """List files, and apply the manifests among them: the files are those that these name.

        `wanted` selects the names that the path asks for: files of a manifest that the listing lacks are looked up.
        `whole`: directories are read, where all files are those of their manifests; else others may stand next to them.
        """
        self.datasets, self._in, self._owner, self._damaged = [], {}, {}, {}
        entries: dict[str, Entry] = {}
        self.listed = entries
        for entry, manifest in self._listed_and_read(list_files, entries):
            if manifest is not None:
                version = manifest.version(self.fs, entry.name)
                self._add(_Dataset(manifest, version, entry.parent))
                logger.debug("manifest read: %s, %s", version.path, counted(len(manifest.files), "file"))
        if not self.datasets and whole:
            logger.debug("no manifest among %s", counted(len(entries), "file"))
        kept = dict(entries)
        for dataset in self.datasets:
            for name in dataset.manifest.replaces:
                kept.pop(dataset.directory + name, None)
            self._find(dataset, kept, wanted, list_files)
        owners: dict[str, list[_Dataset]] = {}
        unnamed: dict[str, str] = {}
        for name, entry in [*kept.items()] if self.datasets else ():
            if entry.directory or name in self._owner:
                continue
            file = FileName.parse(entry.basename)
            if file.is_hidden or file.is_sidecar:
                continue
            if (parent := entry.parent) not in owners:
                owners[parent] = self._owners(parent)
            shard = file.shard
            claims = [d for d in owners[parent] if shard is not None and d.has_place_of(name, shard)]
            is_unpublished = bool(claims and shard and shard.id)  # its writer was killed
            if not claims and whole and file.kind is Kind.RECORDS:
                claims = owners[parent]
            if claims:
                del kept[name]
                if wanted(name) and not is_unpublished:
                    unnamed[name] = claims[0].version.path
        existing = self._look_up([*unnamed], list_files)  # others were removed since they were listed
        self.unnamed.update((name, path) for name, path in unnamed.items() if name in existing)
        return [*kept.values()]

    def of_many_files(self, directory: str, first: Sequence[Entry] = ()) -> tuple[str, Manifest] | None:
        """The name of the manifest of a directory, with its slash, and the manifest: if it names many files alone.

        None if it names few, another manifest is next to it, or it cannot be used without looking at the files.
        In a bucket, `first` are the first files of the directory, in the order of their names.
        """
        own_name = FileName.manifest(FileName.DIRECTORY_STEM)
        name = directory + own_name
        parts = directory + FileName.manifest_part(FileName.DIRECTORY_STEM, "").rpartition("/")[0]
        listed: Sequence[Entry] | None = None  # of a bucket
        if isinstance(self.fs, LocalFileSystem):
            entry = self.fs.entry(name)
            has_parts = entry is not None and self.fs.entry(parts) is not None
        else:
            listed = self._list_manifests(name, parts, first)
            entry = next((entry for entry in listed if entry.name == name), None)
            has_parts = any(entry.name.startswith(f"{parts}/") for entry in listed)
        if entry is None or entry.directory or not (has_parts or (entry.size or 0) >= SIZES.large_bytes):
            return None
        if FileName.manifests_beside(own_name, [e.basename for e in listed or () if e.parent == directory]):
            return None
        manifest = self._read(entry, loads=False)
        if manifest is None or not manifest.complete or isinstance(manifest.files, tuple):
            return None
        is_listed = listed is not None or manifest.upkeep.alone_in == operating_systems.current.directory_number(
            directory
        )
        if not is_listed and FileName.manifests_beside(
            own_name, os.listdir(operating_systems.current.full_name(directory))
        ):
            return None
        logger.debug("manifest read: %s, %s", self.fs.display_path(name), counted(len(manifest.files), "file"))
        return name, manifest

    def _list_manifests(self, name: str, parts: str, first: Sequence[Entry]) -> Sequence[Entry]:
        """Files of a directory in a bucket, among them all manifests next to the manifest `name`, and some parts of it.

        None of them if its `first` files show that this manifest names few files.
        """
        names = [entry.name for entry in first]
        size = next((entry.size for entry in first if entry.name == name), None)
        is_behind = size is None and bool(first) and names[-1] < name
        has_parts = any(file.startswith(f"{parts}/") for file in names)
        if not (is_behind or has_parts) and (size or 0) < SIZES.large_bytes:
            return ()
        if size is not None and names == sorted(names):  # as not in a directory bucket of S3: others come before it
            return first
        return self.fs.beginning(parts) or ()

    def _add(self, dataset: _Dataset) -> None:
        """Note a manifest, and its files in its order, in each folder."""
        self.datasets.append(dataset)
        self._in.setdefault(dataset.directory, []).append(dataset)
        first: dict[str, str] = {}
        for at, file in enumerate(dataset.manifest.files):
            name = dataset.directory + file.path
            self._order[name] = first.setdefault(name.rpartition("/")[0], name), at
            self._owner[name] = dataset

    def _find(
        self,
        dataset: _Dataset,
        entries: dict[str, Entry],
        wanted: Callable[[str], bool],
        list_files: Callable[[], Iterable[Entry]],
    ) -> None:
        """Add the files of a manifest to a listing that is older than it, under their final names."""
        files = {name: file for file in dataset.manifest.files if wanted(name := dataset.directory + file.path)}
        staged = {name: dataset.directory + file.staged for name, file in files.items() if file.staged is not None}
        temporary_entries = self._look_up([name for name in staged.values() if name not in entries], list_files)
        for name, temporary in staged.items():
            existing = entries.get(temporary) or temporary_entries.get(temporary)
            if existing is None:  # it has its final name by now, under which the listing may have the old file
                entries.pop(name, None)
            else:
                entries[name] = Entry(name, existing.size, False, None)
        entries.update(self._look_up([name for name in files if name not in entries], list_files))
        sizes = {name: file.bytes for name, file in files.items() if self.check_sizes and file.staged is None}
        changed = [name for name, size in sizes.items() if name in entries and entries[name].size not in (None, size)]
        entries.update(self._look_up(changed, list_files))

    def _look_up(self, names: Sequence[str], list_files: Callable[[], Iterable[Entry]]) -> dict[str, Entry]:
        """Look up which files exist: many names in a bucket by one listing, as each would take a request."""
        if not names:
            return {}
        if self.fs.can_list and not isinstance(self.fs, LocalFileSystem) and len(names) > _MOST_READERS:
            latest = {entry.name: entry for entry in list_files()}
            return {name: latest[name] for name in names if name in latest}
        return existing_files(self.fs, names)

    def _owners(self, parent: str) -> list[_Dataset]:
        """The datasets of the directory of a file; if that is a folder of columns without any, of the one above."""
        while parent not in self._in:
            above, _, folder = parent.rstrip("/").rpartition("/")
            if ColumnFolder.column_of(folder) is None:
                return []
            parent = f"{above}/" if above or parent.startswith("/") else ""
        return self._in[parent]

    def empty_manifests(self, directory: str) -> list[Entry]:
        """The manifests of a directory that name no file; `without_rows` has each of a dataset that was written."""
        datasets = [dataset for dataset in self._in.get(directory, ()) if not dataset.manifest.files]
        for dataset in datasets:
            self._check_dataset(dataset, {}, {}, complete=True)
            version, partitions = dataset.version, tuple((name, None) for name in dataset.manifest.partition_by)
            if not dataset.manifest.is_begun:
                shard = ManifestShard(version, 0, bytes=0, crc32c=None, staged=None, watched=False)
                told: dict[str, Any] = {"shard": shard, "partitions": partitions, "derived": NoContent()}
                self.without_rows[version.name] = Source(version.path, 0, False, **told)
        return [self.listed[dataset.version.name] for dataset in datasets]

    def family(self, name: str) -> str:
        """Key shared by all files of a manifest in a folder."""
        return self._order.get(name, (name, 0))[0]

    def sort_key(self, name: str) -> tuple[tuple[str, str], int]:
        """The files of a dataset are in the order of its manifest, and all others in natural order."""
        if name not in self._order:
            return natural_key(name), 0
        first, at = self._order[name]
        if first not in self._keys:
            self._keys[first] = natural_key(first)
        return self._keys[first], at

    def _listed_and_read(
        self, list_files: Callable[[], Iterable[Entry]], entries: dict[str, Entry]
    ) -> Iterable[tuple[Entry, Manifest | None]]:
        """Add the files to `entries`, and return the manifests among them.

        In a bucket each is read as soon as it is listed, while folders are listed: both take requests.
        """
        is_local, tasks = isinstance(self.fs, LocalFileSystem), []
        with WorkerPool(_MOST_READERS, "manifests") as pool:
            for entry in chain(list_files(), self._unlisted_manifests(entries)):
                is_new = entry.name not in entries and not entry.directory
                may_be = is_new and entry.basename.startswith(FileName.MANIFEST_PREFIX)
                if may_be and FileName.parse(entry.basename).kind is Kind.MANIFEST:
                    call = partial(self._read, entry)
                    tasks.append((entry, Task(call) if is_local else pool.submit(call)))
                entries[entry.name] = entry
            manifests = ordered((task.result for _, task in tasks), min(_MOST_READERS, len(tasks)), "manifests")
            return list(zip((entry for entry, _ in tasks), manifests, strict=True))

    def _unlisted_manifests(self, entries: Mapping[str, Entry]) -> Iterator[Entry]:
        """The manifests of listed shards that the listing lacks: it takes several calls, and is of no one moment.

        A dataset may have begun after the names before its manifest were listed, and before those of its shards were.
        In a bucket each look is a request: there, a listing of one page is a reason for it only if a shard has the id
        of a writing, which no other program gives, and many names are none.
        """
        is_local, names = isinstance(self.fs, LocalFileSystem), set[str]()
        looks_at_all = is_local or len(entries) >= PAGE_FILES
        last: tuple[str, ShardName] | None = None  # with its folder: most files are like the one before
        for name, entry in entries.items():
            folder, slash, base = name.rpartition("/")
            if entry.directory or (last is not None and last[0] == folder and last[1].is_like(base)):
                continue
            shard = ShardName.parse(base)
            if shard is None or not (looks_at_all or shard.id):
                continue
            last = folder, shard
            if ColumnFolder.column_of(folder.rpartition("/")[2]) is None:
                names.add(folder + slash + FileName.manifest(shard.stem))
        missing = sorted(names - entries.keys())
        if missing and (is_local or len(missing) <= _MOST_READERS):
            with suppress(PermissionError):  # a store answers so for a name that is free, if not all may be listed
                yield from existing_files(self.fs, missing).values()

    def _read(self, entry: Entry, *, loads: bool = True) -> Manifest | None:
        try:
            return Manifest.at(self.fs, entry, loads=loads, parse=self._parse)
        except CorruptRecordError as error:
            self._damaged[entry.name] = entry, error  # raised only if its dataset is read
            return None
        except FileNotFoundError:
            self._is_outdated = True
            raise

    def _parse(self, text: bytes, fs: FileSystem, name: str) -> Manifest | None:
        path = fs.display_path(name)
        if path not in self.parsed or self.parsed[path][0] != text:
            self.parsed[path] = text, Manifest.parse(text, fs, name)
        return self.parsed[path][1]

    def check(self, files: Sequence[Entry], wanted: Callable[[str], bool], *, complete: bool) -> None:
        """Compare `files` with the manifests.

        `wanted` selects the names that the path asks for; with `complete`, a missing one is a FileNotFoundError. A file
        with another size than stated, or a damaged manifest, is a CorruptRecordError.
        """
        if self._damaged:
            self._check_readable({(e.parent, s.stem) for e in files if (s := ShardName.parse(e.basename))}, wanted)
        existing_by_dataset: dict[int, dict[str, Entry]] = {}
        for entry in files:
            if (owner := self._owner.get(entry.name)) is not None:
                existing_by_dataset.setdefault(id(owner), {})[entry.name] = entry
        for dataset in self.datasets:
            by_name = {name: file for file in dataset.manifest.files if wanted(name := dataset.directory + file.path)}
            existing = existing_by_dataset.get(id(dataset), {})
            if by_name or existing:
                self._check_dataset(dataset, by_name, existing, complete)

    def _check_readable(self, read: Collection[tuple[str, str]], wanted: Callable[[str], bool]) -> None:
        """Raise the error of a damaged manifest if its dataset is, or may be, wanted."""
        for entry, error in self._damaged.values():
            stem = FileName.parse(entry.basename).dataset or ""
            names = [entry.parent + ShardName.make(stem, 0, count) + Registry.RECORD_SUFFIXES[0] for count in (1, None)]
            if (entry.parent, stem) in read or any(map(wanted, names)):
                self._fail(error)

    def _fail(self, error: CorruptRecordError) -> None:
        if self.faults is None:
            raise error
        self.faults.append(error)

    def _check_dataset(
        self, dataset: _Dataset, stated: Mapping[str, ManifestFile], existing: Mapping[str, Entry], complete: bool
    ) -> None:
        manifest = dataset.version.path
        if not dataset.manifest.complete:
            advice = "write it again by write_tfrecord(…, mode='overwrite')"
            self._fail(CorruptRecordError(INCOMPLETE, path=manifest, hint=advice))
            return
        is_local = isinstance(self.fs, LocalFileSystem)
        present = {name: file for name, file in stated.items() if name in existing}
        # In a bucket, where to watch a shard costs a request, only the last one is watched, for all of them.
        last = None if is_local else max(present, key=natural_key, default=None)
        for name, file in present.items():
            staged = None if file.staged is None else dataset.directory + file.staged
            watched = is_local or name == last
            shard = ManifestShard(
                dataset.version, file.records, bytes=file.bytes, crc32c=file.crc32c, staged=staged, watched=watched
            )
            self.shards[name] = shard
        for name in stated:
            if name in existing and not (is_local and existing[name].size is None and is_dangling(name)):
                size, shard = existing[name].size, self.shards[name]
                if self.check_sizes and size not in (None, shard.bytes):
                    shard.manifest.check_unchanged()
                    shard.check_size(size, self.fs.display_path(name))
            elif not complete:
                self.missing.append(name)
            else:
                dataset.version.check_unchanged()
                text = f"'{manifest}' names this file, but it is missing"
                hint, path = "allow_missing_shards=True reads the others", self.fs.display_path(name)
                error = FileNotFoundError(errno.ENOENT, f"{text}; {hint}", path)
                raise for_cli(error, f"{text}; --allow-missing-shards reads the others")
