"""Columns of numbers: which are joined, and the memory that they get."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tfrecord_io.rows.arrays import stacked_or_ragged as module
from tfrecord_io.rows.arrays.stacked_or_ragged import Blocks, number_columns


def test_only_numbers_that_need_it_are_copied() -> None:
    columns = {"plain": [1, 2], "null": [1.5, None], "text": ["a", None], "times": pa.array([1, 2], pa.timestamp("us"))}
    batch = pa.record_batch(columns)
    own = number_columns([batch], [batch.columns], 1)
    assert list(own) == [0, 1]
    assert [own[i].values.ctypes.data for i in own] == [batch.column(i).buffers()[1].address for i in own]
    assert own[0].missing is None
    assert own[1].missing is not None
    assert own[1].missing.tolist() == [False, True]
    joined = number_columns([batch, batch.slice(1)], [batch.columns, batch.slice(1).columns], 1)
    assert list(joined) == [0, 1]
    assert joined[0].values.tolist() == [1, 2, 2]
    assert joined[0].missing is None
    assert joined[1].values.tolist() == [1.5, 0, 0]
    assert joined[1].missing is not None
    assert joined[1].missing.tolist() == [False, True, True]


def test_lists_beside_numbers_are_left_to_others() -> None:
    batch = pa.record_batch({"lists": [[1], [2]], "x": [1, None]})
    assert list(number_columns([batch, batch], [batch.columns] * 2, 1)) == [1]


def test_arrays_of_medium_size_share_memory() -> None:
    blocks = Blocks(2**30)
    sizes = [module._OWN_BYTES, 8, 1000, module._OWN_BYTES // 8, 17, module._OWN_BYTES - 8] * 6
    arrays = [blocks.take(size // 8, np.dtype(np.int64)) for size in sizes]
    for number, array in enumerate(arrays):
        assert array.flags.writeable
        array[:] = number
    assert all((array == number).all() for number, array in enumerate(arrays))
    assert [len(array) for array in arrays] == [size // 8 for size in sizes]
    assert all(array.ctypes.data % 8 == 0 for array in arrays)
    small = Blocks(module._OWN_BYTES - 1).take(100, np.dtype(np.int64))
    assert small.base is None
