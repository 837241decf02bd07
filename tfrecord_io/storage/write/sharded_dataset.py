"""Sharded datasets, published atomically: the manifest names either all of the old shards or all of the new ones.

The new shards wait under staged names, ``_<id>-00000.staged``. Replacing the manifest, on the local disk by a rename,
publishes the dataset: the new manifest states for each shard both names under which it may be. Then the shards are
renamed, the old dataset's files are removed, and a manifest with the final names is written. A writer killed before
the manifest is replaced leaves the old dataset, one killed after it the new one. Writers of one directory exclude each
other by a lock that ends with their process.

A bucket has no renames and no locks. There the store copies the shards to their final names, and removes the staged
ones after the final manifest is written (`sharded_dataset_staged`). A dataset that does not exist yet, or is to be
overwritten in place, is uploaded under its final names (`sharded_dataset_remote`): a manifest that declares the dataset
incomplete is written, the uploads are completed, and the final manifest is written. A writer killed in between leaves
a dataset that readers refuse.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tfrecord_io.display import and_more, counted
from tfrecord_io.errors import CorruptRecordError, add_remark, printable, warn
from tfrecord_io.storage.filesystem.interface import FileSystem
from tfrecord_io.storage.paths.file_names import parse_shard
from tfrecord_io.storage.paths.manifest import Manifest, ManifestFile, manifest_name, new_id, parse_manifest
from tfrecord_io.storage.paths.resolve import list_directory, other_files, record_files
from tfrecord_io.storage.paths.resolve_output import Output
from tfrecord_io.storage.paths.sniff_files import readable_files_with_records
from tfrecord_io.storage.read.source import read_manifest
from tfrecord_io.storage.write.output_file import OutputFile

INDEX_SUFFIX = ".index"  # of the index that a writer adds for a shard
COLUMN_INDEX_SUFFIX = ".column_index"
OLD_COLUMN_INDEX_SUFFIX = ".columns.parquet"  # of versions before the release of 0.1.0
INDEX_SUFFIXES = (INDEX_SUFFIX, COLUMN_INDEX_SUFFIX, OLD_COLUMN_INDEX_SUFFIX)


Unite = Callable[..., bytes | None]
"""Takes the schemas of a dataset and of what is added, and a path; returns that of both, or raises SchemaError.

With ``without_rows=True``, the dataset has no rows yet.
"""


@dataclass(frozen=True, slots=True)
class WrittenShard:
    """A completely written shard, to be published."""

    index: int
    records: int
    bytes: int
    crc32c: int
    output: OutputFile | None = None  # to commit; None: it is committed, under the name `staged`
    staged: str | None = None  # by default, the writer's own name for it
    source: Mapping[str, str | int] | None = None  # see `ManifestFile`
    folder: str = ""  # of partition columns, with its slash

    def commit(self) -> None:
        """Make the file appear."""
        if self.output is not None:
            self.output.commit()


class ShardedDatasetWriter(ABC):
    """A sharded dataset being written.

    `base` is `output.base` in `fs`. Unless `overwrite` is True, an existing file of a dataset of this name is a
    FileExistsError, here or by `publish`. So are, whatever `overwrite` is, other TFRecord files in a directory that is
    written as a whole, as reading the directory would read them too. `distributed_id` is the id of a writing whose
    shards are staged by other processes: see `tfrecord_io.storage.write.sharded_dataset_distributed`.
    """

    keeps_empty = True  # whether shards without records are published
    keeps_staged = False  # whether shards that others staged stay if publishing fails
    exists_error = "a sharded dataset of this name exists; overwrite=True replaces it"
    unite: Unite  # of the schemas of a dataset and of what is added
    sources_without_rows: tuple[Mapping[str, str | int], ...] = ()  # see `Manifest`
    side_by_side = False  # whether threads may open and write shards at the same time
    created: tuple[str, ...] = ()  # local directories that were missing, the deepest first
    model: os.stat_result | None = None  # owner and mode for new files

    def __init__(
        self, fs: FileSystem, base: str, output: Output, overwrite: bool | None, distributed_id: str | None = None
    ) -> None:
        self._fs, self._output, self._overwrite = fs, output, overwrite
        self._directory = base[: len(base) - len(base.rpartition("/")[2])]
        self._stem = output.stem
        self._manifest_name = self._directory + manifest_name(self._stem)
        self._id = distributed_id or new_id()
        self._existing_at_start = self._check_existing()
        self.left: dict[str, OSError] = {}  # files that could not be removed after publishing, and why

    @property
    def output(self) -> Output:
        """Where the shards are written, under their names."""
        return self._output

    def check_schema(self, schema: bytes | None) -> None:  # noqa: B027 — most datasets are written as a whole
        """Raise SchemaError if rows of this schema cannot be written, before any is."""

    @abstractmethod
    def open(self, index: int) -> OutputFile:
        """Open a shard for writing."""

    @abstractmethod
    def publish(self, shards: Sequence[WrittenShard], schema: bytes | None) -> None:
        """Publish all shards. If that fails before the new manifest is written, nothing of the dataset is left.

        An error after that says that the dataset is published. Old files that cannot be removed are no error, but
        `left`; call `warn_of_left`.
        """

    def complete(self) -> Manifest | None:
        """The manifest of this writer, if it is published; what its process did not do before it stopped is done."""
        manifest = self._read_manifest()
        if manifest is None or manifest.id != self._id:
            return None
        final = replace(manifest, files=tuple(replace(file, staged=None) for file in manifest.files), replaces=())
        if final != manifest:
            self._finish(manifest, final)
        return final

    def _finish(self, staged: Manifest, final: Manifest) -> None:
        """Give the shards of a published manifest their final names, remove those it replaces, write the final one."""
        raise NotImplementedError

    def warn_of_left(self) -> None:
        """Warn of files that should have been removed, when nothing else is to be done."""
        if self.left:
            name, error = next(iter(self.left.items()))
            path = printable(self._fs.display_path(self._directory + name))
            first = "" if len(self.left) == 1 else ", of which this is the first"
            reason = f"{counted(len(self.left), 'old file')} could not be removed{first}"
            why = printable(error.strerror or error)
            advice = "this package does not read such files, other programs may: delete them"
            warn(f"{path}: the new dataset is published, but {reason} ({why}); {advice}", UserWarning)

    @abstractmethod
    def _remove(self, name: str) -> None:
        """Remove a file if it exists."""

    def _remove_old(self, name: str) -> None:
        """Remove a file after the dataset was published."""
        try:
            self._remove(name)
        except OSError as error:
            self.left[name] = error

    def _completed(self, final: Manifest, replaced: Iterable[str]) -> Manifest:
        """The manifest at the end, with those of the shards to be replaced that are left."""
        return replace(final, replaces=tuple(name for name in replaced if name in self.left))

    def _say_published(self, error: BaseException) -> None:
        """State in an error that came after the manifest was written that this dataset is published."""
        is_published = True
        with suppress(OSError):
            is_published = self._is_published()
        if is_published:
            text = "the new dataset is published nevertheless, and can be read; writing it again completes it"
            add_remark(error, text)

    def discard(self) -> None:  # noqa: B027 — only local directories are created
        """Remove directories that were created."""

    def _staged_name(self, index: int) -> str:
        return f"_{self._id}-{index:05d}.staged"

    def _staged(self, shards: Sequence[WrittenShard]) -> list[str]:
        return [shard.staged or self._staged_name(shard.index) for shard in shards]

    def _shard_name(self, index: int) -> str:
        return self._output.shard(index).rpartition("/")[2]

    def _existing_files(self) -> list[str]:
        """Names of the dataset's existing files, including its manifest."""
        return [name for name in self._listing() if self._is_shard(name) or name == manifest_name(self._stem)]

    def _index_files(self) -> list[str]:
        """Names of the indexes of the dataset's shards, which are outdated once the shards are replaced."""
        indexes = [(name, suffix) for name in self._listing() for suffix in INDEX_SUFFIXES if name.endswith(suffix)]
        return [name for name, suffix in indexes if self._is_shard(name.removesuffix(suffix))]

    def _listing(self) -> list[str]:
        try:
            entries = self._fs.listing(self._directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [entry.basename for entry in entries if not entry.directory]

    def _is_shard(self, name: str) -> bool:
        shard = parse_shard(name)
        return shard is not None and shard.stem == self._stem

    def _check_existing(self) -> list[str]:
        """Names of the dataset's existing files; raises FileExistsError if it must not be written."""
        existing = self._existing_files()
        if self._output.directory:
            self._check_no_foreign_files(existing)
        if existing and self._overwrite is not True:
            path = self._fs.display_path(self._directory + min(existing))
            raise FileExistsError(errno.EEXIST, self.exists_error, path)
        return existing

    def _check_no_foreign_files(self, existing: Sequence[str]) -> None:
        """Without a manifest, files of the dataset's name are foreign too: the caller named only the directory."""
        own = {self._directory + name for name in existing} if manifest_name(self._stem) in existing else set()
        try:
            listing = list_directory(self._fs, self._directory)
        except (FileNotFoundError, NotADirectoryError):
            return
        found = [*record_files(listing), *readable_files_with_records(self._fs, other_files(listing))]
        foreign = sorted(entry.name for entry in found if entry.name not in own)
        if not foreign:
            return
        old = self._read_manifest()
        if old is not None and {self._directory + file.path for file in old.files}.issuperset(foreign):
            text = "the dataset has folders of columns (partition_by=), which one without them does not replace; "
            text += "pass partition_by=, or delete the directory before"
            raise FileExistsError(errno.EEXIST, text, self._fs.display_path(self._directory))
        first = printable(foreign[0].removeprefix(self._directory))
        more = and_more(len(foreign) - 1)
        text = f"the directory has TFRecord files that are not of the dataset to write ('{first}'{more}); "
        text += "reading the directory would mix them, and overwrite=True does not delete them: "
        text += "choose another directory, or name the dataset, as in name@8"
        raise FileExistsError(errno.EEXIST, text, self._fs.display_path(foreign[0]))

    def _read_manifest(self) -> Manifest | None:
        """The manifest on disk; None if there is none, or it cannot be used."""
        text = self._manifest_text()
        return None if text is None else _parsed(text, self._manifest_name)

    def _manifest_text(self) -> bytes | None:
        return _text(self._fs, self._manifest_name)

    def _is_published(self) -> bool:
        """Whether the manifest on disk is that of this writer."""
        return is_published(self._fs, self._manifest_name, self._id)

    def _check_still_published(self) -> None:
        if not self._is_published():
            raise self._is_replaced()

    def _is_replaced(self) -> OSError:
        text = "another writer has written this dataset at the same time; write it again"
        return OSError(errno.EBUSY, text, self._fs.display_path(self._manifest_name))

    def _new_manifest(self, shards: Sequence[WrittenShard], schema: bytes | None) -> Manifest:
        files = tuple(
            ManifestFile(s.folder + self._shard_name(s.index), s.records, s.bytes, s.crc32c, source=s.source)
            for s in shards
        )
        compression, without_rows = self._output.compression, self.sources_without_rows
        return Manifest(self._stem, self._id, files, compression, schema, sources_without_rows=without_rows)

    def _staged_manifest(
        self, final: Manifest, shards: Sequence[WrittenShard], existing: Sequence[str]
    ) -> tuple[Manifest, list[str]]:
        """The manifest that publishes the staged shards, and the names of the old dataset's files to remove."""
        names = {file.path for file in final.files}
        replaces = tuple(name for name in existing if self._is_shard(name) and name not in names)
        files = zip(final.files, self._staged(shards), strict=True)
        staged = tuple(replace(file, staged=name) for file, name in files)
        old = self._read_manifest()
        old_staged = [file.staged for file in (old.files if old is not None else ()) if file.staged is not None]
        return replace(final, files=staged, replaces=replaces), [*replaces, *old_staged]


def is_published(fs: FileSystem, manifest: str, id: str) -> bool:
    """Whether the manifest of this name is that of the writing `id`."""
    text = _text(fs, manifest)
    found = None if text is None else _parsed(text, manifest)
    return found is not None and (found.id == id or found.has_shards_of(id))


def whole_dataset(fs: FileSystem, directory: str, stem: str) -> Manifest | None:
    """The manifest of a dataset all of whose files exist and have the sizes that it states; None if there is none."""
    name = directory + manifest_name(stem)
    text = _text(fs, name)
    manifest = None if text is None else _parsed(text, name)
    if manifest is None or not manifest.complete or any(file.staged is not None for file in manifest.files):
        return None
    entries = fs.entries([directory + file.path for file in manifest.files])
    sizes = [None if entry is None else entry.size for entry in entries]
    return manifest if sizes == [file.bytes for file in manifest.files] else None


def _text(fs: FileSystem, name: str) -> bytes | None:
    while (entry := fs.entry(name)) is not None:
        try:
            return read_manifest(fs, entry)
        except OSError as error:
            if error.errno not in (errno.ESTALE, errno.ENOENT):
                raise  # otherwise another writer replaced it between the two requests
    return None


def _parsed(text: bytes, name: str) -> Manifest | None:
    with suppress(CorruptRecordError):
        return parse_manifest(text, name)
    return None
