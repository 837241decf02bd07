"""`row_views`: the rows of an array as views, like slices."""

from __future__ import annotations

import sys
import weakref

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.bytes.engine.numpy_output import Runs


@given(
    lengths=st.lists(st.integers(0, 5), max_size=20),
    dtype=st.sampled_from(["i8", "f4", "u1", "f8"]),
    begin=st.integers(0, 3),
    present=st.none() | st.integers(0, 2**20 - 1),
    writable=st.booleans(),
)
def test_views_are_slices(lengths: list[int], dtype: str, begin: int, present: int | None, writable: bool) -> None:
    offsets = np.cumsum([begin, *lengths])
    values = np.arange(offsets[-1] + 2).astype(dtype)
    values.flags.writeable = writable
    valid = None if present is None else np.array([present >> i & 1 for i in range(len(lengths))], np.bool_)
    rows = Runs(values, offsets).views(valid)
    assert rows.dtype == object
    assert rows.shape == (len(lengths),)
    for i, row in enumerate(rows):
        if valid is not None and not valid[i]:
            assert row is None
            continue
        expected = values[offsets[i] : offsets[i + 1]]
        assert (row.dtype, row.shape, row.strides) == (expected.dtype, expected.shape, expected.strides)
        assert not len(row) or row.ctypes.data == expected.ctypes.data
        assert row.base is expected.base is values
        assert {name: row.flags[name] for name in ("C", "F", "W", "A", "O")} == {
            name: expected.flags[name] for name in ("C", "F", "W", "A", "O")
        }


def test_views_keep_the_memory_and_release_it() -> None:
    values = np.arange(1000)
    alive, references = weakref.ref(values), sys.getrefcount(values.dtype)
    rows = Runs(values, np.arange(0, 1001, 10)).views(None)
    del values
    assert alive() is not None
    assert [row[0] for row in rows] == list(range(0, 1000, 10))
    dtype = rows[0].dtype
    del rows
    assert alive() is None
    assert abs(sys.getrefcount(dtype) - references) < 50
