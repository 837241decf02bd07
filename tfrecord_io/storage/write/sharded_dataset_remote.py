"""Sharded datasets in a bucket, by uploads completed together; see `tfrecord_io.storage.write.sharded_dataset`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import crc32c

from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.storage.filesystem.os_errors import raise_os_errors
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem
from tfrecord_io.storage.filesystem.retries import retry
from tfrecord_io.storage.paths.manifest import Manifest, ManifestFile, format_manifest, parse_manifest
from tfrecord_io.storage.read.source import checksum, source_of
from tfrecord_io.storage.write.atomic_remote import open_remote
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.storage.write.sharded_dataset import ShardedDatasetWriter, WrittenShard


class RemoteShardedDatasetWriter(ShardedDatasetWriter):
    """Keeps uploads open; between the first completion and the last the manifest declares the dataset incomplete."""

    _fs: FsspecFileSystem

    def open(self, index: int) -> OutputFile:
        return open_remote(self._fs, self._directory + self._shard_name(index), exclusive=False)

    def publish(self, shards: Sequence[WrittenShard], schema: bytes | None) -> None:
        final = self._new_manifest(shards, schema)
        existing, old = self._check_existing(), self._manifest_text()
        begun: list[str] = []  # names whose upload was to be completed; if that failed, the object may be stored or not
        removed: list[str] = []
        try:
            self._write_manifest(replace(final, complete=False), exclusive=self._overwrite is not True)
            for name in self._index_files() if existing else ():
                self._remove(name)
            for shard in shards:
                self._check_still_published()
                begun.append(self._shard_name(shard.index))
                shard.commit()
            names = {file.path for file in final.files}
            for name in existing:
                if self._is_shard(name) and name not in names:
                    removed.append(name)
                    self._remove_old(name)
            self._check_still_published()
            self._write_manifest(self._completed(final, removed), exclusive=False)
        except BaseException:
            with suppress(OSError):  # the first error is the one to report
                self._roll_back(old, existing, begun, removed)
            raise

    def _roll_back(
        self, old: bytes | None, existing: Sequence[str], begun: Sequence[str], removed: Sequence[str]
    ) -> None:
        """Remove what is new; restore the old manifest if the files that it lists are still the ones it describes.

        Not every filesystem reports whether a file was replaced, so the content decides. A dataset without a manifest
        cannot be checked.
        """
        if not self._is_published():
            return
        for name in {*begun} - {*existing}:
            if self._fs.entry(self._directory + name) is not None:
                self._fs.fsspec.rm_file(self._directory + name)
        touched = {*begun, *removed} & {*existing}
        if touched and not (old and self._are_intact(old, touched)):
            return
        if old is None:
            self._fs.fsspec.rm_file(self._manifest_name)
        else:
            with open_remote(self._fs, self._manifest_name, exclusive=False) as file:
                file.write(old)

    def _are_intact(self, old: bytes, names: set[str]) -> bool:
        """Whether files have the size and checksum that the old manifest states."""
        try:
            manifest = parse_manifest(old, self._manifest_name)
        except CorruptRecordError:
            return False
        described = {file.path: file for file in manifest.files} if manifest is not None else {}
        return all(name in described and self._is_intact(described[name]) for name in names)

    def _is_intact(self, file: ManifestFile) -> bool:
        self._fs.fsspec.invalidate_cache(self._directory)
        entry = self._fs.entry(self._directory + file.path)
        if entry is None or entry.size != file.bytes:
            return False
        return checksum(source_of(self._fs, entry), crc32c.crc32c) == (file.bytes, file.crc32c)

    def _remove(self, name: str) -> None:
        path = self._directory + name
        with suppress(FileNotFoundError), raise_os_errors(self._fs.display_path(path)):
            retry(lambda: self._fs.fsspec.rm_file(path))

    def _write_manifest(self, manifest: Manifest, *, exclusive: bool) -> None:
        with open_remote(self._fs, self._manifest_name, exclusive=exclusive) as file:
            file.write(format_manifest(manifest))
