"""The shards of a dataset in a bucket: uploads that are completed together; see `tfrecord_io.storage.write.sharded_dataset`."""

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
    """Uploads kept open; between the first completion and the last the manifest says that the dataset is incomplete."""

    _tree: FsspecFileSystem

    def open(self, index: int) -> OutputFile:
        return open_remote(self._tree, self._directory + self._name(index), exclusive=False)

    def publish(self, shards: Sequence[WrittenShard], schema: bytes | None) -> None:
        made = self._of(shards, schema)
        present = self._present()
        if self._overwrite is not True:
            self._refuse_existing(present)
        before, stamps = self._manifest_text(), self._stamps()
        try:
            self._put(replace(made, complete=False), exclusive=self._overwrite is not True)
            for name in self._indexes() if present else ():
                self._tree.fs.rm_file(self._directory + name)
            for shard in shards:
                self._refuse_another()
                shard.output.commit()
            names = {file.path for file in made.files}
            for name in present:
                if self._belongs(name) and name not in names:
                    self._tree.fs.rm_file(self._directory + name)
            self._refuse_another()
            self._put(made, exclusive=False)
        except BaseException:
            with suppress(OSError):  # what people should see is the first error
                self._take_back(before, stamps)
            raise

    def _take_back(self, before: bytes | None, stamps: dict[str, str]) -> None:
        """Leave nothing new; where old shards are gone the manifest that says so stays."""
        if not self._is_ours():
            return
        now = self._stamps()
        for name in now.keys() - stamps.keys():
            self._tree.fs.rm_file(self._directory + name)
        if any(now.get(name) != stamp for name, stamp in stamps.items()):
            return
        if before is None:
            self._tree.fs.rm_file(self._manifest)
        else:
            with open_remote(self._tree, self._manifest, exclusive=False) as file:
                file.write(before)

    def _stamps(self) -> dict[str, str]:
        """The dataset's shards that are there, each with what changes when it is written."""
        self._tree.fs.invalidate_cache(self._directory)
        try:
            found = self._tree.fs.ls(self._directory, detail=True)
        except FileNotFoundError:
            return {}
        named = {info["name"].rpartition("/")[2]: repr(sorted(info.items(), key=str)) for info in found}
        return {name: stamp for name, stamp in named.items() if self._belongs(name)}

    def _put(self, manifest: Manifest, *, exclusive: bool) -> None:
        with open_remote(self._tree, self._manifest, exclusive=exclusive) as file:
            file.write(format_manifest(manifest))
