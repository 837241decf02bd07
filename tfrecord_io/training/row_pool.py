"""Rows that wait to be given: of several batches one, from which rows are gathered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.engine.contract import Array
from tfrecord_io.training.epochs import Numbered


@dataclass(slots=True)
class Pool:
    """Rows and their numbers.

    Attributes
    ----------
    numbers : int64 ndarray
        Of each row, in the order of the epoch's files.
    rows : pyarrow.RecordBatch
    """

    numbers: Array
    rows: pa.RecordBatch

    @classmethod
    def of(cls, parts: list[Numbered]) -> Pool:
        """The rows of several batches, of which there is one at least."""
        if len(parts) == 1:
            return cls(*parts[0])
        batches = [_gatherable(batch) for _, batch in parts]
        return cls(np.concatenate([numbers for numbers, _ in parts]), pa.concat_batches(batches))

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, places: Array) -> Pool:
        """The rows in these places, in this order."""
        return Pool(self.numbers[places], _gatherable(self.rows).take(pa.array(places)))

    def cut(self, begin: int, end: int) -> Pool:
        """The rows [begin, end), as they lie."""
        return Pool(self.numbers[begin:end], self.rows.slice(begin, end - begin))


def _gatherable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with categories as their values, and 64-bit offsets: many batches in one may have more bytes than 32 bits count."""
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
