"""The value that fills padded arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrecord_io.errors import SchemaError


def pad_value(value: Any, dtype: np.dtype[Any], name: str) -> Any:
    """Convert a padding value to a dtype; arrays of text and bytes are padded with empty values unless `value` is one.

    >>> pad_value(-1, np.dtype("int64"), "x"), pad_value(0, np.dtype("M8[s]"), "x")
    (np.int64(-1), np.datetime64('1970-01-01T00:00:00'))
    """
    if dtype.kind == "T":
        return value if isinstance(value, str) else ""
    if dtype.kind == "O":
        return value if isinstance(value, bytes) else b""
    if dtype.kind in "US" and not isinstance(value, str | bytes):
        return dtype.type()
    converted = _converted(value, dtype)
    if converted is None:
        reason = f"cannot pad {dtype} with {value!r}"
        raise SchemaError(reason, feature=name, expected=str(dtype), got=value, advice="pass another pad_value=")
    return converted


def _converted(value: Any, dtype: np.dtype[Any]) -> Any:
    """`value` as `dtype`, None if the dtype cannot hold it."""
    try:
        if dtype.kind in "mM":
            return np.asarray(value, np.int64 if isinstance(value, int) else dtype).astype(dtype)[()]
        original = np.asarray(value)
        converted = original.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return None
    equal = converted == original or (original != original and dtype.kind in "fc")  # NaN is a value of floats
    return converted[()] if original.ndim == 0 and equal else None
