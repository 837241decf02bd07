"""Records and plans that random ones rarely are, each for a branch of the kernel, decoded as the reference engine does.

`make coverage` names the branches that no test takes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from engine_comparison import NATIVE, compare, same_columns
from reference_engine import ENGINE as REFERENCE
from strategies import blobs, entry, example, field, floats, int64s, sequence_example, tag, varint
from tfrecord_io.bytes.engine.contract import ColumnBuffers, Fault, Plan, PlanColumn
from tfrecord_io.bytes.format.feature_types import Kind, Layout, RecordType, Text

BALLAST = b"\x52\xff\x01" + bytes(255)  # an unknown field, so that vectors can be loaded from the records before it
PLAIN = example(a=int64s(1), b=floats(2.5), c=blobs(b"text"))
SEQUENCE = sequence_example({"a": int64s(1)}, {"s": [int64s(1), int64s(2, 3)], "t": [blobs(b"x")]})


def check(plan: Plan, *payloads: bytes, max_records: int = -1, max_bytes: int = -1) -> None:
    """Both engines decode these records alike, as the last ones of the data and before others."""
    for after in ([], [BALLAST] * 2):
        compare(plan, bytes(REFERENCE.frame([*payloads, *after])), [], max_records, max_bytes)


def in_order(*features: tuple[str, bytes]) -> bytes:
    return field(1, b"".join(entry(key, value) for key, value in features))


@pytest.mark.parametrize(
    "other",
    [
        field(1, entry("i", field(3, tag(1, 0) + varint(5)))),
        field(1, entry("i", field(3, tag(1, 0) + varint(5) + tag(1, 0) + varint(6)))),
        field(1, entry("i", field(3, tag(1, 0) + varint(300) + b"\x00"))),
        field(1, entry("i", field(3, field(1, b"")))),
        field(1, entry("i", field(3, b"\x0a\x02\x01"))),
        field(1, entry("i", field(3, b"\x12\x00"))),
        field(1, entry("i", b"")),
        field(1, entry("i", tag(3, 0) + varint(1))),
        field(1, entry("i", tag(9, 0) + varint(1))),
        field(1, entry("i", tag(1, 5) + bytes(4))),
        field(1, entry("i", b"\x00\x00")),
        field(1, entry("i", b"\x02\x00")),
        field(1, entry("i", field(3, field(1, b"\x01\x80")))),
        field(1, entry("i", field(3, field(1, b"\xff" * 11 + b"\x01")))),
        field(1, entry("i", field(2, field(1, b"")))),
        field(1, entry("i", field(2, b"\x0a\x08" + bytes(4)))),
        field(1, entry("i", field(2, b"\x0a\x80" + bytes(4)))),
        field(1, entry("i", field(2, tag(1, 5) + bytes(4)))),
        field(1, entry("i", field(2, tag(1, 0) + varint(1)))),
        field(1, entry("i", field(2, tag(1, 1) + bytes(8)))),
        field(1, entry("i", field(3, tag(1, 5) + bytes(4)))),
        field(1, entry("i", field(1, tag(1, 5) + bytes(4)))),
        field(1, entry("i", field(2, tag(1, 5) + bytes(4) + tag(1, 5) + bytes(4)))),
        field(1, entry("i", field(2, field(1, bytes(5))))),
        field(1, entry("i", floats(1, 2))),
        field(1, entry("i", int64s(1, 2, 3))),
        field(1, entry("i", blobs(b"x", b"\xff"))),
        field(1, entry("i", blobs("\u0800\ud7ff\ue000\U00010000\U0010ffff".encode()))),
        field(1, entry("i", blobs(b"\xed\xa0\x80"))),
        field(1, entry("i", blobs(b"\xf4\x90\x80\x80"))),
        field(1, entry("i", blobs(b"\xe0\x80\x80"))),
        field(1, entry("i", blobs(b"\xf0\x80\x80\x80"))),
        field(1, entry(b"\xff", int64s(1))),
        field(1, entry("i", int64s(1)) + entry("i", int64s(2))),
        field(1, entry("i", int64s(1)) + entry("i", floats(2))),
    ],
    ids=range(35),
)
@pytest.mark.parametrize("layout", [Layout.ANY, Layout.SCALAR, Layout.LIST])
def test_other_forms_of_a_value_after_plain_ones(other: bytes, layout: Layout) -> None:
    for kind, value in ((Kind.INT64, int64s(7)), (Kind.FLOAT, floats(1.5)), (Kind.BYTES, blobs(b"plain"))):
        plan = Plan((PlanColumn("i", kind, layout),), "skip")
        check(plan, *[field(1, entry("i", value))] * 3, other, field(1, entry("i", value)))
        check(plan, other, field(1, entry("i", value)))
        if layout is Layout.ANY:
            check(Plan(), *[in_order(("h", value), ("i", value))] * 3, other, in_order(("i", value), ("h", value)))


@pytest.mark.parametrize("record_type", list(RecordType))
@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize(
    "other",
    [
        sequence_example({"a": int64s(1)}, {"s": [b"", int64s(2)]}),
        sequence_example({"a": int64s(1)}, {"s": [b""]}),
        sequence_example({"a": int64s(1)}, {"s": []}),
        sequence_example({}, {"s": [int64s(1)] * 5}),
        field(2, entry("s", field(1, int64s(1))) + entry("s", field(1, int64s(2)))),
        field(2, entry("s", b"\x0a\x80")),
        field(2, entry("s", b"\x0a\x05\x01")),
        field(2, entry("s", b"\x0a\x80\x80")),
        field(2, entry("s", b"\x10\x01")),
        field(2, entry("s", field(1, int64s(1)) + b"\x10\x01")),
        field(2, entry("s", field(1, int64s(1)) + field(1, floats(1)))),
        field(2, entry("s", b"\x80")),
        field(2, entry("s", field(1, int64s(1)) + b"\x13")),
        field(2, b"".join(entry(f"s{i}", field(1, int64s(i))) for i in range(40))),
        field(2, entry(b"\xff", field(1, int64s(1)))),
        field(2, entry("a", field(1, int64s(1)))),
        sequence_example({"s": int64s(1)}, {"s": [int64s(1)]}),
        b"\x12\x05\x01",
        field(2, entry("t", field(1, blobs(b"x")) + field(1, blobs(b"yy")) + field(1, blobs(b"z")) + b"\x10\x01")),
        field(2, entry("t", field(1, blobs(b"x"))) + entry("t", field(1, blobs(b"x"))) + entry("t", b"")),
        field(2, entry("u", field(1, int64s(1))) * 5),
        field(1, field(1, field(1, "\x0a\x01x\x12é".encode()))),
        field(1, field(1, field(1, b"\x0a\x01x\x12\x05"))),
        field(1, field(1, field(1, b"\x0a\x01x\x12\x00"))),
        field(1, field(1, field(1, b"\x0a\x01x\x12\x00y"))),
    ],
    ids=range(25),
)
def test_other_forms_of_feature_lists(record_type: RecordType, planned: bool, other: bytes) -> None:
    columns = (
        (PlanColumn("a", Kind.INT64), PlanColumn("s", Kind.INT64, steps=True), PlanColumn("t", steps=True))
        if planned
        else ()
    )
    unknown = "skip" if planned else "discover"
    plan = Plan(columns, unknown, record_type=record_type, ignored=frozenset({"u"}))
    check(plan, *[SEQUENCE] * 3, other, SEQUENCE)
    check(plan, other, *[SEQUENCE] * 3)
    check(plan, *[example(a=int64s(1))] * 2, other, SEQUENCE)


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        field(1, b"ignored"),
        field(1, b"ignored") + b"\x12",
        field(1, b"ignored") + b"\x12\x80",
        field(1, b"ignored") + b"\x12\x05\x01",
        field(1, b"ignored") + b"\x1a\x00",
        field(1, b"ignored") + field(2, b"") + b"\x10\x01",
        b"\x0a\x80",
        b"\x0a",
        b"\x12\x00",
    ],
    ids=range(10),
)
def test_entries_of_a_name_that_is_left_out(odd: bytes) -> None:
    """In the place where the name was in the records before."""
    usual = in_order(("first", int64s(1)), ("ignored", int64s(2)), ("last", int64s(3)))
    other = field(1, entry("first", int64s(1)) + field(1, odd) + entry("last", int64s(3)))
    check(Plan(ignored=frozenset({"ignored"})), *[usual] * 4, other, usual)


@pytest.mark.parametrize("value", [int64s(300), floats(1.5), blobs(b"some text")])
def test_an_entry_that_its_message_ends_too_early(value: bytes) -> None:
    """By each number of bytes; the record itself is long enough."""
    entries = entry("h", value) + entry("i", value)
    for missing in range(1, len(entries)):
        check(Plan(), *[field(1, entries)] * 3, field(1, entries[:-missing]) + field(99, bytes(missing)))
        check(Plan(), *[field(1, entries)] * 3, field(1, entries[:-missing]))


def test_long_names_that_differ_in_their_last_byte() -> None:
    names = ["n" * 75 + end for end in "abc"]
    for order in (names, names[::-1], [names[0], names[2], names[1]]):
        records = [in_order(*((name, int64s(i)) for name in order)) for i in range(4)]
        check(Plan(), *[in_order(*((name, int64s(9)) for name in names))] * 3, *records)


@pytest.mark.parametrize("text", [Text.STRICT, Text.UTF8, Text.TRACK, Text.NO])
def test_bytes_that_are_no_text_after_text(text: Text) -> None:
    plan = Plan((PlanColumn("c", Kind.BYTES, Layout.SCALAR, text), PlanColumn("d", Kind.BYTES, Layout.SCALAR, text)))
    usual = in_order(("c", blobs(b"plain")), ("d", blobs("schön".encode())))
    for value in (b"\xff", b"\x00", "é".encode(), b"x" * 40 + b"\xff"):
        check(plan, *[usual] * 4, in_order(("c", blobs(value)), ("d", blobs(b"plain"))), usual)


def test_a_feature_of_another_kind_in_any_order() -> None:
    """Names in an order that changes, so that the kind is read from the entry."""
    values = {"a": int64s(1), "b": floats(2), "c": blobs(b"xy"), "d": int64s(4), "e": floats(5)}
    for key in values:
        for odd in (blobs(b"x"), int64s(3), floats(1, 2)):
            records = []
            for row in range(30):
                order = sorted(values, key=lambda name: hash_of(name, row))
                records.append(in_order(*((name, values[name]) for name in order)))
            check(Plan(), *records, in_order(*((name, odd if name == key else values[name]) for name in values)))
            check(Plan(), *[PLAIN] * 3, example(a=int64s(1), b=odd, c=odd), PLAIN)


def hash_of(name: str, row: int) -> int:
    return (ord(name) * 7919 + row * 104_729) % 1013


@pytest.mark.parametrize("damage", ["length", "payload", "long", "crc"])
@pytest.mark.parametrize("check_crc", [True, False])
@pytest.mark.parametrize("record", range(1, 6))
def test_damage_behind_records_of_one_form(damage: str, check_crc: bool, record: int) -> None:
    frame = len(PLAIN) + 16
    data = bytearray(REFERENCE.frame([*[PLAIN] * 8, BALLAST, BALLAST]))
    if damage == "long":
        stated = REFERENCE.frame([bytes(5000)])
        data[record * frame : record * frame + 12] = bytes(stated)[:12]
    else:
        data[record * frame + {"length": 1, "crc": 9, "payload": 14 + len(PLAIN) // 2}[damage]] ^= 1
    for most in (-1, 3):
        compare(Plan(check_crc=check_crc), bytes(data), [], most)
        compare(Plan(check_crc=check_crc, max_record_bytes=len(PLAIN)), bytes(data), [], most)


@pytest.mark.parametrize("max_records", [1, 2, 5, 11])
@pytest.mark.parametrize("max_bytes", [-1, 0, 60, 200, 2**31, 2**40])
def test_limits_within_records_of_one_form(max_records: int, max_bytes: int) -> None:
    check(Plan(), *[PLAIN] * 12, max_records=max_records, max_bytes=max_bytes)
    check(Plan(max_record_bytes=len(PLAIN) - 1), *[PLAIN] * 3, max_records=max_records, max_bytes=max_bytes)


@pytest.mark.parametrize("required", [["a"], ["a", "c"], ["z"]])
def test_required_features_that_are_absent_behind_records_of_one_form(required: list[str]) -> None:
    columns = tuple(PlanColumn(name, required=name in required) for name in ("a", "b", "c", "z"))
    for odd in (example(b=floats(1)), example(a=int64s(1), b=floats(1)), example(), b"", PLAIN):
        check(Plan(columns), *[example(a=int64s(1), b=floats(2.5), c=blobs(b"t"), z=int64s(1))] * 4, odd, PLAIN)


def test_more_names_than_the_memory_for_the_rows_allows() -> None:
    """New names of a record are refused where the rows before it are too many; of the first one they never are."""
    few, many = example(a=int64s(1)), example(**{f"n{i}": int64s(1) for i in range(900)})
    for records in ([many, few], [*[few] * 10, many, few]):
        compare(Plan(max_expansion=0), bytes(REFERENCE.frame(records)), [])


def test_more_cells_than_memory_are_refused() -> None:
    """Records that are empty, and one with so many names that the columns would have over 2^29 cells.

    It is a MemoryError also next to DuckDB, whose module is made with nanobind, too, and translates its exceptions.
    """
    pytest.importorskip("duckdb")
    rows, names = 200_000, 2_700
    decoder = NATIVE.decoder(Plan())
    decoder.feed(bytes(REFERENCE.frame([b""])) * rows)
    with pytest.raises(MemoryError):
        decoder.feed(bytes(REFERENCE.frame([example(**{f"n{i}": int64s() for i in range(names)})])))


PARTS = [
    [example(a=int64s(1))] * 3,
    [example(a=int64s(1, 2)), example(), example(a=int64s(3))],
    [example(a=floats(1))] * 2,
    [example(a=blobs(b"x"), s=int64s(1))] * 2,
    [example(a=blobs(b"x", b"\xff")), example(a=blobs(b"y"))],
    [example(), b"", example(a=b"")],
    [b"", example(a=int64s(7))],
    [SEQUENCE, sequence_example({}, {"s": [int64s(9)]})],
    [sequence_example({"a": int64s(1)}, {"s": [b"", b""]})],
    [sequence_example({"a": int64s(1)}, {})] * 2,
    [sequence_example({"a": int64s(1)}, {"s": steps}) for steps in ([], [b""], [b"", int64s(5)], [int64s(6)])],
]
PLANNED = [PlanColumn("a"), PlanColumn("s", steps=True), PlanColumn("t", steps=True)]
APPENDED = {
    "any": Plan((PlanColumn("a"),), "skip"),
    "no text": Plan((PlanColumn("a", text=Text.NO),), "skip"),
    "lists": Plan((PlanColumn("a", Kind.INT64, Layout.LIST),), "skip"),
    "scalars": Plan((PlanColumn("a", Kind.INT64, Layout.SCALAR),), "skip"),
    "little memory": Plan((PlanColumn("a"),), "skip", max_expansion=0),
    "sequences": Plan(tuple(PLANNED), "skip", record_type=RecordType.SEQUENCE_EXAMPLE),
    "detected": Plan(tuple(PLANNED), "skip", record_type=RecordType.DETECT),
    "discovered": Plan((), "discover", record_type=RecordType.SEQUENCE_EXAMPLE),
}


@pytest.mark.parametrize("plan", APPENDED)
@pytest.mark.parametrize("first", range(len(PARTS)))
def test_parts_of_a_batch_become_what_they_are_if_decoded_at_once(plan: str, first: int) -> None:
    """Appended, or decoded again where that is not possible; whole, and without their first record."""
    before = bytes(REFERENCE.frame(PARTS[first]))
    for second, begin in [(second, begin) for second in PARTS for begin in (0, 1)]:
        rest = bytes(REFERENCE.frame(second[begin:]))
        decoder, part, whole = (NATIVE.decoder(APPENDED[plan]) for _ in range(3))
        if decoder.feed(before).fault or part.feed(REFERENCE.frame(second)).fault:
            continue
        if part.rows < len(second):  # the rows it may hold are fewer
            continue
        part.complete()
        if not decoder.append(part, begin, part.rows, sum(map(len, second[begin:]))):
            assert decoder.feed(rest).fault == whole_fault(whole, before, rest)
        else:
            assert whole_fault(whole, before, rest) is None
        assert decoder.rows == whole.rows
        same_columns(list(decoder.take()), list(whole.take()))


def whole_fault(decoder: Any, before: bytes, rest: bytes) -> Fault | None:
    """Decode both; the fault of the second."""
    assert decoder.feed(before).fault is None
    fault: Fault | None = decoder.feed(rest).fault
    return fault


@pytest.mark.parametrize("limit", [0, 2**31 - 1, 2**32 - 1, 2**32, 2**40, 2**62])
@pytest.mark.parametrize("length", [0, 3, 300])
def test_headers_are_found_for_any_limit(limit: int, length: int) -> None:
    for before in range(40):
        data = bytes([255] * before) + bytes(REFERENCE.frame([bytes(length)]))
        found = [engine.find_header(data, max_record_bytes=limit) for engine in (NATIVE, REFERENCE)]
        assert found == [before if length <= limit else -1] * 2


def test_many_rows_of_long_values_among_short_ones_encode_alike() -> None:
    lengths = [500] * 40 + [5] * 10 + [300] * 3 + [0, 7]
    rows, offsets = len(lengths), np.cumsum([0, *lengths])
    content = np.resize(np.frombuffer(b"content", np.uint8), offsets[-1])
    columns = [
        ColumnBuffers("b", Kind.BYTES, Layout.SCALAR, rows, value_offsets=offsets, values=content),
        ColumnBuffers("f", Kind.FLOAT, Layout.SCALAR, rows, values=np.arange(rows, dtype=np.float32)),
        ColumnBuffers("i", Kind.INT64, Layout.SCALAR, rows, values=np.arange(rows)),
    ]
    for chosen in (columns, columns[1:], columns[1:2]):
        native, reference = (engine.encoder(chosen).encode(0, rows) for engine in (NATIVE, REFERENCE))
        assert (bytes(native[0]), native[1]) == (bytes(reference[0]), reference[1])


@pytest.mark.complete
@pytest.mark.parametrize("portable", ["1", "avx2"])
def test_rare_records_on_other_processors(portable: str) -> None:
    environment = {**os.environ, "TFRECORD_IO_PORTABLE": portable, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__, "-k", "not processors"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:]
