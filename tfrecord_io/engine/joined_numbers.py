"""Columns of numbers of several batches as one array each, joined by the kernel on several threads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tfrecord_io._native import _kernel
from tfrecord_io.background import WorkerPool
from tfrecord_io.engine.contract import Array, NumberColumn
from tfrecord_io.options import MIB, cpu_count

_LEAST_SHARED_BYTES = 4 * MIB  # fewer are copied in about the time that it takes to start a thread


def join_numbers(batches: Sequence[Any], columns: Sequence[NumberColumn], threads: int = 1) -> None:
    """See `tfrecord_io.engine.contract.Engine.join_numbers`."""
    arrays = [batch.__arrow_c_array__()[1] for batch in batches]
    fields = np.array([_fields(column) for column in columns], np.int64).reshape(-1, 4)
    sizes = np.cumsum([column.values.nbytes for column in columns])
    count = min(threads, cpu_count(), len(columns)) if len(columns) and sizes[-1] >= _LEAST_SHARED_BYTES else 1
    ends = np.searchsorted(sizes, sizes[-1] * np.arange(1, count) // count).tolist() if count > 1 else []
    with WorkerPool(count - 1, "numbers") as pool:
        parts = np.split(fields, ends)
        tasks = [pool.submit(partial(_kernel.join_numbers, arrays, part)) for part in parts[1:]]
        _kernel.join_numbers(arrays, parts[0])
        for task in tasks:
            task.result()


def _fields(column: NumberColumn) -> tuple[int, int, int, int]:
    """Those of JoinedNumbers in the kernel."""
    return column.number, column.values.itemsize, _address(column.values), _address(column.missing)


def _address(array: Array | None) -> int:
    return 0 if array is None else array.__array_interface__["data"][0]
