"""Limit the memory that arrays take beyond the values in them: for padding, and for rows of missing lists.

A record with one long list makes the rows of all others as long. Beyond their values, the arrays of a batch may take
`Limits.expansion_bytes`, and `Expansion.RATIO` bytes more for each byte that the rows of the batch were read from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfrecord_io.base import Expansion, cached_property
from tfrecord_io.bytes import Array
from tfrecord_io.columns import Ragged, RowFault


class ArrayBudget:
    """Counts the bytes that the arrays of each batch take beyond their values; `limit` is `Limits.expansion_bytes`.

    A batch has `batch_rows` rows, or all. `row_bytes` returns the bytes that each of the `rows` was read from. Where
    others were left out, `places` has the position of each row among all, ascending: these are divided into batches.
    """

    def __init__(
        self,
        limit: int,
        rows: int,
        row_bytes: Callable[[], Array],
        batch_rows: int | None = None,
        places: Array | None = None,
    ) -> None:
        self._limit, self._places = limit, places
        self._rows = rows if places is None or not len(places) else int(places[-1]) + 1
        self._batch_rows = max(1, min(batch_rows or self._rows, self._rows))
        self._row_bytes = row_bytes
        # The bytes taken by all columns so far, [batches, rows of a batch]: if the batch ended with that row.
        self._taken: Array | None = None  # None, as most columns take nothing

    @cached_property
    def _read(self) -> Array:
        return self._running(self._row_bytes())

    def take_padding(self, rows: Ragged, mask_bytes: int, feature: str, length: int | None = None) -> None:
        """Count the padding of a column; RowFault at the row with which it is too much.

        `mask_bytes` is what a mask takes for each value. Where the call states the `length` of rows, the padding of
        their other axes counts.
        """
        if not self._rows:
            return
        extents, values = rows.extents.astype(np.float64), np.diff(rows.offsets)
        size = value_bytes(rows.values)
        if length is not None:
            values = values / np.maximum(extents[:, 0], 1) * length
            extents[:, 0] = length
        longest = np.maximum.accumulate(self._group_by_batch(extents), axis=1)
        counts = self._running(np.ones(len(rows)))
        padded_values = counts * longest.prod(axis=2)
        extra = padded_values * (size + mask_bytes) - self._running(values) * size
        extra += counts * longest[:, :, 0] * rows.step_bytes
        self._take(extra, feature, "padded to the longest of them")

    def take_missing(self, rows: Ragged, shape: tuple[int, ...], mask_bytes: int, feature: str) -> None:
        """Count the rows of a stacked column that have no value, as `take_padding`."""
        if rows.valid is not None and self._rows:
            row_bytes = float(np.prod(shape, dtype=np.float64)) * (value_bytes(rows.values) + mask_bytes)
            self._take(self._running(~rows.valid) * row_bytes, feature, "with zeros for those without a value")

    def _take(self, extra: Array, feature: str, description: str) -> None:
        self._taken = extra if self._taken is None else self._taken + extra
        room = self._limit + Expansion.RATIO * self._read
        if not (self._taken[:, -1] > room[:, -1]).any():
            return
        batch = int((self._taken[:, -1] > room[:, -1]).argmax())
        row = int((self._taken[batch] > room[batch]).argmax())
        expansion = Expansion(self._limit, int(self._read[batch, row]))
        size = int(self._taken[batch, row])
        reason = f"the arrays of {row + 1} rows, {description}, take {size} bytes more than their values"
        advice = f'{expansion.advice(size)}, or pass ragged="offsets" or "object"'
        advice_cli = expansion.advice(size)
        row += batch * self._batch_rows
        row = row if self._places is None else int(self._places.searchsorted(row))
        reason = expansion.excess(reason)
        raise RowFault(
            row,
            reason,
            feature=feature,
            expected=expansion.room,
            got=size,
            hint=advice,
            hint_cli=advice_cli,
            of_memory=True,
        )

    def _group_by_batch(self, rows: Array) -> Array:
        """Rows as [batches, rows of a batch, ...]; the last batch is filled up with zeros."""
        batches = -(-self._rows // self._batch_rows)
        filled = np.zeros((batches * self._batch_rows, *rows.shape[1:]), rows.dtype)
        places: Array | slice = slice(len(rows)) if self._places is None else self._places
        filled[places] = rows
        return filled.reshape(batches, self._batch_rows, *rows.shape[1:])

    def _running(self, sizes: Array) -> Array:
        """The sum of the rows of each batch up to each row."""
        return np.cumsum(self._group_by_batch(sizes.astype(np.float64)), axis=1)


def value_bytes(values: Array) -> int:
    """The bytes of one item along the first axis."""
    inner: Any = np.prod(values.shape[1:], dtype=np.int64)
    return int(inner) * values.dtype.itemsize
