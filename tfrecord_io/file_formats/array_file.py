"""An array in a file, read row by row: what the formats of array files have in common."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Array
from tfrecord_io.errors import DecodeError, EncodeError, printable

BLOCK_BYTES = 8 << 20  # of rows read at a time
_SPOOL_CHUNK = 1 << 20
_MOST_AXES = 64  # NumPy's own limit
_MOST_BYTES = 2**63 - 1
_MOST_EMPTY_ROWS = 1 << 24  # rows without a value cost nothing in the file, and a record each in the other


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

    def __post_init__(self) -> None:
        if len(self.shape) > _MOST_AXES:
            raise DecodeError(
                f"an array of {len(self.shape)} axes", path=self.path, expected=_MOST_AXES, got=len(self.shape)
            )
        if math.prod(size or 1 for size in self.shape) * self.dtype.itemsize > _MOST_BYTES:
            raise DecodeError(
                f"its shape {printable(str(self.shape), 200)} is that of no array", path=self.path, got=self.shape
            )
        if self.shape and not self.row_bytes and self.rows > _MOST_EMPTY_ROWS:
            reason = (
                f"its shape {self.shape} says {self.rows} rows without a value; at most {_MOST_EMPTY_ROWS} are read"
            )
            raise DecodeError(reason, path=self.path, expected=_MOST_EMPTY_ROWS, got=self.rows)

    @property
    def rows(self) -> int:
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def size(self) -> int:
        """Bytes of all values."""
        return math.prod(self.shape) * self.dtype.itemsize

    def check_size(self, there: int) -> None:
        """Compare with the bytes that are there, before anything is allocated for them.

        Raises
        ------
        DecodeError
            They are fewer, or more.
        """
        if there < self.size:
            raise self._ends(there)
        if there > self.size:
            raise self._goes_on()

    def check_record(self, size: int) -> None:
        """Refuse what no record holds, before it is allocated.

        Raises
        ------
        EncodeError
        """
        if size > MAX_RECORD_BYTES:
            reason = f"a row has {size} bytes, and a record at most {MAX_RECORD_BYTES}"
            raise EncodeError(reason, path=self.path, expected=MAX_RECORD_BYTES, got=size)

    def blocks(self, rows: int) -> Iterator[Array]:
        """All rows in order, so many at a time: ndarrays of shape [rows, ...].

        Raises
        ------
        DecodeError
            The file ends before its last value, or goes on behind it.
        """
        if self.fortran_order and len(self.shape) > 1 and self.row_bytes:
            yield from self._columns(rows)
            return
        for begin in range(0, self.rows, rows):
            count = min(rows, self.rows - begin)
            block = np.empty((count, *self.shape[1:]), self.dtype)
            self._fill(self.file, _bytes_of(block), begin * self.row_bytes)
            yield block
        self._end(self.file)

    def whole(self) -> Array:
        """The whole array; also one without any axis. Raises as `blocks`."""
        values = np.empty(self.shape, self.dtype, order="F" if self.fortran_order else "C")
        self._fill(self.file, _bytes_of(values.T if self.fortran_order else values), 0)
        self._end(self.file)
        return values

    def close(self) -> None:
        self.file.close()

    def _columns(self, rows: int) -> Iterator[Array]:
        """Rows of an array whose first axis varies fastest: a piece of each column of the file."""
        file, base = (self.file, self.file.tell()) if self.seekable else (self._spooled(), 0)
        columns = math.prod(self.shape[1:])
        for begin in range(0, self.rows, rows):
            count = min(rows, self.rows - begin)
            block = np.empty((columns, count), self.dtype)
            for column in range(columns):
                at = (column * self.rows + begin) * self.dtype.itemsize
                file.seek(base + at)
                self._fill(file, _bytes_of(block[column]), at)
            yield block.reshape(*reversed(self.shape[1:]), count).T
        self._end(file)

    def _spooled(self) -> Any:
        """The values in a temporary file, where one can go back and forth; it is gone when it is closed."""
        spool = tempfile.TemporaryFile()  # noqa: SIM115  # closed with this
        try:
            shutil.copyfileobj(self.file, spool, _SPOOL_CHUNK)
        except BaseException:
            spool.close()
            raise
        self.file.close()
        self.file = spool
        return spool

    def _fill(self, file: Any, buffer: memoryview, offset: int) -> None:
        done = 0
        while done < len(buffer):
            n = file.readinto(buffer[done:])
            if not n:
                raise self._ends(offset + done)
            done += n

    def _end(self, file: Any) -> None:
        """Read to the end: an archive checks a member's CRC there."""
        if file.readinto(memoryview(bytearray(1))):
            raise self._goes_on()

    def _ends(self, got: int) -> DecodeError:
        reason = f"the file ends after {got} bytes of values; its shape {self.shape} of {self.dtype} has {self.size}"
        return DecodeError(
            reason, path=self.path, expected=self.size, got=got, advice="it was cut, or is still being written"
        )

    def _goes_on(self) -> DecodeError:
        reason = f"the file goes on after the {self.size} bytes of its shape {self.shape} of {self.dtype}"
        return DecodeError(reason, path=self.path, expected=self.size, advice="save each array in a file of its own")


def _bytes_of(values: Array) -> memoryview:
    return values.reshape(-1).view(np.uint8).data if values.nbytes else memoryview(b"")
