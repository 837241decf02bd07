"""Arrays as serialized TensorProtos and back: what ``tf.io.serialize_tensor`` writes and ``tf.io.parse_tensor`` reads.

A TensorProto (tensorflow/core/framework/tensor.proto) has its values in `tensor_content`, as raw bytes, or in a field
for their dtype, whose last value is repeated for all that are missing. protobuf itself parses the message, since it has
many rules for repeated, merged and unknown fields.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError as ProtobufError

from tfrecord_io.base import LIMITS, Expansion, Limits, counted
from tfrecord_io.bytes.format.dtypes import Dtype, TensorField, integer_limits
from tfrecord_io.bytes.format.feature_types import Array
from tfrecord_io.bytes.format.missing_values import NestedValues
from tfrecord_io.bytes.format.protobuf import MessageClasses, enum_values
from tfrecord_io.bytes.format.varint import varint
from tfrecord_io.errors import DecodeError, EncodeError

# From tensorflow/core/framework/tensor.proto and tensor_shape.proto. Floats are declared as their bits: fixed32 and
# float are the same on the wire, but a Python float quiets a signalling NaN. An enum is an int32 there. The fields of
# resources and variants hold no array: they are left out here, and skipped. float8_val has a byte for each value.
_MESSAGES = {
    "Dim": "size 1 int64, name 2 string",
    "TensorShapeProto": "dim 2 *Dim, unknown_rank 3 bool",
    "TensorProto": (
        "dtype 1 int32, tensor_shape 2 TensorShapeProto, version_number 3 int32, tensor_content 4 bytes, "
        "float_val 5 *fixed32, double_val 6 *fixed64, int_val 7 *int32, string_val 8 *bytes, "
        "scomplex_val 9 *fixed32, int64_val 10 *int64, bool_val 11 *bool, dcomplex_val 12 *fixed64, "
        "half_val 13 *int32, uint32_val 16 *uint32, uint64_val 17 *uint64, float8_val 18 bytes"
    ),
}
TensorProto = MessageClasses("tfrecord_io/tensor.proto", "tensorflow", _MESSAGES)["TensorProto"]


_STORAGE = {name: row.tensor_field for name, row in Dtype.TABLE.items() if row.tensor_field is not None}
_STORAGE[Dtype.STRING] = TensorField(number=7, field="string_val", unit="object")
_NAMES = {storage.number: name for name, storage in _STORAGE.items()}
_FIELDS = frozenset(storage.field for storage in _STORAGE.values())
_TYPES = enum_values(  # of types.proto, also those that no array here has
    "INVALID 0, QINT8 11, QUINT8 12, QINT32 13, QINT16 15, QUINT16 16, RESOURCE 20, VARIANT 21, "
    "FLOAT8_E5M2 24, FLOAT8_E4M3FN 25, FLOAT8_E4M3FNUZ 26, FLOAT8_E4M3B11FNUZ 27, FLOAT8_E5M2FNUZ 28, "
    "INT4 29, UINT4 30, INT2 31, UINT2 32, FLOAT4_E2M1FN 33"
)
_ALL_NAMES = {number: f"DT_{name}" for name, number in _TYPES.items()} | _NAMES
_REFERENCES = 100  # DT_FLOAT_REF is 101, and so on


class ParsedTensor(NamedTuple):
    """The name of a tensor's dtype, its shape, and a new array of its values in C order."""

    name: str
    shape: tuple[int, ...]
    values: Array

    @staticmethod
    def serialize(tensor: Any) -> bytes:
        """Serialize an array as a TensorProto; see `tfrecord_io.io.serialize_tensor`."""
        return serialize_tensor(tensor)

    @staticmethod
    def parse(data: bytes, declared: str | None = None, expansion: Expansion | None = None) -> ParsedTensor:
        """Parse `data`; DecodeError if its dtype is not the one `declared`, or its values do not fit `expansion`."""
        try:
            message = MessageClasses.parse(TensorProto, data)
        except ProtobufError as error:
            reason = f"the {len(data)} bytes are not a TensorProto"
            raise DecodeError(reason, expected="a serialized TensorProto") from error
        name = _dtype_name(message.dtype)
        if declared is not None and declared != name:
            raise DecodeError(f"the tensor is of {name}, not of {declared}", expected=declared, got=name)
        dtype = np.dtype(object) if name == Dtype.STRING else Dtype.of_name(name).dtype
        shape = _shape(message.tensor_shape, dtype.itemsize)
        count = math.prod(shape)
        if content := message.tensor_content:
            values = _split(content, count) if name == Dtype.STRING else _view_values(content, dtype, count)
        else:
            size = count * dtype.itemsize
            if name == Dtype.STRING and message.string_val:  # the last one may stand for any number of them
                size += sum(map(len, message.string_val))
                size += max(count - len(message.string_val), 0) * len(message.string_val[-1])
            room = expansion or Expansion()
            if not room.take(size):
                reason = room.excess(f"its {message.ByteSize()} bytes state {count} values, which take {size} bytes")
                raise DecodeError(reason, expected=room.room, got=size, hint=room.advice(size), of_memory=True)
            values = _field_values(message, name, dtype, count)
        return ParsedTensor(name, shape, values)

    @staticmethod
    def dtype_of_number(number: int) -> str | None:
        """The dtype's name for a number of TensorFlow's ``types.proto``, None for types without arrays.

        >>> ParsedTensor.dtype_of_number(1), ParsedTensor.dtype_of_number(4), ParsedTensor.dtype_of_number(0)
        ('float32', 'uint8', None)
        """
        name = _NAMES.get(number)
        return None if name == Dtype.STRING else name

    @staticmethod
    @lru_cache(maxsize=256)
    def prefix(name: str, shape: tuple[int, ...]) -> bytes:
        """The bytes before the raw values of a tensor of numbers; nothing follows the values.

        ValueError if the dtype `name` has no raw values in a TensorProto.

        >>> array = np.array([1, 2], "<f4")
        >>> ParsedTensor.prefix("float32", (2,)) + array.tobytes() == serialize_tensor(array)
        True
        """
        if name == Dtype.STRING or name not in _STORAGE:
            raise ValueError(f"a TensorProto has no raw values of {name}")
        front = bytes(_front(name, shape).SerializeToString())
        size = math.prod(shape) * Dtype.of_name(name).dtype.itemsize
        return front + _CONTENT_TAG + varint(size) if size else front

    @staticmethod
    def number_of(name: str) -> int:
        """The number that TensorFlow's ``types.proto`` gives a dtype."""
        return _STORAGE[name].number


def parse_tensor(serialized: Any, out_type: Any = None, *, limits: Limits = Limits.DEFAULT) -> Array:
    """Parse a serialized TensorProto, as ``tf.io.parse_tensor`` does.

    >>> import tfrecord_io as tfr
    >>> tfr.io.parse_tensor(tfr.io.serialize_tensor(np.array([[1, 2], [3, 4]], "int16")))
    array([[1, 2],
           [3, 4]], dtype=int16)
    >>> tfr.io.parse_tensor(tfr.io.serialize_tensor(["cat", b"\\x00"]), "string")
    array([b'cat', b'\\x00'], dtype=object)

    Parameters
    ----------
    serialized : bytes, bytearray or memoryview
        The output of ``tf.io.serialize_tensor`` or `serialize_tensor`, or another serialized TensorProto.
    out_type : str or dtype, optional
        The expected dtype: a name ("float32", "string"), a dtype of NumPy or of TensorFlow. None: any.
    limits : Limits, optional
        Bytes that the values may take beyond 512 times the length of `serialized`: a few bytes can state a large tensor
        of one repeated value.

    Returns
    -------
    ndarray
        A new, writable array; of shape ``()`` for a scalar. Strings are an object array of bytes, as NumPy's own bytes
        lose trailing NULs.

    Raises
    ------
    DecodeError
        The data is not a TensorProto, has another dtype than `out_type`, or one that no array has (quantized numbers,
        resources, variants); its shape is unknown, negative or too large; its values do not fit the shape or the dtype.
        TensorFlow truncates values that are too many or too large, and returns zeros for values of another dtype: these
        are errors here. So is a tensor of 2³¹ bytes or more, and one above `Limits.expansion_bytes`.
    SchemaError
        A tensor cannot have this `out_type`.
    """
    declared = None if out_type is None else Dtype.declared_name(out_type)
    if not isinstance(serialized, bytes | bytearray | memoryview):
        raise TypeError(f"expected the bytes of a serialized tensor, not {type(serialized).__name__}")
    content = bytes(serialized)
    tensor = ParsedTensor.parse(content, declared, Expansion(limits.expansion_bytes, len(content)))
    return tensor.values.reshape(tensor.shape)


def _dtype_name(number: int) -> str:
    name = _NAMES.get(number)
    if name is None:
        target = _ALL_NAMES.get(number - _REFERENCES)
        got = _ALL_NAMES.get(number, f"dtype {number}") if target is None else f"a reference to {target}"
        raise DecodeError(f"the tensor is of {got}, which no array can have", expected=tuple(_STORAGE), got=got)
    return name


def _shape(proto: Any, itemsize: int) -> tuple[int, ...]:
    if proto.unknown_rank:
        raise DecodeError("the tensor's rank is unknown", expected="a shape")
    if (ndim := len(proto.dim)) > Dtype.MAX_AXES:
        reason = f"the tensor has {ndim} axes; NumPy's have {Dtype.MAX_AXES} at most"
        raise DecodeError(reason, expected=Dtype.MAX_AXES, got=ndim)
    shape = tuple([axis.size for axis in proto.dim])
    if shape and min(shape) < 0:
        raise DecodeError(f"the shape {shape} has a negative axis", expected="no negative axis", got=shape)
    size_without_zeros = math.prod([axis or 1 for axis in shape]) * itemsize  # NumPy limits this product, too
    if size_without_zeros > np.iinfo(np.int64).max:
        raise DecodeError(f"the shape {shape} is larger than any array", got=shape)
    if (size := math.prod(shape) * itemsize) > LIMITS.MAX_RECORD_BYTES:
        reason = f"the shape {shape} makes {size} bytes; a tensor has {LIMITS.MAX_RECORD_BYTES} at most"
        raise DecodeError(reason, expected=LIMITS.MAX_RECORD_BYTES, got=size)
    return shape


def _view_values(content: bytes, dtype: np.dtype, count: int) -> Array:
    """The raw bytes as values."""
    if len(content) != count * dtype.itemsize:
        got, size = counted(len(content), "byte"), counted(dtype.itemsize, "byte")
        reason = f"{got} of content for {counted(count, 'value')} of {size}"
        raise DecodeError(reason, expected=count * dtype.itemsize, got=len(content))
    values = np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype)
    if dtype.kind == "b" and (largest := int(values.view(np.uint8).max(initial=0))) > 1:
        raise DecodeError("a byte is not a bool", expected="0 or 1", got=largest)
    return values


def _split(content: bytes, count: int) -> Array:
    """Split raw bytes into strings: a varint for the length of each, then all of them."""
    lengths, at = [], 0
    for _ in range(min(count, len(content))):
        length, at = _varint32(content, at)
        lengths.append(length)
    if len(lengths) < count or sum(lengths) != len(content) - at:
        reason = f"the lengths of {count} strings do not fit the {len(content)} bytes of content"
        raise DecodeError(reason, expected=f"{count} strings", got=len(content))
    values = np.empty(count, object)
    for index, length in enumerate(lengths):
        values[index] = content[at : at + length]
        at += length
    return values


def _varint32(content: bytes, begin: int) -> tuple[int, int]:
    """A number, and the offset of its end."""
    value, at = 0, begin
    for shift in range(0, 35, 7):
        if at == len(content):
            break
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, at
    raise DecodeError(f"no length of a string at byte {begin} of the content", expected="a varint of 5 bytes at most")


def _field_values(message: Any, name: str, dtype: np.dtype, count: int) -> Array:
    """The values in the field for their dtype, the last one repeated up to `count`; zeros if there are none."""
    storage = _STORAGE[name]
    stored = getattr(message, storage.field)
    if not stored:
        other_fields = sorted(field.name for field, _ in message.ListFields() if field.name in _FIELDS)
        if other_fields:
            reason = f"a tensor of {name} with values in {other_fields[0]}"
            raise DecodeError(reason, expected=storage.field, got=other_fields[0])
        return np.full(count, b"", object) if name == Dtype.STRING else np.zeros(count, dtype)
    if name == Dtype.STRING:
        values = np.fromiter(stored, object, len(stored))
    else:
        values = _as_bits(np.fromiter(stored, storage.unit, len(stored)), Dtype.of_name(name))
    if len(values) > count:
        raise DecodeError(f"{counted(len(values), 'value')} for a shape of {count}", expected=count, got=len(values))
    whole = np.empty((count, *values.shape[1:]), values.dtype)
    whole[: len(values)] = values
    whole[len(values) :] = values[-1]
    return whole if name == Dtype.STRING else whole.reshape(-1).view(dtype)


def _as_bits(units: Array, element: Dtype) -> Array:
    """One row of bits per value of a dtype, unchanged."""
    if element.kind == "c":
        if len(units) % 2:
            raise DecodeError(f"{len(units)} halves of complex numbers", expected="an even number", got=len(units))
        return units.reshape(-1, 2)
    if units.dtype.itemsize > element.itemsize:  # an int32, the narrowest integer of protobuf
        is_integer = element.wide.kind in "iu"
        bits = np.dtype(f"u{element.itemsize}")
        least, most = integer_limits(element) if is_integer else (0, np.iinfo(bits).max)
        if np.any(misfit := (units < least) | (units > most)):
            got = int(units[misfit.argmax()])
            raise DecodeError(f"a value is outside of {element.name}", expected=f"{least} to {most}", got=got)
        units = units.astype(element.dtype if is_integer else bits)
    return units


_CONTENT_TAG = b"\x22"  # field 4, length-delimited


def serialize_tensor(tensor: Any) -> bytes:
    """Serialize an array as a TensorProto, byte for byte as ``tf.io.serialize_tensor`` does.

    >>> import tfrecord_io as tfr
    >>> tfr.io.serialize_tensor(np.array([1.0, 2.0], "float32"))
    b'\\x08\\x01\\x12\\x04\\x12\\x02\\x08\\x02"\\x08\\x00\\x00\\x80?\\x00\\x00\\x00@'

    Parameters
    ----------
    tensor : array_like
        Numbers, bools, complex numbers, dtypes of ml_dtypes; bytes, or text, which becomes UTF-8. Any shape, order and
        endianness. Python's own numbers become int32 (int64, where one is too large), float32 and complex128, as in
        TensorFlow.

    Raises
    ------
    EncodeError
        TensorFlow does not have the dtype, an object is neither bytes nor text, a value is masked or null, or the array
        is over 2 GiB.
    """
    if NestedValues([tensor]).has_missing:
        reason = "a value is masked or null: the values of a tensor cannot be missing"
        raise EncodeError(reason, hint="fill it, for example with numpy.ma.filled")
    values = tensor if isinstance(tensor, np.ndarray) else _as_array(tensor)
    if values.dtype.kind in "OSTU":
        return _strings(values)
    name = _name(values.dtype)
    if values.nbytes > LIMITS.MAX_RECORD_BYTES:
        raise _size_error(values.nbytes)
    flat = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).reshape(-1)
    return b"".join((ParsedTensor.prefix(name, values.shape), flat.view(np.uint8).data))


def _front(name: str, shape: tuple[int, ...]) -> Any:
    message = TensorProto(dtype=_STORAGE[name].number)
    message.tensor_shape.SetInParent()  # written even if empty
    for axis in shape:
        message.tensor_shape.dim.add(size=axis)
    return message


def _name(dtype: np.dtype) -> str:
    try:
        name = Dtype.name_of(dtype)
    except ValueError:
        reason = f"an array of {dtype} cannot be stored as a tensor"
        raise EncodeError(reason, expected=tuple(_STORAGE), got=str(dtype)) from None
    if name not in _STORAGE:
        advice = 'pass its integers, array.view("int64")' if dtype.kind in "mM" else None
        raise EncodeError(f"TensorFlow has no dtype for {name}", expected=tuple(_STORAGE), got=name, hint=advice)
    return name


def _size_error(size: int) -> EncodeError:
    reason = f"the tensor has {size} bytes; a TensorProto holds {LIMITS.MAX_RECORD_BYTES} at most"
    return EncodeError(reason, expected=LIMITS.MAX_RECORD_BYTES, got=size)


def _strings(values: Array) -> bytes:
    items = values.reshape(-1).tolist()
    message = _front(Dtype.STRING, values.shape)
    encoded = [item if isinstance(item, bytes) else _encode_item(item, index) for index, item in enumerate(items)]
    size = sum(map(len, encoded)) + 6 * len(encoded)  # a tag and a varint of five bytes, at most
    if size > LIMITS.MAX_RECORD_BYTES:
        raise _size_error(size)
    message.string_val.extend(encoded)
    return bytes(message.SerializeToString())


def _encode_item(item: Any, index: int) -> bytes:
    if not isinstance(item, str):
        kind = type(item).__name__
        reason = f"item {index} of an array of objects is of type {kind}"
        advice = "pass an array of one dtype, or bytes and text only"
        raise EncodeError(reason, expected="bytes or str", got=kind, hint=advice)
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
    if (array.dtype.kind in "SUV" and Dtype.extension_of(array.dtype) is None) or array.dtype == object:
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
        raise EncodeError("a number is too large for float32", expected="float32", hint=advice)
    return rounded


def _has_dtypes(value: Any) -> bool:
    """True if the nested values contain NumPy's numbers or arrays."""
    return any(map(_has_dtypes, value)) if isinstance(value, list | tuple) else hasattr(value, "dtype")
