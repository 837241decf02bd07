"""Declared shapes: of tensors, and of lists with a fixed number of values; None is an unknown dimension."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.tensor_types import Shape, element_and_shape, is_any_tensor
from tfrecord_io.schema.types import is_bytes, is_list_like, is_text

_MAX_VALUES = 2**31 - 1  # in one record: no payload has more bytes


def as_shape(source: Any) -> Shape:
    """A shape from numbers, None and −1, from one number, or from TensorFlow's TensorShape; SchemaError for others.

    >>> as_shape([28, -1])
    (28, None)
    """
    if hasattr(source, "as_list"):  # tf.TensorShape
        source = source.as_list()
    try:
        sizes = [source] if hasattr(source, "__index__") or isinstance(source, str | bytes) else source
        axes = tuple(None if axis is None or operator.index(axis) == -1 else operator.index(axis) for axis in sizes)
    except TypeError:
        raise SchemaError(f"{source!r} is not a shape", got=source) from None
    if any(axis is not None and axis < 0 for axis in axes):
        raise SchemaError(f"the shape {axes} has a negative axis", got=source)
    if fixed_part(axes) > _MAX_VALUES:
        raise SchemaError(f"the shape {axes} has more values than a record can hold", got=source)
    return axes


def fixed_part(shape: Shape) -> int:
    """The product of the known dimensions, of which the number of values is a multiple.

    >>> fixed_part((None, 2, 3))
    6
    """
    return math.prod(axis for axis in shape if axis is not None)


def size_of(shape: Shape) -> int | None:
    """The number of values, None where a dimension is unknown."""
    return None if None in shape else fixed_part(shape)


def shape_of(type_: pa.DataType, metadata: Mapping[bytes, bytes] | None = None) -> Shape | None:
    """The shape that a type of tensors or of fixed size implies; the field's `metadata` has the dtype of tensors.

    ValueError if that dtype does not fit the type.
    """
    if is_any_tensor(type_):
        return element_and_shape(pa.field("", type_, metadata=dict(metadata or {})))[1]
    return (type_.list_size,) if t.is_fixed_size_list(type_) else None


def check_shape(shape: Shape, type_: pa.DataType, implied: Shape | None) -> None:
    """Raise ValueError where values of `type_`, which implies the shape `implied`, cannot have `shape`."""
    if is_any_tensor(type_):
        if shape != implied:
            raise ValueError(f"the shape {shape} is not that of the type, {implied}")
    elif t.is_fixed_size_list(type_):
        if size_of(shape) != type_.list_size:
            raise ValueError(f"the shape {shape} does not have the {type_.list_size} values of the type")
    elif not (is_list_like(type_) or is_text(type_) or is_bytes(type_)) and shape != ():
        raise ValueError(f"a single value cannot have the shape {shape}")
