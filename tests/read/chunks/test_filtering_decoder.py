"""Decoding only the records that can pass: the same rows and the same fault, however the ways of decoding alternate."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from hypothesis import example as explicit
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_comparison import decoded_from_file
from records import blobs, example, field, floats, framed, int64s
from reference_engine import ENGINE as REFERENCE
from rounds import rounds
from tfrecord_io.bytes.engine.contract import ColumnBuffers, Engine, Fault, FaultCode, Kind, Layout, Plan, PlanColumn
from tfrecord_io.bytes.engine.native import ENGINE as NATIVE
from tfrecord_io.bytes.format.feature_types import RecordType, Text
from tfrecord_io.columns.arrow.decode.batch_builder import BatchBuilder
from tfrecord_io.read.chunks.filtering_decoder import DecodingChoice, FilteringDecoder, Prefilter

COLUMNS = (
    PlanColumn("n", Kind.INT64, Layout.SCALAR),
    PlanColumn("x", Kind.FLOAT, Layout.LIST),
    PlanColumn("t", Kind.BYTES, Layout.SCALAR, Text.UTF8, required=True),
)
SCHEMA = {"n": "int64", "x": "list<float32>", "t": "string"}
PASSING = 1
PLAIN = example(n=int64s(0), x=floats(0.0), t=blobs(b"a"))
BAD_WIRE = field(2, b"\x0a\xff")  # a feature whose values end in the middle
engines = pytest.mark.parametrize("engine", [NATIVE, REFERENCE], ids=["native", "reference"])


class Alternating(DecodingChoice):
    """Ways of decoding in a given order."""

    def __init__(self, ways: list[tuple[bool, int | None]]) -> None:
        super().__init__()
        self._ways = cycle(ways)

    def next(self, available: int) -> tuple[bool, int | None]:
        return next(self._ways)


def may_pass(columns: Mapping[str, ColumnBuffers], rows: int) -> Any:
    column = columns["n"]
    if column.values is None or column.layout is Layout.NULL:
        return np.zeros(rows, bool)
    return ColumnBuffers.mask_of(column.validity, rows) & (column.values == PASSING)


@st.composite
def payloads(draw: Any, faulty: bool = True) -> tuple[bytes, bool]:
    """A record, and whether it passes."""
    n = draw(st.sampled_from([0, 0, 0, PASSING]))
    features: dict[str, bytes] = {"n": int64s(n), "x": floats(*[float(n)] * draw(st.integers(0, 3))), "t": blobs(b"a")}
    damage = draw(st.sampled_from([None] * 12 + ["x", "t", "wire", "missing", "n", "unknown"] * faulty))
    if damage == "x":
        features["x"] = int64s(3)
    elif damage == "t":
        features["t"] = blobs(b"\xff")
    elif damage == "wire":
        features["x"] = BAD_WIRE
    elif damage == "missing":
        del features["t"]
    elif damage == "n":
        features["n"] = floats(1.0)
    elif damage == "unknown":
        features["u"] = int64s(1)
    return example(**features), n == PASSING


def plan_of(**changes: Any) -> Plan:
    return Plan(columns=COLUMNS, unknown="fault", record_type=RecordType.DETECT, **changes)


def filter_plan() -> Plan:
    return Plan(columns=COLUMNS[:1], unknown="fault", ignored=frozenset(["x", "t"]), record_type=RecordType.DETECT)


def expected_fault(records: list[tuple[bytes, bool]], engine: Engine) -> tuple[int, FaultCode] | None:
    """The first record that is faulty in the columns of the filter, or passes and is faulty."""
    for number, (payload, passes) in enumerate(records):
        for plan in [filter_plan(), *([plan_of()] if passes else [])]:
            fault = engine.decoder(plan).feed(framed(payload)).fault
            if fault is not None:
                return number, fault.code
    return None


def decoder_of(engine: Engine, choice: DecodingChoice, plan: Plan | None = None) -> FilteringDecoder:
    return FilteringDecoder(engine, plan or plan_of(), Prefilter(frozenset(["n"]), may_pass, choice))


def rows_of(decoder: FilteringDecoder) -> tuple[list[int], list[dict[str, Any]]]:
    kept = list(range(decoder.rows)) if decoder.kept is None else decoder.kept.tolist()
    batch, fault = BatchBuilder(SCHEMA).batch(decoder.take_columns(), len(kept))
    assert fault is None
    return kept, batch.to_pylist()


@engines
@settings(max_examples=rounds(200))
@given(
    records=st.lists(payloads(), max_size=30),
    ways=st.lists(st.tuples(st.booleans(), st.sampled_from([None, 1, 60])), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=3),
    most=st.sampled_from([-1, 1, 4]),
    most_bytes=st.sampled_from([-1, 0, 120]),
)
@explicit(records=[(PLAIN, False)] * 9, ways=[(True, 1), (True, None)], sizes=[1000], most=4, most_bytes=-1)
def test_the_rows_and_the_fault_do_not_depend_on_the_way(
    engine: Engine,
    records: list[tuple[bytes, bool]],
    ways: list[tuple[bool, int | None]],
    sizes: list[int],
    most: int,
    most_bytes: int,
) -> None:
    data = framed(*(payload for payload, _ in records))
    decoder, fault = decoder_of(engine, Alternating(ways)), None
    at, end, begun, seen = 0, 0, 0, []
    steps = cycle(sizes)
    while fault is None and at < len(data):
        end = min(end + next(steps), len(data))
        progress = decoder.feed(data[:end], at, max_records=most, max_bytes=most_bytes, final=end == len(data))
        fault, at = progress.fault, at + progress.consumed
        assert most < 0 or progress.records <= most
        assert decoder.value_bytes == sum(len(p) for p, _ in records[begun : begun + decoder.rows])
        if decoder.rows and (most_bytes >= 0 or fault is not None or at == len(data)):
            rows = decoder.rows
            kept, values = rows_of(decoder)
            seen += [(begun + number, value) for number, value in zip(kept, values, strict=True)]
            begun += rows
    expected = expected_fault(records, engine)
    stop = len(records) if expected is None else expected[0]
    assert (None if fault is None else fault.code) == (None if expected is None else expected[1])
    if isinstance(fault, Fault):
        assert begun == stop
        assert fault.offset == at == sum(len(payload) + 16 for payload, _ in records[:stop])
    assert decoder.counts.seen == stop
    numbers = [number for number, _ in seen]
    assert numbers == sorted(set(numbers))
    passing = [number for number in range(stop) if records[number][1]]
    assert set(passing) <= set(numbers)
    if all(two for two, _ in ways):
        assert numbers == passing
    for number, value in seen:
        whole = engine.decoder(plan_of())
        assert whole.feed(framed(records[number][0])).fault is None
        batch, _ = BatchBuilder(SCHEMA).batch(whole.take_columns(), 1)
        assert [value] == batch.to_pylist()


@settings(max_examples=rounds(200))
@given(
    st.lists(payloads(), max_size=30),
    st.lists(st.tuples(st.booleans(), st.sampled_from([None, 1, 60])), min_size=1, max_size=4),
    st.tuples(st.integers(1, 300), st.integers(16, 600), st.integers(16, 600)),
    st.sampled_from([None, 100]),
    st.integers(0, 20),
)
def test_a_file_is_decoded_as_its_bytes_are(
    records: list[tuple[bytes, bool]],
    ways: list[tuple[bool, int | None]],
    windows: tuple[int, int, int],
    max_expansion: int | None,
    cut: int,
) -> None:
    data = framed(*(payload for payload, _ in records))
    data = data[: max(0, len(data) - cut)]
    plan = plan_of(keep_lengths=True, max_expansion=max_expansion)
    whole, of_file = (decoder_of(NATIVE, Alternating(each), plan) for each in ([(True, None)], ways))
    expected = whole.feed(data)
    progress = decoded_from_file(of_file, data, *windows, max_bytes=-1)
    assert (progress.records, progress.consumed) == (expected.records, expected.consumed)
    assert (progress.fault is None) == (expected.fault is None)
    if progress.fault is not None and expected.fault is not None:
        found, known = progress.fault, expected.fault
        assert (found.code, found.record, found.offset) == (known.code, known.record, progress.consumed)
    assert (of_file.rows, of_file.value_bytes, of_file.counts) == (whole.rows, whole.value_bytes, whole.counts)
    assert of_file.lengths().tolist() == whole.lengths().tolist()
    values = [dict(zip(*rows_of(decoder), strict=True)) for decoder in (of_file, whole)]
    assert {row: value for row, value in values[0].items() if value["n"] == PASSING} == values[1]


@engines
def test_the_share_is_that_of_several_records(engine: Engine) -> None:
    choice = Alternating([(True, None)])
    decoder = decoder_of(engine, choice)
    records = [example(n=int64s(PASSING * (at % 4 == 0)), t=blobs(b"a" * 100)) for at in range(8)]
    decoder.feed(framed(*records))
    assert choice.share == 0.25
    assert 0.8 < choice.of_columns <= 1
    decoder.feed(framed(records[0]))
    assert choice.share == 0.25


@engines
@settings(max_examples=rounds(60))
@given(
    st.lists(st.lists(payloads(faulty=False), min_size=1, max_size=9), min_size=1, max_size=4),
    st.lists(st.tuples(st.booleans(), st.none()), min_size=1, max_size=3),
    st.data(),
)
def test_parts_are_appended(engine: Engine, parts: list[Any], ways: Any, data: st.DataObject) -> None:
    choice = Alternating(ways)
    whole, expected, begun = decoder_of(engine, choice), [], 0
    for records in parts:
        part = decoder_of(engine, choice)
        part.feed(framed(*(payload for payload, _ in records)))
        part.complete()
        begin, end = sorted((data.draw(st.integers(0, len(records))), data.draw(st.integers(0, len(records)))))
        size = sum(len(payload) for payload, _ in records[begin:end])
        if not whole.append(part, begin, end, size):
            continue
        expected += [begun + number for number, (_, passes) in enumerate(records[begin:end]) if passes]
        begun += end - begin
        assert whole.rows == begun
    kept, values = rows_of(whole)
    assert set(expected) <= set(kept)
    assert [v["n"] for v in values if v["n"] == PASSING] == [PASSING] * len(expected)


@engines
@pytest.mark.parametrize("two_steps", [False, True])
def test_rows_take_no_more_memory_than_without_a_filter(engine: Engine, two_steps: bool) -> None:
    payload = example(n=int64s(0), t=blobs(b"a"))
    data, plan = framed(*[payload] * 50), plan_of(max_expansion=200)
    plain, decoder = engine.decoder(plan), decoder_of(engine, Alternating([(two_steps, None)]), plan)
    first, second = plain.feed(data), decoder.feed(data)
    assert second.records > 0
    assert (second.records, second.consumed, second.full) == (first.records, first.consumed, first.full)


@engines
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("n", [0, PASSING])
def test_a_sequence_example_makes_all_records_sequence_examples(engine: Engine, first: bool, n: int) -> None:
    plain = example(n=int64s(n), t=blobs(b"a"))
    steps = field(2, field(1, field(1, b"s") + field(2, field(1, int64s(1)))))
    misfit = field(2, field(1, b"\x0a\xff"))  # no feature lists, but an unknown field of an Example
    plan = plan_of()._replace(unknown="skip")
    for records, stops in (([plain + misfit, plain + steps], 2), ([plain + steps, plain, plain + misfit], 2)):
        decoder = decoder_of(engine, Alternating([(first, 1), (not first, 1)]), plan)
        progress = decoder.feed(framed(*records))
        assert decoder.sequence
        assert progress.records == stops
        assert (progress.fault is None) == (stops == len(records))


@engines
@pytest.mark.parametrize("two_steps", [False, True])
def test_an_embedded_schema_stops_it(engine: Engine, two_steps: bool) -> None:
    embedded = field(21574, b"schema")
    records = [(n, example(n=int64s(n), t=blobs(b"a"))) for n in (0, 1, 0, 1, 1)]
    data = framed(*(payload + embedded * (at % 2) for at, (_, payload) in enumerate(records)))
    decoder = decoder_of(
        engine, Alternating([(two_steps, None), (not two_steps, None)]), plan_of(stop_at_embedded=True)
    )
    at, stops = 0, []
    while at < len(data):
        progress = decoder.feed(data, at)
        at += progress.consumed
        if progress.embedded:
            stops.append(decoder.rows)
            decoder.accept_embedded()
    assert stops == [1, 3]
    assert decoder.rows == 5
    assert decoder.kept is None or {1, 3, 4} <= set(decoder.kept.tolist())
