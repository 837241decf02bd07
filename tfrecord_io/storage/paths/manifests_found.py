"""The manifests next to the files of a path: which files they add or replace, and whether they match the files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tfrecord_io.background import WorkerPool
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.registry import RECORD_SUFFIXES
from tfrecord_io.storage.filesystem.interface import Entry, FileSystem
from tfrecord_io.storage.filesystem.local import LocalFileSystem
from tfrecord_io.storage.paths.manifest import Manifest, ManifestFile, parse_manifest, stem_of
from tfrecord_io.storage.paths.shard_names import natural_key, parse_shard, shard_name
from tfrecord_io.storage.read.source import MANIFEST_ADVICE, ManifestShard, ManifestVersion, read_manifest

_MOST_READERS = 16


@dataclass(frozen=True, slots=True)
class _Dataset:
    """A manifest, and the directory it is in."""

    manifest: Manifest
    version: ManifestVersion
    directory: str  # with its slash


@dataclass
class Manifests:
    """The manifests in some directories, and the shards that they describe.

    With `faults`, errors about manifests are appended to it instead of raised, and these manifests are not used.
    """

    fs: FileSystem
    check_sizes: bool = True
    faults: list[CorruptRecordError] | None = None
    datasets: list[_Dataset] = field(default_factory=list)  # filled by `apply`
    shards: dict[str, ManifestShard] = field(default_factory=dict)  # by name in the filesystem; filled by `check`
    _damaged: dict[str, tuple[Entry, CorruptRecordError]] = field(default_factory=dict)  # by name of the manifest

    def apply(self, listing: Iterable[Entry]) -> list[Entry]:
        """Apply the manifests in a listing to it: shards get their final names, replaced files are left out."""
        entries = {entry.name: entry for entry in listing}
        files = [entry for entry in entries.values() if not entry.directory and stem_of(entry.basename) is not None]
        for entry, manifest in zip(files, self._read_all(files), strict=True):
            if manifest is None:
                continue
            directory = entry.parent
            version = ManifestVersion(self.fs, entry.name, manifest.id, manifest.schema)
            self.datasets.append(_Dataset(manifest, version, directory))
            for name in manifest.replaces:
                entries.pop(directory + name, None)
            staged = {directory + f.staged: directory + f.path for f in manifest.files if f.staged is not None}
            found = dict(zip(staged.values(), self.fs.entries(list(staged)), strict=True))
            if not isinstance(self.fs, LocalFileSystem):  # the listing may be older than the copies
                copied = [name for name, entry in found.items() if entry is None and name in entries]
                found.update(zip(copied, self.fs.entries(copied), strict=True))
            for name, existing in found.items():
                if existing is not None:
                    info = existing.info if existing.name == name else None
                    entries[name] = Entry(name, existing.size, False, info)
        return list(entries.values())

    def _read_all(self, entries: Sequence[Entry]) -> list[Manifest | None]:
        """Read several manifests at a time: each takes a request, and there may be many directories."""

        def read(entry: Entry) -> Manifest | None:
            try:
                return parse_manifest(read_manifest(self.fs, entry), self.fs.display_path(entry.name))
            except CorruptRecordError as error:
                self._damaged[entry.name] = entry, error  # raised only if its dataset is read
                return None

        if len(entries) <= 1:
            return [read(entry) for entry in entries]
        with WorkerPool(min(_MOST_READERS, len(entries)), "manifests") as pool:
            return list(pool.map(read, entries))

    def check(self, files: Sequence[Entry], wanted: Callable[[str], bool], *, complete: bool) -> None:
        """Compare `files` with the manifests.

        `wanted` selects the base names that the path asks for; with `complete`, a missing one is a FileNotFoundError. A
        file with another size than stated, one that the manifest does not name, or a damaged manifest is a
        CorruptRecordError.
        """
        by_dataset: dict[tuple[str, str], dict[str, Entry]] = {}
        for entry in files:
            shard = parse_shard(entry.basename)
            if shard is not None:
                by_dataset.setdefault((entry.parent, shard.stem), {})[entry.name] = entry
        self._check_readable(by_dataset, wanted)
        for dataset in self.datasets:
            stated = {dataset.directory + file.path: file for file in dataset.manifest.files if wanted(file.path)}
            existing = by_dataset.get((dataset.directory, dataset.manifest.dataset), {})
            if stated or existing:
                self._check_dataset(dataset, stated, existing, complete)

    def _check_readable(self, by_dataset: Collection[tuple[str, str]], wanted: Callable[[str], bool]) -> None:
        """Raise the error of a damaged manifest if its dataset is, or may be, wanted."""
        for entry, error in self._damaged.values():
            stem = stem_of(entry.basename) or ""
            names = [shard_name(stem, 0, count) + RECORD_SUFFIXES[0] for count in (1, None)]
            if (entry.parent, stem) in by_dataset or any(map(wanted, names)):
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
            reason = "the dataset is incomplete: a writer is replacing its files, or died while doing so"
            advice = "write it again by write_tfrecord(…, overwrite=True)"
            self._fail(CorruptRecordError(reason, path=manifest, advice=advice))
            return
        for name in existing:
            if name not in stated:
                reason = f"the manifest of its dataset, '{manifest}', does not name it"
                self._fail(CorruptRecordError(reason, path=self.fs.display_path(name), advice=MANIFEST_ADVICE))
        self.shards.update(self._shards(dataset, {name: file for name, file in stated.items() if name in existing}))
        for name in stated:
            if name in existing and not self._is_dangling(existing[name]):
                self._check_size(existing[name], self.shards[name])
            elif complete:
                dataset.version.check_unchanged()
                text = f"'{manifest}' names this file, but it is missing; allow_missing_shards=True reads the others"
                raise FileNotFoundError(errno.ENOENT, text, self.fs.display_path(name))

    def _is_dangling(self, entry: Entry) -> bool:
        """Whether it is a link to a file that does not exist."""
        if entry.size is not None or not isinstance(self.fs, LocalFileSystem):
            return False
        return os.path.islink(entry.name) and not os.path.exists(entry.name)

    def _check_size(self, entry: Entry, shard: ManifestShard) -> None:
        if not self.check_sizes or entry.size in (None, shard.bytes):
            return
        latest = self.fs.entry(entry.name)  # the listing may be older than the manifest
        if latest is not None and latest.size is not None and latest.size != shard.bytes:
            shard.manifest.check_unchanged()
            shard.check_size(latest.size, self.fs.display_path(entry.name))

    def _shards(self, dataset: _Dataset, files: Mapping[str, ManifestFile]) -> dict[str, ManifestShard]:
        """Local shards are all watched; in a bucket, where that costs a request, only the last one, for all of them."""
        local, last = isinstance(self.fs, LocalFileSystem), max(files, key=natural_key, default=None)

        def shard(name: str, file: ManifestFile) -> ManifestShard:
            staged = None if file.staged is None else dataset.directory + file.staged
            watched = local or name == last
            return ManifestShard(dataset.version, file.records, file.bytes, file.crc32c, staged, watched)

        return {name: shard(name, file) for name, file in files.items()}
