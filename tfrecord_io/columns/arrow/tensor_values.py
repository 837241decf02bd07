"""Columns of tensors as NumPy arrays, and back: views of Arrow's memory where possible.

A tensor's bytes are the same in NumPy, in Arrow's storage and in a record, so arrays in C order and little-endian are
not copied; those that are strided, big-endian or have null rows are.

A function is named after what it turns into what: a *column* is an Arrow array of a tensor type (an *array* if dtype
and shape are passed next to it), *tensors* are a `TensorValues`, *cells* are ndarrays or None, one for each row.

    column → tensors → cells, values         column_to_tensors, tensors_to_cells, tensors_to_values
    column → cells, ndarray                  column_to_cells, column_to_nested_cells, column_to_ndarray
    cells, ndarray, tensors → column         cells_to_column, ndarray_to_column, tensors_to_column

Tests: tests/columns/arrow/test_tensor_values_tensor_builder.py and tests/laws/test_tensors_round_trip.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array, Dtype
from tfrecord_io.columns.arrow.buffers import ArrayBuffers, bitmap_of, fixed_width, list_array, offsets_of, scatter
from tfrecord_io.columns.arrow.plain_values import plain_array
from tfrecord_io.columns.schema.column_features import fixed_part
from tfrecord_io.columns.schema.tensor_types import (
    axes_of,
    element_and_shape,
    is_any_tensor,
    is_fixed_shape_tensor,
    permutation_of,
    tensor_type,
    variable_shape_tensor,
)
from tfrecord_io.errors import EncodeError

Shape = tuple[int, ...]

_LAST_CHARACTER = 0x10FFFF  # of Unicode


@dataclass(slots=True, eq=False, repr=False)
class TensorValues:
    """The tensors of a column, one after another, null rows left out."""

    element: Dtype
    data: Array  # uint8: the bytes of all, C order, little-endian
    offsets: Array  # int64: the byte at which each begins, and the end of the last
    shapes: Array | Shape  # int64 [tensors, rank]; a tuple where all have the same
    valid: Array | None = None  # a bool for each row; None: no nulls

    @property
    def rank(self) -> int:
        return len(self.shapes) if isinstance(self.shapes, tuple) else int(self.shapes.shape[1])

    @property
    def counts(self) -> Array:
        """Number of values of each tensor."""
        return np.diff(self.offsets) // self.element.itemsize

    @property
    def shape_matrix(self) -> Array:
        """The shape of each tensor: int64, [tensors, rank]."""
        return np.broadcast_to(np.asarray(self.shapes, np.int64), (len(self), self.rank))

    @staticmethod
    def array_of(cells: Sequence[Array | None]) -> tuple[pa.Array, Dtype]:
        """A column of the arrays of a sequence, None where one is missing; and their dtype."""
        element, shape = shape_of_cells(cells)
        return cells_to_column(cells, element, shape), element

    @staticmethod
    def dtype_of(dtype: Any) -> Dtype:
        """The row of the table of dtypes for one of NumPy; EncodeError if it has none."""
        return element_of_dtype(dtype)

    def cells(self) -> Iterator[Array]:
        """The tensors one by one: views."""
        return tensors_to_cells(self)

    def ndarray(self) -> Array:
        """The values of all tensors: an array of one axis, a view."""
        return tensors_to_values(self)

    def to_array(self, rows: int) -> pa.Array:
        """A column of `rows` (including the null ones) of these tensors."""
        return tensors_to_column(self, rows)

    def __len__(self) -> int:
        return len(self.offsets) - 1


def array_to_tensors(
    array: pa.Array, element: Dtype, shape: tuple[int | None, ...], valid: Array | None = None
) -> TensorValues:
    """The bytes of a column's tensors in their logical order (slices and permutations are honoured), without null rows.

    Dtype and shape are those of the type, by `element_and_shape`. A row that is not `valid` is null whatever the
    array says (its parent struct is null). A null inside a tensor, or a shape that does not fit its values, is an
    EncodeError whose ``record`` is the row.
    """
    storage, type_ = array.storage, array.type
    if array.null_count:
        not_null = np.asarray(array.is_valid())
        valid = not_null if valid is None else not_null & valid
    if is_fixed_shape_tensor(type_):
        data = _fixed_bytes(storage, element, type_, valid)
        size = int(np.prod(type_.shape)) * _width(element)
        if valid is not None:
            data = data.reshape(len(storage), size)[valid].reshape(-1) if size else data[:0]
        present = len(storage) if valid is None else int(np.count_nonzero(valid))
        offsets = np.arange(present + 1, dtype=np.int64) * size
        return TensorValues(element, data, offsets=offsets, shapes=tuple(shape), valid=valid)  # type: ignore[arg-type]  # none is unknown
    return _variable_tensors(storage, element, type_, valid)


def column_to_tensors(array: pa.Array, field: pa.Field) -> TensorValues:
    """`array_to_tensors` for an array and its field, whose metadata may state the dtype."""
    return array_to_tensors(array, *element_and_shape(field))


def column_to_ndarray(array: pa.Array, field: pa.Field) -> Array:
    """A column of tensors of one shape as an array [rows, *shape], zeros in null rows. A view where possible."""
    tensors = column_to_tensors(array, field)
    assert isinstance(tensors.shapes, tuple)
    values = tensors_to_values(tensors).reshape(len(tensors), *tensors.shapes)
    return values if tensors.valid is None else scatter(values, tensors.valid)


def column_to_cells(array: pa.Array, field: pa.Field) -> Array:
    """The tensors of a column as an object array of ndarrays, None where null. Views where possible."""
    tensors = column_to_tensors(array, field)
    cells = np.empty(len(array), object)
    rows = np.arange(len(array)) if tensors.valid is None else np.flatnonzero(tensors.valid)
    for row, tensor in zip(rows.tolist(), tensors_to_cells(tensors), strict=True):
        cells[row] = tensor
    return cells


def tensors_to_cells(tensors: TensorValues) -> Iterator[Array]:
    """The tensors one by one: views."""
    flat = tensors_to_values(tensors)
    if isinstance(tensors.shapes, tuple):
        whole = flat.reshape(len(tensors), *tensors.shapes)
        yield from (whole[i, ...] for i in range(len(tensors)))
        return
    at = (tensors.offsets // tensors.element.itemsize).tolist()
    for i, shape in enumerate(tensors.shapes.tolist()):
        yield flat[at[i] : at[i + 1]].reshape(shape)


def tensors_to_values(tensors: TensorValues) -> Array:
    """The values of all tensors: an array of one axis, a view."""
    dtype = tensors.element.dtype
    return tensors.data.view(dtype) if tensors.data.size else np.empty(0, dtype)


def has_nested_cells(type_: pa.DataType) -> bool:
    """True if `column_to_nested_cells` takes columns of a type: tensors, and lists of them that have offsets."""
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_)
    return is_any_tensor(type_.value_type if is_list else type_)


def column_to_nested_cells(array: pa.Array, field: pa.Field) -> Array:
    """`column_to_cells`, also of a column of lists of tensors.

    A list is an ndarray [steps, *shape] if its tensors are of one shape, else an object array of ndarrays.
    """
    if is_any_tensor(field.type):
        return column_to_cells(array, field)
    step = pa.field("", field.type.value_type, metadata=field.metadata)
    offsets = np.asarray(array.offsets)
    values = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    is_dense = is_fixed_shape_tensor(step.type) and not values.null_count
    steps = column_to_ndarray(values, step) if is_dense else column_to_cells(values, step)
    rows = np.empty(len(array), object)
    for row in np.flatnonzero(np.asarray(array.is_valid())).tolist():
        rows[row] = steps[offsets[row] - offsets[0] : offsets[row + 1] - offsets[0]]
    return rows


def flat_values(array: pa.Array, field: pa.Field) -> tuple[pa.Array, Array, Array]:
    """All values of a column of tensors without nulls, the number of values of each tensor, and its shape.

    Values that Arrow cannot hold, or that have no order, are given as nulls.
    """
    tensors = column_to_tensors(array, field)
    values = tensors_to_values(tensors)
    if tensors.element.is_extension:
        values = values.astype(tensors.element.wide)
    try:
        plain = plain_array(values) if tensors.element.has_order else pa.nulls(len(values))
    except (pa.ArrowException, ValueError):  # a unit that Arrow does not have, or half of a character
        plain = pa.nulls(len(values))
    return plain, tensors.counts, tensors.shape_matrix


def first_invalid(element: Dtype, data: Array) -> int:
    """The position of the first bytes that are not a value (a bool other than 0 and 1, not a character); or −1.

    NumPy would take them, and fail later.

    >>> from tfrecord_io.bytes.format.dtypes import Dtype
    >>> first_invalid(Dtype.of_name("bool"), np.array([0, 1, 2], np.uint8))
    2
    """
    if element.name == "bool":
        bad, width = data > 1, 1
    elif element.dtype.kind == "U":
        bad, width = data[: len(data) // 4 * 4].view("<u4") > _LAST_CHARACTER, 4
    else:
        return -1
    return int(bad.argmax()) * width if bad.any() else -1


def misfits(shapes: Array, declared: tuple[int | None, ...]) -> Array:
    """Which rows of a matrix of shapes differ from the declared shape, in which None is an unknown dimension."""
    axes = np.array([-1 if axis is None else axis for axis in declared], np.int64)
    return np.asarray(((axes >= 0) & (shapes != axes)).any(axis=1))


def shapes_of_counts(counts: Array, declared: tuple[int | None, ...]) -> Array:
    """The shapes of tensors with these numbers of values: int64 [tensors, rank]; one dimension may be unknown.

    >>> shapes_of_counts(np.array([6, 2]), (None, 2))
    array([[3, 2],
           [1, 2]])
    """
    fixed = fixed_part(declared)
    length = counts // fixed if fixed else counts
    return np.stack([length if axis is None else np.full(len(counts), axis) for axis in declared], axis=1)


def _width(element: Dtype) -> int:
    """Bytes of one Arrow value."""
    return max(element.arrow.bit_width // 8, 1)


def _bytes_of(values: pa.Array, width: int) -> Array:
    """The bytes of a fixed-width array's slots; of bools, which Arrow packs, one each."""
    if pa.types.is_boolean(values.type):
        return ArrayBuffers(values).numbers.view(np.uint8)
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.empty(0, np.uint8)
    return np.frombuffer(buffer, np.uint8)[values.offset * width : (values.offset + len(values)) * width]


def _fixed_bytes(storage: pa.Array, element: Dtype, type_: pa.DataType, valid: Array | None) -> Array:
    size = storage.type.list_size
    values = storage.values.slice(storage.offset * size, len(storage) * size)
    if values.null_count:
        missing = np.asarray(values.is_null()).reshape(-1, size).any(axis=1)
        missing &= True if valid is None else valid
        if missing.any():
            raise _inner_null(int(missing.argmax()))
    width = _width(element)
    data = _bytes_of(values, width)
    order = permutation_of(type_)
    if order is None:
        return data
    cells = data.reshape(len(storage), *type_.shape, width)
    permuted = cells.transpose(0, *(axis + 1 for axis in order), len(order) + 1)
    return np.ascontiguousarray(permuted).reshape(-1)


def _inner_null(row: int) -> EncodeError:
    return EncodeError("a null inside a tensor cannot be stored in a TFRecord", record=row, hint="fill it")


def _variable_tensors(storage: pa.Array, element: Dtype, type_: pa.DataType, valid: Array | None) -> TensorValues:
    """The tensors of a column of several shapes, whose storage has a list of values and a list of sizes for each row.

    Rows that are not `valid` are left out first; then no list, size or value may be null, and each shape has to fit its
    values and the type. Values are a view of the storage, unless the type permutes the axes: then those of each tensor
    are copied in their logical order, as its shape is. The sizes also have the axes of the element (the two parts of a
    complex number), which shapes do not.
    """
    lists, sizes = storage.field("data"), storage.field("shape")
    rows = np.arange(len(storage))
    if valid is not None:
        present, rows = pa.array(valid), np.flatnonzero(valid)
        lists, sizes = lists.filter(present), sizes.filter(present)
    ndim = sizes.type.list_size
    axes = sizes.values.slice(sizes.offset * ndim, len(sizes) * ndim)
    if lists.null_count or sizes.null_count or axes.null_count:
        missing = np.asarray(lists.is_null()) | np.asarray(sizes.is_null())
        missing |= np.asarray(axes.is_null()).reshape(-1, ndim).any(axis=1)
        row = int(rows[missing.argmax()])
        raise EncodeError("a tensor without values or without a shape", record=row, hint="make the whole row null")
    shapes = np.asarray(axes).astype(np.int64).reshape(len(sizes), ndim)
    begins = ArrayBuffers(lists).offsets.astype(np.int64)
    values = lists.values.slice(int(begins[0]), int(begins[-1] - begins[0]))
    begins -= begins[0]
    if values.null_count:
        at = int(np.searchsorted(begins, int(np.asarray(values.is_null()).argmax()), side="right")) - 1
        raise _inner_null(int(rows[at]))
    order = permutation_of(type_) or tuple(range(ndim))
    _refuse_misfits(shapes, shapes[:, order], axes=axes_of(type_), counts=np.diff(begins), rows=rows)
    width = _width(element)
    data, offsets = _bytes_of(values, width), begins * width
    if list(order) != sorted(order):
        pieces = [data[:0]]
        for begin, end, shape in zip(offsets[:-1], offsets[1:], shapes.tolist(), strict=True):
            pieces.append(data[begin:end].reshape(*shape, width).transpose(*order, len(order)).reshape(-1))
        data, shapes = np.concatenate(pieces), shapes[:, order]
    return TensorValues(element, data, offsets=offsets, shapes=shapes[:, : ndim - len(element.inner)], valid=valid)


def _refuse_misfits(stored: Array, logical: Array, axes: tuple[int | None, ...], counts: Array, rows: Array) -> None:
    """Refuse shapes that are negative, do not have as many values as the tensor, or differ from the type's."""
    bad = (stored < 0).any(axis=1) | (stored.astype(np.float64).prod(axis=1) != counts)
    differs = misfits(logical, axes)
    if not (bad | differs).any():
        return
    at = int((bad | differs).argmax())
    shape, row = tuple(stored[at].tolist()), int(rows[at])
    if bad[at]:
        reason = f"the shape {shape} does not fit its {counts[at]} values"
        raise EncodeError(reason, record=row, expected=str(shape), got=int(counts[at]))
    reason = f"the shape {shape} is not the one that the column's type states, {axes}"
    raise EncodeError(reason, record=row, expected=str(axes), got=shape)


def ndarray_to_column(values: Array, valid: Array | None = None) -> tuple[pa.Array, Dtype]:
    """A column of the tensors of an array, whose first axis counts the rows; null where they are not `valid`.

    >>> column, element = ndarray_to_column(np.zeros((3, 28, 28), np.uint8))
    >>> column.type.shape, element.name
    ([28, 28], 'uint8')
    """
    element = element_of_dtype(values.dtype)
    return _fixed_shape_array(
        element, values.shape[1:], rows=len(values), data=_payload_of(values, element), valid=valid
    ), element


def shape_of_cells(cells: Sequence[Array | None]) -> tuple[Dtype, tuple[int | None, ...]]:
    """The dtype of a sequence of arrays, and their shape; all of its axes are None where shapes differ.

    EncodeError if dtypes or ranks differ (``record`` is the first such row), or the dtype is not in the table.
    """
    valid = _present(cells)
    arrays = [cell for cell in cells if cell is not None]
    if not arrays:
        raise EncodeError("a column of no array has no dtype")
    element = element_of_dtype(_common_dtype(arrays, valid))
    rank = arrays[0].ndim
    for row, array in zip(np.flatnonzero(valid), arrays, strict=True):
        if array.ndim != rank:
            reason = f"its array has {array.ndim} dimension{'' if array.ndim == 1 else 's'}, earlier ones have {rank}"
            advice = "all must have the same number of dimensions"
            raise EncodeError(reason, record=int(row), expected=rank, got=array.ndim, hint=advice)
    is_one_shape = len({array.shape for array in arrays}) == 1
    return element, arrays[0].shape if is_one_shape else (None,) * rank


def cells_to_column(cells: Sequence[Array | None], element: Dtype, shape: tuple[int | None, ...]) -> pa.Array:
    """A column of the arrays of a sequence; dtype and shape are those of the whole column by `shape_of_cells`."""
    present = _present(cells)
    arrays = [cell for cell in cells if cell is not None]
    valid = None if present.all() else present
    if None not in shape:
        fixed = tuple(axis or 0 for axis in shape)
        stacked = np.zeros((len(cells), *fixed), element.dtype)
        for row, array in zip(np.flatnonzero(present), arrays, strict=True):
            stacked[row] = array
        return _fixed_shape_array(element, fixed, rows=len(cells), data=_payload_of(stacked, element), valid=valid)
    pieces = [_payload_of(array, element) for array in arrays]
    matrix = np.array([array.shape for array in arrays], np.int64).reshape(len(arrays), len(shape))
    data = np.concatenate([np.empty(0, np.uint8), *pieces])
    offsets = offsets_of(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    return tensors_to_column(TensorValues(element, data, offsets=offsets, shapes=matrix, valid=valid), len(cells))


def _present(cells: Sequence[Array | None]) -> Array:
    return np.fromiter((cell is not None for cell in cells), np.bool_, len(cells))


def tensors_to_column(tensors: TensorValues, rows: int, type_: pa.DataType | None = None) -> pa.Array:
    """A column of `rows` (including the null ones) from the bytes of its tensors.

    `type_` is its tensor type, made of element and shapes if not given.
    """
    element, valid = tensors.element, tensors.valid
    data = tensors.data[tensors.offsets[0] : tensors.offsets[-1]]
    if isinstance(tensors.shapes, tuple):
        if valid is not None:
            size = int(np.prod(tensors.shapes)) * element.itemsize
            data = scatter(data.reshape(len(tensors), size), valid).reshape(-1)
        return _fixed_shape_array(element, tensors.shapes, rows=rows, data=data, valid=valid, type_=type_)
    matrix = np.asarray(tensors.shapes, np.int64)
    if matrix.size and matrix.max() > np.iinfo(np.int32).max:
        raise EncodeError("a shape has an axis of more than 2147483647", hint="reshape the arrays")
    inner = np.broadcast_to(np.array(element.inner, np.int64), (len(matrix), len(element.inner)))
    axes = np.concatenate([matrix, inner], axis=1).astype(np.int32)
    if type_ is None:
        type_ = variable_shape_tensor(element.arrow, (None,) * tensors.rank + element.inner)
    counts = np.diff(tensors.offsets) // _width(element)
    if valid is not None:
        counts, axes = scatter(counts, valid), scatter(axes, valid)
    offsets = offsets_of(counts)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise EncodeError("a batch of tensors has more than 2147483647 values", hint="pass smaller batches")
    lists, shapes = (type_.storage_type.field(at).type for at in (0, 1))
    flat = fixed_width(pa.int32(), axes.size, nulls=0, validity=None, values=np.ascontiguousarray(axes).reshape(-1))
    sizes = pa.Array.from_buffers(shapes, rows, [None], 0, children=[flat])
    return _tensors(
        type_,
        rows,
        valid,
        [list_array(lists, rows, nulls=0, validity=None, offsets=offsets, values=_values(element, data)), sizes],
    )


def element_of_dtype(dtype: Any) -> Dtype:
    """The element of a NumPy dtype; one that is not in the table of dtypes is an EncodeError."""
    if getattr(dtype, "kind", "") == "T":
        reason = "arrays of NumPy's StringDType with several axes cannot be stored in a TFRecord"
        advice = "convert them to text of one width by numpy.array(array.tolist())"
        raise EncodeError(reason, got=str(dtype), hint=advice)
    try:
        return Dtype.of_name(Dtype.name_of(dtype))
    except ValueError as error:
        raise EncodeError(f"arrays of dtype {dtype} cannot be stored in a TFRecord: {error}", got=str(dtype)) from None


def _common_dtype(arrays: list[Array], valid: Array) -> np.dtype[Any]:
    """The dtype of all; of texts, which NumPy makes as wide as the longest, the widest."""
    first = widest = arrays[0].dtype
    for row, array in zip(np.flatnonzero(valid), arrays, strict=True):
        dtype = array.dtype
        if dtype.kind in "SU" and dtype.kind == first.kind:
            widest = dtype if dtype.itemsize > widest.itemsize else widest
        elif dtype != first and dtype.newbyteorder("=") != first.newbyteorder("="):
            reason, advice = f"its array has dtype {dtype}, earlier ones have {first}", "convert them to one dtype"
            raise EncodeError(reason, record=int(row), expected=str(first), got=str(dtype), hint=advice)
    return widest


def _payload_of(values: Array, element: Dtype) -> Array:
    """The bytes of an array, C order and little-endian; a view if the array is stored so."""
    if values.dtype != element.dtype:
        values = values.astype(element.dtype)
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _fixed_shape_array(
    element: Dtype, shape: Shape, rows: int, data: Array, valid: Array | None, type_: pa.DataType | None = None
) -> pa.Array:
    type_ = tensor_type(element, shape) if type_ is None else type_
    return _tensors(type_, rows, valid, [_values(element, data)])


def _tensors(type_: pa.DataType, rows: int, valid: Array | None, children: list[pa.Array]) -> pa.Array:
    nulls = 0 if valid is None else rows - int(np.count_nonzero(valid))
    bitmap = pa.py_buffer(bitmap_of(valid)) if nulls and valid is not None else None
    storage = pa.Array.from_buffers(type_.storage_type, rows, [bitmap], nulls, children=children)
    return pa.ExtensionArray.from_storage(type_, storage)


def _values(element: Dtype, data: Array) -> pa.Array:
    """The Arrow array of values whose bytes are `data`."""
    width = _width(element)
    if data.ctypes.data % min(width, 8) and not pa.types.is_fixed_size_binary(element.arrow):
        data = data.copy()
    return fixed_width(element.arrow, data.size // width, nulls=0, validity=None, values=data)
