"""Decoding raw bytes to arrays, like ``tf.io.decode_raw``: no header, C order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrecord_io.errors import DecodeError, SchemaError
from tfrecord_io.kit import Array, Dtype, check_keywords, printable


@check_keywords
def decode_raw(input_bytes: Any, out_type: Any, little_endian: bool = True, fixed_length: int | None = None) -> Array:
    """Decode raw bytes to numbers, like ``tf.io.decode_raw``.

    >>> import tfrecord_io as tfr
    >>> tfr.io.decode_raw(b"\\x01\\x00\\x02\\x00", "int16")
    array([1, 2], dtype=int16)
    >>> tfr.io.decode_raw([b"abcd", b"e"], "uint8", fixed_length=3)
    array([[ 97,  98,  99],
           [101,   0,   0]], dtype=uint8)

    Parameters
    ----------
    input_bytes : bytes, or a sequence, array or Arrow array of bytes
        All items have the same length, unless `fixed_length` is given. Nested sequences and arrays of any rank are
        accepted.
    out_type : str or dtype
        A name ("float32", "bfloat16", "datetime64[ns]"), or a dtype of NumPy or TensorFlow.
    little_endian : bool
        The byte order of each number, and of each part of a complex number.
    fixed_length : int, optional
        Truncate each item to this many bytes, or pad it with zeros; a multiple of the dtype's size.

    Returns
    -------
    ndarray
        The shape of the data with one more axis, for the numbers of an item: 1-D for bytes. Writable, a copy.

    Raises
    ------
    DecodeError
        The length of an item is not a multiple of the dtype's size, or differs from that of the first item.
    SchemaError
        `out_type` is not a dtype of numbers, or one of NumPy that states another byte order than the machine's.
    TypeError, ValueError
        `fixed_length` is not an integer, or not a positive multiple of the dtype's size.
    """
    name = "object" if out_type is object or str(out_type) == "object" else Dtype.declared_name(out_type)
    if name in ("object", Dtype.STRING) or name[0] in "SU":
        advice = "use a dtype like 'uint8' or 'float32'"
        raise SchemaError(f"raw bytes hold numbers, not {name}", got=name, hint=advice)
    numbers = Dtype.of_name(name).dtype
    if isinstance(out_type, np.dtype) and not out_type.isnative:
        advice = f"pass {name!r}, and little_endian=False for big-endian bytes"
        raise SchemaError("little_endian= states the order of the bytes, not the dtype", got=str(out_type), hint=advice)
    if fixed_length is not None:
        expected = f"a positive multiple of {numbers.itemsize}, for {out_type}"
        if isinstance(fixed_length, bool) or not isinstance(fixed_length, int | np.integer):
            raise TypeError(f"fixed_length={printable(repr(fixed_length))}: expected {expected}")
        if fixed_length <= 0 or fixed_length % numbers.itemsize:
            raise ValueError(f"fixed_length={fixed_length}: expected {expected}")
    items, shape = _items(input_bytes)
    if fixed_length is None:
        _refuse_lengths(items, numbers)
        joined = b"".join(items)
    else:
        joined = b"".join([item[:fixed_length].ljust(fixed_length, b"\0") for item in items])
    width = fixed_length or (len(items[0]) if items else 0)
    if numbers.kind == "b":
        values = np.frombuffer(joined, np.uint8) != 0
    else:
        part = np.dtype(f"u{numbers.itemsize // (2 if numbers.kind == 'c' else 1)}")
        values = np.frombuffer(joined, part.newbyteorder("<" if little_endian else ">")).astype(part).view(numbers)
    return values.reshape(*shape, width // numbers.itemsize)


def _items(data: Any) -> tuple[list[bytes], tuple[int, ...]]:
    """The items of `data` as a flat list, and its shape."""
    if isinstance(data, bytes | bytearray | memoryview):
        return [bytes(data)], ()
    if callable(getattr(data, "to_pylist", None)):  # an Arrow array
        data = data.to_pylist()
    if isinstance(getattr(data, "dtype", None), np.dtype) and data.dtype.kind == "S":
        got = f"an array of {data.dtype}, which drops trailing NULs"
        raise TypeError(f"expected bytes or an array of objects, got {got}")
    table = np.asarray(data, object)
    items = table.reshape(-1).tolist()
    for i, item in enumerate(items):
        if not isinstance(item, bytes):
            raise TypeError(f"item {i}: expected bytes, got {type(item).__name__}")
    return items, table.shape


def _refuse_lengths(items: list[bytes], dtype: np.dtype) -> None:
    length = len(items[0]) if items else 0
    for i, item in enumerate(items):
        if len(item) != length:
            reason = f"item {i} has {len(item)} bytes, but the first one has {length}"
            raise DecodeError(reason, expected=length, got=len(item), hint="pass fixed_length= to truncate or pad")
    if length % dtype.itemsize:
        rows = sorted((row for row in Dtype.TABLE.values() if row.is_likely), key=lambda row: -row.itemsize)
        names = [row.name for row in rows if length % row.itemsize == 0]
        reason = f"{length} bytes are not a multiple of the {dtype.itemsize} bytes of {Dtype.name_of(dtype)}"
        expected, advice = f"a multiple of {dtype.itemsize}", f"dtypes that fit: {', '.join(names)}"
        raise DecodeError(reason, expected=expected, got=length, hint=advice)
