"""Concatenating large arrays on several threads: NumPy copies without the GIL."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tfrecord_io.background import WorkerPool
from tfrecord_io.engine.contract import Array
from tfrecord_io.options import MIB, cpu_count

_LEAST_BYTES = 8 * MIB  # fewer are copied in about the time that it takes to start threads


def concatenated(arrays: Sequence[Array], threads: int = 1) -> Array:
    """The arrays one after the other, in new memory, by at most as many threads as there are processors.

    Examples
    --------
    >>> concatenated([np.arange(2), np.arange(3)])
    array([0, 1, 0, 1, 2])
    """
    count = min(threads, cpu_count(), len(arrays))
    same = {(array.dtype, array.shape[1:]) for array in arrays}
    size = sum(array.nbytes for array in arrays)
    if count < 2 or len(same) > 1 or size < _LEAST_BYTES or arrays[0].dtype.hasobject or arrays[0].dtype.kind == "T":
        return np.concatenate(arrays)
    ends = np.cumsum([0, *map(len, arrays)]).tolist()
    whole = np.empty((ends[-1], *arrays[0].shape[1:]), arrays[0].dtype)
    with WorkerPool(count, "join") as pool:
        for _ in pool.map(np.copyto, [whole[begin:end] for begin, end in pairwise(ends)], arrays):
            pass
    return whole
