"""Sharded datasets in a bucket that replace another, by copies; see `tfrecord_io.storage.write.sharded_dataset`."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from fsspec.asyn import AsyncFileSystem

from tfrecord_io.background import ordered
from tfrecord_io.options import LIMITS
from tfrecord_io.storage.filesystem.interface import FileSystem
from tfrecord_io.storage.filesystem.os_errors import raise_os_errors
from tfrecord_io.storage.filesystem.retries import retry
from tfrecord_io.storage.paths.manifest import Manifest, ManifestFile
from tfrecord_io.storage.paths.resolve_output import Output
from tfrecord_io.storage.read.range_requests import unwrap
from tfrecord_io.storage.write.append_remote import remote_manifest
from tfrecord_io.storage.write.atomic_remote import open_remote
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.storage.write.sharded_dataset import WrittenShard
from tfrecord_io.storage.write.sharded_dataset_remote import RemoteShardedDatasetWriter


class StagedShardedDatasetWriter(RemoteShardedDatasetWriter):
    """Uploads shards under staged names, which the manifest publishes, and lets the store copy them to the final ones.

    A dataset that does not exist yet is uploaded under its final names, unless other processes write its shards.
    """

    def __init__(
        self, fs: FileSystem, base: str, output: Output, overwrite: bool | None, distributed_id: str | None = None
    ) -> None:
        super().__init__(fs, base, output, overwrite, distributed_id)
        self._stages = bool(self._existing_at_start) or distributed_id is not None

    def open(self, index: int) -> OutputFile:
        if not self._stages:
            return super().open(index)
        path = self._fs.display_path(self._directory + self._shard_name(index))
        return open_remote(self._fs, self._directory + self._staged_name(index), exclusive=False, path=path)

    def publish(self, shards: Sequence[WrittenShard], schema: bytes | None) -> None:
        if not self._stages:
            super().publish(shards, schema)
            return
        final = self._new_manifest(shards, schema)
        begun: list[str] = []  # staged names whose upload was to be completed
        try:
            existing = self._check_existing()
            for shard, name in zip(shards, self._staged(shards), strict=True):
                begun.append(name)
                shard.commit()
            staged, removed = self._staged_manifest(final, shards, existing)
            self._each([partial(self._remove, name) for name in self._index_files()])
            self._write_manifest(staged, exclusive=self._overwrite is not True)
        except BaseException as error:
            self._withdraw(begun, error)
            raise
        try:
            self._complete(staged, final, removed)
        except BaseException as error:
            self._withdraw(begun, error)
            raise

    def _withdraw(self, begun: Sequence[str], error: BaseException) -> None:
        """Remove the staged shards, unless the manifest that lists them is published.

        It may be stored although its writing failed; after it was written, another writer may have replaced it.
        """
        with suppress(OSError):  # `error` is the one to report; `clean` finds what could not be removed
            if self._is_published():
                self._say_published(error)
            elif not self.keeps_staged:
                self._each([partial(self._remove, name) for name in begun])

    def _finish(self, staged: Manifest, final: Manifest) -> None:
        self._complete(staged, final, staged.replaces)

    def _complete(self, staged: Manifest, final: Manifest, removed: Sequence[str]) -> None:
        """Give the shards their final names, remove the old dataset's, and write the final manifest."""
        files = [file for file in staged.files if file.staged is not None]
        for first in range(0, len(files), LIMITS.copies):
            self._check_still_published()
            self._each([partial(self._copy, file) for file in files[first : first + LIMITS.copies]])
        self._check_copies(files)
        self._check_still_published()
        self._each([partial(self._remove_old, name) for name in removed])
        store = remote_manifest(self._fs, self._manifest_name, claims=False)
        store.update(partial(self._settled, self._completed(final, staged.replaces)), partial(_has_files_of, final))
        self._each([partial(self._remove_old, str(file.staged)) for file in files])

    def _settled(self, final: Manifest, current: Manifest | None) -> Manifest:
        """The final manifest, with the shards that other writers have added since the staged ones were published."""
        if current is None or current.id != self._id:
            raise self._is_replaced()
        return replace(final, files=(*final.files, *current.files[len(final.files) :]), schema=current.schema)

    def _copy(self, file: ManifestFile) -> None:
        """Copy a shard within the store, in one atomic step; filesystems other than object stores rename it."""
        staged, name = self._directory + str(file.staged), self._directory + file.path
        move = self._fs.fsspec.cp_file if self._is_object_store else self._fs.fsspec.mv
        with raise_os_errors(self._fs.display_path(name)):
            retry(lambda: move(staged, name))

    @property
    def _is_object_store(self) -> bool:
        return isinstance(unwrap(self._fs.fsspec, "")[0], AsyncFileSystem)

    def _check_copies(self, files: Sequence[ManifestFile]) -> None:
        entries = self._fs.entries([self._directory + file.path for file in files])
        for file, entry in zip(files, entries, strict=True):
            if entry is None or entry.size not in (None, file.bytes):
                text = "the copy of a staged shard is missing, or has another size; write the dataset again"
                raise OSError(errno.EIO, text, self._fs.display_path(self._directory + file.path))

    def _each(self, calls: Sequence[partial[None]]) -> None:
        """Make calls, several at a time where the filesystem supports that."""
        for _ in ordered(calls, LIMITS.copies if self._is_object_store else 1, "copy"):
            pass


def _has_files_of(final: Manifest, current: Manifest) -> bool:
    return current.id == final.id and current.files[: len(final.files)] == final.files
