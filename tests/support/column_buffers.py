"""Columns as a decoder gives them, made of Python values, and record batches built from them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes.engine.contract import ColumnBuffers
from tfrecord_io.bytes.format.feature_types import Kind, Layout
from tfrecord_io.columns.arrow.decode.batch_builder import BatchBuilder
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.schema.column_features import set_encoding

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


# ---- batches of them, and values of each declared type

INT, FLOAT, BYTES = Kind.INT64, Kind.FLOAT, Kind.BYTES


def built(columns: list[ColumnBuffers], schema: Any, **options: Any) -> pa.RecordBatch:
    batch, fault = BatchBuilder(schema, **options).batch({c.name: c for c in columns}, columns[0].rows)
    assert fault is None, fault
    batch.validate(full=True)
    return batch


def one(column: ColumnBuffers, type_: pa.DataType, **options: Any) -> pa.Array:
    """The column x of the given type."""
    return built([column], pa.schema([("x", type_)]), **options).column(0)


def raw(type_: pa.DataType) -> pa.Schema:
    return pa.schema([set_encoding(pa.field("x", type_), "raw")])


def faulty(column: ColumnBuffers, schema: Any, **options: Any) -> tuple[pa.RecordBatch, RowFault]:
    if isinstance(schema, pa.DataType):
        schema = pa.schema([("x", schema)])
    batch, fault = BatchBuilder(schema, **options).batch({column.name: column}, column.rows)
    assert fault is not None
    assert batch.num_rows == fault.row
    batch.validate(full=True)
    return batch, fault


# ---- declared types

DAY = 86_400_000
GOOD = [
    (pa.bool_(), [True, None, False], [1, None, 0]),
    (pa.int8(), [-128, None, 127], [-128, None, 127]),
    (pa.uint8(), [0, 255], [0, 255]),
    (pa.int16(), [-(2**15), 2**15 - 1], [-(2**15), 2**15 - 1]),
    (pa.uint32(), [0, 2**32 - 1, None], [0, 2**32 - 1, None]),
    (pa.int32(), [-(2**31)], [-(2**31)]),
    (pa.uint64(), [2**63 - 1, None], [2**63 - 1, None]),
    (pa.date32(), [dt.date(1970, 1, 2), None], [1, None]),
    (pa.date64(), [dt.date(1970, 1, 2), None], [DAY, None]),
    (pa.time32("s"), [dt.time(0, 0, 5)], [5]),
    (pa.time64("us"), [dt.time(0, 0, 0, 5), None], [5, None]),
    (pa.timestamp("s", "UTC"), [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)], [1]),
    (pa.duration("ms"), [dt.timedelta(milliseconds=7)], [7]),
    (pa.float16(), [1.5, None], [1.5, None]),
    (pa.float64(), [1.5, None, float("inf")], [1.5, None, float("inf")]),
    (pa.string(), ["ä", None, ""], ["ä".encode(), None, b""]),
    (pa.large_string(), ["ä"], ["ä".encode()]),
    (pa.large_binary(), [b"\xff"], [b"\xff"]),
    (pa.binary(2), [b"ab", None, b"cd"], [b"ab", None, b"cd"]),
    (pa.decimal128(5, 2), [Decimal("1.50"), None, Decimal("-2.00")], [b"1.50", None, b"-2"]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", None, "b", "a"], [b"a", None, b"b", b"a"]),
    (pa.dictionary(pa.int16(), pa.int32(), ordered=True), [7, None, 5], [7, None, 5]),
]
