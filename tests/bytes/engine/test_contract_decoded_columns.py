"""Decoded columns by feature, made when they are asked for."""

from __future__ import annotations

from records import blobs, entry, example, field, framed, int64s
from strategies import sequence_example
from tfrecord_io.bytes.engine.contract import Engine, FeatureColumns, Plan
from tfrecord_io.bytes.format.feature_types import RecordType


def test_a_name_in_both_parts_is_the_context_feature(engine: Engine) -> None:
    record = sequence_example({"x": int64s(1), "y": int64s(2)}, {"x": [int64s(3)], "z": [int64s(4)]})
    decoder = engine.decoder(Plan(record_type=RecordType.SEQUENCE_EXAMPLE, names_in_both=True))
    decoder.feed(framed(record))
    columns = decoder.take_columns()
    assert {name: column.steps is not None for name, column in columns.items()} == {
        "x": False,
        "y": False,
        "z": True,
        f"x{FeatureColumns.LIST_MARK}": True,
    }
    assert "w" not in columns
    assert columns.get("w") is None


def test_facts_are_the_fields_of_the_columns(engine: Engine) -> None:
    record = sequence_example({"x": int64s(1), "y": blobs(b"\xff")}, {"x": [int64s(3)], "z": [int64s(4)]})
    decoder = engine.decoder(Plan(record_type=RecordType.SEQUENCE_EXAMPLE, names_in_both=True))
    decoder.feed(framed(record, example(), record))
    columns = decoder.take_columns()
    facts = FeatureColumns.facts_of(columns)
    for column, own in zip(columns.values(), facts.tolist(), strict=True):
        for fact in FeatureColumns.Fact:
            assert own[fact] == getattr(column, fact.name.lower())
    assert FeatureColumns.facts_of({}).shape == (0, len(FeatureColumns.Fact))


def test_columns_found_later_and_those_of_faulty_records(engine: Engine) -> None:
    decoder = engine.decoder(Plan())
    decoder.feed(framed(example(a=int64s(1))))
    assert list(decoder.take_columns()) == ["a"]
    bad = field(1, entry("b", int64s(1)) + entry("c", b"\x0a\x7f"))
    assert decoder.feed(framed(bad)).fault is not None
    decoder.take()
    assert decoder.feed(framed(example(d=int64s(1)))).fault is None
    columns = decoder.take_columns()
    assert sorted(columns) == ["a", "d"]
    assert [column.name for column in columns.values()] == list(columns)
