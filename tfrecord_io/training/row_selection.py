"""Which of the rows that are read belong to a worker, and which columns of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import int64_array
from tfrecord_io.engine.contract import Array
from tfrecord_io.read.query import Query


class RowSelection:
    """The rows that fulfil the filter of a query; of these, every n-th.

    Parameters
    ----------
    query : Query
    residue, modulus : int
        The rows of this worker: without a filter by their number, with one by how many rows before fulfil it.
    resumed_at : int
        Rows with lower numbers are not delivered.
    limit : int, optional
        At most so many rows fulfil the filter, for all workers together.

    Attributes
    ----------
    filters : bool
        Whether the query has a filter.
    passed : int
        How many rows have fulfilled it.
    """

    def __init__(
        self, query: Query, residue: int = 0, modulus: int = 1, *, resumed_at: int = 0, limit: int | None = None
    ) -> None:
        self._filter, self._names = query.row_filter, query.schema.names
        self._residue, self._modulus, self._resumed_at = residue, modulus, resumed_at
        self._limit = limit
        self.filters = query.row_filter is not None
        self.passed = 0

    @property
    def is_complete(self) -> bool:
        """Whether no further row can belong to it."""
        return self._limit is not None and self.passed >= self._limit

    def of(self, numbers: Array, batch: pa.RecordBatch) -> tuple[Array, pa.RecordBatch]:
        """Numbers and rows of this worker, among those of a batch."""
        if self._filter is None:
            rows, ordinals = np.arange(len(batch)), numbers
        else:
            rows = np.flatnonzero(self._filter.mask(batch).to_numpy(zero_copy_only=False))
            rows = rows if self._limit is None else rows[: self._limit - self.passed]
            ordinals = self.passed + np.arange(len(rows))
            self.passed += len(rows)
        rows = rows[(ordinals % self._modulus == self._residue) & (numbers[rows] >= self._resumed_at)]
        if batch.schema.names != self._names:
            batch = batch.select(self._names)
        if len(rows) == len(batch):
            return numbers, batch
        return numbers[rows], batch.take(int64_array(rows))
