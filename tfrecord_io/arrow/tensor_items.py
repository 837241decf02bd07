"""Columns of tensors as NumPy arrays: views of Arrow's memory, or copies where it is permuted or cut by nulls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError
from tfrecord_io.schema.dtypes import Element
from tfrecord_io.schema.tensor_types import dim_names_of, element_and_shape, is_any_tensor, is_fixed_shape_tensor, permutation_of

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Items:
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


def items_of(array: pa.Array, field: pa.Field) -> Items:
    """The bytes of a column's tensors in their logical order; null rows are left out.

    Parameters
    ----------
    array : pyarrow.Array
        Of a type of tensors; slices and permutations are honoured.
    field : pyarrow.Field
        Of the column, for the mark of its dtype.
    """
    of, shape = element_and_shape(field)
    storage = array.storage
    valid = None if not array.null_count else np.asarray(array.is_valid())
    if is_fixed_shape_tensor(field.type):
        data = _fixed_bytes(storage, of, field.type)
        size = int(np.prod(field.type.shape)) * _width(of)
        if valid is not None:
            data = data.reshape(len(storage), size)[valid].reshape(-1) if size else data[:0]
        present = len(storage) if valid is None else int(np.count_nonzero(valid))
        return Items(of, data, np.arange(present + 1, dtype=np.int64) * size, tuple(shape), valid)  # type: ignore[arg-type]
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
    if isinstance(items.shapes, tuple):
        whole = _viewed(items.data, items.of).reshape(len(items), *items.shapes)
        for i, row in enumerate(rows.tolist()):
            found[row] = whole[i, ...]
        return found
    flat = _viewed(items.data, items.of)
    at = (items.offsets // items.of.itemsize).tolist()
    for i, (row, shape) in enumerate(zip(rows.tolist(), items.shapes.tolist(), strict=True)):
        found[row] = flat[at[i] : at[i + 1]].reshape(shape)
    return found


def is_list_of_tensors(type_: pa.DataType) -> bool:
    """Whether each row is a list of tensors: the steps of a feature list."""
    return bool((pa.types.is_list(type_) or pa.types.is_large_list(type_)) and is_any_tensor(type_.value_type))


def list_cells(array: pa.Array, field: pa.Field) -> Array:
    """A column of lists of tensors as an object array: of tensors of one shape an ndarray [steps, *shape] each, of others an
    object array of ndarrays; None where null."""
    step = pa.field("", field.type.value_type, metadata=field.metadata)
    offsets = np.asarray(array.offsets)
    values = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    whole = to_ndarray(values, step) if is_fixed_shape_tensor(step.type) and not values.null_count else to_cells(values, step)
    found = np.empty(len(array), object)
    for row in np.flatnonzero(np.asarray(array.is_valid())).tolist():
        found[row] = whole[offsets[row] - offsets[0] : offsets[row + 1] - offsets[0]]
    return found


def _viewed(data: Array, of: Element) -> Array:
    return data.view(of.dtype) if data.size else np.empty(0, of.dtype)


def _width(of: Element) -> int:
    """Bytes of one Arrow value."""
    return max(of.arrow.bit_width // 8, 1)


def _bytes_of(values: pa.Array, width: int) -> Array:
    """The bytes of a fixed-width array's slots; of bools, which Arrow packs, one each."""
    if pa.types.is_boolean(values.type):
        return np.asarray(values.cast(pa.uint8()))
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.empty(0, np.uint8)
    return np.frombuffer(buffer, np.uint8)[values.offset * width : (values.offset + len(values)) * width]


def _fixed_bytes(storage: pa.Array, of: Element, type_: pa.DataType) -> Array:
    size = storage.type.list_size
    values = storage.values.slice(storage.offset * size, len(storage) * size)
    _refuse_nulls(values, storage, size)
    data = _bytes_of(values, _width(of))
    order = permutation_of(type_)
    if order is None:
        return data
    cells = data.reshape(len(storage), *type_.shape, _width(of)).transpose(0, *(axis + 1 for axis in order), len(order) + 1)
    return np.ascontiguousarray(cells).reshape(-1)


def _refuse_nulls(values: pa.Array, storage: pa.Array, size: int) -> None:
    if not values.null_count:
        return
    missing = np.asarray(values.is_null()).reshape(len(storage), size).any(axis=1) & np.asarray(storage.is_valid())
    if missing.any():
        raise EncodeError("a null inside a tensor has no form in a record", record=int(missing.argmax()), advice="fill it")


def _variable_items(storage: pa.Array, of: Element, type_: pa.DataType, valid: Array | None) -> Items:
    lists, sizes = storage.field("data"), storage.field("shape")
    if valid is not None:
        present = pa.array(valid)
        lists, sizes = lists.filter(present), sizes.filter(present)
    ndim = sizes.type.list_size
    shapes = np.asarray(sizes.values.slice(sizes.offset * ndim, len(sizes) * ndim)).astype(np.int64).reshape(len(sizes), ndim)
    begins = np.asarray(lists.offsets).astype(np.int64)
    values = lists.values.slice(int(begins[0]), int(begins[-1] - begins[0]))
    if values.null_count:
        row = int(np.searchsorted(begins - begins[0], int(np.asarray(values.is_null()).argmax()), side="right")) - 1
        raise EncodeError("a null inside a tensor has no form in a record", record=row, advice="fill it")
    _refuse_misfits(shapes, np.diff(begins))
    data, offsets = _bytes_of(values, _width(of)), (begins - begins[0]) * _width(of)
    order = permutation_of(type_)
    if order is not None:
        data, shapes = _permuted(data, offsets, shapes, order, _width(of)), shapes[:, order]
    return Items(of, data, offsets, shapes[:, : ndim - len(of.inner)], valid)


def _refuse_misfits(shapes: Array, counts: Array) -> None:
    bad = (shapes < 0).any(axis=1) | (shapes.prod(axis=1) != counts)
    if bad.any():
        row = int(bad.argmax())
        shape = tuple(shapes[row].tolist())
        raise EncodeError(f"the shape {shape} does not fit its {counts[row]} values", record=row, expected=str(shape), got=int(counts[row]))


def _permuted(data: Array, offsets: Array, shapes: Array, order: tuple[int, ...], width: int) -> Array:
    pieces = []
    for begin, end, shape in zip(offsets[:-1], offsets[1:], shapes.tolist(), strict=True):
        pieces.append(data[begin:end].reshape(*shape, width).transpose(*order, len(order)).reshape(-1))
    return np.concatenate(pieces) if pieces else data


def logical_dim_names(type_: pa.DataType) -> tuple[str, ...] | None:
    """Names of the axes in their logical order."""
    names, order = dim_names_of(type_), permutation_of(type_)
    return names if names is None or order is None else tuple(names[axis] for axis in order)
