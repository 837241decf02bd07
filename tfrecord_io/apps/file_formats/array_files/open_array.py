"""Arrays in files, read row by row: of `.npy` and IDX files, and of the members of `.npz` archives.

IDX, the format of the MNIST files, is a magic number with type and rank, the sizes of the axes, and the values,
big-endian: http://yann.lecun.com/exdb/mnist, "THE IDX FILE FORMAT".
"""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrecord_io.base import LIMITS
from tfrecord_io.bytes import NpyHeader
from tfrecord_io.errors import DecodeError, EncodeError
from tfrecord_io.kit import CODECS, FORMATS, Array, Dtype, printable
from tfrecord_io.store import FileName, Source, named_temporary_folder

BLOCK_BYTES = 8 << 20  # of rows read at a time
_COPY_BYTES = 1 << 20
_MAX_BYTES = 2**63 - 1
_MAX_EMPTY_ROWS = 1 << 24  # rows without values take no bytes in the file, but one record each in the output


@dataclass(slots=True)
class ArrayFile:
    """One array in a file, whose first axis counts its rows."""

    path: str  # for messages; for a member of an archive, the path of the archive and the name of the member
    dtype: np.dtype[Any]  # of one value, as stored
    shape: tuple[int, ...]
    fortran_order: bool  # the first axis varies fastest
    file: Any  # binary, positioned at the first value; it has readinto and close, and seek if `seekable`
    seekable: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dims: Sequence[str] = ()  # names of the axes after the first; () if they have none

    def __post_init__(self) -> None:
        if len(self.shape) > Dtype.MAX_AXES:
            reason = f"an array of {len(self.shape)} axes"
            raise DecodeError(reason, path=self.path, expected=Dtype.MAX_AXES, got=len(self.shape))
        if math.prod(size or 1 for size in self.shape) * self.dtype.itemsize > _MAX_BYTES:
            reason = f"the shape {printable(str(self.shape), 200)} is too large for an array"
            raise DecodeError(reason, path=self.path, got=self.shape)
        if self.shape and not self.row_bytes and self.rows > _MAX_EMPTY_ROWS:
            reason = f"the shape {self.shape} has {self.rows} rows without a value; at most {_MAX_EMPTY_ROWS} are read"
            raise DecodeError(reason, path=self.path, expected=_MAX_EMPTY_ROWS, got=self.rows)

    @property
    def rows(self) -> int:
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def size(self) -> int:
        """Bytes of all values."""
        return math.prod(self.shape) * self.dtype.itemsize

    def check_size(self, available: int) -> None:
        """Raise DecodeError if the file has fewer or more bytes, before anything is allocated for them."""
        if available < self.size:
            raise self._too_short(available)
        if available > self.size:
            raise self._too_long()

    def check_record(self, size: int) -> None:
        """Raise EncodeError for a row too large for a record, before it is allocated."""
        if size > LIMITS.MAX_RECORD_BYTES:
            reason = f"a row has {size} bytes, and a record at most {LIMITS.MAX_RECORD_BYTES}"
            raise EncodeError(reason, path=self.path, expected=LIMITS.MAX_RECORD_BYTES, got=size)

    def empty(self) -> Any:
        """No rows."""
        return np.empty((0, *self.shape[1:]), self.dtype)

    def blocks(self, rows: int) -> Iterator[Any]:
        """All rows in order, as ndarrays [rows, ...]; DecodeError if the file does not end with the last value."""
        if self.fortran_order and len(self.shape) > 1 and self.row_bytes:
            yield from self._fortran_blocks(rows)
            return
        for begin in range(0, self.rows, rows):
            block = np.empty((min(rows, self.rows - begin), *self.shape[1:]), self.dtype)
            self._fill(block, begin * self.row_bytes)
            yield block
        self._check_end()

    def read(self) -> Array:
        """The whole array, which may have no axis. Raises as `blocks` does."""
        values = np.empty(self.shape, self.dtype, order="F" if self.fortran_order else "C")
        self._fill(values.T if self.fortran_order else values, 0)
        self._check_end()
        return values

    def close(self) -> None:
        self.file.close()

    def _fortran_blocks(self, rows: int) -> Iterator[Array]:
        """Rows of an array in Fortran order: each block has a piece of each column of the file."""
        if not self.seekable:
            self._copy_to_temporary_file()
        base, columns = self.file.tell(), math.prod(self.shape[1:])
        for begin in range(0, self.rows, rows):
            count = min(rows, self.rows - begin)
            block = np.empty((columns, count), self.dtype)
            for column in range(columns):
                offset = (column * self.rows + begin) * self.dtype.itemsize
                self.file.seek(base + offset)
                self._fill(block[column], offset)
            yield block.reshape(*reversed(self.shape[1:]), count).T
        self._check_end()

    def _copy_to_temporary_file(self) -> None:
        """Copy the values, and at most one byte more, so that compressed data of any length is bounded by the shape."""
        free = shutil.disk_usage(tempfile.gettempdir()).free
        if self.size > free:
            text = f"columns of a compressed array are read from a temporary file of {self.size} bytes; {free} are free"
            raise OSError(errno.ENOSPC, f"{text}: decompress it first", self.path)
        copy = tempfile.TemporaryFile()  # noqa: SIM115  # becomes `file`
        try:
            left = self.size + 1
            while left and (data := self.file.read(min(left, _COPY_BYTES))):
                with named_temporary_folder():
                    copy.write(data)
                left -= len(data)
            self.check_size(self.size + 1 - left)
            with named_temporary_folder():
                copy.seek(0)
        except BaseException:
            copy.close()
            raise
        self.file.close()
        self.file = copy

    def _fill(self, values: Array, offset: int) -> None:
        """Read contiguous values; `offset` is the number of bytes before them."""
        buffer = values.reshape(-1).view(np.uint8).data if values.nbytes else memoryview(b"")
        done = 0
        while done < len(buffer):
            n = self.file.readinto(buffer[done:])
            if not n:
                raise self._too_short(offset + done)
            done += n

    def _check_end(self) -> None:
        """Check that the file ends here. Reading to the end also makes an archive check the CRC of a member."""
        if self.file.readinto(memoryview(bytearray(1))):
            raise self._too_long()

    def _too_short(self, got: int) -> DecodeError:
        reason = f"the file ends after {got} bytes of values; its shape {self.shape} of {self.dtype} has {self.size}"
        advice = "it is truncated, or still being written"
        return DecodeError(reason, path=self.path, expected=self.size, got=got, hint=advice)

    def _too_long(self) -> DecodeError:
        reason = f"the file continues after the {self.size} bytes of its shape {self.shape} of {self.dtype}"
        return DecodeError(reason, path=self.path, expected=self.size, hint="save each array in a separate file")


_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_NAME = re.compile(r"(?:.*[-_.])?(?P<what>[A-Za-z]+)[-_.]idx[0-9]+[-_.]u?(byte|short|int|float|double)")


def idx_array(file: Any, path: str, *, seekable: bool = False) -> ArrayFile:
    """Read the header; `file` is then positioned at the first value."""
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES:
        reason = "not an IDX file: it does not begin with two zeros and a type"
        raise DecodeError(reason, path=path, offset=0, expected=FORMATS.idx.title, got=magic.hex())
    sizes = file.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise DecodeError("the IDX file ends inside its header", path=path, expected=4 * magic[3], got=len(sizes))
    return ArrayFile(
        path,
        np.dtype(_TYPES[magic[2]]),
        shape=struct.unpack(f">{magic[3]}I", sizes),
        fortran_order=False,
        file=file,
        seekable=seekable,
    )


def idx_name(stem: str) -> str:
    """The column name for an IDX file, from names like those of the MNIST files.

    >>> idx_name("train-images-idx3-ubyte"), idx_name("t10k-labels-idx1-ubyte"), idx_name("depth")
    ('image', 'label', 'depth')
    """
    match = _NAME.fullmatch(stem)
    return match["what"].removesuffix("s") if match else stem


_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError, OSError)
_AS_NUMPY = "archives are read as NumPy writes them, stored or deflated"

Opener = Callable[..., ArrayFile]


def open_array(source: Source, opener: Opener) -> ArrayFile:
    """Open an array file, which may be compressed, with the `opener` of its format."""
    file: Any = source.open_decompressed()
    seekable = file.raw.compression is None
    if seekable:
        file.close()
        file = source.open_file()
    try:
        array = opener(file, source.path, seekable=seekable)
        if seekable and source.size is not None:
            array.check_size(source.size - file.tell())
        array.seekable = seekable and file.seekable()  # a web server's first response shows whether it supports ranges
        return array
    except BaseException:
        file.close()
        raise


def npy_array(file: Any, path: str, *, seekable: bool = False) -> ArrayFile:
    """Read the header; `file` is then positioned at the first value."""
    try:
        dtype, fortran_order, shape = NpyHeader.read(file)
    except DecodeError as error:
        error.path = path
        raise
    return ArrayFile(path, dtype, shape=shape, fortran_order=fortran_order, file=file, seekable=seekable)


class Archive:
    """An ``.npz`` archive with arrays of different names; its members are read as streams."""

    def __init__(self, source: Source) -> None:
        self.path = source.path
        file = source.open_file()
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
            raise DecodeError(f"the member is compressed by method {info.compress_type}", path=path, hint=_AS_NUMPY)
        with _zip_errors("the member cannot be opened", path):  # damaged or encrypted
            file = _Member(self._zip.open(info), path)
        try:
            array = npy_array(file, path)
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
    name = FileName.without_query(path).rstrip("/").replace(os.sep, "/").rpartition("/")[2]
    stem, suffix = os.path.splitext(plain := CODECS.without_suffix(name))
    return stem if suffix.lower() in (".npy", ".npz") else plain
