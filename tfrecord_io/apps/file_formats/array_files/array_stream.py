"""Turn arrays of equal length into one stream of record batches, for a writer."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa

from tfrecord_io.apps.file_formats.array_files.open_array import BLOCK_BYTES, ArrayFile
from tfrecord_io.columns import BatchStream, Column, Projection, structured_columns
from tfrecord_io.errors import EncodeError
from tfrecord_io.kit import Array, open_input, printable

_MAX_ROWS = 65_536

Batches = tuple[pa.Schema, Iterator[pa.RecordBatch]]
Project = Callable[[Sequence[str]], Projection]
"""Takes the names of all columns, and returns the selection of those that are needed."""
Values: TypeAlias = Array | pa.Array | Mapping[str, Any]
"""Rows of an array; of several columns by name, those of a structured array."""


class ArrayStream(BatchStream):
    """Record batches of one schema, read from files on demand; consumed once.

    A context manager and an iterator with ``__arrow_c_stream__``; `tfrecord_io.write_tfrecord` accepts it. Its files
    are closed with it, at the end of the batches, or when it is garbage collected.

    Attributes
    ----------
    schema : pyarrow.Schema
    num_rows : int or None
        None if it is not known before the end.
    num_files : int
    """

    _word = "stream"

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        num_rows: int | None,
        close: Callable[[], None],
        *,
        num_files: int = 1,
        encode: Callable[[Mapping[str, str], Projection], Batches] | None = None,
    ) -> None:
        super().__init__()
        self._schema = schema
        self.num_rows = num_rows
        self.num_files = num_files
        self._batches = batches
        self._encode = encode
        self._encodings: Mapping[str, str] = {}
        self._projection = Projection(None)
        self._files = weakref.finalize(self, close)

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        return self._schema

    def __repr__(self) -> str:
        state = "closed" if self._closed else "consumed" if self._ended else "partly consumed" if self._started else ""
        columns = ", ".join(f"{printable(f.name)}: {Column(f.type, f.metadata).short_name}" for f in self.schema)
        files = f"{self.num_files:,} file{'s' * (self.num_files != 1)}"
        rows = "rows" if self.num_rows is None else f"{self.num_rows:,} row{'s' * (self.num_rows != 1)}"
        return f"<tfrecord_io.typing.ArrayStream {rows} of {files}{state and f', {state}'} ({columns})>"

    def read_all(self) -> pa.Table:
        """All remaining rows."""
        return pa.Table.from_batches(list(self), self.schema)

    def apply_encodings(self, encodings: Mapping[str, str]) -> Self:
        """Apply the column encodings to this stream: text and bytes of fixed width become tensors for "raw".

        Raises
        ------
        ValueError
            Batches have already been read.
        """
        self.from_start()
        if encodings and self._encode is not None:
            self._encodings = encodings
            self._schema, self._batches = self._encode(encodings, self._projection)
        return self

    def select(self, columns: Sequence[str] | str | None) -> Self:
        """This stream with some of its columns: names, globs and ``!name``, as in `tfrecord_io.read_table`.

        Raises
        ------
        FeatureNotFoundError
            An entry matches no column.
        ValueError
            Batches have already been read.
        """
        self.from_start()
        projection = Projection(columns)
        if projection.takes_all:
            return self
        projection.check(self.schema.names)
        if self._encode is not None:
            self._projection = projection
            self._schema, self._batches = self._encode(self._encodings, projection)
        else:
            self._schema, self._batches = project(self._schema, self._batches, projection)
        return self

    def _end(self) -> None:
        super()._end()
        self._close()

    def _close(self) -> None:
        self._files()


def stream_of(
    arrays: Mapping[str, ArrayFile], files: ExitStack, num_files: int, *, advice: str | None = None
) -> ArrayStream:
    """A stream with one row for each index of the leading axis of all arrays; it takes over closing the `files`.

    `advice` is what to do about an array that does not fit the others.
    """
    rows = _common_length(arrays, advice)
    for array in arrays.values():
        array.check_record(array.row_bytes)
    per_block = max(1, min(_MAX_ROWS, BLOCK_BYTES // max(1, sum(array.row_bytes for array in arrays.values()))))

    def encode(encodings: Mapping[str, str], projection: Projection) -> Batches:
        empty = {name: array.empty() for name, array in arrays.items()}
        names = [name for name, values in empty.items() if any(map(projection, _columns({name: values})))]
        names = names or list(empty)[:1]  # without columns, there are still rows
        _columns(empty)  # all of them: their names must differ
        schema = open_input(_columns({name: empty[name] for name in names}), encodings=encodings).schema
        labels = {name: (arrays[name].attributes, arrays[name].dims) for name in names}
        schema = pa.schema([Column(f).add_labels(*labels.get(f.name, ())) for f in schema], schema.metadata)
        return project(schema, batches(names, encodings, schema), projection)

    def batches(names: list[str], encodings: Mapping[str, str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        columns = {name: arrays[name].blocks(per_block) for name in names}
        for blocks in zip(*columns.values(), strict=True):
            for batch in open_input(_columns(dict(zip(columns, blocks, strict=True))), encodings=encodings):
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    return ArrayStream(*encode({}, Projection(None)), rows, files.pop_all().close, num_files=num_files, encode=encode)


def columns_by_array(dtypes: Mapping[str, np.dtype[Any]]) -> dict[str, list[str]]:
    """The names of the columns of each array."""
    return {name: [*structured_columns(np.empty(0, dtype))] or [name] for name, dtype in dtypes.items()}


def needed_arrays(dtypes: Mapping[str, np.dtype[Any]], project: Project) -> list[str]:
    """The names of the arrays with columns that are needed, or of the first one: without columns, there are rows.

    The fields of a structured array are columns.
    """
    columns = columns_by_array(dtypes)
    projection = project([column for fields in columns.values() for column in fields])
    return [name for name, fields in columns.items() if any(map(projection, fields))] or list(dtypes)[:1]


def _columns(arrays: Mapping[str, Values]) -> dict[str, Any]:
    """The columns of arrays; a structured array becomes one column per field."""
    columns: dict[str, Any] = {}
    for name, values in arrays.items():
        if isinstance(values, np.ndarray) and values.dtype.names:
            values = structured_columns(values)
        fields = values if isinstance(values, Mapping) else {name: values}
        if duplicates := columns.keys() & fields.keys():
            reason = "two arrays would become columns of this name: the fields of a structured array are columns"
            raise EncodeError(reason, feature=min(duplicates), hint="rename the array or the field")
        columns.update(fields)
    return columns


def project(schema: pa.Schema, batches: Iterator[pa.RecordBatch], projection: Projection) -> Batches:
    """Some columns of a stream, in the order of the projection."""
    positions = projection.positions(schema.names)
    fields = pa.schema([schema.field(i) for i in positions], schema.metadata)
    return fields, (batch.select(positions) for batch in batches)


def _common_length(arrays: Mapping[str, ArrayFile], what_to_do: str | None) -> int:
    for name, array in arrays.items():
        if not array.shape:
            reason = "the array is a single value: it has no axis that counts rows"
            raise EncodeError(reason, path=array.path, feature=name, expected="an axis", got=(), hint=what_to_do)
    (first_name, first), *other_arrays = arrays.items()
    for name, array in other_arrays:
        if array.rows != first.rows:
            reason = f"has {array.rows} rows, but '{printable(first_name)}' ({printable(first.path)}) has {first.rows}"
            advice = "arrays become columns, so their first axes must have the same length"
            hint = advice if what_to_do is None else f"{advice}; {what_to_do}"
            hint_cli = f"{advice}; exclude it with --columns"
            details: dict[str, Any] = {"expected": first.rows, "got": array.rows, "hint": hint, "hint_cli": hint_cli}
            raise EncodeError(reason, path=array.path, feature=name, **details)
    return first.rows
