"""One record at a time: Example bytes from a dict and back, and the three helpers of TensorFlow's tutorial."""

from __future__ import annotations

import enum
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError as WireError

from tfrecord_io.engine.reference.encoder import encode_example_features, feature_of
from tfrecord_io.engine.reference.messages import Feature
from tfrecord_io.engine.reference.record_parser import read_record
from tfrecord_io.errors import DecodeError, EncodeError, printable
from tfrecord_io.format.kinds import Kind, RecordType

__all__ = ["bytes_feature", "decode_example", "encode_example", "float_feature", "int64_feature"]

_INT64 = np.iinfo(np.int64)
_BYTES_LIKE = (bytes, bytearray, memoryview)
_FULL_NAME = Feature.DESCRIPTOR.full_name


def bytes_feature(value: Any) -> Any:
    """Wrap bytes as a Feature.

    Parameters
    ----------
    value : bytes-like, or a sequence or array of bytes
        Also an object whose ``numpy()`` gives such (an eager tensor). Text is refused, as by TensorFlow's helper: say
        how it is to be encoded, ``text.encode()``.

    Returns
    -------
    Feature

    Raises
    ------
    TypeError
        `value` is of another type.

    Examples
    --------
    >>> bytes_feature(b"cat").bytes_list.value
    [b'cat']
    """
    return feature_of(Kind.BYTES, [_to_bytes(item) for item in _items(value)])


def float_feature(value: Any) -> Any:
    """Wrap numbers as a Feature of float32 values.

    Parameters
    ----------
    value : float or int, Python's or NumPy's, or a sequence or array of them
        Rounded to float32, the only float kind that there is. A bool is refused: it is an `int64_feature`.

    Returns
    -------
    Feature

    Raises
    ------
    TypeError
        `value` is of another type.
    EncodeError
        A finite value would become infinite.

    Examples
    --------
    >>> float_feature(0.5).float_list.value
    [0.5]
    """
    items = _items(value)
    if not _is_array_of(items, "fiu"):
        items = [_to_float(item) for item in items]
    return feature_of(Kind.FLOAT, _as_float32(items))


def int64_feature(value: Any) -> Any:
    """Wrap integers as a Feature of int64 values.

    Parameters
    ----------
    value : bool, int or member of an enum of integers, Python's or NumPy's, signed or not, or a sequence or array of them

    Returns
    -------
    Feature

    Raises
    ------
    TypeError
        `value` is of another type; 1.0 is no integer.
    EncodeError
        A value is outside of int64.

    Examples
    --------
    >>> int64_feature([True, 2]).int64_list.value
    [1, 2]
    """
    items = _items(value)
    numbers = items.tolist() if _is_array_of(items, "biu") else [_to_int(item) for item in items]
    for number in numbers:
        if not _INT64.min <= number <= _INT64.max:
            raise EncodeError("an integer is outside of int64", expected=f"{_INT64.min} to {_INT64.max}", got=number)
    return feature_of(Kind.INT64, [int(number) for number in numbers])


def encode_example(features: Mapping[str, Any]) -> bytes:
    """Encode one Example from a dict.

    Parameters
    ----------
    features : mapping of str to values
        A value is a bool, int, float, bytes or str (written as UTF-8), a list or one-dimensional array of such, a
        Feature, or None, which is left out. float64 is rounded to float32.

    Returns
    -------
    bytes
        The payload of one record; features stand in the mapping's order.

    Raises
    ------
    EncodeError
        A value has no form in an Example; its `feature` says which.

    Examples
    --------
    >>> payload = encode_example({"label": 3, "name": "cat", "scores": [0.5, 1.5]})
    >>> decode_example(payload)["scores"]
    array([0.5, 1.5], dtype=float32)
    """
    encoded = []
    for name, value in features.items():
        if value is None:
            continue
        try:
            encoded.append((_checked_name(name), _feature(value)))
        except EncodeError as error:
            error.feature = str(name)
            raise
        except TypeError as error:
            raise EncodeError(str(error), feature=str(name)) from None
    return encode_example_features(encoded)


def decode_example(payload: Any) -> dict[str, Any]:
    """Decode the bytes of one Example.

    Parameters
    ----------
    payload : bytes-like

    Returns
    -------
    dict of str to ndarray or None
        int64 and float32 arrays, bytes as arrays of objects, all one-dimensional and the caller's own; None for a
        feature that has no kind. Features stand in the order of the wire.

    Raises
    ------
    DecodeError
        `payload` is no Example: C++ protobuf would refuse it.

    Examples
    --------
    >>> decode_example(encode_example({"label": 3}))
    {'label': array([3])}
    """
    try:
        record = read_record(bytes(payload), RecordType.EXAMPLE, lambda name, is_list: True)
    except WireError:
        raise DecodeError(
            "the payload is no valid Example", advice='other messages and plain bytes are read with record_type="bytes"'
        ) from None
    return {name: None if cell is None else _as_array(cell.kind, cell.values) for name, cell in record.features.items()}


def _as_array(kind: Kind, values: Any) -> Any:
    if kind != Kind.BYTES:
        return values.copy()
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _is_array_of(items: Any, kinds: str) -> bool:
    return isinstance(items, np.ndarray) and items.dtype.kind in kinds


def _items(value: Any) -> Any:
    """The values of a scalar, a sequence or an array: a list or a one-dimensional array."""
    if not isinstance(value, np.ndarray | np.generic) and callable(getattr(value, "numpy", None)):
        value = value.numpy()  # an eager tensor
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        if value.ndim > 1:
            raise EncodeError(
                f"an array of {value.ndim} dimensions; a feature has one: ravel() it, or write a table with write_tfrecord"
            )
        return value.reshape(-1)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return value
    return [value]


def _to_bytes(item: Any) -> bytes:
    if isinstance(item, _BYTES_LIKE):
        return bytes(item)
    if isinstance(item, str):
        raise TypeError("text is no bytes: encode it, text.encode()")
    raise TypeError(f"expected bytes, got {type(item).__name__}")


def _to_float(item: Any) -> float:
    if isinstance(item, bool | np.bool_) or not isinstance(item, float | int | np.floating | np.integer):
        raise TypeError(f"expected a float, got {type(item).__name__}")
    return item  # type: ignore[return-value]  # NumPy's floats stay what they are: float() would quiet a signalling NaN


def _as_float32(items: Any) -> Any:
    try:
        values = np.asarray(items) if len(items) else np.empty(0, np.float32)
        if values.dtype == object:  # integers beyond 64 bits
            values = values.astype(np.float64)
    except OverflowError:
        raise EncodeError("a finite value would become infinite as float32") from None
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    if np.any(np.isinf(rounded) & np.isfinite(values)):
        raise EncodeError("a finite value would become infinite as float32")
    return rounded


def _to_int(item: Any) -> int:
    if isinstance(item, enum.Enum):
        item = item.value
    if isinstance(item, np.bool_):
        return int(item)
    try:
        return operator.index(item)
    except TypeError:
        raise TypeError(f"expected an integer, got {type(item).__name__}") from None


def _checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise EncodeError(f"a feature's name is text, got {type(name).__name__}")
    _utf8(name)
    return name


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise EncodeError("text that has no UTF-8 form (a lone surrogate)") from None


def _feature(value: Any) -> Any:
    """Make a Feature of whatever `encode_example` takes."""
    if getattr(getattr(value, "DESCRIPTOR", None), "full_name", None) == _FULL_NAME:
        return Feature.FromString(value.SerializeToString())  # TensorFlow's class is another one: only bytes pass
    items = _items(value)
    if isinstance(items, np.ndarray) and items.dtype != object:
        return _array_feature(items)
    if len(items) == 0:
        raise EncodeError("an empty list does not say its kind: pass an empty NumPy array of a dtype, or a Feature")
    kinds = [_kind_of(item) for item in items]
    if any(kind != kinds[0] for kind in kinds):
        at = next(at for at, kind in enumerate(kinds) if kind != kinds[0])
        first, other = kinds[0].description, kinds[at].description
        said = f"{printable(repr(items[0]), 40)} at index 0 is {first}, {printable(repr(items[at]), 40)} at index {at} is {other}"
        raise EncodeError(
            f"values of several kinds in one feature: {said}",
            expected=first,
            got=other,
            advice="convert them to one kind",
        )
    if kinds[0] == Kind.BYTES:
        return bytes_feature([_utf8(item) if isinstance(item, str) else item for item in items])
    return int64_feature(items) if kinds[0] == Kind.INT64 else float_feature(items)


def _array_feature(items: Any) -> Any:
    if items.dtype.kind in "biu":
        return int64_feature(items)
    if items.dtype.kind == "f":
        return float_feature(items)
    if items.dtype.kind in "SU":
        return bytes_feature([_utf8(item) if isinstance(item, str) else item for item in items.tolist()])
    raise EncodeError(f"an array of dtype {items.dtype} has no kind in an Example")


def _kind_of(item: Any) -> Kind:
    if isinstance(item, str | bytes | bytearray | memoryview):
        return Kind.BYTES
    if isinstance(item, bool | int | np.bool_ | np.integer | enum.Enum):
        return Kind.INT64
    if isinstance(item, float | np.floating):
        return Kind.FLOAT
    if item is None:
        raise EncodeError("None inside a list: a feature's values cannot be missing one by one")
    raise EncodeError(f"a value of type {type(item).__name__} has no kind in an Example")
