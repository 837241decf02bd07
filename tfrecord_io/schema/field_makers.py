"""Field makers: the words in which a schema is written by hand.

Each gives a field without a name; the key under which it stands in a Schema's dict is its column and, unless
``feature=`` says another, its feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.format.dtypes import KINDS, Element, element, element_of, name_of
from tfrecord_io.schema.field import FEATURE_LIST, Field
from tfrecord_io.schema.image import image_metadata
from tfrecord_io.schema.shapes import as_shape, fixed_part, size_of
from tfrecord_io.schema.tensor_types import is_any_tensor, mark, tensor_type
from tfrecord_io.schema.type_names import type_name, type_of
from tfrecord_io.schema.types import BY_WIRE, LIST, TENSOR_PROTO, is_list_like


def scalar(
    type: Any, *, default: Any = None, required: bool = False, feature: str | None = None, encoding: str = LIST
) -> Field:
    """A column of single values.

    Parameters
    ----------
    type : pa.DataType, str or dtype
        Arrow's, NumPy's or TensorFlow's, or a name: "int32", "bool", "timestamp[us]". No list.
    default : object, optional
        Where the feature is absent or has no kind; None: null.
    required : bool
        Absent is an error, unless there is a default.
    feature : str, optional
        Its name in the records, where that is not the column's.
    encoding : {"list", "raw"}
        "raw": each value is the bytes of a number.

    Examples
    --------
    >>> from tfrecord_io.schema.schema import Schema
    >>> Schema({"label": scalar("int32", default=0), "price": scalar("float32", feature="PRICE")})
    Schema of 2 columns
      label  int32  default 0
      price  float  feature PRICE
    """
    type_ = type_of(type)
    if is_list_like(type_) or is_any_tensor(type_):
        raise SchemaError(
            f"{type_name(type_)} is no type of single values", got=str(type_), advice="use list_() or tensor()"
        )
    return _field(type_, feature, encoding, required, default)


def list_(
    type: Any,
    length: int | None = None,
    *,
    default: Any = None,
    required: bool = False,
    feature: str | None = None,
    encoding: str = LIST,
) -> Field:
    """A column of lists.

    Parameters
    ----------
    type : pa.DataType, str or dtype
        Of one value.
    length : int, optional
        How many values each record has; another number is a DecodeError. The column is a fixed_size_list.
    default, required, feature, encoding
        As in `scalar`; ``encoding="raw"``: a list is the bytes of an array.

    Examples
    --------
    >>> list_("float32", 3)
    Field(fixed_size_list<item: float>[3])
    """
    value = type_of(type)
    try:
        whole = pa.list_(value) if length is None else pa.list_(value, size_of(as_shape(length)))
    except (ValueError, TypeError) as error:
        raise SchemaError(f"{length!r} is no number of values", expected="a number", got=length) from error
    return _field(whole, feature, encoding, required, default)


def text(*, default: str | None = None, required: bool = False, feature: str | None = None) -> Field:
    """A column of text; bytes that are not UTF-8 are a DecodeError.

    >>> text(default="?")
    Field(string, default '?')
    """
    return _field(pa.string(), feature, LIST, required, default)


def bytes_(*, default: bytes | None = None, required: bool = False, feature: str | None = None) -> Field:
    """A column of bytes.

    >>> bytes_(required=True)
    Field(binary, required)
    """
    return _field(pa.binary(), feature, LIST, required, default)


def image(
    shape: Any = None,
    mode: str | None = None,
    resize: tuple[int, int] | None = None,
    *,
    default: bytes | None = None,
    required: bool = False,
    feature: str | None = None,
) -> Field:
    """A column of encoded images (JPEG, PNG, WebP): `read_arrays` and `iter_arrays` decode them, all else gives their bytes.

    Parameters
    ----------
    shape : sequence of int or None, optional
        (height, width, channels) of the decoded image; None where it varies. Images of another shape are a DecodeError;
        with `resize` it is not checked.
    mode : {"RGB", "L", "RGBA", "unchanged"}, optional
        What pixels are converted to: colours, grey, colours and opacity; of 16 bits the upper 8 are taken, as by TensorFlow's
        ``decode_png``. "unchanged" keeps what the image has, the 16 bits of a grey PNG, too; 16 bits of several channels are
        a DecodeError then. Without it the channels of the shape say (3, 1, 4), else "RGB".
    resize : (int, int), optional
        (height, width) that each image is made to have, by bilinear interpolation.
    default, required, feature
        As in `scalar`.

    Examples
    --------
    >>> image((None, None, 3))
    Field(binary, shape (None, None, 3), image RGB)
    >>> image(mode="L", resize=(28, 28))
    Field(binary, image L, resize (28, 28))
    """
    try:
        axes = None if shape is None else as_shape(shape)
    except ValueError as error:
        raise SchemaError(str(error), got=shape) from None
    metadata = image_metadata(mode, resize, axes)
    return replace(_field(pa.binary(), feature, LIST, required, default, shape), metadata=metadata)


def tensor(
    dtype: Any,
    shape: Any,
    *,
    default: Any = None,
    required: bool = False,
    feature: str | None = None,
    encoding: str = BY_WIRE,
) -> Field:
    """A column of arrays.

    Parameters
    ----------
    dtype : pa.DataType, str or dtype
        Of one value: a number, bool, "complex64", "bfloat16", "S10", "U10", "datetime64[D]", "timedelta64[ms]"; or bytes or
        text, of which a record has as many values.
    shape : sequence of int or None
        None or −1 is a free axis. Without one the column is a fixed_shape_tensor, else a variable_shape_tensor. The length of
        one free axis follows from the number of values; more of them need the feature ``x/shape`` beside ``x``.
    default : object, optional
        An array of that shape; without a free axis also one value that stands for each.
    required, feature
        As in `scalar`.
    encoding : {"wire", "raw", "list", "tensor_proto"}
        "wire": bytes are decoded raw (C order, little-endian) and number lists are reshaped, as a record has it; "raw" and
        "list" take one of the two only; "tensor_proto": what ``tf.io.serialize_tensor`` writes.

    Examples
    --------
    >>> tensor("uint8", (28, 28))
    Field(tensor<uint8>[28,28], encoding wire)
    >>> tensor("complex64", (None, 3))
    Field(tensor<complex64>[?,3], encoding wire)
    """
    try:
        axes = as_shape(shape)
    except ValueError as error:
        raise SchemaError(str(error), got=shape) from None
    of = _element(dtype)
    if isinstance(of, Element):
        if not axes and encoding != TENSOR_PROTO and (value := of.plain) is not None:
            return _field(value, feature, encoding, required, default)
        return _field(tensor_type(of, axes), feature, encoding, required, default, axes, metadata=mark(of))
    encoding = LIST if encoding == BY_WIRE else encoding
    if not axes:
        return _field(of, feature, encoding, required, default)
    return _field(
        pa.list_(of) if None in axes else pa.list_(of, fixed_part(axes)), feature, encoding, required, default, axes
    )


def _element(dtype: Any) -> Element | pa.DataType:
    """What a tensor is of: a row of the table of dtypes, or the type of bytes or text."""
    plain = getattr(dtype, "as_numpy_dtype", dtype)  # tf.DType
    is_dtype = isinstance(plain, np.dtype) or (isinstance(plain, type) and issubclass(plain, np.generic))
    try:
        if isinstance(plain, str) and _is_in_table(plain):
            return element(plain)
        if is_dtype and np.dtype(plain).kind != "O" and np.dtype(plain).itemsize:
            return element(name_of(plain))
        value = type_of(plain)
        if t.is_binary(value) or t.is_string(value):
            return value
        if t.is_timestamp(value) and value.tz is not None:
            raise ValueError("NumPy has no time zones")
        return element_of(value)
    except ValueError as error:
        advice = f"use {KINDS}, bytes or text"
        if isinstance(error, SchemaError):
            raise SchemaError(
                f"there are no tensors of {printable(str(dtype), 60)}", got=str(dtype), advice=advice
            ) from None
        raise SchemaError(f"there are no tensors of {dtype}: {error}", got=str(dtype), advice=advice) from None


def _is_in_table(name: str) -> bool:
    try:
        element(name)
    except ValueError:
        return False
    return True


def sequence(item: Any, *, default: Any = None, required: bool = False, feature: str | None = None) -> Field:
    """A column read from a feature list of a SequenceExample.

    Parameters
    ----------
    item : Field, pa.DataType, str or dtype
        One step: what a field maker gives, or a type. Its encoding and shape count, its name and default do not.
    default : list, optional
        Where the feature list is absent; None: null.
    required, feature
        As in `scalar`.

    Examples
    --------
    >>> sequence("int64")
    Field(list<item: int64>, feature list)
    >>> sequence(tensor("float32", (None, 2)))
    Field(list<item: tensor<float32>[?,2]>, feature list, encoding wire)
    """
    step = item if isinstance(item, Field) else Field("", type_of(item))
    if step.part == FEATURE_LIST:
        raise SchemaError("a step of a feature list is no feature list itself", got=repr(step))
    return _field(
        pa.list_(step.type), feature, step.encoding, required, default, step.shape, FEATURE_LIST, step.metadata
    )


def _field(
    type_: pa.DataType,
    feature: str | None,
    encoding: str,
    required: bool,
    default: Any,
    shape: Any = None,
    part: str | None = None,
    metadata: Mapping[bytes, bytes] | None = None,
) -> Field:
    return Field("", type_, feature, encoding, required, default, metadata or {}, shape, part)  # type: ignore[arg-type]
