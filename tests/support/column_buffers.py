"""Columns as a decoder would give them, from Python values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrecord_io.engine.contract import ColumnBuffers
from tfrecord_io.format.kinds import Kind, Layout

DTYPES = {Kind.INT64: np.int64, Kind.FLOAT: np.float32}


def scalars(kind: Kind, values: list[Any], name: str = "x") -> ColumnBuffers:
    """None is a null row; bytes, or numbers."""
    column = ColumnBuffers(name, kind, Layout.SCALAR, len(values), first_row=_first(values, lambda v: True))
    _set_nulls(column, values)
    _set_values(column, [(b"" if kind is Kind.BYTES else 0) if v is None else v for v in values])
    if column.null_count == column.rows and column.rows:
        return nothing(column.rows, name)
    return column


def lists(kind: Kind, rows: list[Any], name: str = "x") -> ColumnBuffers:
    """None is a null row."""
    column = ColumnBuffers(name, kind, Layout.LIST, len(rows), first_row=_first(rows, lambda r: True))
    column.list_row = _first(rows, lambda r: len(r) != 1)
    _set_nulls(column, rows)
    column.offsets = _offsets([len(r or []) for r in rows])
    _set_values(column, [v for r in rows for v in r or []])
    return column


def feature_list(steps: ColumnBuffers, counts: list[int | None], name: str = "x") -> ColumnBuffers:
    """`counts[i]` steps in row i."""
    column = ColumnBuffers(name, steps.kind, Layout.LIST, len(counts), steps=steps)
    _set_nulls(column, counts)
    column.offsets = _offsets([c or 0 for c in counts])
    return column


def nothing(rows: int, name: str = "x") -> ColumnBuffers:
    return ColumnBuffers(name, Kind.NONE, Layout.NULL, rows, null_count=rows)


def _first(rows: list[Any], holds: Any) -> int:
    return next((i for i, row in enumerate(rows) if row is not None and holds(row)), -1)


def _set_nulls(column: ColumnBuffers, rows: list[Any]) -> None:
    valid = np.array([row is not None for row in rows], bool)
    column.null_count = int((~valid).sum())
    column.validity = np.packbits(valid, bitorder="little") if column.null_count else None


def _set_values(column: ColumnBuffers, values: list[Any]) -> None:
    if column.kind is not Kind.BYTES:
        column.values = np.array(values, DTYPES[column.kind])
        return
    column.value_offsets = _offsets([len(v) for v in values])
    column.values = np.frombuffer(b"".join(values), np.uint8)
    text = [_is_text(v) for v in values]
    column.text = all(text)


def _is_text(value: bytes) -> bool:
    try:
        return value.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _offsets(counts: list[int]) -> Any:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
