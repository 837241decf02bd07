"""The rows of every epoch, in the forms that all sources of rows have in common: shares, readers, numbered batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.buffers import int64_array, offset_view, offsets_of, selectable, typed_view
from tfrecord_io.arrow.output.to_numpy import number_dtype, number_items
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.numpy_output import RunArray, chosen_offsets, gather_runs
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.report import ReadReport
from tfrecord_io.schema.types import map_fields
from tfrecord_io.training.checkpoint import IteratorPosition

_BYTES = (pa.large_binary(), pa.large_string())
_SHORT_BYTES = 64  # of bytes and texts in the mean
_MOST_READERS = 64  # of the rows of a mixture, before those without a row are let go


@dataclass(frozen=True, slots=True)
class Share:
    """The rows of one of several workers: every n-th; with another `uneven`, runs of rows, all of the same size."""

    worker: int = 0
    workers: int = 1
    uneven: str = "keep"

    def runs(self, rows: int) -> list[tuple[int, int]]:
        """Which of all rows these are: at most two ranges, of which the second is padding.

        >>> [Share(worker, 3, "pad").runs(5) for worker in range(3)]
        [[(0, 2)], [(2, 4)], [(4, 5), (0, 1)]]
        >>> [Share(worker, 3, "drop").runs(5) for worker in range(3)]
        [[(0, 1)], [(1, 2)], [(2, 3)]]
        """
        size = self.size(rows)
        if not size:
            return []
        first = self.worker * size % rows
        last = min(first + size, rows)
        padding = size - (last - first)
        return [(first, last), (0, padding)] if padding else [(first, last)]

    def size(self, rows: int) -> int:
        """How many rows these are."""
        if self.uneven == "keep":
            return len(range(self.worker, rows, self.workers))
        return -(-rows // self.workers) if self.uneven == "pad" else rows // self.workers

    def has(self, numbers: Array) -> Array:
        """Which of the rows with these numbers are among them, of every n-th."""
        return numbers % self.workers == self.worker

    def surplus(self, rows: int) -> int:
        """How many rows that no worker delivers the last one reads, to compare the last file with the count, too.

        >>> [Share(worker, 3, "drop").surplus(5) for worker in range(3)]
        [0, 0, 2]
        """
        size = self.size(rows)
        return max(0, rows - size * self.workers) if size and self.worker == self.workers - 1 else 0


class Epochs(ABC):
    """The rows of every epoch of a source, those of one worker.

    `varies`: an epoch may have another number of them than the one before it, in another order of the files.
    """

    varies = False

    def __init__(self) -> None:
        # Texts of SchemaWarnings and DamagedDataWarnings, for the thread that takes the batches to issue.
        self.warnings: list[str] = []
        self.damage: list[str] = []

    @abstractmethod
    def open(self, position: IteratorPosition) -> EpochReader:
        """The rows of an epoch from `position` on; before it, those that are in the shuffle buffer or held."""

    @abstractmethod
    def count(self) -> int:
        """The number of rows of one epoch; TypeError if it is not known without reading the files."""


class EpochReader(ABC):
    """Reads the rows of an epoch that belong to this worker, in numbered batches.

    An error ends the iteration; `raise_error` raises it, once the rows before it have been delivered.
    """

    def __init__(self, begin: int) -> None:
        self.next = begin  # number of the row after those read
        self.count = 0  # of the rows read from `resume` on
        self._batches = self._read()
        self._opened: list[Any] = []  # what reads the rows, one after the other
        self._resumed: list[NumberedBatch] = []  # rows that `resume` read beyond the buffer
        self._error: Exception | None = None

    @abstractmethod
    def _read(self) -> Generator[NumberedBatch]:
        """The rows."""

    @abstractmethod
    def reports(self) -> list[ReadReport]:
        """Reports of each read of files."""

    def origin(self, fault: RowFault) -> tuple[Any, RowFault]:
        """What has read the row with the number ``fault.row``, and the fault of the row as that counts it."""
        raise NotImplementedError  # rows of a mixture have `NumberedBatch.origins` instead

    def origin_in(self, pool: NumberedBatch, fault: RowFault) -> tuple[Any, RowFault]:
        """The same of the row ``fault.row`` of some that were read here."""
        return self.origin(fault.renumber(int(pool.numbers[fault.row])))

    def readers(self) -> Iterable[Any]:
        """Readers of the rows, which may leave out some."""
        return self._opened

    def row_error(self, pool: NumberedBatch, fault: RowFault) -> TFRecordError:
        """The error of the row ``fault.row`` of some that were read here."""
        reader, own = self.origin_in(pool, fault)
        error: TFRecordError = reader.row_error(own)
        return error

    @property
    def goes_on(self) -> bool:
        """True if rows that arrays cannot hold may be left out."""
        return any(reader.goes_on for reader in self.readers())

    def leave_out(self, pool: NumberedBatch, fault: RowFault) -> bool:
        """True if the row ``fault.row`` of some that were read here may be left out; it counts as skipped."""
        reader, own = self.origin_in(pool, fault)
        left_out: bool = reader.leave_out(own)
        return left_out

    def close(self) -> None:
        """End reading; files may stay open for the next epoch."""
        self._batches.close()  # it refers to this reader
        for reader in self._opened[-1:]:
            reader.close()

    def __iter__(self) -> Iterator[NumberedBatch]:
        try:
            for pool in chain(self._resumed, self._batches):
                self.count += len(pool)
                yield pool
        except Exception as error:
            self._error = error

    def resume(self, position: IteratorPosition) -> tuple[list[NumberedBatch], list[NumberedBatch]]:
        """Skip the records before `position`; return those of its shuffle buffer and those held, in their order."""
        if not position.buffer and not position.held:
            return [], []
        wanted = np.array([*position.buffer, *position.held], np.int64)
        pools: list[NumberedBatch] = []
        try:
            for pool in self._batches:
                count = int(np.searchsorted(pool.numbers, position.next))
                found = np.flatnonzero(np.isin(pool.numbers[:count], wanted))
                if len(found):
                    pools.append(pool.take(found))
                if count < len(pool):
                    self._resumed = [pool.slice(count)]
                    break
        except Exception as error:  # raised after these rows, if they are all there
            self._error = error
        if sum(map(len, pools)) != len(wanted):
            self.raise_error()
            raise ValueError("the state does not fit the files: they have fewer records than it states")
        ranks, buffered = np.argsort(np.argsort(wanted, kind="stable"), kind="stable"), len(position.buffer)
        whole = NumberedBatch.concat(pools)
        return tuple([whole.take(part)] if len(part) else [] for part in np.split(ranks, [buffered]))  # type: ignore[return-value]

    @property
    def failed(self) -> bool:
        """True if an error ended the rows, or ended them early under ``on_error="stop"``."""
        return self._error is not None or any(map(attrgetter("stopped"), self.reports()))

    def raise_error(self) -> None:
        """Raise the error that ended the rows, if any."""
        if self._error is not None:
            raise self._error

    @property
    def report(self) -> ReadReport:
        """Report of the rows read."""
        reports = self.reports()
        if len(reports) == 1:
            return reports[0]
        joined = ReadReport(schema_source=reports[0].schema_source if reports else ReadReport.schema_source)
        for report in reports:
            joined.add(report)
        return joined


@dataclass(slots=True)
class NumberedBatch:
    """Rows and their numbers."""

    numbers: Array  # int64: number of each row in the order of the epoch's files
    rows: pa.RecordBatch
    row_bytes: Array  # float64: the bytes that each row was read from: the mean of its batch
    # Of a mixture. int64: the id of what has read each row, in `readers`; int64: the number of the row there.
    origins: tuple[Array, ...] = ()
    readers: dict[int, EpochReader] = field(default_factory=dict)

    @classmethod
    def concat(cls, pools: list[NumberedBatch]) -> NumberedBatch:
        """The rows of one or more pools."""
        if len(pools) == 1:
            return pools[0]
        batches = [_gatherable(pool.rows) for pool in pools]
        numbers, row_bytes, origins, readers = _joined(pools)
        return cls(numbers, pa.concat_batches(batches), row_bytes, origins, readers)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, indices: Array) -> NumberedBatch:
        """The rows at `indices`, in that order."""
        return JoinedBatches([self]).take(indices)

    def slice(self, begin: int, end: int | None = None) -> NumberedBatch:
        """The rows [begin, end), as views."""
        part = itemgetter(slice(begin, end))
        numbers, origins = part(self.numbers), tuple(map(part, self.origins))
        return NumberedBatch(numbers, self.rows.slice(begin, len(numbers)), part(self.row_bytes), origins, self.readers)


def _joined(pools: list[NumberedBatch]) -> tuple[Array, Array, tuple[Array, ...], dict[int, EpochReader]]:
    """What is known of the rows of pools beside their values."""
    numbers = np.concatenate(list(map(attrgetter("numbers"), pools)))
    row_bytes = np.concatenate(list(map(attrgetter("row_bytes"), pools)))
    origins = tuple(map(np.concatenate, zip(*map(attrgetter("origins"), pools), strict=True)))
    readers = dict(chain.from_iterable(map(dict.items, map(attrgetter("readers"), pools))))
    if len(readers) > _MOST_READERS:  # many have read rows only that were delivered
        readers = {reader: readers[reader] for reader in np.unique(origins[0]).tolist()}
    return numbers, row_bytes, origins, readers


class JoinedBatches:
    """The rows of pools, one after the other, of which most are joined where they are taken only."""

    def __init__(self, pools: list[NumberedBatch]) -> None:
        self.numbers, self._row_bytes, self._origins, self._readers = _joined(pools)
        self._bounds = offsets_of(np.array(list(map(len, pools))))
        batches = list(map(_gatherable, map(attrgetter("rows"), pools)))
        self.bytes = sum(map(attrgetter("nbytes"), batches))
        self._schema = batches[0].schema
        columns = zip(*map(attrgetter("columns"), batches), strict=True)
        self._columns = [
            _Runs.of(arrays) or (arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)) for arrays in columns
        ]

    def take(self, indices: Array) -> NumberedBatch:
        """The rows at `indices`, in that order."""
        indices = np.ascontiguousarray(indices, np.int64)
        places, columns, rows, pools = int64_array(indices), list[pa.Array](), indices, None
        if len(self._bounds) > 2:
            pools = self._bounds.searchsorted(indices, side="right") - 1
            rows = indices - self._bounds[pools]
        for column in self._columns:
            columns.append(column.chosen(pools, rows) if isinstance(column, _Runs) else column.take(places))
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        chosen = itemgetter(indices)
        origins = tuple(map(chosen, self._origins))
        return NumberedBatch(chosen(self.numbers), batch, chosen(self._row_bytes), origins, self._readers)


class _Runs:
    """Rows of several arrays that are runs of numbers or bytes, taken in a fifth of the time of Arrow's `take`."""

    def __init__(self, type_: pa.DataType, arrays: list[RunArray]) -> None:
        self._type, self._arrays = type_, arrays

    @classmethod
    def of(cls, arrays: Sequence[pa.Array]) -> _Runs | None:
        """Those of arrays of one type; None if the rows are not runs, or some are null."""
        runs = list[RunArray]()
        for array in arrays:
            if (own := _items(array)) is None:
                return None
            runs.append(own)
        return cls(arrays[0].type, runs)

    def chosen(self, owners: Array | None, rows: Array) -> pa.Array:
        """The rows with these numbers in the arrays `owners`, or in the only one."""
        offsets, dtype = chosen_offsets(self._arrays, owners, rows), self._arrays[0][0].dtype
        count = int(offsets[-1])
        memory = pa.allocate_buffer(count * dtype.itemsize)  # which Arrow keeps for the next; NumPy does not
        gather_runs(self._arrays, owners, rows, offsets, np.frombuffer(memory, dtype))
        buffers = [None] if t.is_fixed_size_list(self._type) else [None, pa.py_buffer(offsets)]
        if self._type in _BYTES:
            return pa.Array.from_buffers(self._type, len(rows), [*buffers, memory], 0)
        items = pa.Array.from_buffers(self._type.value_type, count, [None, memory], 0)
        return pa.Array.from_buffers(self._type, len(rows), buffers, 0, children=[items])


def _items(array: pa.Array) -> RunArray | None:
    """The numbers or bytes of all rows, and the offsets of each row among them; None if Arrow takes them as fast."""
    if array.null_count:
        return None
    if array.type in _BYTES:
        offsets = offset_view(array)
        if offsets[-1] - offsets[0] < _SHORT_BYTES * len(array):  # each would cost more than what is copied
            return None
        return typed_view(array.buffers()[2], np.dtype(np.uint8), 0, int(offsets[-1])), offsets
    is_fixed = t.is_fixed_size_list(array.type)
    dtype = number_dtype(array.type.value_type) if is_fixed or t.is_large_list(array.type) else None
    if dtype is None or array.values.null_count:
        return None
    rows = np.arange(array.offset, array.offset + len(array) + 1)
    offsets = rows * array.type.list_size if is_fixed else offset_view(array)
    return number_items(array.values, dtype), offsets


def _gatherable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with categories decoded and 64-bit offsets: joined batches may exceed what 32-bit offsets address."""
    types = list(map(_wide, batch.schema.types))
    if types == batch.schema.types:
        return selectable(batch)
    schema = pa.schema([field.with_type(type_) for field, type_ in zip(batch.schema, types, strict=True)])
    columns = [_widen_array(array, type_) for array, type_ in zip(batch.columns, types, strict=True)]
    return selectable(pa.RecordBatch.from_arrays(columns, schema=schema))


def _widen_array(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The array as one of a `_wide` type."""
    if t.is_dictionary(array.type):
        return array.dictionary_decode().cast(type_)
    if t.is_list(array.type) and not array.null_count:  # a cast copies the values
        offsets, values = offset_view(array).astype(np.int64), array.values
        if values.type != type_.value_type:
            begin, end = int(offsets[0]), int(offsets[-1])
            values, offsets = _widen_array(values.slice(begin, end - begin), type_.value_type), offsets - begin
        return pa.LargeListArray.from_arrays(int64_array(offsets), values, type=type_)
    return array.cast(type_)


def _wide(type_: pa.DataType) -> pa.DataType:
    if t.is_dictionary(type_):
        return _wide(type_.value_type)
    if t.is_string(type_):
        return pa.large_string()
    if t.is_binary(type_):
        return pa.large_binary()
    if t.is_list(type_) or t.is_large_list(type_):
        return pa.large_list(_wide_field(type_.value_field))
    is_nested = t.is_fixed_size_list(type_) or t.is_struct(type_) or t.is_map(type_)
    return map_fields(type_, _wide_field) if is_nested else type_


def _wide_field(field: pa.Field) -> pa.Field:
    return field if t.is_dictionary(field.type) else field.with_type(_wide(field.type))
