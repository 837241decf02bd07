"""Faults 35–50 and 70: payloads that are not Examples, and extreme values."""

from __future__ import annotations

import base64
import json
import pickle
import struct
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import blobs, entry, example, field, floats, framed, group, int64s, tag, varint, written
from tfrecord_io.bytes.format.protobuf import MessageClasses
from tfrecord_io.read.chunks import chunk, chunk_reader
from traced import peak

GOOD = [example(b=int64s(i)) for i in range(2)]
SECRET = b"SECRETVALUE"


def feature(content: bytes) -> bytes:
    """An Example whose feature b holds these bytes."""
    return field(1, entry("b", content))


def refused(path: Path, *, record: int, offset: int, **keywords: Any) -> tfr.errors.DecodeError:
    """What every call says of it: a DecodeError at this record, after all rows before it."""
    errors = []
    for threads in (1, 2):
        with pytest.raises(tfr.errors.DecodeError) as caught:
            read_by(tfr.read_table, path, threads=threads, **keywords)
        errors.append(caught.value)
        for more in ({}, {"schema": {"b": "int64"}}, {"sample": 1}):
            reader = read_by(tfr.open_reader, path, threads=threads, **{**more, **keywords})
            rows = 0
            try:
                for batch in reader:
                    rows += len(batch)
            except tfr.errors.DecodeError as error:
                errors.append(error)
            assert rows == record
    assert len(errors) == 8
    for error in errors:
        assert type(error) is tfr.errors.DecodeError
        assert (error.path, error.record, error.offset, error.records_intact) == (str(path), record, offset, record)
        again = pickle.loads(pickle.dumps(error))
        assert (vars(again), str(again)) == (vars(error), str(error))
        assert len(str(error).encode()) <= 1024
        assert SECRET.decode() not in str(error)
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        assert read_by(tfr.read_table, path, on_error="stop", **keywords).num_rows == record
    return errors[0]


WIRE = [
    pytest.param(
        feature(b"\x1a\x03\x0a\x01\xff"),
        "a varint is truncated",
        True,
        id="cut varint in a packed run",
        marks=pytest.mark.fault(35),
    ),
    pytest.param(
        feature(b"\x1a\x02\x08\x80"), "a varint is truncated", True, id="cut varint", marks=pytest.mark.fault(35)
    ),
    pytest.param(b"\x0a\x80", "a varint is truncated", False, id="cut length", marks=pytest.mark.fault(35)),
    pytest.param(
        feature(field(3, field(1, b"\xff" * 10 + b"\x01"))),
        "a varint is too long",
        True,
        id="11 bytes",
        marks=pytest.mark.fault(36),
    ),
    pytest.param(feature(field(3, tag(1, 6))), "wire type 6", True, id="wire type 6", marks=pytest.mark.fault(37)),
    pytest.param(tag(1, 7), "wire type 7", False, id="wire type 7", marks=pytest.mark.fault(37)),
    pytest.param(b"\x00\x01", "field number 0", False, id="field 0", marks=pytest.mark.fault(38)),
    pytest.param(feature(b"\x02\x00"), "field number 0", True, id="field 0 in a feature", marks=pytest.mark.fault(38)),
    pytest.param(tag(9, 3), "not closed", False, id="group not closed", marks=pytest.mark.fault(39)),
    pytest.param(tag(9, 3) + tag(8, 4), "group", False, id="group closed by another", marks=pytest.mark.fault(39)),
    pytest.param(tag(9, 4), "not open", False, id="end of no group", marks=pytest.mark.fault(39)),
    pytest.param(field(1, entry(b"\xff\xfe", int64s(1))), "not UTF-8", False, id="key", marks=pytest.mark.fault(41)),
    pytest.param(
        field(1, entry(b"\xed\xa0\x80", int64s(1))), "not UTF-8", False, id="surrogate key", marks=pytest.mark.fault(41)
    ),
    pytest.param(
        feature(b"\x1a\x06\x0a" + varint(2**31 - 1)), "are left", True, id="2^31 values", marks=pytest.mark.fault(42)
    ),
    pytest.param(b"\x0a" + varint(2**31 - 1) + SECRET, "are left", False, id="2^31 bytes", marks=pytest.mark.fault(42)),
    pytest.param(
        feature(field(2, field(1, bytes(5)))),
        "5 bytes",
        True,
        id="packed floats of 5 bytes",
        marks=pytest.mark.fault(40),
    ),
]


@pytest.mark.parametrize(("payload", "reason", "inside"), WIRE)
def test_invalid_protobuf_is_refused_at_its_record(
    engine: str, tmp_path: Path, payload: bytes, reason: str, inside: bool
) -> None:
    path = written(tmp_path / "a", [*GOOD, payload, *GOOD])
    error = refused(path, record=2, offset=len(framed(*GOOD)))
    assert "not a valid Example or SequenceExample" in error.reason
    if engine == "native":  # protobuf's Python does not say why
        assert reason in error.reason
        assert "at byte" in error.reason
        assert error.feature == ("b" if inside else None)
    with pytest.raises(tfr.errors.DecodeError):
        tfr.decode_example(payload)
    assert not tfr.verify(path).ok
    assert tfr.read_table(tfr.dataset(path, record_type="bytes")).num_rows == 5


@pytest.mark.fault(39)
@pytest.mark.parametrize(("depth", "good"), [(1, True), (50, True), (98, True), (120, False), (100_000, False)])
def test_nested_groups_are_walked_without_recursion(engine: str, tmp_path: Path, depth: int, good: bool) -> None:
    nested = b""
    if depth < 1000:
        for _ in range(depth):
            nested = group(9, nested)
    else:
        nested = tag(9, 3) * depth + tag(9, 4) * depth
    path = written(tmp_path / "a", [GOOD[0], GOOD[1] + nested])
    if good:
        assert tfr.read_table(path)["b"].to_pylist() == [0, 1]
    else:
        refused(path, record=1, offset=len(framed(GOOD[0])))


WIRE_FORMS = json.loads((Path(__file__).parents[1] / "data" / "wire.json").read_text())


@pytest.mark.fault(40)
@pytest.mark.parametrize("case", WIRE_FORMS, ids=lambda case: case["name"])
@pytest.mark.parametrize("threads", [1, 2])
def test_wire_forms_read_as_cpp_protobuf_reads_them(
    engine: str, tmp_path: Path, case: dict[str, Any], threads: int
) -> None:
    payload = bytes.fromhex(case["hex"])
    path = written(tmp_path / "a", [payload])
    if case["expect"] == "error":
        with pytest.raises(tfr.errors.DecodeError) as caught:
            tfr.read_table(tfr.dataset(path, threads=threads, record_type="example"))
        assert caught.value.record == 0
        return
    expected = {}
    for name, cell in case["expect"].items():
        if cell is None:
            expected[name] = None
            continue
        ((kind, values),) = cell.items()
        values = [base64.b64decode(v) for v in values] if kind == "bytes" else values
        expected[name] = values[0] if len(values) == 1 else values
    (row,) = tfr.read_table(
        tfr.dataset(path, threads=threads, record_type="example", infer_text=False)
    ).to_pylist() or [{}]
    assert row == expected
    decoded = tfr.decode_example(payload)
    assert decoded.keys() == expected.keys()


@pytest.mark.fault(42)
def test_memory_is_bounded_by_the_payload(engine: str, tmp_path: Path) -> None:
    lie = feature(b"\x1a" + varint(2**31 - 1) + b"\x0a" + varint(2**31 - 10))
    path = written(tmp_path / "a", [*GOOD, lie])
    assert peak(lambda: refused(path, record=2, offset=len(framed(*GOOD)))) < 64 << 20


BITS = [0x7FC00000, 0x7F800001, 0xFFC12345, 0x80000000, 0x00000001, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7F7FFFFF]


@pytest.mark.fault(45)
@pytest.mark.parametrize("per_record", [1, 3])
def test_floats_keep_their_bits_and_integers_their_limits(engine: str, tmp_path: Path, per_record: int) -> None:
    packed = [struct.pack("<I", bits) for bits in BITS]
    numbers = [-(2**63), 2**63 - 1, -1, 0, 1, 2**32, -(2**31), 127, 128]
    rows = []
    for at in range(0, 9, per_record):
        run = b"".join(packed[at : at + per_record])
        rows.append(example(f=field(2, field(1, run)), i=int64s(*numbers[at : at + per_record])))
    path = written(tmp_path / "a", rows)
    for again in (path, tmp_path / "b"):
        table = tfr.read_table(again)
        flat = {name: table[name].combine_chunks() for name in "fi"}
        if per_record > 1:
            flat = {name: lists.flatten() for name, lists in flat.items()}
        assert flat["f"].to_numpy().tobytes() == b"".join(packed)
        assert flat["i"].to_pylist() == numbers
        tfr.write_tfrecord(table, tmp_path / "b")
    if per_record == 1:
        frame = tfr.read_tfrecord(path)
        assert frame.f.to_numpy().tobytes() == b"".join(packed)


@pytest.mark.fault(46)
def test_distinct_feature_names_are_bounded(engine: str, tmp_path: Path) -> None:
    rows = [example(**{f"n{i}_{k}": int64s(1) for k in range(10)}) for i in range(60)]
    path = written(tmp_path / "a", rows)
    assert tfr.read_table(tfr.dataset(path, limits=tfr.Limits(features=600))).num_columns == 600
    for threads in (1, 2):
        for read in (tfr.read_table, lambda source: tfr.open_reader(source).read_all()):
            with pytest.raises(tfr.TFRecordError, match=r"limits=tfr\.Limits\(features=55\)") as caught:
                read(tfr.dataset(path, limits=tfr.Limits(features=55), threads=threads))
            assert caught.value.record == 5
    many = field(1, b"".join(field(1, field(1, b"%d" % i)) for i in range(100_001)))
    begun = time.monotonic()
    with pytest.raises(tfr.TFRecordError, match=r"limits=tfr\.Limits\(features=100000\)"):
        tfr.read_table(written(tmp_path / "b", [many]))
    assert time.monotonic() - begun < 60


@pytest.mark.fault(49)
@pytest.mark.parametrize("threads", [1, 2])
def test_batches_are_split_before_offsets_overflow(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    for module in (chunk, chunk_reader):
        monkeypatch.setattr(module, "MAX_BATCH_BYTES", 120)  # stands for 2**31 - 1
    rows = [example(s=blobs(bytes(40))) for _ in range(7)]
    paths = [written(tmp_path / f"{i}", rows[i : i + 2]) for i in range(0, 7, 2)]
    for more in ({}, {"sample": 1}, {"record_type": "bytes"}, {"schema": {"s": "binary"}}):
        with read_by(tfr.open_reader, paths, batch_bytes=2**40, threads=threads, **more) as reader:
            assert [len(batch) for batch in reader] == [2, 2, 2, 1]
    huge = [written(tmp_path / f"h{i}", [example(s=blobs(bytes(200)))] * 2) for i in range(3)]
    with tfr.open_reader(tfr.dataset(huge, threads=threads), batch_bytes=50) as reader:
        assert [len(batch) for batch in reader] == [1] * 6


@pytest.mark.fault(50)
def test_null_slots_are_zero_and_arrays_are_valid(engine: str, tmp_path: Path) -> None:
    one = {"f": floats(1.5), "i": int64s(7), "s": blobs(b"text"), "v": int64s(1, 2)}
    path = written(tmp_path / "a", [example(**one), example(), example(**one), example()])
    for threads in (1, 2):
        table = tfr.read_table(tfr.dataset(path, threads=threads))
        table.validate(full=True)
        for name, dtype in (("i", np.int64), ("f", np.float32)):
            (chunk,) = table[name].chunks
            assert np.frombuffer(chunk.buffers()[1], dtype, 4)[[1, 3]].tolist() == [0, 0]
        assert np.frombuffer(table["s"].chunk(0).buffers()[1], np.int32, 5).tolist() == [0, 4, 4, 8, 8]
        assert np.frombuffer(table["v"].chunk(0).buffers()[1], np.int32, 5).tolist() == [0, 2, 2, 4, 4]


FOREIGN = {
    "TensorBoard events": [tag(1, 1) + struct.pack("<d", 1.5) + tag(2, 0) + varint(n) for n in range(3)],
    "a Scenario": [tag(1, 1) + struct.pack("<d", 0.1) * 1 + field(5, b"scenario") + field(2, bytes(16))] * 2,
    "a Frame": [field(1, field(1, b"segment-1") + field(2, field(1, b"FRONT"))) + tag(2, 0) + varint(1)] * 2,
    "digits as text": [b"%d" % n for n in (12345, 67890, 13579)],
    "unknown fields only": [field(7, SECRET), b"", field(8, b"x")],
}


@pytest.mark.fault(70)
@pytest.mark.parametrize("payloads", FOREIGN.values(), ids=FOREIGN)
def test_other_messages_are_refused_by_name_and_never_a_table_without_columns(
    engine: str, tmp_path: Path, payloads: list[bytes]
) -> None:
    path = written(tmp_path / "a", payloads)
    for threads in (1, 2):
        for read in (
            tfr.read_table,
            tfr.read_tfrecord,
            tfr.infer_schema,
            lambda *a, **k: tfr.open_reader(*a, **k).read_all(),
        ):
            for more in ({}, {"limit": 1}):
                with pytest.raises(tfr.errors.DecodeError, match='record_type="bytes"') as caught:
                    read(tfr.dataset(path, threads=threads), **more)
                assert (caught.value.path, caught.value.record) == (str(path), 0)
                assert SECRET.decode() not in str(caught.value)
    assert tfr.read_table(tfr.dataset(path, record_type="bytes"))["record"].to_pylist() == payloads
    assert "bytes" in str(tfr.verify(path))


def test_an_explicit_record_type_gets_protobufs_answer(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", FOREIGN["unknown fields only"])
    table = tfr.read_table(tfr.dataset(path, record_type="example"))
    assert (table.num_rows, table.num_columns) == (3, 0)
    assert tfr.read_table(written(tmp_path / "b", [b"", GOOD[0], field(9, b"x")]))["b"].to_pylist() == [None, 0, None]
    assert pa.schema(tfr.open_reader(tmp_path / "b")).names == ["b"]


RANKING = MessageClasses(  # tensorflow_serving/apis/input.proto
    "tests/input.proto",
    "tests.ranking",
    {
        "Value": "value 1 *bytes",
        "Feature": "bytes_list 1 Value|kind",
        "Features": "feature 1 *Features.FeatureEntry",
        "Features.FeatureEntry": "key 1 string, value 2 Feature",
        "Example": "features 1 Features",
        "ExampleListWithContext": "examples 1 *Example, context 2 Example",
    },
)


def elwc(*examples: dict[str, bytes], context: dict[str, bytes] | None = None, context_first: bool = False) -> bytes:
    """An ExampleListWithContext, serialized by protobuf."""

    def filled(message: Any, features: dict[str, bytes]) -> None:
        message.SetInParent()
        for name, value in features.items():
            message.features.feature[name].bytes_list.value.append(value)

    listed, query = RANKING["ExampleListWithContext"](), RANKING["ExampleListWithContext"]()
    for features in examples:
        filled(listed.examples.add(), features)
    if context is not None:
        filled(query.context, context)
    parts = [listed.SerializeToString(), query.SerializeToString()]
    return b"".join(parts[::-1] if context_first else parts)


DOCUMENT = {"title": b"a title", "grade": b"3"}
ELWC = {
    "one example": [elwc(DOCUMENT)] * 3,
    "several examples": [elwc(DOCUMENT, {"title": b"b"}, {}), elwc({"title": b""})],
    "with context": [elwc(DOCUMENT, DOCUMENT, context={"query": b"words"})] * 2,
    "only context": [elwc(context={"query": b"words"}), elwc(context={"query": b"two"})],
    "context first": [elwc(DOCUMENT, {"title": b"b"}, context={"query": b"words"}, context_first=True)] * 2,
    "empty ones among them": [
        elwc(),
        elwc({}),
        elwc(context={}),
        elwc(DOCUMENT),
        elwc({}, context={"query": b"words"}),
    ],
    "many names": [elwc({f"n{n}": b""}, {f"m{n}": b""}) for n in range(60)],
}


@pytest.mark.parametrize("payloads", ELWC.values(), ids=ELWC)
def test_lists_of_examples_are_named(engine: str, tmp_path: Path, payloads: list[bytes]) -> None:
    path = written(tmp_path / "a", payloads)
    few = partial(read_by, tfr.read_table, limits=tfr.Limits(features=100))
    declared = partial(tfr.read_table, schema={"title": str})
    for read in (tfr.read_table, tfr.infer_schema, lambda path: tfr.open_reader(path).read_all(), few, declared):
        with pytest.raises(
            tfr.errors.DecodeError, match=r'look like ExampleListWithContext.*record_type="bytes"'
        ) as caught:
            read(path)
        assert (caught.value.record, caught.value.got) == (0, "ExampleListWithContext")
    with_examples = any(payload.startswith(b"\x0a") for payload in payloads)  # else the context is an unknown field
    declared = [{"record_type": "example"}] if with_examples else []
    for more in ({"columns": ["query"]}, {"columns": "!title"}, *declared):
        with pytest.raises(tfr.errors.DecodeError, match="look like ExampleListWithContext"):
            read_by(tfr.read_table, path, **more)
    for more in ({}, *declared):
        (check,) = read_by(tfr.verify, path, **more).files
        error = caught.value
        assert isinstance(check.error, tfr.errors.DecodeError)
        assert (check.error.reason, check.error.path, check.error.record) == (error.reason, error.path, error.record)
        assert (check.status, check.records, check.intact) == ("not Examples", len(payloads), len(payloads))
    if with_examples:
        with pytest.raises(tfr.errors.DecodeError, match="look like ExampleListWithContext"):
            tfr.io.parse_example(payloads, {"title": tfr.io.VarLenFeature("string")})
        with pytest.raises(tfr.errors.DecodeError, match="look like ExampleListWithContext"):
            tfr.decode_example(elwc(DOCUMENT))
    assert tfr.read_table(tfr.dataset(path, record_type="bytes"))["record"].to_pylist() == payloads
    assert tfr.verify(tfr.dataset(path, record_type="bytes")).ok


def test_a_list_of_examples_that_is_no_valid_example_is_named(engine: str, tmp_path: Path) -> None:
    for payload in (
        elwc({"title": b"\xff"}, context={"query": b"a"}),  # the key is not UTF-8
        elwc(DOCUMENT, context=DOCUMENT),  # the same key in the context and in the feature lists
    ):
        with pytest.raises(tfr.TFRecordError, match=r'record_type="bytes".*ExampleListWithContext'):
            tfr.read_table(written(tmp_path / "a", [payload]))
    path = written(tmp_path / "a", [elwc(DOCUMENT, context={"query": b"\xff"})])
    with pytest.raises(tfr.errors.DecodeError, match="look like ExampleListWithContext"):
        tfr.read_table(path)


def test_names_that_are_map_entries_are_read_where_they_have_values(engine: str, tmp_path: Path) -> None:
    name = (field(1, b"title") + field(2, blobs(b"a"))).decode()
    assert tfr.verify(written(tmp_path / "a", [elwc(DOCUMENT), example(**{name: int64s(1)})])).ok
    assert tfr.read_table(tmp_path / "a")[name].to_pylist() == [None, 1]
