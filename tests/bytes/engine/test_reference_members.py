"""Finding the fields of messages whose fields are messages, and framing payloads of several parts."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import example as given_example
from hypothesis import given
from hypothesis import strategies as st

from engine_comparison import ENGINES, essence
from records import field, framed, group, tag, varint
from strategies import damaged, unknown_fields
from tfrecord_io.bytes.engine.contract import Engine, Fault, Frames, Members
from tfrecord_io.bytes.format.protobuf import MessageClasses

LISTS = MessageClasses("tests/members.proto", "tests.members", {"Lists": "first 1 *bytes, second 2 *bytes"})["Lists"]

CONTENTS = st.binary(max_size=40) | st.integers(0, 300).map(bytes)
FIELDS = st.builds(field, st.sampled_from([1, 1, 2, 3, 2**29 - 1]), CONTENTS, st.integers(0, 3))
ODD = unknown_fields() | CONTENTS.map(lambda content: group(1, field(2, content))) | st.just(tag(1, 0) + varint(7))
MESSAGES = st.lists(FIELDS | ODD, max_size=6).map(b"".join)
PAYLOADS = st.lists(MESSAGES | MESSAGES.flatmap(damaged), max_size=5)


def found(engine: Engine, payloads: list[bytes]) -> tuple[Frames, Members, Fault | None]:
    data = framed(*payloads)
    frames, _ = engine.scan(data)
    return frames, *engine.members(data, frames, 2)


@given(PAYLOADS)
@given_example([b"", field(1, b""), b"\x0a"])
@given_example([field(1, b"a", pad=4), tag(1, 2, pad=4) + varint(1) + b"a"])
def test_engines_find_the_same_fields(payloads: list[bytes]) -> None:
    results = [found(engine, payloads)[1:] for engine in ENGINES]
    for members, fault in results:
        assert essence(fault) == essence(results[0][1])
        for name in ("fields", "records", "starts", "lengths"):
            actual, expected = getattr(members, name), getattr(results[0][0], name)
            assert actual.dtype == np.int64
            assert actual.tolist() == expected.tolist()


@given(PAYLOADS)
def test_they_are_those_of_protobuf(payloads: list[bytes]) -> None:
    for engine in ENGINES:
        data = framed(*payloads)
        frames, members, fault = found(engine, payloads)
        assert members.records.tolist() == sorted(members.records)
        for record, payload in enumerate(payloads[: None if fault is None else fault.record]):
            message = LISTS.FromString(payload)
            for number, expected in ((1, message.first), (2, message.second)):
                own = (members.records == record) & (members.fields == number)
                extents = zip(members.starts[own], members.lengths[own], strict=True)
                assert [data[start : start + length] for start, length in extents] == list(expected)
        if fault is not None:
            assert fault.offset == frames.starts[fault.record] - 12
            with pytest.raises(DecodeError):
                _parse_strictly(payloads[fault.record])


def _parse_strictly(payload: bytes) -> None:
    """Parse as C++ protobuf, which refuses some messages that Python's accepts."""
    from reference_engine import wire_tags

    wire_tags.parse(LISTS, payload, {})
    list(wire_tags.fields(payload))


def test_a_fault_has_its_byte(engine: Engine) -> None:
    payloads = [field(1, b"abc"), field(2, b"d") + field(1, b"ef") + tag(1, 2) + varint(9) + b"short"]
    _, members, fault = found(engine, payloads)
    assert fault is not None
    assert (fault.record, members.records.tolist()) == (1, [0])
    if engine.name == "native":
        assert (fault.byte, fault.expected, fault.got) == (8, 5, 9)


@given(st.lists(st.tuples(CONTENTS, CONTENTS, CONTENTS), max_size=5))
def test_parts_are_joined_in_frames(rows: list[tuple[bytes, ...]]) -> None:
    parts = [part for row in rows for part in row]
    lengths = np.array([len(part) for part in parts], np.int64)
    starts = np.cumsum(lengths) - lengths
    for engine in ENGINES:
        joined = engine.frame_extents(b"".join(parts), starts, lengths, 3)
        assert joined.dtype == np.uint8
        assert joined.tobytes() == framed(*map(b"".join, rows))


def test_extents_may_be_anywhere(engine: Engine) -> None:
    data = struct.pack("<8B", *range(8))
    joined = engine.frame_extents(data, np.array([6, 0, 2, 2]), np.array([2, 3, 0, 1]), 2)
    assert joined.tobytes() == framed(bytes([6, 7, 0, 1, 2]), bytes([2]))
