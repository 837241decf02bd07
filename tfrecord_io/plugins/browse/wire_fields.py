"""The fields of any protobuf message, without its type."""

from __future__ import annotations

from typing import Any


def fields_of(message: Any) -> list[tuple[int, Any]]:
    """Field numbers and values of a message in the order of its bytes; integers, and what has a length as it stands.

    ValueError or IndexError if the bytes are no message.

    >>> fields_of(b"\\x08\\x96\\x01\\x12\\x02hi")
    [(1, 150), (2, b'hi')]
    """
    fields, at = [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a varint of more than 10 bytes")

    while at < len(message):
        key = varint()
        kind: Any = key & 7
        value: Any
        if kind == 0:
            value = varint()
        elif kind in (1, 2, 5):
            size = {1: 8, 2: 0, 5: 4}[kind] or varint()
            if at + size > len(message):
                raise ValueError("a field beyond the end")
            value = message[at : at + size] if kind == 2 else int.from_bytes(message[at : at + size], "little")
            at += size
        else:
            raise ValueError(f"wire type {kind}")
        fields.append((key >> 3, value))
    return fields
