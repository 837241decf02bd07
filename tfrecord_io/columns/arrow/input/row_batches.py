"""Group rows of Python values, as parsers of other files yield them, into record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from tfrecord_io.base import LIMITS

_BATCH_ROWS = 4096


def row_batches(rows: Iterable[tuple[Sequence[Any], int]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Group rows, given with their sizes in bytes, into batches: a row that reaches the limit ends its batch.

    >>> schema = pa.schema({"n": pa.int64()})
    >>> [batch["n"].to_pylist() for batch in row_batches([([1], 1), ([2], 64 << 20), ([3], 1)], schema)]
    [[1, 2], [3]]
    """
    batch: list[Sequence[Any]] = []
    size = 0
    for row, row_bytes in rows:
        batch.append(row)
        size += row_bytes
        if size >= LIMITS.file_batch_bytes or len(batch) == _BATCH_ROWS:
            yield _batch(batch, schema)
            batch, size = [], 0
    if batch:
        yield _batch(batch, schema)


def _batch(rows: list[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
