"""Arrays that TFDS stores as bytes, plain or compressed by zlib, as values.

A new way is a function from the stored bytes of items to their plain bytes, and a row of `BYTE_FORMATS`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import offsets_of
from tfrecord_io.arrow.casts import number_array
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array

_MOST = 2**31 - 1  # bytes of one item, as of one record

ToPlain = Callable[[pa.Array, Array | None], tuple[Array, Array]]
"""From a binary array without nulls, and the size of each item (None: unknown), to all bytes and their sizes."""


def array_values(stored: pa.Array, encoding: str, type_: pa.DataType, expected: Array | None) -> tuple[pa.Array, Array]:
    """The values (of a number type or bool) of all items, and how many each has.

    `stored` is binary, without nulls: an item each; `encoding` is a row of `BYTE_FORMATS`; `expected` is how many
    values each item must have. A RowFault has the index of an item that does not fit.
    """
    width = 1 if pa.types.is_boolean(type_) else type_.bit_width // 8
    data, sizes = BYTE_FORMATS[encoding](stored, None if expected is None else expected * width)
    if np.any(bad := sizes % width != 0):
        at = int(bad.argmax())
        reason = f"{sizes[at]} bytes are not a whole number of {type_} values of {width}"
        raise RowFault(at, reason, expected=f"a multiple of {width}", got=int(sizes[at]))
    counts = sizes // width
    if expected is not None and np.any(bad := counts != expected):
        at = int(bad.argmax())
        reason = f"the shape has {expected[at]} values, the bytes hold {counts[at]}"
        raise RowFault(at, reason, expected=int(expected[at]), got=int(counts[at]))
    if pa.types.is_boolean(type_) and np.any(bad := data > 1):
        at = int(bad.argmax())
        fault = RowFault(at, "a byte is not a bool", expected="bool", got=int(data[at]))
        raise fault.in_row_of(offsets_of(counts))
    return number_array(type_, data), counts


def _plain(stored: pa.Array, _: Array | None) -> tuple[Array, Array]:
    """The bytes as they are, without a copy."""
    _, offsets_buffer, data = stored.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[stored.offset : stored.offset + len(stored) + 1].astype(np.int64)
    whole = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return whole[offsets[0] : offsets[-1]], np.diff(offsets)


def _zlib(stored: pa.Array, expected: Array | None) -> tuple[Array, Array]:
    parts = []
    for at, item in enumerate(stored):
        most = _MOST if expected is None else int(expected[at])
        inflater = zlib.decompressobj()
        try:
            plain = inflater.decompress(item.as_buffer(), most + 1)  # one more than it may have, so that more is seen
        except zlib.error as error:
            raise RowFault(at, f"the bytes are not a zlib stream ({error})", expected="zlib") from None
        if len(plain) <= most and not inflater.eof:
            raise RowFault(at, "the zlib stream is truncated", expected="zlib")
        if len(plain) > most:
            raise RowFault(at, f"the zlib stream holds more than {most} bytes", expected=most)
        parts.append(plain)
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    return np.frombuffer(b"".join(parts), np.uint8), sizes


BYTE_FORMATS: dict[str, ToPlain] = {"bytes": _plain, "zlib": _zlib}
