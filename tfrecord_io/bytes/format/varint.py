"""Varints and fields; apart from `format.protobuf`, as importing protobuf takes long.

Tests: tests/bytes/format/test_serialized_tensor.py and tests/faults/test_decode_faults.py.
"""

from __future__ import annotations


def varint(value: int) -> bytes:
    """The bytes of an unsigned varint.

    >>> varint(300)
    b'\\xac\\x02'
    """
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited_field(number: int, content: bytes) -> bytes:
    """A field of bytes or of a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content
