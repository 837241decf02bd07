"""The columns of numbers of several batches, or with nulls, as arrays in few large blocks of memory."""

from __future__ import annotations

from collections.abc import Sequence

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


def number_columns(batches: Sequence[pa.RecordBatch], threads: int) -> dict[int, NumberColumn]:
    """The columns by their number in the schema; without those of one batch without nulls, which need no copy."""
    types = batches[0].schema.types
    if any(type_.num_fields for type_ in types):  # columns of structs are numbered otherwise
        return {}
    rows, memory, found = sum(map(len, batches)), Blocks(), {}
    for index, type_ in enumerate(types):
        dtype = number_dtype(type_)
        if dtype is None:
            continue
        arrays = [batch.column(index) for batch in batches]
        has_nulls = any(array.null_count for array in arrays)
        if len(arrays) > 1:
            values = memory.take(rows, dtype)
        elif has_nulls:
            values = writable(number_items(arrays[0], dtype))
        else:
            continue
        found[index] = NumberColumn(index, values, memory.take(rows, np.dtype(np.bool_)) if has_nulls else None)
    get_engine().join_numbers(batches, list(found.values()), threads)
    return found


class Blocks:
    """Memory for arrays of medium size, in huge pages: the first use of small pages takes longer than filling them."""

    def __init__(self) -> None:
        self._block = np.empty(0, np.uint8)
        self._asked = 0

    def take(self, count: int, dtype: np.dtype) -> Array:
        """An array of undefined values."""
        size = count * dtype.itemsize
        self._asked += size
        if size >= _OWN_BYTES or self._asked < _OWN_BYTES:  # little memory in all is not worth a block
            return np.empty(count, dtype)
        if size > len(self._block):
            self._block = np.empty(_BLOCK_BYTES, np.uint8)
        values, self._block = self._block[:size].view(dtype), self._block[-(-size // _ALIGNMENT) * _ALIGNMENT :]
        return values
