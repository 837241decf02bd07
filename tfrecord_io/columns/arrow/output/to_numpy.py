"""Arrow columns as NumPy arrays with a row for each record: views of Arrow's memory where possible.

The type of a column decides whether it is `Dense` (each row is one value, or an array of one shape) or `Ragged` (rows
are arrays of different shapes).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, repeat
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import LIMITS, cpu_count, ordered
from tfrecord_io.bytes import Array, ColumnBuffers, Dtype, Kind, Layout, Runs
from tfrecord_io.columns.arrow.buffers import (
    ArrayBuffers,
    number_items,
    numpy_dtype,
    offsets_of,
    scatter,
    struct_fields,
    variable_width,
    writable,
)
from tfrecord_io.columns.arrow.decode.lists import widen
from tfrecord_io.columns.arrow.output.to_python import python_values
from tfrecord_io.columns.arrow.tensor_values import (
    column_to_ndarray,
    column_to_tensors,
    shapes_of_counts,
    tensors_to_values,
)
from tfrecord_io.columns.schema.field import SHAPE_KEY
from tfrecord_io.columns.schema.tensor_types import (
    element_and_shape,
    is_any_tensor,
    is_fixed_shape_tensor,
    is_variable_shape_tensor,
)
from tfrecord_io.columns.schema.types import is_bool8, is_bytes, is_list_like, number_dtype


@dataclass(slots=True)
class Ragged:
    """Rows of values, one after another. Row i is ``values[offsets[i]:offsets[i + 1]]``."""

    values: Array  # of all rows; the first axis counts them
    offsets: Array  # int64 [rows + 1]
    shapes: Array | None = None  # of tensors, whose values are in C order: int64 [rows, rank]
    valid: Array | None = None  # False where a row is missing; such rows have no values, and a shape of zeros

    @classmethod
    def from_present(cls, values: Array, counts: Array, valid: Array | None, shapes: Array | None = None) -> Ragged:
        """Make rows from the counts and shapes of the rows that are not missing."""
        if valid is not None:
            counts, shapes = scatter(counts, valid), None if shapes is None else scatter(shapes, valid)
        return cls(values, offsets_of(counts), shapes, valid)

    @classmethod
    def concatenate(cls, parts: list[Ragged], threads: int = 1) -> Ragged:
        """Join the rows of several arrays."""
        values = concatenate([part.values for part in parts], threads)
        offsets = offsets_of(np.concatenate([part.lengths for part in parts]))
        shapes = [part.shapes for part in parts if part.shapes is not None]
        return cls(values, offsets, np.concatenate(shapes) if shapes else None, joined_valid(parts))

    @staticmethod
    def join(parts: list[Dense | Ragged], threads: int = 1) -> Dense | Ragged:
        """Join the rows of several arrays of one column, in memory of the caller, and writable; empties the list."""
        whole = parts[0]
        if len(parts) > 1 and isinstance(whole, Ragged):
            whole = whole.concatenate(parts, threads)  # type: ignore[arg-type]
        elif len(parts) > 1:
            values, valid = [part.values for part in parts], joined_valid(parts)
            join = _join_texts if whole.values.dtype.kind == "T" else partial(concatenate, threads=threads)
            del whole
            parts.clear()
            whole = Dense(join(values), valid)
        parts.clear()
        whole.values = writable(whole.values)
        return whole

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Array:
        """How many values each row has."""
        return np.diff(self.offsets)

    @property
    def extents(self) -> Array:
        """The size of each row along each axis that varies: int64 [rows, axes]."""
        return self.lengths[:, None] if self.shapes is None else self.shapes

    @property
    def has_inner_axes(self) -> bool:
        """True if rows may differ along other axes than their first one."""
        return self.shapes is not None

    @property
    def step_bytes(self) -> int:
        """Bytes of the shape that `pad_shapes` has for each item of a list."""
        return 0

    def lengths_of(self, begin: int, end: int) -> Array:
        """How many values each of the rows [begin, end) has."""
        return self.offsets[begin + 1 : end + 1] - self.offsets[begin:end]

    @staticmethod
    def shape_of_all(parts: Sequence[Ragged]) -> tuple[int, ...] | None:
        """The shape of every row of several that is not missing; None if they differ or all are missing."""
        present = []
        for part in parts:
            present.append(part.extents if part.valid is None else part.extents[part.valid])
        shapes = np.concatenate(present)
        if not len(shapes) or (shapes != shapes[0]).any():
            return None
        return tuple(shapes[0].tolist())

    @staticmethod
    def joined_objects(parts: Sequence[Ragged]) -> Array:
        """An object array of the rows of several: writable views, None where one is missing; see `Ragged.objects`."""
        rows = [Ragged(writable(part.values), part.offsets, part.shapes, part.valid) for part in parts]
        return np.concatenate([np.empty(0, object), *(part.objects(0, len(part)) for part in rows)])

    @property
    def has_plain_values(self) -> bool:
        """True if the values are numbers in one dimension, without shapes of the rows."""
        return self.shapes is None and is_plain(self.values)

    def common_shape(self) -> tuple[int, ...] | None:
        """The shape of every row that is not missing; None if they differ or all are missing."""
        return Ragged.shape_of_all([self])

    def stack(self, shape: tuple[int, ...]) -> Array:
        """Stack the rows, each of this shape, in one array; zeros (None in objects and text) where a row is missing."""
        inner = self.values.shape[1:]
        if self.valid is None:
            return self.values.reshape(len(self), *shape, *inner)
        rows = empties((len(self), *shape, *inner), self.values.dtype)
        rows[self.valid] = self.values.reshape(np.count_nonzero(self.valid), *shape, *inner) if self.valid.any() else 0
        return rows

    def objects(self, begin: int, end: int) -> Array:
        """An object array of the rows [begin, end): views, None where one is missing.

        >>> Ragged(np.arange(3), np.array([0, 2, 3])).objects(0, 2)
        array([array([0, 1]), array([2])], dtype=object)
        """
        if self.shapes is None and is_plain(self.values):
            valid = None if self.valid is None else self.valid[begin:end]
            return Runs(self.values, self.offsets[begin : end + 1]).views(valid)
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

    def cut_shapes(self, begin: int, end: int) -> Any:
        """Shapes of the tensors of the rows [begin, end): int64 [rows, rank], of lists of them as `cut`; else None."""
        return None if self.shapes is None else self.shapes[begin:end]

    def pad_shapes(self, begin: int, end: int, length: int | None = None, multiple: int = 1) -> Array | None:
        """Shapes of the tensors of rows that are padded so: int64 [rows, rank], of lists of them one axis more."""
        return None if self.shapes is None else self.shapes[begin:end]

    def pad(self, begin: int, end: int, fill: Any, length: int | None = None, multiple: int = 1) -> Array:
        """Pad the rows [begin, end) with `fill` to one array; each axis has the greatest length of the rows.

        The first axis of a row has `length`, at least the greatest, or the next multiple of `multiple`.

        >>> Ragged(np.arange(3), np.array([0, 2, 3])).pad(0, 2, -1)
        array([[ 0,  1],
               [ 2, -1]])
        """
        shapes = self.lengths_of(begin, end)[:, None] if self.shapes is None else self.shapes[begin:end]
        longest, *inner_sizes = shapes.max(axis=0, initial=0).tolist()
        length = -(-longest // multiple) * multiple if length is None else length
        if self.shapes is None:
            return Runs(self.values, self.offsets[begin : end + 1]).pad(length, fill)
        sizes, inner = (length, *inner_sizes), self.values.shape[1:]
        rows = np.full((len(shapes), *sizes, *inner), fill, self.values.dtype)
        places, lengths = _padded_runs(shapes, sizes)
        begins = self.offsets[begin] + np.cumsum(lengths) - lengths
        out = rows.reshape(len(shapes) * math.prod(sizes), *inner)
        Runs.copy(self.values, begins, lengths=lengths, out=out, places=places)
        return rows

    def pack(
        self,
        begin: int,
        end: int,
        bins: Array,
        segments: Array,
        count: int,
        length: int,
        fill: Any,
        ended: Array | None = None,
        last: Any = None,
    ) -> tuple[Array, ...]:
        """Pack the rows [begin, end), one after the other, in `count` bins of `length` values.

        >>> rows, segments = Ragged(np.array([7, 8, 9]), np.array([0, 2, 3])), np.array([1, 2], np.int32)
        >>> rows.pack(0, 2, np.array([0, 0]), segments, 1, 4, 0)
        (array([[7, 8, 9, 0]]), array([[1, 1, 2, 0]], dtype=int32), array([[0, 1, 0, 0]], dtype=int32))

        `bins` has the bin of each row (int64), ascending, and the rows of a bin fit into it; `segments` the number of
        each row within its bin (int32). A row that has `ended` (bool) is followed by the value `last`. Returned are the
        values, [count, length, ...], the segment of each value's row and the number of the value within its row, both
        int32 [count, length] and 0 where a value is missing.
        """
        starts, lengths = self.offsets[begin:end], np.diff(self.offsets[begin : end + 1])
        copied, lengths = lengths, lengths if ended is None else lengths + ended
        before = np.cumsum(lengths) - lengths
        first_row = bins.searchsorted(bins)  # of the bin of each row
        places = bins * length + before - before[first_row]
        values = np.full((count * length, *self.values.shape[1:]), fill, self.values.dtype)
        Runs.copy(self.values, starts, lengths=copied, out=values, places=places)
        if ended is not None and last is not None:
            values[(places + copied)[ended]] = last
        ids, positions = np.zeros(count * length, np.int32), np.zeros(count * length, np.int32)
        Runs.copy(np.repeat(segments, lengths), before, lengths=lengths, out=ids, places=places)
        Runs.copy(
            np.arange(length, dtype=np.int32), np.zeros_like(lengths), lengths=lengths, out=positions, places=places
        )
        shape = (count, length)
        return values.reshape(*shape, *values.shape[1:]), ids.reshape(shape), positions.reshape(shape)

    def truncate(self, most: int, *, from_left: bool = False) -> Ragged:
        """Cut each row to the first `most` items along its first axis, or to the last items.

        >>> Ragged(np.arange(4), np.array([0, 3, 4])).truncate(2, from_left=True)
        Ragged(values=array([1, 2, 3]), offsets=array([0, 2, 3]), shapes=None, valid=None)
        """
        shapes = self.extents
        if not (shapes[:, 0] > most).any():
            return self
        shapes = np.concatenate([np.minimum(shapes[:, :1], most), shapes[:, 1:]], axis=1)
        lengths = shapes.prod(axis=1)
        offsets = offsets_of(lengths)
        values = np.empty((int(offsets[-1]), *self.values.shape[1:]), self.values.dtype)
        begins = self.offsets[1:] - lengths if from_left else self.offsets[:-1]
        Runs.copy(self.values, begins, lengths=lengths, out=values, places=offsets[:-1])
        return Ragged(values, offsets, None if self.shapes is None else shapes, self.valid)


class TensorLists(Ragged):
    """Rows of lists of tensors of several shapes, or of lists, which are tensors of one axis.

    ``values[offsets[i]:offsets[i + 1]]`` are the values of all tensors of row i, each in C order; ``steps`` has the
    shapes of its tensors as row i: its values are int64 [tensors, rank]. ``axes`` are the sizes that all tensors have
    by their type, None where they vary.
    """

    __slots__ = ("axes", "steps")

    def __init__(self, values: Array, steps: Ragged, axes: tuple[int | None, ...], valid: Array | None = None) -> None:
        super().__init__(values, _ends_of(steps.values)[steps.offsets], valid=valid)
        self.steps, self.axes = steps, axes

    @classmethod
    def from_lists(cls, array: pa.Array, field: pa.Field) -> TensorLists:
        """The rows of lists of tensors whose shapes vary by their type, or of lists, of which none is null."""
        tensors, lists = to_rows(array.flatten(), _value_field(field)), ArrayBuffers(array)
        assert isinstance(tensors, Ragged)
        return cls(tensors.values, Ragged(tensors.extents, offsets_of(lists.lengths)), tensor_axes(field), lists.valid)

    @classmethod
    def concatenate(cls, parts: list[TensorLists], threads: int = 1) -> TensorLists:  # type: ignore[override]
        values = concatenate([part.values for part in parts], threads)
        steps = Ragged.concatenate([part.steps for part in parts])
        return cls(values, steps, parts[0].axes, joined_valid(parts))

    @property
    def lengths(self) -> Array:
        """How many tensors each row has."""
        return self.steps.lengths

    @property
    def extents(self) -> Array:
        """How many tensors each row has, and the greatest size of these along each axis: int64 [rows, 1 + rank]."""
        shapes, counts = self.steps.values, self.steps.lengths
        greatest = np.zeros((len(self), shapes.shape[1]), np.int64)
        if len(shapes):
            greatest[counts > 0] = np.maximum.reduceat(shapes, self.steps.offsets[:-1][counts > 0])
        return np.concatenate([counts[:, None], greatest], axis=1)

    @property
    def has_inner_axes(self) -> bool:
        return True

    @property
    def step_bytes(self) -> int:
        return int(self.steps.values.itemsize * self.steps.values.shape[1])

    def lengths_of(self, begin: int, end: int) -> Array:
        return self.steps.lengths_of(begin, end)

    def cut_shapes(self, begin: int, end: int) -> tuple[Array, Array]:
        return self.steps.cut(begin, end)

    def pad_shapes(self, begin: int, end: int, length: int | None = None, multiple: int = 1) -> Array:
        return self.steps.pad(begin, end, 0, length=length, multiple=multiple)

    def pad(self, begin: int, end: int, fill: Any, length: int | None = None, multiple: int = 1) -> Array:
        """Pad lists and tensors of the rows [begin, end): each axis has the greatest length of the rows.

        >>> steps = Ragged(np.array([[2], [1], [1]]), np.array([0, 2, 3]))
        >>> TensorLists(np.arange(4), steps, axes=(None,)).pad(0, 2, -1)
        array([[[ 0,  1],
                [ 2, -1]],
        <BLANKLINE>
               [[ 3, -1],
                [-1, -1]]])
        """
        shapes = self.pad_shapes(begin, end, length, multiple)  # tensors of no values follow those of each list
        rows, length, rank = shapes.shape
        shapes = shapes.reshape(rows * length, rank)
        tensors = Ragged(self.values[self.offsets[begin] : self.offsets[end]], _ends_of(shapes), shapes)
        padded = tensors.pad(0, len(tensors), fill)
        sizes = padded.shape[1:]
        if not len(tensors.values):  # lists without a tensor
            sizes = tuple(size or axis or 0 for size, axis in zip(sizes, self.axes, strict=True))
        return padded.reshape(rows, length, *sizes)

    def truncate(self, most: int, *, from_left: bool = False) -> TensorLists:
        """Cut each list to at most `most` tensors, the first or the last of the list."""
        steps = self.steps.truncate(most, from_left=from_left)
        if steps is self.steps:
            return self
        ends = Ragged(_ends_of(self.steps.values)[1:, None], self.steps.offsets)
        ends = ends.truncate(most, from_left=from_left)
        sizes = steps.values.prod(axis=1)
        values = np.empty(int(sizes.sum()), self.values.dtype)
        places = _ends_of(steps.values)[:-1]
        Runs.copy(self.values, ends.values[:, 0] - sizes, lengths=sizes, out=values, places=places)
        return TensorLists(values, steps, self.axes, self.valid)

    def of_one_shape(self) -> Ragged | None:
        """The rows as lists of tensors of one shape, [tensors, *shape] in each; None if shapes differ, or are none."""
        shapes = self.steps.values
        if not len(shapes) or (shapes != shapes[0]).any():
            return None
        return Ragged(self.values.reshape(len(shapes), *shapes[0].tolist()), self.steps.offsets, valid=self.valid)


def _ends_of(shapes: Array) -> Array:
    """The offsets of tensors of these shapes, int64 [tensors, rank], in the values of all."""
    return offsets_of(shapes.prod(axis=1))


def _padded_runs(shapes: Array, sizes: tuple[int, ...]) -> tuple[Array, Array]:
    """Where the values of tensors stand that are padded to one shape: places and lengths of runs, in C order.

    >>> _padded_runs(np.array([[2, 1], [1, 2]]), (2, 2))
    (array([0, 2, 4]), array([1, 1, 2]))
    """
    varying = np.flatnonzero((shapes != sizes).any(axis=0))
    last = int(varying[-1]) if len(varying) else 0  # the axes after it are not padded: a run has all of their values
    tensors = np.arange(len(shapes))
    places = tensors
    for axis, size in enumerate(sizes[:last]):
        counts = shapes[tensors, axis]
        numbers = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        places, tensors = np.repeat(places, counts) * size + numbers, np.repeat(tensors, counts)
    behind = math.prod(sizes[last + 1 :])
    return places * sizes[last] * behind, shapes[tensors, last] * behind


def is_plain(values: Array) -> bool:
    """True if an array is of one dimension, contiguous, and of numbers."""
    is_own = type(values) is np.ndarray and values.ndim == 1 and values.flags.c_contiguous
    return bool(is_own and values.dtype.kind in "iuf" and values.dtype.isnative)


def joined_valid(parts: Sequence[Any]) -> Array | None:
    """The `valid` of the rows of several; None if no row is missing."""
    if all(part.valid is None for part in parts):
        return None
    return np.concatenate([np.ones(len(part), np.bool_) if part.valid is None else part.valid for part in parts])


def empties(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Zeros; None in an array of objects or of text."""
    if dtype.kind == "T":
        return np.full(shape, None, Dtype.text(missing=True))
    return np.full(shape, None, object) if dtype.kind == "O" else np.zeros(shape, dtype)


def concatenate(arrays: Sequence[Array], threads: int = 1) -> Array:
    """Concatenate arrays in new memory, by at most as many threads as there are processors.

    >>> concatenate([np.arange(2), np.arange(3)])
    array([0, 1, 0, 1, 2])
    """
    count = min(threads, cpu_count(), len(arrays))
    layouts = {(array.dtype, array.shape[1:]) for array in arrays}
    size = sum(array.nbytes for array in arrays)
    is_one_dtype = len(layouts) == 1 and not arrays[0].dtype.hasobject and arrays[0].dtype.kind != "T"
    if count < 2 or size < LIMITS.joined_bytes or not is_one_dtype:
        return np.concatenate(arrays)
    ends = np.cumsum([0, *map(len, arrays)]).tolist()
    whole = np.empty((ends[-1], *arrays[0].shape[1:]), arrays[0].dtype)
    places = (whole[begin:end] for begin, end in pairwise(ends))
    for _ in ordered(map(partial, repeat(np.copyto), places, arrays), count, "join"):
        pass
    return whole


@contextmanager
def memory_errors() -> Iterator[None]:
    """Raise MemoryError where pyarrow fails to make an object of a value.

    Its own error is an ArrowException, not a MemoryError, and quotes the value.
    """
    try:
        yield
    except pa.lib.ArrowException as error:
        raise memory_error(error) from None


def memory_error(error: pa.ArrowException) -> Exception:
    """The MemoryError that an error of `memory_errors` stands for, else the error itself."""
    is_other = type(error) is not pa.lib.ArrowException
    return error if is_other else MemoryError("not enough memory for the objects of a column")


@dataclass(slots=True)
class Dense:
    """Rows of one shape.

    Bytes are objects, text is of NumPy's StringDType; both hold None where a row is missing, numbers zeros.
    """

    values: Array  # the first axis counts the rows
    valid: Array | None = None  # False where a row is missing; None: no row is missing

    @classmethod
    def from_present(cls, values: Array, valid: Array | None) -> Dense:
        """Make rows from those that are not missing; zeros in the others."""
        return cls(values if valid is None else scatter(values, valid), valid)

    @classmethod
    def of_bytes(cls, arrays: Sequence[pa.Array], threads: int = 1) -> Dense:
        """The rows of arrays of bytes, as objects."""
        return cls(Runs.objects([_slots(array) for array in arrays], threads))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def lengths(self) -> Array:
        """How many values each row has."""
        return np.full(len(self.values), math.prod(self.values.shape[1:]))


Rows = Dense | Ragged


def to_rows(array: pa.Array, field: pa.Field, *, missing: bool = False) -> Rows:
    """The rows of a column; with `missing`, an array of text has a dtype with None even if no row is missing.

    >>> to_rows(pa.array([1, None, 3]), pa.field("x", pa.int64())).valid
    array([ True, False,  True])
    >>> to_rows(pa.array([[1, 2], [3]]), pa.field("x", pa.list_(pa.int64()))).offsets
    array([0, 2, 3])
    """
    type_ = field.type
    if is_fixed_shape_tensor(type_):
        return Dense(column_to_ndarray(array, field), ArrayBuffers(array).valid)
    if is_variable_shape_tensor(type_):
        tensors = column_to_tensors(array, field)
        return Ragged.from_present(tensors_to_values(tensors), tensors.counts, tensors.valid, tensors.shape_matrix)
    if is_bool8(type_):
        return Dense(np.asarray(array.storage.fill_null(0)) != 0, ArrayBuffers(array.storage).valid)
    if isinstance(type_, pa.BaseExtensionType):
        return to_rows(array.storage, pa.field(field.name, type_.storage_type))
    if t.is_fixed_size_list(type_):
        size, valid = type_.list_size, ArrayBuffers(array).valid
        values = _items(array.values.slice(array.offset * size, len(array) * size), _value_field(field))
        values = values.reshape(len(array), *(declared_shape(field) or (size,)), *values.shape[1:])
        return Dense(_blank(values, valid), valid)
    if is_list_like(type_):
        if (rows := _number_lists(array, field)) is not None:
            return rows
        counts, valid = ArrayBuffers(array).lengths, ArrayBuffers(array).valid
        values = _items(array.flatten(), _value_field(field))
        present, shape = counts if valid is None else counts[valid], declared_shape(field)
        return Ragged.from_present(values, present, valid, None if shape is None else shapes_of_counts(present, shape))
    return _scalars(array, missing)


def _number_lists(array: pa.Array, field: pa.Field) -> Ragged | None:
    """The rows of lists of numbers, of which none is null, as views; None of other lists."""
    if not (t.is_list(array.type) or t.is_large_list(array.type)) or declared_shape(field) is not None:
        return None
    dtype = number_dtype(array.type.value_type)
    if dtype is None or array.null_count or array.values.null_count:
        return None
    offsets = ArrayBuffers(array).offsets
    begin, end = offsets[[0, -1]].tolist()
    return Ragged(number_items(array.values, dtype)[begin:end], offsets.astype(np.int64) - begin)


def declared_shape(field: pa.Field) -> tuple[int | None, ...] | None:
    """The shape that a schema declares for the values of each list; None if it is one dimension, or not declared.

    None too if several dimensions are unknown: the number of values does not determine them.
    """
    text = (field.metadata or {}).get(SHAPE_KEY)
    if text is None or is_list_like(field.type.value_type):  # lists of lists: the shape is that of the inner ones
        return None
    shape = tuple(json.loads(text))
    return shape if len(shape) > 1 and shape.count(None) < 2 else None


def _value_field(field: pa.Field) -> pa.Field:
    """The field of the values inside a column's lists; the dtype and shape of steps are in the column's metadata."""
    value = field.type.value_field
    has_shape = is_any_tensor(value.type) or is_list_like(value.type)
    metadata = {**(field.metadata or {}), **(value.metadata or {})} if has_shape else value.metadata
    return pa.field("item", value.type, metadata=metadata)


def _items(array: pa.Array, field: pa.Field) -> Array:
    """The values inside lists: an array, of lists of lists an object array of arrays."""
    rows = to_rows(array, field)
    return rows.values if isinstance(rows, Dense) else rows.objects(0, len(rows))


def tensor_axes(field: pa.Field) -> tuple[int | None, ...]:
    """The axes of tensors, or of those in lists, as NumPy has them; None where they vary.

    >>> tensor_axes(pa.field("x", pa.list_(pa.list_(pa.int64()))))
    (None,)
    """
    value = _value_field(field) if is_list_like(field.type) else field
    return element_and_shape(value)[1] if is_any_tensor(value.type) else declared_shape(value) or (None,)


def missing_step(array: pa.Array, field: pa.Field, *, as_objects: bool = True) -> int | None:
    """The first row whose list lacks a value for which NumPy has no None: a step of a feature list without one.

    Tensors of several shapes, and lists in lists, have one as long as they are `as_objects`.
    """
    has_lists = t.is_list(field.type) or t.is_large_list(field.type)
    if not has_lists and as_objects:
        return None
    values, value = array.flatten(), _value_field(field)
    if values.null_count and not (as_objects and _has_none(values, value)):
        at: int | None = int(np.asarray(values.is_null()).argmax())
    else:
        at = None if as_objects or not is_list_like(value.type) else missing_step(values, value)
    return None if at is None else int(np.cumsum(ArrayBuffers(array).lengths).searchsorted(at, side="right"))


def _has_none(array: pa.Array, field: pa.Field) -> bool:
    """True if rows of the column are objects or text, which may be None."""
    rows = to_rows(array.slice(0, 0), field)
    return isinstance(rows, Ragged) or rows.values.dtype.kind in "OT"


def _blank(values: Array, valid: Array | None) -> Array:
    """`values` with zeros where rows are missing; objects have None there already. A copy only if they are not zero."""
    if valid is None or values.dtype.kind in "OT":
        return values
    present = valid.reshape(-1, *(1,) * (values.ndim - 1))
    if values.dtype.kind in "iuf" and not ((values.view(f"u{values.itemsize}") != 0) > present).any():
        return values
    return np.where(present, values, np.zeros((), values.dtype))


def _scalars(array: pa.Array, missing: bool) -> Dense:
    if t.is_dictionary(array.type):
        array = array.dictionary_decode()
    type_ = array.type
    if t.is_null(type_):
        return Dense(np.full(len(array), None, object))
    if t.is_string(type_) or t.is_large_string(type_):
        content, offsets, valid = _slots(array)
        return Dense(Runs(content, offsets).text(valid, missing=missing))
    if t.is_boolean(type_):
        return Dense(np.asarray(array.fill_null(False).cast(pa.uint8())).view(np.bool_), ArrayBuffers(array).valid)
    dtype = numpy_dtype(type_)
    if is_bytes(type_):
        return Dense.of_bytes([array])
    if dtype is None:  # decimals and others
        return Dense(np.fromiter(python_values(array), object, len(array)))
    valid, values = ArrayBuffers(array).valid, ArrayBuffers(array).numbers
    values = values.view(dtype) if values.dtype.itemsize == dtype.itemsize else values.astype(dtype)
    return Dense(_blank(values, valid), valid)


def _slots(array: pa.Array) -> tuple[Array, Array, Array | None]:
    """The bytes of an array of text or bytes, their offsets, and False where a row is missing."""
    buffers = ArrayBuffers(array)
    return buffers.content, buffers.offsets, buffers.valid


def _join_texts(parts: list[Array]) -> Array:
    """Join arrays of text, of which some may not know None; each is freed once it is copied."""
    missing = any(part.dtype != Dtype.text(missing=False) for part in parts)
    whole, end = np.empty(sum(map(len, parts)), Dtype.text(missing=missing)), 0
    while parts:
        part = parts.pop(0)
        begin, end = end, end + len(part)
        whole[begin:end] = part
    return whole


# ---- columns of structs


def leaf_fields(schema: pa.Schema) -> list[pa.Field]:
    """The columns that arrays are made of: those of a schema, with ``outer/inner`` instead of structs."""
    fields = list(schema)
    if not any(map(attrgetter("num_fields"), schema.types)):
        return fields
    empty = [pa.nulls(0, field.type) if field.type.num_fields else None for field in fields]
    return [leaf for field, array in zip(fields, empty, strict=True) for leaf, _ in _leaves(field, array)]


def leaf_arrays(batch: pa.RecordBatch) -> list[pa.Array]:
    """The arrays of `leaf_fields`."""
    if not any(map(attrgetter("num_fields"), batch.schema.types)):
        return list(batch.columns)
    return [leaf for field, array in zip(batch.schema, batch.columns, strict=True) for _, leaf in _leaves(field, array)]


def _leaves(field: pa.Field, array: pa.Array) -> Iterator[tuple[pa.Field, pa.Array]]:
    type_ = field.type
    if not type_.num_fields:
        yield field, array
    elif t.is_struct(type_):
        for child, values in zip(type_, struct_fields(array), strict=True):
            yield from _leaves(child.with_name(f"{field.name}/{child.name}"), values)
    elif is_list_like(type_) and not is_any_tensor(type_) and t.is_struct(type_.value_type):
        offsets = pa.array(offsets_of(ArrayBuffers(array).lengths), pa.int32())
        missing = array.is_null() if array.null_count else None
        for child, values in zip(type_.value_type, struct_fields(array.flatten()), strict=True):
            lists = child.with_type(pa.list_(child)).with_name(f"{field.name}/{child.name}")
            yield from _leaves(lists, pa.ListArray.from_arrays(offsets, values, mask=missing))
    else:
        yield field, array


def listed_values(column: ColumnBuffers | None, kind: Kind) -> tuple[Array, Array, Array]:
    """The values of the lists of a decoded column, bytes as objects; the length of each; True for each that is there.

    None is a column without rows. RowFault if a row has values of another kind.
    """
    lists = ColumnBuffers.nulls("", 0, kind, Layout.LIST) if column is None else widen(column, kind, Layout.LIST)
    assert lists.values is not None
    assert lists.offsets is not None
    counts, present = np.diff(lists.offsets).astype(np.int64), lists.mask
    if kind is not Kind.BYTES:
        return lists.values, counts, present
    assert lists.value_offsets is not None
    texts = variable_width(
        pa.binary(),
        len(lists.value_offsets) - 1,
        nulls=0,
        validity=None,
        offsets=lists.value_offsets,
        values=lists.values,
    )
    with memory_errors():
        return texts.to_numpy(zero_copy_only=False), counts, present
