"""Varints, and tags of fields; apart from `format.protobuf`, as importing protobuf takes long.

Tests: tests/bytes/format/test_serialized_tensor.py and tests/faults/test_decode_faults.py.
"""

from __future__ import annotations

from typing import Self


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


class FieldTag(bytes):
    """The tag of a field in a message: its number and wire type.

    >>> FieldTag.of(1).field(b"ab")
    b'\\n\\x02ab'
    """

    __slots__ = ()

    @classmethod
    def of(cls, number: int, wire_type: int = 2) -> Self:
        """The tag of a field, of bytes or of a message if no other wire type is stated."""
        return cls(varint(number << 3 | wire_type))

    def head(self, size: int) -> bytes:
        """The tag and the length of a field, behind which its content of `size` bytes follows."""
        return self + varint(size)

    def field(self, content: bytes) -> bytes:
        """The whole field of bytes or of a message."""
        return self + varint(len(content)) + content

    def number(self, value: int) -> bytes:
        """The whole field of a number, of wire type 0."""
        return self + varint(value)
