"""An array in a file, read row by row: what the formats of array files have in common."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import DecodeError

BLOCK_BYTES = 8 << 20  # of rows read at a time
_SPOOL_CHUNK = 1 << 20


class Opened(Protocol):
    """What is read: a binary file, from where it stands."""

    def readinto(self, buffer: memoryview, /) -> int | None: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class ArrayFile:
    """One array of a file, whose first axis counts its rows.

    Attributes
    ----------
    path : str
        What people see; of a member of an archive the archive's and its own name.
    dtype : numpy.dtype
        Of one value, as it is stored.
    shape : tuple of int
    fortran_order : bool
        The first axis varies fastest.
    """

    path: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    file: Any  # stands at the first value
    seekable: bool = False

    @property
    def rows(self) -> int:
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize

    def blocks(self, rows: int) -> Iterator[Array]:
        """All rows in order, so many at a time: ndarrays of shape [rows, ...].

        Raises
        ------
        DecodeError
            The file ends before its last value.
        """
        if self.fortran_order and len(self.shape) > 1 and self.row_bytes:
            yield from self._columns(rows)
            return
        for begin in range(0, self.rows, rows):
            count = min(rows, self.rows - begin)
            block = np.empty((count, *self.shape[1:]), self.dtype)
            self._fill(self.file, _bytes_of(block), begin * self.row_bytes)
            yield block

    def whole(self) -> Array:
        """The whole array; also one without any axis."""
        values = np.empty(self.shape, self.dtype, order="F" if self.fortran_order else "C")
        self._fill(self.file, _bytes_of(values.T if self.fortran_order else values), 0)
        return values

    def close(self) -> None:
        self.file.close()

    def _columns(self, rows: int) -> Iterator[Array]:
        """Rows of an array whose first axis varies fastest: a piece of each column of the file."""
        file, base = (self.file, self.file.tell()) if self.seekable else (self._spooled(), 0)
        columns = int(np.prod(self.shape[1:], dtype=np.int64))
        for begin in range(0, self.rows, rows):
            count = min(rows, self.rows - begin)
            block = np.empty((columns, count), self.dtype)
            for column in range(columns):
                at = (column * self.rows + begin) * self.dtype.itemsize
                file.seek(base + at)
                self._fill(file, _bytes_of(block[column]), at)
            yield block.reshape(*reversed(self.shape[1:]), count).T

    def _spooled(self) -> Any:
        """The values in a temporary file, where one can go back and forth; it is gone when it is closed."""
        spool = tempfile.TemporaryFile()  # noqa: SIM115  # closed with this
        shutil.copyfileobj(self.file, spool, _SPOOL_CHUNK)
        self.file.close()
        self.file = spool
        return spool

    def _fill(self, file: Any, buffer: memoryview, offset: int) -> None:
        done = 0
        while done < len(buffer):
            n = file.readinto(buffer[done:])
            if not n:
                size = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
                reason = f"the file ends after {offset + done} bytes of values; its shape {self.shape} of {self.dtype} has {size}"
                raise DecodeError(reason, path=self.path, expected=size, got=offset + done, advice="it was cut, or is still being written")
            done += n


def _bytes_of(values: Array) -> memoryview:
    return values.reshape(-1).view(np.uint8).data if values.nbytes else memoryview(b"")
