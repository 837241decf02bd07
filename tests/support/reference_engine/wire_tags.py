"""Field tags: corrections for differences of Python's protobuf (upb) from C++ protobuf, and a walk over fields.

- A tag of five bytes whose last one overflows 32 bits: C++ drops the overflow, upb refuses the message.
- Field number 0 inside a group: C++ refuses the message, upb skips the field.
- A length of more than five bytes: C++ and the upb of protobuf 7 refuse the message, that of protobuf 6 accepts it.

The first is searched for only in messages that upb refused, the others only in those with unknown fields or bytes that
their shortest encoding does not have, so good data costs little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from tfrecord_io.bytes.format.protobuf import MessageClasses
from tfrecord_io.bytes.format.varint import varint
from tfrecord_io.columns.arrow.messages.well_known import drop_unknown_fields

Nested = dict[int, Any]
"""The length-delimited fields of a message that are messages, by number, with those of each."""

VARINT, LEN, GROUP_BEGIN, GROUP_END = 0, 2, 3, 4  # wire types
_FIXED_BYTES = {1: 8, 5: 4}

_LIST: Nested = {}
FEATURE: Nested = {1: _LIST, 2: _LIST, 3: _LIST}
FEATURE_AT_DEPTH: Nested = {1: {1: {1: FEATURE}}}
FEATURE_LIST_AT_DEPTH: Nested = {1: {1: {1: {1: FEATURE}}}}
MAP: Nested = {1: {}}  # an entry's value is parsed separately
EXAMPLE: Nested = {1: MAP}
SEQUENCE: Nested = {1: MAP, 2: MAP}


def parse(message_class: Any, data: bytes, nested: Nested) -> tuple[Any, bool]:
    """Parse `data` as C++ protobuf would: the message, and whether it had unknown fields, which are dropped.

    protobuf's DecodeError if `data` is not such a message.
    """
    try:
        message = MessageClasses.parse(message_class, data)
    except DecodeError:
        data = _rewritten(data, nested)
        message = MessageClasses.parse(message_class, data)
    size, known = drop_unknown_fields(message)
    has_unknown = known < size
    if has_unknown or size < len(data):
        _rewritten(data, nested)  # raises where C++ refuses
    return message, has_unknown


def read_varint(data: bytes, at: int, most: int = 10) -> tuple[int, int]:
    """A varint of at most so many bytes, and where it ends; protobuf's DecodeError if there is none."""
    value = 0
    for i, byte in enumerate(data[at : at + most]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, at + i + 1
    raise DecodeError("expected a varint")


def fields(data: bytes) -> Iterator[tuple[int, int, int, bytes, int]]:
    """Yield (number, wire type, number of open groups, content, its start) of each field, and of each tag of a group.

    protobuf's DecodeError where C++ protobuf would refuse `data`.
    """
    at = 0
    open_groups: list[int] = []
    while at < len(data):
        tag, at = read_varint(data, at, most=5)
        number, wire_type = (tag & 0xFFFFFFFF) >> 3, tag & 7
        if number == 0:
            raise DecodeError("field number 0")
        begin = end = at
        if wire_type == VARINT:
            _, end = read_varint(data, at)
        elif wire_type == LEN:
            length, begin = read_varint(data, at, most=5)
            end = begin + length
        elif wire_type in _FIXED_BYTES:
            end = at + _FIXED_BYTES[wire_type]
        elif wire_type == GROUP_END:
            if not open_groups or open_groups.pop() != number:
                raise DecodeError("the end of a group that is not open")
        elif wire_type != GROUP_BEGIN:
            raise DecodeError("unknown wire type")
        if end > len(data):
            raise DecodeError("truncated inside a field")
        yield number, wire_type, len(open_groups), data[begin:end], begin
        if wire_type == GROUP_BEGIN:
            open_groups.append(number)
        at = end
    if open_groups:
        raise DecodeError("a group is not closed")


def is_map_entry(name: str) -> bool:
    """True if the name of a feature is itself a serialized map entry: a text, and possibly a message.

    As Features, an Example of an ExampleListWithContext has one entry, whose key is such bytes.
    """
    try:
        parts = list(fields(name.encode()))
        parts[0][3].decode()
    except (DecodeError, UnicodeDecodeError, IndexError):
        return False
    return [part[:3] for part in parts] in ([(1, LEN, 0)], [(1, LEN, 0), (2, LEN, 0)])


def _rewritten(data: bytes, nested: Nested) -> bytes:
    """`data` with all tags re-encoded, in nested messages too."""
    out = bytearray()
    for number, wire_type, groups, content, _ in fields(data):
        body = content
        if wire_type == LEN:
            inner = nested.get(number) if groups == 0 else None
            body = content if inner is None else _rewritten(content, inner)
            body = varint(len(body)) + body
        out += varint(number << 3 | wire_type) + body
    return bytes(out)
