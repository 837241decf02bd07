"""Shards that are added to a dataset on the local disk; see `tfrecord_io.storage.write.append`.

A lock of the directory, which ends with its process, makes the replacement of the manifest one step.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tfrecord_io.storage.filesystem.interface import FileSystem
from tfrecord_io.storage.paths.manifest import Manifest
from tfrecord_io.storage.read.source import read_manifest
from tfrecord_io.storage.write.append import Change, Files, ManifestStore
from tfrecord_io.storage.write.atomic_local import open_local, sync_directory
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.storage.write.sharded_dataset import WrittenShard
from tfrecord_io.storage.write.sharded_dataset_local import (
    create_directories,
    lock_directory,
    remove_directories,
    write_manifest,
)


class LocalManifest(ManifestStore):
    """A manifest whose directory is locked while it is replaced."""

    def __init__(self, fs: FileSystem, name: str) -> None:
        super().__init__(fs, name)
        self._directory = os.path.dirname(name) or "."
        self._is_alone = False

    @contextmanager
    def alone(self) -> Iterator[None]:
        if self._is_alone:
            yield
            return
        with lock_directory(self._directory) as locked:
            if not locked:
                text = "its filesystem has no locks, without which two writers could lose shards of each other"
                raise OSError(errno.ENOLCK, f"{text}; write a dataset of its own, or to another filesystem", self.path)
            self._is_alone = True
            try:
                yield
            finally:
                self._is_alone = False

    def read(self) -> Manifest | None:
        entry = self._fs.entry(self._name)
        return None if entry is None else self._parsed(read_manifest(self._fs, entry))

    def update(self, change: Change, is_done: Callable[[Manifest], bool]) -> tuple[Manifest | None, Manifest]:
        with self.alone():
            old = self.read()
            new = change(old)
            if new is not old:
                write_manifest(self._name, new)
            return old, new


class LocalFiles(Files):
    """Shards of a local directory, which is created if it is missing."""

    side_by_side = True

    def __init__(self, fs: FileSystem, directory: str, manifest: str) -> None:
        super().__init__(directory, LocalManifest(fs, manifest))
        self.created = create_directories(directory.rstrip("/"))
        self._placed: set[str] = set()  # directories
        with suppress(FileNotFoundError):
            self.model = os.stat(manifest)

    def open(self, name: str) -> OutputFile:
        return open_local(self._directory + name, exclusive=False, model=self.model)

    def place(self, shard: WrittenShard, name: str) -> None:
        super().place(shard, name)
        self._placed.add(os.path.dirname(self._directory + name))

    def _move(self, shard: WrittenShard, name: str) -> None:
        os.replace(f"{self._directory}{shard.staged}", self._directory + name)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._directory + name)

    def sync(self) -> None:
        for directory in sorted(self._placed):
            sync_directory(directory or ".")

    def discard(self) -> None:
        remove_directories(self.created)
