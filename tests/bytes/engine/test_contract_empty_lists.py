"""An empty list of any kind is an empty list of its column's kind, in both engines."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_comparison import NATIVE, compare
from records import blobs, floats, framed
from reference_engine import ENGINE as REFERENCE
from strategies import example, field, int64s
from tfrecord_io.bytes.engine.contract import Engine, FaultCode, Plan, PlanColumn
from tfrecord_io.bytes.format.feature_types import Kind, Layout, RecordType
from tfrecord_io.columns.arrow.decode.inferred_column import observe
from tfrecord_io.columns.schema.inferred_type import Observation, RecordRef, join

EMPTY = {Kind.BYTES: blobs(), Kind.FLOAT: floats(), Kind.INT64: int64s()}
ONE = {Kind.BYTES: blobs(b"text"), Kind.FLOAT: floats(1.5), Kind.INT64: int64s(7)}
TWO = {Kind.BYTES: blobs(b"text", b""), Kind.FLOAT: floats(1.5, 2), Kind.INT64: int64s(7, 8)}
KINDS = list(EMPTY)


def sequence(*steps: bytes) -> bytes:
    """A SequenceExample whose only feature list, x, has these features as steps."""
    return field(2, field(1, field(1, b"x") + field(2, b"".join(field(1, step) for step in steps))))


def cells(kind: Kind) -> st.SearchStrategy[bytes]:
    """Lists without values of any kind, and with values of this kind."""
    return st.sampled_from([*EMPTY.values(), ONE[kind], TWO[kind], b""])


@pytest.mark.parametrize("layout", [Layout.ANY, Layout.LIST])
@pytest.mark.parametrize(("kind", "other"), list(permutations(KINDS, 2)))
def test_empty_lists_of_another_kind_are_lists_of_the_declared_kind(
    engine: Engine, kind: Kind, other: Kind, layout: Layout
) -> None:
    decoder = engine.decoder(Plan((PlanColumn("x", kind, layout),), "skip"))
    payloads = [example(x=values) for values in (EMPTY[other], TWO[kind], EMPTY[other], ONE[kind])]
    assert decoder.feed(framed(*payloads)).fault is None
    (column,) = decoder.take()
    assert (column.kind, column.layout, column.others, column.null_count) == (kind, Layout.LIST, (), 0)
    assert column.offsets is not None
    assert column.offsets.tolist() == [0, 0, 2, 2, 3]


def test_an_empty_list_is_not_one_value(engine: Engine) -> None:
    decoder = engine.decoder(Plan((PlanColumn("x", Kind.BYTES, Layout.SCALAR),), "skip"))
    fault = decoder.feed(framed(example(x=int64s()))).fault
    assert fault is not None
    assert (fault.code, fault.expected, fault.got) == (FaultCode.VALUE_COUNT, 1, 0)


def test_values_of_another_kind_are_a_fault(engine: Engine) -> None:
    decoder = engine.decoder(Plan())
    progress = decoder.feed(framed(*(example(x=values) for values in (int64s(), blobs(b"a"), int64s(), int64s(1)))))
    assert progress.fault is not None
    assert (progress.records, progress.fault.code) == (3, FaultCode.KIND)
    assert (progress.fault.expected, progress.fault.got) == (Kind.BYTES, Kind.INT64)


def test_typed_empties_have_a_kind(engine: Engine) -> None:
    decoder = engine.decoder(Plan((PlanColumn("x", Kind.BYTES, Layout.LIST),), "skip", typed_empties=True))
    fault = decoder.feed(framed(example(x=int64s()))).fault
    assert fault is not None
    assert fault.code is FaultCode.KIND


@given(kind=st.sampled_from(KINDS), declared=st.booleans(), splits=st.booleans(), typed=st.booleans(), data=st.data())
def test_engines_agree(kind: Kind, declared: bool, splits: bool, typed: bool, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(cells(kind) | cells(Kind.INT64), max_size=12))
    columns = (PlanColumn("x", kind, data.draw(st.sampled_from(Layout)), splits=splits),) if declared else ()
    plan = Plan(columns, splits=splits, typed_empties=typed)
    compare(plan, framed(*(example(x=values) for values in drawn)), [])
    steps = data.draw(st.lists(st.lists(cells(kind) | cells(Kind.FLOAT), max_size=4), max_size=6))
    compare(
        Plan(record_type=RecordType.SEQUENCE_EXAMPLE, splits=splits, typed_empties=typed),
        framed(*(sequence(*own) for own in steps)),
        [],
    )


def observed(engine: Engine, payloads: list[bytes], first: int, record_type: RecordType) -> Observation:
    decoder = engine.decoder(Plan(record_type=record_type))
    assert decoder.feed(framed(*payloads)).fault is None
    columns = decoder.take_columns()
    return Observation() if "x" not in columns else observe(columns["x"], lambda row: RecordRef("a", first + row))


@given(kind=st.sampled_from(KINDS), data=st.data())
@pytest.mark.parametrize("record_type", [RecordType.EXAMPLE, RecordType.SEQUENCE_EXAMPLE])
def test_chunks_of_any_size_show_the_same(
    engine: Engine, kind: Kind, record_type: RecordType, data: st.DataObject
) -> None:
    if record_type is RecordType.EXAMPLE:
        payloads = [example(x=values) for values in data.draw(st.lists(cells(kind), max_size=10))]
    else:
        payloads = [sequence(*steps) for steps in data.draw(st.lists(st.lists(cells(kind), max_size=3), max_size=8))]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(payloads)), max_size=4)))
    parts = [
        observed(engine, payloads[begin:end], begin, record_type) for begin, end in pairwise([0, *cuts, len(payloads)])
    ]
    whole = observed(engine, payloads, 0, record_type)
    for order in (parts, parts[::-1]):
        joined = Observation()
        for part in order:
            joined = join("x", joined, part)
        assert joined == whole


def test_the_first_value_decides(engine: Engine) -> None:
    values = [int64s(), floats(), blobs(b"text"), int64s()]
    decoder = engine.decoder(Plan())
    decoder.feed(framed(*(example(x=own) for own in values)))
    (column,) = decoder.take()
    assert (column.kind, column.first_row, column.value_row, column.text) == (Kind.BYTES, 0, 2, True)
    assert column.cut(3, 4).value_row == -1


def test_a_record_that_is_refused_decides_nothing() -> None:
    damaged = field(1, field(1, field(1, b"x") + field(2, blobs(b"text"))) + field(1, field(1, b"y") + b"\x12\x7f"))
    for engine in (NATIVE, REFERENCE):
        decoder = engine.decoder(Plan())
        progress = decoder.feed(framed(example(x=int64s()), damaged, example(x=floats())))
        assert progress.records == 1
        (column,) = [column for column in decoder.take() if column.name == "x"]
        assert column.kind is Kind.INT64
