"""Runs of rows, copied, gathered, padded and packed: like a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.bytes.engine.numpy_output import Runs
from tfrecord_io.bytes.engine.select import get_engine

TEXT = ["T"] if hasattr(np.dtypes, "StringDType") else []


@given(
    lengths=st.lists(st.integers(0, 5), max_size=20),
    dtype=st.sampled_from(["i8", "f4", "u1", "?", "M8[s]", "O", "c16", *TEXT]),
    inner=st.sampled_from([(), (2,), (2, 0), (3, 1)]),
    data=st.data(),
)
def test_runs_are_slices(lengths: list[int], dtype: str, inner: tuple[int, ...], data: st.DataObject) -> None:
    count = max(lengths, default=0) + 4
    values = np.arange(count * int(np.prod(inner))).reshape(count, *inner).astype("M8[s]" if "M" in dtype else dtype)
    values.flags.writeable = dtype == "f4"
    begins = [data.draw(st.integers(0, count - length)) for length in lengths]
    order = data.draw(st.permutations(range(len(lengths))))
    targets = np.zeros(len(lengths), np.int64)
    targets[order] = np.cumsum([1, *(lengths[i] + 1 for i in order)])[: len(lengths)]
    out = np.zeros((sum(lengths) + len(lengths) + 1, *inner), values.dtype)
    expected = out.copy()
    for begin, length, target in zip(begins, lengths, targets, strict=True):
        expected[target : target + length] = values[begin : begin + length]
    Runs.copy(values, np.array(begins, np.int64), np.array(lengths, np.int64), out, targets)
    assert out.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("begin", "length", "target"), [(-1, 1, 0), (0, 4, 0), (3, 1, 0), (0, -1, 0), (0, 2, 4), (0, 1, -1)]
)
def test_a_run_outside_of_the_arrays_is_refused(begin: int, length: int, target: int) -> None:
    out = np.zeros(5, np.int64)
    with pytest.raises(IndexError, match="not within"):
        Runs.copy(np.arange(3), *(np.array([n]) for n in (begin, length)), out, np.array([target]))
    assert not out.any()


@given(
    arrays=st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=1, max_size=4),
    dtype=st.sampled_from(["i8", "f4", "u1"]),
    data=st.data(),
)
def test_gathered_runs_are_rows_one_after_the_other(arrays: list[list[int]], dtype: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, 2))  # of the first row of each array
    runs = [
        (np.arange(begin + sum(own) + 1).astype(dtype) + 40 * at, np.cumsum([begin, *own]))
        for at, own in enumerate(arrays)
    ]
    targets = [(at, row) for at, own in enumerate(arrays) for row in range(len(own))]
    chosen = data.draw(st.lists(st.sampled_from(targets), max_size=50)) if targets else []
    owners, rows = np.array(chosen, np.int64).reshape(-1, 2).T.copy()
    expected = [runs[at][0][runs[at][1][row] : runs[at][1][row + 1]].tolist() for at, row in chosen]
    given_owners = None if len(runs) == 1 else owners
    offsets = Runs.chosen_offsets(runs, given_owners, rows)
    assert offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    out = np.zeros(offsets[-1], dtype)
    Runs.gather(runs, given_owners, rows, offsets, out)
    assert out.tolist() == [value for row in expected for value in row]


@pytest.mark.parametrize(
    ("owner", "row", "offsets"),
    [(2, 0, [0, 1]), (-1, 0, [0, 1]), (0, 1, [0, 1]), (1, -1, [0, 1]), (1, 0, [-1, 1]), (1, 0, [1, 0]), (1, 0, [0, 4])],
)
def test_a_gathered_row_outside_of_the_arrays_is_refused(owner: int, row: int, offsets: list[int]) -> None:
    runs = [(np.ones(3, np.int64), np.array(own)) for own in ([0, 1], offsets)]
    owners, rows, out = np.array([owner]), np.array([row]), np.zeros(2, np.int64)
    with pytest.raises(IndexError, match="not within"):
        Runs.chosen_offsets(runs, owners, rows)
    with pytest.raises(IndexError, match="not within"):
        Runs.gather(runs, owners, rows, np.array([0, 1]), out)
    assert not out.any()


@pytest.mark.parametrize("offsets", [[0, 2], [0, 0], [-1, 0], [2, 3], [3, 2]], ids=str)
def test_a_row_is_copied_only_to_where_it_has_room(offsets: list[int]) -> None:
    out = np.zeros(2, np.int64)
    with pytest.raises(IndexError, match="not within"):
        Runs.gather([Runs(np.ones(3, np.int64), np.array([0, 1]))], None, np.array([0]), np.array(offsets), out)
    assert not out.any()


@given(
    lengths=st.lists(st.integers(0, 5), max_size=20),
    dtype=st.sampled_from(["i8", "f4", "u1", "?", "M8[s]", "O", "c16", *TEXT]),
    inner=st.sampled_from([(), (2,), (2, 0), (3, 1)]),
    fill=st.sampled_from([0, 1, -1, 7]),
    more=st.integers(0, 2),
)
def test_padded_rows_are_slices_and_then_the_fill(
    lengths: list[int], dtype: str, inner: tuple[int, ...], fill: int, more: int
) -> None:
    offsets = np.cumsum([1, *lengths])
    values = np.arange((offsets[-1] + 1) * int(np.prod(inner))).reshape(-1 if 0 not in inner else len(offsets), *inner)
    if 0 in inner:
        values = np.zeros((int(offsets[-1]) + 1, *inner), np.int64)
    values = values.astype("M8[s]" if "M" in dtype else dtype)
    item = np.array(fill).astype(values.dtype)[()]
    length = max(lengths, default=0) + more
    expected = np.full((len(lengths), length, *inner), item, values.dtype)
    for row, (begin, own) in enumerate(zip(offsets[:-1], lengths, strict=True)):
        expected[row, :own] = values[begin : begin + own]
    padded = Runs(values, offsets).pad(length, item)
    assert padded.dtype == values.dtype
    assert padded.tolist() == expected.tolist()


@pytest.mark.parametrize("offsets", [[0, 3], [0, 1, 0], [-1, 1], [3, 5]], ids=str)
def test_a_row_that_is_longer_or_outside_of_the_values_is_refused(offsets: list[int]) -> None:
    with pytest.raises(IndexError, match="not within"):
        Runs(np.arange(4), np.array(offsets)).pad(2, 0)


@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=30),
    bins=st.integers(1, 4),
    columns=st.integers(1, 2),
)
def test_rows_go_to_the_first_bin_with_room(rows: list[tuple[int, int]], bins: int, columns: int) -> None:
    capacity = [5, 3][:columns]
    lengths = np.array([row[:columns] for row in rows], np.int64).reshape(-1, columns)
    bin_of_row, begins = get_engine().first_fit(lengths, np.array(capacity), bins)
    room: list[list[int]] = [list(capacity) for _ in range(bins)]
    expected, new = [], []
    for row, own in enumerate(lengths.tolist()):
        fitting = [at for at in range(bins) if all(n <= left for n, left in zip(own, room[at], strict=True))]
        if not fitting:
            new.append(row)
            room = [list(capacity) for _ in range(bins)]
            fitting = [0]
        room[fitting[0]] = [left - n for n, left in zip(own, room[fitting[0]], strict=True)]
        expected.append(fitting[0])
    assert bin_of_row.tolist() == expected
    assert begins == new


@given(
    buffers=st.lists(st.tuples(st.integers(1, 6), st.lists(st.floats(0, 1, exclude_max=True), max_size=12)), max_size=4)
)
def test_a_draw_from_a_buffer_lets_the_next_row_in(buffers: list[tuple[int, list[float]]]) -> None:
    draws, sizes = [np.array(numbers, np.float64) for _, numbers in buffers], np.array([s for s, _ in buffers], int)
    drawn, slots = get_engine().exchange(draws, sizes)
    first, following = 0, int(sizes.sum())
    expected, left = list[int](), list[int]()
    for size, numbers in buffers:
        held = list(range(first, first + size))
        for number in numbers:
            at = min(int(number * size), size - 1)
            expected.append(held[at])
            held[at] = following
            following += 1
        left += held
        first += size
    assert (drawn.tolist(), slots.tolist()) == (expected, left)
    assert drawn.dtype == slots.dtype == np.int64


@pytest.mark.parametrize(("numbers", "size"), [([0.5], 0), ([1.0], 3), ([0.5, -0.1], 3), ([float("nan")], 3)])
def test_a_draw_that_is_not_within_its_buffer_is_refused(numbers: list[float], size: int) -> None:
    with pytest.raises(IndexError, match="not within its buffer"):
        get_engine().exchange([np.array(numbers)], np.array([size]))
