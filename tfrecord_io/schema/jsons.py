"""Default values as JSON and back: what JSON has no form for stands in an object of one key that says what it is."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa

# What comes of values or texts that are none of a type.
DEFECTS = (
    pa.ArrowException,
    TypeError,
    ValueError,
    OverflowError,
    ArithmeticError,
    LookupError,
    AttributeError,
    RecursionError,
)

_MICROSECOND = dt.timedelta(microseconds=1)
_TAGS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {  # a datetime is a date, so it comes first
    "bytes": (bytes, lambda v: base64.b64encode(v).decode(), base64.b64decode),
    "datetime": (dt.datetime, dt.datetime.isoformat, dt.datetime.fromisoformat),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "time": (dt.time, dt.time.isoformat, dt.time.fromisoformat),
    "microseconds": (dt.timedelta, lambda v: v // _MICROSECOND, lambda n: n * _MICROSECOND),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
    "float": (float, str, float),
    "struct": (
        dict,
        lambda d: {k: to_plain(v) for k, v in d.items()},
        lambda d: {k: from_plain(v) for k, v in d.items()},
    ),
}


def dumps(value: Any, indent: int | None = None) -> str:
    """JSON text, keys in their order, text as it is."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def loads(text: str | bytes) -> Any:
    """What JSON text says."""
    return json.loads(text)


def to_plain(value: Any) -> Any:
    """A value in the terms of JSON.

    Raises
    ------
    TypeError
        It is of a class that is not known here.

    Examples
    --------
    >>> to_plain([1, b"ab"])
    [1, {'bytes': 'YWI='}]
    """
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    for tag, (class_, write, _) in _TAGS.items():
        if isinstance(value, class_):
            return {tag: write(value)}
    raise TypeError(f"a {type(value).__name__} has no form in JSON here")


def from_plain(value: Any) -> Any:
    """The value that `to_plain` put into the terms of JSON.

    >>> from_plain({"float": "inf"})
    inf
    """
    if isinstance(value, list):
        return [from_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    return _TAGS[tag][2](content)
