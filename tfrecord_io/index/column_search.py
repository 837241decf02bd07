"""Find the records that can fulfil a condition in the column indexes of files."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import int64_array
from tfrecord_io.background import WorkerPool
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import SchemaError, StaleIndexWarning, printable, warn
from tfrecord_io.index.column_index import COLUMNS_SUFFIX, OLD_COLUMNS_SUFFIX, OLD_FORMAT, REWRITE_COLUMNS, ColumnIndex
from tfrecord_io.index.lookup import open_columns
from tfrecord_io.index.record_index import RecordIndex
from tfrecord_io.storage.paths.manifest import find_sidecars
from tfrecord_io.storage.read.random_access_file import open_random_access
from tfrecord_io.storage.read.source import Source

_THREADS = 16
_LEAST_PIECE_BYTES = 32 << 20  # a smaller piece of a file is read in the time that opening the index takes
_ROW_BYTES = {True: 128, False: 16}  # of a file, on a disk and in a bucket, are read in the time of a row of an index


class Condition(Protocol):
    """A condition on rows, and the columns that it needs."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def mask(self, batch: pa.RecordBatch, /) -> pa.BooleanArray: ...


@dataclass(frozen=True, slots=True, eq=False)
class FileMatches:
    """The records of a file, or of a piece of it, that can fulfil a condition.

    Attributes
    ----------
    file : Source
        The whole file.
    size : int
        Its bytes.
    first : int
        Record index of the first record of the piece.
    index : RecordIndex
        Of all records of the file or the piece.
    records : int64 array
        Their numbers in `index`, ascending.
    exact : bool
        All of them fulfil it; else some columns of the condition are not in the index.
    has_schema : bool
        The first record of the file has an embedded schema.
    version : str
        Of the file (`RandomAccessFile.version`) that the index was compared with.
    """

    file: Source
    size: int
    first: int
    index: RecordIndex
    records: Array
    exact: bool
    has_schema: bool
    version: str


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSearch:
    """A condition that column indexes are searched by.

    Parameters
    ----------
    parts : sequence of Condition
        A row fulfils the condition where it fulfils all of them.
    fields : pyarrow.Schema
        How the columns of the condition are read. An index is used only for those that it has an equal field of.
    constants : callable
        Returns the columns whose values are those of a file, as a batch of one row.
    """

    parts: Sequence[Condition]
    fields: pa.Schema
    constants: Callable[[Source], pa.RecordBatch]

    def files(self, sources: Sequence[Source]) -> list[FileMatches | None]:
        """The records of each file or piece; None where it has no column index, or none for any part of the condition.

        Raises
        ------
        CorruptRecordError
            A column index is damaged, or does not match its file.
        """
        indexes = column_indexes(sources)
        if not any(indexes):
            return [None] * len(sources)
        with WorkerPool(min(_THREADS, len(sources)), "columns") as pool:
            return list(pool.map(self._file, indexes, sources))

    def _file(self, index_source: Source | None, source: Source) -> FileMatches | None:
        if index_source is None:
            return None
        whole = source.whole_file()
        with open_random_access(whole) as file:
            try:
                most = math.inf if source.span is None else (source.size or 0) / _ROW_BYTES[source.local]
                with open_columns(index_source, whole, file, source.span, most_rows=most) as (columns, index):
                    found = None if index is None else self._passing(columns, len(index), self.constants(source))
            except FileNotFoundError:  # removed since it was listed, as happens while its file is replaced
                return None
        if found is None or index is None:
            return None
        passing, exact = found
        begin, end = (0, len(index)) if source.span is None else index.bounds.searchsorted(source.span).tolist()
        bounds = index.bounds[begin : end + 1]
        if source.span is not None and (not len(bounds) or (bounds[0], bounds[-1]) != source.span):
            return None  # it is a piece of another file: its reader raises an error
        records = np.flatnonzero(passing[begin:end])
        first, part = columns.first + begin, RecordIndex(bounds)
        return FileMatches(whole, file.size, first, part, records, exact, columns.has_schema, file.version)

    def _passing(self, columns: ColumnIndex, rows: int, constants: pa.RecordBatch) -> tuple[Array, bool] | None:
        """Whether each record can fulfil the condition, and whether that is exact; None if nothing is known."""
        indexed = [field for field in self.fields if columns.has(field)]
        known = {*(field.name for field in indexed), *constants.schema.names}
        parts = [part for part in self.parts if known.issuperset(part.columns)]
        needed = [field for field in indexed if any(field.name in part.columns for part in parts)]
        if not needed:
            return None
        passing = np.ones(rows, bool)
        begin = 0
        for batch in columns.columns(needed).to_batches(max_chunksize=1 << 20):
            batch = _with_constants(batch, constants)
            for part in parts:
                try:
                    mask = part.mask(batch).to_numpy(zero_copy_only=False)
                except SchemaError:  # it cannot be applied to some row, which may not have to be read
                    parts = [other for other in parts if other is not part]
                    continue
                passing[begin : begin + len(batch)] &= mask
            begin += len(batch)
        if not parts:
            return None
        return passing, len(parts) == len(self.parts)


def column_indexes(sources: Sequence[Source]) -> list[Source | None]:
    """The column index of each file, or of the file of each piece that is not small."""
    is_large = [source.span is not None and (source.size or 0) >= _LEAST_PIECE_BYTES for source in sources]
    files = [replace(source, span=None) if large else source for source, large in zip(sources, is_large, strict=True)]
    found = find_sidecars(files, (COLUMNS_SUFFIX, OLD_COLUMNS_SUFFIX))
    return [None if index is None or _is_old(index) else index for index in found]


def _is_old(index: Source) -> bool:
    """Whether a column index is of a format that is not read any more; warns of it."""
    is_old = index.path.endswith(OLD_COLUMNS_SUFFIX)
    if is_old:
        text = f"{printable(index.path)}: {OLD_FORMAT}: {REWRITE_COLUMNS}, or delete it; the index is not used"
        warn(text, StaleIndexWarning)
    return is_old


def _with_constants(batch: pa.RecordBatch, constants: pa.RecordBatch) -> pa.RecordBatch:
    zeros = int64_array(np.zeros(len(batch), np.int64))
    arrays = [*batch.columns, *(column.take(zeros) for column in constants.columns)]
    return pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, *constants.schema.names])
