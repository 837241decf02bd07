"""The parts of a condition are fulfilled together where it is fulfilled."""

from __future__ import annotations

import pickle
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rounds import rounds
from suites.conditions import CONDITIONS, TUPLES, VALUES
from tfrecord_io.base.options import condition as conditions_module
from tfrecord_io.base.options.condition import Condition
from tfrecord_io.base.options.filters import condition_of
from tfrecord_io.read.row_filter import RowFilter

ROWS = 60
TABLE = pa.table(
    {
        name: pa.array([values[(7 * row + row // 5) % len(values)] for row in range(ROWS)], type_)
        for name, (type_, values) in VALUES.items()
    }
)


@settings(max_examples=rounds(200))
@given(st.lists(CONDITIONS, min_size=1, max_size=4))
def test_rows_that_fulfil_all_parts_fulfil_the_condition(conditions: list[pc.Expression]) -> None:
    condition = conditions[0]
    for other in conditions[1:]:
        condition &= other
    parts = condition_of(condition).conjuncts
    assert len(parts) >= len(conditions)
    assert {name for part in parts for name in part.columns} == set(condition_of(condition).columns)
    try:
        expected = TABLE.filter(condition)
    except pa.ArrowException:
        return
    rows = TABLE
    for part in parts:
        assert pickle.loads(pickle.dumps(part)).expression.equals(part.expression)
        rows = rows.filter(part.expression)
    assert repr(rows.to_pylist()) == repr(expected.to_pylist())


@given(TUPLES)
def test_tuples_are_parts(tuples: list[tuple[str, str, object]]) -> None:
    from pyarrow.parquet import filters_to_expression

    assert len(condition_of(filters_to_expression(tuples)).conjuncts) == len(tuples)


@pytest.mark.parametrize(
    "condition",
    [pc.field("a"), pc.scalar(True), ~(pc.field("a") & pc.field("b")), pc.field("a") | (pc.field("b") & pc.field("c"))],
)
def test_a_condition_of_one_part(condition: pc.Expression) -> None:
    assert [part.expression.equals(condition) for part in condition_of(condition).conjuncts] == [True]


def test_fields_of_structs_and_nested_calls() -> None:
    a, b, c = (
        pc.field("a", "x").is_valid(),
        pc.field("b").cast("float32") > 1.5,
        pc.field("c").isin([1, 2]) | pc.field("d"),
    )
    parts = condition_of((a & b) & (c & a)).conjuncts
    assert [str(part.expression) for part in parts] == [str(part) for part in (a, b, c, a)]


@pytest.mark.parametrize("count", [3, 100, 1000])
def test_any_number_of_parts(count: int) -> None:
    numbers = pa.table({"n": range(2 * count)})
    either, both = pc.field("n") == 0, pc.field("n") != 0
    for number in range(1, count):
        either, both = either | (pc.field("n") == number), both & (pc.field("n") != number)
    conditions = condition_of([[("n", "==", number)] for number in range(count)]), condition_of(either)
    for condition in conditions:
        assert condition.columns == ("n",)
        assert len(condition.conjuncts) == 1
        (batch,) = numbers.to_batches()
        assert (
            RowFilter.for_schema(condition, numbers.schema).mask(batch).to_pylist() == [True] * count + [False] * count
        )
    for condition in (condition_of([("n", "!=", number) for number in range(count)]), condition_of(both)):
        assert len(condition.conjuncts) == count
        assert [part.text for part in condition.conjuncts[:: count - 1]] == ["n != 0", f"n != {count - 1}"]
        assert len(pickle.loads(pickle.dumps(condition)).conjuncts) == count
        added = condition & conditions[0]
        assert added.columns == ("n",)
        assert len(added.conjuncts) == count + 1


def test_a_few_parts_are_nested_from_the_left() -> None:
    """The states of iterators have the key."""
    a, b, c, d = (("a", "==", number) for number in range(4))
    assert condition_of([a, b, c, d]).key == "((((a == 0) and (a == 1)) and (a == 2)) and (a == 3))"
    assert (condition_of([a, b]) & condition_of([c, d])).key == "(((a == 0) and (a == 1)) and ((a == 2) and (a == 3)))"


def test_conditions_are_added_one_by_one_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a number that grows with the square of the number of conditions."""
    made: list[str] = []
    joined = conditions_module._both

    def counted(function: str, first: Condition, second: Condition) -> Condition:
        made.append(function)
        return joined(function, first, second)

    monkeypatch.setattr(conditions_module, "_both", counted)
    parts = [condition_of([("a", ">", number)]) for number in range(2_000)]
    whole = parts[0]
    for part in parts[1:]:
        whole &= part
    assert [part.text for part in whole.conjuncts] == [part.text for part in parts]
    assert whole._depth <= 101
    assert len(made) <= 20 * len(parts)


def _alternating(condition: Any, column: Any, count: int) -> Any:
    for number in range(count):
        condition = condition & (column != number) if number % 2 else condition | (column == number)
    return condition


def test_levels_that_alternate_are_read_or_refused() -> None:
    n = pc.field("n")
    (batch,) = pa.table({"n": range(300)}).to_batches()
    condition = condition_of(_alternating(n >= 0, n, 250))
    assert pickle.loads(pickle.dumps(condition)).key == condition.key
    assert sum(RowFilter.for_schema(condition, batch.schema).mask(batch).to_pylist()) == 300 - 125
    for deep in (_alternating(n >= 0, n, 500), reduce(lambda part, _: ~part, range(1000), n > 0)):
        with pytest.raises(ValueError, match="more than 300 calls inside each other: write it as a list of lists"):
            condition_of(deep)
