"""Each engine on its own: odd forms that protobuf accepts or refuses, details of the contract, bits to be kept."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from rows import decode, records
from strategies import EMBEDDED, blobs, entry, example, field, floats, group, int64s, sequence_example, tag, varint
from tfrecord_io.bytes.engine.contract import Engine, Fault, FaultCode, Plan, PlanColumn, Progress, RecordCounts
from tfrecord_io.bytes.format import example_messages as messages
from tfrecord_io.bytes.format.feature_types import Kind, Layout, RecordType, Text

WITH_SUPPORT = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
SIGNALLING_NAN = b"\x01\x00\x80\x7f"
ONE = example(b=int64s(1))


def fault_of(engine: Engine, payloads: list[bytes], plan: Plan | None = None) -> Fault:
    fault = engine.decoder(plan or Plan()).feed(engine.frame(payloads)).fault
    assert fault is not None
    return fault


def cells(engine: Engine, payload: bytes, plan: Plan | None = None) -> dict[str, Any]:
    found = records(decode(engine, engine.frame([payload]), plan))
    return found[0] if found else {}


# What C++ protobuf answers, asked of protobuf 6.31 as TensorFlow 2.21 has it.

ACCEPTED = {
    "a tag whose fifth byte overflows": b"\xfa\xff\xff\xff\x7f\x03abc" + ONE,
    "field 1 by such a tag": b"\x8a\x80\x80\x80\x70" + ONE[1:],
    "a value by such a tag": field(1, field(1, field(1, b"b") + b"\x92\x80\x80\x80\x10" + field(2, int64s(1))[1:])),
    "a size of five bytes": b"\x0a" + varint(len(ONE) - 2, pad=4) + ONE[2:],
    "a varint of ten bytes, its last one overflowing": tag(5, 0) + b"\xff" * 9 + b"\x7f" + ONE,
    "100 groups at the top": group(11, b"") + tag(11, 3) * 100 + tag(11, 4) * 100 + ONE,
    "97 groups in a feature": example(b=int64s(1) + tag(11, 3) * 97 + tag(11, 4) * 97),
    "an entry that holds an unknown field": field(
        1, field(1, field(1, b"b") + field(5, b"skip") + field(2, int64s(1)))
    ),
}
REFUSED = {
    "a tag of six bytes": b"\x8a\x80\x80\x80\x80\x00" + ONE[1:],
    "a size of six bytes": b"\x0a" + varint(len(ONE) - 2, pad=5) + ONE[2:],
    "101 groups at the top": tag(11, 3) * 101 + tag(11, 4) * 101 + ONE,
    "98 groups in a feature": example(b=int64s(1) + tag(11, 3) * 98 + tag(11, 4) * 98),
    "field 0 in a group": group(11, b"\x00\x01") + ONE,
    "a group that another one's end closes": b"\x5b\x64" + ONE,
    "the first of two keys is not UTF-8": field(1, field(1, field(1, b"\xff") + field(1, b"b") + field(2, int64s(1)))),
    "a key that is a surrogate": field(1, entry(b"\xed\xa0\x80", int64s(1))),
    "a broken value that a later entry replaces": field(1, entry("b", b"\x1a\x7f") + entry("b", int64s(1))),
    "two values, the first one cut": field(1, field(1, field(1, b"b") + field(2, b"\x1a") + field(2, b"\x00"))),
}


@pytest.mark.fault(39)
@pytest.mark.parametrize("payload", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_odd_forms_that_protobuf_accepts_are_read(engine: Engine, payload: bytes) -> None:
    assert cells(engine, payload) == {"b": ("int64", [1])}


@pytest.mark.fault(41)
@pytest.mark.fault(42)
@pytest.mark.parametrize("payload", REFUSED.values(), ids=REFUSED.keys())
def test_odd_forms_that_protobuf_refuses_are_faults(engine: Engine, payload: bytes) -> None:
    assert FaultCode.VARINT_TRUNCATED <= fault_of(engine, [payload]).code <= FaultCode.WIRE


def test_last_of_several_kinds_is_kept(engine: Engine) -> None:
    turns = int64s(5) + floats(1.0) + int64s(6) + int64s(7)
    assert cells(engine, example(b=turns)) == {"b": ("int64", [6, 7])}
    two_values = field(1, field(1, field(1, b"b") + field(2, int64s(5)) + field(2, floats(1.0) + int64s(6))))
    assert cells(engine, two_values) == {"b": ("int64", [6])}


@pytest.mark.fault(45)
def test_signalling_nans_keep_their_bits(engine: Engine) -> None:
    plan = Plan(columns=(PlanColumn("f", layout=Layout.LIST),))
    columns = decode(
        engine, engine.frame([example(f=field(2, field(1, SIGNALLING_NAN) + tag(1, 5) + SIGNALLING_NAN))]), plan
    )
    assert columns[0].values.tobytes() == 2 * SIGNALLING_NAN
    again, _ = engine.encoder(columns).encode(0, 1)
    assert decode(engine, bytes(again), plan)[0].values.tobytes() == 2 * SIGNALLING_NAN


# The plan.


def test_feature_left_out_is_not_parsed(engine: Engine) -> None:
    payload = field(1, entry("junk", b"\x1a\x7f") + entry("b", int64s(1)))
    for plan in (
        Plan(select={"b"}.__contains__),
        Plan(columns=(PlanColumn("b"),), unknown="skip"),
        Plan(ignored=frozenset({"junk"})),
    ):
        assert cells(engine, payload, plan) == {"b": ("int64", [1])}
    assert FaultCode.VARINT_TRUNCATED <= fault_of(engine, [payload]).code <= FaultCode.WIRE


def test_columns_are_in_the_order_of_the_plan_and_then_of_the_wire(engine: Engine) -> None:
    plan = Plan(columns=(PlanColumn("z"), PlanColumn("y")))
    assert [c.name for c in decode(engine, engine.frame([example(c=int64s(1), a=int64s(1), y=int64s(1))]), plan)] == [
        "z",
        "y",
        "c",
        "a",
    ]


@pytest.mark.parametrize(
    ("column", "payload", "code", "expected", "got"),
    [
        (PlanColumn("b", kind=Kind.FLOAT), example(b=int64s(1)), FaultCode.KIND, Kind.FLOAT, Kind.INT64),
        (PlanColumn("b", layout=Layout.NULL), example(b=int64s(1)), FaultCode.KIND, Kind.NONE, Kind.INT64),
        (PlanColumn("b", layout=Layout.SCALAR), example(b=int64s(1, 2)), FaultCode.VALUE_COUNT, 1, 2),
        (PlanColumn("b", layout=Layout.SCALAR), example(b=int64s()), FaultCode.VALUE_COUNT, 1, 0),
        (PlanColumn("b", text=Text.STRICT), example(b=blobs(b"a\x7f")), FaultCode.NOT_TEXT, 0, 0),
        (PlanColumn("b", text=Text.STRICT), example(b=blobs("\x85".encode())), FaultCode.NOT_TEXT, 0, 0),
        (PlanColumn("b", text=Text.UTF8), example(b=blobs(b"\xff")), FaultCode.NOT_UTF8, 0, 0),
        (PlanColumn("b", required=True), example(b=b""), FaultCode.MISSING_FEATURE, 0, 0),
        (PlanColumn("b", required=True), example(), FaultCode.MISSING_FEATURE, 0, 0),
    ],
)
@pytest.mark.fault(43)
@pytest.mark.fault(44)
def test_record_that_does_not_fit_the_plan_is_a_fault(
    engine: Engine, column: PlanColumn, payload: bytes, code: int, expected: int, got: int
) -> None:
    plan = Plan(columns=(column._replace(name="good", required=False, layout=Layout.ANY, kind=Kind.NONE), column))
    fault = fault_of(engine, [payload], plan)
    assert (fault.code, fault.feature) == (code, "b")
    if code in (FaultCode.KIND, FaultCode.VALUE_COUNT):
        assert (fault.expected, fault.got) == (expected, got)


def test_discovered_kind_is_reset_by_take(engine: Engine) -> None:
    decoder = engine.decoder(Plan())
    assert decoder.feed(engine.frame([example(b=int64s(1)), example(b=floats(1.0))])).fault == Fault(
        FaultCode.KIND, 1, 16 + len(ONE), feature="b", expected=Kind.INT64, got=Kind.FLOAT
    )
    assert decoder.take()[0].kind == Kind.INT64
    assert decoder.feed(engine.frame([example(b=floats(1.0))])).fault is None
    assert decoder.take()[0].kind == Kind.FLOAT


def test_first_column_of_the_plan_is_reported(engine: Engine) -> None:
    plan = Plan(columns=(PlanColumn("a", layout=Layout.SCALAR), PlanColumn("b", kind=Kind.FLOAT)))
    assert fault_of(engine, [example(b=int64s(1), a=int64s(1, 2))], plan).feature == "a"


def test_unknown_features_are_faults_if_the_plan_says_so(engine: Engine) -> None:
    plan = Plan(columns=(PlanColumn("b"),), unknown="fault", ignored=frozenset({"c"}))
    assert cells(engine, example(b=int64s(1), c=int64s(1)), plan) == {"b": ("int64", [1])}
    fault = fault_of(engine, [example(b=int64s(1), d=int64s(1))], plan)
    assert (fault.code, fault.feature) == (FaultCode.UNKNOWN_FEATURE, "d")


@pytest.mark.fault(46)
def test_number_of_features_is_limited(engine: Engine) -> None:
    many = [example(**{f"x{i}": int64s(1)}) for i in range(20)]
    fault = fault_of(engine, many, Plan(max_features=7))
    assert (fault.code, fault.record, fault.expected, fault.got) == (FaultCode.TOO_MANY_FEATURES, 7, 7, 8)
    assert fault_of(engine, many, Plan(max_features=7, select=lambda name: False)).code == FaultCode.TOO_MANY_FEATURES
    assert engine.decoder(Plan(max_features=7, unknown="skip")).feed(engine.frame(many)).fault is None


@pytest.mark.fault(46)
@pytest.mark.parametrize("unknown", ["discover", "fault"])
def test_a_record_of_too_many_names_is_refused_before_columns_are_made(engine: Engine, unknown: Any) -> None:
    """A column takes a hundred times the bytes of a short name."""
    asked: list[str] = []
    plan = Plan(unknown=unknown, max_features=7, select=lambda name: not asked.append(name))
    many = example(**{f"x{i}": int64s(1) for i in range(20)})
    fault = fault_of(engine, [example(), many], plan)
    assert (fault.code, fault.record, fault.expected, fault.got) == (FaultCode.TOO_MANY_FEATURES, 1, 7, 20)
    assert asked == []


def test_known_names_are_kept_and_count_with_new_ones_only(engine: Engine) -> None:
    decoder = engine.decoder(Plan(max_features=1))
    decoder.know([("a", False), ("b", False)])
    assert decoder.feed(engine.frame([example(a=int64s(1))])).fault is None
    fault = decoder.feed(engine.frame([example(a=int64s(1), c=int64s(1))])).fault
    assert (fault.code, fault.feature, fault.expected, fault.got) == (FaultCode.TOO_MANY_FEATURES, "c", 1, 3)
    decoder = engine.decoder(Plan())
    decoder.know([("a", False), ("b", False)])
    assert decoder.feed(engine.frame([b"\xff"])).fault is not None
    assert decoder.feed(engine.frame([example(c=int64s(1), b=int64s(2))])).fault is None
    assert [column.name for column in decoder.take()] == ["a", "b", "c"]
    assert decoder.new_names == [("c", False)]


# Layouts.


def test_one_value_in_every_row_is_a_scalar_column(engine: Engine) -> None:
    found = decode(engine, engine.frame([example(s=int64s(1), l=int64s(1)), example(l=int64s()), example(s=int64s(3))]))
    scalar, ragged = found
    assert (scalar.layout, scalar.values.tolist(), scalar.null_count, scalar.validity.tolist()) == (
        Layout.SCALAR,
        [1, 0, 3],
        1,
        [0b101],
    )
    assert (ragged.layout, ragged.offsets.tolist(), ragged.list_row, ragged.first_row) == (
        Layout.LIST,
        [0, 1, 1, 1],
        1,
        0,
    )


def test_fixed_layout_is_kept_without_rows(engine: Engine) -> None:
    decoder = engine.decoder(
        Plan(
            columns=(
                PlanColumn("l", Kind.INT64, Layout.LIST),
                PlanColumn("s", Kind.BYTES, Layout.SCALAR),
                PlanColumn("a", Kind.INT64),
            )
        )
    )
    as_list, scalar, free = decoder.take()
    assert (as_list.layout, as_list.kind, as_list.offsets.tolist(), as_list.values.dtype) == (
        Layout.LIST,
        Kind.INT64,
        [0],
        np.int64,
    )
    assert (scalar.layout, scalar.kind, scalar.value_offsets.tolist()) == (Layout.SCALAR, Kind.BYTES, [0])
    assert (free.layout, free.kind, free.rows) == (Layout.NULL, Kind.NONE, 0)


def test_text_is_tracked(engine: Engine) -> None:
    (text,) = decode(engine, engine.frame([example(b=blobs(b"a\tb\r\n", "é".encode()))]))
    assert (text.text, text.binary_row) == (True, -1)
    (binary,) = decode(engine, engine.frame([example(b=blobs(b"a")), example(b=blobs(b"\xff"))]))
    assert (binary.text, binary.binary_row) == (False, 1)


# Sequences.


def test_steps_are_nested_columns(engine: Engine) -> None:
    payloads = [sequence_example({}, {"w": [int64s(1), b"", int64s(2)]}), example(), sequence_example({}, {"w": []})]
    (column,) = decode(engine, engine.frame(payloads), Plan(record_type=RecordType.SEQUENCE_EXAMPLE))
    assert (column.kind, column.layout, column.offsets.tolist(), column.null_count) == (
        Kind.INT64,
        Layout.LIST,
        [0, 3, 3, 3],
        1,
    )
    steps = column.steps
    assert steps is not None
    assert (steps.layout, steps.rows, steps.values.tolist(), steps.null_count) == (Layout.SCALAR, 3, [1, 0, 2], 1)


def test_feature_list_that_parses_makes_a_sequence_example(engine: Engine) -> None:
    decoder = engine.decoder(Plan(record_type=RecordType.DETECT))
    plain = [ONE, ONE + field(2, b""), ONE + field(2, b"\xff"), ONE + field(2, field(1, b""))]
    assert decoder.feed(engine.frame(plain)).fault is None
    assert not decoder.sequence
    assert decoder.feed(engine.frame([sequence_example({"b": int64s(1)}, {"w": []})])).fault is None
    assert decoder.sequence
    assert [(c.name, c.steps is not None) for c in decoder.take()] == [("b", False), ("w", True)]
    assert decoder.feed(engine.frame([ONE + field(2, b"\xff")])).fault is not None


def test_field_2_that_is_not_a_feature_list_adds_no_column(engine: Engine) -> None:
    broken_inside = ONE + field(2, entry("w", b"\x0a\x01\x0c"))
    decoder = engine.decoder(Plan(record_type=RecordType.DETECT))
    assert decoder.feed(engine.frame([broken_inside, example(w=int64s(1))])).fault is None
    assert [(c.name, c.steps is not None) for c in decoder.take()] == [("b", False), ("w", False)]


def test_same_name_in_both_maps_is_a_fault(engine: Engine) -> None:
    both = sequence_example({"b": int64s(1)}, {"b": [int64s(1)]})
    assert fault_of(engine, [both], Plan(record_type=RecordType.DETECT)).code == FaultCode.NAME_IN_BOTH
    later = [sequence_example({}, {"b": [int64s(1)]}), ONE]
    assert fault_of(engine, later, Plan(record_type=RecordType.DETECT)).code == FaultCode.NAME_IN_BOTH


# The feed.


def test_feed_stops_at_its_limits(engine: Engine) -> None:
    data = engine.frame([ONE] * 5)
    size = len(data) // 5
    decoder = engine.decoder(Plan())
    assert decoder.feed(data, max_records=2).consumed == 2 * size
    assert decoder.feed(data, 2 * size, max_bytes=3 * len(ONE)).records == 1
    assert (decoder.rows, decoder.value_bytes) == (3, 3 * len(ONE))
    decoder.take()
    assert decoder.feed(data, 3 * size, max_bytes=1).records == 1  # a first record is always taken
    cut = engine.decoder(Plan()).feed(data[:-1], final=False)
    assert (cut.records, cut.consumed, cut.fault) == (4, 4 * size, None)
    fault = engine.decoder(Plan()).feed(data[:-1]).fault
    assert fault is not None
    assert (fault.code, fault.record, fault.offset) == (FaultCode.TRUNCATED_FOOTER, 4, 4 * size)


def test_records_without_features_are_counted(engine: Engine) -> None:
    foreign = [
        tag(5, 0) + b"\x01",
        tag(1, 0) + b"\x07",
        field(1, field(3, b"x")),
        field(1, field(1, field(4, b"x"))),
        field(2, b""),
    ]
    known = [
        b"",
        field(1, b""),
        field(EMBEDDED, b"TFRA"),
        ONE + tag(5, 0) + b"\x01",
        field(1, field(1, field(1, b"b") + field(3, b"x"))),
    ]
    decoder = engine.decoder(Plan())
    assert decoder.feed(engine.frame(foreign + known)).fault is None
    assert decoder.counts == RecordCounts(seen=7, foreign=5)  # the first three known ones do not tell


def test_feed_stops_at_embedded_schemas_at_any_top_level_position(engine: Engine) -> None:
    data = engine.frame(
        [
            ONE,
            field(EMBEDDED, b"one") + ONE + field(EMBEDDED, b"two"),
            field(1, entry("b", int64s(1)) + field(EMBEDDED, b"inner")),
        ]
    )
    assert engine.decoder(Plan()).feed(data).records == 3
    decoder = engine.decoder(Plan(stop_at_embedded=True))
    assert decoder.feed(data) == Progress(1, len(ONE) + 16, embedded=(b"one", b"two"))
    assert decoder.feed(data, len(ONE) + 16) == Progress(0, 0, embedded=(b"one", b"two"))
    decoder.accept_embedded()
    assert decoder.feed(data, len(ONE) + 16) == Progress(2, len(data) - len(ONE) - 16)


# Writing.


def test_rows_are_written_in_the_order_of_the_columns(engine: Engine) -> None:
    payloads = [example(z=int64s(1), a=blobs(b"x")), example(a=blobs(b"y", b"")), example()]
    columns = decode(engine, engine.frame(payloads))
    encoded, rows = engine.encoder(columns).encode(0, 3, prefix=field(EMBEDDED, b"s"))
    assert rows == 3
    assert bytes(encoded) == bytes(engine.frame([field(EMBEDDED, b"s") + payloads[0], *payloads[1:]]))
    assert bytes(engine.encoder(columns).encode(1, 2)[0]) == bytes(engine.frame(payloads[1:2]))


def test_feature_lists_are_written_with_their_nulls(engine: Engine) -> None:
    payloads = [sequence_example({"n": int64s(1)}, {"w": [int64s(1), b"", int64s(2, 3)]}), sequence_example({}, {})]
    columns = decode(engine, engine.frame(payloads), Plan(record_type=RecordType.SEQUENCE_EXAMPLE))
    assert bytes(engine.encoder(columns, sequence=True).encode(0, 2)[0]) == bytes(engine.frame(payloads))


# The message classes.


def test_messages_are_those_of_tensorflow() -> None:
    message = messages.Example(
        features=messages.Features(feature={"b": messages.Feature(int64_list=messages.Int64List(value=[1]))})
    )
    assert message.SerializeToString() == ONE
    assert message.DESCRIPTOR.full_name == "tensorflow.Example"
    assert message.features.feature["b"].WhichOneof("kind") == "int64_list"
    assert messages.FloatList(value=[1.5]).SerializeToString() == field(1, b"\x00\x00\xc0\x3f")
    assert messages.SequenceExample.FromString(sequence_example({}, {"w": [int64s(1)]})).feature_lists.feature_list[
        "w"
    ].feature[0] == (messages.Feature(int64_list=messages.Int64List(value=[1])))


def test_default_pool_is_left_to_tensorflow() -> None:
    code = (
        "import reference_engine; from google.protobuf import descriptor_pool as d; p = d.Default()\n"
        "try: p.FindMessageTypeByName('tensorflow.Example')\nexcept KeyError: print('free')"
    )
    done = subprocess.run([sys.executable, "-c", code], env=WITH_SUPPORT, capture_output=True, text=True, check=True)
    assert done.stdout == "free\n"


def test_protobuf_in_pure_python_reads_alike() -> None:
    """It raises UnicodeDecodeError for a name that is not UTF-8, and ByteSize() counts dropped unknown fields."""
    code = (
        "from tfrecord_io.bytes.engine.contract import Plan\n"
        "from reference_engine import ENGINE\n"
        "decoder = ENGINE.decoder(Plan())\n"
        "for payload in ('0a0f0a0d0a0b20ffffffffffffffffff01', '4a056f74686572'):\n"
        "    fault = decoder.feed(ENGINE.frame([bytes.fromhex(payload)])).fault\n"
        "    print(fault.code.name if fault else decoder.counts.foreign)\n"
    )
    environment = {**WITH_SUPPORT, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "WIRE\n1\n"


@pytest.mark.parametrize("known", [[], ["a"], ["a", "b"], ["c", "d"]], ids=str)
def test_new_names_of_a_record_that_only_looks_like_a_sequence_example(engine: Engine, known: list[str]) -> None:
    """Field 2, which is unknown in an Example, may be other bytes than feature lists."""
    decoder = engine.decoder(Plan(record_type=RecordType.DETECT))
    decoder.know([(name, False) for name in known])
    values = dict(zip("abcd", map(int64s, range(4)), strict=True))
    for payload in (field(2, b"ab") + example(**values), example(**values) + field(2, b"ab")):
        assert decoder.feed(engine.frame([payload])).fault is None
    assert decoder.new_names == [(name, False) for name in "abcd" if name not in known]
    row = {name: ("int64", [at]) for at, name in enumerate("abcd")}
    assert records(list(decoder.take())) == [row, row]
