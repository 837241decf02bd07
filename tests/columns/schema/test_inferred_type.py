"""Observations form a lattice: the order in which blocks and files are read cannot change a type."""

from __future__ import annotations

import itertools
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.base import ReadOptions
from tfrecord_io.bytes.format.feature_types import Kind, Layout
from tfrecord_io.columns.arrow.decode.observations import Observations
from tfrecord_io.columns.schema.inferred_type import Observation, arrow_type, join, join_columns
from tfrecord_io.errors import SchemaError
from tfrecord_io.store import RecordRef


def _observation(*values: Any) -> Observation:  # Hypothesis makes all fields of a named tuple
    return Observation(*values)


WHERES = st.builds(RecordRef, st.sampled_from(["a.tfrecord", "b.tfrecord"]), st.integers(0, 9), st.integers(0, 1))
MAYBE = st.none() | WHERES


EMPTY = st.builds(
    lambda kind, where: Observation(kind, Layout.LIST, first=where, listed=where, empty=True),
    st.sampled_from([Kind.BYTES, Kind.FLOAT, Kind.INT64]),
    WHERES,
)


def plain(kinds: st.SearchStrategy[Kind]) -> st.SearchStrategy[Observation]:
    seen = st.builds(
        _observation,
        kinds,
        st.sampled_from([Layout.SCALAR, Layout.LIST]),
        st.booleans(),
        st.just(False),
        WHERES,
        MAYBE,
        MAYBE,
    )
    return st.just(Observation()) | seen | EMPTY


def sequences(kinds: st.SearchStrategy[Kind]) -> st.SearchStrategy[Observation]:
    steps = st.builds(
        _observation, kinds, st.sampled_from([Layout.SCALAR, Layout.LIST]), st.booleans(), st.booleans(), WHERES
    )
    kindless = st.booleans().map(lambda nulls: Observation(nulls=nulls))
    return st.builds(
        lambda step, where: Observation(layout=Layout.LIST, first=where, steps=step), steps | kindless | EMPTY, WHERES
    )


KINDS = st.sampled_from([Kind.BYTES, Kind.FLOAT, Kind.INT64])
ONE_KIND = KINDS.flatmap(lambda kind: st.lists(plain(st.just(kind)), min_size=3, max_size=5))
ONE_KIND_STEPS = KINDS.flatmap(
    lambda kind: st.lists(st.just(Observation()) | sequences(st.just(kind)), min_size=3, max_size=5)
)
ANYTHING = st.lists(plain(KINDS) | sequences(KINDS), min_size=2, max_size=4)


def join_all(seen: list[Observation]) -> Observation:
    return reduce(lambda a, b: join("x", a, b), seen)


@given(ONE_KIND | ONE_KIND_STEPS)
def test_join_is_commutative_associative_and_idempotent(seen: list[Observation]) -> None:
    a, b, c = seen[:3]
    assert join("x", a, b) == join("x", b, a)
    assert join("x", join("x", a, b), c) == join("x", a, join("x", b, c))
    assert join("x", a, a) == a
    assert join("x", a, Observation()) == a
    assert join("x", join("x", a, b), b) == join("x", a, b)


@given(ANYTHING)
def test_order_changes_neither_the_join_nor_whether_it_exists(seen: list[Observation]) -> None:
    def answer(order: tuple[Observation, ...]) -> Observation | None:
        try:
            return join_all(list(order))
        except SchemaError:
            return None

    assert len({answer(order) for order in itertools.permutations(seen)}) == 1


def test_conflicting_kinds_name_both_records() -> None:
    early = Observation(Kind.INT64, Layout.SCALAR, first=RecordRef("a.tfrecord", 3, 0))
    late = Observation(Kind.FLOAT, Layout.SCALAR, first=RecordRef("b.tfrecord", 1, 1))
    for one, other in ((early, late), (late, early)):
        with pytest.raises(SchemaError) as caught:
            join("x", one, other)
        text = str(caught.value)
        assert "it is an Int64List in a.tfrecord record 3 and a FloatList in b.tfrecord record 1" in text
        assert (caught.value.path, caught.value.record, caught.value.feature) == ("b.tfrecord", 1, "x")


def test_a_conflict_without_records_names_none_of_them() -> None:
    """Such as between the schemas of two files: a record that is known comes after them."""
    unknown, known = Observation(Kind.INT64, Layout.SCALAR), Observation(Kind.FLOAT, Layout.SCALAR)
    for other, record in ((known, None), (known._replace(first=RecordRef("b", 0)), 0)):
        for pair in ((unknown, other), (other, unknown)):
            with pytest.raises(SchemaError) as caught:
                join("x", *pair)
            assert caught.value.record == record
            assert caught.value.got == (other if record == 0 else pair[1]).kind.description


def test_steps_without_values_are_remembered() -> None:
    many, none = Observation(nulls=False), Observation(nulls=True)
    assert join("x", many, none).nulls
    assert join("x", none, many).nulls
    assert not join("x", many, many).nulls


def test_records_are_named_by_path_and_number() -> None:
    assert str(RecordRef(None, 3)) == "record 3"
    assert str(RecordRef("a\n", 3)) == "a\\n record 3"
    assert RecordRef("b", 7).order() == (0, 7, "b")


def test_context_feature_and_feature_list_of_the_same_name_conflict() -> None:
    context, steps = (
        Observation(Kind.INT64, Layout.SCALAR, first=RecordRef("a", 1)),
        Observation(layout=Layout.LIST, steps=Observation(), first=RecordRef("a", 2)),
    )
    for pair in ((context, steps), (steps, context)):
        with pytest.raises(SchemaError, match="a context feature in a record 1 and a feature list in a record 2"):
            join("x", *pair)


def test_conflicts_of_forms_without_records() -> None:
    with pytest.raises(SchemaError, match="a feature list"):
        join("x", Observation(Kind.INT64, Layout.SCALAR), Observation(layout=Layout.LIST, steps=Observation()))


def test_columns_are_joined_by_name_and_sorted() -> None:
    one, many = Observation(Kind.INT64, Layout.SCALAR), Observation(Kind.INT64, Layout.LIST)
    joined = join_columns({"b": one, "c": one}, {"a": many, "b": many, "n": Observation()})
    assert Observations(joined).schema(ReadOptions()).to_arrow() == pa.schema(
        [("a", pa.list_(pa.int64())), ("b", pa.list_(pa.int64())), ("c", pa.int64()), ("n", pa.null())]
    )


BYTES = Observation(Kind.BYTES, Layout.SCALAR)
BINARY = Observation(Kind.BYTES, Layout.LIST, text=False)
FLOATS = Observation(Kind.FLOAT, Layout.LIST)


def steps(step: Observation) -> Observation:
    return Observation(layout=Layout.LIST, steps=step)


@pytest.mark.parametrize(
    ("seen", "options", "expected"),
    [
        (Observation(), {}, pa.null()),
        (Observation(), {"stable_types": True}, pa.null()),
        (BYTES, {}, pa.string()),
        (BYTES, {"infer_text": False}, pa.binary()),
        (BYTES, {"stable_types": True}, pa.list_(pa.binary())),
        (BYTES, {"large_offsets": True}, pa.large_string()),
        (BINARY, {}, pa.list_(pa.binary())),
        (BYTES, {"large_offsets": True, "infer_text": False}, pa.large_binary()),
        (FLOATS, {"large_offsets": True}, pa.large_list(pa.float32())),
        (steps(BYTES), {}, pa.list_(pa.string())),
        (steps(FLOATS), {}, pa.list_(pa.list_(pa.float32()))),
        (steps(BYTES), {"stable_types": True}, pa.list_(pa.list_(pa.binary()))),
        (steps(Observation(Kind.INT64, Layout.SCALAR, nulls=True)), {}, pa.list_(pa.list_(pa.int64()))),
        (steps(Observation()), {}, pa.list_(pa.null())),
        (steps(Observation(nulls=True)), {}, pa.list_(pa.list_(pa.null()))),
    ],
)
def test_arrow_types(seen: Observation, options: dict[str, bool], expected: pa.DataType) -> None:
    assert arrow_type(seen, **options) == expected


def test_same_contradiction_is_reported_in_any_order_of_columns() -> None:
    before = {
        name: Observation(kind, Layout.SCALAR, first=RecordRef("a", 0))
        for name, kind in (("x", Kind.FLOAT), ("y", Kind.BYTES))
    }
    after = {
        name: Observation(kind, Layout.SCALAR, first=RecordRef("a", 5))
        for name, kind in (("x", Kind.BYTES), ("y", Kind.FLOAT))
    }
    for names in itertools.permutations(after):
        with pytest.raises(SchemaError) as caught:
            join_columns(before, {name: after[name] for name in names})
        assert caught.value.feature == "x"


def test_steps_of_two_kinds_are_contested() -> None:
    def steps(kind: Kind) -> dict[str, Observation]:
        return {"x": Observation(steps=Observation(kind, Layout.SCALAR, first=RecordRef("a.tfrecord", 0, 0)))}

    for other, names in ((Kind.BYTES, ["x"]), (Kind.INT64, []), (Kind.NONE, [])):
        contested: dict[str, None] = {}
        joined = join_columns(steps(Kind.INT64), steps(other), contested)["x"].steps
        assert joined is not None
        assert (joined.kind, list(contested)) == (Kind.INT64, names)


def test_a_conflict_of_files_can_be_skipped() -> None:
    file, message = RecordRef("a.tfrecord", 0, 0), RecordRef(None, 0, 0)
    for where in (file, message):
        with pytest.raises(SchemaError) as caught:
            join(
                "x",
                Observation(Kind.INT64, Layout.SCALAR, first=where),
                Observation(Kind.BYTES, Layout.SCALAR, first=where),
            )
        assert ("on_error" in str(caught.value)) == (where is file)
