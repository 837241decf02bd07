"""The order of a shuffle buffer equals that of a plain implementation, and its draws are uniform."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rounds import COMPLETE, rounds
from tfrecord_io.rows.training.shuffle_buffer import drain, exchange, permutation, random_numbers
from training_batches import plain_buffer

law = settings(max_examples=rounds(200))


@law
@given(records=st.integers(0, 60), size=st.integers(1, 20), seed=st.integers(0, 99))
def test_order_is_that_of_a_plain_buffer(records: int, size: int, seed: int) -> None:
    numbers = random_numbers(seed, 0, 0).random(records)
    full = max(0, records - size)
    full_size = min(size, max(records, 1))
    places, buffer = exchange(numbers[:full], full_size)
    rest = [int(buffer[at]) for at in drain(numbers[full:], min(size, records))[0]]
    assert [*places.tolist(), *rest] == plain_buffer(numbers.tolist(), records, size)


@law
@given(size=st.integers(1, 12), count=st.integers(0, 40), cut=st.integers(0, 40), seed=st.integers(0, 99))
def test_draws_in_two_parts_are_the_draws_in_one(size: int, count: int, cut: int, seed: int) -> None:
    cut = min(cut, count)
    numbers = random_numbers(seed, 1, 2).random(count)
    whole, buffer = exchange(numbers, size)
    first, between = exchange(numbers[:cut], size)
    second, after = exchange(numbers[cut:], size)
    names = np.concatenate(
        [between, np.arange(size + cut, size + count)]
    )  # the records in the slots after the first part
    assert [*first.tolist(), *names[second].tolist()] == whole.tolist()
    assert names[after].tolist() == buffer.tolist()


@law
@given(size=st.integers(0, 30), taken=st.integers(0, 30), seed=st.integers(0, 99))
def test_drained_and_remaining_records_are_all(size: int, taken: int, seed: int) -> None:
    numbers = random_numbers(seed, 0, 0).random(size)
    taken = min(taken, size)
    given_, left = drain(numbers[:taken], size)
    assert sorted([*given_, *left]) == list(range(size))
    assert given_ + [left[at] for at in drain(numbers[taken:], len(left))[0]] == drain(numbers, size)[0]


def test_large_buffers_are_drawn_from_the_same_way() -> None:
    numbers = random_numbers(0, 0, 0).random(3000)
    size = 2**16 + 5
    drawn, _ = exchange(numbers, size)
    assert drawn.tolist() == plain_buffer([*numbers, *[0.0] * size], size + 3000, size)[:3000]


@given(begin=st.integers(0, 50), seed=st.integers(0, 2**64))
def test_random_numbers_can_start_anywhere(begin: int, seed: int) -> None:
    assert (
        random_numbers(seed, 3, 1, begin).random(5).tolist()
        == random_numbers(seed, 3, 1).random(begin + 5)[begin:].tolist()
    )


def test_epochs_and_workers_draw_differently() -> None:
    firsts = {
        random_numbers(seed, epoch, worker).random(1)[0]
        for seed in range(3)
        for epoch in range(3)
        for worker in range(3)
    }
    assert len(firsts) == 27
    assert permutation(100, 0, 0) != permutation(100, 0, 1) != list(range(100))
    assert sorted(permutation(100, 7, 3)) == list(range(100))


@pytest.mark.parametrize(("records", "size"), [(6, 6), (12, 3)])
def test_draws_are_uniform(records: int, size: int) -> None:
    """Chi-square: each draw takes each slot of the buffer equally often."""
    trials = 6000 if COMPLETE else 1500
    counts = np.zeros((records, size), np.int64)
    for seed in range(trials):
        numbers = random_numbers(seed, 0, 0).random(records)
        sizes = [size] * (records - size) + list(range(size, 0, -1))
        for draw, (number, left) in enumerate(zip(numbers.tolist(), sizes, strict=True)):
            counts[draw, int(number * left)] += 1
    for draw, left in enumerate([size] * (records - size) + list(range(size, 0, -1))):
        expected = trials / left
        statistic = float(((counts[draw, :left] - expected) ** 2 / expected).sum())
        assert statistic < left - 1 + 4 * np.sqrt(2 * max(left - 1, 1)) + 4  # four standard deviations of chi-square


def test_every_order_of_three_records_is_equally_frequent() -> None:
    counts: dict[tuple[int, ...], int] = {}
    trials = 6000 if COMPLETE else 1500
    for seed in range(trials):
        order = tuple(drain(random_numbers(seed, 0, 0).random(3), 3)[0])
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    expected = trials / 6
    statistic = sum((n - expected) ** 2 / expected for n in counts.values())
    assert statistic < 20.5  # chi-square with 5 degrees of freedom, p = 0.001
