"""Tests of read/verifying/file_check_result.py: problems that were made by hand."""

from __future__ import annotations

import pytest

import tfrecord_io as tfr
from tfrecord_io.bytes.engine.contract import RecordCounts
from tfrecord_io.read.verifying.file_check_result import MOST_PROBLEMS, FileCheck, Problem, ProblemList


def damage(record: int, offset: int) -> tfr.errors.CorruptRecordError:
    return tfr.errors.CorruptRecordError("damaged", path="a", record=record, offset=offset)


def test_damaged_records_in_a_row_are_one_problem() -> None:
    problems = ProblemList()
    problems.add("frames", damage(1, 10), 20)
    problems.add("frames", damage(2, 20), 30)
    problems.add("frames", damage(4, 50), 60)
    assert [(problem.record, problem.offset, problem.end) for problem in problems.kept] == [(1, 10, 30), (4, 50, 60)]
    assert problems.count == 2


@pytest.mark.parametrize("keeps_all", [False, True])
def test_the_first_problems_are_kept(keeps_all: bool) -> None:
    problems = ProblemList(keeps_all=keeps_all)
    for record in range(MOST_PROBLEMS + 5):
        problems.add("records", damage(record, 100 * record))
    problems.add("index", damage(0, 0))
    assert problems.count == MOST_PROBLEMS + 6
    assert len(problems.kept) == MOST_PROBLEMS + (6 if keeps_all else 1)
    assert problems.kept[-1].part == "index"
    assert len(problems.listed_problems()) == MOST_PROBLEMS + (6 if keeps_all else 0)


def test_problems_of_records_become_one() -> None:
    problems = ProblemList()
    for record in range(3):
        problems.add("records", damage(record, 10 * record))
    problems.add("index", damage(0, 0))
    assert problems.first_of_records().record == 0
    problems.join_records(RecordCounts.no_examples("a", "no messages"), 3)
    assert [problem.part for problem in problems.listed_problems()] == ["records", "index"]
    assert problems.count == 2


@pytest.mark.parametrize(
    ("problems", "status"),
    [
        ([], "good"),
        ([Problem("images", damage(0, 0))], "bad images"),
        ([Problem("records", tfr.errors.FeatureTypeError("x"))], "mixed types"),
        ([Problem("records", RecordCounts.no_examples("a", "no messages"))], "not Examples"),
        ([Problem("storage", OSError("gone"))], "unreadable"),
        ([Problem("images", damage(0, 0)), Problem("frames", damage(1, 10))], "damaged"),
    ],
)
def test_the_status_of_a_file(problems: list[Problem], status: str) -> None:
    result = FileCheck("a", 0, 0, "example").with_problems(problems, len(problems))
    assert result.status == status
    assert result.error is (problems[0].error if problems else None)
