"""What the columns of chunks show, together."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from column_buffers import BYTES, FLOAT, INT, feature_list, lists, nothing, scalars
from strategies import datasets
from tfrecord_io.bytes.engine.contract import ColumnBuffers, Plan
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.columns.arrow.decode.inferred_column import SeenColumns, count_kinds, observe
from tfrecord_io.columns.schema.inferred_type import Observation, RecordRef, join_columns
from tfrecord_io.errors import SchemaError

VALUES = {INT: st.integers(0, 3), FLOAT: st.just(0.5), BYTES: st.sampled_from([b"a", b"\xff"])}


@st.composite
def columns(draw: st.DrawFn) -> ColumnBuffers:
    kind = draw(st.sampled_from(list(VALUES)))
    form = draw(st.sampled_from(["scalar", "scalar", "list", "nothing", "steps"]))
    if form == "nothing":
        return nothing(draw(st.integers(0, 3)))
    if form == "steps":
        return feature_list(lists(kind, [[draw(VALUES[kind])], []]), [1, None, 1])
    if form == "list":
        return lists(kind, draw(st.lists(st.none() | st.lists(VALUES[kind], max_size=2), min_size=1, max_size=4)))
    return scalars(kind, draw(st.lists(st.none() | VALUES[kind], min_size=1, max_size=4)))


def records_from(path: str, first: int, file: int = 0) -> Callable[[int], RecordRef]:
    """The record of each row of a chunk."""
    return lambda row: RecordRef(path, first + row, file)


@given(
    st.lists(st.tuples(st.dictionaries(st.sampled_from("xyz"), columns()), st.booleans()), max_size=5), st.booleans()
)
def test_seen_columns_are_the_join_of_their_observations(
    chunks: list[tuple[dict[str, ColumnBuffers], bool]], knows_x: bool
) -> None:
    known = {"x"} if knows_x else set()
    seen, expected = SeenColumns(known), dict[str, Observation]()
    file = record = 0
    for columns, begins_file in chunks:
        file, record = (file + 1, 0) if begins_file else (file, record)
        named = {name: column.replace(name=name) for name, column in columns.items()}
        shown = {
            name: observe(c, records_from(f"file {file}", record, file))
            for name, c in named.items()
            if name not in known
        }
        try:
            expected = join_columns(expected, shown)
        except SchemaError as error:
            with pytest.raises(SchemaError, match=re.escape(str(error))):
                seen.add(named, records_from(f"file {file}", record, file))
        else:
            seen.add(named, records_from(f"file {file}", record, file))
        assert seen.observations == expected
        record += max((column.rows for column in columns.values()), default=0)


def test_columns_that_show_the_same_share_an_observation() -> None:
    seen = SeenColumns()
    seen.add({name: scalars(INT, [1, None]) for name in "ab"}, records_from("file", 0))
    assert seen.observations["a"] is seen.observations["b"]
    before = seen.observations
    seen.add({name: scalars(INT, [2]) for name in "ba"}, records_from("file", 2))
    assert seen.observations is before


@given(st.lists(datasets(damage=False), min_size=1, max_size=3), st.lists(st.integers(0, 2), max_size=5))
def test_columns_that_an_engine_holds_show_the_same(chunks: list[list[bytes]], order: list[int]) -> None:
    """Also where a chunk shows what the one before it did."""
    engine = get_engine()
    decoder = engine.decoder(Plan(splits=True))
    held, made = (SeenColumns(may_differ=lambda name: True) for _ in range(2))
    record = 0
    for number in order:
        payloads = chunks[number % len(chunks)]
        decoder.feed(engine.frame(payloads))
        columns = decoder.take_columns()
        held.add(columns, records_from("file", record))
        made.add(dict(columns.items()), records_from("file", record))
        assert (held.observations, held.contested) == (made.observations, made.contested)
        record += len(payloads)


@given(st.lists(columns(), min_size=1, max_size=4))
def test_the_kinds_of_chunks_are_counted_together(chunks: list[ColumnBuffers]) -> None:
    numbered = [(column, records_from("file", 10 * at)) for at, column in enumerate(chunks)]
    alone = [count for chunk in numbered for count in count_kinds([chunk])]
    together = count_kinds(numbered)
    assert {count.kind for count in together} == {count.kind for count in alone}
    for count in together:
        same = [other for other in alone if other.kind is count.kind]
        assert count.records == sum(other.records for other in same)
        assert count.first == min((other.first for other in same), key=lambda first: first.order())
