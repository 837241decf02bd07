"""Random access: read records by number, or by a key, without reading whole files."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfrecord_io.base import (
    LIMITS,
    MIB,
    Closing,
    Expansion,
    OnDamage,
    ReadOptions,
    ScanOptions,
    Shared,
    cached_property,
    check_keywords,
    condition_of,
    for_cli,
    printable,
)
from tfrecord_io.bytes import Array, Checks, ColumnBuffers, Fault
from tfrecord_io.columns import BatchBuilder, Column, RecordDicts, RowFault, selectable
from tfrecord_io.errors import CorruptRecordError, FeatureNotFoundError, TFRecordError
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.chunks.embedded_schemas import SchemaRevision
from tfrecord_io.read.chunks.recovery import Recovery, batch_or_fault, fitting_parts
from tfrecord_io.read.chunks.skipped_region import SkippedRegion
from tfrecord_io.read.index.column_index import COLUMNS_SUFFIX
from tfrecord_io.read.index.find_index import SUFFIXES, find_indexes
from tfrecord_io.read.index.indexed_files import IndexedFiles
from tfrecord_io.read.index.key_index import KeyIndex, indexed_keys, key_type
from tfrecord_io.read.index_search import column_search, indexed_fields, matching_numbers
from tfrecord_io.read.narrow_scan import add_condition_columns, apply_filter
from tfrecord_io.read.plan_random_access import index_around_damage, plan_records
from tfrecord_io.read.report import ReadReport
from tfrecord_io.read.row_filter import RowFilter
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.source_resolution import Files, resolve_source, selection_of
from tfrecord_io.read.sources import ChosenRecords
from tfrecord_io.store import BlockReader
from tfrecord_io.typing import ArrowArray, ArrowStream, FilesLike, KeepKey, OnError, Path, SchemaLike, StorageLike

Key = str | bytes | int
Location = tuple[int, int]  # of a record: the number of its file, and its record index

_OTHER = object()  # stands for a record whose key is not the one that was looked up
_ROW_BYTES = 4 * MIB  # of a record whose decoder is used for the next one, too


class RandomAccess(Closing):
    """Records of TFRecord files by number, and by key; made by `tfrecord_io.open_random`.

    A sequence and a context manager. Threads may share it, and a forked process may use it. It can be pickled;
    unpickling opens the files again, and infers nothing again. With a `key`, ``key in records`` is whether a record has
    that key.

    Attributes
    ----------
    key : str or None
        The column that `lookup` and `get` find records by.
    schema : pyarrow.Schema
        Of the tables.
    schema_source : str
        As in `ReadReport`.
    report : ReadReport
        The records and bytes read so far, and the regions that were ``skipped``: when the files were opened, and of the
        records in tables.
    """

    def __init__(
        self, files: IndexedFiles, scan: Scan, recovery: Recovery | None = None, keys: KeyIndex | None = None
    ) -> None:
        self._files, self._scan, self._recovery, self._keys = files, scan, recovery, keys
        self._check = scan.embedded_check
        self._closed = False
        self._account = _Account()
        self._constants: dict[int, dict[str, Any]] = {}  # by file: the columns that are not features
        self.schema, self.schema_source = scan.schema, scan.resolved.source
        self.report = ReadReport(files=len(files.sources), schema_source=self.schema_source)
        self._builder = scan.compiled.builder
        self._is_of_features = len(self.schema) == len(self._builder.schema)
        if not isinstance(self._builder, BatchBuilder):
            self._builder = self._builder.counting()
            self.report.unknown_fields = self._builder.unknown
        if recovery is not None:
            self.report.skipped = recovery.skipped

    # Records ----------------------------------------------------------------------------------------------------

    def batches(self, numbers: Array, *, leaves_out: bool = False) -> Iterator[tuple[Array, pa.RecordBatch]]:
        """Batches of records, in the order requested, with the numbers of their rows.

        `leaves_out`: but for damaged ones, if `on_error` allows it.
        """
        for chunk in self._files.chunks(numbers, LIMITS.batch_bytes):
            yield from self._decode(chunk, leaves_out=leaves_out)

    def _decode(self, numbers: Array, *, leaves_out: bool) -> Iterator[tuple[Array, pa.RecordBatch]]:
        data, ends = self._files.join_frames(numbers)
        files, records = self._files.locate(numbers)
        rows = len(numbers)

        def location(row: int) -> Location:
            return int(files[row]), int(records[row])

        settings = self._scan.settings
        done = consumed = 0
        while done < rows:
            expansion = Expansion(self._scan.options.limits.expansion_bytes)
            decoder = settings.decoder()
            first, error = done, None
            while True:
                progress = decoder.feed(data, consumed, max_records=rows - done, max_bytes=LIMITS.batch_bytes)
                done, consumed = done + progress.records, consumed + progress.consumed
                if progress.fault is not None:
                    error = self._fault_error(progress.fault, location(done), data)
                    if not leaves_out or not self._leave_out(error, location(done)):
                        raise error
                    break
                if not progress.embedded:
                    break
                self._check_embedded(location(done), progress.embedded)
                decoder.accept_embedded()
            expansion.add(decoder.value_bytes)
            columns, part = decoder.take_columns(), slice(first, done)
            for kept, batch in self._build_batches(
                columns, files[part], records[part], expansion, leaves_out=leaves_out
            ):
                with self._account.lock:
                    self.report.records += len(batch)
                    self.report.bytes += int(ends[first + kept.stop] - ends[first + kept.start])
                yield numbers[part][kept], batch
            if error is not None:
                done, consumed = done + 1, int(ends[done + 1])
        if consumed != len(data):
            path, record, offset = self._origin(location(-1))
            reason = "this record, or an earlier one that was requested with it, does not have the size in the index"
            advice = "rebuild the index: tfr index"
            raise CorruptRecordError(reason, path=path, record=record, offset=offset, hint=advice)

    def _build_batches(
        self,
        columns: Mapping[str, ColumnBuffers],
        files: Array,
        records: Array,
        expansion: Expansion,
        *,
        leaves_out: bool,
    ) -> Iterator[tuple[slice, pa.RecordBatch]]:
        """Batches of decoded records and their places, but for those whose values do not fit, if they are left out."""

        def location(fault: RowFault) -> Location:
            return int(files[fault.row]), int(records[fault.row])

        def error_of(fault: RowFault) -> TFRecordError:
            path, record, offset = self._origin(location(fault))
            error = fault.to_error(path, record)
            error.offset = offset
            return error

        def passes(fault: RowFault) -> bool:
            return leaves_out and self._leave_out(error_of(fault), location(fault))

        make = partial(batch_or_fault, self._builder, columns, len(files), expansion)
        for begin, end, part in fitting_parts(len(files), make, passes):
            if isinstance(part, RowFault):
                raise error_of(part)
            if not self._is_of_features:
                sources = [self._files.sources[file] for file in files[begin:end].tolist()]
                part = self._scan.added.add_to(part, sources, self.schema)
            yield slice(begin, end), part

    def _leave_out(self, error: TFRecordError, location: Location) -> bool:
        """Leave a record out of a table, if it may be; it counts as skipped, once."""
        if self._recovery is None or not OnDamage.is_damage(error):
            return False
        path, record, offset = self._origin(location)
        end = self._files.offset(location[0], record + 1)
        region = SkippedRegion(
            path, offset, end=end, reason=error.detail, records_before=record, error=type(error).__name__
        )
        with self._account.lock:
            left_out = self._account.left_out
            if location not in left_out and self._recovery.accept(region, location[0], error):
                left_out.add(location)
            return location in left_out

    def _check_embedded(self, location: Location, contents: Sequence[bytes]) -> None:
        path, record, offset = self._origin(location)
        for content in contents:
            verdict = self._check.check(path, record, offset, content)
            if verdict is not None:
                raise verdict.late_error() if isinstance(verdict, SchemaRevision) else verdict

    def _origin(self, location: Location) -> tuple[str, int, int]:
        """Path, record index and offset of a record, for errors."""
        file, record = location
        return self._files.sources[file].path, record, self._files.offset(file, record)

    def _fault_error(self, fault: Fault, location: Location, data: BlockReader.Buffer) -> TFRecordError:
        path, record, offset = self._origin(location)
        fault, settings = fault._replace(record=0, offset=0), self._scan.settings
        error = fault.error_in(
            path,
            record=record,
            offset=offset,
            data=data,
            contradicts_sample=settings.contradicts_sample,
            plan=settings.plan,
        )
        error.records_intact = None  # the records before it were not read
        return error

    # Public methods -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        return f"<RandomAccess to {len(self):,} records of {self._scan.files_and_columns()}>"

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: slice | Sequence[int] | npt.NDArray[np.integer[Any]]) -> pa.Table: ...

    def __getitem__(self, key: Any) -> Any:
        """One record as a dict, for an integer; several as a pyarrow.Table, for a slice, sequence or array of integers.

        Raises
        ------
        IndexError
            A number is out of range.
        TFRecordError
            A record is damaged or does not fit the schema; the message names it. Of several records, ``on_error``
            may leave it out.
        """
        if self._closed:
            raise ValueError("the file is closed")
        if isinstance(key, slice):
            return self._table(np.arange(*key.indices(len(self)), dtype=np.int64))
        number = key if type(key) is int else _as_integer(key)
        if number is None:
            return self._table(_normalize(_as_integers(key), len(self)))
        count = len(self._files)
        if not -count <= number < count:
            by_key = "" if self._keys is None else f"; lookup({number}) finds a record by its key"
            raise IndexError(f"record {number} is out of range: the files have {count} records{by_key}")
        return self._row(number if number >= 0 else number + count)

    def _row(self, number: int) -> dict[str, Any]:
        """A record as a dict, in the quickest way that its columns allow."""
        rows = self._python_rows
        if rows is not None:
            file, frame = self._files.frame(number, _ROW_BYTES)
            row = rows.row(frame) if len(frame) else None
            if row is not None:
                with self._account.lock:
                    self.report.records += 1
                    self.report.bytes += len(frame)
                return row if self._is_of_features else self._add_constants(row, file)
        ((_, batch),) = self.batches(np.array([number]))
        return _cells(batch)

    @cached_property
    def _python_rows(self) -> RecordDicts | None:
        builder, settings = self._scan.compiled.builder, self._scan.settings
        if not isinstance(builder, BatchBuilder) or settings.prefilter is not None:
            return None
        return RecordDicts.from_builder(builder, settings.plan, as_bytes=settings.as_bytes)

    def _add_constants(self, row: dict[str, Any], file: int) -> dict[str, Any]:
        """A row with the columns whose values are those of its file."""
        constants = self._constants.get(file)
        if constants is None:
            batch = self._scan.added.row_of(self._files.sources[file], self.schema)
            constants = self._constants[file] = _cells(batch)
        return {name: row[name] if name in row else constants[name] for name in self.schema.names}

    def _table(self, numbers: Array) -> pa.Table:
        table = self._table_if(numbers, lambda *_: True)
        assert table is not None
        return table

    def _table_if(self, numbers: Array, holds: Callable[[Array, pa.RecordBatch], bool]) -> pa.Table | None:
        """A table of records; None if something does not hold for a batch of them, and their numbers."""
        before, batches = self.report.skipped.total, []
        for part, batch in self.batches(numbers, leaves_out=True):
            if not holds(part, batch):
                return None
            batches.append(batch)
        table = BatchBuilder.table_of(batches, self.schema)
        if self.report.skipped.total > before:
            self.report.warn_of_skipped()
        return table

    def _select_columns(self, table: pa.Table) -> pa.Table:
        """Select the columns of these records from a table with further ones."""
        return table.select(self.schema.names).replace_schema_metadata(self.schema.metadata)

    def select(self, filters: Any) -> SelectedRecords:
        """The records that meet a condition; one that is null is not met.

        >>> import tfrecord_io as tfr
        >>> letters = {"label": [3, 1, 3], "name": ["a", "b", "c"]}
        >>> _ = tfr.write_tfrecord(letters, "chosen.tfrecord")
        >>> _ = tfr.build_index("chosen.tfrecord", columns=["label"])
        >>> with tfr.open_random("chosen.tfrecord") as records:
        ...     threes = records.select([("label", "==", 3)])
        ...     len(threes), threes[-1], threes.numbers
        (2, {'label': 3, 'name': 'c'}, array([0, 2]))

        Parameters
        ----------
        filters : pyarrow.compute.Expression, str, list of tuples, or list of lists of tuples
            As in `Dataset.filter`. The column index of a file (``tfr index --columns``, `build_index`) names which of
            its records to read; the columns of the condition are read where no index has them. When a record is read
            that an index found, the condition is applied to it: if it is not met, all records are searched
            without indexes, with a StaleIndexWarning. An index that does not match its file is treated in the same way.

        Returns
        -------
        SelectedRecords
            With ``len``, ``[i]``, ``[a:b]`` and ``[[i, j]]`` as here, ``numbers``, and ``to_table()``.

        Raises
        ------
        FeatureNotFoundError, SchemaError
            As `Dataset.filter`.
        """
        if self._closed:
            raise ValueError("the file is closed")
        every = apply_filter(self._scan.with_selection(columns=None), filters)
        row_filter, scan = every.row_filter, every.only([]).without_filter()
        assert row_filter is not None
        exact, doubtful, unindexed = matching_numbers(self._files, column_search(scan, row_filter))
        condition = _Condition(
            self._replace_scan(every.only(self.schema.names).without_filter(), counts=True), row_filter, scan
        )
        selected = SelectedRecords(self, doubtful, condition)
        if len(self._filter_numbers(row_filter, scan, doubtful)) < len(doubtful):
            selected._search(condition)
            return selected
        passing = self._filter_numbers(row_filter, scan, unindexed)
        selected.numbers = np.sort(np.concatenate([exact, doubtful, passing]))
        if len(passing) == len(selected.numbers):
            selected._condition = None
        return selected

    def _filter_numbers(self, row_filter: RowFilter, scan: Scan, numbers: Array) -> Array:
        """The numbers of the records that fulfil a condition, from a scan with its columns."""
        before, batches = self.report.skipped.total, self._replace_scan(scan).batches
        passing = [row_filter.rows(batch, part) for part, batch in batches(numbers, leaves_out=True)]
        if self.report.skipped.total > before:
            self.report.warn_of_skipped()
        return np.concatenate([numbers[:0], *passing])

    def _replace_scan(self, scan: Scan, *, counts: bool = False) -> RandomAccess:
        """Access the same records with other columns; a record that is left out counts once.

        `counts`: what is read counts as read here.
        """
        records = RandomAccess(self._files, scan, self._recovery)
        records._account = self._account
        if counts:
            records.report = self.report
        return records

    # Keys -------------------------------------------------------------------------------------------------------

    def _read_keys(self, name: str, keep: KeepKey | None, *, by_index: bool = True) -> None:
        """Hold the key of each record: from column indexes, and of files without one from the records."""
        try:
            scan = self._scan_with(name)
        except FeatureNotFoundError as error:
            valid = f"valid names: {', '.join(sorted(self._scan.with_selection(columns=None).schema.names))}"
            raise FeatureNotFoundError("the column of the keys does not exist", feature=name, hint=valid) from error
        records = self._replace_scan(scan.only([name]).without_filter())
        field = records._scan.compiled.schema.field(name)
        key_type(field)  # raises an error
        self._keys = KeyIndex(field, records.values(by_index=by_index), keep)

    def _scan_with(self, name: str) -> Scan:
        """A scan of all columns, with one of this name."""
        scan = add_condition_columns(self._scan.with_selection(columns=None), condition_of([(name, "!=", None)]))
        return replace(scan, selected=None)

    @cached_property
    def _with_keys(self) -> RandomAccess:
        """Add the column of keys, to compare each record's key with the key that found it."""
        name = self._held_keys().name
        if name in self.schema.names:
            return self
        return self._replace_scan(self._scan_with(name).only([*self.schema.names, name]).without_filter(), counts=True)

    def values(self, *, by_index: bool = True) -> list[pa.Array]:
        """The values of the only column in all records, from column indexes where files have one of it."""
        files = self._files
        indexed = indexed_fields(self._scan, self.schema.names) if by_index else []
        column_chunks = indexed_keys(files, indexed[0]) if indexed else [None] * len(files.sources)
        chunks: list[pa.Array] = []
        for file, chunks_of_file in enumerate(column_chunks):
            numbers = np.arange(files.first[file], files.first[file + 1], dtype=np.int64)
            chunks += self._column(numbers) if chunks_of_file is None else chunks_of_file
        return chunks

    def _column(self, numbers: Array) -> list[pa.Array]:
        """The values of the only column in consecutive records; null in those that are left out as damaged."""
        arrays, first = [], 0
        for rows, batch in self.batches(numbers, leaves_out=True):
            end = int(rows[-1] - numbers[0]) + 1 if len(rows) else first
            column = batch.column(0)
            if len(rows) < end - first:
                places = np.full(end - first, -1)
                places[rows - numbers[first]] = np.arange(len(rows))
                column = selectable(column).take(pa.array(places, mask=places < 0))
            arrays.append(column)
            first = end
        if first < len(numbers):
            arrays.append(pa.nulls(len(numbers) - first, self.schema.field(0).type))
        return arrays

    @property
    def key(self) -> str | None:
        return None if self._keys is None else self._keys.name

    @overload
    def lookup(self, key: Key) -> dict[str, Any]: ...

    @overload
    def lookup(self, key: Sequence[Key] | npt.NDArray[Any] | ArrowArray | ArrowStream) -> pa.Table: ...

    def lookup(self, key: Any) -> Any:
        """The record with a key as a dict, or those with several keys as a pyarrow.Table, in the order requested.

        >>> import tfrecord_io as tfr
        >>> _ = tfr.write_tfrecord({"id": ["a", "b", "c"], "x": [1, 2, 3]}, "keyed.tfrecord")
        >>> with tfr.open_random("keyed.tfrecord", key="id") as records:
        ...     records.lookup("b"), records.lookup(["c", "a"])["x"].to_pylist(), "d" in records
        ({'id': 'b', 'x': 2}, [3, 1], False)

        Parameters
        ----------
        key : str, bytes or int, or a sequence or an array of these
            Values of the column that `open_random` was given as ``key=``, of its type.

        Raises
        ------
        KeyError
            No record has the key, or one of the keys.
        TypeError
            The key is of another type than the column.
        ValueError
            `open_random` was given no ``key=``.
        TFRecordError
            As ``records[i]``.

        Warns
        -----
        StaleIndexWarning
            A record has another key than when the keys were read, or than its column index states: the keys of all
            records are read again, without indexes.
        """
        if isinstance(key, np.ndarray) and not key.ndim:
            key = key[()]
        if isinstance(key, str | bytes | int | np.integer):
            return self._find_by_key(lambda: self._row_of(key))
        if not isinstance(key, Iterable):
            self._held_keys().find(key)  # raises a TypeError
        asked = key if hasattr(key, "__len__") else list(key)  # it may be found twice
        return self._find_by_key(lambda: self._table_of(asked))

    def get(self, key: Key, default: Any = None) -> Any:
        """The record with a key as a dict, as `lookup`; `default` if no record has it."""
        return default if self._held_keys().find(key) < 0 else self._find_by_key(lambda: self._row_of(key, default))

    def all(self, key: Key) -> list[dict[str, Any]]:
        """All records with a key as dicts, in their order; none if no record has it.

        >>> import tfrecord_io as tfr
        >>> _ = tfr.write_tfrecord({"user": ["a", "b", "a"], "x": [1, 2, 3]}, "visits.tfrecord")
        >>> with tfr.open_random("visits.tfrecord", key="user", keep="first") as records:
        ...     records.all("a"), records.lookup_all(["b", "a"])["x"].to_pylist()
        ([{'user': 'a', 'x': 1}, {'user': 'a', 'x': 3}], [2, 1, 3])

        A key may be that of several records if `open_random` was given ``keep="first"``; `lookup` returns the first.
        The first call groups the keys of all records; after it, a key is found in microseconds, as by `lookup`.

        Raises
        ------
        TypeError, ValueError, TFRecordError
            As `lookup`.
        """
        found: list[dict[str, Any]] = self._find_by_key(lambda: self._rows_of(key))
        return found

    def lookup_all(self, keys: Sequence[Key] | npt.NDArray[Any] | ArrowArray | ArrowStream) -> pa.Table:
        """All records with several keys as a table: those of each key, in their order, in the order of the keys.

        Raises
        ------
        KeyError
            A key is of no record.
        TypeError, ValueError, TFRecordError
            As `lookup`.
        """
        if isinstance(keys, str | bytes) or not isinstance(keys, Iterable) or getattr(keys, "ndim", 1) == 0:
            raise TypeError(
                f"lookup_all takes several keys, not {type(keys).__name__}; all(key) has the records of one"
            )
        asked: Any = keys
        asked = asked if hasattr(asked, "__len__") else list(asked)  # it may be found twice
        table: pa.Table = self._find_by_key(lambda: self._table_of(asked, each=True))
        return table

    def _find_by_key(self, find: Callable[[], Any]) -> Any:
        """Find by keys; if a record has another key now, the keys are read again."""
        result = find()
        if result is not _OTHER:
            return result
        keys = self._held_keys()
        reason = f"the column '{printable(keys.name)}' has other keys than when they were read, or than an index has"
        self._files.warn_of_stale([f"{reason}; they are read again from the records of {self._scan.describe()}"])
        self._read_keys(keys.name, keys.keep, by_index=False)
        result = find()
        if result is _OTHER:
            raise CorruptRecordError(f"{reason}: the files are being changed", path=self._files.sources[0].path)
        return result

    def _row_of(self, key: Key | np.integer[Any], *default: Any) -> Any:
        keys, records = self._held_keys(), self._with_keys
        number = keys.find(key)
        if number < 0:
            if default:
                return default[0]
            raise KeyError(key)
        row = records._row(number)
        key_of_row = row[keys.name] if records is self else row.pop(keys.name)
        return row if keys.is_key_of(number, key_of_row) else _OTHER

    def _rows_of(self, key: Key) -> Any:
        keys, records, rows = self._held_keys(), self._with_keys, []
        for number in keys.numbers_of(key):
            row = records._row(number)
            key_of_row = row[keys.name] if records is self else row.pop(keys.name)
            if not keys.has_key(number, key_of_row):
                return _OTHER
            rows.append(row)
        return rows

    def _table_of(self, asked: Any, *, each: bool = False) -> Any:
        keys, records = self._held_keys(), self._with_keys
        is_right = keys.has_key if each else keys.is_key_of
        table = records._table_if(
            keys.find_all(asked, each=each),
            lambda numbers, batch: all(map(is_right, numbers.tolist(), batch.column(keys.name).to_pylist())),
        )
        return _OTHER if table is None else self._select_columns(table)

    def __contains__(self, key: object) -> bool:
        if self._keys is None and isinstance(key, Mapping):  # one of the records
            names = set(self.schema.names)
            records = (self[number] for number in range(len(self) * (names == key.keys())))
            return any(all(np.array_equal(record[name], key[name]) for name in names) for record in records)
        return self._held_keys().find(key) >= 0

    def _held_keys(self) -> KeyIndex:
        if self._closed:
            raise ValueError("the file is closed")
        if self._keys is None:
            raise ValueError('records are found by a key only if open_random is given its column: key="image/id"')
        return self._keys

    def close(self) -> None:
        """Close the files."""
        self._closed = True
        self._files.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._closed:
            raise ValueError("the file is closed")
        return RandomAccess, (self._files, self._scan, self._recovery, self._keys)


class _Account(Shared):
    """The records that were left out of tables, and the lock of reports: one for all columns of the same records."""

    def __init__(self) -> None:
        self.left_out: set[Location] = set()
        self._share()

    @property
    def lock(self) -> AbstractContextManager[Any]:
        return self._lock

    def _after_fork(self) -> None:
        self._share()


class _Condition(NamedTuple):
    """The condition of `RandomAccess.select`, checked when records found by indexes are read."""

    wider: RandomAccess  # the same records, with the columns of the condition
    row_filter: RowFilter
    scan: Scan  # of these

    def holds(self, _: Any, batch: pa.RecordBatch) -> bool:
        """True if all rows of a batch fulfil the condition."""
        return len(self.row_filter.rows(batch, np.arange(len(batch)))) == len(batch)


class SelectedRecords:
    """The records that meet a condition, numbered from 0 on; made by `RandomAccess.select`.

    It can be used while the files of the `RandomAccess` are open. It can be pickled with them.

    Attributes
    ----------
    numbers : int64 array
        Their numbers in the `RandomAccess`, ascending. Where an index found them, and a record that is read does not
        meet the condition, they become those of a search of all records.
    schema : pyarrow.Schema
        Of the tables.
    """

    def __init__(self, records: RandomAccess, numbers: Array, condition: _Condition | None) -> None:
        self._records, self.numbers, self._condition = records, numbers, condition
        self.schema = records.schema

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"<SelectedRecords: {len(self):,} of {self._records!r}>"

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: slice | Sequence[int] | npt.NDArray[np.integer[Any]]) -> pa.Table: ...

    def __getitem__(self, key: Any) -> Any:
        """One record as a dict, or several as a pyarrow.Table; see `RandomAccess`."""
        condition, records = self._condition, self._records
        if condition is not None:
            chosen = self._select_numbers(key)
            if isinstance(chosen, int):
                ((_, batch),) = condition.wider.batches(np.array([chosen]))
                if condition.holds(chosen, batch):
                    return _cells(batch.select(records.schema.names))
            elif (table := condition.wider._table_if(chosen, condition.holds)) is not None:
                return records._select_columns(table)
            self._search(condition)
        return records[self._select_numbers(key)]

    def _search(self, condition: _Condition) -> None:
        """Find the records without indexes, as one that an index found does not fulfil the condition."""
        records, (_, row_filter, scan) = self._records, condition
        reason = f"a record that a column index found does not meet '{row_filter.words.text}'"
        records._files.warn_of_stale([f"{reason}; all records of {scan.describe()} are read, the index is not used"])
        self.numbers = records._filter_numbers(row_filter, scan, np.arange(len(records)))
        self._condition = None

    def _select_numbers(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self.numbers[key]
        number = _as_integer(key)
        if number is None:
            return self.numbers[_normalize(_as_integers(key), len(self), "the selection has")]
        return int(self.numbers[_normalize(np.array([number]), len(self), "the selection has")][0])

    def to_table(self) -> pa.Table:
        """All of them as a pyarrow.Table, in their order."""
        return self[:]


def _as_integer(key: Any) -> int | None:
    """The key as one number; None if it is not a number."""
    if isinstance(key, bool | np.bool_):
        raise TypeError("a record index is an integer, not a bool")
    if getattr(key, "ndim", 0):
        return None
    try:
        return operator.index(key)
    except TypeError:
        return None


def _as_integers(key: Any) -> Array:
    if isinstance(key, str | bytes):
        advice = "open_random(…, key=…).lookup(…) finds records by a key"
        raise TypeError(f"a record index is an integer, not {type(key).__name__}; {advice}")
    numbers = np.asarray(key)
    if numbers.size == 0 and numbers.ndim == 1:
        return np.empty(0, np.int64)
    if numbers.ndim == 1 and numbers.dtype == object and all(type(number) is int for number in numbers):
        numbers = np.array([min(max(number, -(2**63)), 2**63 - 1) for number in numbers])  # which are out of range
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        got = f"a {type(key).__name__} ({numbers.ndim} dimensions, {numbers.dtype})"
        got = "bools" if numbers.dtype.kind == "b" else got
        raise TypeError(f"records are selected by an integer, a slice, or a sequence of integers, not by {got}")
    if numbers.dtype.kind == "u":  # large numbers must not wrap around to negative ones
        numbers = np.minimum(numbers.astype(np.uint64), np.uint64(2**63 - 1))
    return numbers.astype(np.int64)


def _normalize(numbers: Array, count: int, owner: str = "the files have") -> Array:
    """Numbers counted from the start, of `count` records; raises IndexError if one is out of range."""
    invalid = (numbers < -count) | (numbers >= count)
    if invalid.any():
        raise IndexError(f"record {numbers[invalid.argmax()]} is out of range: {owner} {count} records")
    return np.where(numbers < 0, numbers + count, numbers)


def _cells(batch: pa.RecordBatch) -> dict[str, Any]:
    """The first row of a batch."""
    return {
        field.name: Column(field).cell(column, 0) for field, column in zip(batch.schema, batch.columns, strict=True)
    }


class _Options(ReadOptions):
    """Keywords of `open_random`."""

    _takes = staticmethod(OnDamage.allows_numbers)


@check_keywords
def open_random(
    source: FilesLike,
    *,
    index: Path | Iterable[Path] | None = None,
    key: str | None = None,
    keep: KeepKey | None = None,
    columns: Sequence[str] | str | None = None,
    schema: SchemaLike | Literal["infer"] | None = None,
    on_error: OnError | None = None,
    storage_options: StorageLike | None = None,
    filesystem: Any = None,
) -> RandomAccess:
    """Open TFRecord files to read any of their records, by number or by key.

    The record offsets come from the index of each file (``write_index=True``, ``tfr index``), which is next to it or
    named by `index`; without an index, this call reads all record headers of the file. Records are read one by one from
    a disk, and with several range requests at a time from a bucket.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"x": [1, 2, 3], "word": ["a", "b", None]}, "words.tfrecord", write_index=True
    ... )
    >>> with tfr.open_random("words.tfrecord") as records:
    ...     len(records), records[-1], records[[1, 0, 1]]["word"].to_pylist()
    (3, {'x': 3, 'word': None}, ['b', 'a', 'b'])

    Parameters
    ----------
    source : str, PathLike, Dataset, or list of those
        As in `read_tfrecord`; a `dataset` has more reading options.
        The files must not be compressed: a compressed one can only be read from its start.
    index : str, PathLike or list of those, optional
        The path or URL of the index file, or for several data files a list of these, in the order in which the files
        are read. By default, ``x.tfrecord.index``, ``.tfindex`` or ``.idx``, or ``x.index`` and so on, next to
        ``x.tfrecord``.
    key : str, optional
        A column of text, bytes or integers by which `RandomAccess.lookup` finds records; it need not be one of
        `columns`. This call reads the keys from the column index of each file (``tfr index --columns``, `build_index`)
        or, without one, from all records, and holds them in memory: about 18 bytes for each, besides its own
        bytes. Records whose key is null cannot be found.
    keep : "first", optional
        Find the first of several records with the same key. By default, a key that occurs more than once is an error.
    columns, schema, storage_options, filesystem
        As in `read_tfrecord`.
    on_error : {"raise", "skip"} or callable, optional
        "skip" leaves damaged records out of tables, with a DamagedDataWarning; ``records[i]`` still raises the error.
        If headers are damaged and the file has no index, only the records that can be found have a number.
        ``report.skipped`` has each region. A callable gets each error, with its ``region``, and returns True to leave
        the region out, or False to raise the error.

    Returns
    -------
    RandomAccess
        A context manager. ``records[i]`` is a dict: a scalar is its value, a list or tensor an ndarray, a missing value
        None; a time that Python cannot hold is a datetime64 or timedelta64. ``records[a:b]`` and ``records[[i, j]]``
        are pyarrow.Tables, in the order requested. ``len(records)`` is the number of records. The schema is fixed when
        this call returns, as in `open_reader`.

    Raises
    ------
    ValueError
        A file is compressed, or `index` names more or fewer files than `source`.
    CorruptRecordError
        A file is damaged, or `index` does not match it. Other index files that do not match are skipped with a
        StaleIndexWarning.
    FeatureNotFoundError
        No column has the name `key`.
    SchemaError
        Keys occur more than once; the message says how many, and which.
    FileNotFoundError, DecodeError, SchemaError
        As `read_tfrecord`.
    """
    requested = options_from_call(
        _Options,
        open_random,
        source,
        columns=columns,
        schema=schema,
        on_error=on_error,
        storage_options=storage_options,
        filesystem=filesystem,
    )
    if not isinstance(key, str | None):
        raise TypeError(f"key={key!r}: expected the name of one column")
    if keep is not None and (keep != "first" or key is None):
        raise for_cli(ValueError(f'keep={keep!r}: expected "first", with key='), f"--keep {keep} needs --key")
    sampling: OnError = "raise" if requested.damage.is_strict else "skip"  # a callable is asked when records are read
    sampling_options = replace(requested, threads=1, on_error=sampling)
    found, part = _numbered_files(source, sampling_options)
    sources, options = list(found.sources), found.options
    recovery = Recovery.of(requested.on_error, sources)
    suffixes = (*SUFFIXES, COLUMNS_SUFFIX) if key is None else (COLUMNS_SUFFIX, *SUFFIXES)
    index_sources = find_indexes(sources, index, options.storage, suffixes=suffixes)
    recover = None if recovery is None else partial(index_around_damage, recovery, options)
    files = IndexedFiles(
        sources,
        index_sources,
        options.limits.record_bytes,
        checks=Checks.from_check_crc(options.check_crc),
        named=index is not None,
        recover=recover,
    )
    try:
        records = RandomAccess(files, plan_records(files, options, found.selection, part), recovery)
        if key is not None:
            records._read_keys(key, keep)
    except BaseException:
        files.close()
        raise
    files.forget()
    records.report.warn_of_skipped()
    return records


def _numbered_files(source: Any, options: ReadOptions) -> tuple[Files[ScanOptions], Scan | None]:
    """The files whose records are read by number, and the scan of a part of a dataset.

    The scan, which has the dataset's schema, is None for anything else.
    """
    found = resolve_source(source, options)
    if isinstance(found, Scan):
        files = Files(found.sources, options.of_scan, selection_of(found))
        return files, found if found.origin is None else None
    if any(isinstance(file.derived, ChosenRecords) for file in found.sources):  # to begin with the schema of others
        reason = "a piece of a dataset beside other sources is read from the first record to the last"
        raise ValueError(f"{reason}: open it by itself, or pass the whole dataset")
    return found, None
