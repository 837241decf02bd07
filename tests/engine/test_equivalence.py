"""native = reference: the same columns, the same progress, the same faults, however the data is cut."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.strategies import damaged, datasets, plans
from tfrecord_io.engine.contract import ColumnBuffers, Engine, Fault, FaultCode, Plan
from tfrecord_io.engine.reference import ENGINE as REFERENCE
from tfrecord_io.engine.select import engines
from tfrecord_io.schema.kinds import Kind, Layout, RecordType

NATIVE = next((e for e in engines() if e.name == "native"), None)
needs_native = pytest.mark.skipif(NATIVE is None, reason="the native engine is not built: nothing to compare with the reference")
many = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def same_columns(ours: list[ColumnBuffers], theirs: list[ColumnBuffers]) -> None:
    assert [c.name for c in ours] == [c.name for c in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        same_column(mine, other)


def same_column(mine: ColumnBuffers, other: ColumnBuffers) -> None:
    for field in fields(ColumnBuffers):
        a, b = getattr(mine, field.name), getattr(other, field.name)
        where = f"column {mine.name!r}: {field.name}: {a!r} and {b!r}"
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            assert a is not None, where
            assert b is not None, where
            assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes()), where
        elif field.name == "steps" and a is not None:
            same_column(a, b)
        else:
            assert a == b, where


def essence(fault: Fault | None) -> Any:
    """What must agree: framing in full, of the wire format only that it is broken, of values which and where."""
    if fault is None:
        return None
    if FaultCode.VARINT_TRUNCATED <= fault.code <= FaultCode.WIRE:
        return ("wire", fault.record, fault.offset)
    if fault.code < FaultCode.VARINT_TRUNCATED:
        return fault
    numbers = (fault.expected, fault.got) if fault.code in (FaultCode.KIND, FaultCode.VALUE_COUNT, FaultCode.TOO_MANY_FEATURES) else ()
    return (fault.code, fault.record, fault.offset, fault.feature, *numbers)


def run(engine: Engine, plan: Plan, data: bytes, cuts: list[int], max_records: int, max_bytes: int) -> list[Any]:
    """Feed `data` up to each cut and then to its end, taking where a call stopped short; all that can be seen."""
    met: list[Any] = []
    seen: list[Any] = []
    decoder = engine.decoder(plan, lambda record, offset, content: met.append((record, offset, content)))
    begin = 0
    for end in [*cuts, len(data)]:
        final = end == len(data)
        while True:
            progress = decoder.feed(data[:end], begin, max_records=max_records, max_bytes=max_bytes, final=final)
            begin += progress.consumed
            seen.append((progress.records, progress.consumed, essence(progress.fault), decoder.rows, decoder.value_bytes))
            seen.append((decoder.seen, decoder.foreign, decoder.sequence))
            if progress.fault is not None or progress.records == 0:
                break
            if max_bytes >= 0:
                seen.append(decoder.take())
        seen.append(decoder.take())
        if progress.fault is not None:
            met = [m for m in met if m[1] != progress.fault.offset]  # whether a broken record's schema is shown is open
            break
    return [*seen, met]


def compare(plan: Plan, data: bytes, cuts: list[int], max_records: int = -1, max_bytes: int = -1) -> None:
    assert NATIVE is not None
    for mine, other in zip(*(run(e, plan, data, cuts, max_records, max_bytes) for e in (NATIVE, REFERENCE)), strict=True):
        if mine and isinstance(mine, list) and isinstance(mine[0], ColumnBuffers):
            same_columns(mine, other)
        else:
            assert mine == other, f"{mine} and {other}"


@needs_native
@many
@given(datasets(), plans(), st.data())
def test_engines_agree_on_any_records(payloads: list[bytes], plan: Plan, data: st.DataObject) -> None:
    file = REFERENCE.frame(payloads)
    if data.draw(st.sampled_from([True] + 5 * [False])):
        file = data.draw(damaged(file))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(file)), max_size=3)))
    max_records = data.draw(st.sampled_from([-1, -1, 1, 2, 5]))
    compare(plan, file, cuts, max_records, data.draw(st.sampled_from([-1, -1, 0, 30, 200])))


@needs_native
@many
@given(datasets(damage=False), st.sampled_from(RecordType))
def test_engines_agree_on_good_records_without_a_schema(payloads: list[bytes], record_type: RecordType) -> None:
    compare(Plan(record_type=record_type), REFERENCE.frame(payloads), [])


@needs_native
@many
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
    (mine, my_fault), (other, their_fault) = (engine.scan(file, 0, **options) for engine in (NATIVE, REFERENCE))
    assert my_fault == their_fault
    assert mine.consumed == other.consumed
    np.testing.assert_array_equal(mine.starts, other.starts)
    np.testing.assert_array_equal(mine.lengths, other.lengths)
    assert bytes(NATIVE.frame(payloads)) == bytes(REFERENCE.frame(payloads))
    assert NATIVE.crc32c(file, 7) == REFERENCE.crc32c(file, 7)


@needs_native
@many
@given(datasets(damage=False), plans(), st.binary(max_size=5), st.data())
def test_engines_encode_to_the_same_bytes(payloads: list[bytes], plan: Plan, prefix: bytes, data: st.DataObject) -> None:
    assert NATIVE is not None
    decoder = REFERENCE.decoder(plan)
    decoder.feed(REFERENCE.frame(payloads))
    rows = decoder.rows
    columns = decoder.take()
    begin = data.draw(st.integers(0, rows))
    end = data.draw(st.integers(begin, rows))
    sequence = plan.record_type != RecordType.EXAMPLE or any(c.steps is not None for c in columns)
    mine, other = (engine.encode(columns, begin, end, prefix=prefix, sequence=sequence) for engine in (NATIVE, REFERENCE))
    assert mine[1] == other[1]
    assert bytes(mine[0]) == bytes(other[0])


# Laws that hold for each engine by itself.


@many
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


@many
@given(payloads=datasets(damage=False), record_type=st.sampled_from(RecordType))
def test_decode_of_encode_gives_the_columns_back(engine: Engine, payloads: list[bytes], record_type: RecordType) -> None:
    plan = Plan(record_type=record_type)
    decoder = engine.decoder(plan)
    assume(decoder.feed(engine.frame(payloads)).fault is None)
    rows, sequence = decoder.rows, decoder.sequence
    columns = decoder.take()
    assume(all(column.layout != Layout.NULL and (column.steps is None or column.kind != Kind.NONE) for column in columns))
    encoded, count = engine.encode(columns, 0, rows, sequence=sequence)
    assert count == rows
    again = engine.decoder(plan)
    assert again.feed(bytes(encoded)).fault is None
    by_name = {column.name: column for column in again.take()}  # found in another order, where a first record lacks one
    same_columns(columns, [by_name[column.name] for column in columns])
