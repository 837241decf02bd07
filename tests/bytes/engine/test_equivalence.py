"""The native and the reference engine give the same columns, progress and faults, however the data is split."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine_comparison import NATIVE, compare, essence, same_columns
from records import blobs, floats
from reference_engine import ENGINE as REFERENCE
from strategies import damaged, datasets, example, field, int64s, plans, tag
from tfrecord_io.bytes.engine.contract import Checks, Decoder, Engine, FaultCode, Plan, PlanColumn, RecordCounts
from tfrecord_io.bytes.format.feature_types import Kind, Layout, RecordType, Text


@given(datasets(), plans(), st.data())
def test_engines_agree_on_any_records(payloads: list[bytes], plan: Plan, data: st.DataObject) -> None:
    file = REFERENCE.frame(payloads)
    if data.draw(st.sampled_from([True] + 5 * [False])):
        file = data.draw(damaged(file))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(file)), max_size=3)))
    max_records = data.draw(st.sampled_from([-1, -1, 1, 2, 5]))
    compare(plan, file, cuts, max_records, data.draw(st.sampled_from([-1, -1, 0, 30, 200])))


@given(datasets(damage=False), st.sampled_from(RecordType), st.integers(1, 20_000), st.booleans())
def test_engines_stop_at_the_same_record_for_lack_of_memory(
    payloads: list[bytes], record_type: RecordType, limit: int, declared: bool
) -> None:
    columns = tuple(PlanColumn(f"column {n}") for n in range(500 if declared else 0))
    plan = Plan(columns, record_type=record_type, max_expansion=limit)
    file, decoders = REFERENCE.frame(payloads), [engine.decoder(plan) for engine in (NATIVE, REFERENCE)]
    begin = records = 0
    while True:
        native, reference = (decoder.feed(file, begin) for decoder in decoders)
        assert (native.records, native.consumed, native.full) == (reference.records, reference.consumed, reference.full)
        assert essence(native.fault) == essence(reference.fault)
        same_columns(*(decoder.take() for decoder in decoders))
        begin, records = begin + native.consumed, records + native.records
        if not native.full:
            break
        assert native.records
    assert native.fault is not None or records == len(payloads)


@given(datasets(damage=False), st.sampled_from(RecordType))
def test_engines_agree_on_good_records_without_a_schema(payloads: list[bytes], record_type: RecordType) -> None:
    compare(Plan(record_type=record_type), REFERENCE.frame(payloads), [])


@given(datasets(damage=False), st.data())
def test_engines_find_the_same_frames(payloads: list[bytes], data: st.DataObject) -> None:
    file = data.draw(damaged(REFERENCE.frame(payloads)) | st.just(REFERENCE.frame(payloads)))
    options = {
        "max_records": data.draw(st.sampled_from([-1, 0, 1, 3])),
        "checks": data.draw(st.sampled_from(Checks)),
        "max_record_bytes": data.draw(st.sampled_from([2**31 - 1, 20])),
        "final": data.draw(st.booleans()),
    }
    (native, native_fault), (reference, reference_fault) = (
        engine.scan(file, 0, **options) for engine in (NATIVE, REFERENCE)
    )
    assert native_fault == reference_fault
    assert native.consumed == reference.consumed
    np.testing.assert_array_equal(native.starts, reference.starts)
    np.testing.assert_array_equal(native.lengths, reference.lengths)
    assert bytes(NATIVE.frame(payloads)) == bytes(REFERENCE.frame(payloads))
    assert NATIVE.crc32c(file, 7) == REFERENCE.crc32c(file, 7)


@given(datasets(damage=False), plans(), st.binary(max_size=5), st.data())
def test_engines_encode_to_the_same_bytes(
    payloads: list[bytes], plan: Plan, prefix: bytes, data: st.DataObject
) -> None:
    decoder = REFERENCE.decoder(plan)
    decoder.feed(REFERENCE.frame(payloads))
    rows = decoder.rows
    columns = decoder.take()
    begin = data.draw(st.integers(0, rows))
    end = data.draw(st.integers(begin, rows))
    sequence = plan.record_type != RecordType.EXAMPLE or any(c.steps is not None for c in columns)
    native, reference = (
        engine.encoder(columns, sequence=sequence).encode(begin, end, prefix=prefix) for engine in (NATIVE, REFERENCE)
    )
    assert native[1] == reference[1]
    assert bytes(native[0]) == bytes(reference[0])


# Laws that hold for each engine by itself.


@given(payloads=datasets(damage=False), plan=plans(), data=st.data())
def test_parts_that_are_appended_are_as_if_they_were_fed(
    engine: Engine, payloads: list[bytes], plan: Plan, data: st.DataObject
) -> None:
    plan = plan._replace(stop_at_embedded=False, keep_lengths=True)
    whole, joined = engine.decoder(plan), engine.decoder(plan)
    assume(whole.feed(engine.frame(payloads)).fault is None)
    used: Decoder | None = None
    cuts = sorted(data.draw(st.lists(st.integers(0, len(payloads)), max_size=4)))
    for begin, end in pairwise([0, *cuts, len(payloads)]):
        part = engine.decoder(plan) if used is None else used
        records = payloads[begin:end]
        if part.feed(engine.frame(records)).fault is not None:
            joined.feed(engine.frame(records))
            used = None
            continue
        part.complete()
        middle = data.draw(st.integers(0, len(records)))
        for first, last in ((0, middle), (middle, len(records))):
            if not joined.append(part, first, last, sum(map(len, records[first:last]))):
                assert joined.feed(engine.frame(records[first:last])).fault is None
        is_fresh = not part.new_names and part.sequence == (plan.record_type is RecordType.SEQUENCE_EXAMPLE)
        used = part if is_fresh else None
        if used is not None:
            used.clear()
    assert (joined.rows, joined.value_bytes, joined.sequence) == (whole.rows, whole.value_bytes, whole.sequence)
    assert joined.integer_bytes == whole.integer_bytes
    assert (joined.counts, joined.new_names) == (whole.counts, whole.new_names)
    assert joined.lengths().tolist() == whole.lengths().tolist() == list(map(len, payloads))
    assert whole.lengths(2).tolist() == list(map(len, payloads[2:]))
    same_columns(list(joined.take()), list(whole.take()))


def test_rows_of_every_column_are_appended(engine: Engine) -> None:
    names = ("numbers", "list", "text", "texts", "float", "mostly absent")
    kinds = (Kind.INT64, Kind.INT64, Kind.BYTES, Kind.BYTES, Kind.FLOAT, Kind.INT64)
    lists = (False, True, False, True, False, False)
    columns = tuple(
        PlanColumn(name, kind, Layout.LIST if is_list else Layout.SCALAR, Text.NO)
        for name, kind, is_list in zip(names, kinds, lists, strict=True)
    )
    plan = Plan(columns, unknown="fault", record_type=RecordType.EXAMPLE)
    payloads = []
    for i in range(700):
        features = {"numbers": int64s(i), "list": int64s(*range(i % 4)), "text": blobs(b"x" * (i % 50))}
        features |= {"texts": blobs(*[b"y"] * (i % 3)), "float": floats(i / 2)}
        if i % 97 == 0:
            features["mostly absent"] = int64s(i)
        if i % 5 == 0:
            del features["list"]
        if i % 5 == 4:  # not in the first part
            del features["text"]
        payloads.append(example(**features))
    whole, joined, part = engine.decoder(plan), engine.decoder(plan), engine.decoder(plan)
    assert whole.feed(engine.frame(payloads)).fault is None
    for begin, end in pairwise([0, 0, 1, 9, 100, 130, 131, 512, 700]):
        assert part.feed(engine.frame(payloads[begin:end])).fault is None
        part.complete()
        for first, last in pairwise([0, (end - begin) // 3, end - begin]):
            size = sum(map(len, payloads[begin + first : begin + last]))
            assert joined.append(part, first, last, size)
        part.clear()
    assert joined.counts == whole.counts
    same_columns(list(joined.take()), list(whole.take()))


@pytest.mark.parametrize("splits", [False, True])
@pytest.mark.parametrize("value", [int64s(1), floats(1.5), blobs(b"x"), int64s(1, 2), int64s()], ids=repr)
def test_a_column_of_nulls_takes_no_value(engine: Engine, value: bytes, splits: bool) -> None:
    plan = Plan((PlanColumn("x", Kind.NONE, Layout.NULL, Text.NO, splits=splits),), record_type=RecordType.EXAMPLE)
    for payloads in ([example(x=value)], [example(), example(x=value)]):
        progress = engine.decoder(plan).feed(engine.frame(payloads))
        assert progress.fault is not None
        assert (progress.fault.code, progress.records) == (FaultCode.KIND, len(payloads) - 1)


@given(payloads=datasets(), plan=plans(), data=st.data())
def test_whole_equals_split_at_any_byte(engine: Engine, payloads: list[bytes], plan: Plan, data: st.DataObject) -> None:
    file = engine.frame(payloads)
    cut = data.draw(st.integers(0, len(file)))
    whole, split = engine.decoder(plan), engine.decoder(plan)
    expected = whole.feed(file)
    first = split.feed(file[:cut], final=False)
    if first.fault is not None:
        assert essence(first.fault) == essence(expected.fault)
    else:
        second = split.feed(file, first.consumed)
        assert first.records + second.records == expected.records
        assert first.consumed + second.consumed == expected.consumed
        assert (second.fault is None) == (expected.fault is None)
    same_columns(split.take(), whole.take())


@given(payloads=datasets(damage=False), record_type=st.sampled_from(RecordType))
def test_decode_of_encode_gives_the_columns_back(
    engine: Engine, payloads: list[bytes], record_type: RecordType
) -> None:
    plan = Plan(record_type=record_type)
    decoder = engine.decoder(plan)
    assume(decoder.feed(engine.frame(payloads)).fault is None)
    rows, sequence = decoder.rows, decoder.sequence
    columns = decoder.take()
    assume(
        all(column.layout != Layout.NULL and (column.steps is None or column.kind != Kind.NONE) for column in columns)
    )
    encoded, count = engine.encoder(columns, sequence=sequence).encode(0, rows)
    assert count == rows
    again = engine.decoder(plan)
    assert again.feed(bytes(encoded)).fault is None
    by_name = {column.name: column for column in again.take()}  # found in another order, where a first record lacks one
    same_columns(columns, [by_name[column.name] for column in columns])


def test_a_broken_record_with_an_embedded_schema_is_the_same_fault() -> None:
    value = b"\xf9\xff\xff\xff\x8f\x00" + bytes(15)  # a tag of six bytes
    broken = b"\xb2\xc4\n\x00\n*\n\x1a\n\x01b\x12\x15" + value + b"\x12\x05\r\x00\x00\xc0?\n\x05\n\x01a\x12\x00"
    compare(Plan(stop_at_embedded=True), REFERENCE.frame([b"", broken]), [])


PLAIN = example(b=int64s(1))
ELEMENT = field(1, field(1, b"name") + field(2, int64s(7)))  # of an Example's Features
NESTED = field(1, field(1, ELEMENT))  # an ExampleListWithContext of one Example


@pytest.mark.parametrize("record_type", RecordType)
def test_records_of_nested_examples_are_counted(engine: Engine, record_type: RecordType) -> None:
    name = field(1, b"name")
    context = field(2, field(1, ELEMENT + field(1, field(1, b"query"))))
    nested = [
        NESTED,
        NESTED + NESTED,
        field(1, b"") + NESTED + field(1, field(1, b"")),
        context + NESTED,
        NESTED + context,
        context + NESTED + context,
        field(1, field(1, field(1, name))),  # a key without a value
        field(1, field(1, field(1, name + field(2, b"")))),
    ]
    plain = [
        PLAIN,
        NESTED + PLAIN,
        example(**{ELEMENT.decode(): int64s(1)}),
        example(**{ELEMENT.decode(): b""}),
        *(
            field(1, field(1, field(1, key)))
            for key in (b"", b"name", b"\n", b"\n\x05name", b"\n\x03name", name + b"\n\x00")
        ),
        field(1, field(1, field(1, "\n\x01é".encode()))),  # the length ends inside a character
    ]
    for payloads, counts in (
        (nested, RecordCounts(len(nested), len(nested), len(nested))),
        (plain, RecordCounts(len(plain))),
        ([field(1, b""), b"", field(1, field(1, b""))], RecordCounts()),
    ):
        decoder = engine.decoder(Plan(record_type=record_type))
        assert decoder.feed(engine.frame(payloads)).fault is None
        assert decoder.counts == counts


def test_records_without_entries_are_not_counted_in_a_run(engine: Engine) -> None:
    decoder = engine.decoder(Plan())
    empty = [field(1, b""), tag(1, 2) + b"\x80\x00"]
    assert decoder.feed(engine.frame([PLAIN, PLAIN, *empty * 3, PLAIN, *empty])).fault is None
    assert (decoder.counts, decoder.rows) == (RecordCounts(3), 11)


@given(st.binary(max_size=2000), st.binary(max_size=2000))
def test_the_crc_of_two_parts_follows_from_those_of_each(engine: Engine, first: bytes, second: bytes) -> None:
    combined = engine.crc32c_combine(engine.crc32c(first), engine.crc32c(second), len(second))
    assert combined == engine.crc32c(first + second)


@pytest.mark.parametrize("size", [0, 1, 2**31, 2**33 + 7])
def test_engines_combine_crcs_of_large_parts_alike(native_engine: None, size: int) -> None:
    assert NATIVE.crc32c_combine(0x12345678, 0x9ABCDEF0, size) == REFERENCE.crc32c_combine(0x12345678, 0x9ABCDEF0, size)


@given(datasets(damage=False), st.lists(st.integers(0, 20), min_size=2, max_size=6).map(sorted))
def test_memory_that_is_used_again_changes_no_byte(payloads: list[bytes], cuts: list[int]) -> None:
    decoder = REFERENCE.decoder(Plan(record_type=RecordType.SEQUENCE_EXAMPLE))
    decoder.feed(REFERENCE.frame(payloads))
    rows = decoder.rows
    columns = decoder.take()
    native, memory = NATIVE.encoder(columns, sequence=True), NATIVE.memory()
    for begin, end in pairwise(min(cut, rows) for cut in cuts):
        again, _ = native.encode(begin, end, memory=memory)
        assert bytes(again) == bytes(REFERENCE.encoder(columns, sequence=True).encode(begin, end)[0])


def test_a_missing_feature_has_no_numbers_of_another_one(engine: Engine) -> None:
    plan = Plan((PlanColumn("a", Kind.INT64), PlanColumn("x", Kind.INT64, required=True)))
    fault = engine.decoder(plan).feed(engine.frame([example(a=int64s(1))])).fault
    assert fault is not None
    assert (fault.code, fault.feature) == (FaultCode.MISSING_FEATURE, "x")
    assert (fault.expected, fault.got) == (0, 0)
