"""Shards of a dataset on the local disk; see `tfrecord_io.storage.write.publication`.

A lock of the directory, which ends with its process, makes the replacement of the manifest one step.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tfrecord_io.storage import system
from tfrecord_io.storage.filesystem.interface import FileSystem
from tfrecord_io.storage.paths.manifest import Manifest, ManifestFile
from tfrecord_io.storage.write.atomic_local import create_directories, open_local, open_staged, remove_directories
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.storage.write.place import ExclusivePlace

_NAMED = ", after the complete file got its name"  # which does not say whether the rows are published


class LocalPlace(ExclusivePlace):
    """A local directory, which is created if it is missing, and locked while its manifest is replaced."""

    side_by_side = stages_all = syncs = True

    def __init__(self, fs: FileSystem, directory: str, name: str) -> None:
        super().__init__(fs, directory, name)
        self._changed: set[str] = set()  # directories whose names are not durable yet
        self._written: Manifest | None = None  # since the directory is locked

    @contextmanager
    def _exclusion(self, required: bool) -> Iterator[bool]:
        with system.current.lock_directory(os.path.dirname(self._name) or ".") as locked:
            if required and not locked:
                text = "its filesystem has no locks, without which two writers could lose shards of each other"
                raise OSError(errno.ENOLCK, f"{text}; write a dataset of its own, or to another filesystem", self.path)
            try:
                yield locked
            finally:
                self._written = None

    def read(self) -> Manifest | None:
        return self._written or super().read()

    def _write(self, manifest: Manifest) -> None:  # a link is replaced and not followed: it leads to another directory
        name, is_link = self._name, os.path.islink(self._name)
        self._written = None  # if this fails, it is unknown which one is there
        with open_staged(name, name) if is_link else open_local(name, exclusive=False, after=_NAMED) as file:
            file.write(self.text_of(manifest))
        self._written = manifest if self.is_exclusive else None

    def create(self, name: str = "") -> None:
        """Create the directory, or the folder of a shard, if it is missing."""
        created = create_directories(os.path.dirname(self.directory + name))
        self._created += reversed(created)
        self._changed.update(os.path.dirname(each) for each in created)

    def model(self, names: Sequence[str]) -> os.stat_result | None:
        for name in (*names, self._name.removeprefix(self.directory)):
            with suppress(FileNotFoundError):
                return os.stat(system.current.full_name(self.directory + name))
        return None

    def open(self, name: str, staged: str | None, models: Sequence[str], *, exclusive: bool = False) -> OutputFile:
        try:
            return self._opened(name, staged, models)
        except FileNotFoundError:  # a writer that failed removed the directory that it had made
            self.create()
            return self._opened(name, staged, models)

    def _opened(self, name: str, staged: str | None, models: Sequence[str]) -> OutputFile:
        path, model = self.directory + name, self.model(models)
        if staged is not None:
            self._changed.add(os.path.dirname(self.directory))
            return open_staged(path, self.directory + staged, model)
        if "/" in name:
            self.create(name)
        return open_local(path, exclusive=False, model=model, after=_NAMED)

    def move(
        self, staged: str, name: str, *, again: bool = False, size: int | None = None, version: str | None = None
    ) -> bool:
        if "/" in name:
            self.create(name)
        try:
            system.current.replace(f"{self.directory}{staged}", self.directory + name)
        except OSError as error:  # names both
            if again and isinstance(error, FileNotFoundError) and os.path.exists(self.directory + name):
                return True
            raise OSError(error.errno, error.strerror, self.directory + name) from error
        self._changed.add(os.path.dirname(self.directory + name))
        return True

    def check(self, moved: Sequence[ManifestFile]) -> None:
        if moved:  # the names beside the manifest are made durable with its next version, those in folders are not
            self._changed.discard(os.path.dirname(self.directory))
            self.sync()

    def sync(self) -> None:
        for directory in sorted(self._changed):
            system.current.sync_directory(directory or ".")
            self._changed.discard(directory)

    def discard(self) -> None:
        remove_directories(self.created)
