"""An array in a file, read row by row: the common part of the array formats."""

from __future__ import annotations

import errno
import math
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Array
from tfrecord_io.errors import DecodeError, EncodeError, printable

BLOCK_BYTES = 8 << 20  # of rows read at a time
_COPY_BYTES = 1 << 20
_MAX_AXES = 64  # NumPy's limit
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

    def __post_init__(self) -> None:
        if len(self.shape) > _MAX_AXES:
            reason = f"an array of {len(self.shape)} axes"
            raise DecodeError(reason, path=self.path, expected=_MAX_AXES, got=len(self.shape))
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
        if size > MAX_RECORD_BYTES:
            reason = f"a row has {size} bytes, and a record at most {MAX_RECORD_BYTES}"
            raise EncodeError(reason, path=self.path, expected=MAX_RECORD_BYTES, got=size)

    def blocks(self, rows: int) -> Iterator[Array]:
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
                copy.write(data)
                left -= len(data)
            self.check_size(self.size + 1 - left)
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
        return DecodeError(reason, path=self.path, expected=self.size, got=got, advice=advice)

    def _too_long(self) -> DecodeError:
        reason = f"the file continues after the {self.size} bytes of its shape {self.shape} of {self.dtype}"
        return DecodeError(reason, path=self.path, expected=self.size, advice="save each array in a separate file")
