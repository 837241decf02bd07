"""What padded arrays are filled up with."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrecord_io.errors import SchemaError


def pad_value(value: Any, dtype: np.dtype[Any], name: str) -> Any:
    """The value of `dtype` that arrays are filled up with; of text and bytes an empty one unless `value` is text or bytes.

    Parameters
    ----------
    value : object
        What was asked for.
    dtype : numpy.dtype
    name : str
        The column's.

    Raises
    ------
    SchemaError
        The dtype cannot hold the value.

    Examples
    --------
    >>> pad_value(-1, np.dtype("int64"), "x"), pad_value(0, np.dtype("M8[s]"), "x")
    (np.int64(-1), np.datetime64('1970-01-01T00:00:00'))
    """
    if dtype.kind == "T":
        return value if isinstance(value, str) else ""
    if dtype.kind == "O":
        return value if isinstance(value, bytes) else b""
    if dtype.kind in "US" and not isinstance(value, str | bytes):
        return dtype.type()
    held = _held(value, dtype)
    if held is None:
        raise SchemaError(
            f"{value!r} is no value of {dtype} to pad with",
            feature=name,
            expected=str(dtype),
            got=value,
            advice="pass another pad_value=",
        )
    return held


def _held(value: Any, dtype: np.dtype[Any]) -> Any:
    """The value as one of `dtype`, None where it is none."""
    try:
        if dtype.kind in "mM":
            return np.asarray(value, np.int64 if isinstance(value, int) else dtype).astype(dtype)[()]
        given = np.asarray(value)
        held = given.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return None
    same = held == given or (given != given and dtype.kind in "fc")  # NaN is a value of floats
    return held[()] if given.ndim == 0 and same else None
