"""Tests of rows/training/order.py: the arithmetic of the order of an epoch, against lists."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rounds import rounds
from tfrecord_io.rows.training.order import Order, Seat

sizes = st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=3)


def rotation(own: list[int]) -> list[tuple[int, int]]:
    """Lane and row of each position, where each lane gives a row in turn until it ends."""
    lanes = [[(lane, row) for row in range(count)] for lane, count in enumerate(own)]
    return [place for places in itertools.zip_longest(*lanes) for place in places if place is not None]


@settings(max_examples=rounds(300))
@given(own=sizes, turn=st.integers(0, 2), begin=st.integers(0, 30), length=st.integers(0, 30))
def test_places_of_counted_lanes(own: list[list[int]], turn: int, begin: int, length: int) -> None:
    turn %= len(own)
    order, expected = Order(3, len(own), 4, np.array(own)), rotation(own[turn])
    begin, end = min(begin, len(expected)), min(begin + length, len(expected))
    lanes, rows = order.places(turn, begin, end)
    assert list(zip(lanes.tolist(), rows.tolist(), strict=True)) == expected[begin:end]
    assert order.taken_rows(turn, begin).tolist() == [
        sum(1 for at, _ in expected[:begin] if at == lane) for lane in range(3)
    ]
    for position, (lane, row) in enumerate(expected):
        assert order.position_of(turn, lane, row) == position
    assert order.rows_of(turn) == len(expected)


@settings(max_examples=rounds(100))
@given(lanes=st.integers(1, 9), begin=st.integers(0, 99), length=st.integers(0, 30))
def test_places_of_lanes_without_counts(lanes: int, begin: int, length: int) -> None:
    order = Order(lanes, 1, 4)
    places = [(position % lanes, position // lanes) for position in range(begin + length)]
    assert (
        list(zip(*(array.tolist() for array in order.places(0, begin, begin + length)), strict=True)) == places[begin:]
    )
    assert order.taken_rows(0, begin).tolist() == [
        sum(1 for at, _ in places[:begin] if at == lane) for lane in range(lanes)
    ]
    assert [order.position_of(0, lane, row) for lane, row in places] == list(range(begin + length))
    assert order.rows is None
    assert order.whole_steps(order.begin(0), 4) is None


@settings(max_examples=rounds(300))
@given(
    lanes=st.integers(1, 5), turns=st.integers(1, 4), size=st.integers(1, 9), rows=st.integers(0, 99),
    taken=st.integers(0, 9), other=st.integers(1, 9),
)  # fmt: skip
def test_one_step_of_an_epoch_is_not_full(lanes: int, turns: int, size: int, rows: int, taken: int, other: int) -> None:
    """Also steps of another size take each position once, with one that is not full for each turn."""
    order = Order.from_row_count(lanes, turns, size, rows)
    assert order.rows == rows
    position, steps = order.begin(0), list[int]()
    while (step := order.next_step(position, size)) is not None and len(steps) < taken:
        steps.append(step[1])
        position = order.after(position, *step)
    left = rows - sum(steps)
    whole = order.whole_steps(position, size)
    assert whole == left // size
    assert order.after_steps(position, size, whole).delivered == sum(steps) + whole * size
    further = list[int]()
    while (step := order.next_step(position, other)) is not None:
        further.append(step[1])
        position = order.after(position, *step)
    assert sum(further) == left
    assert sum(count < other for count in further) <= turns


@pytest.mark.parametrize("ranks", range(1, 7))
@pytest.mark.parametrize("size", range(15))
def test_ranks_share_a_step(ranks: int, size: int) -> None:
    seats = [Seat(rank, ranks) for rank in range(ranks)]
    runs = [seat.run(size) for seat in seats]
    assert [row for begin, end in runs for row in range(begin, end)] == list(range(size))
    for uneven in ("drop", "pad"):
        of_last = [range(*seat.run_of_last(size, uneven)) for seat in seats]
        assert {len(run) for run in of_last} == {size // ranks if uneven == "drop" else -(-size // ranks)}
        rows = {row for run in of_last for row in run}
        assert rows == set(range(size - (size % ranks if uneven == "drop" else 0)))
