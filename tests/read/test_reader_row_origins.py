"""The origin of a row: its file and record index."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.read.report import RowOrigins


@given(runs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 4)), max_size=12))
def test_each_row_is_the_record_that_was_added(runs: list[tuple[int, int, int]]) -> None:
    origins, expected = RowOrigins(), []
    for file, first, rows in runs:
        path = "aabb"[file]  # a path may be given twice
        origins.add(path, first, rows, file=file)
        expected += [(file, (path, first + i)) for i in range(rows)]
    assert origins.rows == len(expected)
    assert [(origins.place(row)[0], origins.locate(row)) for row in range(len(expected))] == expected
    for begin in range(len(expected)):
        end = len(expected) - begin // 2
        got = [(file, at) for file, first, rows in origins.runs(begin, end) for at in range(first, first + rows)]
        assert got == [(file, record) for file, (_, record) in expected[begin:end]]


def test_consecutive_records_take_one_entry() -> None:
    origins = RowOrigins()
    for first in range(0, 10_000, 10):
        origins.add("a", first, 10, file=0)
    assert len(origins._runs) == 1
    assert origins.locate(9_999) == ("a", 9_999)
