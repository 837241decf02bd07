"""Files that are not TFRecord files: arrays and tables by path, and small files by their names in a directory."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

from tfrecord_io.base import TFDS_FEATURES, TFDS_INFO, StorageOptions, printable, secret_url
from tfrecord_io.store.filesystem.interface import Entry, FileSystem
from tfrecord_io.store.filesystem.locate import is_remote, locate
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, natural_key
from tfrecord_io.store.paths.resolve import has_magic, list_directory
from tfrecord_io.store.read.source import Source, read_whole, source_of

_TFDS, _DESCRIPTION_BYTES = b"tensorflow_datasets", 1 << 16  # in the names of classes of features


class PathMatch(NamedTuple):
    """The files that a path means."""

    path: str
    sources: list[Source]  # at least one, in natural order
    is_directory: bool = False  # they are all files of a directory,
    fs: FileSystem | None = None  # of this filesystem,
    name: str = ""  # which has this name there,
    listing: Sequence[Entry] = ()  # and all of this

    def single(self, advice: str) -> Source:
        """The only one. A directory is an IsADirectoryError, several files a ValueError that ends with `advice`."""
        if self.is_directory:
            raise IsADirectoryError(errno.EISDIR, "expected a file, got a directory", secret_url(self.path))
        if len(self.sources) > 1:
            raise ValueError(f"'{printable(self.path)}' matches {len(self.sources)} files: {advice}")
        return self.sources[0]


def find_files(
    path: Any,
    suffixes: str | tuple[str, ...],
    storage: StorageOptions = StorageOptions.DEFAULT,
    *,
    partitioned: bool = False,
    listed: list[Entry] | None = None,
) -> PathMatch:
    """Find the files that a path means; of a directory those whose names end with one of `suffixes`.

    A file of exactly this name wins over what it matches as a glob. If there is none, this is a FileNotFoundError. With
    `partitioned`, a directory has the files of its partition folders too, and the sources have the values of these;
    `listed`, if it is given, is what `list_directory` has found in it.
    Left out are names that begin with ``_`` or a dot; of a glob a dot, unless it states that, and names of tools.
    """
    fs, name = locate(path, storage)
    entry = fs.entry(name)
    everything: Sequence[Entry] = ()
    if entry is not None and not entry.directory:
        return PathMatch(os.fspath(path), [source_of(fs, entry)])
    if entry is not None:
        if listed is not None:
            everything = listed
        else:
            everything = list_directory(fs, entry.name) if partitioned else fs.listing(entry.name)
        listing = [child for child in everything if child.basename.lower().endswith(suffixes)]
        kinds = suffixes if isinstance(suffixes, str) else " or ".join(suffixes)
        nothing = f"this directory has no {kinds} files" if kinds else "this directory has no files"
    elif has_magic(fs, name):
        listing, nothing = fs.glob(name), "no file matches the pattern"
    else:
        listing, nothing = [], "no such file"
    described = tfds_descriptions(fs, listing)
    listing = [child for child in listing if child.name not in described]
    names = ((child, FileName.parse(child.basename)) for child in listing if not child.directory)
    if entry is not None:
        files = [child for child, file in names if not file.is_hidden]
    else:
        has_dot = name.rpartition("/")[2].startswith(".")
        files = [child for child, file in names if has_dot or not file.is_of_tool]
    if not files:
        raise FileNotFoundError(errno.ENOENT, nothing, secret_url(os.fspath(path)))
    files.sort(key=lambda child: natural_key(child.name))
    sources = [source_of(fs, child) for child in files]
    if partitioned:
        root = ColumnFolder.root_of(name) if entry is None else f"{entry.name.rstrip('/')}/"
        folders = [ColumnFolder.pairs_in(child.name, root) for child in files]
        sources = [replace(source, partitions=partitions) for source, partitions in zip(sources, folders, strict=True)]
    if entry is None:
        return PathMatch(os.fspath(path), sources)
    return PathMatch(os.fspath(path), sources, is_directory=True, fs=fs, name=entry.name, listing=everything)


def tfds_descriptions(fs: FileSystem, listing: Sequence[Entry]) -> set[str]:
    """The names in a listing of the files by which TFDS describes a dataset, which are JSON, and no data.

    A file of such a name that says nothing of TFDS, and is not beside the other one, may be data.
    """
    by_name = {entry.basename: entry for entry in listing if entry.basename in (TFDS_FEATURES, TFDS_INFO)}
    if len(by_name) == 1 and TFDS_FEATURES in by_name:
        entry = by_name[TFDS_FEATURES]
        if entry.directory or _TFDS not in read_whole(fs, entry, _DESCRIPTION_BYTES):
            return set()
    return {entry.name for entry in by_name.values()}


class Directory:
    """A directory, on disk or behind a URL, whose small files are read whole."""

    def __init__(self, path: str | os.PathLike[str], storage: StorageOptions = StorageOptions.DEFAULT) -> None:
        self._fs, self._name = locate(path, storage)

    @classmethod
    def from_filesystem(cls, fs: FileSystem, name: str) -> Self:
        """The directory of this name in a filesystem."""
        directory = cls.__new__(cls)
        directory._fs, directory._name = fs, name
        return directory

    def display_path(self, name: str) -> str:
        """The path or URL of a file in the directory."""
        return self._fs.display_path(self._join(name))

    def read(self, name: str) -> bytes | None:
        """All bytes of a file; None if there is no such file, or a store refuses to show it.

        In a store it takes one request. Without permission to list a bucket, access to absent objects is denied, too.
        """
        if is_remote(self._fs) and self._fs.is_object_store:
            return self._fs.content(self._join(name))
        entry = self._fs.entry(self._join(name))
        return None if entry is None or entry.directory else read_whole(self._fs, entry)

    def _join(self, name: str) -> str:
        return f"{self._name.rstrip('/')}/{name}" if self._name.rstrip("/") else f"{self._name}{name}"
