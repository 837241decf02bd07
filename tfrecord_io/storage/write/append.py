"""Shards that are added to a sharded dataset: its manifest names all of them from one moment on, or none.

The new shards have names that no other writer uses, ``train-00008-<id>.tfrecord`` with the id of the writing, and
readers do not read such a file before the manifest of its directory names it. So they are written first, and published
by replacing the manifest in one step: `ManifestStore`. Nothing that is there is touched:
whoever reads the dataset goes on reading what it had when he began. A writer that is killed leaves the dataset as it
was, and files that no reader reads: ``tfr clean`` removes them.

A dataset that does not exist yet begins with a manifest that names nothing.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial

from tfrecord_io.background import ordered
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.storage.filesystem.interface import FileSystem
from tfrecord_io.storage.paths.file_names import parse_shard
from tfrecord_io.storage.paths.manifest import Manifest, ManifestFile, new_id, parse_manifest, stem_of
from tfrecord_io.storage.paths.resolve_output import Output
from tfrecord_io.storage.read.source import read_manifest
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.storage.write.sharded_dataset import INDEX_SUFFIXES, ShardedDatasetWriter, WrittenShard

_MOST_IDS = 1000  # of writings whose shards were replaced

Change = Callable[[Manifest | None], Manifest]
"""Returns the manifest to write in place of another, or that itself if nothing is to be written."""


class ManifestStore(ABC):
    """The manifest of one dataset; `name` is its name in `fs`."""

    replaces_damaged = False  # whether a manifest that cannot be used names no file, and is no error

    def __init__(self, fs: FileSystem, name: str) -> None:
        self._fs, self._name = fs, name
        self.path = fs.display_path(name)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other writers away during a block, where updates are not conditional."""
        yield

    @abstractmethod
    def read(self) -> Manifest | None:
        """The manifest; None if there is none.

        Raises
        ------
        CorruptRecordError
            It is damaged, or declares the dataset incomplete.
        """

    @abstractmethod
    def update(self, change: Change, is_done: Callable[[Manifest], bool]) -> tuple[Manifest | None, Manifest]:
        """Replace the manifest by what `change` makes of it, in one step; returns the old one and the new one.

        If a response is lost, `is_done` tells whether a manifest has the change.
        """

    def _parsed(self, text: bytes) -> Manifest:
        try:
            manifest = parse_manifest(text, self._name)
        except CorruptRecordError:
            if not self.replaces_damaged:
                raise
            return Manifest(stem_of(self._name.rpartition("/")[2]) or "", new_id(), (), complete=False)
        if manifest is None:
            advice = "rename that file, or choose another name for the dataset"
            raise CorruptRecordError("it is not a manifest of this package", path=self.path, advice=advice)
        if not manifest.complete and not self.replaces_damaged:
            reason = "the dataset is incomplete: a writer is replacing its files, or died while doing so"
            raise CorruptRecordError(reason, path=self.path, advice="write it again by mode='overwrite'")
        return manifest

    def _busy(self, text: str) -> OSError:
        return OSError(errno.EBUSY, f"{text}; nothing of this writing is left: write it again", self.path)


class ExclusiveManifest(ManifestStore):
    """A manifest that is replaced while other writers are kept away."""

    def __init__(self, fs: FileSystem, name: str, *, is_alone: bool = False) -> None:
        super().__init__(fs, name)
        self._is_alone = is_alone

    @contextmanager
    def alone(self) -> Iterator[None]:
        if self._is_alone:
            yield
            return
        with self._exclusion():
            self._is_alone = True
            try:
                yield
            finally:
                self._is_alone = False

    @abstractmethod
    def _exclusion(self) -> AbstractContextManager[None]:
        """Keep other writers away during a block."""

    def read(self) -> Manifest | None:
        entry = self._fs.entry(self._name)
        return None if entry is None else self._parsed(read_manifest(self._fs, entry))

    def update(self, change: Change, is_done: Callable[[Manifest], bool]) -> tuple[Manifest | None, Manifest]:
        with self.alone():
            old = self.read()
            new = change(old)
            if new is not old:
                self._write(new)
            return old, new

    @abstractmethod
    def _write(self, manifest: Manifest) -> None:
        """Replace the manifest by another."""


class Files(ABC):
    """Writes, moves and removes the shards of one directory, whose names have a slash where they are in folders."""

    created: tuple[str, ...] = ()  # directories that were missing, the deepest first
    side_by_side = False
    moves = 1  # staged shards that are moved at a time
    model: os.stat_result | None = None  # owner and mode for new files

    def __init__(self, directory: str, store: ManifestStore) -> None:
        self._directory, self.store = directory, store

    @abstractmethod
    def open(self, name: str) -> OutputFile:
        """Open a shard, which appears under its name when it is placed."""

    def place(self, shard: WrittenShard, name: str) -> None:
        """Give a shard its name."""
        if shard.output is not None:
            shard.commit()
        else:
            self._move(shard, name)

    @abstractmethod
    def _move(self, shard: WrittenShard, name: str) -> None:
        """Give a shard its name that another process has staged."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a shard if it exists."""

    def sync(self) -> None:  # noqa: B027 — an object is durable once it is stored
        """Make the names of shards durable."""

    def discard(self) -> None:  # noqa: B027 — only local directories are created
        """Remove directories that were created."""


class AppendingDatasetWriter(ShardedDatasetWriter):
    """Adds shards to a dataset; `store` has its manifest, `files` writes, moves and removes shards."""

    def __init__(
        self,
        fs: FileSystem,
        base: str,
        output: Output,
        files: Files,
        distributed_id: str | None,
        *,
        mode: str = "append",
        partition_by: tuple[str, ...] = (),
    ) -> None:
        self._mode, self._partition_by = mode, partition_by
        if mode in ("append", "overwrite_partitions"):
            self.exists_error = f"shards of this name exist without a manifest, which mode='{mode}' needs; "
            self.exists_error += "write them as a new dataset with tfrecord_io.merge, and append to that"
        self._partition_schema: bytes | None = None
        self._stored: set[str] = set()  # shards that have their names
        self._beside: dict[str, set[str]] = {}  # names in the folders of shards that are replaced
        self._files = files
        self._store = files.store
        self._store.replaces_damaged = mode == "overwrite"
        self._known: Manifest | None = None
        super().__init__(fs, base, output, None, distributed_id)
        self.created, self.side_by_side, self.model = files.created, files.side_by_side, files.model
        known = self._known
        first = 0 if known is None else 1 + max(map(_number, known.files), default=-1)
        self._output = output.added_by(self._id, first, None if known is None else known.compression)

        self.keeps_empty = known is None or not known.files

    def _check_existing(self) -> list[str]:
        """Read the manifest; shards without one cannot be added to, and other files would be read with the dataset."""
        self._known = self._store.read()
        if self._known is None:
            try:
                super()._check_existing()
            except FileExistsError:
                self._known = self._store.read()  # another writer may have begun the dataset meanwhile
                if self._known is None:
                    raise
        if self._known is not None:
            self._check_partitions(self._known)
        return []

    def _check_partitions(self, manifest: Manifest) -> None:
        """Raise an error if the dataset exists and must not, or has other folders."""
        if not manifest.files or self._mode == "overwrite":
            return
        if self._mode == "error":
            text = "a sharded dataset of this name exists; mode='overwrite' replaces it, mode='append' adds to it"
            raise FileExistsError(errno.EEXIST, text, self._store.path)
        if manifest.partition_by != self._partition_by:
            known = list(manifest.partition_by)
            expected = f"partitioned by {known}; pass the same" if known else "not partitioned; leave out"
            raise ValueError(f"'{self._store.path}': the dataset is {expected} partition_by= to append to it")

    def set_partition_schema(self, schema: bytes) -> None:
        """State the types of the partition columns."""
        self._partition_schema = schema
        if self._known is not None and self._known.files and self._mode != "overwrite":
            self.unite(self._known.partition_schema, schema, self._store.path)

    def check_schema(self, schema: bytes | None) -> None:
        """Raise SchemaError if rows of this schema cannot be added."""
        if self._known is not None and self._known.files and self._mode != "overwrite":
            self.unite(self._known.schema, schema, self._store.path)

    def open(self, index: int, folder: str = "") -> OutputFile:
        return self._files.open(folder + self._shard_name(index))

    def store(self, shard: WrittenShard) -> None:
        """Give a shard its name before it is published, if it would stay in memory until then."""
        if not self._files.side_by_side:
            self._begin()
            self._place(shard, shard.folder + self._shard_name(shard.index))

    def _begin(self) -> None:
        if self._known is None:
            self._known = self._store.update(self._begun, lambda manifest: True)[1]

    def _place(self, shard: WrittenShard, name: str) -> None:
        if name not in self._stored:
            self._stored.add(name)
            self._files.place(shard, name)

    def publish(self, shards: Sequence[WrittenShard], schema: bytes | None) -> None:
        """Add the shards. If that fails before the new manifest is written, nothing of them is left."""
        files = self._new_manifest(shards, schema).files
        try:
            with self._store.alone():
                self._begin()
                named = list(zip(shards, [file.path for file in files], strict=True))
                for shard, name in named:
                    if shard.output is not None:
                        self._place(shard, name)
                moved = (partial(self._place, shard, name) for shard, name in named if shard.output is None)
                for _ in ordered(moved, self._files.moves, "move"):
                    pass
                self._files.sync()
                old, new = self._store.update(partial(self._changed, files, schema), self._has_own)
        except BaseException as error:
            self._withdraw(error)
            raise
        remove_replaced(self, self._store, old, new)

    def _begun(self, manifest: Manifest | None) -> Manifest:
        """A manifest that names no file, so that no shard is read before it is published."""
        return manifest or Manifest(self._stem, self._id, (), partition_by=self._partition_by)

    def _grown(self, files: tuple[ManifestFile, ...], schema: bytes | None, manifest: Manifest | None) -> Manifest:
        if manifest is None:
            raise FileNotFoundError(errno.ENOENT, "the dataset was deleted while it was written to", self._store.path)
        self._check_partitions(manifest)
        kept = manifest.files
        if self._mode == "overwrite":
            kept = ()
        elif self._mode == "overwrite_partitions":
            replaced = {os.path.dirname(file.path) for file in files}
            kept = tuple(file for file in kept if os.path.dirname(file.path) not in replaced)
        if not files and len(kept) == len(manifest.files) and manifest.complete:
            return manifest
        types = self._partition_schema
        if self._mode != "overwrite" and manifest.files and manifest.partition_schema is not None:
            types = self.unite(manifest.partition_schema, types, self._store.path)
        is_new = self._mode == "overwrite" or not manifest.files
        names = {file.path for file in manifest.files if file not in kept and not _id_of(file)}
        if not manifest.complete:  # it does not name all shards
            names.update(name for name in self._listing() if self._is_shard(name) and not _id_in(name))
        unite = partial(self.unite, without_rows=not any(file.records for file in manifest.files))
        united = schema if is_new else unite(manifest.schema, schema, self._store.path)
        is_alike = is_new or manifest.compression == self._output.compression
        compression = self._output.compression if is_alike else None
        return replace(
            manifest,
            id=manifest.id if len(kept) == len(manifest.files) else self._id,  # else old readers go on
            files=(*kept, *files),
            schema=united,
            complete=True,
            compression=compression,
            replaces=(*manifest.replaces, *sorted(names)),
            partition_by=self._partition_by,
            partition_schema=types,
        )

    def _changed(self, files: tuple[ManifestFile, ...], schema: bytes | None, manifest: Manifest | None) -> Manifest:
        new = self._grown(files, schema, manifest)
        if manifest is None or new is manifest:
            return new
        kept = {file.path for file in new.files}
        ids = dict.fromkeys(_id_of(file) for file in manifest.files if file.path not in kept and _id_of(file))
        return replace(new, replaced_ids=(*manifest.replaced_ids, *ids)[-_MOST_IDS:])

    def _has_own(self, manifest: Manifest) -> bool:
        return manifest.has_shards_of(self._id)

    def _withdraw(self, error: BaseException) -> None:
        """Remove the shards, unless the manifest that names them was stored although its writing failed."""
        with suppress(OSError):  # `error` is the one to report; `clean` finds what is left
            if self._is_published():
                self._say_published(error)
                return
            self._remove_stored()

    def _remove_stored(self) -> None:
        for name in sorted(self._stored) if not self.keeps_staged else ():
            self._remove(name)
        self._stored.clear()

    def _is_published(self) -> bool:
        with suppress(CorruptRecordError):  # of another writer
            manifest = self._store.read()
            return manifest is not None and self._has_own(manifest)
        return False

    def complete(self) -> Manifest | None:
        return None

    def discard(self) -> None:
        with suppress(OSError):
            if self._stored and not self._is_published():
                self._remove_stored()
        self._files.discard()

    def _remove(self, name: str) -> None:
        self._files.remove(name)

    def _remove_old(self, name: str) -> None:
        """Remove a shard that was replaced, and its indexes."""
        indexes = [name + suffix for suffix in INDEX_SUFFIXES]
        folder = os.path.dirname(name)
        if folder not in self._beside:
            self._beside[folder] = set()
            with suppress(OSError):
                entries = self._fs.listing(os.path.join(self._directory, folder))
                self._beside[folder] = {os.path.join(folder, entry.basename) for entry in entries}
        for each in [index for index in indexes if index in self._beside[folder]]:
            super()._remove_old(each)
        super()._remove_old(name)


def _number(file: ManifestFile) -> int:
    shard = parse_shard(os.path.basename(file.path))
    return -1 if shard is None else shard.index


def _id_of(file: ManifestFile) -> str:
    return _id_in(file.path)


def _id_in(name: str) -> str:
    shard = parse_shard(os.path.basename(name))
    return "" if shard is None else shard.id


def remove_replaced(writer: ShardedDatasetWriter, store: ManifestStore, old: Manifest | None, new: Manifest) -> None:
    """Remove the shards that a manifest has no longer; what could not be removed is left to the writer's warning."""
    kept = {file.path for file in new.files}
    before = [file.path for file in (old.files if old is not None else ()) if file.path not in kept]
    names = dict.fromkeys((*before, *new.replaces))  # also those that a writer before could not remove
    for name in filter(_id_in, names):
        writer._remove_old(name)
    if not new.replaces:  # the others have names that no reader reads
        return
    with store.alone():
        try:
            current = store.read()
        except CorruptRecordError:  # another writer is replacing the dataset
            current = None
        if current is None:
            return
        used = {file.path for file in current.files}  # names without an id, which another writer may have given again
        for name in names:
            if not _id_in(name) and name not in used:
                writer._remove_old(name)

        def settled(manifest: Manifest | None) -> Manifest:
            current = manifest or new
            left = tuple(name for name in current.replaces if name in writer.left or name not in new.replaces)
            return replace(current, replaces=left)

        store.update(settled, lambda manifest: True)
