"""Encoding and decoding single Examples as dicts, and the three Feature helpers of TensorFlow's tutorial."""

from __future__ import annotations

import enum
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import EncodeError as NotSerialized

from tfrecord_io.base import LIMITS
from tfrecord_io.bytes import (
    ColumnBuffers,
    Dtype,
    FieldTag,
    FrameHeader,
    Kind,
    MessageClasses,
    NestedValues,
    Plan,
    Text,
    get_engine,
)
from tfrecord_io.errors import DecodeError, EncodeError
from tfrecord_io.typing import BytesLike

_INT64 = np.iinfo(np.int64)
_BYTES_LIKE = (bytes, bytearray, memoryview)
Feature = MessageClasses.from_examples()["Feature"]
_FIRST, _SECOND = FieldTag.of(1), FieldTag.of(2)
_FULL_NAME = Feature.DESCRIPTOR.full_name
_ELSEWHERE = "write large values to separate files"
_ALL = Plan(text=Text.NO, check_crc=False, max_features=2**31 - 1)
_KINDS = {"b": Kind.INT64, "i": Kind.INT64, "u": Kind.INT64, "f": Kind.FLOAT, "S": Kind.BYTES, "U": Kind.BYTES}


def bytes_feature(value: Any) -> Any:
    """Wrap bytes as a Feature.

    >>> bytes_feature([b"cat", "dog"]).bytes_list.value
    [b'cat', b'dog']

    Parameters
    ----------
    value : bytes-like or str, or a sequence or array of them
        Also an object whose ``numpy()`` returns one (an eager tensor). Text is written as UTF-8.

    Raises
    ------
    TypeError
        `value` has another type.
    """
    feature = Feature()
    feature.bytes_list.value.extend([_to_bytes(item) for item in _items(value)])
    feature.bytes_list.SetInParent()
    return feature


def float_feature(value: Any) -> Any:
    """Wrap numbers as a Feature of float32 values.

    >>> float_feature(0.5).float_list.value
    [0.5]

    Parameters
    ----------
    value : float or int, Python's or NumPy's, or a sequence or array of them
        Rounded to float32, the only float type of TFRecord. A bool is an error: use `int64_feature`.

    Raises
    ------
    TypeError
        `value` has another type.
    EncodeError
        A finite value would become infinite.
    """
    items = _items(value)
    if not (isinstance(items, np.ndarray) and items.dtype.kind in "fiu"):
        items = [_to_float(item) for item in items]
    feature = Feature()  # of bytes: Python's floats would quiet signalling NaNs
    feature.float_list.MergeFromString(_FIRST.field(_as_float32(items).astype("<f4", copy=False).tobytes()))
    feature.float_list.SetInParent()
    return feature


def int64_feature(value: Any) -> Any:
    """Wrap integers as a Feature of int64 values.

    >>> int64_feature([True, 2]).int64_list.value
    [1, 2]

    Parameters
    ----------
    value : bool, int, integer enum member, or NumPy bool or integer, or a sequence or array of them

    Raises
    ------
    TypeError
        `value` has another type; 1.0 is not an integer.
    EncodeError
        A value is out of range of int64.
    """
    items = _items(value)
    is_array = isinstance(items, np.ndarray) and items.dtype.kind in "biu"
    numbers = items.tolist() if is_array else [_to_int(item) for item in items]
    for number in numbers:
        if not _INT64.min <= number <= _INT64.max:
            expected = f"{_INT64.min} to {_INT64.max}"
            raise EncodeError("an integer is out of range of int64", expected=expected, got=number)
    feature = Feature()
    feature.int64_list.value.extend([int(number) for number in numbers])
    feature.int64_list.SetInParent()
    return feature


def encode_example(features: Mapping[str, Any]) -> bytes:
    """Encode one Example from a dict.

    >>> payload = encode_example({"label": 3, "name": "cat", "scores": [0.5, 1.5]})
    >>> decode_example(payload)["scores"]
    array([0.5, 1.5], dtype=float32)

    Parameters
    ----------
    features : mapping of str to values
        A value is a bool, int, float, bytes or str (written as UTF-8), a list or one-dimensional array of these, a
        Feature, or None or ``pd.NA``, which are omitted. float64 is rounded to float32; dtypes of ml_dtypes become the
        wider ones of NumPy, which hold them exactly.

    Returns
    -------
    bytes
        The payload of one record, with features in the order of the mapping.

    Raises
    ------
    EncodeError
        A value cannot be stored in an Example, or is masked or null; the error's `feature` names it.
    """
    if not isinstance(features, Mapping):
        raise TypeError(f"expected a dict of values by feature name, got {type(features).__name__}{_hint(features)}")
    encoded = []
    for name, value in features.items():
        if value is None or type(value).__name__ == "NAType":  # of pandas
            continue
        try:
            if not isinstance(name, str):
                raise EncodeError(f"expected a feature name of type str, got {type(name).__name__}")
            _utf8(name)
            encoded.append((name, _feature(value)))
        except EncodeError as error:
            error.feature = str(name)
            raise
        except TypeError as error:
            raise EncodeError(str(error), feature=str(name)) from None
    return encode_features(encoded)


def encode_features(features: Sequence[tuple[str, Any]]) -> bytes:
    """The payload of an Example with these Feature messages, in this order, which a map of protobuf does not keep."""
    entries = []
    for name, feature in features:
        try:
            entries.append(_FIRST.field(_FIRST.field(name.encode()) + _SECOND.field(feature.SerializeToString())))
        except NotSerialized:  # its values have 2 GiB or more
            raise EncodeError(LIMITS.too_large(), feature=name, hint=_ELSEWHERE) from None
    payload = _FIRST.field(b"".join(entries))
    if len(payload) > LIMITS.MAX_RECORD_BYTES:
        raise EncodeError(LIMITS.too_large(), hint=_ELSEWHERE)
    return payload


def decode_example(payload: BytesLike) -> dict[str, Any]:
    """Decode the bytes of one Example.

    >>> decode_example(encode_example({"label": 3}))
    {'label': array([3])}

    Parameters
    ----------
    payload : bytes-like
        Of a SequenceExample only the context is decoded; `tfrecord_io.io.decode_examples` reads its feature lists, too.

    Returns
    -------
    dict of str to ndarray or None
        int64 and float32 arrays, and object arrays of bytes, all one-dimensional copies; None for a feature that has no
        feature type. Features are in the order of the record.

    Raises
    ------
    DecodeError
        `payload` is not an Example: C++ protobuf rejects it, or it looks like an ExampleListWithContext.
    TypeError
        `payload` is not the bytes of one record.
    """
    if isinstance(payload, str) or _is_message(payload):
        raise TypeError(f"expected bytes, got {type(payload).__name__}{_hint(payload)}")
    decoder, record = get_engine().decoder(_ALL), _record_of(payload)
    # A frame with a checksum of its length only.
    frame = b"".join((FrameHeader.make(len(record)), record, bytes(FrameHeader.FOOTER_BYTES)))
    decoder.expect(len(frame))
    if decoder.feed(frame).fault is not None:
        advice = 'read files of other messages and plain bytes with tfr.dataset(path, record_type="bytes")'
        raise DecodeError("the payload is not a valid Example", hint=advice)
    counts = decoder.counts
    if counts.nested and (error := counts.not_examples(None)):
        raise error
    return {column.name: _as_array(column) for column in decoder.take()}


def _record_of(payload: Any) -> bytes:
    """Convert one record to bytes; TypeError for several records, and for numbers, which ``bytes`` turns into zeros."""
    try:
        view = memoryview(payload.as_buffer() if isinstance(payload, pa.BinaryScalar) else payload)
    except TypeError:
        view = None
    if view is None or view.format == "O":
        got = type(payload).__name__
        raise TypeError(f"expected the bytes of a record, got {got}; tfr.io.decode_examples takes a column of them")
    return view.tobytes()


def _is_message(value: Any) -> bool:
    return callable(getattr(value, "SerializeToString", None))


def _hint(value: Any) -> str:
    return ": call its SerializeToString()" if _is_message(value) else ""


def _as_array(column: ColumnBuffers) -> Any:
    """Convert a column of one row to an array; None without a feature type."""
    if column.null_count:
        return None
    assert column.values is not None
    if column.kind != Kind.BYTES:
        return column.values.astype(np.int64 if column.kind == Kind.INT64 else np.float32)  # C's long, not long long
    assert column.value_offsets is not None
    buffers = [None, pa.py_buffer(column.value_offsets), pa.py_buffer(column.values)]
    objects = pa.Array.from_buffers(pa.binary(), len(column.value_offsets) - 1, buffers)
    return objects.to_numpy(zero_copy_only=False).copy()


def _items(value: Any) -> Any:
    """Convert a scalar, a sequence or an array to a list or a one-dimensional array."""
    if not isinstance(value, np.ndarray | np.generic) and callable(getattr(value, "numpy", None)):
        is_extension = hasattr(value, "float") and Dtype.extension_of(getattr(value, "dtype", "")) is not None
        value = (value.float() if is_extension else value).numpy()  # of PyTorch, whose extensions are floats
    if NestedValues([value]).has_missing:
        kind = "masked" if isinstance(value, np.ma.MaskedArray | list | tuple) else "missing"
        advice = "fill it (array.filled), leave the values out (array.compressed), or pass None for the feature"
        advice = (
            advice if isinstance(value, np.ma.MaskedArray) else "fill it, leave it out, or pass None for the feature"
        )
        raise EncodeError(f"a {kind} value: the values of a feature cannot be missing individually", hint=advice)
    if (row := Dtype.extension_of(getattr(value, "dtype", None))) is not None:
        value = value.astype(row.wide)
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        if value.ndim > 1:
            advice = "ravel() it, or write a table with write_tfrecord"
            raise EncodeError(f"a feature has one dimension, got an array of {value.ndim} dimensions", hint=advice)
        return value.reshape(-1)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return value
    return [value]


def _to_bytes(item: Any) -> bytes:
    if isinstance(item, str):
        return _utf8(item)
    if not isinstance(item, _BYTES_LIKE):
        raise TypeError(f"expected bytes or str, got {type(item).__name__}")
    return bytes(item)


def _to_float(item: Any) -> float:
    if isinstance(item, bool | np.bool_) or not isinstance(item, float | int | np.floating | np.integer):
        raise TypeError(f"expected a float, got {type(item).__name__}")
    return item  # type: ignore[return-value]  # keep NumPy's floats: float() would quiet a signalling NaN


def _as_float32(items: Any) -> Any:
    try:
        values = np.asarray(items) if len(items) else np.empty(0, np.float32)
        if values.dtype == object:  # integers beyond 64 bits
            values = values.astype(np.float64)
        with np.errstate(over="ignore"):
            rounded = values.astype(np.float32)
        if np.any(np.isinf(rounded) & np.isfinite(values)):
            raise OverflowError
    except OverflowError:
        raise EncodeError("a finite value would become infinite as float32") from None
    return rounded


def _to_int(item: Any) -> int:
    if isinstance(item, enum.Enum):
        item = item.value
    if isinstance(item, np.bool_):
        return int(item)
    try:
        return operator.index(item)
    except TypeError:
        advice = ": convert it by int(), or call float_feature" if isinstance(item, float | np.floating) else ""
        raise TypeError(f"expected an integer, got {type(item).__name__}{advice}") from None


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise EncodeError("the text cannot be encoded as UTF-8 (a lone surrogate)") from None


def _feature(value: Any) -> Any:
    """Make a Feature of any value that `encode_example` accepts."""
    if getattr(getattr(value, "DESCRIPTOR", None), "full_name", None) == _FULL_NAME:
        return Feature.FromString(value.SerializeToString())  # a message of another class, such as TensorFlow's
    items = _items(value)
    if isinstance(items, np.ndarray) and items.dtype != object:
        kind = _KINDS.get(items.dtype.kind)
        if kind is None:
            raise EncodeError(f"an array of dtype {items.dtype} cannot be stored in an Example")
        items = items.tolist() if kind == Kind.BYTES else items
    else:
        kind = _common_kind(items)
    if kind == Kind.BYTES:
        return bytes_feature(items)
    return int64_feature(items) if kind == Kind.INT64 else float_feature(items)


def _common_kind(items: Sequence[Any]) -> Kind:
    if len(items) == 0:
        advice = "pass a Feature, such as tfr.io.float_feature([]), or an empty NumPy array"
        raise EncodeError("the feature type of an empty list is unknown", hint=advice)
    kinds = [_kind_of(item) for item in items]
    odd = next((i for i, kind in enumerate(kinds) if kind != kinds[0]), None)
    if odd is not None:
        expected, got = kinds[0].description, kinds[odd].description
        first, second = type(items[0]).__name__, type(items[odd]).__name__
        reason = f"the values mix types: the {first} at index 0 is {expected}, the {second} at index {odd} is {got}"
        raise EncodeError(reason, expected=expected, got=got, hint="convert them to one type")
    return kinds[0]


def _kind_of(item: Any) -> Kind:
    if isinstance(item, str | bytes | bytearray | memoryview):
        return Kind.BYTES
    if isinstance(item, bool | int | np.bool_ | np.integer | enum.Enum):
        return Kind.INT64
    if isinstance(item, float | np.floating):
        return Kind.FLOAT
    if item is None:
        raise EncodeError("None inside a list: the values of a feature cannot be missing individually")
    reason = f"a value of type {type(item).__name__} cannot be stored in an Example"
    raise EncodeError(reason, hint=_advice(item))


def _advice(value: Any) -> str | None:
    if isinstance(value, Mapping):
        return "name the inner features 'outer/inner', or write a list of dicts with tfr.write_tfrecord"
    if isinstance(value, list | tuple):
        return "flatten it, or write lists of lists with tfr.write_tfrecord(..., record_type='sequence_example')"
    return Kind.image_advice(value) or "pass numbers, texts, bytes, or a list or an array of those"
