"""Rows of their own shapes, and the forms they take."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.columns.arrow.output.to_numpy import Ragged

rows = st.lists(st.lists(st.integers(-9, 9), max_size=4), max_size=8)


def ragged(cells: list[list[int]]) -> Ragged:
    counts = np.array([len(cell) for cell in cells], np.int64)
    return Ragged.from_present(np.array([x for cell in cells for x in cell], np.int64), counts, None)


@given(cells=rows, data=st.data())
def test_every_form_holds_the_rows_that_are_cut(cells: list[list[int]], data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(cells)))
    end = data.draw(st.integers(begin, len(cells)))
    found, expected = ragged(cells), cells[begin:end]
    assert [cell.tolist() for cell in found.objects(begin, end)] == expected
    values, offsets = found.cut(begin, end)
    assert [values[a:b].tolist() for a, b in pairwise(offsets)] == expected
    padded = found.pad(begin, end, 99)
    longest = max(map(len, expected), default=0)
    assert padded.tolist() == [cell + [99] * (longest - len(cell)) for cell in expected]


@given(cells=rows)
def test_rows_are_stacked_where_all_have_one_shape(cells: list[list[int]]) -> None:
    shape = ragged(cells).common_shape()
    assert (shape is None) == (len({len(cell) for cell in cells}) != 1)
    if shape is not None:
        assert ragged(cells).stack(shape).tolist() == cells


def test_missing_rows_do_not_count() -> None:
    found = Ragged.from_present(np.arange(4), np.array([2, 2]), np.array([True, False, True]))
    assert found.lengths.tolist() == [2, 0, 2]
    assert found.common_shape() == (2,)
    assert found.stack((2,)).tolist() == [[0, 1], [0, 0], [2, 3]]
    assert Ragged.from_present(np.arange(0), np.array([], np.int64), np.array([False])).common_shape() is None


@given(
    parts=st.lists(st.lists(st.none() | st.lists(st.integers(-9, 9), max_size=2), max_size=4), min_size=1, max_size=4)
)
def test_several_are_what_they_are_joined(parts: list[list[list[int] | None]]) -> None:
    made = []
    for cells in parts:
        valid = np.array([cell is not None for cell in cells], np.bool_)
        values = np.array([x for cell in cells for x in cell or []], np.int64)
        values.flags.writeable = False
        counts = np.array([len(cell) for cell in cells if cell is not None], np.int64)
        made.append(Ragged.from_present(values, counts, None if valid.all() else valid))
    whole = Ragged.concatenate(made)
    assert Ragged.shape_of_all(made) == whole.common_shape()
    objects = Ragged.joined_objects(made)
    assert [cell is None or cell.flags.writeable for cell in objects] == [True] * len(whole)
    expected = [None if cell is None else cell.tolist() for cell in whole.objects(0, len(whole))]
    assert [None if cell is None else cell.tolist() for cell in objects] == expected
