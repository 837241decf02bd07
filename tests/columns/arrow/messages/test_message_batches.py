"""Messages as tables and back: protobuf decides what is right."""

from __future__ import annotations

import io
import random
import warnings
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, struct_pb2
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError as ProtobufError
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from engine_comparison import ENGINES
from random_messages import DESCRIPTORS, message_class, message_type, random_messages
from rounds import COMPLETE, rounds
from tfrecord_io.base.options.limits import Expansion
from tfrecord_io.bytes.engine.contract import ColumnBuffers
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.bytes.format import protobuf
from tfrecord_io.bytes.format.feature_types import Kind, Layout
from tfrecord_io.columns.arrow.messages import message_batches
from tfrecord_io.columns.arrow.messages.encode_messages import MessageEncoder, encoded_fields
from tfrecord_io.columns.arrow.messages.message_batches import MessageBatchBuilder
from tfrecord_io.columns.arrow.row_fault import RowFault

NAMES = ["kinds.All", "legacy.Old"]


def batch(
    name: str, payloads: list[bytes], columns: list[str] | None = None, **options: Any
) -> tuple[pa.RecordBatch, RowFault | None, dict[str, int]]:
    type_ = message_type(name)
    names = columns if columns is not None else [field.name for field in type_.descriptor.fields]
    builder = MessageBatchBuilder(type_, names, max_features=10_000, threads=options.pop("threads", 1))
    offsets = np.cumsum([0, *map(len, payloads)]).astype(np.int32)
    values = np.frombuffer(b"".join(payloads), np.uint8)
    column = ColumnBuffers("r", Kind.BYTES, Layout.SCALAR, len(payloads), value_offsets=offsets, values=values)
    made, fault = builder.batch({"r": column}, len(payloads), **options)
    made.validate(full=True)
    return made, fault, dict(builder.unknown)


def row(name: str, payload: bytes) -> dict[str, Any]:
    made, fault, _ = batch(name, [payload])
    assert fault is None
    return made.to_pylist()[0]


def write(path: Path, payloads: list[bytes]) -> Path:
    with tfr.RecordWriter(path) as writer:
        for payload in payloads:
            writer.write(payload)
    return path


@pytest.mark.parametrize("engine", [engine.name for engine in ENGINES])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=rounds(100), deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 6))
def test_what_is_read_is_written_as_the_same_messages(
    tmp_path_factory: pytest.TempPathFactory, name: str, engine: str, seed: int, count: int
) -> None:
    folder, made = tmp_path_factory.mktemp("messages"), message_class(name)
    messages = random_messages(name, seed, count)
    path = write(folder / "a.tfrecord", [message.SerializeToString() for message in messages])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFRECORD_IO_ENGINE", engine)
        table = tfr.read_table(tfr.dataset(path, record_type=made))
        tfr.write_tfrecord(table, folder / "b.tfrecord", record_type=made)
        tfr.write_tfrecord(table.slice(1), folder / "c.tfrecord", record_type=made)
        assert tfr.read_table(tfr.dataset(folder / "b.tfrecord", record_type=made)).equals(table)
    for copy, expected in (("b", messages), ("c", messages[1:])):
        with tfr.RecordReader(folder / f"{copy}.tfrecord") as records:
            assert [made.FromString(record) for record in records] == expected


def test_messages_of_the_test_type_have_the_values_that_protobuf_reads() -> None:
    messages = random_messages("kinds.All", 3, 50)
    made, fault, unknown = batch("kinds.All", [message.SerializeToString() for message in messages])
    assert fault is None
    assert unknown == {}
    for message, got in zip(messages, made.to_pylist(), strict=True):
        for name in ("i32", "u64", "s64", "real", "wide", "text", "data", "flag", "texts", "signed", "flags"):
            value = getattr(message, name)
            assert got[name] == (value if isinstance(value, str | bytes | int | float) else list(value))
        for name in ("present_text", "present_data", "number", "name"):
            assert got[name] == (getattr(message, name) if message.HasField(name) else None)
        assert dict(got["by_number"]) == dict(message.by_number)
        assert (got["inner"] is None) == (not message.HasField("inner"))
        assert [each["s"] for each in got["inners"]] == [each.s for each in message.inners]
        assert (got["maybe_int"] is None) == (not message.HasField("maybe_int"))
        assert message.maybe_int.value == (got["maybe_int"] or 0)
        if message.HasField("took"):
            assert got["took"].value == message.took.ToNanoseconds()
        else:
            assert got["took"] is None


def test_enums_are_text() -> None:
    made = message_class("kinds.All")
    got = row("kinds.All", made(color=1, colors=[-5, 77], colors_of={True: 1}).SerializeToString())
    assert (got["color"], got["colors"], got["present_color"]) == ("GREEN", ["BLUE", "77"], None)
    assert got["colors_of"] == [(True, "GREEN")]


def test_numbers_that_a_closed_enum_does_not_have_are_unknown_fields() -> None:
    made, fault, unknown = batch(
        "legacy.Old", [bytes.fromhex("0801 1809 2001 2009 2a020905 4a040801 1009 4a040802 1003")]
    )
    assert fault is None
    assert made.to_pylist()[0]["size"] is None
    assert made.to_pylist()[0]["sizes"] == ["SMALL"]
    assert made.to_pylist()[0]["level_of"] == [(2, "HIGH")]
    assert unknown == {"size": 1, "sizes": 1, "packed_sizes": 2, "level_of": 1}


def test_fields_on_the_wire_again() -> None:
    """The last number, text, member of a oneof and value of a key count; messages are merged."""
    made = message_class("kinds.All")
    first = made(i32=1, text="a", number=5, by_number={1: "a"}, inner={"a": 3, "d": [1]})
    again = made(i32=2, text="b", name="x", by_number={1: "b", 2: "c"}, inner={"s": "y", "d": [2]})
    payload = first.SerializeToString() + again.SerializeToString()
    got, expected = row("kinds.All", payload), made.FromString(payload)
    assert (got["i32"], got["text"], got["number"], got["name"]) == (2, "b", None, "x")
    assert dict(got["by_number"]) == dict(expected.by_number)
    assert got["inner"] == {"a": 3, "s": "y", "d": [1.0, 2.0], "o": None}


@pytest.mark.parametrize("engine", [engine.name for engine in ENGINES])
@pytest.mark.parametrize("name", NAMES)
def test_rows_do_not_depend_on_one_another(monkeypatch: pytest.MonkeyPatch, name: str, engine: str) -> None:
    """Also where some have fields in several parts, which others lack."""
    monkeypatch.setenv("TFRECORD_IO_ENGINE", engine)
    for seed in range(rounds(100)):
        parts = [message.SerializePartialToString() for message in random_messages(name, seed, 6)]
        payloads = [2 * parts[0], b"", parts[1], 3 * parts[2], b"", parts[5]]
        payloads = payloads if name == "kinds.All" else [2 * parts[0], *parts[1:]]  # it requires fields
        assert str(batch(name, payloads)[0].to_pylist()) == str([row(name, payload) for payload in payloads])


def test_a_message_in_parts_before_one_that_is_absent() -> None:
    part = message_class("kinds.All")(inner={"a": 7}).SerializeToString()
    made, _, _ = batch("kinds.All", [part + part, b"", part], ["inner"])
    assert [each["inner"] and each["inner"]["a"] for each in made.to_pylist()] == [7, None, 7]


def test_packed_and_single_values_mix() -> None:
    assert row("kinds.All", bytes.fromhex("b00105 b201020107 b00106 b20100"))["numbers"] == [5, 1, 7, 6]


def test_unknown_fields_are_counted_by_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_batches, "_PART_BYTES", 1)
    inner = bytes.fromhex("0801 4805 4a00")  # fields 9
    payload = b"\x8a\x01" + bytes([len(inner)]) + inner + bytes.fromhex("c03e05")  # field 1000
    wrong = bytes.fromhex("0d01000000")  # field 1 as 32 bits
    for threads in (1, 2):
        _, fault, unknown = batch("kinds.All", [payload, payload, wrong], threads=threads)
        assert fault is None
        assert unknown == {"inner.9": 4, "1000": 2, "1": 1}
    path = write(tmp_path / "a.tfrecord", [payload] * 3)
    reader = tfr.open_reader(tfr.dataset(path, record_type=message_class("kinds.All")), batch_size=2)
    with (
        reader,
        pytest.warns(tfr.errors.SchemaWarning, match=r"does not have, by number: inner.9 \(6 times\), 1000 \(3"),
    ):
        reader.read_all()
    assert reader.report.unknown_fields == {"inner.9": 6, "1000": 3}
    with tfr.open_random(tfr.dataset(path, record_type=message_class("kinds.All"))) as records:
        assert records[1]["i32"] == 0
        assert records.report.unknown_fields == {"inner.9": 2, "1000": 1}


def test_unknown_fields_are_counted_once_where_a_record_is_left_out(tmp_path: Path) -> None:
    payload, wrong = bytes.fromhex("c03e05"), bytes.fromhex("7201ff")  # field 1000; no UTF-8
    path = write(tmp_path / "a.tfrecord", [payload] * 3 + [wrong] + [payload] * 2)
    reader = tfr.open_reader(tfr.dataset(path, record_type=message_class("kinds.All")), on_error="skip")
    with reader, pytest.warns(tfr.errors.SchemaWarning, match=r"by number: 1000 \(5 times\)"):
        assert len(reader.read_all()) == 5
    assert reader.report.unknown_fields == {"1000": 5}


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ("72ff", "a varint is truncated at byte 1 of the payload"),
        ("7201ff", "expected UTF-8"),
        ("8a010272ff", "the field is not a valid protobuf message"),
        ("fa010908ffffffffffffff7f", "seconds are out of the range"),
        ("fa010610ffffffff0f", "not a google.protobuf.Timestamp"),
        ("82020508011080948b dc03", None),
        ("d202080a060a016112000a", "cannot be JSON"),
    ],
)
def test_what_does_not_fit_ends_the_batch_before_it(payload: str, reason: str | None) -> None:
    good = message_class("kinds.All")(i32=1).SerializeToString()
    made, fault, _ = batch("kinds.All", [good, bytes.fromhex(payload), good])
    assert fault is not None
    assert (len(made), fault.row) == (1, 1)
    assert reason is None or reason in fault.reason


def test_damaged_messages_are_left_out_or_end_the_read(tmp_path: Path) -> None:
    made = message_class("kinds.All")
    payloads = [made(i32=i).SerializeToString() if i % 3 else b"\xff" for i in range(1, 100)]
    path = write(tmp_path / "a.tfrecord", payloads)
    with pytest.raises(tfr.errors.DecodeError, match=r"record 2: .*a varint is truncated") as info:
        tfr.read_table(tfr.dataset(path, record_type=made))
    assert info.value.records_intact == 2
    with pytest.warns(tfr.errors.DamagedDataWarning):
        table = tfr.read_table(tfr.dataset(path, record_type=made), on_error="skip", columns=["i32"])
    assert table["i32"].to_pylist() == [i for i in range(1, 100) if i % 3]
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        assert len(tfr.read_table(tfr.dataset(path, record_type=made), on_error="stop")) == 2


def test_selection_filters_and_pieces(tmp_path: Path) -> None:
    messages = random_messages("kinds.All", 8, 200)
    path = write(tmp_path / "a.tfrecord.gz", [message.SerializeToString() for message in messages])
    made = message_class("kinds.All")
    whole = tfr.read_table(tfr.dataset(path, record_type=made))
    assert tfr.read_table(tfr.dataset(path, record_type=made), columns=["text*", "!texts", "i32"]).equals(
        whole.select(["i32", "text"])
    )
    found = tfr.read_table(
        tfr.dataset(path, record_type=made, offset=20), filters=[("i32", ">", 0)], limit=5, columns=["text"]
    )
    expected = [message.text for message in messages[20:] if message.i32 > 0][:5]
    assert found["text"].to_pylist() == expected
    data = tfr.dataset(path, record_type=(DESCRIPTORS, "kinds.All"))
    assert data.select(["i32"]).to_table().equals(whole.select(["i32"]))
    with tfr.open_reader(tfr.dataset(path, record_type=made), batch_size=7) as reader:
        assert reader.read_all().equals(whole)
    arrays = tfr.read_arrays(tfr.dataset(path, record_type=made), columns=["i32", "wide"])
    assert arrays["i32"].tolist() == whole["i32"].to_pylist()


def test_threads_do_not_change_the_result() -> None:
    payloads = [message.SerializeToString() for message in random_messages("kinds.All", 4, 300)] * 20
    one, _, _ = batch("kinds.All", payloads)
    several, _, _ = batch("kinds.All", payloads, threads=3)
    assert several.equals(one)


def test_a_message_in_itself_is_bytes(tmp_path: Path) -> None:
    made = message_class("kinds.Tree")
    inner = [made(value=4, children=[made(value=5)]), made()]
    path = write(tmp_path / "a.tfrecord", [made(value=3, children=inner).SerializeToString()])
    table = tfr.read_table(tfr.dataset(path, record_type=made))
    assert table.to_pylist() == [{"children": [each.SerializeToString() for each in inner], "value": 3}]
    assert table.schema.field("children").metadata == {b"tfrecord_io.message": b"kinds.Tree"}
    with pytest.raises(tfr.errors.SchemaError, match="cannot become"):
        tfr.write_tfrecord({"children": [[{"value": 1}]]}, tmp_path / "b.tfrecord", record_type=made)
    assert tfr.read_table(tfr.dataset(path, record_type=made), columns=["!children"]).to_pylist() == [{"value": 3}]


@pytest.mark.parametrize(
    ("data", "error", "match"),
    [
        ({"i32": [1, 2**40]}, tfr.errors.EncodeError, "record 1: feature 'i32'"),
        ({"nothing": [1]}, tfr.errors.SchemaError, "has no such field"),
        ({"text": [1]}, tfr.errors.SchemaError, "cannot become string"),
        ({"color": ["RED", "PINK"]}, tfr.errors.EncodeError, "'PINK' is not a value of the enum; it has: RED, GREEN"),
        ({"number": [1], "name": ["x"]}, tfr.errors.EncodeError, "'number' and 'name' are members of one oneof"),
        (pa.table({"texts": [["a", None]]}), tfr.errors.EncodeError, "an element is null"),
        (pa.table({"inner": [{"b": 1}]}), tfr.errors.SchemaError, "has no field 'b'"),
        ({"json": ["{", "1"]}, tfr.errors.EncodeError, "not the JSON of a google.protobuf.Struct"),
        ({"real": [1e300]}, tfr.errors.EncodeError, "is not a float of 32 bits"),
    ],
)
def test_what_messages_do_not_hold_is_an_error(tmp_path: Path, data: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        tfr.write_tfrecord(data, tmp_path / "a.tfrecord", record_type=message_class("kinds.All"))
    assert not list(tmp_path.iterdir())


def test_required_fields_are_needed(tmp_path: Path) -> None:
    made = message_class("legacy.Old")
    with pytest.raises(tfr.errors.SchemaError, match="requires the field"):
        tfr.write_tfrecord({"count": [1]}, tmp_path / "a.tfrecord", record_type=made)
    with pytest.raises(tfr.errors.EncodeError, match="record 1: feature 'id': a required field cannot be null"):
        tfr.write_tfrecord(pa.table({"id": [1, None]}), tmp_path / "a.tfrecord", record_type=made)


def test_columns_of_similar_types_are_cast(tmp_path: Path) -> None:
    made, path = message_class("kinds.All"), tmp_path / "a.tfrecord"
    table = pa.table(
        {
            "i32": pa.array([1, None], pa.uint8()),
            "text": pa.array(["a", "b"]).dictionary_encode(),
            "color": [1, -5],
            "inner": [{"s": "x"}, None],
            "numbers": pa.array([[1, 2], None], pa.large_list(pa.int64())),
            "took": pa.array([timedelta(seconds=1), None], pa.duration("s")),
        }
    )
    tfr.write_tfrecord(table, path, record_type=made)
    with tfr.RecordReader(path) as records:
        first, second = map(made.FromString, records)
    assert (first.i32, first.text, first.color, first.inner.s, list(first.numbers)) == (1, "a", 1, "x", [1, 2])
    assert first.took.seconds == 1
    assert second == made(text="b", color=-5)


def test_floats_are_rounded_with_a_warning(tmp_path: Path) -> None:
    made, path = message_class("kinds.All"), tmp_path / "a.tfrecord"
    with pytest.warns(tfr.errors.PrecisionWarning):
        report = tfr.write_tfrecord({"real": [0.5, 0.1]}, path, record_type=made)
    assert report.rounded == {"real": 1}
    with pytest.raises(tfr.errors.EncodeError, match="is not a float of 32 bits"):
        tfr.write_tfrecord({"real": [0.5, 0.1]}, path, record_type=made, float64="error")


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (5, ValueError, "or a message class"),
        (("x", "y", "z"), ValueError, "or a message class"),
        ((b"\xff", "x"), tfr.errors.SchemaError, "not a serialized FileDescriptorSet"),
        ((b"", "x"), tfr.errors.SchemaError, "has no message 'x'"),
        ((DESCRIPTORS, "kinds.Alle"), tfr.errors.SchemaError, "it has: 'kinds.All'"),
        ((DESCRIPTORS, 5), TypeError, "the full name of a message"),
        ((5, "x"), TypeError, "the path or the bytes of a descriptor set"),
    ],
)
def test_record_types_that_are_none(value: Any, error: type[Exception], match: str) -> None:
    for call in (tfr.dataset, lambda path, **keywords: tfr.write_tfrecord({"x": [1]}, path, **keywords)):
        with pytest.raises(error, match=match):
            call("a.tfrecord", record_type=value)


def test_keywords_of_other_schemas_are_refused() -> None:
    made = message_class("kinds.All")
    with pytest.raises(ValueError, match="schema= does not apply"):
        tfr.write_tfrecord({"i32": [1]}, "a.tfrecord", record_type=made, schema={"i32": "int32"})
    with pytest.raises(ValueError, match="float64='raw'"):
        tfr.write_tfrecord({"i32": [1]}, "a.tfrecord", record_type=made, float64="raw")


# ---- hostile input


def _mutated(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(4)
        if kind == 0 and at < len(out):
            out[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif kind == 1:
            out[at:at] = rng.choice([b"\xff" * 9, b"\x0b", b"\x0c", bytes([rng.randrange(256)]), b"\x92\x01\x00" * 50])
        elif kind == 2:
            del out[at : at + rng.randrange(1, 9)]
        else:
            out[at : at + 1] = out[: rng.randrange(20)]
    return bytes(out)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", NAMES)
def test_mutants_of_messages_are_read_as_protobuf_reads_them(name: str) -> None:
    """What is accepted is what protobuf accepts, and is the same message when it is written again.

    A few are the same but for what columns cannot hold: a Value without a kind is null in JSON, and an entry of a map
    whose value is first a number that its enum lacks, then one that it has, is an unknown field for protobuf.
    """
    rng, made, accepted, alike = random.Random(11), message_class(name), 0, 0
    seeds = [message.SerializeToString() for message in random_messages(name, 5, 40)]
    for _ in range(50_000 if COMPLETE else 300):
        payload = _mutated(rng.choice(seeds), rng)
        table, fault, unknown = batch(name, [payload], expansion=Expansion(1 << 24))
        try:
            expected = made.FromString(payload)
        except ProtobufError:
            expected = None
        if fault is not None:
            continue
        if expected is None:
            continue  # in a field that is unknown or skipped, of which more is accepted
        accepted += 1
        if unknown:
            expected.DiscardUnknownFields()
        assert table.num_rows == 1
        if not unknown:
            alike += not _same_when_written(made, name, table, expected)
    assert accepted > 20
    assert alike < 10


def _same_when_written(made: Any, name: str, table: pa.RecordBatch, expected: Any) -> bool:
    """True if the message is the same, False if it has the same known fields and JSON."""
    fields = encoded_fields(message_type(name), table.schema)
    with suppress(tfr.errors.EncodeError) if not expected.IsInitialized() else nullcontext():  # without required fields
        framed, _ = MessageEncoder(fields, table, 0, get_engine(), None).encode(0, 1)
        found = made.FromString(bytes(framed)[12:-4])
        if found == expected:
            return True
        expected.DiscardUnknownFields()
        assert MessageToDict(found) == MessageToDict(expected)
        return False
    return True


def test_mutants_of_descriptor_sets_are_refused_or_read() -> None:
    rng, seed = random.Random(3), DESCRIPTORS.read_bytes()
    payload = random_messages("kinds.All", 1, 1)[0].SerializeToString()
    for _ in range(rounds(2_000, 60)):
        descriptors = _mutated(seed, rng)
        with suppress(tfr.TFRecordError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tfr.read_table(tfr.dataset(_file_of(payload), record_type=(descriptors, "kinds.All")))


def _file_of(payload: bytes) -> Any:
    file = io.BytesIO()
    with tfr.RecordWriter(file) as writer:
        writer.write(payload)
    file.seek(0)
    return file


def test_few_bytes_of_many_messages_do_not_take_unbounded_memory() -> None:
    """A message of two bytes has a row in each column."""
    payload = b"\x92\x01\x00" * 100_000  # empty messages in `inners`
    made, fault, _ = batch("kinds.All", [b"", payload], expansion=Expansion(1 << 20))
    assert fault is not None
    assert fault.of_memory
    assert len(made) == 1
    assert "expansion_bytes" in fault.reason


def test_types_that_double_at_each_level_are_refused() -> None:
    """2**30 fields in a descriptor set of 2 KB."""
    file = descriptor_pb2.FileDescriptorProto(name="x.proto", package="x", syntax="proto3")
    for level in range(30):
        message = file.message_type.add(name=f"M{level}")
        for number in (1, 2) if level < 29 else ():
            message.field.add(name=f"f{number}", number=number, label=1, type=11, type_name=f".x.M{level + 1}")
    descriptors = descriptor_pb2.FileDescriptorSet(file=[file])
    with pytest.raises(tfr.errors.SchemaError, match="more than 100000 fields"):
        tfr.read_table(tfr.dataset(_file_of(b""), record_type=(descriptors, "x.M0")))


# ---- messages that contain themselves


def node_class() -> Any:
    """A message with itself in a field, a list, a map, a oneof, and within another message."""
    file = descriptor_pb2.FileDescriptorProto(name="nodes.proto", package="nodes", syntax="proto3")
    node, other = file.message_type.add(name="Node"), file.message_type.add(name="Other")
    node.field.add(name="value", number=1, label=1, type=5)
    node.oneof_decl.add(name="choice")
    for name, number, label, type_name in (("one", 2, 1, "Node"), ("many", 3, 3, "Node"), ("other", 4, 1, "Other")):
        node.field.add(name=name, number=number, label=label, type=11, type_name=f".nodes.{type_name}")
    node.field.add(name="named", number=5, label=3, type=11, type_name=".nodes.Node.NamedEntry")
    node.field.add(name="chosen", number=6, label=1, type=11, type_name=".nodes.Node", oneof_index=0)
    node.field.add(name="text", number=7, label=1, type=9, oneof_index=0)
    entry = node.nested_type.add(name="NamedEntry", options=descriptor_pb2.MessageOptions(map_entry=True))
    entry.field.add(name="key", number=1, label=1, type=9)
    entry.field.add(name="value", number=2, label=1, type=11, type_name=".nodes.Node")
    other.field.add(name="back", number=1, label=3, type=11, type_name=".nodes.Node")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    return protobuf.message_class(pool.FindMessageTypeByName("nodes.Node"))


NODE = node_class()


def nodes() -> st.SearchStrategy[Any]:
    def inside(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.builds(
            lambda value, one, many, back, named, chosen: NODE(
                value=value,
                one=one,
                many=many,
                named=named,
                other={"back": back} if back else None,
                **{"text" if isinstance(chosen, str) else "chosen": chosen},
            ),
            st.integers(-5, 5),
            st.none() | children,
            st.lists(children, max_size=2),
            st.lists(children, max_size=2),
            st.dictionaries(st.sampled_from(["", "a", "ä"]), children, max_size=2),
            st.none() | st.just("t") | children,
        )

    return st.recursive(st.builds(NODE, value=st.integers(-5, 5)), inside, max_leaves=8)


@pytest.mark.parametrize("engine", [engine.name for engine in ENGINES])
@settings(max_examples=rounds(60), deadline=None)
@given(pairs=st.lists(st.tuples(nodes(), st.none() | nodes()), max_size=4))
def test_messages_in_themselves_are_written_back_equal(
    tmp_path_factory: pytest.TempPathFactory, engine: str, pairs: list[Any]
) -> None:
    """Also of records with two messages, which protobuf merges."""
    folder = tmp_path_factory.mktemp("nodes")
    payloads = [b"".join(part.SerializeToString() for part in pair if part is not None) for pair in pairs]
    path = write(folder / "a.tfrecord", payloads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFRECORD_IO_ENGINE", engine)
        table = tfr.read_table(tfr.dataset(path, record_type=NODE))
        tfr.write_tfrecord(table, folder / "b.tfrecord", record_type=NODE)
    with tfr.RecordReader(folder / "b.tfrecord") as records:
        assert [NODE.FromString(record) for record in records] == [NODE.FromString(payload) for payload in payloads]
    for name, cells in (("one", table["one"].to_pylist()), ("chosen", table["chosen"].to_pylist())):
        for cell, payload in zip(cells, payloads, strict=True):
            message = NODE.FromString(payload)
            assert (cell is not None) == message.HasField(name)
            assert cell is None or NODE.FromString(cell) == getattr(message, name)


def test_descriptors_of_files(tmp_path: Path) -> None:
    modules = [descriptor_pb2, struct_pb2]
    files = [descriptor_pb2.FileDescriptorProto.FromString(each.DESCRIPTOR.serialized_pb) for each in modules]
    path = write(tmp_path / "a.tfrecord", [file.SerializeToString() for file in files])
    table = tfr.read_table(tfr.dataset(path, record_type=descriptor_pb2.FileDescriptorProto))
    nested = table.schema.field("message_type").type.value_type.field("nested_type")
    assert nested.metadata == {b"tfrecord_io.message": b"google.protobuf.DescriptorProto"}
    tfr.write_tfrecord(table, tmp_path / "b.tfrecord", record_type=descriptor_pb2.FileDescriptorProto)
    with tfr.RecordReader(tmp_path / "b.tfrecord") as records:
        assert [descriptor_pb2.FileDescriptorProto.FromString(record) for record in records] == files
