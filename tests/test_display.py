"""Values and tables as plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.display import plain_table, ranges, short

HOSTILE = "\x1b[31mred\x1b[0m\x07\u202e"


@pytest.mark.fault(58)
@pytest.mark.parametrize("value", [HOSTILE, HOSTILE.encode(), [HOSTILE], {HOSTILE: HOSTILE}, [[HOSTILE]]])
def test_terminal_escapes_are_escaped(value: object) -> None:
    assert short(value, 200).isprintable()


@pytest.mark.parametrize("value", ["x" * 10_000, b"\0" * 10_000, list(range(10_000)), ["x" * 1000] * 1000])
def test_long_values_are_shortened(value: object) -> None:
    assert len(short(value)) < 120


def test_values_as_text() -> None:
    assert short(None) == "null"
    assert short(True) == "True"
    assert short(1 / 3) == "0.333333"
    assert short(1.7e9 + 0.25) == "1700000000"  # a mean of times: 1.7e+09 would be rounded to two digits
    assert short(-1.7e18) == "-1700000000000000000"
    assert short(1e300) == "1e+300"
    assert short(1.25e-7) == "1.25e-07"
    assert short(b"cat") == "b'cat'"
    assert short(b"\xff\xd8") == "2 bytes ffd8"
    assert short([1, None]) == "[1, null]"
    assert ranges(1, 9) == "1 … 9"
    assert ranges(0, 0) == "0"


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20).map(float))
def test_numbers_are_shown_with_six_digits(value: float) -> None:
    assert float(short(value)) == pytest.approx(value, rel=1e-5)


def test_columns_are_aligned_and_empty_ones_omitted() -> None:
    assert plain_table(["a", "empty", "bb"], [["1", "", "x"], ["200", "", "y"]]) == "a    bb\n1    x\n200  y"


def test_table_without_rows_has_headings() -> None:
    assert plain_table(["a", "b"], []) == "a  b"
