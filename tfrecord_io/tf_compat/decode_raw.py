"""Raw bytes as arrays, as ``tf.io.decode_raw`` reads them: no header, C order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import DecodeError, SchemaError
from tfrecord_io.format.dtype_names import STRING, declared_name
from tfrecord_io.format.dtypes import element, name_of

_BY_SIZE = {
    16: ("complex128",),
    8: ("int64", "uint64", "float64", "complex64"),
    4: ("int32", "uint32", "float32"),
    2: ("int16", "uint16", "float16", "bfloat16"),
    1: ("int8", "uint8", "bool"),
}


def decode_raw(data: Any, dtype: Any, *, little_endian: bool = True, fixed_length: int | None = None) -> Array:
    """The numbers in raw bytes, as ``tf.io.decode_raw``.

    Parameters
    ----------
    data : bytes, or a sequence, array or Arrow array of bytes
        Every item has the same length, unless `fixed_length` is given. Nested sequences and arrays of any rank are taken.
    dtype : str or dtype
        A name ("float32", "bfloat16", "datetime64[ns]"), or a dtype of NumPy or of TensorFlow.
    little_endian : bool
        The order of the bytes in each number, and in each part of a complex one.
    fixed_length : int, optional
        Cut each item to this many bytes, or fill it up with zeros; a multiple of the dtype's size.

    Returns
    -------
    ndarray
        Of the data's shape and one more axis, for the numbers of an item: 1-D for bytes. Writable, and the caller's own.

    Raises
    ------
    DecodeError
        An item is no whole number of numbers, or has another length than the first.
    SchemaError
        `dtype` is none that raw bytes have.
    ValueError
        `fixed_length` is not positive, or no multiple of the dtype's size.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> tfr.decode_raw(b"\\x01\\x00\\x02\\x00", "int16")
    array([1, 2], dtype=int16)
    >>> tfr.decode_raw([b"abcd", b"e"], "uint8", fixed_length=3)
    array([[ 97,  98,  99],
           [101,   0,   0]], dtype=uint8)
    """
    found = _numbers(dtype)
    if fixed_length is not None and (fixed_length <= 0 or fixed_length % found.itemsize):
        raise ValueError(
            f"fixed_length={fixed_length} is no positive multiple of the {found.itemsize} bytes of {dtype}"
        )
    items, shape = _items(data)
    if fixed_length is None:
        _refuse_lengths(items, found)
        joined = b"".join(items)
    else:
        joined = b"".join([item[:fixed_length].ljust(fixed_length, b"\0") for item in items])
    width = fixed_length or (len(items[0]) if items else 0)
    return _viewed(joined, found, little_endian).reshape(*shape, width // found.itemsize)


def _viewed(joined: bytes, dtype: np.dtype, little_endian: bool) -> Array:
    if dtype.kind == "b":
        return np.frombuffer(joined, np.uint8) != 0
    part = np.dtype(f"u{dtype.itemsize // (2 if dtype.kind == 'c' else 1)}")
    return np.frombuffer(joined, part.newbyteorder("<" if little_endian else ">")).astype(part).view(dtype)


def _numbers(dtype: Any) -> np.dtype:
    if dtype is object or str(dtype) == "object":
        raise SchemaError(
            "object is no dtype of raw bytes: they are numbers",
            got="object",
            advice="use a dtype like 'uint8' or 'float32'",
        )
    name = declared_name(dtype)
    if name == STRING or name[0] in "SU":
        raise SchemaError(
            f"raw bytes are numbers, not {name}", got=name, advice="use a dtype like 'uint8' or 'float32'"
        )
    return element(name).dtype


def _items(data: Any) -> tuple[list[bytes], tuple[int, ...]]:
    """The items of `data`, and its shape."""
    if isinstance(data, bytes | bytearray | memoryview):
        return [bytes(data)], ()
    if callable(getattr(data, "to_pylist", None)):  # Arrow's
        data = data.to_pylist()
    if isinstance(getattr(data, "dtype", None), np.dtype) and data.dtype.kind == "S":
        raise TypeError(
            f"items of dtype {data.dtype}, which has lost NULs at their end: expected bytes, or an array of objects"
        )
    table = np.asarray(data, object)
    items = table.reshape(-1).tolist()
    for at, item in enumerate(items):
        if not isinstance(item, bytes):
            raise TypeError(f"item {at} is of type {type(item).__name__}, not bytes")
    return items, table.shape


def _refuse_lengths(items: list[bytes], dtype: np.dtype) -> None:
    length = len(items[0]) if items else 0
    for at, item in enumerate(items):
        if len(item) != length:
            reason = f"item {at} has {len(item)} bytes, and the first one {length}"
            raise DecodeError(reason, expected=length, got=len(item), advice="pass fixed_length to cut or fill up")
    if length % dtype.itemsize:
        names = [name for size, names in _BY_SIZE.items() if length % size == 0 for name in names]
        reason = f"{length} bytes are no whole number of {name_of(dtype)} values of {dtype.itemsize} bytes"
        raise DecodeError(
            reason, expected=f"a multiple of {dtype.itemsize}", got=length, advice=f"they fit {', '.join(names)}"
        )
