"""Tests of read/verifying/file_check.py: the totals of one file; files as a whole are in test_verify.py."""

from __future__ import annotations

from tfrecord_io.read.verifying.file_check import RecordTotals


def test_the_first_problem_ends_the_count_before_it() -> None:
    totals = RecordTotals()
    totals.add_intact(3, 300)
    totals.begin_problem(3, 300, is_other=False)
    totals.begin_problem(5, 500, is_other=False)
    assert totals.before_problem == totals.before_damage == (3, 300)


def test_records_that_are_no_examples_are_intact() -> None:
    totals = RecordTotals()
    for record in range(2):
        totals.begin_problem(record, 100 * record, is_other=True)
        totals.add_other(100)
    assert (totals.before_problem, totals.before_damage) == ((0, 0), None)
    totals.begin_problem(2, 200, is_other=False)
    totals.take_others_as_intact()
    assert (totals.intact, totals.intact_bytes, totals.before_problem) == (2, 200, (2, 200))
