"""Fields of messages of any type: both engines find the same, and refuse the same."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engine_comparison import ENGINES
from random_messages import message_type, random_messages
from reference_engine import ENGINE as REFERENCE
from rounds import rounds
from tfrecord_io.bytes.engine.contract import Engine, FieldForm, Frames, MessageFields
from tfrecord_io.columns.arrow.messages.message_tree import message_tree

VARINT, FIXED64, LEN, GROUP, _, FIXED32 = range(6)


def found(
    engine: Engine, payloads: list[bytes], forms: list[FieldForm], rows: list[int] | None = None
) -> MessageFields:
    result, fault = run(engine, payloads, forms, rows)
    assert fault is None
    return result


def run(
    engine: Engine, payloads: list[bytes], forms: list[FieldForm], rows: list[int] | None = None
) -> tuple[MessageFields, int | None]:
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    numbers = np.arange(len(payloads)) if rows is None else np.array(rows)
    extents = Frames(np.cumsum(lengths) - lengths, lengths, 0)
    data = np.frombuffer(b"".join(payloads), np.uint8)
    result, fault = engine.message_fields(data, extents, numbers.astype(np.int32), forms)
    return result, None if fault is None else fault.record


def lists(result: MessageFields) -> list[list[list[int]]]:
    return [[column.tolist() for column in values] for values in result.fields]


def test_numbers_and_contents(engine: Engine) -> None:
    forms = [
        FieldForm(1, VARINT, False),
        FieldForm(2, LEN, True),
        FieldForm(3, FIXED32, False),
        FieldForm(70, GROUP, True),
    ]
    payload = bytes.fromhex("08ffffffffffffffffff01 12026161 1d01000080 b304 0801 b404 0802")
    assert lists(found(engine, [payload, b""], forms)) == [
        [[0], [2], []],
        [[0], [13], [2]],
        [[0], [0x80000001], []],
        [[0], [22], [2]],
    ]


def test_of_numbers_the_last_one_counts_and_parts_of_a_message_are_one(engine: Engine) -> None:
    forms = [FieldForm(1, VARINT, False), FieldForm(2, LEN, False)]
    payloads = [bytes.fromhex("0801 1200"), bytes.fromhex("0802 120100"), bytes.fromhex("0803")]
    assert lists(found(engine, payloads, forms, [0, 0, 1])) == [[[0, 1], [2, 3], []], [[0, 0], [4, 8], [0, 1]]]


def test_packed_numbers(engine: Engine) -> None:
    forms = [FieldForm(1, VARINT, True), FieldForm(2, FIXED64, False)]
    result = found(engine, [bytes.fromhex("0a0305ac02 0807 120800000000000000ff 0a00")], forms)
    assert lists(result) == [[[0, 0, 0], [5, 300, 7], []], [[], [], []]]
    assert result.unknown == {2: 1}


def test_members_of_a_oneof_exclude_each_other_also_those_that_are_skipped(engine: Engine) -> None:
    forms = [
        FieldForm(1, VARINT, False, oneof=0),
        FieldForm(2, LEN, False, oneof=0),
        FieldForm(3, VARINT, False, False, 0),
    ]
    payloads = [bytes.fromhex(text) for text in ("0801 120100", "120100 0801", "0801 1801", "120100 120100 0801 1200")]
    assert [values[0] for values in lists(found(engine, payloads, forms))] == [[1], [0, 3], []]


@pytest.mark.parametrize(
    "payload", ["ff", "0b", "0c", "0a05", "0f", "00", "0b14", "0a0180", "1d00", "0b0c10", "d30408"]
)
def test_what_is_no_message_ends_the_call(engine: Engine, payload: str) -> None:
    forms = [FieldForm(1, VARINT, True), FieldForm(74, GROUP, True)]
    assert run(engine, [b"", bytes.fromhex(payload)], forms)[1] == 1


@pytest.mark.parametrize("name", ["kinds.All", "legacy.Old"])
@pytest.mark.parametrize("engine", ENGINES[:1], ids=lambda engine: engine.name)
def test_mutants_give_the_same_as_the_reference(engine: Engine, name: str) -> None:
    rng = random.Random(5)
    forms = message_tree(message_type(name).descriptor, ["id", "i32", "point", "inners", "number", "flags"]).forms
    forms = [*forms, *message_tree(message_type(name).descriptor).forms]
    forms = list({form.number: form for form in forms}.values())
    seeds = [message.SerializeToString() for message in random_messages(name, 9, 20)]
    for _ in range(rounds(4_000)):
        payload = bytearray(rng.choice(seeds))
        for _ in range(rng.randrange(3)):
            payload[rng.randrange(len(payload)) : rng.randrange(len(payload))] = rng.randbytes(rng.randrange(3))
            payload += b"\x08"[: not payload]
        got, fault = run(engine, [bytes(payload)], forms)
        expected, expected_fault = run(REFERENCE, [bytes(payload)], forms)
        assert fault == expected_fault, bytes(payload).hex()
        if fault is None:
            assert (lists(got), got.unknown) == (lists(expected), expected.unknown), bytes(payload).hex()
