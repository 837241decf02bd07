"""Columns of tensors as NumPy arrays: views of Arrow's memory, or copies where it is permuted or cut by nulls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import number_view, offset_view
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError
from tfrecord_io.format.dtypes import Element
from tfrecord_io.schema.tensor_types import (
    axes_of,
    element_and_shape,
    is_any_tensor,
    is_fixed_shape_tensor,
    permutation_of,
)

Shape = tuple[int, ...]

_LAST_CHARACTER = 0x10FFFF  # of Unicode


@dataclass(frozen=True, slots=True)
class TensorValues:
    """The tensors of a column, one after another, null rows left out.

    Attributes
    ----------
    of : Element
    data : uint8 ndarray
        The bytes of all, C order, little-endian.
    offsets : int64 ndarray
        Byte at which each begins, and the end of the last.
    shapes : int64 ndarray of shape [tensors, rank], or one shape
        A tuple where all have the same.
    valid : bool ndarray, optional
        One for each row; None: no nulls.
    """

    of: Element
    data: Array
    offsets: Array
    shapes: Array | Shape
    valid: Array | None = None

    @property
    def rank(self) -> int:
        return len(self.shapes) if isinstance(self.shapes, tuple) else int(self.shapes.shape[1])

    def __len__(self) -> int:
        return len(self.offsets) - 1


def items_of(array: pa.Array, field: pa.Field, valid: Array | None = None) -> TensorValues:
    """The bytes of a column's tensors in their logical order; null rows are left out.

    Parameters
    ----------
    array : pyarrow.Array
        Of a type of tensors; slices and permutations are honoured.
    field : pyarrow.Field
        Of the column, for the mark of its dtype.
    valid : bool ndarray, optional
        False: the row is null, whatever the array says, as below a struct that is null.
    """
    of, shape = element_and_shape(field)
    storage = array.storage
    if array.null_count:
        own = np.asarray(array.is_valid())
        valid = own if valid is None else own & valid
    if is_fixed_shape_tensor(field.type):
        data = _fixed_bytes(storage, of, field.type, valid)
        size = int(np.prod(field.type.shape)) * _width(of)
        if valid is not None:
            data = data.reshape(len(storage), size)[valid].reshape(-1) if size else data[:0]
        present = len(storage) if valid is None else int(np.count_nonzero(valid))
        return TensorValues(of, data, np.arange(present + 1, dtype=np.int64) * size, tuple(shape), valid)  # type: ignore[arg-type]
    return _variable_items(storage, of, field.type, valid)


def to_ndarray(array: pa.Array, field: pa.Field) -> Array:
    """The array of a column of tensors of one shape: [rows, *shape], zeros in null rows. A view where Arrow's memory allows it."""
    items = items_of(array, field)
    assert isinstance(items.shapes, tuple)
    if items.valid is not None:
        found = np.zeros((len(array), *items.shapes), items.of.dtype)
        found[items.valid] = items.data.view(items.of.dtype).reshape(-1, *items.shapes) if items.data.size else 0
        return found
    return _viewed(items.data, items.of).reshape(len(array), *items.shapes)


def to_cells(array: pa.Array, field: pa.Field) -> Array:
    """The tensors of a column as an object array of ndarrays, None where null. Views of Arrow's memory where it allows it."""
    items = items_of(array, field)
    found = np.empty(len(array), object)
    rows = np.arange(len(array)) if items.valid is None else np.flatnonzero(items.valid)
    for row, tensor in zip(rows.tolist(), cells_of(items), strict=True):
        found[row] = tensor
    return found


def cells_of(items: TensorValues) -> Iterator[Array]:
    """The tensors one by one: views."""
    flat = _viewed(items.data, items.of)
    if isinstance(items.shapes, tuple):
        whole = flat.reshape(len(items), *items.shapes)
        yield from (whole[at, ...] for at in range(len(items)))
        return
    at = (items.offsets // items.of.itemsize).tolist()
    for i, shape in enumerate(items.shapes.tolist()):
        yield flat[at[i] : at[i + 1]].reshape(shape)


def is_list_of_tensors(type_: pa.DataType) -> bool:
    """Whether each row is a list of tensors: the steps of a feature list."""
    return bool((pa.types.is_list(type_) or pa.types.is_large_list(type_)) and is_any_tensor(type_.value_type))


def list_cells(array: pa.Array, field: pa.Field) -> Array:
    """A column of lists of tensors as an object array: of tensors of one shape an ndarray [steps, *shape] each, of others an
    object array of ndarrays; None where null."""
    step = pa.field("", field.type.value_type, metadata=field.metadata)
    offsets = np.asarray(array.offsets)
    values = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    whole = (
        to_ndarray(values, step)
        if is_fixed_shape_tensor(step.type) and not values.null_count
        else to_cells(values, step)
    )
    found = np.empty(len(array), object)
    for row in np.flatnonzero(np.asarray(array.is_valid())).tolist():
        found[row] = whole[offsets[row] - offsets[0] : offsets[row + 1] - offsets[0]]
    return found


def flat_values(array: pa.Array, field: pa.Field) -> tuple[pa.Array, Array, Array]:
    """All values of tensors, none of which is null, how many each has, and the shape of each; values without an order come as nulls."""
    items = items_of(array, field)
    counts = np.diff(items.offsets) // items.of.itemsize
    shapes = np.broadcast_to(np.asarray(items.shapes, np.int64), (len(items), items.rank))
    values = items.data.view(items.of.dtype) if items.data.size else np.empty(0, items.of.dtype)
    if items.of.name == "bfloat16":
        values = values.astype(np.float32)
    try:
        return pa.nulls(len(values)) if values.dtype.kind == "c" else pa.array(values), counts, shapes
    except (pa.ArrowException, ValueError):  # a unit that Arrow does not have, or half of a character
        return pa.nulls(len(values)), counts, shapes


def rows_of(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """The rows of a column as Python values: tensors as nested lists."""
    if not (is_any_tensor(field.type) or is_list_of_tensors(field.type)):
        return list(column.to_pylist())
    to_array = to_cells if is_any_tensor(field.type) else list_cells
    return [_nested(cell) for chunk in column.chunks for cell in to_array(chunk, field)]


def _nested(cell: Any) -> Any:
    if isinstance(cell, np.ndarray):
        return [_nested(each) for each in cell] if cell.dtype == object else cell.tolist()
    return cell


def first_unreal(of: Element, data: Array) -> int:
    """Where the first bytes stand that are no value: a bool other than 0 and 1, a number that is no character. −1: nowhere.

    >>> import numpy as np
    >>> from tfrecord_io.format.dtypes import element
    >>> first_unreal(element("bool"), np.array([0, 1, 2], np.uint8))
    2
    """
    if of.name == "bool":
        bad, width = data > 1, 1
    elif of.dtype.kind == "U":
        bad, width = data[: len(data) // 4 * 4].view("<u4") > _LAST_CHARACTER, 4
    else:
        return -1
    return int(bad.argmax()) * width if bad.any() else -1


def _viewed(data: Array, of: Element) -> Array:
    return data.view(of.dtype) if data.size else np.empty(0, of.dtype)


def _width(of: Element) -> int:
    """Bytes of one Arrow value."""
    return max(of.arrow.bit_width // 8, 1)


def _bytes_of(values: pa.Array, width: int) -> Array:
    """The bytes of a fixed-width array's slots; of bools, which Arrow packs, one each."""
    if pa.types.is_boolean(values.type):
        return number_view(values).view(np.uint8)
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.empty(0, np.uint8)
    return np.frombuffer(buffer, np.uint8)[values.offset * width : (values.offset + len(values)) * width]


def _fixed_bytes(storage: pa.Array, of: Element, type_: pa.DataType, valid: Array | None) -> Array:
    size = storage.type.list_size
    values = storage.values.slice(storage.offset * size, len(storage) * size)
    _refuse_nulls(values, size, valid)
    data = _bytes_of(values, _width(of))
    order = permutation_of(type_)
    if order is None:
        return data
    cells = data.reshape(len(storage), *type_.shape, _width(of)).transpose(
        0, *(axis + 1 for axis in order), len(order) + 1
    )
    return np.ascontiguousarray(cells).reshape(-1)


def _refuse_nulls(values: pa.Array, size: int, valid: Array | None) -> None:
    if not values.null_count:
        return
    missing = np.asarray(values.is_null()).reshape(-1, size).any(axis=1)
    if valid is not None:
        missing &= valid
    if missing.any():
        raise EncodeError(
            "a null inside a tensor has no form in a record", record=int(missing.argmax()), advice="fill it"
        )


def _variable_items(storage: pa.Array, of: Element, type_: pa.DataType, valid: Array | None) -> TensorValues:
    lists, sizes = storage.field("data"), storage.field("shape")
    rows = np.arange(len(storage))
    if valid is not None:
        present, rows = pa.array(valid), np.flatnonzero(valid)
        lists, sizes = lists.filter(present), sizes.filter(present)
    ndim = sizes.type.list_size
    axes = sizes.values.slice(sizes.offset * ndim, len(sizes) * ndim)
    if lists.null_count or sizes.null_count or axes.null_count:
        missing = (
            np.asarray(lists.is_null())
            | np.asarray(sizes.is_null())
            | np.asarray(axes.is_null()).reshape(-1, ndim).any(axis=1)
        )
        row = int(rows[missing.argmax()])
        raise EncodeError("a tensor without values or without a shape", record=row, advice="make the whole row null")
    shapes = np.asarray(axes).astype(np.int64).reshape(len(sizes), ndim)
    begins = offset_view(lists, np.dtype(np.int32)).astype(np.int64)
    values = lists.values.slice(int(begins[0]), int(begins[-1] - begins[0]))
    if values.null_count:
        at = int(np.searchsorted(begins - begins[0], int(np.asarray(values.is_null()).argmax()), side="right")) - 1
        raise EncodeError("a null inside a tensor has no form in a record", record=int(rows[at]), advice="fill it")
    order = permutation_of(type_) or tuple(range(ndim))
    _refuse_misfits(shapes, shapes[:, order], axes_of(type_), np.diff(begins), rows)
    data, offsets = _bytes_of(values, _width(of)), (begins - begins[0]) * _width(of)
    if list(order) != sorted(order):
        data, shapes = _permuted(data, offsets, shapes, order, _width(of)), shapes[:, order]
    return TensorValues(of, data, offsets, shapes[:, : ndim - len(of.inner)], valid)


def _refuse_misfits(stored: Array, logical: Array, axes: tuple[int | None, ...], counts: Array, rows: Array) -> None:
    """Shapes that are negative, that the values do not fill, or that are not what the type says of all."""
    said = np.array([-1 if axis is None else axis for axis in axes], np.int64)
    bad = (stored < 0).any(axis=1) | (stored.astype(np.float64).prod(axis=1) != counts)
    odd = ((said >= 0) & (logical != said)).any(axis=1)
    if not (bad | odd).any():
        return
    at = int((bad | odd).argmax())
    shape = tuple(stored[at].tolist())
    if bad[at]:
        reason = f"the shape {shape} does not fit its {counts[at]} values"
        raise EncodeError(reason, record=int(rows[at]), expected=str(shape), got=int(counts[at]))
    raise EncodeError(
        f"the shape {shape} is not what the column's type says, {axes}",
        record=int(rows[at]),
        expected=str(axes),
        got=shape,
    )


def _permuted(data: Array, offsets: Array, shapes: Array, order: tuple[int, ...], width: int) -> Array:
    pieces = []
    for begin, end, shape in zip(offsets[:-1], offsets[1:], shapes.tolist(), strict=True):
        pieces.append(data[begin:end].reshape(*shape, width).transpose(*order, len(order)).reshape(-1))
    return np.concatenate(pieces) if pieces else data
