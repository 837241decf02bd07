"""The result of checking one file: its problems, and how many of its records are intact.

`ProblemList` collects the problems while a file is checked; `FileCheck` is what `verify` returns.

Tests: tests/read/verifying/test_file_check_result.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tfrecord_io.bytes import RecordCounts
from tfrecord_io.columns import json_value
from tfrecord_io.errors import FeatureTypeError, TFRecordError
from tfrecord_io.read.chunks.skipped_region import SkippedRegion

MOST_PROBLEMS = 100  # that are kept for each file
_OF_RECORDS = frozenset({"frames", "records", "compression", "images"})  # parts of which a problem is a region


@dataclass(frozen=True, slots=True)
class Problem:
    """Fault of a file.

    Attributes
    ----------
    part : str
        Part of the file: "frames", "compression", "records" (payloads that are not valid, or contradict the schema),
        "schema" (the embedded one), "manifest", "index", "storage" or "images".
    error : TFRecordError or OSError
        As reading would raise it.
    end : int or None
        Where the intact bytes of the uncompressed file go on, after damaged records: one or several.
    """

    part: str
    error: TFRecordError | OSError
    end: int | None = None

    @property
    def record(self) -> int | None:
        """Index of the record in its file; of several damaged ones the first."""
        return getattr(self.error, "record", None)

    @property
    def offset(self) -> int | None:
        """First byte of the record, in the uncompressed file."""
        return getattr(self.error, "offset", None)

    @property
    def reason(self) -> str:
        """The fault, in a clause."""
        return getattr(self.error, "reason", None) or str(self.error)

    def to_dict(self) -> dict[str, Any]:
        names = ("part", "record", "offset", "end", "reason")
        return {**{name: getattr(self, name) for name in names}, "error": json_value(self.error)}


@dataclass(frozen=True, slots=True)
class FileCheck:
    """The result of `verify` for one file.

    Attributes
    ----------
    path : str
    records, bytes : int
        Number of records before the first damage, and their uncompressed bytes.
    record_type : str
        As which records were parsed; "bytes": only framing was checked.
    error : TFRecordError or OSError, optional
        Of the first problem.
    intact, intact_bytes : int
        Number of all records without a problem, those after damage included, and their uncompressed bytes. Of a file
        whose records are not Examples: those with intact frames.
    compression : str or None
        None: not compressed.
    problems : tuple of Problem
        The first 100; of a dataset with ``on_error="collect"``, all.
    problem_count : int
        The number of all.
    size : int or None
        Bytes of the file as it is stored, compressed or not; None: unknown, as of a pipe.
    images, bad_images : int or None
        Number of the images that were checked, and of those with a problem, which are in intact records; None: images
        were not checked.
    """

    path: str
    records: int
    bytes: int
    record_type: str
    error: TFRecordError | OSError | None = None
    intact: int = 0
    intact_bytes: int = 0
    compression: str | None = None
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    size: int | None = None
    images: int | None = None
    bad_images: int | None = None

    @property
    def status(self) -> str:
        """ "good", "damaged", "mixed types", "bad images", "not Examples" or "unreadable".

        "mixed types": all records are intact, but a feature has values of several feature types. "bad images": the file
        is good, but for its images. "not Examples": all records are intact, and none is an Example or SequenceExample.
        "unreadable": the storage failed.
        """
        if self.problem_count == 0:
            return "good"
        if all(problem.part == "images" for problem in self.problems):
            return "bad images"
        if all(isinstance(problem.error, FeatureTypeError) for problem in self.problems):
            return "mixed types"
        if all(RecordCounts.is_no_examples(problem.error) for problem in self.problems):
            return "not Examples"
        return "unreadable" if any(problem.part == "storage" for problem in self.problems) else "damaged"

    @property
    def regions(self) -> list[SkippedRegion]:
        """The damaged regions of the file: the problems of its records, which name one or a byte."""
        return [
            SkippedRegion(
                self.path,
                begin=each.offset,
                end=each.end,
                reason=each.reason,
                records_before=each.record or 0,
                error=type(each.error).__name__,
            )
            for each in self.problems
            if each.part in _OF_RECORDS and not (each.record is None and each.offset is None)
        ]

    def with_problem(self, problem: Problem) -> FileCheck:
        """Return this result with one more problem."""
        return self.with_problems([problem], 1)

    def with_problems(self, problems: Sequence[Problem], count: int, *, keeps_all: bool = False) -> FileCheck:
        """Return this result with the first of `count` more problems; 100 are kept together, unless `keeps_all`."""
        room = len(problems) if keeps_all else max(0, MOST_PROBLEMS - len(self.problems))
        return replace(
            self,
            error=self.error or (problems[0].error if problems else None),
            problems=(*self.problems, *problems[:room]),
            problem_count=self.problem_count + count,
        )

    def to_dict(self) -> dict[str, Any]:
        names = ["path", "status", "size", "records", "bytes", "intact", "intact_bytes", "compression", "record_type"]
        names += [] if self.images is None else ["images", "bad_images"]
        problems = [problem.to_dict() for problem in self.problems]
        values = {name: getattr(self, name) for name in names}
        counted = {"problem_count": self.problem_count, "problems": problems}
        return {**values, "error": json_value(self.error), **counted}


@dataclass(slots=True)
class ProblemList:
    """Problems of a file, in the order in which they are found.

    Of many problems the first are kept, unless `keeps_all`: 100 of records and 100 of all else, as all of the records
    may become one by `join_records`.
    """

    keeps_all: bool = False
    kept: list[Problem] = field(default_factory=list)
    count: int = 0  # of all, also of those that are not kept

    def add(self, part: str, error: TFRecordError | OSError, end: int | None = None) -> None:
        """Add a problem; consecutive records with damaged frames are one problem."""
        last = self.kept[-1] if self.kept else None
        if last is not None and part == last.part == "frames" and last.end == getattr(error, "offset", None):
            self.kept[-1] = replace(last, end=end)
            return
        self.count += 1
        if self.keeps_all or self._number_of_alike(part) < MOST_PROBLEMS:
            self.kept.append(Problem(part, error, end))

    def first_of_records(self) -> Problem:
        """The first problem of a record whose frame is intact."""
        return next(problem for problem in self.kept if problem.part == "records")

    def join_records(self, error: TFRecordError, count: int) -> None:
        """Replace the `count` problems of records by one."""
        self.kept = [Problem("records", error), *(problem for problem in self.kept if problem.part != "records")]
        self.count += 1 - count

    def listed_problems(self) -> tuple[Problem, ...]:
        """The problems that a result lists."""
        return tuple(self.kept if self.keeps_all else self.kept[:MOST_PROBLEMS])

    def _number_of_alike(self, part: str) -> int:
        return sum((problem.part == "records") == (part == "records") for problem in self.kept)
