"""Convert columns to plain Python rows, for a test to state expected values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tfrecord_io.bytes.engine.contract import ColumnBuffers, Engine, Plan
from tfrecord_io.bytes.format.feature_types import Kind, Layout

LABELS = {Kind.BYTES: "bytes", Kind.FLOAT: "float", Kind.INT64: "int64"}


def decode(engine: Engine, data: bytes, plan: Plan | None = None) -> list[ColumnBuffers]:
    """All records of `data`, which must be whole and good."""
    decoder = engine.decoder(plan or Plan())
    progress = decoder.feed(data)
    assert progress.fault is None, progress.fault
    assert progress.consumed == len(data)
    return list(decoder.take())


def is_valid(column: ColumnBuffers, row: int) -> bool:
    if column.layout == Layout.NULL:
        return False
    return column.validity is None or bool(column.validity[row // 8] >> (row % 8) & 1)


def values_of(column: ColumnBuffers, row: int) -> list[Any] | None:
    """The values of one row: bytes, np.float32 or int; None for null."""
    if not is_valid(column, row):
        return None
    first, last = (column.offsets[row], column.offsets[row + 1]) if column.layout == Layout.LIST else (row, row + 1)
    if column.kind == Kind.BYTES:
        cuts = column.value_offsets[first : last + 1]
        return [column.values[a:b].tobytes() for a, b in pairwise(cuts)]
    return [np.float32(v) if column.kind == Kind.FLOAT else int(v) for v in column.values[first:last]]


def cell(column: ColumnBuffers, row: int) -> tuple[str, list[Any]] | None:
    values = values_of(column, row)
    return None if values is None else (LABELS[column.kind], values)


def records(columns: list[ColumnBuffers]) -> list[dict[str, Any]]:
    """Per record: name → (kind, values), a list of them for a feature list, None for null."""
    rows = columns[0].rows if columns else 0
    return [{column.name: row_of(column, row) for column in columns} for row in range(rows)]


def row_of(column: ColumnBuffers, row: int) -> Any:
    if column.steps is None:
        return cell(column, row)
    if not is_valid(column, row):
        return None
    return [cell(column.steps, step) for step in range(column.offsets[row], column.offsets[row + 1])]
