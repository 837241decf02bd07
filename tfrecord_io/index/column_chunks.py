"""Chunks of a column index: the values of one column in some rows, as the bytes of their Arrow buffers.

A chunk is the buffers of an array, each padded to 8 bytes, compressed together: the validity bitmap if there are nulls,
then the values; of texts the offsets and the bytes, or, where values are repeated, an int32 index for each row and the
offsets and bytes of the distinct values. What it needs to be unpacked is a `ChunkShape`. No content of it is trusted:
sizes are compared before memory is allocated, and arrays are validated before anything uses them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.schema.types import is_bytes, is_text

_CODEC = "zstd"
_ALIGNMENT = 8
_INDEX_BYTES = 4
_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


@dataclass(frozen=True, slots=True)
class ChunkShape:
    """What is known of a chunk before it is unpacked.

    Attributes
    ----------
    rows : int
    nulls : int
        If it is 0, there is no bitmap.
    values : int
        Number of distinct texts; −1: they are stored for each row.
    size : int
        Bytes, not compressed.
    """

    rows: int
    nulls: int
    values: int
    size: int


def stored_type(type_: pa.DataType) -> pa.DataType:
    """The type whose buffers are stored for a column of a type: of categories and views, that of their values."""
    value = type_.value_type if t.is_dictionary(type_) else type_
    return _VIEWS.get(value, value)


def can_be_stored(type_: pa.DataType) -> bool:
    """Whether a `stored_type` is one of single values with simple buffers."""
    return t.is_primitive(type_) or t.is_decimal(type_) or t.is_fixed_size_binary(type_) or is_variable(type_)


def is_variable(type_: pa.DataType) -> bool:
    """Whether the values of a `stored_type` are texts or bytes of any length."""
    return (is_text(type_) or is_bytes(type_)) and not t.is_fixed_size_binary(type_)


def pack_chunk(values: pa.Array) -> tuple[bytes, ChunkShape]:
    """The compressed bytes of an array of a `stored_type`, and its shape."""
    dictionary = values.dictionary_encode() if is_variable(values.type) else None
    if dictionary is not None and 2 * len(dictionary.dictionary) <= len(values):
        distinct = len(dictionary.dictionary)
        buffers = [*_buffers(dictionary.indices), *_buffers(dictionary.dictionary)]
    else:
        distinct, buffers = -1, _buffers(values)
    raw = b"".join(part.ljust(_padded(len(part)), b"\0") for part in buffers)
    stored: bytes = pa.compress(raw, codec=_CODEC, asbytes=True) if raw else b""
    return stored, ChunkShape(len(values), values.null_count, distinct, len(raw))


def _buffers(array: pa.Array) -> list[bytes]:
    """The buffers that a chunk has of an array, without spare bytes."""
    array = pa.concat_arrays([array, array[:0]])  # its first value at the start of all buffers
    validity, *others = [b"" if buffer is None else buffer.to_pybytes() for buffer in array.buffers()]
    parts = [] if array.null_count == 0 else [validity[: _bits(len(array))]]
    if not is_variable(array.type):
        return [*parts, others[0][: _fixed_size(array.type, len(array))]]
    offsets = others[0][: _offset_bytes(array.type) * (len(array) + 1)]
    end = int.from_bytes(offsets[-_offset_bytes(array.type) :], "little")
    return [*parts, offsets, others[1][:end]]


def unpack_chunk(stored: bytes, type_: pa.DataType, shape: ChunkShape, most_text: int) -> pa.Array:
    """The array of a `stored_type`, or a dictionary of its values; ValueError or an error of pyarrow if it is damaged.

    The bytes of texts may be `most_text`.
    """
    sizes = _known_sizes(type_, shape)
    known = sum(map(_padded, sizes))
    if not (known == shape.size if not is_variable(type_) else known <= shape.size <= known + most_text):
        raise ValueError(f"{shape.rows} values of {type_} cannot have {shape.size} bytes")
    raw = pa.py_buffer(stored)
    if shape.size:
        raw = pa.decompress(raw, decompressed_size=shape.size, codec=_CODEC)
    parts, at = [], 0
    for size in sizes:
        parts.append(raw.slice(at, size))
        at += _padded(size)
    validity = parts.pop(0) if shape.nulls else None
    if not is_variable(type_):
        array = pa.Array.from_buffers(type_, shape.rows, [validity, parts[0]])
    elif shape.values < 0:
        array = pa.Array.from_buffers(type_, shape.rows, [validity, parts[0], raw.slice(at)])
    else:
        indices = pa.Array.from_buffers(pa.int32(), shape.rows, [validity, parts[0]])
        values = pa.Array.from_buffers(type_, shape.values, [None, parts[1], raw.slice(at)])
        values.validate(full=True)
        array = pa.DictionaryArray.from_arrays(indices, values, safe=True)
    array.validate(full=True)
    return array


def _known_sizes(type_: pa.DataType, shape: ChunkShape) -> list[int]:
    """The bytes of the buffers whose size follows from the shape: all but those of texts."""
    sizes = [_bits(shape.rows)] if shape.nulls else []
    if not is_variable(type_):
        return [*sizes, _fixed_size(type_, shape.rows)]
    if shape.values < 0:
        return [*sizes, _offset_bytes(type_) * (shape.rows + 1)]
    return [*sizes, _INDEX_BYTES * shape.rows, _offset_bytes(type_) * (shape.values + 1)]


def _fixed_size(type_: pa.DataType, rows: int) -> int:
    return -(-type_.bit_width * rows // 8)


def _offset_bytes(type_: pa.DataType) -> int:
    return 8 if t.is_large_string(type_) or t.is_large_binary(type_) else 4


def _bits(rows: int) -> int:
    return -(-rows // 8)


def _padded(size: int) -> int:
    return size + -size % _ALIGNMENT
