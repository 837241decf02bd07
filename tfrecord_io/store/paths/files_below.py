"""List the files below a folder, in a fixed order, and read their content.

Tests: tests/plugins/vision/test_from_folder.py.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

from tfrecord_io.base import LIMITS, StorageOptions, and_more, cpu_count, ordered, printable, warn
from tfrecord_io.bytes import ForeignFile
from tfrecord_io.errors import EncodeError
from tfrecord_io.store.filesystem.interface import Entry, FileSystem, LocalFileSystem
from tfrecord_io.store.paths.file_names import FileName, Kind, natural_key
from tfrecord_io.store.paths.resolve_output import OtherSuffix
from tfrecord_io.store.paths.small_files import Directory
from tfrecord_io.store.paths.sniff_files import MOST_CHECKED
from tfrecord_io.store.read.source import Source

T = TypeVar("T")

_REMOTE_READERS = 16
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


def is_hidden_file(name: str) -> bool:
    """True if a file or folder among files of any kind is left out: ``.x``, and leftovers of systems and tools.

    >>> is_hidden_file(".git"), is_hidden_file("__MACOSX"), is_hidden_file("_DSC0001.jpg")
    (True, True, False)
    """
    return name.startswith(".") or name in _OF_TOOLS


@dataclass(frozen=True, slots=True)
class Folder:
    """The files below a folder in natural order, hidden files left out: those of the wanted kind, and the others."""

    IMAGE_SUFFIXES: ClassVar = tuple(suffix for suffixes in ForeignFile.IMAGES.values() for suffix in suffixes)

    path: str  # as the caller wrote it
    fs: FileSystem
    files: list[FolderFile]
    other_files: list[FolderFile]

    @classmethod
    def list_files(cls, path: str, storage: StorageOptions, suffixes: tuple[str, ...] | None = None) -> Folder:
        """List the files below a folder, those with `suffixes` (None: all) apart.

        Raises
        ------
        NotADirectoryError, FileNotFoundError
        EncodeError
            The name of a file is not UTF-8.
        """
        folder = cls.list_below(Directory.find(path, storage), path, suffixes)
        for file in (*folder.files, *folder.other_files):
            try:
                file.name.encode()
            except UnicodeEncodeError:
                shown = folder.fs.display_path(file.entry.name)
                raise EncodeError("the file's name is not UTF-8", path=shown, hint="rename it") from None
        return folder

    @classmethod
    def list_below(cls, directory: Directory, path: str, suffixes: tuple[str, ...] | None) -> Folder:
        """List the files below a directory, those with `suffixes` (None: all) apart; `path` names it in messages."""
        prefix = directory.name.rstrip("/") + "/"
        folder = cls(path, directory.fs, [], [])
        for entry in directory.fs.glob(f"{glob.escape(prefix)}**"):
            relative = entry.name.removeprefix(prefix)
            if entry.directory or not relative or any(map(is_hidden_file, relative.split("/"))):
                continue
            wanted = suffixes is None or entry.basename.lower().endswith(suffixes)
            (folder.files if wanted else folder.other_files).append(FolderFile(relative.replace(os.sep, "/"), entry))
        for files in (folder.files, folder.other_files):
            files.sort(key=lambda file: natural_key(file.name))
        return folder

    @classmethod
    def list_images(cls, path: str, storage: StorageOptions) -> Folder:
        """List the files below a folder, images apart: by their suffix, or without one by their first bytes."""
        folder = cls.list_files(path, storage, cls.IMAGE_SUFFIXES)
        if images := folder._images_by_content():
            folder.files.extend(images)
            folder.files.sort(key=lambda file: natural_key(file.name))
            folder.other_files[:] = [file for file in folder.other_files if file not in images]
        return folder

    @classmethod
    def has_image(cls, path: str, storage: StorageOptions, *, by_content: bool) -> bool:
        """True if there is an image below a folder: by its suffix, or by the content of a file without one."""
        try:
            folder = cls.list_files(path, storage, cls.IMAGE_SUFFIXES)
        except EncodeError:
            return False
        return bool(folder._images_by_content(MOST_CHECKED) if by_content else folder.files)

    def _images_by_content(self, max_files: int | None = None) -> list[FolderFile]:
        """The images among the other files without a suffix, of which at most so many are looked at."""
        others = (file for file in self.other_files if OtherSuffix.of_path(file.name) is None)
        unnamed = [file for file in others if FileName.of_path(file.name).kind is not Kind.RECORDS]
        unnamed = unnamed[:max_files]
        if not unnamed:
            return []
        threads = min(_reader_threads(None, [self.fs]), len(unnamed))
        are_images = ordered((partial(_is_image, self.fs, file.entry) for file in unnamed), threads, "sniff")
        return [file for file, is_image in zip(unnamed, are_images, strict=True) if is_image]

    def warn_of_others(
        self, reason: str, files: Sequence[FolderFile] | None = None, *, path: str | None = None
    ) -> None:
        """Warn of files that are left out, by default the other files; the message names `path`."""
        left_out = self.other_files if files is None else files
        if left_out:
            named = f"'{printable(left_out[0].name)}'{and_more(len(left_out) - 1)}"
            warn(f"{printable(self.path if path is None else path)}: {reason}, left out: {named}", UserWarning)

    def classes(self, labels: bool | None, class_names: Sequence[str] | None) -> list[str] | None:
        """The names of the classes, which are folders; a label is an index. None without labels.

        Raises
        ------
        ValueError
            Without `labels`: images are both in folders and outside, or the folders look like parts of a dataset. A
            folder is not among the `class_names`, or these are given with ``labels=False``.
        """
        folder_names = sorted({file.top for file in self.files if file.top is not None})
        outside = next((file for file in self.files if file.top is None), None)
        if labels is None:
            labels = class_names is not None or bool(folder_names)
            if class_names is None and folder_names and outside is not None:
                where = (
                    f"'{printable(self.path)}': files are both in folders ('{printable(folder_names[0])}') and outside "
                )
                where += f"('{printable(outside.name)}')"
                advice = "put all files into folders, or pass labels=True (no label outside), or pass labels=False"
                raise ValueError(f"{where}; {advice}")
            if class_names is None and folder_names and {name.lower() for name in folder_names} <= _SPLITS:
                where = (
                    f"'{printable(self.path)}': its folders look like parts of a dataset ({', '.join(folder_names)})"
                )
                raise ValueError(f"{where}; convert them one by one, or pass labels=True if they are classes")
        if not labels:
            if class_names is not None:
                raise ValueError("class_names= names labels, which labels=False leaves out")
            return None
        if class_names is None:
            return folder_names
        Folder.check_class_names(class_names)
        if unknown := sorted(set(folder_names) - set(class_names)):
            raise ValueError(
                f"'{printable(self.path)}': the folder '{printable(unknown[0])}' is not among class_names="
            )
        return list(class_names)

    @staticmethod
    def check_class_names(class_names: Sequence[str]) -> None:
        """Refuse `class_names` that are not a list of names, or have one twice: a label would have two meanings."""
        if isinstance(class_names, str) or not all(isinstance(name, str) for name in class_names):
            raise TypeError(f"class_names={class_names!r}: expected a list of names")
        if len(set(class_names)) < len(class_names):
            raise ValueError("class_names= has a name twice")

    @staticmethod
    def read_files(
        files: Iterable[tuple[T, Any, Entry | None]], threads: int | None, filesystems: Iterable[FileSystem | None]
    ) -> Generator[tuple[T, bytes | None]]:
        """The content of files of these filesystems, in order; None where an entry is missing.

        Threads read up to two files each in advance, if these have at most 16 MiB; by default there are as many as CPU
        cores, or more if a file is not local.

        Raises
        ------
        EncodeError
            A file is too large for a record.
        """
        tasks = (partial(_read, key, fs, entry, in_advance=True) for key, fs, entry in files)
        for key, fs, entry, content in ordered(tasks, _reader_threads(threads, filesystems)):
            if entry is not None and content is None:
                content = _read(key, fs, entry, in_advance=False)[3]
            yield key, content


def _is_image(fs: FileSystem, entry: Entry) -> bool:
    """True if a file begins as a supported image; False also if the file cannot be opened."""
    try:
        return bool(entry.size) and ForeignFile.looks_like(Source.from_entry(fs, entry).read(0)) in _READ_IMAGES
    except OSError:
        return False


def _reader_threads(threads: int | None, filesystems: Iterable[FileSystem | None]) -> int:
    """The value of `threads`; by default the number of CPU cores, or more if a file is not local."""
    is_local = all(isinstance(fs, LocalFileSystem | None) for fs in filesystems)
    return threads or (cpu_count() if is_local else _REMOTE_READERS)


def _read(key: T, fs: Any, entry: Entry | None, *, in_advance: bool) -> tuple[T, Any, Entry | None, bytes | None]:
    if entry is None or (in_advance and (entry.size or 0) > LIMITS.ahead_bytes):
        return key, fs, entry, None
    content = Source.from_entry(fs, entry).read(LIMITS.MAX_RECORD_BYTES)
    if len(content) > LIMITS.MAX_RECORD_BYTES:
        reason = f"the file is larger than a record can be, {LIMITS.MAX_RECORD_BYTES} bytes"
        raise EncodeError(reason, path=fs.display_path(entry.name), expected=LIMITS.MAX_RECORD_BYTES, got=entry.size)
    return key, fs, entry, content


_READ_IMAGES = {"a JPEG image", "a PNG image", "a GIF image", "a BMP image", "a WebP image", "a TIFF image"}
