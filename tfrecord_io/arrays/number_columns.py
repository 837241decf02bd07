"""The columns of numbers of several batches, or with nulls, as arrays in few large blocks of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import writable
from tfrecord_io.arrow.output.to_numpy import number_dtype, number_items
from tfrecord_io.engine.contract import Array, NumberColumn
from tfrecord_io.engine.select import get_engine
from tfrecord_io.options import MIB

_BLOCK_BYTES = 16 * MIB  # of arrays that share memory; a larger block would keep too much for one that is kept
_OWN_BYTES = 4 * MIB  # from this size on NumPy asks for huge pages
_ALIGNMENT = 64


def number_columns(
    batches: Sequence[pa.RecordBatch], columns: Sequence[Sequence[pa.Array]], threads: int
) -> dict[int, NumberColumn]:
    """The columns by their number in the schema; without those of one batch without nulls, which need no copy.

    `columns` are those of each batch.
    """
    rows, found = sum(map(len, batches)), {}
    dtypes = [(index, number_dtype(type_)) for index, type_ in enumerate(batches[0].schema.types)]
    numbers = [(index, dtype) for index, dtype in dtypes if dtype is not None]
    memory = Blocks(rows * sum(dtype.itemsize + 1 for _, dtype in numbers))
    for index, dtype in numbers:
        arrays = [own[index] for own in columns]
        has_nulls = any(array.null_count for array in arrays)
        if len(arrays) > 1:
            values = memory.take(rows, dtype)
        elif has_nulls:
            values = writable(number_items(arrays[0], dtype))
        else:
            continue
        found[index] = NumberColumn(index, values, memory.take(rows, np.dtype(np.bool_)) if has_nulls else None)
    if found:
        get_engine().join_numbers(batches, list(found.values()), threads)
    return found


class Blocks:
    """Memory for arrays of medium size, in huge pages: the first use of small pages takes longer than filling them.

    `total` is the size of all arrays, about.
    """

    def __init__(self, total: int) -> None:
        self._size = min(total, _BLOCK_BYTES) if total >= _OWN_BYTES else 0  # little memory is not worth a block
        self._block = np.empty(0, np.uint8)

    def take(self, count: int, dtype: np.dtype[Any]) -> Array:
        """An array of undefined values."""
        size = count * dtype.itemsize
        if size >= min(_OWN_BYTES, self._size):
            return np.empty(count, dtype)
        if size > len(self._block):
            self._block = np.empty(self._size, np.uint8)
        values, self._block = self._block[:size].view(dtype), self._block[-(-size // _ALIGNMENT) * _ALIGNMENT :]
        return values
