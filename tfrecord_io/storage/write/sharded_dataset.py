"""The shards of a dataset, published together: a reader that goes by the manifest finds all of the old ones or all of the new.

On the local disk the new shards wait under names of their own, ``_<id>-00000.staged``. One rename puts the new manifest in the old one's
place, and that is the moment: it says under which names each shard may stand. Then the shards get their names, the dataset's old
ones go, and the manifest is put right. A writer killed before the moment leaves the old dataset, one killed behind it the new one.
Writers of one directory take turns by a lock that dies with them.

A bucket has no renames. Its uploads are kept open until all are written, then a manifest that says the dataset is incomplete takes
the place of the old one, the uploads are completed, and the manifest is put right: a writer killed meanwhile leaves a dataset that
readers refuse.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.storage.filesystem.local import FileSystem, LocalFileSystem, locate
from tfrecord_io.storage.paths.manifest import MAX_BYTES, Manifest, ManifestFile, manifest_name, new_id, parse_manifest
from tfrecord_io.storage.paths.resolve_output import Output
from tfrecord_io.storage.paths.shard_names import parse_shard
from tfrecord_io.storage.read.source import read_whole
from tfrecord_io.storage.write.output_file import OutputFile

INDEX_SUFFIX = ".index"  # of what a writer puts beside a shard


@dataclass(frozen=True, slots=True)
class WrittenShard:
    """A shard whose bytes are all written, to be published."""

    index: int
    output: OutputFile
    records: int
    crc32c: int


class ShardedDatasetWriter(ABC):
    """A sharded dataset while it is written.

    Parameters
    ----------
    tree : FileSystem
    base : str
        `output`'s base, in `tree`.
    output : Output
    overwrite : bool, optional
        True replaces a dataset of this name; otherwise it is an error if any of its files is there.

    Raises
    ------
    FileExistsError
        By this call, or by `publish`.
    """

    def __init__(self, tree: FileSystem, base: str, output: Output, overwrite: bool | None) -> None:
        self._tree, self._output, self._overwrite = tree, output, overwrite
        self._directory = base[: len(base) - len(base.rpartition("/")[2])]
        self._stem = output.stem
        self._manifest = self._directory + manifest_name(self._stem)
        self._id = new_id()
        if overwrite is not True:
            self._refuse_existing(self._present())

    @abstractmethod
    def open(self, index: int) -> OutputFile:
        """Open a shard for writing."""

    @abstractmethod
    def publish(self, shards: Sequence[WrittenShard], schema: bytes | None) -> None:
        """Publish all shards. If that fails before the new dataset is in force, nothing of it is left."""

    def discard(self) -> None:  # noqa: B027 — only local directories are made
        """Leave no directory that was made."""

    def _name(self, index: int) -> str:
        return self._output.shard(index).rpartition("/")[2]

    def _present(self) -> list[str]:
        """Names of the dataset's files that are there, its manifest among them."""
        return [name for name in self._listed() if self._belongs(name) or name == manifest_name(self._stem)]

    def _indexes(self) -> list[str]:
        """Names of the indexes beside the dataset's shards: of shards that are replaced they say what is no longer so."""
        return [
            name
            for name in self._listed()
            if name.endswith(INDEX_SUFFIX) and self._belongs(name.removesuffix(INDEX_SUFFIX))
        ]

    def _listed(self) -> list[str]:
        try:
            listing = self._tree.listing(self._directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [entry.basename for entry in listing if not entry.directory]

    def _belongs(self, name: str) -> bool:
        shard = parse_shard(name)
        return shard is not None and shard.stem == self._stem

    def _refuse_existing(self, present: Sequence[str]) -> None:
        if present:
            text = "there is a sharded dataset of this name; overwrite=True replaces it"
            raise FileExistsError(errno.EEXIST, text, self._tree.shown(self._directory + min(present)))

    def _read_manifest(self) -> Manifest | None:
        """The manifest that is in force; None where there is none, or none that can be used."""
        text = self._manifest_text()
        with suppress(CorruptRecordError):
            return None if text is None else parse_manifest(text, self._manifest)
        return None

    def _manifest_text(self) -> bytes | None:
        entry = self._tree.entry(self._manifest)
        return None if entry is None else read_whole(self._tree, entry, MAX_BYTES)

    def _is_ours(self) -> bool:
        found = self._read_manifest()
        return found is not None and found.id == self._id

    def _refuse_another(self) -> None:
        if not self._is_ours():
            text = "another writer has written this dataset at the same time; write it again"
            raise OSError(errno.EBUSY, text, self._tree.shown(self._manifest))

    def _of(self, shards: Sequence[WrittenShard], schema: bytes | None) -> Manifest:
        files = tuple(ManifestFile(self._name(s.index), s.records, s.output.offset, s.crc32c) for s in shards)
        return Manifest(self._stem, self._id, files, self._output.compression, schema)


def open_sharded_dataset_writer(
    output: Output,
    *,
    overwrite: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> ShardedDatasetWriter:
    """Begin to write a sharded dataset; see `ShardedDatasetWriter`. Its directory is made if it is not there."""
    tree, base = locate(output.base, storage_options, filesystem)
    if isinstance(tree, LocalFileSystem):
        from tfrecord_io.storage.write.sharded_dataset_local import LocalShardedDatasetWriter

        return LocalShardedDatasetWriter(tree, base, output, overwrite)
    from tfrecord_io.storage.write.sharded_dataset_remote import RemoteShardedDatasetWriter  # imports fsspec

    return RemoteShardedDatasetWriter(tree, base, output, overwrite)
