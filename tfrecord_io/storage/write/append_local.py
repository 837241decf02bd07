"""Shards that are added to a dataset on the local disk; see `tfrecord_io.storage.write.append`.

A lock of the directory, which ends with its process, makes the replacement of the manifest one step.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tfrecord_io.storage import system
from tfrecord_io.storage.filesystem.interface import FileSystem
from tfrecord_io.storage.paths.manifest import Manifest
from tfrecord_io.storage.write.append import ExclusiveManifest, Files
from tfrecord_io.storage.write.atomic_local import open_local
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.storage.write.sharded_dataset import WrittenShard
from tfrecord_io.storage.write.sharded_dataset_local import create_directories, remove_directories, write_manifest


class LocalManifest(ExclusiveManifest):
    """A manifest whose directory is locked while it is replaced."""

    @contextmanager
    def _exclusion(self) -> Iterator[None]:
        with system.current.lock_directory(os.path.dirname(self._name) or ".") as locked:
            if not locked:
                text = "its filesystem has no locks, without which two writers could lose shards of each other"
                raise OSError(errno.ENOLCK, f"{text}; write a dataset of its own, or to another filesystem", self.path)
            yield

    def _write(self, manifest: Manifest) -> None:
        write_manifest(self._name, manifest)


class LocalFiles(Files):
    """Shards of a local directory, which is created if it is missing."""

    side_by_side = True

    def __init__(self, fs: FileSystem, directory: str, manifest: str) -> None:
        super().__init__(directory, LocalManifest(fs, manifest))
        self.created = create_directories(directory.rstrip("/"))
        self._changed = {os.path.dirname(each) for each in self.created}  # directories whose names are not durable yet
        with suppress(FileNotFoundError):
            self.model = os.stat(system.current.full_name(manifest))

    def open(self, name: str) -> OutputFile:
        self._create_folder(name)
        return open_local(self._directory + name, exclusive=False, model=self.model)

    def _create_folder(self, name: str) -> None:
        """Create the folder of a shard, if it is in one."""
        if "/" in name:
            created = create_directories(os.path.dirname(self._directory + name))
            self.created = (*created, *self.created)
            self._changed.update(os.path.dirname(each) for each in created)

    def _move(self, shard: WrittenShard, name: str) -> None:
        self._create_folder(name)
        system.current.replace(f"{self._directory}{shard.staged}", self._directory + name)
        self._changed.add(os.path.dirname(self._directory + name))

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(system.current.full_name(self._directory + name))

    def sync(self) -> None:
        for directory in sorted(self._changed):
            system.current.sync_directory(directory or ".")

    def discard(self) -> None:
        for directory in self.created:
            remove_directories([directory])
