"""Rows of Python values as record batches of limited size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

_BATCH_BYTES, _BATCH_ROWS = 32 << 20, 4096


def row_batches(rows: Iterable[tuple[Sequence[Any], int]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches of rows, each with its size in bytes: a batch ends at the row that makes it large enough.

    >>> schema = pa.schema({"n": pa.int64()})
    >>> [batch["n"].to_pylist() for batch in row_batches([([1], 1), ([2], 64 << 20), ([3], 1)], schema)]
    [[1, 2], [3]]
    """
    batch: list[Sequence[Any]] = []
    size = 0
    for row, row_bytes in rows:
        batch.append(row)
        size += row_bytes
        if size >= _BATCH_BYTES or len(batch) == _BATCH_ROWS:
            yield _batch(batch, schema)
            batch, size = [], 0
    if batch:
        yield _batch(batch, schema)


def _batch(rows: list[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
