"""Array files by their paths: which files a path means, opened as `ArrayFile`."""

from __future__ import annotations

import errno
import io
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from tfrecord_io.errors import DecodeError
from tfrecord_io.numpy_files.array_file import ArrayFile
from tfrecord_io.numpy_files.npy import open_npy
from tfrecord_io.storage.opening import open_source
from tfrecord_io.storage.shards import natural_key
from tfrecord_io.storage.sources import Source, source_of
from tfrecord_io.storage.trees import locate

_COMPRESSED = (".gz", ".zlib", ".zz", ".zst")
_BUFFER = 1 << 20

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


def sources_of(path: Any, suffix: str, fsspec: Mapping[str, Any]) -> tuple[list[Source], bool]:
    """The file that a path names, or the files with `suffix` of a folder in natural order; and whether it is a folder.

    Raises
    ------
    FileNotFoundError
        There is no such file, or the folder has none.
    """
    tree, name = locate(path, fsspec.get("storage_options"), fsspec.get("filesystem"))
    entry = tree.entry(name)
    if entry is None:
        raise FileNotFoundError(errno.ENOENT, "no such file", os.fspath(path))
    if not entry.directory:
        return [source_of(tree, entry)], False
    found = [each for each in tree.listing(entry.name) if not each.directory and each.basename.endswith(suffix)]
    if not found:
        raise FileNotFoundError(errno.ENOENT, f"this folder has no {suffix} files", os.fspath(path))
    return [source_of(tree, each) for each in sorted(found, key=lambda each: natural_key(each.name))], True


def open_array(source: Source, opener: Opener) -> ArrayFile:
    """Open one array file, compressed or not, by its format's `opener`."""
    stream = open_source(source)
    if stream.compression is None:
        stream.close()
        file: Any = source.open()
        seekable = True
    else:
        file, seekable = io.BufferedReader(_Stream(stream), _BUFFER), False
    try:
        return opener(file, source.path, seekable=seekable)
    except BaseException:
        file.close()
        raise


class Archive:
    """An ``.npz`` archive; its members are read as streams.

    Raises
    ------
    DecodeError
        It is no zip archive.
    """

    def __init__(self, source: Source) -> None:
        self.path = source.path
        file: Any = source.open()
        self._file = file
        try:
            self._zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            self._file.close()
            raise DecodeError(f"not an .npz archive: {error}", path=self.path, expected=".npz") from error
        names = [name for name in self._zip.namelist() if name.endswith(".npy")]
        self.members = {name.removesuffix(".npy"): name for name in names}
        if not names:
            self.close()
            raise DecodeError("the archive has no .npy members", path=self.path, expected="arrays, as numpy.savez writes them")

    def open(self, member: str) -> ArrayFile:
        """Open the array of this name."""
        shown = f"{self.path}: {self.members[member]}"
        try:
            file = self._zip.open(self.members[member])
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:  # a method or a password that zipfile has not
            raise DecodeError(f"the member cannot be opened: {error}", path=shown) from error
        try:
            return open_npy(_Checked(file, shown), shown)
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

    def read(self, size: int = -1) -> bytes:
        return self._told(lambda: self._file.read(size))

    def readinto(self, buffer: Any) -> int:
        return self._told(lambda: self._file.readinto(buffer))

    def _told(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise DecodeError(f"the archive is damaged: {error}", path=self._path) from error

    def close(self) -> None:
        self._file.close()


def stem_of(path: str) -> str:
    """A file's name without folder, compression and suffix.

    >>> stem_of("data/features.npy"), stem_of("train-images-idx3-ubyte.gz")
    ('features', 'train-images-idx3-ubyte')
    """
    base = path.rstrip("/").replace(os.sep, "/").rpartition("/")[2]
    for suffix in _COMPRESSED:
        base = base.removesuffix(suffix)
    return base.removesuffix(".npy").removesuffix(".npz")
