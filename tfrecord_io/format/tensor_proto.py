"""Arrays as serialized TensorProtos and back: what ``tf.io.serialize_tensor`` writes and ``tf.io.parse_tensor`` reads.

A TensorProto (tensorflow/core/framework/tensor.proto) has its values in `tensor_content`, as raw bytes, or in a field by
their dtype, of which the last value stands for all that are left out. protobuf itself reads the message, as its
rules on repeated, merged and unknown fields are many.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError as ProtobufError

from tfrecord_io.errors import DecodeError
from tfrecord_io.format.dtype_names import STRING, declared_name
from tfrecord_io.format.dtypes import Array, element
from tfrecord_io.format.protobuf import FieldSpec, message_classes

# From tensorflow/core/framework/tensor.proto and tensor_shape.proto. Floats are declared as their bits: fixed32 and float
# are the same on the wire, but a Python float quiets a signalling NaN. An enum is an int32 there. The fields of resources,
# variants and 8-bit floats hold no array: they are left out here, and skipped.
_MESSAGES: dict[str, tuple[FieldSpec, ...]] = {
    "Dim": (("size", 1, "int64"), ("name", 2, "string")),
    "TensorShapeProto": (("dim", 2, "*Dim"), ("unknown_rank", 3, "bool")),
    "TensorProto": (
        ("dtype", 1, "int32"),
        ("tensor_shape", 2, "TensorShapeProto"),
        ("version_number", 3, "int32"),
        ("tensor_content", 4, "bytes"),
        ("float_val", 5, "*fixed32"),
        ("double_val", 6, "*fixed64"),
        ("int_val", 7, "*int32"),
        ("string_val", 8, "*bytes"),
        ("scomplex_val", 9, "*fixed32"),
        ("int64_val", 10, "*int64"),
        ("bool_val", 11, "*bool"),
        ("dcomplex_val", 12, "*fixed64"),
        ("half_val", 13, "*int32"),
        ("uint32_val", 16, "*uint32"),
        ("uint64_val", 17, "*uint64"),
    ),
}
TensorProto = message_classes("tfrecord_io/tensor.proto", "tensorflow", _MESSAGES)["TensorProto"]

MOST_BYTES = 2**31 - 1  # of one tensor: protobuf's own limit, here of what a repeated value may unfold to as well
_MOST_AXES = 64  # of NumPy


class Stored(NamedTuple):
    """Where a dtype's values stand: its number in ``types.proto``, the field, and what protobuf makes of one."""

    number: int
    field: str
    unit: str


STORED = {
    "float32": Stored(1, "float_val", "uint32"),
    "float64": Stored(2, "double_val", "uint64"),
    "int32": Stored(3, "int_val", "int32"),
    "uint8": Stored(4, "int_val", "int32"),
    "int16": Stored(5, "int_val", "int32"),
    "int8": Stored(6, "int_val", "int32"),
    STRING: Stored(7, "string_val", "object"),
    "complex64": Stored(8, "scomplex_val", "uint32"),
    "int64": Stored(9, "int64_val", "int64"),
    "bool": Stored(10, "bool_val", "bool"),
    "bfloat16": Stored(14, "half_val", "int32"),
    "uint16": Stored(17, "int_val", "int32"),
    "complex128": Stored(18, "dcomplex_val", "uint64"),
    "float16": Stored(19, "half_val", "int32"),
    "uint32": Stored(22, "uint32_val", "uint32"),
    "uint64": Stored(23, "uint64_val", "uint64"),
}
_NAMES = {stored.number: name for name, stored in STORED.items()}
_FIELDS = frozenset(stored.field for stored in STORED.values())
_WITHOUT_ARRAYS = {
    0: "DT_INVALID",
    11: "DT_QINT8",
    12: "DT_QUINT8",
    13: "DT_QINT32",
    15: "DT_QINT16",
    16: "DT_QUINT16",
    20: "DT_RESOURCE",
    21: "DT_VARIANT",
    24: "DT_FLOAT8_E5M2",
    25: "DT_FLOAT8_E4M3FN",
    26: "DT_FLOAT8_E4M3FNUZ",
    27: "DT_FLOAT8_E4M3B11FNUZ",
    28: "DT_FLOAT8_E5M2FNUZ",
    29: "DT_INT4",
    30: "DT_UINT4",
    31: "DT_INT2",
    32: "DT_UINT2",
    33: "DT_FLOAT4_E2M1FN",
}
_ALL_NAMES = {**_NAMES, **_WITHOUT_ARRAYS}
_REFERENCES = 100  # DT_FLOAT_REF is 101, and so on


class Parsed(NamedTuple):
    """A tensor: the name of its dtype, its shape, and its values in C order, an array of its own."""

    name: str
    shape: tuple[int, ...]
    values: Array


def parse_tensor(data: Any, dtype: Any = None) -> Array:
    """The array in a serialized TensorProto, as ``tf.io.parse_tensor``.

    Parameters
    ----------
    data : bytes, bytearray or memoryview
        What ``tf.io.serialize_tensor`` or `serialize_tensor` gave, or another serialized TensorProto.
    dtype : str or dtype, optional
        What it must be of: a name ("float32", "string"), a dtype of NumPy or of TensorFlow. None: what the data says.

    Returns
    -------
    ndarray
        Writable, and the caller's own; of shape ``()`` for a scalar. Strings come as an object array of bytes, as NumPy's
        own bytes lose NULs at their end.

    Raises
    ------
    DecodeError
        The data is no TensorProto, is of another dtype than `dtype`, or of one that no array has (quantized numbers,
        resources, variants); its shape is unknown, negative or too large; its values do not fit the shape or the dtype.
        TensorFlow cuts values that are too many or too large, and gives zeros for values of another dtype: these are
        errors here. So is a tensor of 2³¹ bytes and more, which a few bytes can claim to be.
    SchemaError
        `dtype` is none that a tensor has.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> tfr.parse_tensor(tfr.serialize_tensor(np.array([[1, 2], [3, 4]], "int16")))
    array([[1, 2],
           [3, 4]], dtype=int16)
    >>> tfr.parse_tensor(tfr.serialize_tensor(["cat", b"\\x00"]), "string")
    array([b'cat', b'\\x00'], dtype=object)
    """
    declared = None if dtype is None else declared_name(dtype)
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a serialized tensor is bytes, not {type(data).__name__}")
    tensor = parsed(bytes(data), declared)
    return tensor.values.reshape(tensor.shape)


def parsed(data: bytes, declared: str | None = None) -> Parsed:
    """The tensor in `data`, which is of the dtype `declared`."""
    try:
        message = TensorProto.FromString(data)
    except (ProtobufError, UnicodeDecodeError) as error:  # the latter from protobuf in pure Python, for an axis' name
        raise DecodeError(f"the {len(data)} bytes are no TensorProto", expected="a serialized TensorProto") from error
    name = _dtype_name(message.dtype)
    if declared is not None and declared != name:
        raise DecodeError(f"the tensor is of {name}, not of {declared}", expected=declared, got=name)
    dtype = np.dtype(object) if name == STRING else element(name).dtype
    shape = _shape(message.tensor_shape, dtype.itemsize)
    count = math.prod(shape)
    if content := message.tensor_content:
        values = _split(content, count) if name == STRING else _viewed(content, dtype, count)
    else:
        values = _listed(message, name, dtype, count)
    return Parsed(name, shape, values)


def _dtype_name(number: int) -> str:
    name = _NAMES.get(number)
    if name is None:
        of = _ALL_NAMES.get(number - _REFERENCES)
        got = _ALL_NAMES.get(number, f"dtype {number}") if of is None else f"a reference to {of}"
        raise DecodeError(f"the tensor is of {got}, which no array is of", expected=tuple(STORED), got=got)
    return name


def _shape(said: Any, itemsize: int) -> tuple[int, ...]:
    if said.unknown_rank:
        raise DecodeError("the tensor's rank is unknown", expected="a shape")
    if len(said.dim) > _MOST_AXES:
        raise DecodeError(
            f"the tensor has {len(said.dim)} axes; NumPy's have {_MOST_AXES} at most",
            expected=_MOST_AXES,
            got=len(said.dim),
        )
    shape = tuple([axis.size for axis in said.dim])
    if shape and min(shape) < 0:
        raise DecodeError(f"the shape {shape} has a negative axis", expected="no negative axis", got=shape)
    if (
        math.prod([axis or 1 for axis in shape]) * itemsize > np.iinfo(np.int64).max
    ):  # NumPy counts so even where an axis is 0
        raise DecodeError(f"the shape {shape} is larger than any array", got=shape)
    if (size := math.prod(shape) * itemsize) > MOST_BYTES:
        reason = f"the shape {shape} makes {size} bytes; a tensor has {MOST_BYTES} at most"
        raise DecodeError(reason, expected=MOST_BYTES, got=size)
    return shape


def _viewed(content: bytes, dtype: np.dtype, count: int) -> Array:
    """The raw bytes as values."""
    if len(content) != count * dtype.itemsize:
        reason = f"{len(content)} bytes of content for {count} values of {dtype.itemsize} bytes"
        raise DecodeError(reason, expected=count * dtype.itemsize, got=len(content))
    values = np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype)
    if dtype.kind == "b" and (largest := int(values.view(np.uint8).max(initial=0))) > 1:
        raise DecodeError(f"the byte {largest} is no bool", expected="0 or 1", got=largest)
    return values


def _split(content: bytes, count: int) -> Array:
    """Strings in raw bytes: a varint for the length of each, then all of them."""
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
    """A number, and where it ends."""
    value, at = 0, begin
    for shift in range(0, 35, 7):
        if at == len(content):
            break
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, at
    raise DecodeError(
        f"byte {begin} of the content begins no length of a string", expected="a varint of 5 bytes at most"
    )


def _listed(message: Any, name: str, dtype: np.dtype, count: int) -> Array:
    """The values in the field of their dtype, the last one repeated to `count`; without any, zeros."""
    stored = STORED[name]
    said = getattr(message, stored.field)
    if not said:
        strays = sorted(field.name for field, _ in message.ListFields() if field.name in _FIELDS)
        if strays:
            reason = f"a tensor of {name} with values in {strays[0]}"
            raise DecodeError(reason, expected=stored.field, got=strays[0])
        return np.full(count, b"", object) if name == STRING else np.zeros(count, dtype)
    if name == STRING:
        given = np.empty(len(said), object)
        given[:] = list(said)
    else:
        given = _as_bits(np.fromiter(said, stored.unit, len(said)), dtype)
    if len(given) > count:
        raise DecodeError(f"{len(given)} values for a shape of {count}", expected=count, got=len(given))
    whole = np.empty((count, *given.shape[1:]), given.dtype)
    whole[: len(given)] = given
    whole[len(given) :] = given[-1]
    return whole if name == STRING else whole.reshape(-1).view(dtype)


def _as_bits(units: Array, dtype: np.dtype) -> Array:
    """One row of bits per value of `dtype`: numbers that are not calculated with keep theirs."""
    if dtype.kind == "c":
        if len(units) % 2:
            raise DecodeError(f"{len(units)} halves of complex numbers", expected="an even number", got=len(units))
        return units.reshape(-1, 2)
    if units.dtype.itemsize > dtype.itemsize:  # an int32, which protobuf has no narrower one than
        bits = np.dtype(dtype if dtype.kind in "iu" else np.uint16)
        range_ = np.iinfo(bits)
        if np.any(misfit := (units < range_.min) | (units > range_.max)):
            got = int(units[misfit.argmax()])
            raise DecodeError(
                f"the value {got} is outside of {dtype}", expected=f"{range_.min} to {range_.max}", got=got
            )
        units = units.astype(bits)
    return units
