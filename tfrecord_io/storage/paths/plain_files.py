"""Files that are no TFRecord files, by their paths: a file, those of a folder, those that a glob matches."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfrecord_io.errors import printable
from tfrecord_io.storage.filesystem.local import Entry, locate
from tfrecord_io.storage.paths.resolve import has_magic
from tfrecord_io.storage.paths.shard_names import is_hidden, natural_key
from tfrecord_io.storage.read.source import Source, source_of


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """What a path means.

    Attributes
    ----------
    path : str
    sources : list of Source
        At least one, in natural order.
    is_folder : bool
        They are all files of a folder.
    """

    path: str
    sources: list[Source]
    is_folder: bool = False

    def single(self, ways: str) -> Source:
        """The only one.

        Raises
        ------
        IsADirectoryError
            The path is a folder.
        ValueError
            A glob matches several; `ways` says what to do about it.
        """
        if self.is_folder:
            raise IsADirectoryError(errno.EISDIR, "a folder where a file is expected", self.path)
        if len(self.sources) > 1:
            raise ValueError(f"'{printable(self.path)}' matches {len(self.sources)} files: {ways}")
        return self.sources[0]


def find_files(
    path: Any, suffixes: str | tuple[str, ...], *, storage_options: Any = None, filesystem: Any = None
) -> NamedFiles:
    """Find the files that a path means; of a folder those whose names end in `suffixes`.

    A file of the very name comes before what it matches as a glob.

    Raises
    ------
    FileNotFoundError
        There is no such file, or the folder has none.
    """
    options: Mapping[str, Any] = storage_options or {}
    tree, name = locate(path, dict(options), filesystem)
    entry = tree.entry(name)
    if entry is not None and not entry.directory:
        return NamedFiles(os.fspath(path), [source_of(tree, entry)])
    if entry is not None:
        listing = [each for each in tree.listing(entry.name) if each.basename.lower().endswith(suffixes)]
        nothing = f"this folder has no {suffixes if isinstance(suffixes, str) else ' or '.join(suffixes)} files"
    elif has_magic(tree, name):
        listing, nothing = tree.glob(name), "no file matches the pattern"
    else:
        listing, nothing = [], "no such file"
    found = [each for each in listing if not each.directory and not is_hidden(each.basename)]
    if not found:
        raise FileNotFoundError(errno.ENOENT, nothing, os.fspath(path))
    return NamedFiles(os.fspath(path), [source_of(tree, each) for each in sorted(found, key=_order)], entry is not None)


def _order(entry: Entry) -> Any:
    return natural_key(entry.name)
