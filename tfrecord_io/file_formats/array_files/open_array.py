"""Open array files and the members of ``.npz`` archives as `ArrayFile`."""

from __future__ import annotations

import errno
import io
import os
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tfrecord_io.compression import CODECS
from tfrecord_io.errors import DecodeError, printable
from tfrecord_io.file_formats.array_files.array_file import ArrayFile
from tfrecord_io.format.dtypes import read_header
from tfrecord_io.storage.paths.resolve_output import without_query
from tfrecord_io.storage.read.file_object import RawFile
from tfrecord_io.storage.read.open_stream import open_file, open_source
from tfrecord_io.storage.read.source import Source

_BUFFER = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError, OSError)
_AS_NUMPY = "archives are read as NumPy writes them, stored or deflated"

Opener = Callable[..., ArrayFile]


def open_array(source: Source, opener: Opener) -> ArrayFile:
    """Open an array file, which may be compressed, with the `opener` of its format."""
    stream = open_source(source)
    if stream.compression is None:
        stream.close()
        file: Any = open_file(source)
        seekable = True
    else:
        file, seekable = io.BufferedReader(RawFile(stream, None), _BUFFER), False
    try:
        array = opener(file, source.path, seekable=seekable)
        if seekable and source.size is not None:
            array.check_size(source.size - file.tell())
        array.seekable = seekable and file.seekable()  # a web server's first response shows whether it supports ranges
        return array
    except BaseException:
        file.close()
        raise


def open_npy(file: Any, path: str, *, seekable: bool = False) -> ArrayFile:
    """Read the header; `file` is then positioned at the first value."""
    try:
        dtype, fortran_order, shape = read_header(file)
    except DecodeError as error:
        error.path = path
        raise
    return ArrayFile(path, dtype, shape, fortran_order, file, seekable)


class Archive:
    """An ``.npz`` archive with arrays of different names; its members are read as streams."""

    def __init__(self, source: Source) -> None:
        self.path = source.path
        file = open_file(source)
        try:
            file.peek(1)  # a web server's first response shows whether it supports ranges
            if not file.seekable():
                reason = "an archive is read from its end, but the server supports no ranges: download it"
                raise OSError(errno.ESPIPE, reason, self.path)
            with _zip_errors("not an .npz archive", self.path):
                self._zip = zipfile.ZipFile(file)
            self.members = self._find_members()
        except BaseException:
            file.close()
            raise
        self._file = file

    def _find_members(self) -> dict[str, str]:
        """The names of members by the names of the arrays."""
        names = [name for name in self._zip.namelist() if name.endswith(".npy")]
        if not names:
            reason = "the archive has no .npy members"
            raise DecodeError(reason, path=self.path, expected="arrays, as numpy.savez writes them")
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            reason = f"{count} members of the archive are called '{printable(name)}'"
            raise DecodeError(reason, path=self.path, expected=1, got=count)
        return {name.removesuffix(".npy"): name for name in names}

    def open(self, name: str) -> ArrayFile:
        """Open the array with this name."""
        info = self._zip.getinfo(self.members[name])
        path = f"{self.path}: {info.filename}"
        if info.compress_type not in _METHODS:
            raise DecodeError(f"the member is compressed by method {info.compress_type}", path=path, advice=_AS_NUMPY)
        with _zip_errors("the member cannot be opened", path):  # damaged or encrypted
            file = _Member(self._zip.open(info), path)
        try:
            array = open_npy(file, path)
            array.check_size(info.file_size - file.position)
            return array
        except BaseException:
            file.close()
            raise

    def close(self) -> None:
        self._zip.close()
        self._file.close()


class _Member:
    """A member of an archive, whose damage is raised as DecodeError."""

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path
        self.position = 0

    def read(self, size: int = -1) -> bytes:
        with _zip_errors("the archive is damaged", self._path):
            data: bytes = self._file.read(size)
        self.position += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        with _zip_errors("the archive is damaged", self._path):
            count = int(self._file.readinto(buffer))
        self.position += count
        return count

    def close(self) -> None:
        self._file.close()


@contextmanager
def _zip_errors(reason: str, path: str) -> Iterator[None]:
    """Raise the errors of zipfile for damaged archives as DecodeError."""
    try:
        yield
    except _ZIP_ERRORS as error:
        if isinstance(error, OSError) and not isinstance(error, ValueError) and error.errno != errno.EINVAL:
            raise  # EINVAL: an offset before the start of the file
        raise DecodeError(f"{reason}: {error}", path=path, expected=".npz") from error


def array_name(path: str) -> str:
    """The name of the array in a file: the file's name without folder, query, compression and suffix.

    >>> array_name("data/features.npy"), array_name("train-images-idx3-ubyte.gz")
    ('features', 'train-images-idx3-ubyte')
    """
    name = without_query(path).rstrip("/").replace(os.sep, "/").rpartition("/")[2]
    return CODECS.without_suffix(name).removesuffix(".npy").removesuffix(".npz")
