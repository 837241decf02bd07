"""Group rows of Python values by limited size: those of parsers into record batches, dicts into lists.

Tests: tests/columns/arrow/input/test_batch_source.py for dicts, and the doctest here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS
from tfrecord_io.columns.arrow.input.array_likes import class_name, is_single

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


def join_rows(items: Iterator[Any]) -> Iterator[Any]:
    """Join dicts of one row each to lists of limited size with the same columns; other items stay as they are."""
    for first in items:
        if isinstance(first, Mapping) and any(map(is_single, first.values())):
            yield from join_dicts(chain([first], items))
            continue
        if isinstance(first, Mapping) and first and all(isinstance(value, list | tuple) for value in first.values()):
            raise TypeError(
                "a dict of lists may be a row of lists or a table of columns: "
                "pass pyarrow.Table.from_pylist(rows) for rows, or a pandas.DataFrame(columns) for each table"
            )
        yield first


def join_dicts(items: Iterable[Any]) -> Iterator[list[Mapping[Any, Any]]]:
    """Dicts, one for each row, in lists of limited size, with the same columns."""
    rows, size, names = list[Any](), 0, dict[Any, None]()
    for row in items:
        if not isinstance(row, Mapping):
            raise TypeError(f"row {len(rows)} after the first dict is {class_name(row)}: expected dicts, one a row")
        rows.append(row)
        size += sum(map(_value_bytes, row.values()))
        if len(rows) >= LIMITS.batch_rows or size >= LIMITS.batch_bytes:
            yield [names | rows[0], *rows[1:]]
            names = names or dict.fromkeys(chain.from_iterable(rows))
            rows, size = [], 0
    if rows:
        yield [names | rows[0], *rows[1:]]


def _value_bytes(value: Any) -> int:
    """The bytes of a value of a row, about."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, str | bytes):
        return len(value)
    items = list(value.values()) if isinstance(value, Mapping) else value
    if not isinstance(items, list | tuple):
        return 8
    is_nested = bool(items) and isinstance(items[0], Mapping | list | tuple | np.ndarray | str | bytes)
    return sum(map(_value_bytes, items)) if is_nested or isinstance(value, Mapping) else 8 * len(items)
