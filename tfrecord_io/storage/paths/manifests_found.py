"""Datasets that have a manifest, among the files that a path means: what their manifests say is held against the files."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from tfrecord_io.compression import Raw
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.storage.filesystem.local import Entry, FileSystem, LocalFileSystem
from tfrecord_io.storage.paths.manifest import MAX_BYTES, Manifest, ManifestFile, parse_manifest, stem_of
from tfrecord_io.storage.paths.shard_names import RECORD_SUFFIXES, natural_key, parse_shard, shard_name
from tfrecord_io.storage.read.source import read_whole

_READERS = 16
_Opened = TypeVar("_Opened", bound=Raw)
_ADVICE = "write the dataset again, or delete the manifest if the files were changed on purpose"


@dataclass(frozen=True, slots=True)
class Dataset:
    """A manifest and where it is."""

    tree: FileSystem
    name: str  # of the manifest, in the tree
    manifest: Manifest

    @property
    def directory(self) -> str:
        return _split(self.name)[0]

    @property
    def shown(self) -> str:
        return self.tree.shown(self.name)

    def refuse_incomplete(self) -> None:
        if not self.manifest.complete:
            reason = "the dataset is incomplete: a writer is replacing its files, or died while doing so"
            raise CorruptRecordError(reason, path=self.shown, advice="write it again with overwrite=True")

    def refuse_replaced(self) -> None:
        """Raise OSError if the dataset is another one by now: files read before may be of the old one."""
        entry = self.tree.entry(self.name)
        if entry is None or self.manifest.id.encode() not in read_whole(self.tree, entry, MAX_BYTES):
            raise OSError(errno.ESTALE, "the dataset was replaced while it was read; read it again", self.shown)


@dataclass(frozen=True, slots=True)
class Shard:
    """What a manifest says of a file, and a watch on its dataset."""

    dataset: Dataset
    file: ManifestFile
    watched: bool  # after the file was opened, see whether the dataset still is the same

    def watch(self, opened: Callable[[], _Opened]) -> _Opened:
        """Open the file, and see whether its dataset still is the one that was found."""
        try:
            raw = opened()
        except FileNotFoundError:
            self.dataset.refuse_replaced()
            raise
        try:
            if self.watched:
                self.dataset.refuse_replaced()
        except BaseException:
            raw.close()
            raise
        return raw

    def status(self, path: str) -> os.stat_result:
        """What the operating system says of a local file, under the name it has."""
        if self.file.staged is not None:
            with suppress(FileNotFoundError):
                return os.stat(self.dataset.directory + self.file.staged)
        return os.stat(path)

    def open_local(self, path: str) -> io.FileIO:
        """Open under the name it has: its own, or the one it waits under until its writer gives it its own."""
        if self.file.staged is not None:
            with suppress(FileNotFoundError):  # it has its name by now
                return open(self.dataset.directory + self.file.staged, "rb", buffering=0)
        return open(path, "rb", buffering=0)

    def refuse_count(self, records: int, path: str) -> None:
        """Raise CorruptRecordError if the file has other than the records that the manifest says."""
        if records != self.file.records:
            raise self._misfit("{} records", records, self.file.records, path)

    def refuse_size(self, size: int, path: str) -> None:
        """Raise CorruptRecordError if the file has another size than the manifest says."""
        if size != self.file.bytes:
            raise self._misfit("{} bytes", size, self.file.bytes, path)

    def refuse_checksum(self, crc32c: int, path: str) -> None:
        """Raise CorruptRecordError if the file's bytes are others than the manifest says."""
        if crc32c != self.file.crc32c:
            raise self._misfit("the CRC32C {:08x}", crc32c, self.file.crc32c, path)

    def _misfit(self, what: str, got: int, expected: int, path: str) -> CorruptRecordError:
        reason = f"the file has {what.format(got)}, and '{self.dataset.shown}' says {what.format(expected)}"
        return CorruptRecordError(reason, path=path, expected=expected, got=got, advice=_ADVICE)


@dataclass
class Datasets:
    """The datasets with a manifest in the directories that were looked into.

    Attributes
    ----------
    found : list of Dataset
        Filled by `look_into`.
    shards : dict of str to Shard
        By name in the tree: filled by `check`.
    """

    tree: FileSystem
    check_sizes: bool = True
    found: list[Dataset] = field(default_factory=list)
    shards: dict[str, Shard] = field(default_factory=dict)
    _damaged: dict[str, CorruptRecordError] = field(default_factory=dict)  # by name of the manifest

    def look_into(self, listing: Iterable[Entry]) -> list[Entry]:
        """The entries as the manifests among them say: shards under the names they will have, without those that were replaced."""
        entries = {entry.name: entry for entry in listing}
        named = [entry for entry in entries.values() if not entry.directory and stem_of(entry.basename) is not None]
        for found, manifest in zip(named, self._read_all(named), strict=True):
            if manifest is None:
                continue
            dataset = Dataset(self.tree, found.name, manifest)
            self.found.append(dataset)
            for replaced in manifest.replaces:
                entries.pop(dataset.directory + replaced, None)
            waiting = {dataset.directory + f.staged: f for f in manifest.files if f.staged is not None}
            for at, file in zip(self.tree.entries(list(waiting)), waiting.values(), strict=True):
                if at is not None:
                    entries[dataset.directory + file.path] = Entry(dataset.directory + file.path, at.size, False)
        return list(entries.values())

    def _read_all(self, entries: Sequence[Entry]) -> list[Manifest | None]:
        """Manifests by several at a time: each is a request, and folders may be many."""

        def read(entry: Entry) -> Manifest | None:
            try:
                return parse_manifest(read_whole(self.tree, entry, MAX_BYTES), self.tree.shown(entry.name))
            except CorruptRecordError as error:
                self._damaged[entry.name] = error  # of no account to who reads another dataset beside
                return None

        if len(entries) <= 1:
            return [read(entry) for entry in entries]
        with ThreadPoolExecutor(min(_READERS, len(entries)), thread_name_prefix="tfrecord_io") as pool:
            return list(pool.map(read, entries))

    def check(self, files: Sequence[Entry], wanted: Callable[[str], bool], *, complete: bool) -> None:
        """Hold `files` against the manifests; `wanted` says of a name whether it was asked for, `complete` that all of them must be there.

        Raises
        ------
        FileNotFoundError
            A file that the manifest names is missing.
        CorruptRecordError
            A file has another size than the manifest says, or is not in it; or the manifest is damaged.
        """
        there = {entry.name: entry for entry in files}
        by_dataset: dict[tuple[str, str], list[str]] = {}
        for name in there:
            directory, base = _split(name)
            shard = parse_shard(base)
            if shard is not None:
                by_dataset.setdefault((directory, shard.stem), []).append(name)
        self._refuse_damaged(by_dataset, wanted)
        for dataset in self.found:
            known = {dataset.directory + file.path: file for file in dataset.manifest.files if wanted(file.path)}
            mine = by_dataset.get((dataset.directory, dataset.manifest.dataset), [])
            if known or mine:
                self._check_one(dataset, known, {name: there[name] for name in mine}, complete)

    def _refuse_damaged(self, by_dataset: Collection[tuple[str, str]], wanted: Callable[[str], bool]) -> None:
        """Raise for a manifest of a dataset that is, or may be, among what was asked for."""
        for name, error in self._damaged.items():
            directory, base = _split(name)
            stem = stem_of(base) or ""
            if (directory, stem) in by_dataset or any(
                wanted(shard_name(stem, 0, count) + RECORD_SUFFIXES[0]) for count in (1, None)
            ):
                raise error

    def _check_one(
        self, dataset: Dataset, known: Mapping[str, ManifestFile], there: Mapping[str, Entry], complete: bool
    ) -> None:
        dataset.refuse_incomplete()
        for name in there:
            if name not in known:
                reason = f"the manifest of its dataset, '{dataset.shown}', does not name it"
                raise CorruptRecordError(reason, path=self.tree.shown(name), advice=_ADVICE)
        self.shards.update(self._watched(dataset, {name: file for name, file in known.items() if name in there}))
        for name in known:
            if name in there and not self._leads_nowhere(there[name]):
                self._refuse_other_size(there[name], self.shards[name])
            elif complete:
                dataset.refuse_replaced()
                text = (
                    f"'{dataset.shown}' names this file, and it is missing; allow_missing_shards=True reads the others"
                )
                raise FileNotFoundError(errno.ENOENT, text, self.tree.shown(name))

    def _leads_nowhere(self, entry: Entry) -> bool:
        """Whether it is a link to what is not there."""
        return (
            entry.size is None
            and isinstance(self.tree, LocalFileSystem)
            and os.path.islink(entry.name)
            and not os.path.exists(entry.name)
        )

    def _refuse_other_size(self, entry: Entry, shard: Shard) -> None:
        if not self.check_sizes or entry.size in (None, shard.file.bytes):
            return
        now = self.tree.entry(entry.name)  # the listing may be older than the manifest
        if now is not None and now.size is not None and now.size != shard.file.bytes:
            shard.dataset.refuse_replaced()
            shard.refuse_size(now.size, self.tree.shown(entry.name))

    def _watched(self, dataset: Dataset, files: Mapping[str, ManifestFile]) -> dict[str, Shard]:
        """Local files are watched one by one; in a bucket, where it costs a request, the last tells of all before it."""
        local, last = isinstance(self.tree, LocalFileSystem), max(files, key=natural_key, default=None)
        return {name: Shard(dataset, file, local or name == last) for name, file in files.items()}


def _split(name: str) -> tuple[str, str]:
    """Directory, with its slash, and name in it."""
    base = name.rpartition("/")[2]
    return name[: len(name) - len(base)], base
