"""Numbered rows, from which a shuffle buffer is gathered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.buffers import int64_array
from tfrecord_io.engine.contract import Array


@dataclass(slots=True)
class RowPool:
    """Rows and their numbers.

    Attributes
    ----------
    numbers : int64 ndarray
        Number of each row in the order of the epoch's files.
    rows : pyarrow.RecordBatch
    row_bytes : float64 ndarray
        The bytes that each row was read from: the mean of its batch.
    """

    numbers: Array
    rows: pa.RecordBatch
    row_bytes: Array

    @classmethod
    def concat(cls, pools: list[RowPool]) -> RowPool:
        """The rows of one or more pools."""
        if len(pools) == 1:
            return pools[0]
        batches = [_gatherable(pool.rows) for pool in pools]
        numbers = np.concatenate([pool.numbers for pool in pools])
        return cls(numbers, pa.concat_batches(batches), np.concatenate([pool.row_bytes for pool in pools]))

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, indices: Array) -> RowPool:
        """The rows at `indices`, in that order."""
        rows = _gatherable(self.rows).take(int64_array(indices))
        return RowPool(self.numbers[indices], rows, self.row_bytes[indices])

    def slice(self, begin: int, end: int | None = None) -> RowPool:
        """The rows [begin, end), as views."""
        numbers = self.numbers[begin:end]
        return RowPool(numbers, self.rows.slice(begin, len(numbers)), self.row_bytes[begin:end])


def _gatherable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with categories decoded and 64-bit offsets: joined batches may exceed what 32-bit offsets address."""
    types = [_wide(field.type) for field in batch.schema]
    if types == batch.schema.types:
        return batch
    schema = pa.schema([field.with_type(type_) for field, type_ in zip(batch.schema, types, strict=True)])
    columns = [
        array.dictionary_decode().cast(type_) if t.is_dictionary(array.type) else array.cast(type_)
        for array, type_ in zip(batch.columns, types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _wide(type_: pa.DataType) -> pa.DataType:
    if t.is_dictionary(type_):
        return _wide(type_.value_type)
    if t.is_string(type_):
        return pa.large_string()
    if t.is_binary(type_):
        return pa.large_binary()
    if t.is_list(type_):
        return pa.large_list(type_.value_field)
    return type_
