"""Files of an fsspec filesystem that are written whole or not at all."""

from __future__ import annotations

import errno
import inspect
import os
from typing import Any

from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from tfrecord_io.storage.filesystem.errors import told_as_os_error
from tfrecord_io.storage.filesystem.local import protocols, refuse_web
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem
from tfrecord_io.storage.read.range_requests import inner
from tfrecord_io.storage.write.atomic_s3 import S3Output
from tfrecord_io.storage.write.output_file import OutputFile, exists_error

_GCS_BLOCK_BYTES = 32 << 20  # its upload is one stream of blocks, each of which costs a round trip


def open_remote(tree: FsspecFileSystem, name: str, *, exclusive: bool) -> OutputFile:
    """Open a remote file: by its filesystem's own commit if it has one, else by a temporary one that is moved."""
    shown = tree.shown(name)
    refuse_web(tree, name)
    entry = tree.entry(name)
    if entry is not None and entry.directory:
        raise IsADirectoryError(errno.EISDIR, "a directory, not a file", shown)
    if entry is not None and exclusive:
        raise exists_error(shown)
    fs, inner_name = inner(tree.fs, name)
    if isinstance(fs, AsyncFileSystem) and not fs.asynchronous and {"s3", "s3a"} & set(protocols(fs)):
        return S3Output(fs, inner_name, shown, exclusive)
    kind = CommittedOutput if _commits(fs) else MovedOutput
    return kind(tree, name, shown, exclusive)


def _commits(fs: Any) -> bool:
    """Whether files opened with ``autocommit=False`` appear only at their commit."""
    return not isinstance(fs, MemoryFileSystem) and "autocommit" in inspect.signature(fs._open).parameters


class CommittedOutput(OutputFile):
    """An upload, ended by the filesystem's commit.

    fsspec publishes what was written when such a file is closed by an exception, and even by the garbage
    collector, unless it was opened with ``autocommit=False``; then it must be closed *and* committed.
    """

    def __init__(self, tree: FsspecFileSystem, name: str, shown: str, exclusive: bool) -> None:
        super().__init__(shown)
        self._tree, self._name, self._exclusive = tree, name, exclusive
        block = {"block_size": _GCS_BLOCK_BYTES} if "gs" in protocols(inner(tree.fs, name)[0]) else {}
        with told_as_os_error(shown):
            self._file = tree.fs.open(name, "xb" if exclusive else "wb", autocommit=False, **block)

    def _write(self, piece: memoryview) -> int:
        with told_as_os_error(self.path):
            self._file.write(piece)
        return len(piece)

    def _finish(self) -> None:
        with told_as_os_error(self.path):
            self._file.close()

    def _commit(self) -> None:
        try:
            with told_as_os_error(self.path):
                self._file.close()
                self._file.commit()
        except FileExistsError:
            raise exists_error(self.path) from None
        self._forget()

    def _discard(self) -> None:
        """End the upload by its id, so that no part of it is stored and paid for."""
        try:
            with told_as_os_error(self.path):
                self._file.discard()
        finally:
            try:
                self._file.closed = True  # else its garbage collection begins an upload anew
            except AttributeError:
                self._file.close()
            self._forget()

    def _forget(self) -> None:
        """Take the file out of its filesystem's list of uncommitted ones, which would keep it for ever."""
        files = self._tree.fs.transaction.files
        if self._file in files:
            files.remove(self._file)


class MovedOutput(OutputFile):
    """A file under a temporary name, moved to its own."""

    def __init__(self, tree: FsspecFileSystem, name: str, shown: str, exclusive: bool) -> None:
        super().__init__(shown)
        self._tree, self._name, self._exclusive = tree, name, exclusive
        directory, slash, base = name.rpartition("/")
        self._temporary = f"{directory}{slash}.{base[:32]}.{os.urandom(8).hex()}.tmp"
        self._file = tree.fs.open(self._temporary, "wb")

    def _write(self, piece: memoryview) -> int:
        self._file.write(piece)
        return len(piece)

    def _finish(self) -> None:
        self._file.close()

    def _commit(self) -> None:
        self._file.close()
        if self._exclusive and self._tree.entry(self._name) is not None:
            raise exists_error(self.path)  # no filesystem of this kind can ask and move in one step
        self._tree.fs.mv(self._temporary, self._name)

    def _discard(self) -> None:
        try:
            self._file.close()
        finally:
            if self._tree.entry(self._temporary) is not None:
                self._tree.fs.rm_file(self._temporary)
