"""A condition on bounds is false only where no value within them fulfils the condition."""

from __future__ import annotations

import operator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.conditions import join_terms
from tfrecord_io.base import condition_of
from tfrecord_io.columns import evaluate_simple, type_literals
from tfrecord_io.read.filter_bounds import condition_of_bounds

SCHEMA = pa.schema({"day": pa.int64()})


def may_pass(filters: Any, least: int | None, greatest: int | None) -> bool:
    """Whether a day from the least to the greatest may fulfil a filter."""
    condition = condition_of_bounds(type_literals(condition_of(filters), SCHEMA))
    if condition is None:
        return True
    bounds = pa.record_batch(
        {"least day": pa.array([least], pa.int64()), "greatest day": pa.array([greatest], pa.int64())}
    )
    values = evaluate_simple(condition, bounds.select(list(condition.columns)))
    assert values is not None
    return values[0].as_py() is not False


@pytest.mark.parametrize(
    ("filters", "least", "greatest", "expected"),
    [
        ("day = 7", 7, 9, True),
        ("day = 7", 8, 9, False),
        ("day != 7", 7, 7, False),
        ("day != 7", 7, 8, True),
        ("day < 7", 7, 9, False),
        ("day <= 7", 7, 9, True),
        ("day > 9", 7, 9, False),
        ("day in [1, 10]", 7, 9, False),
        ("day in [1, 8]", 7, 9, True),
        ("day between 1 and 3", 7, 9, False),
        ("day = 1 or day = 8", 7, 9, True),
        ("day = 7 and day = 9", 7, 9, True),
        ("day is null", 7, 9, True),
        (~(pc.field("day") == 7), 7, 7, True),
        (pc.scalar(8) > pc.field("day"), 8, 9, False),
        ("day = 7", None, None, True),
        ([("day", "in", [*range(100)])], 200, 300, False),
        ([("day", "in", [*range(100)])], 50, 300, True),
        ([("day", "in", [1, None])], 200, 300, True),
    ],
    ids=str,
)
def test_bounds_tell_whether_a_value_may_pass(filters: Any, least: Any, greatest: Any, expected: bool) -> None:
    assert may_pass(filters, least, greatest) is expected


DAY = pc.field("day")
OPERATORS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
FILTERS = join_terms(
    st.builds(lambda compare, value: compare(DAY, value), st.sampled_from(OPERATORS), st.integers(-3, 3))
    | st.lists(st.integers(-3, 3), min_size=1, max_size=3).map(DAY.isin)
    | st.just(DAY.is_null())
)


@given(FILTERS, st.lists(st.integers(-3, 3), min_size=1, max_size=3), st.booleans())
def test_no_value_that_passes_is_left_out(filters: pc.Expression, days: list[int], has_null: bool) -> None:
    values = pa.array([*days, *[None] * has_null], pa.int64())
    condition = type_literals(condition_of(filters), SCHEMA)
    passing = evaluate_simple(condition, pa.RecordBatch.from_arrays([values], ["day"]))
    if passing is not None and any(passing.fill_null(False).to_pylist()):
        assert may_pass(filters, min(days), max(days))
