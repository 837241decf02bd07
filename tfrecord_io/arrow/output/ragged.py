"""Rows that are arrays of different shapes, and how NumPy can represent them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from tfrecord_io.arrow.buffers import offsets_of, scatter, writable
from tfrecord_io.background import ordered
from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.select import get_engine
from tfrecord_io.format.dtypes import text_dtype
from tfrecord_io.options import MIB, cpu_count

_LEAST_BYTES = 8 * MIB  # fewer are copied in about the time that it takes to start threads


@dataclass(slots=True)
class Ragged:
    """Rows of values, one after another. Row i is ``values[offsets[i]:offsets[i + 1]]``."""

    values: Array  # of all rows; the first axis counts them
    offsets: Array  # int64 [rows + 1]
    shapes: Array | None = None  # of tensors, whose values are in C order: int64 [rows, rank]
    valid: Array | None = None  # False where a row is missing; such rows have no values, and a shape of zeros

    @classmethod
    def of_present(cls, values: Array, counts: Array, valid: Array | None, shapes: Array | None = None) -> Ragged:
        """From the counts and shapes of those rows that are not missing."""
        if valid is not None:
            counts, shapes = scatter(counts, valid), None if shapes is None else scatter(shapes, valid)
        return cls(values, offsets_of(counts), shapes, valid)

    @classmethod
    def joined(cls, parts: list[Ragged], threads: int = 1) -> Ragged:
        """The rows of several."""
        values = concatenated([part.values for part in parts], threads)
        offsets = offsets_of(np.concatenate([part.lengths for part in parts]))
        shapes = [part.shapes for part in parts if part.shapes is not None]
        return cls(values, offsets, np.concatenate(shapes) if shapes else None, joined_valid(parts))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Array:
        """How many values each row has."""
        return np.diff(self.offsets)

    def common_shape(self) -> tuple[int, ...] | None:
        """The shape of every row that is not missing; None if they differ or all are missing."""
        return shape_of_all([self])

    def present_shapes(self) -> Array:
        """The shapes of the rows that are not missing: int64 [rows, rank]."""
        shapes = self.lengths[:, None] if self.shapes is None else self.shapes
        return shapes if self.valid is None else shapes[self.valid]

    def stacked(self, shape: tuple[int, ...]) -> Array:
        """One array, each row of this shape; zeros (None in objects and text) where a row is missing."""
        inner = self.values.shape[1:]
        if self.valid is None:
            return self.values.reshape(len(self), *shape, *inner)
        rows = empties((len(self), *shape, *inner), self.values.dtype)
        rows[self.valid] = self.values.reshape(np.count_nonzero(self.valid), *shape, *inner) if self.valid.any() else 0
        return rows

    def objects(self, begin: int, end: int) -> Array:
        """An object array of the rows [begin, end): views, None where one is missing.

        Examples
        --------
        >>> Ragged(np.arange(3), np.array([0, 2, 3])).objects(0, 2)
        array([array([0, 1]), array([2])], dtype=object)
        """
        if self.shapes is None and is_plain(self.values):
            valid = None if self.valid is None else self.valid[begin:end]
            return get_engine().row_views(self.values, self.offsets[begin : end + 1], valid)
        return self._slices(begin, end)

    def _slices(self, begin: int, end: int) -> Array:
        rows = np.empty(end - begin, object)
        at = self.offsets[begin : end + 1].tolist()
        present = [True] * len(rows) if self.valid is None else self.valid[begin:end].tolist()
        for i in range(len(rows)):
            if present[i]:
                row = self.values[at[i] : at[i + 1]]
                rows[i] = row if self.shapes is None else row.reshape(self.shapes[begin + i])
        return rows

    def cut(self, begin: int, end: int) -> tuple[Array, Array]:
        """Values and offsets of the rows [begin, end)."""
        first, last = self.offsets[begin], self.offsets[end]
        return self.values[first:last], self.offsets[begin : end + 1] - first

    def padded(self, begin: int, end: int, fill: Any) -> Array:
        """One array of the rows [begin, end); each axis has the greatest length of the rows, and the rest is `fill`.

        Examples
        --------
        >>> Ragged(np.arange(3), np.array([0, 2, 3])).padded(0, 2, -1)
        array([[ 0,  1],
               [ 2, -1]])
        """
        values, offsets = self.cut(begin, end)
        if self.shapes is None:
            lengths = np.diff(offsets)
            longest = int(lengths.max(initial=0))
            rows = np.full((len(lengths), longest, *values.shape[1:]), fill, values.dtype)
            rows[np.arange(longest) < lengths[:, None]] = values
            return rows
        shapes = self.shapes[begin:end]
        rows = np.full((len(shapes), *shapes.max(axis=0, initial=0).tolist()), fill, values.dtype)
        for i, shape in enumerate(shapes.tolist()):
            corner: tuple[slice, ...] = tuple(map(slice, shape))
            rows[i][corner] = values[offsets[i] : offsets[i + 1]].reshape(shape)
        return rows


def is_plain(values: Array) -> bool:
    """Whether an array is of one dimension, contiguous, and of numbers."""
    is_own = type(values) is np.ndarray and values.ndim == 1 and values.flags.c_contiguous
    return bool(is_own and values.dtype.kind in "iuf" and values.dtype.isnative)


def shape_of_all(parts: Sequence[Ragged]) -> tuple[int, ...] | None:
    """The shape of every row of several that is not missing; None if they differ or all are missing."""
    shapes = np.concatenate([part.present_shapes() for part in parts])
    if not len(shapes) or (shapes != shapes[0]).any():
        return None
    return tuple(shapes[0].tolist())


def joined_objects(parts: Sequence[Ragged]) -> Array:
    """An object array of the rows of several: writable views, None where one is missing; see `Ragged.objects`."""
    rows = [Ragged(writable(part.values), part.offsets, part.shapes, part.valid) for part in parts]
    return np.concatenate([np.empty(0, object), *(part.objects(0, len(part)) for part in rows)])


def joined_valid(parts: Sequence[Any]) -> Array | None:
    """The `valid` of the rows of several; None if no row is missing."""
    if all(part.valid is None for part in parts):
        return None
    return np.concatenate([np.ones(len(part), np.bool_) if part.valid is None else part.valid for part in parts])


def empties(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Zeros; None in an array of objects or of text."""
    if dtype.kind == "T":
        return np.full(shape, None, text_dtype(missing=True))
    return np.full(shape, None, object) if dtype.kind == "O" else np.zeros(shape, dtype)


def concatenated(arrays: Sequence[Array], threads: int = 1) -> Array:
    """The arrays one after the other, in new memory, by at most as many threads as there are processors.

    Examples
    --------
    >>> concatenated([np.arange(2), np.arange(3)])
    array([0, 1, 0, 1, 2])
    """
    count = min(threads, cpu_count(), len(arrays)) if sum(array.nbytes for array in arrays) >= _LEAST_BYTES else 1
    same = {(array.dtype, array.shape[1:]) for array in arrays}
    if count < 2 or len(same) > 1 or arrays[0].dtype.hasobject or arrays[0].dtype.kind == "T":
        return np.concatenate(arrays)
    ends = np.cumsum([0, *map(len, arrays)]).tolist()
    whole = np.empty((ends[-1], *arrays[0].shape[1:]), arrays[0].dtype)
    places = (whole[begin:end] for begin, end in pairwise(ends))
    for _ in ordered(map(partial, repeat(np.copyto), places, arrays), count, "join"):
        pass
    return whole
