"""What columns show; that a column shows nothing new is known without an observation."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from column_buffers import BYTES, FLOAT, INT, feature_list, lists, nothing, scalars
from tfrecord_io.arrow.infer.observe import adds_nothing, observe
from tfrecord_io.engine.contract import ColumnBuffers
from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.observation import Observation, join

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


@given(st.lists(st.tuples(columns(), st.booleans()), min_size=1, max_size=5))
def test_what_adds_nothing_leaves_the_join_as_it_is(chunks: list[tuple[ColumnBuffers, bool]]) -> None:
    seen: Observation | None = None
    file = record = 0
    for column, begins_file in chunks:
        file, record = (file + 1, 0) if begins_file else (file, record)
        own = observe(column, f"file {file}", record, file)
        try:
            joined = own if seen is None else join("x", seen, own)
        except SchemaError:
            assert not adds_nothing(column, seen, record, file)
            assume(False)
        if adds_nothing(column, seen, record, file):
            assert joined == seen
        seen, record = joined, record + column.rows


def test_more_of_the_same_adds_nothing() -> None:
    def chunk(values: list[Any]) -> ColumnBuffers:
        return scalars(INT, values)

    seen = observe(chunk([1, None]), "a", 0)
    assert adds_nothing(chunk([2, 3]), seen, 2)
    assert adds_nothing(chunk([None]), seen, 2)
    assert not adds_nothing(chunk([2, 3]), seen, 0)
    assert not adds_nothing(lists(INT, [[1, 2]]), seen, 2)
    assert not adds_nothing(scalars(FLOAT, [0.5]), seen, 2)
    assert not adds_nothing(chunk([1]), None, 2)
