"""Simple conditions have the values that Arrow's query engine gives; the others are left to it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rounds import rounds
from suites.conditions import CONDITIONS, VALUES
from tfrecord_io.base.options.filters import condition_of
from tfrecord_io.columns.arrow.evaluate_condition import evaluate_simple

f = pc.field


def batch_of(rows: int) -> pa.RecordBatch:
    columns = {
        name: pa.array([values[(3 * row + at) % len(values)] for row in range(rows)], type_)
        for at, (name, (type_, values)) in enumerate(VALUES.items())
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


@settings(max_examples=rounds(300))
@given(CONDITIONS, st.sampled_from([0, 1, 24]))
def test_the_values_are_those_of_arrow(condition: Any, rows: int) -> None:
    batch = batch_of(rows)
    try:
        expected = batch.filter(condition)
    except (pa.ArrowException, KeyError, IndexError):  # the last of no rows, before Arrow 20
        return
    values = evaluate_simple(condition_of(condition), batch)
    if values is not None:
        assert repr(batch.filter(values).to_pylist()) == repr(expected.to_pylist())  # NaN is not equal to itself


FLOATS = st.floats(width=32) | st.sampled_from([0.1, 1e-40, 16777216.0, 3.4028234663852886e38])


@settings(max_examples=rounds(300))
@given(
    st.lists(st.none() | FLOATS, min_size=1, max_size=8),
    FLOATS | st.floats() | st.sampled_from([0.1, 16777217.0, 3.5e38, 1e-50]),
    st.sampled_from(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]),
)
def test_floats_are_compared_as_arrow_does(values: list[float | None], literal: float, operator: str) -> None:
    column = pa.array(values, pa.float32())
    batch, condition = pa.RecordBatch.from_arrays([column], ["x"]), getattr(f("x"), operator)(literal)
    passing = evaluate_simple(condition_of(condition), batch)
    assert passing is not None
    rows = pa.record_batch({"row": range(len(values)), "x": column})
    assert pa.table(rows).filter(passing)["row"].equals(pa.table(rows).filter(condition)["row"])


@pytest.mark.parametrize(
    "condition",
    [
        f("n") > 1,
        (f("n") == 1) & (f("text") != "a") | ~f("flag"),
        f("small") <= 100,
        pc.scalar(1) < f("n"),
        f("x") > 0.5,
        f("x") > 0.1,  # which is not a float32
        f("x") != 1e300,
        f("x").is_valid(),
        f("raw") == b"a",
        f("flag"),
        f("n") == f("n"),
    ],
    ids=str,
)
def test_a_simple_condition(condition: Any) -> None:
    assert evaluate_simple(condition_of(condition), batch_of(24)) is not None


@pytest.mark.parametrize(
    "condition",
    [
        f("n") > 0.5,
        f("small") < 1000,
        f("n") == f("small"),
        f("n").isin([1]),
        f("n").is_null(),
        f("n").cast("string") == "1",
        f("time") > f("time"),
        f("team") == "red",
        f("n") == pc.scalar(None),
        pc.scalar(1) < pc.scalar(2),
        pc.scalar(True),
    ],
    ids=str,
)
def test_a_condition_that_is_not_simple(condition: Any) -> None:
    assert evaluate_simple(condition_of(condition), batch_of(24)) is None
