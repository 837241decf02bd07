"""Array files by their paths: which files a path means, opened as `ArrayFile`."""

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

from tfrecord_io.compression import compression_suffixes
from tfrecord_io.errors import DecodeError, printable
from tfrecord_io.file_formats.array_file import ArrayFile
from tfrecord_io.file_formats.npy import open_npy
from tfrecord_io.storage.read.file_object import open_file
from tfrecord_io.storage.read.open_stream import open_source
from tfrecord_io.storage.read.source import Source

_BUFFER = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_AS_NUMPY = "archives are read as NumPy writes them, stored or deflated"

Opener = Callable[..., ArrayFile]


class _Stream(io.RawIOBase):
    """A stream of uncompressed bytes as a file."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        return int(self._stream.readinto(memoryview(buffer)))

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def open_array(source: Source, opener: Opener) -> ArrayFile:
    """Open one array file, compressed or not, by its format's `opener`."""
    stream = open_source(source)
    if stream.compression is None:
        stream.close()
        file: Any = open_file(source)
        seekable = True
    else:
        file, seekable = io.BufferedReader(_Stream(stream), _BUFFER), False
    try:
        array = opener(file, source.path, seekable=seekable)
        if seekable and source.size is not None:
            array.check_size(source.size - file.tell())
        array.seekable = seekable and file.seekable()  # a web server's first answer says whether it gives ranges
        return array
    except BaseException:
        file.close()
        raise


class Archive:
    """An ``.npz`` archive; its members are read as streams.

    Raises
    ------
    DecodeError
        It is no zip archive, has no arrays, or several of one name.
    """

    def __init__(self, source: Source) -> None:
        self.path = source.path
        file = open_file(source)
        try:
            file.peek(1)  # a web server's first answer says whether it gives ranges
            if not file.seekable():
                raise OSError(
                    errno.ESPIPE,
                    "an archive is read from its end, and the server gives no ranges: download it",
                    self.path,
                )
            with _told("not an .npz archive", self.path):
                self._zip = zipfile.ZipFile(file)
            self.members = self._arrays()
        except BaseException:
            file.close()
            raise
        self._file = file

    def _arrays(self) -> dict[str, str]:
        """The members that are arrays, by the arrays' names."""
        names = [name for name in self._zip.namelist() if name.endswith(".npy")]
        if not names:
            raise DecodeError(
                "the archive has no .npy members", path=self.path, expected="arrays, as numpy.savez writes them"
            )
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            raise DecodeError(
                f"{count} members of the archive are called '{printable(name)}'", path=self.path, expected=1, got=count
            )
        return {name.removesuffix(".npy"): name for name in names}

    def open(self, member: str) -> ArrayFile:
        """Open the array of this name."""
        info = self._zip.getinfo(self.members[member])
        shown = f"{self.path}: {info.filename}"
        if info.compress_type not in _METHODS:
            raise DecodeError(f"the member is compressed by method {info.compress_type}", path=shown, advice=_AS_NUMPY)
        with _told("the member cannot be opened", shown):  # damaged or encrypted
            file = self._zip.open(info)
        try:
            checked = _Checked(file, shown)
            array = open_npy(checked, shown)
            array.check_size(info.file_size - checked.done)
            return array
        except BaseException:
            file.close()
            raise

    def close(self) -> None:
        self._zip.close()
        self._file.close()


class _Checked:
    """A member whose damage is told as ours."""

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path
        self.done = 0  # bytes of it

    def read(self, size: int = -1) -> bytes:
        with _told("the archive is damaged", self._path):
            data: bytes = self._file.read(size)
        self.done += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        with _told("the archive is damaged", self._path):
            count = int(self._file.readinto(buffer))
        self.done += count
        return count

    def close(self) -> None:
        self._file.close()


@contextmanager
def _told(reason: str, path: str) -> Iterator[None]:
    """What zipfile raises for a damaged archive, as our error."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError) as error:
        raise DecodeError(f"{reason}: {error}", path=path, expected=".npz") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place before the file's start
            raise
        raise DecodeError(f"{reason}: {error}", path=path, expected=".npz") from error


def stem_of(path: str) -> str:
    """A file's name without folder, compression and suffix.

    >>> stem_of("data/features.npy"), stem_of("train-images-idx3-ubyte.gz")
    ('features', 'train-images-idx3-ubyte')
    """
    base = path.rstrip("/").replace(os.sep, "/").rpartition("/")[2]
    for suffix in compression_suffixes():
        base = base.removesuffix(suffix)
    return base.removesuffix(".npy").removesuffix(".npz")
