"""Source, tasks and sink for Daft; this module imports daft, and is imported on first use.

Tests: tests/plugins/engines/test_daft.py.
"""

from __future__ import annotations

import asyncio
import datetime
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partialmethod
from typing import Any

import pyarrow as pa
from daft.expressions.visitor import PredicateVisitor
from daft.io import DataSink
from daft.io.sink import WriteResult
from daft.io.source import DataSource, DataSourceTask
from daft.recordbatch import MicroPartition, RecordBatch
from daft.schema import Schema
from pyarrow import types as t

from tfrecord_io.errors import SchemaError
from tfrecord_io.kit import Condition, DistributedWriter, Operator, Scan, WrittenPart, condition_of, empty_batch
from tfrecord_io.typing import WriteReport

# ---- reading


def _schema_of(scan: Scan) -> Schema:
    return Schema.from_pyarrow_schema(pa.schema([(field.name, _plain(field.type)) for field in scan.schema]))


class TFRecordTask(DataSourceTask):  # type: ignore[misc]
    """Reads a part of a query, in threads: the tasks of a process share one event loop."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan

    @property
    def schema(self) -> Schema:
        return _schema_of(self._scan)

    async def read(self) -> AsyncIterator[RecordBatch]:
        with await asyncio.to_thread(self._scan.open) as batches:
            while (batch := await asyncio.to_thread(next, batches, None)) is not None:
                columns = [_convert_column(column) for column in batch.columns]
                yield RecordBatch.from_arrow_table(pa.table(columns, batch.schema.names))


class TFRecordSource(DataSource):  # type: ignore[misc]
    """A query, which is narrowed and split when Daft runs its own."""

    def __init__(self, scan: Scan, max_bytes: int) -> None:
        self._scan, self._max_bytes = scan, max_bytes

    @property
    def name(self) -> str:
        return "TFRecord"

    @property
    def schema(self) -> Schema:
        return _schema_of(self._scan)

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[DataSourceTask]:
        scan, limit = _apply_pushdowns(self._scan, pushdowns)
        for part in scan.tasks(None, self._max_bytes):
            yield TFRecordTask(part if limit is None else part.limit_rows(limit))


def _apply_pushdowns(scan: Scan, pushdowns: Any) -> tuple[Scan, int | None]:
    """The columns and rows of a query that Daft needs, and how many rows it needs of each part.

    Daft applies all conditions again, for which it needs their columns, and counts the rows of a limit after them.
    """
    needed = set(scan.schema.names if pushdowns.columns is None else pushdowns.columns)
    limit = pushdowns.limit
    if pushdowns.filters is not None:
        needed.update(pushdowns.filter_required_column_names())
        condition, limit = _translate(pushdowns.filters, scan.schema), None
        scan = scan if condition is None else scan.filter(condition)
    names = [name for name in scan.schema.names if name in needed]  # Daft takes columns by their position
    return scan.only(names or scan.schema.names[:1]), limit  # it counts the rows of a column


def _plain(type: pa.DataType) -> pa.DataType:
    """The type that Daft has for a type; of lists, that of their values."""
    if t.is_dictionary(type):
        return _plain(type.value_type)
    if isinstance(type, pa.BaseExtensionType) and not isinstance(type, pa.FixedShapeTensorType):
        return _plain(type.storage_type)
    if t.is_list(type) or t.is_large_list(type):
        return pa.list_(_plain(type.value_type))
    return pa.time64("us") if t.is_time32(type) else type


def _convert_column(column: pa.Array) -> pa.Array:
    plain = _plain(column.type)
    if plain == column.type:
        return column
    return (column.storage if isinstance(column, pa.ExtensionArray) else column).cast(plain)


# ---- conditions


class _Untranslated(Exception):
    """A condition that is left to Daft."""


def _translate(condition: Any, schema: pa.Schema) -> Condition | None:
    """Translate a condition of Daft to one that keeps at least the same rows; None if there is no translation."""
    try:
        return condition_of(_Translator(schema).visit(condition), schema)
    except (_Untranslated, SchemaError):
        return None


def _kind(type: pa.DataType) -> str:
    """The kind of values that compare alike with a column in Daft and in pyarrow; "" if none do.

    In Daft, NaN is equal to itself and greater than all numbers.
    """
    kinds = {
        "bool": t.is_boolean(type),
        "int": t.is_integer(type) and not t.is_uint64(type),
        "str": t.is_string(type),
        "bytes": t.is_binary(type),
        "date": t.is_date32(type),
    }
    return next((kind for kind, matches in kinds.items() if matches), "")


class _Junctions(PredicateVisitor[Condition]):  # type: ignore[misc]
    """Translates and, or, not and operations of a column and values of its kind; null is as in SQL on both sides."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._negated = False

    def visit_and(self, left: Any, right: Any) -> Condition:
        parts = []
        for side in (left, right):
            with suppress(_Untranslated):
                parts.append(self.visit(side))
        if not parts or (self._negated and len(parts) < 2):
            raise _Untranslated
        return Condition.all_of(parts)

    def visit_or(self, left: Any, right: Any) -> Condition:
        return Condition.any_of([self.visit(left), self.visit(right)])

    def visit_not(self, expr: Any) -> Condition:
        before, self._negated = self._negated, True
        inner = self.visit(expr)
        self._negated = before
        return Condition("call", "invert", arguments=(inner,))

    def visit_col(self, name: str) -> Condition:
        if not t.is_boolean(self._schema.field(name).type):
            raise _Untranslated
        return Condition("field", path=(name,))

    def _operation(self, operator: Operator, column: Any, *operands: Any) -> Condition:
        others = [operand for operand in operands if operand.is_column()]
        mirror = operator.mirror()
        if not column.is_column() and others and mirror is not None:
            return self._operation(mirror, *operands, column)
        kinds = set(map(self._kind_of, (column, *operands))) if operands else set()
        if not column.is_column() or len(kinds) > 1 or "" in kinds or (others and mirror is None):
            raise _Untranslated
        if others:
            fields = (Condition("field", path=(side.column_name(),)) for side in (column, *others))
            return Condition("call", operator.function, arguments=tuple(fields))
        values = [operand.as_py() for operand in operands]
        operand = values if operator.takes_pair else next(iter(values), None)
        return condition_of([(column.column_name(), operator.symbol, operand)])

    def _kind_of(self, expr: Any) -> str:
        if expr.is_column():
            return _kind(self._schema.field(expr.column_name()).type)
        if not expr.is_literal():
            return ""
        value = expr.as_py()
        is_exact = type(value) in (bool, str, bytes, datetime.date) or (type(value) is int and abs(value) < 1 << 63)
        return type(value).__name__ if is_exact else ""

    def _leave(self, *parts: Any) -> Condition:
        raise _Untranslated

    visit_lit = visit_alias = visit_cast = visit_function = visit_coalesce = visit_is_in = _leave


_OPERATIONS = {
    f"visit_{operator.daft}": partialmethod(_Junctions._operation, operator)
    for operator in Operator.ALL
    if operator.daft is not None
}
_Translator: Any = type("_Translator", (_Junctions,), _OPERATIONS)


# ---- writing


class TFRecordSink(DataSink[WrittenPart]):  # type: ignore[misc]
    """Stages a shard in each write task, and publishes those whose results Daft returns."""

    report: WriteReport  # once they are published

    def __init__(self, writer: DistributedWriter, schema: pa.Schema) -> None:
        self._writer, self._schema = writer, schema

    def name(self) -> str:
        return "TFRecord"

    def schema(self) -> Schema:
        return self._result(0, 0).schema()

    def write(self, micropartitions: Iterator[MicroPartition]) -> Iterator[WriteResult[WrittenPart]]:
        task = secrets.randbelow(100_000)  # Daft numbers no tasks; it makes the names of staged files rarer
        part = self._writer.write_part(task, (partition.to_arrow() for partition in micropartitions))
        yield WriteResult(part, part.bytes, part.records)

    def finalize(self, write_results: list[WriteResult[WrittenPart]]) -> MicroPartition:
        parts = [replace(written.result, task=task) for task, written in enumerate(write_results)]
        self.report = self._writer.commit(parts or [self._writer.write_part(0, [empty_batch(self._schema)])])
        return self._result(self.report.records, self.report.bytes)

    def _result(self, records: int, size: int) -> MicroPartition:
        return MicroPartition.from_pydict({"records": [records], "bytes": [size]})
