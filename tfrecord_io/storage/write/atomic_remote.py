"""Files of an fsspec filesystem that are written atomically."""

from __future__ import annotations

import errno
import inspect
import os
from typing import Any

from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from tfrecord_io.storage.filesystem.errors import raise_os_errors
from tfrecord_io.storage.filesystem.locate import check_writable
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem, protocols
from tfrecord_io.storage.read.range_requests import unwrap
from tfrecord_io.storage.write.atomic_s3 import S3Output
from tfrecord_io.storage.write.output_file import OutputFile, accepted, exists_error

_GCS_BLOCK_BYTES = 32 << 20  # an upload is one stream of blocks, each of which costs a round trip


def open_remote(fs: FsspecFileSystem, name: str, *, exclusive: bool, path: str | None = None) -> OutputFile:
    """Open a remote file, published by its filesystem's own commit if it has one, else by moving a temporary file.

    Messages name `path`, by default the file's own.
    """
    path = fs.display_path(name) if path is None else path
    check_writable(fs, name)
    entry = fs.entry(name)
    if entry is not None and entry.directory:
        raise IsADirectoryError(errno.EISDIR, "a directory, not a file", path)
    if entry is not None and exclusive:
        raise exists_error(path)
    inner, inner_name = unwrap(fs.fsspec, name)
    output: OutputFile
    if isinstance(inner, AsyncFileSystem) and not inner.asynchronous and {"s3", "s3a"} & set(protocols(inner)):
        output = S3Output(inner, inner_name, path, exclusive)
    else:
        output = (CommittedOutput if _supports_commit(inner) else MovedOutput)(fs, name, path, exclusive)
    output.replaces = entry is not None
    return output


def _supports_commit(fsspec: Any) -> bool:
    """Whether files opened with ``autocommit=False`` appear only when committed."""
    return not isinstance(fsspec, MemoryFileSystem) and "autocommit" in inspect.signature(fsspec._open).parameters


class CommittedOutput(OutputFile):
    """An upload, published by the filesystem's commit.

    fsspec publishes what was written even if such a file is closed by an exception or the garbage collector, unless it
    was opened with ``autocommit=False``; then it must be closed *and* committed.
    """

    def __init__(self, fs: FsspecFileSystem, name: str, path: str, exclusive: bool) -> None:
        super().__init__(path)
        self._fs, self._name, self._exclusive = fs, name, exclusive
        block = {"block_size": _GCS_BLOCK_BYTES} if "gs" in protocols(unwrap(fs.fsspec, name)[0]) else {}
        with raise_os_errors(path):
            self._file = fs.fsspec.open(name, "xb" if exclusive else "wb", autocommit=False, **block)

    def _write(self, piece: memoryview) -> int:
        with raise_os_errors(self.path):
            return accepted(self._file.write(piece), piece)

    def _finish(self) -> None:
        with raise_os_errors(self.path):
            self._file.close()

    def _commit(self) -> None:
        try:
            with raise_os_errors(self.path):
                self._file.close()
                self._file.commit()
        except FileExistsError:
            raise exists_error(self.path) from None
        self._forget()

    def _discard(self) -> None:
        """Abort the upload by its id, so that no part of it stays stored and is charged for."""
        try:
            with raise_os_errors(self.path):
                self._file.discard()
        finally:
            try:
                self._file.closed = True  # else its garbage collection starts the upload again
            except AttributeError:
                self._file.close()
            self._forget()

    def _forget(self) -> None:
        """Remove the file from its filesystem's list of uncommitted files, which would keep it in memory."""
        files = self._fs.fsspec.transaction.files
        if self._file in files:
            files.remove(self._file)


class MovedOutput(OutputFile):
    """A file under a temporary name, moved to its final one."""

    def __init__(self, fs: FsspecFileSystem, name: str, path: str, exclusive: bool) -> None:
        super().__init__(path)
        self._fs, self._name, self._exclusive = fs, name, exclusive
        directory, slash, base = name.rpartition("/")
        self._temporary = f"{directory}{slash}.{base[:32]}.{os.urandom(8).hex()}.tmp"
        self._file = fs.fsspec.open(self._temporary, "wb")

    def _write(self, piece: memoryview) -> int:
        return accepted(self._file.write(piece), piece)

    def _finish(self) -> None:
        self._file.close()

    def _commit(self) -> None:
        self._file.close()
        if self._exclusive and self._fs.entry(self._name) is not None:
            raise exists_error(self.path)  # these filesystems have no atomic "move unless it exists"
        self._fs.fsspec.mv(self._temporary, self._name)

    def _discard(self) -> None:
        try:
            self._file.close()
        finally:
            if self._fs.entry(self._temporary) is not None:
                self._fs.fsspec.rm_file(self._temporary)
