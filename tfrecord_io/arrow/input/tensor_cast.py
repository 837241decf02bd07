"""Columns cast to a declared tensor type: lists are reshaped, values cast without loss, shapes made variable."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.arrow.buffers import bitmap_of, list_array, offsets_of, scatter, valid_mask
from tfrecord_io.arrow.casts import number_array
from tfrecord_io.arrow.encode.encoded_values import number_cells
from tfrecord_io.arrow.encode.flatten import Rows, flatten
from tfrecord_io.arrow.tensor_builder import tensor_array
from tfrecord_io.arrow.tensor_values import TensorValues, misfits, tensors_of_column
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
    """A column of the field `source` cast to the type of `target`, if one of the types is a tensor type.

    `target` is of tensors (lists hold their values in C order, or are nested to the shape), or of lists, for tensors of
    one dimension. A tensor of another shape, or a list of another number of values, is an EncodeError whose ``record``
    is the row; a value that cannot be cast without loss is a pyarrow.ArrowInvalid.
    """
    if source.type == target.type:
        return array
    tensors = _tensors(array, source, target)
    if not is_any_tensor(target.type):
        return _lists(tensors, len(array), target)
    if permutation_of(target.type) is not None:
        advice = "declare them by tfr.tensor()"
        raise EncodeError("the schema's tensors are permuted", feature=target.name, advice=advice)
    element, axes = element_and_shape(target)
    tensors = _retyped(tensors, element, target.name)
    shaped = _reshaped(tensors, axes, not is_any_tensor(source.type) and tensors.rank < 2, target.name)
    storage = tensor_array(replace(shaped, offsets=shaped.offsets - shaped.offsets[0]), len(array)).storage
    if pa.types.is_boolean(tensor_value_type(target.type)):
        storage = storage.cast(target.type.storage_type)
    return pa.ExtensionArray.from_storage(target.type, storage)


def _tensors(array: pa.Array, source: pa.Field, target: pa.Field) -> TensorValues:
    try:
        if is_any_tensor(source.type):
            return tensors_of_column(array, source)
        if is_list_like(source.type) and is_list_like(source.type.value_type):
            return _nested(array, element_and_shape(target)[1] if is_any_tensor(target.type) else ())
        ((rows, values),) = flatten(array, source.name)
        return number_cells(rows, values)
    except EncodeError as error:
        error.feature = source.name
        raise
    except ValueError as error:
        reason = f"a column of {source.type} cannot be converted to tensors"
        raise EncodeError(reason, feature=source.name, advice="cast it yourself") from error


def _nested(array: pa.Array, axes: Shape) -> TensorValues:
    """Lists of lists as tensors: the lists of one level have the same length in each row.

    Lengths that an empty list leaves open are those of `axes`.
    """
    valid = valid_mask(array)
    values = array if valid is None else array.drop_null()
    owners, shapes = np.arange(len(values)), list[Array]()
    while is_list_like(values.type):
        lengths = np.asarray(pc.list_value_length(values).fill_null(-1), np.int64)
        axis = len(shapes)
        shape = np.full(len(array) - array.null_count, -1, np.int64)
        shape[owners] = lengths
        reasons = {
            "a list in it is missing": lengths < 0,
            f"its lists differ in length (axis {axis})": shape[owners] != lengths,
        }
        for reason, bad in reasons.items():
            if bad.any():
                row = _row(int(owners[int(bad.argmax())]), valid)
                raise EncodeError(reason, record=row, expected="lists of one shape")
        declared = axes[axis] if axis < len(axes) else None
        shapes.append(np.where(shape < 0, declared or 0, shape))
        owners, values = np.repeat(owners, lengths), values.flatten()
    if values.null_count:
        row = int(owners[values.is_null().index(True).as_py()])
        raise EncodeError("a value in it is missing", record=_row(row, valid), expected="lists without nulls")
    matrix = np.stack(shapes, axis=1)
    cells = number_cells(Rows("", 0, len(matrix), offsets=offsets_of(matrix.prod(axis=1))), values)
    return replace(cells, shapes=matrix, valid=valid)


def _row(at: int, valid: Array | None) -> int:
    """The row of a tensor, where null rows are left out."""
    return at if valid is None else int(np.flatnonzero(valid)[at])


def _retyped(tensors: TensorValues, element: Element, name: str) -> TensorValues:
    """The same tensors of another dtype."""
    own = tensors.element
    if own.name == element.name:
        return tensors
    if element.marked or (own.marked and own.name != "bool"):
        reason = f"its values are of {own.name}, the schema declares {element.name}"
        advice = "cast it yourself, or change the schema"
        raise EncodeError(reason, feature=name, expected=element.name, got=own.name, advice=advice)
    begin, end = int(tensors.offsets[0]), int(tensors.offsets[-1])
    data = tensors.data[begin:end]
    cast = number_array(own.arrow, data).cast(element.arrow)
    width = element.itemsize
    if len(cast):
        data = np.frombuffer(cast.buffers()[1], np.uint8)[cast.offset * width :][: len(cast) * width]
    return replace(tensors, element=element, data=data, offsets=(tensors.offsets - begin) // own.itemsize * width)


def _reshaped(tensors: TensorValues, axes: Shape, from_lists: bool, name: str) -> TensorValues:
    """The same tensors in the declared shape; of lists only the number of values counts."""
    own = tensors.shape_matrix
    declared = np.array([-1 if axis is None else axis for axis in axes], np.int64)
    if own.shape[1] == len(axes) and not (from_lists and len(axes) > 1):
        shapes, bad = own, misfits(own, axes)
    elif from_lists:
        shapes, bad = _by_count(tensors.counts, axes, declared, name)
    else:
        shapes, bad = own, np.ones(len(tensors), np.bool_)
    if bad.any():
        at = int(bad.argmax())
        got = tuple(own[at].tolist())
        reason = f"its array of shape {got} does not fit the schema's {axes}"
        raise EncodeError(reason, feature=name, record=_row(at, tensors.valid), expected=str(axes), got=str(got))
    return replace(tensors, shapes=shapes if None in axes else tuple(declared.tolist()))


def _by_count(counts: Array, axes: Shape, declared: Array, name: str) -> tuple[Array, Array]:
    """The shape of each list by its number of values, and which lists do not fit."""
    if axes.count(None) > 1:
        reason = f"lists do not state the lengths of the {axes.count(None)} unknown dimensions of {axes}"
        raise EncodeError(reason, feature=name, expected=str(axes), advice="pass arrays, or declare their shape")
    part = math.prod(axis for axis in axes if axis is not None)
    if None not in axes:
        return np.tile(declared, (len(counts), 1)), counts != part
    length = counts // part if part else counts
    return np.where(declared < 0, length[:, None], declared), length * part != counts


def _lists(tensors: TensorValues, rows: int, target: pa.Field) -> pa.Array:
    """Tensors of one dimension as lists of the declared type."""
    element = tensors.element
    if tensors.rank != 1 or not is_list_like(target.type) or element.marked:
        reason = f"tensors of {element.name} of {tensors.rank} dimensions are not {target.type}"
        raise EncodeError(reason, feature=target.name, expected=str(target.type), advice="declare them by tfr.tensor()")
    values = number_array(element.arrow, tensors.data[int(tensors.offsets[0]) : int(tensors.offsets[-1])].copy())
    counts, validity = tensors.counts, None
    if tensors.valid is not None:
        counts, validity = scatter(counts, tensors.valid), bitmap_of(tensors.valid)
    lists = pa.large_list(element.arrow)
    return list_array(lists, rows, rows - len(tensors), validity, offsets_of(counts), values).cast(target.type)


def tensors_fit(source: pa.Field, target: pa.Field) -> bool:
    """Whether all tensors of `source` are valid in `target`: the same dtype, and the same or unknown dimensions."""
    if not (is_any_tensor(source.type) and is_any_tensor(target.type)) or is_fixed_shape_tensor(target.type):
        return False
    (own, own_axes), (declared, axes) = element_and_shape(source), element_and_shape(target)
    is_same = own == declared and len(own_axes) == len(axes)
    return is_same and all(axis in (None, own_axis) for own_axis, axis in zip(own_axes, axes, strict=True))
