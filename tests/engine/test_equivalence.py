"""The native and the reference engine give the same columns, progress and faults, however the data is split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine_comparison import NATIVE, compare, essence, same_columns
from strategies import damaged, datasets, plans
from tfrecord_io.engine.contract import Engine, Plan
from tfrecord_io.engine.reference import ENGINE as REFERENCE
from tfrecord_io.format.kinds import Kind, Layout, RecordType

needs_native = pytest.mark.skipif(
    NATIVE is None, reason="the native engine is not built: nothing to compare with the reference"
)


@needs_native
@given(datasets(), plans(), st.data())
def test_engines_agree_on_any_records(payloads: list[bytes], plan: Plan, data: st.DataObject) -> None:
    file = REFERENCE.frame(payloads)
    if data.draw(st.sampled_from([True] + 5 * [False])):
        file = data.draw(damaged(file))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(file)), max_size=3)))
    max_records = data.draw(st.sampled_from([-1, -1, 1, 2, 5]))
    compare(plan, file, cuts, max_records, data.draw(st.sampled_from([-1, -1, 0, 30, 200])))


@needs_native
@given(datasets(damage=False), st.sampled_from(RecordType))
def test_engines_agree_on_good_records_without_a_schema(payloads: list[bytes], record_type: RecordType) -> None:
    compare(Plan(record_type=record_type), REFERENCE.frame(payloads), [])


@needs_native
@given(datasets(damage=False), st.data())
def test_engines_find_the_same_frames(payloads: list[bytes], data: st.DataObject) -> None:
    assert NATIVE is not None
    file = data.draw(damaged(REFERENCE.frame(payloads)) | st.just(REFERENCE.frame(payloads)))
    options = {
        "max_records": data.draw(st.sampled_from([-1, 0, 1, 3])),
        "check_crc": data.draw(st.booleans()),
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


@needs_native
@given(datasets(damage=False), plans(), st.binary(max_size=5), st.data())
def test_engines_encode_to_the_same_bytes(
    payloads: list[bytes], plan: Plan, prefix: bytes, data: st.DataObject
) -> None:
    assert NATIVE is not None
    decoder = REFERENCE.decoder(plan)
    decoder.feed(REFERENCE.frame(payloads))
    rows = decoder.rows
    columns = decoder.take()
    begin = data.draw(st.integers(0, rows))
    end = data.draw(st.integers(begin, rows))
    sequence = plan.record_type != RecordType.EXAMPLE or any(c.steps is not None for c in columns)
    native, reference = (
        engine.encode(columns, begin, end, prefix=prefix, sequence=sequence) for engine in (NATIVE, REFERENCE)
    )
    assert native[1] == reference[1]
    assert bytes(native[0]) == bytes(reference[0])


# Laws that hold for each engine by itself.


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
    encoded, count = engine.encode(columns, 0, rows, sequence=sequence)
    assert count == rows
    again = engine.decoder(plan)
    assert again.feed(bytes(encoded)).fault is None
    by_name = {column.name: column for column in again.take()}  # found in another order, where a first record lacks one
    same_columns(columns, [by_name[column.name] for column in columns])


@needs_native
def test_a_broken_record_with_an_embedded_schema_is_the_same_fault() -> None:
    value = b"\xf9\xff\xff\xff\x8f\x00" + bytes(15)  # a tag of six bytes
    broken = b"\xb2\xc4\n\x00\n*\n\x1a\n\x01b\x12\x15" + value + b"\x12\x05\r\x00\x00\xc0?\n\x05\n\x01a\x12\x00"
    compare(Plan(stop_at_embedded=True), REFERENCE.frame([b"", broken]), [])
