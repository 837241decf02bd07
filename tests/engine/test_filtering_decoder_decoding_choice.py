"""Which way of decoding is chosen by which measurements."""

from __future__ import annotations

import pytest

from tfrecord_io.engine.filtering_decoder import DecodingChoice

MIB = 1 << 20


def measured(whole: float, first: float, second: float, share: float) -> DecodingChoice:
    """A choice after a MiB of each way; seconds for each byte."""
    choice = DecodingChoice()
    choice.note_whole(MIB, whole * MIB)
    choice.note_two_steps(MIB, first * MIB, round(share * MIB), second * share * MIB)
    return choice


@pytest.mark.parametrize(
    ("share", "first", "is_chosen"),
    [(0.0, 0.5, True), (0.01, 0.5, True), (0.5, 0.4, True), (0.5, 0.6, False), (1.0, 0.1, False), (0.0, 1.0, False)],
)
def test_two_steps_are_chosen_where_they_take_less_time(share: float, first: float, is_chosen: bool) -> None:
    assert measured(1.0, first, 1.0, share).in_two_steps is is_chosen


def test_a_new_share_changes_the_choice() -> None:
    choice = measured(1.0, 0.3, 1.0, 0.0)
    assert choice.in_two_steps
    for _ in range(20):
        choice.note_two_steps(MIB, 0.3 * MIB, MIB, MIB)
    assert not choice.in_two_steps
    assert choice.share > 0.9


def test_little_data_is_decoded_in_one_go() -> None:
    choice = DecodingChoice()
    assert choice.next(MIB // 2) == (False, None)
    in_two_steps, most = choice.next(4 * MIB)
    assert not in_two_steps
    assert most is not None
    choice.note_whole(1000, 1.0)
    assert choice.next(4 * MIB) == (False, most)
    choice.note_whole(most, 1.0)
    assert choice.next(4 * MIB) == (True, MIB)


def test_copying_the_rows_that_pass_is_counted_as_time_of_one_go() -> None:
    choice = measured(1.0, 0.6, 1.0, 0.5)
    assert not choice.in_two_steps
    choice.note_selection(MIB, 0.4 * MIB)
    assert choice.in_two_steps


@pytest.mark.parametrize(("first", "most_tried"), [(0.2, 0.03), (0.8, 0.06)])
def test_a_way_that_takes_far_longer_is_tried_less_often(first: float, most_tried: float) -> None:
    choice, tried, total = measured(1.0, first, 1.0, 0.0), 0.0, 0.0
    for _ in range(2000):
        in_two_steps, most = choice.next(4 * MIB)
        size = most or 4 * MIB
        seconds = size * (first if in_two_steps else 1.0)
        if in_two_steps:
            choice.note_two_steps(size, seconds, 0, 0.0)
        else:
            choice.note_whole(size, seconds)
            tried += seconds
        total += seconds
    assert 0 < tried < most_tried * total


def test_the_other_way_is_tried_for_a_small_part_of_the_time() -> None:
    choice, tried = DecodingChoice(), 0.0
    total = 0.0
    for _ in range(2000):
        in_two_steps, most = choice.next(4 * MIB)
        size = min(4 * MIB, most or 4 * MIB)
        seconds = size / MIB * (1.5 if in_two_steps else 1.0)
        if in_two_steps:
            choice.note_two_steps(size, seconds, size, 0.0)
            tried += seconds
        else:
            choice.note_whole(size, seconds)
        total += seconds
    assert 0 < tried < 0.06 * total


def test_it_is_tried_less_often_where_most_rows_pass() -> None:
    choice = measured(1.0, 0.9, 1.0, 0.9)
    choice.note_whole(200 * MIB, 200.0 * MIB)
    assert choice.next(4 * MIB) == (True, MIB)
    choice.note_two_steps(4 * MIB, 4.0 * MIB, 4 * MIB, 4.0 * MIB)
    assert choice.next(4 * MIB) == (False, None)


def test_it_can_be_fixed() -> None:
    for fixed in (True, False):
        choice = DecodingChoice(fixed)
        choice.note_whole(100 * MIB, 1.0)
        assert choice.next(4 * MIB) == (fixed, None)
