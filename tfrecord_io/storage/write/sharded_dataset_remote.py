"""Sharded datasets in a bucket, by uploads completed together; see `tfrecord_io.storage.write.sharded_dataset`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from tfrecord_io.storage.filesystem.remote import FsspecFileSystem
from tfrecord_io.storage.paths.manifest import Manifest, format_manifest
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
        existing = self._check_existing()
        old_text, old_stamps = self._manifest_text(), self._stamps()
        try:
            self._write_manifest(replace(final, complete=False), exclusive=self._overwrite is not True)
            for name in self._index_files() if existing else ():
                self._fs.fsspec.rm_file(self._directory + name)
            for shard in shards:
                self._check_still_published()
                shard.output.commit()
            names = {file.path for file in final.files}
            for name in existing:
                if self._is_shard(name) and name not in names:
                    self._fs.fsspec.rm_file(self._directory + name)
            self._check_still_published()
            self._write_manifest(final, exclusive=False)
        except BaseException:
            with suppress(OSError):  # the first error is the one to report
                self._roll_back(old_text, old_stamps)
            raise

    def _roll_back(self, old_text: bytes | None, old_stamps: dict[str, str]) -> None:
        """Remove what is new; the old manifest is restored unless old shards are gone."""
        if not self._is_published():
            return
        stamps = self._stamps()
        for name in stamps.keys() - old_stamps.keys():
            self._fs.fsspec.rm_file(self._directory + name)
        if any(stamps.get(name) != stamp for name, stamp in old_stamps.items()):
            return
        if old_text is None:
            self._fs.fsspec.rm_file(self._manifest_name)
        else:
            with open_remote(self._fs, self._manifest_name, exclusive=False) as file:
                file.write(old_text)

    def _stamps(self) -> dict[str, str]:
        """The description of each existing shard, which changes when the shard is written."""
        self._fs.fsspec.invalidate_cache(self._directory)
        try:
            infos = self._fs.fsspec.ls(self._directory, detail=True)
        except FileNotFoundError:
            return {}
        stamps = {info["name"].rpartition("/")[2]: repr(sorted(info.items(), key=str)) for info in infos}
        return {name: stamp for name, stamp in stamps.items() if self._is_shard(name)}

    def _write_manifest(self, manifest: Manifest, *, exclusive: bool) -> None:
        with open_remote(self._fs, self._manifest_name, exclusive=exclusive) as file:
            file.write(format_manifest(manifest))
