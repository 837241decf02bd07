"""List the files below a folder, in a fixed order, and read their content."""

from __future__ import annotations

import errno
import glob
import hashlib
import os
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from tfrecord_io.base import (
    LIMITS,
    MAX_RECORD_BYTES,
    OnDamage,
    StorageOptions,
    and_more,
    cpu_count,
    ordered,
    printable,
    warn,
)
from tfrecord_io.bytes import IMAGES, looks_like
from tfrecord_io.errors import DamagedDataWarning, EncodeError, TFRecordError
from tfrecord_io.store.filesystem.interface import Entry, FileSystem, LocalFileSystem
from tfrecord_io.store.filesystem.locate import locate
from tfrecord_io.store.paths.file_names import FileName, Kind, natural_key
from tfrecord_io.store.paths.resolve_output import other_suffix
from tfrecord_io.store.paths.sniff_files import MOST_CHECKED
from tfrecord_io.store.read.source import read_whole
from tfrecord_io.typing import OnError

TABLE_NAME = "metadata.csv"  # of the table that is written next to the files of a folder
_OF_TOOLS = {
    *("__MACOSX", "__pycache__", "_SUCCESS", "_temporary", "@eaDir", "#recycle", "lost+found"),
    *("$RECYCLE.BIN", "System Volume Information", "Thumbs.db", "desktop.ini"),
}
_SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing", "eval", "dev"}


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file below a folder."""

    name: str  # relative to the folder, with slashes
    entry: Entry

    @property
    def top(self) -> str | None:
        """The folder directly below the root that holds the file; None for a file in the root."""
        first, slash, _ = self.name.partition("/")
        return first if slash else None


@dataclass(frozen=True, slots=True)
class Folder:
    """The files below a folder: those of the wanted kind, and the others."""

    path: str
    fs: FileSystem
    files: list[FolderFile]
    other_files: list[FolderFile]


def find_folder(path: str, storage: StorageOptions) -> tuple[FileSystem, Entry]:
    """A folder that exists.

    Raises
    ------
    NotADirectoryError, FileNotFoundError
    """
    fs, name = locate(path, storage)
    root = fs.entry(name)
    if root is None or not root.directory:
        number, text = (errno.ENOTDIR, "a file, not a folder") if root else (errno.ENOENT, "no such folder")
        raise OSError(number, text, path)
    return fs, root


def is_hidden_file(name: str) -> bool:
    """True if a file or folder among files of any kind is left out: ``.x``, and leftovers of systems and tools.

    >>> is_hidden_file(".git"), is_hidden_file("__MACOSX"), is_hidden_file("_DSC0001.jpg")
    (True, True, False)
    """
    return name.startswith(".") or name in _OF_TOOLS


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
        if entry.directory or not relative or any(map(is_hidden_file, relative.split("/"))):
            continue
        try:
            relative.encode()
        except UnicodeEncodeError:
            shown = fs.display_path(entry.name)
            raise EncodeError("the file's name is not UTF-8", path=shown, hint="rename it") from None
        wanted = suffixes is None or entry.basename.lower().endswith(suffixes)
        (folder.files if wanted else folder.other_files).append(FolderFile(relative.replace(os.sep, "/"), entry))
    for files in (folder.files, folder.other_files):
        files.sort(key=lambda file: natural_key(file.name))
    return folder


def list_images(path: str, storage: StorageOptions) -> Folder:
    """The files below a folder, images apart: by their suffix, or without one by their first bytes."""
    folder = list_folder(path, storage, IMAGE_SUFFIXES)
    if images := images_by_content(folder):
        folder.files.extend(images)
        folder.files.sort(key=lambda file: natural_key(file.name))
        folder.other_files[:] = [file for file in folder.other_files if file not in images]
    return folder


def images_by_content(folder: Folder, max_files: int | None = None) -> list[FolderFile]:
    """The images among the files of a folder without a suffix, of which at most so many are looked at."""
    others = (file for file in folder.other_files if other_suffix(file.name) is None)
    unnamed = [file for file in others if FileName.of_path(file.name).kind is not Kind.RECORDS]
    unnamed = unnamed[:max_files]
    if not unnamed:
        return []
    threads = min(reader_threads(None, folder.fs), len(unnamed))
    are_images = ordered((partial(_is_image, folder.fs, file.entry) for file in unnamed), threads, "sniff")
    return [file for file, is_image in zip(unnamed, are_images, strict=True) if is_image]


def _is_image(fs: FileSystem, entry: Entry) -> bool:
    """True if a file begins as a supported image; False also if the file cannot be opened."""
    try:
        return bool(entry.size) and looks_like(read_whole(fs, entry, 0)) in _READ_IMAGES
    except OSError:
        return False


def warn_of_others(path: str, reason: str, other_files: Sequence[FolderFile]) -> None:
    """Warn of files of a folder that are left out."""
    if other_files:
        named = f"'{printable(other_files[0].name)}'{and_more(len(other_files) - 1)}"
        warn(f"{printable(path)}: {reason}, left out: {named}", UserWarning)


def has_image(path: str, storage: StorageOptions, *, by_content: bool) -> bool:
    """True if there is an image below a folder: by its suffix, or by the content of a file without one."""
    try:
        folder = list_folder(path, storage, IMAGE_SUFFIXES)
    except EncodeError:
        return False
    return bool(images_by_content(folder, MOST_CHECKED) if by_content else folder.files)


class Named(Protocol):
    """A file, or an object with the name of a file."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def shuffle_files(files: Sequence[N], seed: int) -> list[N]:
    """The files in an order that depends on their names and the seed alone."""
    return sorted(
        files, key=lambda file: hashlib.sha256(f"{seed}/{file.name}".encode("utf-8", "surrogateescape")).digest()
    )


def check_class_names(class_names: Sequence[str]) -> None:
    """Refuse `class_names` that are not a list of names, or have one twice: a label would have two meanings."""
    if isinstance(class_names, str) or not all(isinstance(name, str) for name in class_names):
        raise TypeError(f"class_names={class_names!r}: expected a list of names")
    if len(set(class_names)) < len(class_names):
        raise ValueError("class_names= has a name twice")


def classes(folder: Folder, labels: bool | None, class_names: Sequence[str] | None) -> list[str] | None:
    """The names of the classes, which are folders; a label is an index. None without labels.

    Raises
    ------
    ValueError
        Without `labels`: images are both in folders and outside, or the folders look like parts of a dataset. A folder
        is not among the `class_names`, or these are given with ``labels=False``.
    """
    folder_names = sorted({file.top for file in folder.files if file.top is not None})
    outside = next((file for file in folder.files if file.top is None), None)
    if labels is None:
        labels = class_names is not None or bool(folder_names)
        if class_names is None and folder_names and outside is not None:
            where = (
                f"'{printable(folder.path)}': files are both in folders ('{printable(folder_names[0])}') and outside "
            )
            where += f"('{printable(outside.name)}')"
            advice = "put all files into folders, or pass labels=True (no label outside), or pass labels=False"
            raise ValueError(f"{where}; {advice}")
        if class_names is None and folder_names and {name.lower() for name in folder_names} <= _SPLITS:
            where = f"'{printable(folder.path)}': its folders look like parts of a dataset ({', '.join(folder_names)})"
            raise ValueError(f"{where}; convert them one by one, or pass labels=True if they are classes")
    if not labels:
        if class_names is not None:
            raise ValueError("class_names= names labels, which labels=False leaves out")
        return None
    if class_names is None:
        return folder_names
    check_class_names(class_names)
    if unknown := sorted(set(folder_names) - set(class_names)):
        raise ValueError(f"'{printable(folder.path)}': the folder '{printable(unknown[0])}' is not among class_names=")
    return list(class_names)


T = TypeVar("T")

REMOTE_READERS = 16


def reader_threads(threads: int | None, *filesystems: FileSystem | None) -> int:
    """The value of `threads`; by default the number of CPU cores, or more if a file is not local."""
    is_local = all(isinstance(fs, LocalFileSystem | None) for fs in filesystems)
    return threads or (cpu_count() if is_local else REMOTE_READERS)


def read_files(files: Iterable[tuple[T, Any, Entry | None]], threads: int) -> Generator[tuple[T, bytes | None]]:
    """The content of files, in order; None where an entry is missing.

    Threads read up to two files each in advance, if these have at most 16 MiB.

    Raises
    ------
    EncodeError
        A file is too large for a record.
    """
    tasks = (partial(_read, key, fs, entry, in_advance=True) for key, fs, entry in files)
    for key, fs, entry, content in ordered(tasks, threads):
        if entry is not None and content is None:
            content = _read(key, fs, entry, in_advance=False)[3]
        yield key, content


def _read(key: T, fs: Any, entry: Entry | None, *, in_advance: bool) -> tuple[T, Any, Entry | None, bytes | None]:
    if entry is None or (in_advance and (entry.size or 0) > LIMITS.ahead_bytes):
        return key, fs, entry, None
    content = read_whole(fs, entry, MAX_RECORD_BYTES)
    if len(content) > MAX_RECORD_BYTES:
        reason = f"the file is larger than a record can be, {MAX_RECORD_BYTES} bytes"
        raise EncodeError(reason, path=fs.display_path(entry.name), expected=MAX_RECORD_BYTES, got=entry.size)
    return key, fs, entry, content


@dataclass(slots=True)
class LeftOut:
    """Number of images, files or annotations left out, with the reason for the first.

    >>> left_out = LeftOut("images", 1200)
    >>> left_out.add("'a.png' is damaged")
    >>> str(left_out)
    "1 of 1,200 images left out, the first: 'a.png' is damaged"
    """

    kind: str
    total: int
    count: int = 0
    first: str = ""

    def add(self, reason: object, count: int = 1) -> None:
        self.first = self.first or str(reason)
        self.count += count

    def add_or_raise(self, error: TFRecordError, on_error: OnError) -> None:
        """Leave out what an error is about, or raise it: as `on_error` says."""
        if OnDamage.of(on_error).is_strict:
            if error.hint is None:
                error.set_hint('on_error="skip" leaves it out', "--on-error skip leaves it out")
            raise error
        self.add(error)

    def __str__(self) -> str:
        return f"{self.count:,} of {self.total:,} {self.kind} left out, the first: {self.first}"

    def warn(self, path: str) -> None:
        """Warn, if anything is left out."""
        if self.count:
            warn(f"{printable(path)}: {self}", DamagedDataWarning)


IMAGE_SUFFIXES = tuple(suffix for suffixes in IMAGES.values() for suffix in suffixes)
_READ_IMAGES = {"a JPEG image", "a PNG image", "a GIF image", "a BMP image", "a WebP image", "a TIFF image"}
