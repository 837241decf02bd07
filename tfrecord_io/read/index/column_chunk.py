"""Pack an array as a chunk of a column index, and unpack it.

A chunk has the values of one column in some rows: the buffers of an Arrow array, each padded to 8 bytes, compressed
together.

- First comes the validity bitmap, if there are nulls, then the values.
- Integers of all kinds have the fewest bytes that hold them; the size of the chunk shows how many these are.
- Texts have offsets and bytes, or, where values are repeated, an int32 index for each row, and the offsets and bytes of
  the distinct values.

A `ChunkShape` has all facts to unpack a chunk. Its content is not trusted: sizes are compared before memory is
allocated, and arrays are validated before use.

Tests: tests/read/index/test_column_index.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column
from tfrecord_io.store import BlockReader

_CODEC = "zstd"
_ALIGNMENT = 8
_INDEX_BYTES = 4
_INTEGERS = {1: pa.int8(), 2: pa.int16(), 4: pa.int32(), 8: pa.int64()}  # by bytes
_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


class ChunkShape(NamedTuple):
    """The properties of a chunk that are known before it is unpacked."""

    rows: int
    nulls: int  # if it is 0, the index has no bitmap
    values: int  # number of distinct texts; −1: they are stored for each row
    size: int  # bytes, not compressed


def stored_type(type_: pa.DataType) -> pa.DataType:
    """The type whose buffers are stored for a column of a type: of categories and views, that of their values."""
    value = type_.value_type if t.is_dictionary(type_) else type_
    return _VIEWS.get(value, value)


def is_variable(type_: pa.DataType) -> bool:
    """True if the values of a `stored_type` are texts or bytes of any length."""
    return (Column(type_).is_text or Column(type_).is_bytes) and not t.is_fixed_size_binary(type_)


def pack_chunk(values: pa.Array) -> tuple[bytes, ChunkShape]:
    """The compressed bytes of an array of a `stored_type`, and its shape."""
    dictionary = values.dictionary_encode() if is_variable(values.type) else None
    if dictionary is not None and 2 * len(dictionary.dictionary) <= len(values):
        distinct = len(dictionary.dictionary)
        buffers = [*_buffers(dictionary.indices), *_buffers(dictionary.dictionary)]
    else:
        distinct, buffers = -1, _buffers(values)
        if _is_integer(values.type) and len(values) >= _ALIGNMENT:  # so that each width has another size
            buffers[-1] = _narrow_integers(np.frombuffer(buffers[-1], np.dtype(f"<i{values.type.bit_width // 8}")))
    raw = b"".join(part.ljust(_pad_size(len(part)), b"\0") for part in buffers)
    stored: bytes = pa.compress(raw, codec=_CODEC, asbytes=True) if raw else b""
    return stored, ChunkShape(len(values), values.null_count, distinct, len(raw))


def _buffers(array: pa.Array) -> list[bytes]:
    """The buffers that a chunk has of an array, without spare bytes."""
    array = pa.concat_arrays([array, array[:0]])  # its first value at the start of all buffers
    validity, *buffers = [b"" if buffer is None else buffer.to_pybytes() for buffer in array.buffers()]
    parts = [] if array.null_count == 0 else [validity[: _bitmap_size(len(array))]]
    if not is_variable(array.type):
        return [*parts, buffers[0][: -(-array.type.bit_width * len(array) // 8)]]
    width = Column(array.type).offset_dtype.itemsize
    offsets = buffers[0][: width * (len(array) + 1)]
    end = int.from_bytes(offsets[-width:], "little")
    return [*parts, offsets, buffers[1][:end]]


def _is_integer(type_: pa.DataType) -> bool:
    """True if the values of a `stored_type` are integers of more than a byte, as those of times are."""
    is_other = t.is_floating(type_) or t.is_decimal(type_) or t.is_fixed_size_binary(type_) or t.is_interval(type_)
    return t.is_primitive(type_) and not is_other and type_.bit_width > 8


def _narrow_integers(values: Array) -> bytes:
    """The bytes of integers in the narrowest type that has them all: fewer are unpacked in less time."""
    low, high = int(values.min()), int(values.max())
    widths = (width for width in (1, 2, 4) if width < values.itemsize)
    fitting = (width for width in widths if -(1 << 8 * width - 1) <= low and high < 1 << 8 * width - 1)
    return values.astype(f"<i{next(fitting, values.itemsize)}").tobytes()


def unpack_chunk(stored: BlockReader.Buffer | bytes, type_: pa.DataType, shape: ChunkShape, most_text: int) -> pa.Array:
    """The array of a `stored_type`, or a dictionary of its values; ValueError or an error of pyarrow if it is damaged.

    The bytes of texts may be `most_text`.
    """
    width = _integer_width(type_, shape)
    sizes = _buffer_sizes(type_, shape, width)
    least, room = sum(map(_pad_size, sizes)), most_text if is_variable(type_) else 0
    if not least <= shape.size <= least + room:
        raise ValueError(f"{shape.rows} values of {type_} cannot have {shape.size} bytes")
    raw = pa.py_buffer(stored)
    if shape.size:
        raw = pa.decompress(raw, decompressed_size=shape.size, codec=_CODEC)
    buffers, at = [], 0
    for size in sizes:
        buffers.append(raw.slice(at, size))
        at += _pad_size(size)
    if not shape.nulls:
        buffers.insert(0, None)
    if is_variable(type_):
        array = _text_array(buffers, raw.slice(at), type_, shape)
    elif width:  # widened by Arrow, whose memory is used again
        array = pa.Array.from_buffers(_INTEGERS[width], shape.rows, buffers)
        array = array.cast(_INTEGERS[type_.bit_width // 8]).view(type_)
    else:
        array = pa.Array.from_buffers(type_, shape.rows, buffers)
    array.validate(full=True)
    return array


def _text_array(buffers: list[pa.Buffer | None], text: pa.Buffer, type_: pa.DataType, shape: ChunkShape) -> pa.Array:
    """The texts of each row, or a dictionary of the distinct ones, of buffers that begin with the validity."""
    if shape.values < 0:
        return pa.Array.from_buffers(type_, shape.rows, [*buffers, text])
    validity, row_indices, offsets = buffers
    indices = pa.Array.from_buffers(pa.int32(), shape.rows, [validity, row_indices])
    values = pa.Array.from_buffers(type_, shape.values, [None, offsets, text])
    values.validate(full=True)
    return pa.DictionaryArray.from_arrays(indices, values, safe=True)


def _integer_width(type_: pa.DataType, shape: ChunkShape) -> int:
    """The bytes of each integer, if they are fewer than those of the type, by the size of the chunk; else 0."""
    if not _is_integer(type_) or shape.rows < _ALIGNMENT:
        return 0
    values_size = shape.size - (_pad_size(_bitmap_size(shape.rows)) if shape.nulls else 0)
    widths = (width for width in (1, 2, 4) if 8 * width < type_.bit_width)
    return next((width for width in widths if _pad_size(width * shape.rows) == values_size), 0)


def _buffer_sizes(type_: pa.DataType, shape: ChunkShape, width: int) -> list[int]:
    """The bytes of the buffers whose size follows from the shape: all but those of texts.

    `width`: the bytes of each integer, or 0 if they are those of the type.
    """
    sizes = [_bitmap_size(shape.rows)] if shape.nulls else []
    if not is_variable(type_):
        return [*sizes, width * shape.rows or -(-type_.bit_width * shape.rows // 8)]
    offset_bytes = Column(type_).offset_dtype.itemsize
    if shape.values < 0:
        return [*sizes, offset_bytes * (shape.rows + 1)]
    return [*sizes, _INDEX_BYTES * shape.rows, offset_bytes * (shape.values + 1)]


def _bitmap_size(rows: int) -> int:
    return -(-rows // 8)


def _pad_size(size: int) -> int:
    return size + -size % _ALIGNMENT
