"""Columns as tensors of a declared type: lists are reshaped, values cast without loss, tensors of one shape become some of many."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import bitmap_of, fixed_width, list_array
from tfrecord_io.arrow.encode.flatten import flatten
from tfrecord_io.arrow.encodings.raw import items_of_values
from tfrecord_io.arrow.tensor_builder import from_items
from tfrecord_io.arrow.tensor_values import TensorValues, items_of
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError
from tfrecord_io.format.dtypes import Element
from tfrecord_io.schema.tensor_types import (
    Shape,
    element_and_shape,
    is_any_tensor,
    is_fixed_shape_tensor,
    permutation_of,
    tensor_value_type,
)
from tfrecord_io.schema.types import is_list_like


def tensor_cast(array: pa.Array, source: pa.Field, target: pa.Field) -> pa.Array:
    """A column as one of the type of `target`, where that or its own type is one of tensors.

    Parameters
    ----------
    array : pyarrow.Array
    source : pyarrow.Field
        Of the array; its metadata says the dtype of tensors.
    target : pyarrow.Field
        Of tensors, whose values lists have in C order; or of lists, for tensors of one dimension.

    Raises
    ------
    EncodeError
        A tensor has another shape, or a list another number of values; ``record`` is the row.
    pyarrow.ArrowInvalid
        A value cannot be cast without loss.
    """
    if source.type == target.type:
        return array
    items = _items(array, source)
    if not is_any_tensor(target.type):
        return _lists(items, len(array), target)
    if permutation_of(target.type) is not None:
        raise EncodeError(
            "the schema's tensors are permuted", feature=target.name, advice="declare them by tfr.tensor()"
        )
    of, axes = element_and_shape(target)
    items = _retyped(items, of, target.name)
    shaped = _reshaped(items, axes, not is_any_tensor(source.type), target.name)
    found = from_items(replace(shaped, offsets=shaped.offsets - shaped.offsets[0]), len(array))
    storage = found.storage
    if pa.types.is_boolean(tensor_value_type(target.type)):
        storage = storage.cast(target.type.storage_type)
    return pa.ExtensionArray.from_storage(target.type, storage)


def _items(array: pa.Array, source: pa.Field) -> TensorValues:
    try:
        if is_any_tensor(source.type):
            return items_of(array, source)
        if is_list_like(source.type) and is_list_like(source.type.value_type):
            raise EncodeError(
                "lists of lists do not say the shape of a tensor", advice="pass arrays: numpy.array(...) of each row"
            )
        ((rows, values),) = flatten(array, source.name)
        return items_of_values(rows, values)
    except EncodeError as error:
        error.feature = source.name
        raise
    except ValueError as error:
        raise EncodeError(
            f"a column of {source.type} is none of tensors", feature=source.name, advice="cast it yourself"
        ) from error


def _retyped(items: TensorValues, of: Element, name: str) -> TensorValues:
    """The same tensors of another dtype."""
    if items.of.name == of.name:
        return items
    if of.marked or (items.of.marked and items.of.name != "bool"):
        reason = f"its values are of {items.of.name}, and the schema says {of.name}"
        raise EncodeError(
            reason, feature=name, expected=of.name, got=items.of.name, advice="cast it yourself, or change the schema"
        )
    begin, end = int(items.offsets[0]), int(items.offsets[-1])
    data = items.data[begin:end]
    if data.ctypes.data % items.of.itemsize:
        data = data.copy()
    cast = fixed_width(items.of.arrow, data.size // items.of.itemsize, 0, None, data).cast(of.arrow)
    bytes_ = (
        np.frombuffer(cast.buffers()[1], np.uint8)[cast.offset * of.itemsize :][: len(cast) * of.itemsize]
        if len(cast)
        else data
    )
    return replace(items, of=of, data=bytes_, offsets=(items.offsets - begin) // items.of.itemsize * of.itemsize)


def _reshaped(items: TensorValues, axes: Shape, free: bool, name: str) -> TensorValues:
    """The same tensors in the shape that is declared; `free`: their own is only their number of values."""
    count = len(items)
    own = np.tile(np.array(items.shapes, np.int64), (count, 1)) if isinstance(items.shapes, tuple) else items.shapes
    said = np.array([-1 if axis is None else axis for axis in axes], np.int64)
    if own.shape[1] == len(axes) and not (free and len(axes) > 1):
        bad = ((said >= 0) & (own != said)).any(axis=1)
        shapes = own
    elif free:
        shapes, bad = _by_count(np.diff(items.offsets) // items.of.itemsize, axes, said, name)
    else:
        shapes, bad = own, np.ones(count, np.bool_)
    if bad.any():
        at = int(bad.argmax())
        row = at if items.valid is None else int(np.flatnonzero(items.valid)[at])
        got = tuple(own[at].tolist())
        reason = f"its array of shape {got} does not fit the schema's {_words(axes)}"
        raise EncodeError(reason, feature=name, record=row, expected=_words(axes), got=str(got))
    return replace(items, shapes=shapes if None in axes else tuple(said.tolist()))


def _by_count(counts: Array, axes: Shape, said: Array, name: str) -> tuple[Array, Array]:
    """Shapes that as many values have, and where there is none."""
    if axes.count(None) > 1:
        reason = f"lists do not tell the lengths of the {axes.count(None)} free axes of {_words(axes)}"
        raise EncodeError(reason, feature=name, expected=_words(axes), advice="pass arrays, or declare their shape")
    part = math.prod(axis for axis in axes if axis is not None)
    if None not in axes:
        return np.tile(said, (len(counts), 1)), counts != part
    length = counts // part if part else counts
    return np.where(said < 0, length[:, None], said), length * part != counts


def _lists(items: TensorValues, rows: int, target: pa.Field) -> pa.Array:
    """Tensors of one dimension as lists of the declared type."""
    if items.rank != 1 or not is_list_like(target.type) or items.of.marked:
        reason = f"tensors of {items.of.name} of {items.rank} dimensions are no {target.type}"
        raise EncodeError(reason, feature=target.name, expected=str(target.type), advice="declare them by tfr.tensor()")
    data = items.data[int(items.offsets[0]) : int(items.offsets[-1])]
    values = fixed_width(items.of.arrow, data.size // items.of.itemsize, 0, None, data.copy())
    lengths = np.zeros(rows, np.int64)
    lengths[slice(None) if items.valid is None else items.valid] = np.diff(items.offsets) // items.of.itemsize
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    nulls = rows - len(items)
    validity = None if items.valid is None else bitmap_of(items.valid)
    return list_array(pa.large_list(items.of.arrow), rows, nulls, validity, offsets, values).cast(target.type)


def _words(axes: Shape) -> str:
    return (
        "(" + ", ".join("None" if axis is None else str(axis) for axis in axes) + ("," if len(axes) == 1 else "") + ")"
    )


def tensors_fit(source: pa.Field, target: pa.Field) -> bool:
    """Whether all tensors of `source` are some of `target`: of its dtype and rank, where its axes are free or the same."""
    if not (is_any_tensor(source.type) and is_any_tensor(target.type)) or is_fixed_shape_tensor(target.type):
        return False
    (of, own), (said, axes) = element_and_shape(source), element_and_shape(target)
    return (
        of == said and len(own) == len(axes) and all(axis in (None, mine) for mine, axis in zip(own, axes, strict=True))
    )
