"""Sharded datasets on the local disk, published by one rename; see `tfrecord_io.storage.write.sharded_dataset`."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

from tfrecord_io.storage import system
from tfrecord_io.storage.filesystem.interface import FileSystem
from tfrecord_io.storage.paths.manifest import Manifest, format_manifest
from tfrecord_io.storage.paths.resolve_output import Output
from tfrecord_io.storage.write.atomic_local import open_local, open_staged
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.storage.write.sharded_dataset import ShardedDatasetWriter, WrittenShard


class LocalShardedDatasetWriter(ShardedDatasetWriter):
    """Writes shards under staged names until the manifest is published."""

    side_by_side = True

    def __init__(
        self, fs: FileSystem, base: str, output: Output, overwrite: bool | None, distributed_id: str | None = None
    ) -> None:
        super().__init__(fs, base, output, overwrite, distributed_id)
        self.created = create_directories(self._directory.rstrip("/"))
        self.model = self._replaced_status(self._directory + self._shard_name(0))

    def open(self, index: int) -> OutputFile:
        path = self._directory + self._shard_name(index)
        return open_staged(path, self._directory + self._staged_name(index), self._replaced_status(path))

    def _replaced_status(self, path: str) -> os.stat_result | None:
        """The owner and mode for a new shard: those of the old one, or of another if the old dataset had fewer."""
        others = (self._directory + name for name in self._existing_at_start if self._is_shard(name))
        for name in (path, *others):
            with suppress(FileNotFoundError):
                return os.stat(system.current.full_name(name))
        return None

    def discard(self) -> None:
        remove_directories(self.created)

    def publish(self, shards: Sequence[WrittenShard], schema: bytes | None) -> None:
        final = self._new_manifest(shards, schema)
        try:
            for shard in shards:
                shard.commit()
            system.current.sync_directory(self._directory or ".")
            with system.current.lock_directory(self._directory or ".") as locked:
                self._replace_dataset(shards, final, locked)
        except BaseException as error:
            if self._is_published():
                self._say_published(error)
            elif not self.keeps_staged:
                for name in self._staged(shards):
                    self._remove(name)
            raise

    def _finish(self, staged: Manifest, final: Manifest) -> None:
        with system.current.lock_directory(self._directory or ".") as locked:
            self._complete(staged, final, staged.replaces, locked, renamed=(FileNotFoundError,))

    def _replace_dataset(self, shards: Sequence[WrittenShard], final: Manifest, locked: bool) -> None:
        """Publish the dataset under the lock: writing the manifest with the staged names replaces the old dataset."""
        staged, removed = self._staged_manifest(final, shards, self._check_existing())
        try:
            self._write_manifest(staged)
            self._complete(staged, final, removed, locked)
        except KeyboardInterrupt:
            if self._is_published():
                self._complete(staged, final, removed, locked, renamed=(FileNotFoundError,))
            raise

    def _complete(
        self,
        staged: Manifest,
        final: Manifest,
        removed: Sequence[str],
        locked: bool,
        renamed: tuple[type[Exception], ...] = (),
    ) -> None:
        """Rename the shards and remove the old ones; `renamed` is what renaming a shard for the second time raises."""
        for name in self._index_files():
            self._remove_old(name)
        for file in staged.files:
            if not locked:
                self._check_still_published()
            if file.staged is not None:
                with suppress(*renamed):
                    self._rename(file.staged, file.path)
        for name in removed:
            self._remove_old(name)
        self._check_still_published()
        self._write_manifest(self._completed(final, staged.replaces))

    def _write_manifest(self, manifest: Manifest) -> None:
        write_manifest(self._manifest_name, manifest)

    def _rename(self, staged: str, name: str) -> None:
        try:
            system.current.replace(self._directory + staged, self._directory + name)
        except OSError as error:  # names both
            raise OSError(error.errno, error.strerror, self._directory + name) from error

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(system.current.full_name(self._directory + name))


def write_manifest(name: str, manifest: Manifest) -> None:
    """Write a manifest; a link is replaced and not followed, as it leads to the manifest of another directory."""
    with open_staged(name, name) if os.path.islink(name) else open_local(name, exclusive=False) as file:
        file.write(format_manifest(manifest))


def remove_directories(created: Iterable[str]) -> None:
    """Remove directories that a writer created, the deepest first, unless they hold something."""
    with suppress(OSError):
        for directory in created:
            os.rmdir(directory)


def create_directories(directory: str) -> tuple[str, ...]:
    """Create a directory and its parents; returns those that were missing, the deepest first."""
    missing = []
    while directory and not os.path.isdir(directory):
        if os.path.lexists(directory) and not os.path.isdir(directory):  # another process may have created it just now
            text = "expected a directory for the shards, got a file or a dangling link"
            raise NotADirectoryError(errno.ENOTDIR, text, directory)
        missing.append(directory)
        directory = os.path.dirname(directory)
    for name in reversed(missing):
        os.makedirs(name, exist_ok=True)
    return tuple(missing)
