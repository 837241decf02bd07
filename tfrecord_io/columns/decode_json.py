"""Examples in JSON, as protobuf prints them, to serialized Examples, like ``tf.io.decode_json_example``."""

from __future__ import annotations

import binascii
import json
import re
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np

from tfrecord_io.base import check_keywords, printable
from tfrecord_io.columns.example import Feature, bytes_feature, encode_features, float_feature, int64_feature
from tfrecord_io.errors import DecodeError, EncodeError

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*(={0,2})")
_NOT_FINITE = {"NaN", "Infinity", "-Infinity"}
_INT64 = np.iinfo(np.int64)


@check_keywords
def decode_json_example(json_examples: Any) -> Any:
    """Convert Examples in JSON to serialized Examples, like ``tf.io.decode_json_example``.

    >>> import tfrecord_io as tfr
    >>> payload = tfr.io.decode_json_example(
    ...     '{"features": {"feature": {"x": {"int64List": {"value": ["1", 2]}}}}}'
    ... )
    >>> tfr.decode_example(payload)
    {'x': array([1, 2])}

    Parameters
    ----------
    json_examples : str, bytes, or a sequence or array of them
        Each is the JSON of one Example in protobuf's mapping: ``bytesList``, ``floatList`` or ``int64List`` (or
        ``bytes_list`` …) with ``value``. Bytes are base64; integers may be text, as protobuf prints them; NaN and
        infinities are ``"NaN"``, ``"Infinity"``, ``"-Infinity"``. The JSON must be valid; TensorFlow also accepts
        trailing commas and single quotes, and reads null in a list as 0, which is an error here.

    Returns
    -------
    bytes or ndarray
        The payload of a record; an object array of the shape of `json_examples` unless that is a single text. The
        payload parses to the same Example as TensorFlow's, whose bytes differ.

    Raises
    ------
    DecodeError
        The text is not JSON, or not of an Example, or a value does not fit its type; ``.feature`` names it.
    """
    if isinstance(json_examples, str | bytes):
        return _payload(json_examples)
    items = np.array(json_examples, dtype=object)
    payloads = np.empty(items.shape, dtype=object)
    for at in np.ndindex(items.shape):
        payloads[at] = _payload(items[at])
    return payloads


def _payload(text: Any) -> bytes:
    if not isinstance(text, str | bytes):
        raise TypeError(f"expected the JSON of an Example as str or bytes, got {type(text).__name__}")
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        document = json.loads(decoded, object_pairs_hook=_object, parse_float=Decimal, parse_constant=_refuse_constant)
    except (ValueError, RecursionError, ArithmeticError) as error:
        if isinstance(error, DecodeError):
            raise
        raise DecodeError(f"not valid JSON: {printable(error, 200)}", expected="the JSON of an Example") from None
    features = _member(_member(document, "features", "an Example"), "feature", "Features")
    if features is not None and not isinstance(features, dict):
        _refuse("'feature' is not an object", features)
    encoded = []
    for name, value in (features or {}).items():
        try:
            name.encode()
            encoded.append((name, _feature(value)))
        except UnicodeEncodeError:
            raise DecodeError("the name cannot be encoded as UTF-8 (a lone surrogate)", feature=name) from None
        except (DecodeError, EncodeError) as error:
            raise DecodeError(
                error.reason or str(error), feature=name, expected=error.expected, got=error.got
            ) from None
    return encode_features(encoded)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DecodeError(f"the JSON has the name '{printable(twice)}' twice in one object")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise DecodeError(f'{name} is not valid JSON; write "{name}", with quotes')


def _refuse(reason: str, value: Any) -> NoReturn:
    raise DecodeError(f"{reason}: {_description(value)}", got=_description(value))


def _description(value: Any) -> str:
    """Describe a JSON value without its content."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "a bool"
    if isinstance(value, str):
        return f"text of {len(value)} characters"
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a number"


def _member(message: Any, name: str, kind: str) -> Any:
    """Get the only field that a message may have; None if the field or the message is null or absent."""
    if message is None and kind != "an Example":
        return None
    if not isinstance(message, dict):
        _refuse(f"expected an object for {kind}, got", message)
    unknown = next((field for field in message if field != name), None)
    if unknown is not None:
        raise DecodeError(f"{kind} has no field '{printable(unknown)}'", expected=name, got=unknown)
    return message.get(name)


def _feature(value: Any) -> Any:
    """Convert a JSON value to a Feature; null and {} have no feature type."""
    if value is not None and not isinstance(value, dict):
        _refuse("expected an object for a Feature, got", value)
    fields = {name: content for name, content in (value or {}).items() if content is not None or name not in _LISTS}
    unknown = next((name for name in fields if name not in _LISTS), None)
    if unknown is not None:
        expected = "bytesList, floatList or int64List"
        raise DecodeError(f"a Feature has no field '{printable(unknown)}'", expected=expected, got=unknown)
    if len(fields) > 1:
        raise DecodeError(f"a Feature has one feature type, got {' and '.join(fields)}", expected=1, got=len(fields))
    for name, content in fields.items():
        make, convert = _LISTS[name]
        values = _member(content, "value", name)
        values = values if isinstance(values, list) else [] if values is None else [values]
        return make([convert(item) for item in values])
    return Feature()


def _number(value: Any, kind: str) -> Decimal:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        _refuse(f"expected {kind}, got", value)
    return Decimal(value)


def _integer(value: Any) -> int:
    number = _number(value, "an integer")
    if not _INT64.min <= number <= _INT64.max:
        _refuse("the integer is out of range of int64", value)
    if number != number.to_integral_value():
        _refuse("expected an integer, got", value)
    return int(number)


def _float(value: Any) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return float(value)
    number = float(_number(value, "a number"))
    if np.isinf(number):
        _refuse("the number is out of range of float32", value)
    return number


def _bytes(value: Any) -> bytes:
    text = value.replace("-", "+").replace("_", "/") if isinstance(value, str) else None
    match = None if text is None else _BASE64.fullmatch(text)
    if text is None or match is None or (match[1] and len(text) % 4) or len(text) % 4 == 1:
        _refuse("expected base64, got", value)
    return binascii.a2b_base64(text + "=" * (-len(text) % 4))


_LISTS: dict[str, tuple[Any, Any]] = {
    "bytesList": (bytes_feature, _bytes),
    "floatList": (float_feature, _float),
    "int64List": (int64_feature, _integer),
}
_LISTS |= {f"{name[:-4].lower()}_list": entry for name, entry in _LISTS.items()}
