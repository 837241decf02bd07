"""Which way of decoding is chosen by the share of the bytes that pass."""

from __future__ import annotations

import pytest

from tfrecord_io.read.chunks.filtering_decoder import DecodingChoice

MIB = 1 << 20


@pytest.mark.parametrize(("share", "is_chosen"), [(0.0, True), (0.9, True), (0.99, False), (1.0, False)])
def test_two_steps_are_chosen_unless_nearly_all_bytes_pass(share: float, is_chosen: bool) -> None:
    choice = DecodingChoice()
    assert not choice.in_two_steps
    choice.share = share
    assert choice.in_two_steps is is_chosen


@pytest.mark.parametrize(("of_columns", "is_chosen"), [(0.0, False), (0.03, False), (0.3, True), (3.0, True)])
def test_one_go_is_chosen_where_the_columns_have_few_of_the_bytes(of_columns: float, is_chosen: bool) -> None:
    choice = DecodingChoice()
    choice.share, choice.of_columns = 0.1, of_columns
    assert choice.in_two_steps is is_chosen


def test_little_data_is_decoded_in_one_go_until_the_share_is_known() -> None:
    choice = DecodingChoice()
    assert choice.next(MIB // 8) == (False, None)
    choice.share = 0.1
    assert choice.next(MIB // 8) == (True, None)


def test_the_share_is_found_at_the_beginning_and_again_from_time_to_time() -> None:
    choice = DecodingChoice()
    assert [choice.next(4 * MIB) for _ in range(2)] == [(True, MIB // 4)] * 2
    choice.share = 1.0
    ways = [choice.next(4 * MIB) for _ in range(2, 24)]
    assert [at for at, (in_two_steps, _) in enumerate(ways, 2) if in_two_steps] == [8, 16]
    assert {most for _, most in ways} == {None, MIB // 4}
    choice.share = 0.0
    assert choice.next(4 * MIB) == (True, None)
