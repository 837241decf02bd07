"""Arrays of equal length as one stream of record batches: what a writer takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.arrays import fields_of
from tfrecord_io.arrow.input import BatchSource, open_input
from tfrecord_io.arrow.stream import export_stream
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError, printable
from tfrecord_io.numpy_files.array_file import BLOCK_BYTES, ArrayFile

_MOST_ROWS = 65_536


class ArrayStream:
    """Record batches of one schema, read from array files as they are asked for; consumed once.

    A context manager and an iterator; anything that takes ``__arrow_c_stream__`` reads from it, and `tfrecord_io.write_tfrecord`.
    Its files are closed with it, or at the end of the batches.

    Attributes
    ----------
    schema : pyarrow.Schema
    num_rows : int
    """

    def __init__(self, schema: pa.Schema, num_rows: int, batches: Iterator[pa.RecordBatch], close: Callable[[], None]) -> None:
        self.schema = schema
        self.num_rows = num_rows
        self._batches = self._closing(batches)
        self._close = close
        self._ended = self._closed = False

    def _closing(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        finally:
            self._ended = True
            self._close()

    def read_next_batch(self) -> pa.RecordBatch:
        """The next batch; StopIteration at the end."""
        return next(iter(self))

    def read_all(self) -> pa.Table:
        """All rows that are left."""
        batches = iter(self)
        if self._ended:
            raise ValueError("the stream has been consumed; open it again")
        return pa.Table.from_batches(list(batches), self.schema)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._closed:
            raise ValueError("the stream is closed")
        return self._batches

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return export_stream(self.schema, iter(self), requested_schema)

    def close(self) -> None:
        """Close the files; reading on raises ValueError."""
        self._ended = self._closed = True
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def stream_of(arrays: Mapping[str, ArrayFile], close: Callable[[], None] = lambda: None) -> ArrayStream:
    """One row for each index of the leading axis of all arrays.

    Raises
    ------
    EncodeError
        An array has no axis, lengths differ, a row is larger than any record, or a dtype has no form in one.
    """
    rows = _common_length(arrays)
    for each in arrays.values():
        each.check_record(each.row_bytes)
    per_block = max(1, min(_MOST_ROWS, BLOCK_BYTES // max(1, sum(each.row_bytes for each in arrays.values()))))
    schema = _source({name: np.empty((0, *each.shape[1:]), each.dtype) for name, each in arrays.items()}).schema

    def batches() -> Iterator[pa.RecordBatch]:
        columns = {name: each.blocks(per_block) for name, each in arrays.items()}
        for blocks in zip(*columns.values(), strict=True):
            yield from _source(dict(zip(columns, blocks, strict=True)))

    def close_all() -> None:
        for each in arrays.values():
            each.close()
        close()

    return ArrayStream(schema, rows, batches(), close_all)


def _source(arrays: Mapping[str, Array]) -> BatchSource:
    """A structured array gives a column for each of its fields."""
    columns: dict[str, Array] = {}
    for name, values in arrays.items():
        columns.update(fields_of(values) if values.dtype.names else {name: values})
    return open_input(columns)


def _common_length(arrays: Mapping[str, ArrayFile]) -> int:
    for name, each in arrays.items():
        if not each.shape:
            raise EncodeError(
                "the array is a single value: it has no axis that counts rows", path=each.path, feature=name, expected="an axis", got=()
            )
    first, *others = arrays.items()
    for name, each in others:
        if each.rows != first[1].rows:
            raise EncodeError(
                f"has {each.rows} rows, where '{printable(first[0])}' ({printable(first[1].path)}) has {first[1].rows}",
                path=each.path,
                feature=name,
                expected=first[1].rows,
                got=each.rows,
                advice="arrays are zipped by their leading axis, which must agree",
            )
    return first[1].rows
