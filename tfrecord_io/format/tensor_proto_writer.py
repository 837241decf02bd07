"""Arrays to serialized TensorProtos, byte for byte those of ``tf.io.serialize_tensor``.

TensorFlow writes the dtype, the shape and then the raw values, or each string as a field; for an array without values
only the dtype and the shape.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tfrecord_io.errors import EncodeError
from tfrecord_io.format.dtypes import STRING, Array, dtype_name, element
from tfrecord_io.format.missing_values import has_missing
from tfrecord_io.format.tensor_proto_reader import STORAGE, TensorProto
from tfrecord_io.format.varint import varint
from tfrecord_io.options import LIMITS

_CONTENT_TAG = b"\x22"  # field 4, length-delimited


def serialize_tensor(tensor: Any) -> bytes:
    """Serialize an array as a TensorProto, byte for byte as ``tf.io.serialize_tensor`` does.

    >>> import tfrecord_io as tfr
    >>> tfr.io.serialize_tensor(np.array([1.0, 2.0], "float32"))
    b'\\x08\\x01\\x12\\x04\\x12\\x02\\x08\\x02"\\x08\\x00\\x00\\x80?\\x00\\x00\\x00@'

    Parameters
    ----------
    tensor : array_like
        Numbers, bools, complex numbers, bfloat16; bytes, or text, which becomes UTF-8. Any shape, order and endianness.
        Python's own numbers become int32 (int64, where one is too large), float32 and complex128, as in TensorFlow.

    Raises
    ------
    EncodeError
        TensorFlow does not have the dtype, an object is neither bytes nor text, a value is masked or null, or the array
        is over 2 GiB.
    """
    if has_missing(tensor):
        reason = "a value is masked or null: the values of a tensor cannot be missing"
        raise EncodeError(reason, advice="fill it, for example with numpy.ma.filled")
    values = tensor if isinstance(tensor, np.ndarray) else _as_array(tensor)
    if values.dtype.kind in "OSTU":
        return _strings(values)
    name = _name(values.dtype)
    if values.nbytes > LIMITS.tensor_bytes:
        raise _oversized(values.nbytes)
    flat = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).reshape(-1)
    return b"".join((proto_prefix(name, values.shape), flat.view(np.uint8).data))


@lru_cache(maxsize=256)
def proto_prefix(name: str, shape: tuple[int, ...]) -> bytes:
    """The bytes before the raw values of a tensor of numbers; nothing follows the values.

    ValueError if the dtype `name` has no raw values in a TensorProto.

    >>> proto_prefix("float32", (2,)) + np.array([1, 2], "<f4").tobytes() == serialize_tensor(np.array([1, 2], "f4"))
    True
    """
    if name == STRING or name not in STORAGE:
        raise ValueError(f"a TensorProto has no raw values of {name}")
    front = bytes(_front(name, shape).SerializeToString())
    size = math.prod(shape) * element(name).dtype.itemsize
    return front + _CONTENT_TAG + varint(size) if size else front


def _front(name: str, shape: tuple[int, ...]) -> Any:
    message = TensorProto(dtype=STORAGE[name].number)
    message.tensor_shape.SetInParent()  # written even if empty
    for axis in shape:
        message.tensor_shape.dim.add(size=axis)
    return message


def _name(dtype: np.dtype) -> str:
    try:
        name = dtype_name(dtype)
    except ValueError:
        reason = f"an array of {dtype} cannot be stored as a tensor"
        raise EncodeError(reason, expected=tuple(STORAGE), got=str(dtype)) from None
    if name not in STORAGE:
        advice = 'pass its integers, array.view("int64")' if dtype.kind in "mM" else None
        raise EncodeError(f"TensorFlow has no dtype for {name}", expected=tuple(STORAGE), got=name, advice=advice)
    return name


def _oversized(size: int) -> EncodeError:
    reason = f"the tensor has {size} bytes; a TensorProto holds {LIMITS.tensor_bytes} at most"
    return EncodeError(reason, expected=LIMITS.tensor_bytes, got=size)


def _strings(values: Array) -> bytes:
    items = values.reshape(-1).tolist()
    message = _front(STRING, values.shape)
    encoded = [item if isinstance(item, bytes) else _encoded(item, index) for index, item in enumerate(items)]
    size = sum(map(len, encoded)) + 6 * len(encoded)  # a tag and a varint of five bytes, at most
    if size > LIMITS.tensor_bytes:
        raise _oversized(size)
    message.string_val.extend(encoded)
    return bytes(message.SerializeToString())


def _encoded(item: Any, index: int) -> bytes:
    if not isinstance(item, str):
        kind = type(item).__name__
        reason = f"item {index} of an array of objects is of type {kind}"
        advice = "pass an array of one dtype, or bytes and text only"
        raise EncodeError(reason, expected="bytes or str", got=kind, advice=advice)
    try:
        return item.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"item {index} is not valid Unicode text", expected="text", got=item) from error


def _as_array(value: Any) -> Array:
    """Convert nested values to an array; Python's own numbers get TensorFlow's default dtypes."""
    if hasattr(value, "dtype") or hasattr(value, "__array__"):
        return np.asarray(value)
    try:
        objects = np.array(value, object)
        array = np.asarray(value)
    except (ValueError, OverflowError) as error:
        reason = "the nested values do not form an array"
        raise EncodeError(reason, expected="an array", got=type(value).__name__) from error
    if array.dtype.kind in "SUV" or array.dtype == object:
        return objects  # NumPy's own bytes would lose trailing NULs
    if _has_dtypes(value):
        return array
    if array.dtype == np.int64:
        int32 = np.iinfo(np.int32)
        return array.astype(np.int32) if int32.min <= array.min() and array.max() <= int32.max else array
    if array.dtype != np.float64:
        return array
    with np.errstate(over="ignore"):
        rounded = array.astype(np.float32)
    if np.any(np.isinf(rounded) & np.isfinite(array)):
        advice = 'pass np.array(…, "float64")'
        raise EncodeError("a number is too large for float32", expected="float32", advice=advice)
    return rounded


def _has_dtypes(value: Any) -> bool:
    """Whether the nested values contain NumPy's numbers or arrays."""
    return any(map(_has_dtypes, value)) if isinstance(value, list | tuple) else hasattr(value, "dtype")
