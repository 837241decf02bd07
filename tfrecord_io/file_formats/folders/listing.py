"""The files below a folder, in a fixed order, and the classes that its folders are."""

from __future__ import annotations

import errno
import glob
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tfrecord_io.errors import EncodeError, printable
from tfrecord_io.options import StorageOptions
from tfrecord_io.storage.filesystem.interface import Entry, FileSystem
from tfrecord_io.storage.filesystem.locate import locate
from tfrecord_io.storage.paths.shard_names import is_hidden, natural_key

_SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing", "eval", "dev"}


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file below a folder."""

    name: str  # relative to the folder, with slashes
    entry: Entry

    @property
    def top(self) -> str | None:
        """The folder directly below the root that it is in; None if it is in the root."""
        first, slash, _ = self.name.partition("/")
        return first if slash else None


@dataclass(frozen=True, slots=True)
class Folder:
    """The files below a folder: those of the wanted kind, and the others."""

    path: str
    fs: FileSystem
    files: list[FolderFile]
    others: list[FolderFile]


def find_folder(path: str, storage: StorageOptions) -> tuple[FileSystem, Entry]:
    """A folder that exists.

    Raises
    ------
    NotADirectoryError, FileNotFoundError
    """
    fs, name = locate(path, storage)
    root = fs.entry(name)
    if root is None or not root.directory:
        kind, text = (NotADirectoryError, "a file, not a folder") if root else (FileNotFoundError, "no such folder")
        raise kind(errno.ENOTDIR if root else errno.ENOENT, text, path)
    return fs, root


def list_folder(path: str, storage: StorageOptions, suffixes: tuple[str, ...] | None) -> Folder:
    """The files below a folder in natural order, those with `suffixes` (None: all) apart; hidden files are left out.

    Raises
    ------
    NotADirectoryError, FileNotFoundError
    """
    fs, root = find_folder(path, storage)
    prefix = root.name.rstrip("/") + "/"
    folder = Folder(path, fs, [], [])
    for entry in fs.glob(f"{glob.escape(prefix)}**"):
        relative = entry.name.removeprefix(prefix)
        if entry.directory or not relative or any(map(is_hidden, relative.split("/"))):
            continue
        try:
            relative.encode()
        except UnicodeEncodeError:
            shown = fs.display_path(entry.name)
            raise EncodeError("the file's name is not UTF-8", path=shown, advice="rename it") from None
        wanted = suffixes is None or entry.basename.lower().endswith(suffixes)
        (folder.files if wanted else folder.others).append(FolderFile(relative.replace(os.sep, "/"), entry))
    for files in (folder.files, folder.others):
        files.sort(key=lambda file: natural_key(file.name))
    return folder


def has_file(path: str, storage: StorageOptions, suffixes: tuple[str, ...]) -> bool:
    """Whether there is a file with one of the suffixes below a folder."""
    try:
        return bool(list_folder(path, storage, suffixes).files)
    except EncodeError:
        return False


class Named(Protocol):
    """A file, or what has the name of one."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def shuffled(files: Sequence[N], seed: int) -> list[N]:
    """The files in an order that depends on their names and the seed alone."""
    return sorted(
        files, key=lambda file: hashlib.sha256(f"{seed}/{file.name}".encode("utf-8", "surrogateescape")).digest()
    )


def classes(folder: Folder, labels: bool | None, class_names: Sequence[str] | None) -> list[str] | None:
    """The names of the classes, which are folders; a label is an index. None if there are no labels.

    Raises
    ------
    ValueError
        Without `labels`: images are both in folders and outside, or the folders look like parts of a dataset. A folder
        is not among the `class_names`.
    """
    found = sorted({file.top for file in folder.files if file.top is not None})
    outside = next((file for file in folder.files if file.top is None), None)
    if labels is None:
        labels = class_names is not None or bool(found)
        if class_names is None and found and outside is not None:
            where = f"'{printable(folder.path)}': files are both in folders ('{printable(found[0])}') and outside "
            where += f"('{printable(outside.name)}')"
            advice = "put all files into folders, or pass labels=True (no label outside), or pass labels=False"
            raise ValueError(f"{where}; {advice}")
        if class_names is None and found and {name.lower() for name in found} <= _SPLITS:
            where = f"'{printable(folder.path)}': its folders look like parts of a dataset ({', '.join(found)})"
            raise ValueError(f"{where}; convert them one by one, or pass labels=True if they are classes")
    if not labels:
        return None
    if class_names is None:
        return found
    if isinstance(class_names, str) or not all(isinstance(name, str) for name in class_names):
        raise TypeError(f"class_names={class_names!r}: expected a list of names")
    if len(set(class_names)) < len(class_names):
        raise ValueError("class_names= has a name twice")
    if unknown := sorted(set(found) - set(class_names)):
        raise ValueError(f"'{printable(folder.path)}': the folder '{printable(unknown[0])}' is not among class_names=")
    return list(class_names)
