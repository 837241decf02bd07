"""A directory, on disk or behind a URL, whose small files are read whole.

Tests: tests/apps/file_formats/test_hostile_files.py and tests/plugins/vision/test_from_folder.py.
"""

from __future__ import annotations

import errno
import os
from typing import Self

from tfrecord_io.base import StorageOptions
from tfrecord_io.store.filesystem.interface import FileSystem
from tfrecord_io.store.filesystem.locate import Location, is_remote
from tfrecord_io.store.paths.safe_names import ABSOLUTE, name_fault
from tfrecord_io.store.read.source import Source


class Directory:
    """A directory, on disk or behind a URL, whose small files are read whole; it need not exist.

    Attributes
    ----------
    fs : FileSystem
    name : str
        In `fs`.
    """

    def __init__(self, path: str | os.PathLike[str], storage: StorageOptions = StorageOptions.DEFAULT) -> None:
        self.fs, self.name = Location.of(path, storage)

    @classmethod
    def from_filesystem(cls, fs: FileSystem, name: str) -> Self:
        """The directory of this name in a filesystem."""
        directory = cls.__new__(cls)
        directory.fs, directory.name = fs, name
        return directory

    @classmethod
    def find(cls, path: str, storage: StorageOptions) -> Self:
        """A directory that exists.

        Raises
        ------
        NotADirectoryError, FileNotFoundError
        """
        fs, name = Location.of(path, storage)
        root = fs.entry(name)
        if root is None or not root.directory:
            number, text = (errno.ENOTDIR, "a file, not a folder") if root else (errno.ENOENT, "no such folder")
            raise OSError(number, text, path)
        return cls.from_filesystem(fs, root.name)

    def display_path(self, name: str) -> str:
        """The path or URL of a file in the directory."""
        return self.fs.display_path(self._join(name))

    def read(self, name: str) -> bytes | None:
        """All bytes of a file; None if there is no such file, or a store refuses to show it.

        In a store it takes one request. Without permission to list a bucket, access to absent objects is denied, too.
        """
        if is_remote(self.fs) and self.fs.is_object_store:
            return self.fs.content(self._join(name))
        entry = self.fs.entry(self._join(name))
        return None if entry is None or entry.directory else Source.from_entry(self.fs, entry).read()

    def _join(self, name: str) -> str:
        return f"{self.name.rstrip('/')}/{name}" if self.name.rstrip("/") else f"{self.name}{name}"

    def join(self, path: str) -> str:
        """The name in `fs` of a relative path below the directory, without empty parts.

        >>> Directory("photos/").join("./cat//1.jpg")
        'photos/cat/1.jpg'
        """
        return "/".join([self.name.rstrip("/"), *_parts(path)])

    def is_left_by(self, name: str) -> bool:
        """True if a symbolic link leads from a name below a local directory to a place outside."""
        if not self.fs.is_local:
            return False
        root = os.path.realpath(self.name)
        return os.path.commonpath([root, os.path.realpath(name)]) != root

    @staticmethod
    def name_fault(name: str) -> str | None:
        """A clause about why the name of a file to write is unsafe below a directory; None for a plain relative name.

        >>> Directory.name_fault("cat/1.jpg"), Directory.name_fault("../1.jpg")
        (None, "it has the part '..'")
        """
        return name_fault(name)

    @staticmethod
    def leads_out(path: str) -> str | None:
        """Why a path, of a file to read, may not be below a directory, in a clause; None for a relative path below it.

        >>> Directory.leads_out("./cat//1.jpg"), Directory.leads_out("a/../../1.jpg")
        (None, "it has the part '..'")
        """
        if ABSOLUTE.match(path):
            return "it is absolute"
        if "\0" in path or (os.sep != "/" and os.sep in path):
            return "it has a character that no path has"
        parts = _parts(path)
        return "it has the part '..'" if ".." in parts else None if parts else "it is empty"


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
