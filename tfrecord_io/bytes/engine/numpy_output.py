"""Arrays of NumPy that the kernel makes: text, ``bytes`` objects, views and runs of rows, columns of many batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tfrecord_io.base import LIMITS, MIB, cpu_count, ordered
from tfrecord_io.bytes.engine.contract import Array
from tfrecord_io.bytes.format.dtypes import Dtype

_ROOM_BYTES = 128 * MIB  # of memory that is prepared for several pieces; each time takes about a millisecond
_OBJECT_PIECE_BYTES = 8 * MIB  # of objects that are made at a time
_LEAST_ROOM_BYTES = 8 * MIB
_OBJECT_BYTES, _SMALL_BYTES = 48, 512  # of an object besides its content; of one that Python's own heap is for
_POINTER_BYTES = 8
# The C API, as NumPy's import_array() gets it.
NUMPY_API: Any = import_module("numpy._core._multiarray_umath")._ARRAY_API


_Slots = tuple[Array, Array, Array | None]  # bytes, offsets (int32 or int64), and False where there is no value


class Runs(NamedTuple):
    """Rows of numbers or bytes: row i is ``values[offsets[i]:offsets[i + 1]]``; contiguous and of one dimension.

    Offsets are int64; of bytes they may be int32.
    """

    values: Array
    offsets: Array

    def views(self, valid: Array | None) -> Array:
        """An object array: slot i is ``values[offsets[i]:offsets[i + 1]]``, None where `valid` has False."""
        values, offsets = self
        rows = np.full(len(offsets) - 1, None, object)
        offsets = np.ascontiguousarray(offsets, np.int64)
        place, data, dtype = rows.ctypes.data, values.ctypes.data, values.dtype
        _kernel().row_views(
            NUMPY_API,
            items=place,
            values=values,
            dtype=dtype,
            data=data,
            item_size=dtype.itemsize,
            writable=values.flags.writeable,
            valid=valid,
            offsets=offsets,
        )
        return rows

    def pad(self, length: int, fill: Any) -> Array:
        """Pad rows to `length` items: row i is ``values[offsets[i]:offsets[i + 1]]``, and then items of `fill`.

        The offsets are int64; no row has more items.
        """
        values, offsets = self
        rows, inner = len(offsets) - 1, values.shape[1:]
        shape = (rows, length, *inner)
        if values.dtype.kind in "OT":
            out = np.full(shape, fill, values.dtype)
            starts, lengths = offsets[:-1], np.diff(offsets)
            Runs.copy(
                values, starts, lengths=lengths, out=out.reshape(rows * length, *inner), places=np.arange(rows) * length
            )
            return out
        out = np.empty(shape, values.dtype)
        if out.size:
            item = np.full((1, *inner), fill, values.dtype)
            values, offsets = np.ascontiguousarray(values), np.ascontiguousarray(offsets)
            _kernel().pad_rows(_bytes_of(values), offsets, _bytes_of(item), _bytes_of(out), length)
        return out

    def text(self, valid: Array | None, *, missing: bool = False) -> Array:
        """An array of `Dtype.text`: slot i is the UTF-8 of row i.

        Where `valid` has False the slot is None; without `valid`, the dtype has None only if `missing`.
        """
        dtype = Dtype.text(missing=missing or valid is not None)
        items = np.empty(len(self.offsets) - 1, dtype)
        if len(items):
            _kernel().fill_text(NUMPY_API, items.dtype, items.ctypes.data, valid, self.offsets, self.values)
        return items

    @staticmethod
    def objects(parts: Sequence[_Slots], threads: int = 1) -> Array:
        """An array of ``bytes`` objects of all parts, made by `threads`: a part has bytes, offsets, and a mask or None.

        The object is None where the mask has False.
        """
        items = np.empty(sum(len(offsets) - 1 for _, offsets, _ in parts), object)
        pieces = [piece for part in parts for piece in _pieces(*part)]
        for _ in ordered(_filled_in(items, pieces), min(threads, cpu_count(), len(pieces)), "bytes"):
            pass
        return items

    @staticmethod
    def copy(values: Array, begins: Array, lengths: Array, out: Array, places: Array) -> None:
        """Copy runs of items: ``out[places[i]:places[i] + lengths[i]] = values[begins[i]:begins[i] + lengths[i]]``.

        Both arrays have the same dtype and inner shape, and are contiguous; begins, lengths and places are int64. Runs
        of `out` must not overlap.
        """
        inner: Any = np.prod(values.shape[1:], dtype=np.int64)
        item_size = int(inner) * values.itemsize
        if values.dtype.kind not in "OT" and item_size and out.size:
            arguments = (np.ascontiguousarray(numbers, np.int64) for numbers in (begins, lengths, places))
            begins, lengths, places = arguments
            values = np.ascontiguousarray(values)
            _kernel().copy_runs(_bytes_of(values), begins, lengths, item_size, _bytes_of(out), places)
            return
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        out[np.repeat(places, lengths) + within] = values[np.repeat(begins, lengths) + within]

    @staticmethod
    def chosen_offsets(arrays: Sequence[Runs], owners: Array | None, rows: Array) -> Array:
        """The offsets of chosen rows one after the other: ``rows[i]`` of ``arrays[owners[i]]``, or of the only array.

        `owners` and `rows` are int64.
        """
        offsets = np.zeros(len(rows) + 1, np.int64)
        _kernel().chosen_offsets(*_parts(arrays), owners, rows, offsets)
        return offsets

    @staticmethod
    def gather(arrays: Sequence[Runs], owners: Array | None, rows: Array, offsets: Array, out: Array) -> None:
        """Copy chosen rows to where their `chosen_offsets` say."""
        _kernel().gather_runs(*_parts(arrays), owners, rows, offsets, _bytes_of(out))


class NumberColumn(NamedTuple):
    """A column of batches, and arrays with an item for each row of all batches."""

    number: int
    values: Array  # a null becomes 0; may be the memory of the only batch
    missing: Array | None  # True where there is a null; None only if there are none

    @staticmethod
    def join(batches: Sequence[Any], columns: Sequence[NumberColumn], threads: int = 1) -> None:
        """Fill arrays with columns of ``pyarrow.RecordBatch``es: integers and floats of the array's dtype."""
        arrays = [batch.__arrow_c_array__()[1] for batch in batches]
        joined = [
            (c.number, c.values.itemsize, _address(c.values), _address(c.missing)) for c in columns
        ]  # JoinedNumbers
        fields = np.array(joined, np.int64).reshape(-1, 4)
        sizes = np.cumsum([column.values.nbytes for column in columns])
        count = min(threads, cpu_count(), len(columns)) if len(columns) and sizes[-1] >= LIMITS.joined_bytes else 1
        ends = np.searchsorted(sizes, sizes[-1] * np.arange(1, count) // count).tolist() if count > 1 else []
        calls = (partial(_kernel().join_numbers, arrays, part) for part in np.split(fields, ends))
        for _ in ordered(calls, count, "numbers"):
            pass


_kernel = cache(partial(import_module, "tfrecord_io.bytes._native._kernel"))


def _parts(arrays: Sequence[Runs]) -> tuple[list[Array], list[Array], int]:
    """The arguments of the kernel: the values and offsets of all, and the size of an item."""
    return [_bytes_of(values) for values, _ in arrays], [offsets for _, offsets in arrays], arrays[0][0].itemsize


def _bytes_of(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _address(array: Array | None) -> int:
    return 0 if array is None else array.__array_interface__["data"][0]


def _filled_in(items: Array, pieces: Sequence[_Slots]) -> Iterator[Callable[[], None]]:
    """Make the objects, which needs the GIL; the calls, which do not, copy their bytes."""
    kernel, at, room = _kernel(), items.ctypes.data, _Room(sum(map(_heap_bytes, pieces)))
    for data, offsets, valid in pieces:
        room.prepare(_heap_bytes((data, offsets, valid)))
        kernel.make_bytes(at, valid, offsets, data)
        yield partial(kernel.fill_bytes, at, valid, offsets, data)
        at += _POINTER_BYTES * (len(offsets) - 1)


class _Room:
    """Memory of the heap for objects of `total` bytes, whose pages the kernel makes in advance."""

    def __init__(self, total: int) -> None:
        self._total, self._left = total, 0
        self._held: object = None

    def prepare(self, size: int) -> None:
        """Make room for the next objects, of `size` bytes."""
        if size > self._left and self._total >= _LEAST_ROOM_BYTES:
            self._held = None  # freed first
            self._left = min(self._total, max(size, _ROOM_BYTES))
            self._held = _kernel().heap_room(self._left)
        self._left -= size
        self._total -= size


def _heap_bytes(slots: _Slots) -> int:
    """The memory that objects take of the heap of the C library."""
    _, offsets, _ = slots
    count, size = len(offsets) - 1, int(offsets[-1] - offsets[0])
    return size + _OBJECT_BYTES * count if size >= _SMALL_BYTES * count else 0


def _pieces(data: Array, offsets: Array, valid: Array | None) -> Iterator[_Slots]:
    """Slots of about `_OBJECT_PIECE_BYTES`."""
    offsets = np.ascontiguousarray(offsets, np.int64)
    cuts = np.searchsorted(offsets, np.arange(offsets[0] + _OBJECT_PIECE_BYTES, offsets[-1], _OBJECT_PIECE_BYTES))
    for begin, end in pairwise([0, *cuts.tolist(), len(offsets) - 1]):
        yield data, offsets[begin : end + 1], None if valid is None else valid[begin:end]
