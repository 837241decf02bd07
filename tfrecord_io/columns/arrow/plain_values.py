"""Arrow arrays of plain Python values and of NumPy's numbers.

``pyarrow.array`` imports pandas when it is first called, which takes several times as long as all else that a first
write of a small dict does. The functions here make the same arrays from buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array
from tfrecord_io.columns.arrow.buffers import bitmap_of, fixed_width, offsets_of, variable_width
from tfrecord_io.errors import EncodeError

_FEW = 1000  # values; more of them are converted faster by pyarrow
_NUMBERS = {int: np.dtype(np.int64), float: np.dtype(np.float64), bool: np.dtype(np.bool_)}
_BYTES = {str: pa.string(), bytes: pa.binary()}


def array_of_numbers(values: Array, is_valid: Array | None = None) -> pa.Array | None:
    """Make an array over a one-dimensional ndarray of native numbers; None for other dtypes.

    Parameters
    ----------
    values : ndarray
        Not copied if it is contiguous, and not bool. A subclass, such as a masked array, gives None.
    is_valid : ndarray of bool, optional
        False where a value is null.

    >>> array_of_numbers(np.array([1, 2], "int16")).type
    DataType(int16)
    """
    if (
        type(values) is not np.ndarray
        or values.ndim != 1
        or values.dtype.kind not in "iufb"
        or values.itemsize > 8
        or not values.dtype.isnative
    ):
        return None
    data = bitmap_of(values) if values.dtype.kind == "b" else np.ascontiguousarray(values)
    nulls = 0 if is_valid is None else len(values) - int(np.count_nonzero(is_valid))
    validity = None if is_valid is None else bitmap_of(is_valid)
    return fixed_width(pa.from_numpy_dtype(values.dtype), len(values), nulls=nulls, validity=validity, values=data)


def array_of_values(values: Sequence[Any]) -> pa.Array | None:
    """Make an array of a few values of one of the types int, float, bool, str and bytes, or None; None for others.

    >>> array_of_values(["a", None]).to_pylist()
    ['a', None]
    """
    types = set(map(type, values)) - {type(None)} if len(values) <= _FEW else set()
    kind: Any = types.pop() if len(types) == 1 else None
    if kind not in _NUMBERS and kind not in _BYTES:
        return None
    is_valid = np.array([value is not None for value in values])
    filled = [kind() if value is None else value for value in values]
    try:
        if kind in _NUMBERS:
            return array_of_numbers(np.array(filled, _NUMBERS[kind]), is_valid)
        parts = [text.encode() for text in filled] if kind is str else filled
    except (OverflowError, UnicodeEncodeError):  # pyarrow's error is the one that callers expect
        return None
    offsets = offsets_of(np.array([len(part) for part in parts]))
    data = np.frombuffer(b"".join(parts), np.uint8)
    nulls = len(parts) - int(np.count_nonzero(is_valid))
    return variable_width(
        _BYTES[kind], len(parts), nulls=nulls, validity=bitmap_of(is_valid), offsets=offsets, values=data
    )


def plain_array(values: Array, missing: Array | None = None) -> pa.Array | pa.ChunkedArray:
    """Values of an array of one axis; `missing` ones are null. Text keeps a NUL inside, where pyarrow ends it.

    A date beyond Arrow's, of which pyarrow (26.0) makes another one, is an EncodeError whose ``record`` is the row.

    >>> plain_array(np.array([b"a\\0b"]))[0]
    <pyarrow.BinaryScalar: b'a\\x00b'>
    """
    numbers = array_of_numbers(values) if missing is None else None
    column = pa.array(values, mask=missing) if numbers is None else numbers
    if values.dtype == "M8[D]":
        days = np.asarray(values).view(np.int64)
        far = (days != days.astype(np.int32)) & np.asarray(column.is_valid())
        if far.any():
            reason, advice = "a date has more than 2**31 days before or after 1970", "convert it to datetime64[s]"
            raise EncodeError(reason, record=int(far.argmax()), expected="a day within int32", hint=advice)
    if values.dtype.kind not in "SU" or not values.itemsize:
        return column
    import pyarrow.compute as pc  # takes longer to import than all of this package

    lengths = pc.binary_length(column) if values.dtype.kind == "S" else pc.utf8_length(column)
    codes = np.ascontiguousarray(values).view(np.uint8 if values.dtype.kind == "S" else np.uint32)
    has_more = np.count_nonzero(codes) > (pc.sum(lengths).as_py() or 0)
    return pa.array(values.tolist(), column.type, mask=missing) if has_more else column


def native(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in this machine's byte order, the only one that Arrow supports."""
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
