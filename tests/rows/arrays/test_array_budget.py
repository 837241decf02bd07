"""The memory of padding and of missing rows is counted exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.base.options.limits import Expansion
from tfrecord_io.columns.arrow.output.to_numpy import Ragged
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.rows.arrays.array_budget import ArrayBudget

LENGTHS = st.lists(st.integers(0, 4) | st.integers(0, 200), min_size=1, max_size=30)


def excess(rows: Ragged, begin: int, end: int) -> int:
    """The bytes of a padded array beyond its values."""
    values, _ = rows.cut(begin, end)
    return rows.pad(begin, end, 0).nbytes - values.nbytes


def first_excess(columns: list[Ragged], row_bytes: np.ndarray, limit: int, size: int) -> int | None:
    """The row with which the arrays of a batch, the first that is too much, become too much."""
    count = len(row_bytes)

    def is_too_much(begin: int, end: int) -> bool:
        taken = sum(excess(rows, begin, end) for rows in columns)
        return taken > limit + Expansion.RATIO * row_bytes[begin:end].sum()

    for begin in range(0, count, size):
        end = min(begin + size, count)
        if is_too_much(begin, end):
            return next(row for row in range(begin, end) if is_too_much(begin, row + 1))
    return None


@given(LENGTHS, st.integers(0, 4000), st.integers(1, 40), st.sampled_from(["u1", "f4", "i8"]), st.data())
def test_padding_beyond_the_limit_is_refused_at_its_row(
    lengths: list[int], limit: int, batch_rows: int, dtype: str, data: st.DataObject
) -> None:
    count = sum(lengths)
    rows = Ragged.from_present(np.zeros(count, dtype), np.array(lengths), None)
    row_bytes = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(lengths), max_size=len(lengths))), float)
    expected = first_excess([rows], row_bytes, limit, batch_rows)
    budget = ArrayBudget(limit, len(row_bytes), lambda: row_bytes, batch_rows)
    if expected is None:
        budget.take_padding(rows, 0, "x")
        return
    with pytest.raises(RowFault) as caught:
        budget.take_padding(rows, 0, "x")
    assert (caught.value.row, caught.value.feature) == (expected, "x")


def test_tensors_are_padded_along_each_axis() -> None:
    shapes = np.array([[1, 100], [100, 1], [1, 1]])
    rows = Ragged.from_present(np.zeros(201, np.float64), shapes.prod(axis=1), None, shapes)
    needed = excess(rows, 0, 3)
    assert needed == (3 * 100 * 100 - 201) * 8
    ArrayBudget(needed, 3, lambda: np.zeros(3)).take_padding(rows, 0, "x")
    with pytest.raises(RowFault, match=f"take {excess(rows, 0, 2)} bytes") as caught:
        ArrayBudget(1000, 3, lambda: np.zeros(3)).take_padding(rows, 0, "x")
    assert caught.value.row == 1


def test_columns_share_the_budget_and_masks_count() -> None:
    rows = Ragged.from_present(np.zeros(11, np.uint8), np.array([10, 1]), None)
    budget = ArrayBudget(20, 2, lambda: np.zeros(2))
    budget.take_padding(rows, 0, "a")
    budget.take_padding(rows, 0, "b")
    with pytest.raises(RowFault) as caught:
        budget.take_padding(rows, 0, "c")
    assert caught.value.feature == "c"
    with pytest.raises(RowFault):  # 9 bytes of padding, 20 of the mask
        ArrayBudget(28, 2, lambda: np.zeros(2)).take_padding(rows, 1, "a")
    ArrayBudget(29, 2, lambda: np.zeros(2)).take_padding(rows, 1, "a")


def test_rows_without_a_value_count_as_whole_rows() -> None:
    valid = np.array([True, False, False])
    rows = Ragged.from_present(np.zeros(100, np.int64), np.array([100]), valid)
    ArrayBudget(1600, 3, lambda: np.zeros(3)).take_missing(rows, (100,), 0, "x")
    with pytest.raises(RowFault) as caught:
        ArrayBudget(1599, 3, lambda: np.zeros(3)).take_missing(rows, (100,), 0, "x")
    assert caught.value.row == 2


def test_a_last_batch_of_fewer_rows_has_no_padding_for_those_it_lacks() -> None:
    rows = Ragged.from_present(np.zeros(1, np.uint8), np.array([0, 0, 1]), None)
    ArrayBudget(0, 3, lambda: np.zeros(3), 2).take_padding(rows, 0, "x")


def test_no_rows_take_nothing() -> None:
    rows = Ragged.from_present(np.zeros(0), np.zeros(0, np.int64), None)
    ArrayBudget(0, 0, lambda: np.zeros(0), 5).take_padding(rows, 1, "x")


@given(st.dictionaries(st.integers(0, 40), st.integers(0, 60), min_size=1), st.integers(0, 2000), st.integers(1, 9))
def test_rows_keep_their_batches_where_others_are_left_out(
    lengths: dict[int, int], limit: int, batch_rows: int
) -> None:
    places = np.array(sorted(lengths))
    rows = Ragged.from_present(
        np.zeros(sum(lengths.values()), "i8"), np.array([lengths[p] for p in sorted(lengths)]), None
    )
    row_bytes = np.zeros(len(places))
    expected = None
    for batch in np.unique(places // batch_rows):
        begin, end = places.searchsorted([batch * batch_rows, (batch + 1) * batch_rows]).tolist()
        if expected is None and excess(rows, begin, end) > limit:
            expected = next(row for row in range(begin, end) if excess(rows, begin, row + 1) > limit)
    budget = ArrayBudget(limit, len(row_bytes), lambda: row_bytes, batch_rows=batch_rows, places=places)
    if expected is None:
        budget.take_padding(rows, 0, "x")
        return
    with pytest.raises(RowFault) as caught:
        budget.take_padding(rows, 0, "x")
    assert caught.value.row == expected
