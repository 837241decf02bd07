"""Folders of any files that are written together: a local one appears when it is complete."""

from __future__ import annotations

import errno
import os
import posixpath
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from tfrecord_io.base import StorageOptions
from tfrecord_io.store import operating_systems
from tfrecord_io.store.filesystem.interface import LocalFileSystem
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.write.atomic import open_output

_REMOTE_WRITERS = 16
_EXISTS = "the folder exists and is not empty; choose another name, or delete it"


class NewFolder(ABC):
    """A folder being written; a context manager that publishes it, and removes what was written after an exception."""

    @staticmethod
    def begin(path: str, storage: StorageOptions) -> NewFolder:
        """Begin a folder.

        Raises
        ------
        FileExistsError
            There is a file of this name, or a folder that is not empty.
        """
        location = Location.of(path, storage)
        location.check_writable()
        fs, name = location
        entry = fs.entry(name)
        if entry is not None and (not entry.directory or fs.listing(entry.name)):
            text = _EXISTS if entry.directory else "a file, not a folder"
            raise FileExistsError(errno.EEXIST, text, path)
        return _LocalFolder(name) if isinstance(fs, LocalFileSystem) else _RemoteFolder(path, storage)

    def __init__(self) -> None:
        self.bytes = 0
        self._files: set[str] = set()
        self._folders = {""}

    def reserve(self, name: str) -> None:
        """Take the name of a file before any thread writes it, so that the later of two records is the error.

        Raises
        ------
        FileExistsError
            A file or folder has it, or one of its folders is a file.
        """
        parent = posixpath.dirname(name)
        is_taken = name in self._files or name in self._folders
        while not is_taken and parent not in self._folders:
            is_taken = parent in self._files
            self._folders.add(parent)
            parent = posixpath.dirname(parent)
        if is_taken:
            raise FileExistsError(errno.EEXIST, "reserved before", self.table(name))
        self._files.add(name)

    @abstractmethod
    def write(self, name: str, content: Any) -> None:
        """Write a file; any thread may do so. FileExistsError if it has been written before."""

    @abstractmethod
    def table(self, name: str) -> str:
        """The path where a table of the folder is written, before the end of the block."""

    def writing_threads(self, threads: int) -> int:
        """How many threads write files, of which a local folder takes `threads`."""
        return threads

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def discard(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.commit()
        else:
            self.discard()


class _LocalFolder(NewFolder):
    """Files are written to a hidden folder next to the target, which is renamed."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._target = os.path.realpath(path)  # a link cannot be replaced by a folder
        parent, name = os.path.split(self._target)
        self._temporary = os.path.join(parent, FileName.temporary(name))
        os.makedirs(parent, exist_ok=True)
        with _errors_of(self._target):
            os.mkdir(self._temporary)
        self._made = {""}

    def write(self, name: str, content: Any) -> None:
        parent = os.path.dirname(name)
        path = os.path.join(self._temporary, *name.split("/"))
        with _errors_of(os.path.join(self._target, name)):
            if parent not in self._made:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self._made.add(parent)
            with open(path, "xb") as file:
                file.write(content)

    def table(self, name: str) -> str:
        return os.path.join(self._temporary, name)

    def commit(self) -> None:
        try:
            with _errors_of(self._target):
                operating_systems.current.sync_folder(self._temporary)
            operating_systems.current.rename_folder(self._temporary, self._target)
        except OSError as error:
            self.discard()
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise FileExistsError(errno.EEXIST, _EXISTS, self._target) from error
            raise
        operating_systems.current.sync_directory(os.path.dirname(self._target))

    def discard(self) -> None:
        shutil.rmtree(self._temporary, ignore_errors=True)


@contextmanager
def _errors_of(path: str) -> Iterator[None]:
    """Raise each OSError with the file's final path instead of a temporary one or none."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


class _RemoteFolder(NewFolder):
    """Files are uploaded one by one; after an exception those that were are removed."""

    def __init__(self, path: str, storage: StorageOptions) -> None:
        super().__init__()
        self._path, self._storage = path.rstrip("/"), storage
        self._written: set[str] = set()

    def write(self, name: str, content: Any) -> None:
        if name in self._written:
            raise FileExistsError(errno.EEXIST, "written before", self.table(name))
        self._written.add(name)
        with open_output(self.table(name), self._storage) as output:
            output.write(content)

    def table(self, name: str) -> str:
        return f"{self._path}/{name}"

    def writing_threads(self, threads: int) -> int:
        return _REMOTE_WRITERS

    def commit(self) -> None:
        pass

    def discard(self) -> None:
        for name in self._written:
            with suppress(OSError):
                Location.of(self.table(name), self._storage).remove()
