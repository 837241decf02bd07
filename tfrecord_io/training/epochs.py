"""The records of an epoch: the order of the files, and the records that one worker reads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.buffers import int64_array, offset_view, offsets_of
from tfrecord_io.arrow.output.to_numpy import number_dtype, number_items
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.numpy_output import copy_runs
from tfrecord_io.errors import CorruptRecordError, TFRecordError, printable, say
from tfrecord_io.index.lookup import KnownCounts
from tfrecord_io.options import IterOptions
from tfrecord_io.read.chunks.count_frames import count_each
from tfrecord_io.read.chunks.recovery import recovery_of
from tfrecord_io.read.open_scan import count_scan, open_indexed
from tfrecord_io.read.reader import Reader, open_as_it_is
from tfrecord_io.read.record_checks import AbsentColumns
from tfrecord_io.read.report import ReadReport
from tfrecord_io.read.scan import Scan
from tfrecord_io.training.checkpoint import IteratorPosition
from tfrecord_io.training.shuffle_buffer import permutation

_SHARED_SEED = 0


class Epochs:
    """The records of every epoch.

    Parameters
    ----------
    scan : Scan
        Its schema is that of all batches.
    options : IterOptions
    seed : int
    counts : sequence of int, optional
        For parts of equal size: the number of records of each file, or of all rows that fulfil the filter; see
        `count_rows`.

    Attributes
    ----------
    warnings, damage : list of str
        Texts of SchemaWarnings and DamagedDataWarnings, for the thread that takes the batches to issue.
    rows : EpochRows or None
        Of the epoch that was begun last.
    """

    def __init__(self, scan: Scan, options: IterOptions, seed: int, counts: Sequence[int] | None = None) -> None:
        self._delivered, self._limit = scan, options.limit
        self._filter = scan.row_filter
        self._scan = scan = scan.decoded()
        self._seed = seed
        self._worker, self._workers = worker, workers = options.worker or (0, 1)
        self._counts, self._pads = counts, options.uneven == "pad"
        window = options.offset > 0 or options.limit is not None
        by_file = counts is None and workers > 1 and not window and len(scan.sources) >= workers
        self._sources = scan.sources[worker::workers] if by_file else scan.sources
        by_range = counts is not None and self._filter is None
        self._residue, self._modulus = (0, 1) if by_file or by_range else (worker, workers)
        self.warnings: list[str] = []
        self.damage: list[str] = []
        self.rows: EpochRows | None = None
        self._permuted = options.shuffle_buffer > 0 and not window
        self._may_be_indexed = True

    def open(self, position: IteratorPosition) -> EpochRows:
        """The rows of an epoch from `position` on; before it, those that are in the shuffle buffer or held."""
        begin = position.begin
        deals = self._modulus > 1 or self._limit is not None or self._counts is not None
        if self._filter is not None and deals:
            return self._dealt(position.epoch, begin)
        if self._counts is not None:
            runs = self._equal_part(position.epoch, begin)
            rows = RowsOfWorker(self._delivered)
            return EpochRows((open_as_it_is(scan) for scan in runs), begin, rows, expected=self._part_size())
        options = self._scan.options
        begin = max(options.offset, begin)
        limit = None if options.limit is None else max(0, options.limit - (begin - options.offset))
        sources = [self._sources[i] for i in self._order(position.epoch)]
        if recovery_of(options.on_error) is None:
            scan = self._scan.over(sources, offset=begin, limit=limit)
        else:  # rows that were left out have no number: they are found again only by decoding all rows
            scan = self._scan.over(sources, offset=options.offset, limit=options.limit)
        is_whole = position.epoch == 0 and begin == options.offset and self._workers == 1
        is_declared = self._scan.resolved.source == "schema="
        absent = AbsentColumns(self._scan.features, self.warnings.append) if is_whole and is_declared else None
        opened = self._opened(scan, absent)
        residue = (self._residue + options.offset) % self._modulus
        rows = RowsOfWorker(self._delivered, residue, self._modulus, resumed_at=begin)
        return EpochRows(iter([opened]), scan.options.offset, rows)

    def _opened(self, scan: Scan, absent: AbsentColumns | None = None) -> Reader:
        """Open the rows of a scan; if there is a filter, those that can fulfil it by the column indexes."""
        if self._filter is None or not self._may_be_indexed:
            reader = open_as_it_is(scan, absent)
        else:
            reader = open_indexed(scan, self._filter, absent)
            is_complete = scan.options.offset == self._scan.options.offset
            self._may_be_indexed = reader.is_indexed or not is_complete  # in later epochs
        reader.defer_warning()  # arrays may leave out more rows
        return reader

    def warn_of_damage(self, rows: EpochRows) -> None:
        """Note what the rows of an epoch that was read leave out, for a warning."""
        rows.report.skipped.warn(self.damage.append)

    def _dealt(self, epoch: int, begin: int) -> EpochRows:
        """The rows that fulfil the filter, dealt out to the workers: each reads all of them, from the first on."""
        scan = self._scan.over([self._sources[i] for i in self._order(epoch)])
        if self._counts is None:
            limit, expected, times = self._limit, None, 1
        else:
            limit = expected = self._part_size() * self._workers
            times = -(-limit // max(self._rows(), 1))  # more than once, if they are padded with rows from the start
        rows = RowsOfWorker(self._delivered, self._residue, self._modulus, resumed_at=begin, limit=limit)
        readers = (self._opened(scan) for _ in range(times))
        return EpochRows(readers, scan.options.offset, rows, expected=expected)

    def _equal_part(self, epoch: int, begin: int) -> list[Scan]:
        """What this worker reads, without the first `begin` rows: rows in sequence, then padding from the start."""
        assert self._counts is not None
        order = self._order(epoch)
        ends = np.cumsum([self._counts[i] for i in order])
        scans = []
        for first, last in equal_part(self._rows(), self._worker, self._workers, pads=self._pads):
            skipped = min(begin, last - first)
            first, begin = first + skipped, begin - skipped
            if first == last:
                continue
            first, last = first + self._scan.options.offset, last + self._scan.options.offset
            files = range(int(ends.searchsorted(first, side="right")), int(ends.searchsorted(last)) + 1)
            offset = first - (int(ends[files[0] - 1]) if files[0] else 0)
            scans.append(self._scan.over([self._sources[order[i]] for i in files], offset=offset, limit=last - first))
        return scans

    def _rows(self) -> int:
        """The number of records of one epoch, of all workers together."""
        assert self._counts is not None
        total = sum(self._counts)
        return total if self._filter is not None else self._scan.rows_within(total)

    def _part_size(self) -> int:
        return sum(
            last - first for first, last in equal_part(self._rows(), self._worker, self._workers, pads=self._pads)
        )

    def _order(self, epoch: int) -> Sequence[int]:
        """The order of the files."""
        count = len(self._sources)
        # Workers that share files may have seeds of their own, and need one order.
        seed = self._seed if self._modulus == 1 else _SHARED_SEED
        return permutation(count, seed, epoch) if self._permuted else range(count)

    def records(self) -> int:
        """The number of records of one epoch.

        Raises
        ------
        TypeError
            It is not known without reading the files; the message says of which file.
        """
        if self._counts is not None:
            return self._part_size()
        if self._filter is not None:
            raise TypeError("the number of batches is unknown: it depends on the filter")
        options = self._scan.options
        total, known = 0, KnownCounts(options.compression, options.max_record_bytes)
        try:
            indexes = known.indexes(self._sources)
            for source, index in zip(self._sources, indexes, strict=True):
                records = 0 if source.size == 0 else known.record_count(source, index)
                if records is None:
                    advice: str = "make one with `tfr index`" | say(
                        "write the files with {write_tfrecord(write_index=True)}"
                    )
                    reason = f"no manifest and no index states how many records {printable(source.path)} has"
                    if source.span is not None:
                        reason = f"nothing states how many records a piece of {printable(source.path)} has"
                        advice = "count_rows() of the dataset counts them"
                    raise TypeError(say("the number of batches is unknown: {}", reason) & advice)
                total += records
        except (TFRecordError, OSError) as error:
            raise TypeError(f"the number of batches is unknown: {error}") from error
        return len(range(self._residue, self._scan.rows_within(total), self._modulus))


def equal_part(rows: int, worker: int, workers: int, *, pads: bool) -> list[tuple[int, int]]:
    """The rows of a worker, all workers having the same number: at most two ranges, of which the second is padding.

    Examples
    --------
    >>> [equal_part(5, worker, 3, pads=True) for worker in range(3)]
    [[(0, 2)], [(2, 4)], [(4, 5), (0, 1)]]
    >>> [equal_part(5, worker, 3, pads=False) for worker in range(3)]
    [[(0, 1)], [(1, 2)], [(2, 3)]]
    """
    size = -(-rows // workers) if pads else rows // workers
    if not size:
        return []
    first = worker * size % rows
    last = min(first + size, rows)
    padding = size - (last - first)
    return [(first, last), (0, padding)] if padding else [(first, last)]


def count_rows(scan: Scan) -> list[int]:
    """The number of records of each file, or of all rows that fulfil the filter.

    See `tfrecord_io.count_records` for where the former is taken from; for the latter, the columns of the filter are
    read.
    """
    if scan.row_filter is not None:
        return [count_scan(scan)]
    options = scan.options
    known = KnownCounts(options.compression, options.max_record_bytes, options.max_decompression_ratio)
    indexes = known.indexes(scan.sources)
    return list(count_each(scan.sources, indexes, known, threads=scan.options.thread_count))


class EpochRows:
    """The numbered rows of readers, one after the other, that belong to this worker.

    An error ends the iteration; `raise_error` raises it, once the rows before it have been delivered. It is an error,
    too, if the rows are not as many as `expected`.

    Attributes
    ----------
    next : int
        Number of the row after those read.
    count : int
        Of the rows read from `resume` on.
    """

    def __init__(
        self, readers: Iterator[Reader], begin: int, selection: RowsOfWorker, *, expected: int | None = None
    ) -> None:
        self.next, self.count = begin, 0
        self._readers = readers
        self._opened: list[tuple[int, Reader]] = []  # with the number of the first row of each
        self._selection, self._expected = selection, expected
        self._pools = self._read()
        self._resumed: list[RowPool] = []  # rows that `resume` read beyond the buffer
        self._error: Exception | None = None

    def _read(self) -> Iterator[RowPool]:
        for reader in self._readers:
            self._opened.append((self.next, reader))
            size = 0
            for numbers, batch in reader.numbered(self.next):
                size, before = reader.payload_bytes, size
                row_bytes = (size - before) / max(len(batch), 1)
                self.next = reader.next_number
                numbers, batch = self._selection.select(numbers, batch)
                if len(batch):
                    yield RowPool(numbers, batch, np.full(len(batch), row_bytes))
                if self._selection.is_complete:
                    break
            self.next = reader.next_number
            if self._expected is not None:
                reader.close()
        got = self._selection.passed if self._selection.filters else self.next
        if self._expected not in (None, got):
            reason = f"the part of this worker has {got} records, but {self._expected} were counted"
            raise CorruptRecordError(reason, expected=self._expected, got=got, advice="open the files again")

    def __iter__(self) -> Iterator[RowPool]:
        try:
            for pool in chain(self._resumed, self._pools):
                self.count += len(pool)
                yield pool
        except Exception as error:
            self._error = error

    def resume(self, position: IteratorPosition) -> tuple[list[RowPool], list[RowPool]]:
        """Skip the records before `position`; return those of its shuffle buffer and those held, in their order."""
        if not position.buffer and not position.held:
            return [], []
        wanted = np.array([*position.buffer, *position.held], np.int64)
        pools: list[RowPool] = []
        try:
            for pool in self._pools:
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
        whole = RowPool.concat(pools)
        return tuple([whole.take(part)] if len(part) else [] for part in np.split(ranks, [buffered]))  # type: ignore[return-value]

    @property
    def failed(self) -> bool:
        """Whether an error ended the rows, or ended them early under ``on_error="stop"``."""
        return self._error is not None or any(reader.report.stopped is not None for _, reader in self._opened)

    def raise_error(self) -> None:
        """Raise the error that ended the rows, if any."""
        if self._error is not None:
            raise self._error

    @property
    def report(self) -> ReadReport:
        """What was read."""
        reports = [reader.report for _, reader in self._opened]
        if len(reports) == 1:
            return reports[0]
        records, size, files = (sum(getattr(r, name) for r in reports) for name in ("records", "bytes", "files"))
        source = reports[0].schema_source if reports else ReadReport.schema_source
        return ReadReport(records, size, files, source)  # of equal parts, which leave nothing out

    @property
    def goes_on(self) -> bool:
        """Whether rows that arrays cannot hold may be left out."""
        return any(reader.goes_on for _, reader in self._opened)

    def leave_out(self, fault: RowFault) -> bool:
        """Whether the row with the number ``fault.row`` may be left out; it counts as skipped."""
        reader = self._reader_of(fault.row)
        return reader.leave_out(fault.at(reader.row_of(fault.row)))

    def row_error(self, fault: RowFault) -> TFRecordError:
        """The error of the row with the number ``fault.row``."""
        reader = self._reader_of(fault.row)
        return reader.row_error(fault.at(reader.row_of(fault.row)))

    def _reader_of(self, number: int) -> Reader:
        return next(reader for begin, reader in reversed(self._opened) if begin <= number)

    def close(self) -> None:
        for _, reader in self._opened[-1:]:
            reader.close()


class RowsOfRuns(EpochRows):
    """Rows at the positions of a sequence: of several runs of them, one after the other."""

    def __init__(self, begin: int, runs: Sequence[tuple[int, int | None]]) -> None:
        super().__init__(iter(()), begin, None)  # type: ignore[arg-type]
        self._runs = runs

    def _read(self) -> Iterator[RowPool]:
        before = 0  # rows of the runs before this one
        for first, last in self._runs:
            begin = first + max(0, self.next - before)
            if last is None or begin < last:
                yield from self._run(begin, last, before - first)
            before += 0 if last is None else last - first

    @abstractmethod
    def _run(self, at: int, end: int | None, shift: int) -> Iterator[RowPool]:
        """The rows at the positions [at, end) of the sequence; `shift` makes numbers of positions."""


class RowsOfWorker:
    """The rows that fulfil the filter of a scan; of these, every n-th.

    Parameters
    ----------
    scan : Scan
    residue, modulus : int
        The rows of this worker: without a filter by their number, with one by how many rows before fulfil it.
    resumed_at : int
        Rows with lower numbers are not delivered.
    limit : int, optional
        At most so many rows fulfil the filter, for all workers together.

    Attributes
    ----------
    filters : bool
        Whether the scan has a filter.
    passed : int
        How many rows have fulfilled it.
    """

    def __init__(
        self, scan: Scan, residue: int = 0, modulus: int = 1, *, resumed_at: int = 0, limit: int | None = None
    ) -> None:
        self._filter, self._names = scan.row_filter, scan.schema.names
        self._residue, self._modulus, self._resumed_at = residue, modulus, resumed_at
        self._limit = limit
        self.filters = scan.row_filter is not None
        self.passed = 0

    @property
    def is_complete(self) -> bool:
        """Whether no further row can belong to it."""
        return self._limit is not None and self.passed >= self._limit

    def select(self, numbers: Array, batch: pa.RecordBatch) -> tuple[Array, pa.RecordBatch]:
        """Numbers and rows of this worker, among those of a batch."""
        if self._filter is None:
            rows, ordinals = np.arange(len(batch)), numbers
        else:
            rows = np.flatnonzero(self._filter.mask(batch).to_numpy(zero_copy_only=False))
            rows = rows if self._limit is None else rows[: self._limit - self.passed]
            ordinals = self.passed + np.arange(len(rows))
            self.passed += len(rows)
        rows = rows[(ordinals % self._modulus == self._residue) & (numbers[rows] >= self._resumed_at)]
        if batch.schema.names != self._names:
            batch = batch.select(self._names)
        if len(rows) == len(batch):
            return numbers, batch
        return numbers[rows], batch.take(int64_array(rows))


@dataclass(slots=True)
class RowPool:
    """Rows and their numbers.

    Attributes
    ----------
    numbers : int64 ndarray
        Number of each row in the order of the epoch's files.
    rows : pyarrow.RecordBatch
    row_bytes : float64 ndarray
        The bytes that each row was read from: the mean of its batch.
    """

    numbers: Array
    rows: pa.RecordBatch
    row_bytes: Array

    @classmethod
    def concat(cls, pools: list[RowPool]) -> RowPool:
        """The rows of one or more pools."""
        if len(pools) == 1:
            return pools[0]
        batches = [_gatherable(pool.rows) for pool in pools]
        numbers = np.concatenate([pool.numbers for pool in pools])
        return cls(numbers, pa.concat_batches(batches), np.concatenate([pool.row_bytes for pool in pools]))

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, indices: Array) -> RowPool:
        """The rows at `indices`, in that order."""
        return JoinedPools([self]).take(indices)

    def slice(self, begin: int, end: int | None = None) -> RowPool:
        """The rows [begin, end), as views."""
        numbers = self.numbers[begin:end]
        return RowPool(numbers, self.rows.slice(begin, len(numbers)), self.row_bytes[begin:end])


class JoinedPools:
    """The rows of pools, one after the other, of which lists of numbers are joined where they are taken only."""

    def __init__(self, pools: list[RowPool]) -> None:
        self.numbers = np.concatenate([pool.numbers for pool in pools])
        self._row_bytes = np.concatenate([pool.row_bytes for pool in pools])
        self._bounds = offsets_of(np.array(list(map(len, pools))))
        batches = [_gatherable(pool.rows) for pool in pools]
        self._schema = batches[0].schema
        self._columns: list[_NumberLists | pa.Array] = []
        for arrays in zip(*(batch.columns for batch in batches), strict=True):
            dtype = _number_of_lists(arrays)
            joined = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays) if dtype is None else None
            self._columns.append(joined if dtype is None else _NumberLists(arrays, dtype))

    def take(self, indices: Array) -> RowPool:
        """The rows at `indices`, in that order."""
        places, columns = int64_array(indices), list[pa.Array]()
        pools = self._bounds.searchsorted(indices, side="right") - 1 if len(self._bounds) > 2 else None
        for column in self._columns:
            columns.append(column.lists_at(indices, pools) if isinstance(column, _NumberLists) else column.take(places))
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return RowPool(self.numbers[indices], rows, self._row_bytes[indices])


class _NumberLists:
    """Lists of numbers in several arrays, which are taken in a fifth of the time of Arrow's `take`."""

    def __init__(self, arrays: Sequence[pa.Array], dtype: np.dtype[Any]) -> None:
        offsets = [offset_view(array, np.dtype(np.int64)) for array in arrays]
        self._type, self._dtype = arrays[0].type, dtype
        self._values = [number_items(array.values, dtype) for array in arrays]
        self._begins = np.concatenate([own[:-1] for own in offsets])
        self._lengths = np.concatenate([np.diff(own) for own in offsets])

    def lists_at(self, indices: Array, arrays: Array | None) -> pa.Array:
        """The lists at `indices`, which are in these arrays if there are several."""
        begins, lengths = self._begins[indices], self._lengths[indices]
        ends = offsets_of(lengths)
        values = np.empty(int(ends[-1]), self._dtype)
        for number, source in enumerate(self._values):
            rows = slice(None) if arrays is None else np.flatnonzero(arrays == number)
            copy_runs(source, begins[rows], lengths[rows], values, ends[:-1][rows])
        return pa.LargeListArray.from_arrays(
            int64_array(ends), pa.array(values, self._type.value_type), type=self._type
        )


def _number_of_lists(arrays: Sequence[pa.Array]) -> np.dtype[Any] | None:
    """The dtype of lists of numbers without nulls; None of other columns."""
    type_ = arrays[0].type
    dtype = number_dtype(type_.value_type) if t.is_large_list(type_) else None
    return None if any(array.null_count or (dtype and array.values.null_count) for array in arrays) else dtype


def _gatherable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with categories decoded and 64-bit offsets: joined batches may exceed what 32-bit offsets address."""
    types = [_wide(field.type) for field in batch.schema]
    if types == batch.schema.types:
        return batch
    schema = pa.schema([field.with_type(type_) for field, type_ in zip(batch.schema, types, strict=True)])
    columns = [_widened(array, type_) for array, type_ in zip(batch.columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _widened(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The array as one of a `_wide` type."""
    if t.is_dictionary(array.type):
        return array.dictionary_decode().cast(type_)
    if t.is_list(array.type) and not array.null_count:  # a cast copies the values
        offsets = int64_array(offset_view(array, np.dtype(np.int32)).astype(np.int64))
        return pa.LargeListArray.from_arrays(offsets, array.values, type=type_)
    return array.cast(type_)


def _wide(type_: pa.DataType) -> pa.DataType:
    if t.is_dictionary(type_):
        return _wide(type_.value_type)
    if t.is_string(type_):
        return pa.large_string()
    if t.is_binary(type_):
        return pa.large_binary()
    if t.is_list(type_):
        return pa.large_list(type_.value_field)
    return type_
