"""Reports as plain text."""

from __future__ import annotations

from tfrecord_io.display import plain_table


def test_columns_line_up_and_empty_ones_are_left_out() -> None:
    assert plain_table(["a", "empty", "bb"], [["1", "", "x"], ["200", "", "y"]]) == "a    bb\n1    x\n200  y"


def test_no_rows_leaves_the_headings() -> None:
    assert plain_table(["a", "b"], []) == "a  b"
