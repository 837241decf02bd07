"""Random protobuf messages of any type, and those of tests/data/messages."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from tfrecord_io.base.options.record_types import MessageType, checked_record_type
from tfrecord_io.bytes.format import protobuf
from tfrecord_io.columns.arrow.messages.message_tree import is_closed, is_required

DESCRIPTORS = Path(__file__).parent.parent / "data/messages/messages.desc"
_NUMBERS: dict[int, list[Any]] = {
    1: [0.0, -0.0, 1.5, -3e300, float("inf")],
    2: [0.0, -0.0, 1.5, float("-inf")],
    8: [False, True],
    9: ["", "a", "üñ" * 3, "x" * 200],
    12: [b"", b"\x00\xff", b"y" * 150],
    **{type_: [0, 1, -1, 2**63 - 1, -(2**63), 300] for type_ in (3, 16, 18)},
    **{type_: [0, 1, 2**64 - 1, 2**35] for type_ in (4, 6)},
    **{type_: [0, 1, -1, 2**31 - 1, -(2**31), 128] for type_ in (5, 15, 17)},
    **{type_: [0, 1, 2**32 - 1] for type_ in (7, 13)},
}
_JSON = {
    "google.protobuf.Struct": [{}, {"a": [1.5, None, {"b": "ü"}]}],
    "google.protobuf.Value": [None, True, 1.5, "x", {}, []],
    "google.protobuf.ListValue": [[], [1, [], "x"]],
}


def message_type(name: str) -> MessageType:
    found = checked_record_type((DESCRIPTORS, name))
    assert isinstance(found, MessageType)
    return found


def message_class(name: str) -> Any:
    return protobuf.message_class(message_type(name).descriptor)


def random_messages(name: str, seed: int, count: int) -> list[Any]:
    rng, made = random.Random(seed), message_class(name)
    messages = [made() for _ in range(count)]
    for message in messages:
        _fill(message, rng)
    return messages


def _fill(message: Any, rng: random.Random) -> None:
    name = message.DESCRIPTOR.full_name
    if name in _JSON:
        json_format.ParseDict(rng.choice(_JSON[name]), message)
    elif name == "google.protobuf.Timestamp":
        message.seconds, message.nanos = rng.choice([0, 5, -(10**9), 9 * 10**9]), rng.choice([0, 1, 999_999_999])
    elif name == "google.protobuf.Duration":
        sign = rng.choice([1, -1])
        message.seconds, message.nanos = sign * rng.choice([0, 5]), sign * rng.choice([0, 1, 999_999_999])
    else:
        for field in message.DESCRIPTOR.fields:
            if rng.random() < 0.65 or is_required(field):
                _fill_field(message, field, rng)


def _fill_field(message: Any, field: Any, rng: random.Random) -> None:
    if isinstance(field.default_value, list):
        repeated, items = getattr(message, field.name), range(rng.randrange(4))
        if field.message_type is None:
            repeated.extend(_scalar(field, rng) for _ in items)
        elif not field.message_type.GetOptions().map_entry:
            for _ in items:
                _fill(repeated.add(), rng)
        else:
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            for _ in items:
                if value.message_type is None:
                    repeated[_scalar(key, rng)] = _scalar(value, rng)
                else:
                    _fill(repeated[_scalar(key, rng)], rng)
    elif field.message_type is None:
        setattr(message, field.name, _scalar(field, rng))
    else:
        own = getattr(message, field.name)
        own.SetInParent()
        _fill(own, rng)


def _scalar(field: Any, rng: random.Random) -> Any:
    if field.enum_type is None:
        return rng.choice(_NUMBERS[field.type])
    others = [] if is_closed(field.enum_type) else [77, -3]
    return rng.choice([value.number for value in field.enum_type.values] + others)
