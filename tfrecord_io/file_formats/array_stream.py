"""Arrays of equal length as one stream of record batches: what a writer takes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Self

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.input.batch_source import BatchSource, open_input
from tfrecord_io.arrow.input.from_arrays import fields_of
from tfrecord_io.arrow.stream import BatchStream
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError, printable
from tfrecord_io.file_formats.array_file import BLOCK_BYTES, ArrayFile
from tfrecord_io.file_formats.open_array import Archive
from tfrecord_io.schema.type_names import short_type_name

_MOST_ROWS = 65_536

Opened = tuple[pa.Schema, Iterator[pa.RecordBatch]]


class ArrayStream(BatchStream):
    """Record batches of one schema, read from array files as they are asked for; consumed once.

    A context manager and an iterator; anything that takes ``__arrow_c_stream__`` reads from it, and `tfrecord_io.write_tfrecord`.
    Its files are closed with it, at the end of the batches, or when nobody holds it any more.

    Attributes
    ----------
    schema : pyarrow.Schema
    num_rows : int
    num_files : int
    """

    _word = "stream"

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        num_rows: int,
        close: Callable[[], None],
        *,
        num_files: int = 1,
        encoded: Callable[[Mapping[str, str]], Opened] | None = None,
    ) -> None:
        super().__init__()
        self._schema = schema
        self.num_rows = num_rows
        self.num_files = num_files
        self._batches = batches
        self._encoded = encoded
        self._close = weakref.finalize(self, close)

    @property
    def schema(self) -> pa.Schema:
        """Of every batch."""
        return self._schema

    def __repr__(self) -> str:
        state = "closed" if self._closed else "consumed" if self._ended else "partly consumed" if self._started else ""
        columns = ", ".join(
            f"{printable(field.name)}: {short_type_name(field.type, field.metadata)}" for field in self.schema
        )
        files = f"{self.num_files:,} file{'s' * (self.num_files != 1)}"
        rows = f"{self.num_rows:,} row{'s' * (self.num_rows != 1)}"
        return f"<tfrecord_io.ArrayStream {rows} of {files}{state and f', {state}'} ({columns})>"

    def read_all(self) -> pa.Table:
        """All rows that are left."""
        return pa.Table.from_batches(list(self), self.schema)

    def encoded(self, encodings: Mapping[str, str]) -> Self:
        """This stream, of which nothing was read: text and bytes of one width are tensors where "raw" is asked for.

        Raises
        ------
        ValueError
            As `from_start`.
        """
        self.from_start()
        if encodings and self._encoded is not None:
            self._schema, self._batches = self._encoded(encodings)
        return self

    def _end(self) -> None:
        super()._end()
        self._close()

    def close(self) -> None:
        """Close the files; reading on raises ValueError."""
        self._closed = True
        self._close()


def stream_of(arrays: Mapping[str, ArrayFile], archive: Archive | None = None) -> ArrayStream:
    """One row for each index of the leading axis of all arrays, which are files of their own or in an archive.

    Raises
    ------
    EncodeError
        An array has no axis, lengths differ, a row is larger than any record, or a dtype has no form in one.
    """
    rows = _common_length(arrays)
    for each in arrays.values():
        each.check_record(each.row_bytes)
    per_block = max(1, min(_MOST_ROWS, BLOCK_BYTES // max(1, sum(each.row_bytes for each in arrays.values()))))

    def opened(encodings: Mapping[str, str]) -> Opened:
        empty = {name: np.empty((0, *each.shape[1:]), each.dtype) for name, each in arrays.items()}
        return _source(empty, encodings).schema, batches(encodings)

    def batches(encodings: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        columns = {name: each.blocks(per_block) for name, each in arrays.items()}
        for blocks in zip(*columns.values(), strict=True):
            yield from _source(dict(zip(columns, blocks, strict=True)), encodings)

    def close_all() -> None:
        for each in arrays.values():
            each.close()
        if archive is not None:
            archive.close()

    return ArrayStream(*opened({}), rows, close_all, num_files=len(arrays) if archive is None else 1, encoded=opened)


def _source(arrays: Mapping[str, Array], encodings: Mapping[str, str]) -> BatchSource:
    """A structured array gives a column for each of its fields."""
    columns: dict[str, Array] = {}
    for name, values in arrays.items():
        found = fields_of(values) if values.dtype.names else {name: values}
        if twice := columns.keys() & found.keys():
            reason = "two arrays would become columns of this name: the fields of a structured array are columns"
            raise EncodeError(reason, feature=min(twice), advice="rename the array or the field")
        columns.update(found)
    return open_input(columns, encodings=encodings)


def _common_length(arrays: Mapping[str, ArrayFile]) -> int:
    for name, each in arrays.items():
        if not each.shape:
            raise EncodeError(
                "the array is a single value: it has no axis that counts rows",
                path=each.path,
                feature=name,
                expected="an axis",
                got=(),
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
