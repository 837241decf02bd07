"""Arrays of HDF5 files and Zarr folders, read row by row: slabs of whole chunks, and values that Arrow holds.

Tests: tests/apps/file_formats/array_files/test_hdf5_files.py and
tests/apps/file_formats/array_files/test_zarr_folders.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.apps.file_formats.array_files.array_stream import Values
from tfrecord_io.apps.file_formats.array_files.open_array import ArrayFile
from tfrecord_io.base import Expansion
from tfrecord_io.errors import DecodeError, EncodeError, TFRecordError
from tfrecord_io.kit import Array, printable

_SLAB_BYTES = 256 << 20  # the most that a slab takes: the rows that are read at once, in whole chunks
EXCLUDE = "exclude it with columns="
EXCLUDE_CLI = "exclude it with --columns"


@dataclass(slots=True)
class StoredArray(ArrayFile):
    """One array of a file of several arrays, of which any range of rows can be read."""

    read_rows: Callable[[int, int], Array] = lambda begin, end: np.empty(0)
    read_part: Callable[[tuple[slice, ...]], Array] | None = None  # of any axes; None if only rows can be read
    chunks: tuple[int, ...] = ()  # shape of a chunk; () without chunks, or to read row by row
    stored_bytes: Callable[[], int] = lambda: 0  # of the array, before decompression; or those that are read so far
    max_expansion: int = 0  # `Limits.expansion_bytes`
    convert: Callable[[Array], Values] = lambda values: values
    sampled_bytes: int = 0  # of a row whose values have no fixed size

    @property
    def row_bytes(self) -> int:
        return self.sampled_bytes or math.prod(self.shape[1:]) * self.dtype.itemsize

    def empty(self) -> Values:
        return self.convert(np.empty((0, *self.shape[1:]), self.dtype))

    def blocks(self, rows: int) -> Iterator[Values]:
        """All rows in order, in blocks of so many; DecodeError if they take far more memory than bytes are stored."""
        slab_rows = self._slab_rows(rows)
        slab = np.empty((0, *self.shape[1:]), self.dtype)
        first, read_bytes = 0, 0  # the first row of the slab, and the bytes of all slabs so far
        for begin in range(0, self.rows, rows):
            parts, at, end = [], begin, min(begin + rows, self.rows)
            while at < end:
                if not first <= at < first + len(slab):
                    first = at // slab_rows * slab_rows
                    slab = self.rows_of(first, min(first + slab_rows, self.rows))
                    read_bytes += slab.nbytes
                    self.check_expansion(read_bytes)
                part = slab[at - first : end - first]
                parts.append(part)
                at += len(part)
            yield self._convert_rows(parts[0] if len(parts) == 1 else np.concatenate(parts), begin)

    def _slab_rows(self, rows: int) -> int:
        """The rows to read at once for blocks of `rows`: of whole chunks, unless these take too much memory."""
        chunk_rows = max((1, *self.chunks[:1]))
        slab_rows = -(-rows // chunk_rows) * chunk_rows
        return rows if slab_rows * self.row_bytes > _SLAB_BYTES else slab_rows

    def along(self, axis: int) -> StoredArray:
        """This array with another axis as the first one."""
        if not axis:
            return self
        read = self.read_part
        if read is None:
            reason = f"its rows would be those of axis {axis}, and values of no fixed size are read by the first axis"
            raise EncodeError(reason, path=self.path, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
        return replace(
            self,
            shape=(self.shape[axis], *self.shape[:axis], *self.shape[axis + 1 :]),
            read_rows=lambda begin, end: np.moveaxis(read((slice(None),) * axis + (slice(begin, end),)), axis, 0),
            chunks=self.chunks[axis : axis + 1],
        )

    def repeat_rows(self, count: int) -> StoredArray:
        """An array with all values of this one in each of `count` rows."""
        self.check_record(self.size)
        self.check_expansion(self.size)
        if self.shape:
            values = self.rows_of(0, self.rows)
        else:
            with library_errors(self.path):
                values = np.asarray(() if self.read_part is None else self.read_part(()), self.dtype)
        return replace(
            self,
            shape=(count, *self.shape),
            read_rows=lambda begin, end: np.broadcast_to(values, (end - begin, *values.shape)),
            chunks=(),
            stored_bytes=lambda: count * self.size,
            sampled_bytes=0,
        )

    def rows_of(self, begin: int, end: int) -> Array:
        """Rows as they are stored."""
        with library_errors(self.path):
            rows = self.read_rows(begin, end)
        if rows.shape != (end - begin, *self.shape[1:]):
            reason = f"the rows {begin} to {end} have the shape {rows.shape}, and the array {self.shape}"
            raise DecodeError(reason, path=self.path, expected=self.shape, got=rows.shape)
        return rows

    def _convert_rows(self, values: Array, begin: int) -> Values:
        try:
            return self.convert(values)
        except TFRecordError as error:
            error.path = self.path
            error.record = None if error.record is None else error.record + begin
            raise

    def check_expansion(self, size: int) -> None:
        """Raise DecodeError if `size` bytes in memory are far more than those that are stored."""
        expansion = Expansion(self.max_expansion, stored := self.stored_bytes())
        if size > expansion.room:
            reason = f"its shape {self.shape} of {self.dtype} takes {size} bytes or more, of {stored} stored"
            advice = f"{expansion.advice(max(size, self.size))}, or {EXCLUDE}"
            advice_cli = f"{expansion.advice(max(size, self.size))}, or {EXCLUDE_CLI}"
            reason = expansion.excess(reason)
            raise DecodeError(
                reason, path=self.path, expected=expansion.room, got=size, hint=advice, hint_cli=advice_cli
            )


@contextmanager
def library_errors(path: str, advice: str | None = None) -> Iterator[None]:
    """Raise the errors of h5py, zarr and others for damaged files as DecodeError."""
    try:
        yield
    except TFRecordError:
        raise
    except MemoryError as error:
        raise DecodeError("damaged: it states more values than there is memory for", path=path) from error
    except Exception as error:  # of libraries and their codecs, which check little and may raise anything
        if isinstance(error, OSError) and error.filename is not None:  # of the file system
            raise
        reason = f"damaged, or of a kind that cannot be read: {printable(str(error) or type(error).__name__, 300)}"
        raise DecodeError(reason, path=path, hint=advice) from error


# ---- values of no fixed size


def text_column(values: Array) -> pa.Array:
    """Text, or UTF-8, as a column; of two axes, of lists."""
    return _make_lists(values, _text)


def bytes_column(values: Array) -> pa.Array:
    """Bytes as a column: of ``bytes`` objects, or of arrays of uint8."""
    return _make_lists(values, lambda cells: pa.array([bytes(cell) for cell in cells], pa.binary()))


def lists_column(values: Array, dtype: np.dtype[Any]) -> pa.Array:
    """Arrays of one axis as a column of lists."""
    if values.ndim > 1:
        raise EncodeError(
            "lists of different lengths in an array of several axes cannot be stored",
            hint=EXCLUDE,
            hint_cli=EXCLUDE_CLI,
        )
    rows = [np.asarray(cell, dtype) for cell in values]
    flat = np.concatenate([np.empty(0, dtype), *rows])
    return pa.ListArray.from_arrays(pa.array(np.cumsum([0, *map(len, rows)]), pa.int32()), flat)


def _text(cells: Sequence[Any]) -> pa.Array:
    try:
        return pa.array([cell.decode() if isinstance(cell, bytes) else cell for cell in cells], pa.string())
    except UnicodeDecodeError as error:
        raise DecodeError(
            "text that is not UTF-8", record=cells.index(error.object), hint=EXCLUDE, hint_cli=EXCLUDE_CLI
        ) from None


def _make_lists(values: Array, make: Callable[[Sequence[Any]], pa.Array]) -> pa.Array:
    if values.ndim > 2:
        reason = f"an array of text or bytes with {values.ndim} axes; lists of them have two"
        raise EncodeError(reason, expected=2, got=values.ndim, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
    cells = make(values.reshape(-1).tolist())
    if values.ndim < 2:
        return cells
    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), cells)
