"""Whatever holds a table, as a stream of record batches of one schema."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from tfrecord_io.arrow.arrays import table_of_arrays
from tfrecord_io.arrow.frames import table_of_frame
from tfrecord_io.errors import EncodeError, SchemaError, printable
from tfrecord_io.schema.embedded import embedded_schema, equal_types

BATCH_ROWS = 65_536
BATCH_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class BatchSource:
    """A schema and its batches, which can be iterated over once.

    Attributes
    ----------
    schema : pyarrow.Schema
        With its metadata, pandas' among it.
    batches : iterator of pyarrow.RecordBatch
        Of at most 65,536 rows and, where rows are alike, 64 MiB. Errors of the input pass through.
    rows : int or None
        Number of rows, where it is known beforehand.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    rows: int | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches


def open_input(data: Any, *, index: bool | None = None, nan_to_null: bool = True) -> BatchSource:
    """Open anything that holds a table.

    Parameters
    ----------
    data : DataFrame, Table, RecordBatch, RecordBatchReader, reader of ours, mapping of arrays, or iterable of those
        Also anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``. An iterable is asked for its first item at once.
    index : bool, optional
        For DataFrames, as in ``pandas.DataFrame.to_parquet``: None keeps a RangeIndex as metadata and any other as columns,
        True keeps all as columns, False none.
    nan_to_null : bool
        For DataFrames: NaN in a float column is a missing value. Arrow's and NumPy's NaN are always values.

    Raises
    ------
    EncodeError
        A column has no Arrow form, for example an object column of mixed types, or a name comes twice.
    SchemaError
        While iterating: a batch of an iterable has another schema than the first.
    TypeError
        `data` holds no table.

    Examples
    --------
    >>> open_input({"x": [1, 2, None]}).schema.types
    [DataType(int64)]
    """
    source = _open(data, index, nan_to_null)
    try:
        names = Counter(source.schema.names)
    except UnicodeDecodeError as error:
        raise EncodeError("a column's name is not UTF-8", advice="rename it") from error
    for name, count in names.items():
        if count > 1:
            raise EncodeError(f"{count} columns have this name", feature=name, advice="rename them")
    return source


def _open(data: Any, index: bool | None, nan_to_null: bool) -> BatchSource:
    if _is_frame(data):
        return _of_table(table_of_frame(data, index, nan_to_null))
    if isinstance(data, Mapping):
        return _of_table(table_of_arrays(data, nan_to_null))
    if isinstance(data, pa.Table):
        return _of_table(data)
    if isinstance(data, pa.RecordBatch):
        return BatchSource(data.schema, _cut([data]), data.num_rows)
    if isinstance(getattr(data, "schema", None), pa.Schema) and hasattr(data, "read_next_batch"):
        return BatchSource(data.schema, _cut(data))  # iterated, not exported: so its errors keep their class
    if hasattr(data, "__arrow_c_stream__"):
        return _of_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        try:
            batch = pa.record_batch(data)
        except pa.ArrowInvalid as error:
            raise _no_table(data, "array") from error
        return BatchSource(batch.schema, _cut([batch]), batch.num_rows)
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, bytearray, memoryview)):
        return _of_iterable(iter(data), index, nan_to_null)
    what = f"{type(data).__module__}.{type(data).__qualname__}"
    raise TypeError(f"{what} holds no table: pass a DataFrame, Arrow data, a mapping of arrays or an iterable of record batches")


def _is_frame(data: Any) -> bool:
    pandas = sys.modules.get("pandas")  # not imported here: without it nothing is a DataFrame
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _of_table(table: pa.Table) -> BatchSource:
    """One dictionary for all chunks, where Arrow can make one: the embedded schema then holds all categories."""
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):  # it would need larger indices, or is nested
        table = table.unify_dictionaries()
    return BatchSource(table.schema, _cut(table.to_batches()), table.num_rows)


def _of_stream(data: Any) -> BatchSource:
    try:
        reader = pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid as error:
        raise _no_table(data, "stream") from error
    return BatchSource(reader.schema, _cut(reader))


def _no_table(data: Any, form: str) -> TypeError:
    what = f"{type(data).__module__}.{type(data).__qualname__}"
    return TypeError(f"{what} gives an Arrow {form}, but not of a table: pass a table with this as a column")


def _of_iterable(items: Iterator[Any], index: bool | None, nan_to_null: bool) -> BatchSource:
    """Nothing at all is a table without rows and columns."""
    first = next((_open(item, index, nan_to_null) for item in items), None)
    if first is None:
        return BatchSource(pa.schema([]), iter(()), 0)
    schema = first.schema

    def following() -> Iterator[pa.RecordBatch]:
        for number, item in enumerate(items, 1):
            yield from fitting(_open(item, index, nan_to_null), schema, f"item {number} of the input")

    return BatchSource(schema, chain(first.batches, following()))


def fitting(source: BatchSource, first: pa.Schema, who: str) -> BatchSource:
    """`source`, which `who` gave, behind data of the schema `first`.

    Offsets of another width and views make no difference, and a column of nulls fits any type: pandas cannot say which one
    it is.

    Raises
    ------
    SchemaError
        It has other columns or types.
    """
    found = source.schema
    if equal_types(found, first):
        return source
    if found.names != first.names:
        odd = sorted(set(found.names) ^ set(first.names))
        what = f"differs in '{printable(odd[0])}'" if odd else "has them in another order"
        raise SchemaError(f"{who} {what}: its columns must be those that came first")
    for a, b in zip(found, first, strict=True):
        if not pa.types.is_null(a.type) and not equal_types(embedded_schema(pa.schema([a])), embedded_schema(pa.schema([b]))):
            raise SchemaError(
                f"{who} has another type than what came first",
                feature=a.name,
                expected=str(b.type),
                got=str(a.type),
                advice=f"cast {a.type} and {b.type} to one type",
            )
    return BatchSource(first, (_fill_nulls(batch, first) for batch in source), source.rows)


def _fill_nulls(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.types == schema.types:
        return batch
    columns = [
        pa.nulls(batch.num_rows, field.type) if pa.types.is_null(column.type) else column
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def _cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Slices of a size whose copies, where values must be converted, fit in a cache of pages rather than in all memory."""
    for batch in batches:
        heavy = -(-batch.nbytes // BATCH_BYTES) or 1
        rows = max(1, min(BATCH_ROWS, -(-batch.num_rows // heavy)))
        for begin in range(0, batch.num_rows, rows):
            yield batch.slice(begin, rows)
