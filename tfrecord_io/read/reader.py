"""Read Arrow record batches of one schema from decoded chunks."""

from __future__ import annotations

from bisect import bisect, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.c_stream import BatchStream
from tfrecord_io.arrow.decode.batch_builder import to_table
from tfrecord_io.arrow.output.pandas_metadata import stored_index, without_index
from tfrecord_io.arrow.output.to_pandas import to_pandas
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import TFRecordError
from tfrecord_io.format.expansion import Expansion
from tfrecord_io.options import MIB
from tfrecord_io.read.chunks.chunk import DecodedChunk
from tfrecord_io.read.chunks.embedded_schemas import ForeignFeature, SchemaRevision
from tfrecord_io.read.chunks.recovery import SkippedRegions
from tfrecord_io.read.fitting_parts import chunk_batches, leave_out
from tfrecord_io.read.open_scan import OpenScan, RecordTypeVerdict
from tfrecord_io.read.report import ReadReport, end_read
from tfrecord_io.storage.read.source import Source
from tfrecord_io.typing import DtypeBackend

if TYPE_CHECKING:
    import pandas as pd


E = TypeVar("E", bound=Exception)

_MOST_COPIED = 16 * MIB  # of a batch that is joined with what precedes it


class Reader(BatchStream):
    """Record batches of one schema from TFRecord files; made by `tfrecord_io.open_reader`.

    A context manager and an iterator, consumed once. Anything that accepts ``__arrow_c_stream__`` can read from it:
    polars, DuckDB, pyarrow.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of every batch.
    report : ReadReport
    fault : Exception or None
        What stopped the reading; across ``__arrow_c_stream__`` a consumer sees only its text.
    origins : RowOrigins
        The records of the rows delivered so far.
    payload_bytes : int
        The size of these records.
    """

    _word = "reader"

    def __init__(self, scan: OpenScan) -> None:
        super().__init__()
        self._begin(scan)
        self.warn_of_damage: Callable[[SkippedRegions], None] = SkippedRegions.warn  # at the end
        self._may_unite = False  # whether all is read again if a file without an embedded schema has more features
        self._batches: Generator[pa.RecordBatch] = self._joined()

    def _begin(self, scan: OpenScan) -> None:
        self._scan = scan
        self._chunks = scan.chunks()
        self._schema = scan.schema if scan.selection is None else scan.selection.schema(scan.schema)
        self._to_drop = scan.options.rows_to_drop
        self._left = None if scan.selection is None else scan.selection.limit  # rows that are still delivered
        self._revision: SchemaRevision | ForeignFeature | None = None
        self._expansion = Expansion(scan.options.max_expansion)
        self.origins = RowOrigins()
        self.payload_bytes = 0
        self._begun: set[str] = set()  # files whose first record was read
        self.report = ReadReport(schema_source=scan.schema_source)
        if scan.reader.recovery is not None:
            self.report.skipped = scan.reader.recovery.skipped

    def __repr__(self) -> str:
        return f"<Reader of {self._scan.describe()}>"

    def _built(self) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yield (batch, whether it ends a joined one) for each chunk, then raise the error that ended the read.

        A revision in the last chunk is kept instead, and ends the iteration.
        """
        scan, rows = self._scan, Counter[int]()
        if self._left == 0 or not scan.sources:  # no row of them is in the result
            return
        decided = scan.schema_source in ("inferred", "companions")
        record_type = RecordTypeVerdict(scan.check_record_type, whole=scan.whole, decided=decided)
        for chunk in self._chunks:
            record_type.observe(chunk)
            parts, error, intact = self._parts(chunk)
            for _, batch in parts:
                if scan.absent is not None:
                    scan.absent.observe(batch)
            rows[chunk.file] += intact
            ends, source = chunk.ends_batch, scan.sources[chunk.file]
            revision: SchemaRevision | ForeignFeature | None = chunk.revision
            if chunk.first_record == 0 and source.begins_file and (intact or error is not None):
                self._begun.add(chunk.path)
            if error is not None and chunk.path in self._begun:
                revision = self._governed(error)
            self.report.bytes, self.report.files = scan.reader.bytes, scan.reader.files
            batches = deque(self._delivered(chunk, first, batch) for first, batch in parts)
            del chunk, parts, batch
            while batches:
                yield batches.popleft(), ends and len(batches) == 0  # only the consumer keeps it from here on
            if self._left == 0:
                self._close_files()
                self.warn_of_damage(self.report.skipped)
                return
            if revision is not None:
                self._revision = revision
                return
            if error is not None:
                record_type.decide()
                self._stop(_located(error, source))
                return
        record_type.decide()
        scan.check_counts(rows, self.report.skipped)
        self.warn_of_damage(self.report.skipped)
        if not self.report.records:
            scan.warn_of_no_records()
        scan.warn_of_absent(self.report.records)

    def _parts(self, chunk: DecodedChunk) -> tuple[list[tuple[int, pa.RecordBatch]], Exception | None, int]:
        """The batches of a chunk, its error, and the number of records that were read before that and not left out.

        Each batch has the index of its first row among those held; there are several where rows are left out.
        """
        scan = self._scan
        self._expansion.add(chunk.payload_bytes)
        self.payload_bytes += chunk.payload_bytes
        recovery, budget = scan.reader.recovery, scan.budget
        parts, fault, left_out = chunk_batches(chunk, scan.builder, self._expansion, recovery, budget, scan.fails)
        if chunk.ends_batch and not scan.whole:
            self._expansion = Expansion(scan.options.max_expansion)
        error, rows = chunk.error, chunk.rows
        if fault is not None:
            chunk.revision, rows = None, chunk.row(fault.row)
            error = fault.to_error(path=chunk.path, record=chunk.first_record + rows)
        intact = rows - len(left_out)
        if dropped := min(self._to_drop, intact):
            parts = _without_rows(chunk, parts, dropped, left_out)
            self._to_drop -= dropped
        self.report.records += intact - dropped
        add, source, path_column = scan.partitions.add_to, scan.sources[chunk.file], scan.options.include_file_paths
        batches = [(first, add(batch, [source], scan.schema, path_column)) for first, batch in parts]
        return batches, error, intact

    def _delivered(self, chunk: DecodedChunk, first: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What is delivered of a batch of the rows of a chunk, of those held from the `first` on."""
        if self._scan.selection is None:
            self.origins.add(chunk.path, chunk.first_record + first, len(batch), file=chunk.file)
            return batch
        chosen, numbers = self._scan.selection.chosen(batch, self._left)
        numbers = numbers + first if chunk.kept is None else chunk.kept[numbers + first]
        self.origins.add_some(chunk.path, chunk.first_record, numbers, file=chunk.file)
        if self._left is not None:
            self._left -= len(chosen)
        return chosen

    def _governed(self, error: Exception) -> ForeignFeature | None:
        """Where an error ends the read: the feature to read everything again with, else make it name the schema."""
        check = self._scan.reader.check
        feature = check.foreign_feature(error) if self._may_unite else None
        if feature is None:
            check.name_governing_file(error)
        else:
            self._may_unite = False
        return feature

    def _stop(self, error: Exception) -> None:
        self._close_files()
        if isinstance(error, TFRecordError):
            error.records_intact = self.report.records
        self.report.stopped = end_read(error, self._scan.options.on_error)

    def _joined(self) -> Generator[pa.RecordBatch]:
        """Batches of the requested size: those of small files are joined, a large one stays as it is."""
        pending: list[pa.RecordBatch] = []
        if self._scan.replan is not None:  # the plan is final now, and no other scan shares the sources
            for source in self._scan.sources:
                source.read_once()
        try:
            for batch, ends in self._built():
                if pending and batch.nbytes > _MOST_COPIED:
                    yield _join(pending)
                if len(batch):
                    pending.append(batch)
                del batch
                if ends and pending:
                    yield _join(pending)
            self._raise_revision()
        except Exception:
            if pending:
                yield _join(pending)
            raise
        if pending:
            yield _join(pending)

    def _raise_revision(self) -> None:
        """Raise if an embedded schema was found too late for the plan."""
        if self._revision is not None:
            self._close_files()
            raise self._revision.late_error()

    # Public methods -------------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """Of every batch."""
        return self._schema

    def read_all(self) -> pa.Table:
        """All remaining rows as one table.

        Raises
        ------
        TFRecordError
            With ``records_intact``, the number of rows before the damage.
        """
        with self._lock:
            return self._read_all()

    def _read_all(self) -> pa.Table:
        self._refuse_used()
        if self._started:
            return self.with_common_index(to_table(list(self), self.schema))
        self._may_unite = self._scan.replan is not None
        try:
            while True:
                batches = [batch for batch, _ in self._built() if len(batch)]
                if self._revision is None or self._scan.replan is None:
                    self._raise_revision()
                    break
                batches.clear()
                self._begin(self._scan.replan(self._revision))
            table = self.with_common_index(to_table(batches, self.schema))
            self._started = self._ended = True
            return table
        except Exception as error:
            self._fail(error)
            raise
        except BaseException as interrupt:
            self._interrupted(interrupt)
            raise

    def with_common_index(self, table: pa.Table) -> pa.Table:
        """The table; its metadata states an index only if all files that were read have it."""
        if self.report.schema_source != "embedded" or self._scan.reader.check.index_is_in(self._begun):
            return table
        return table.replace_schema_metadata(without_index(table.schema).metadata)

    def read_pandas(self, dtype_backend: DtypeBackend | None = None) -> pd.DataFrame:
        """All remaining rows as a DataFrame; see `tfrecord_io.read_tfrecord`."""
        started = self._started
        table = self.read_all()
        if not stored_index(table.schema):
            table = table.drop_columns(list(self._scan.added_index))
        return to_pandas(table, dtype_backend, whole_file=self.is_one_whole_file and not started)

    def origin(self, row: int) -> tuple[str, int]:
        """Path and record index of a row, counted from the first one delivered."""
        path, record = self.origins.of(row)
        origin = self._scan.sources[self.origins.file_of(row)].origin
        found = None if origin is None else origin(record)
        return (path, record) if found is None or found.record is None else (found.path or path, found.record)

    @property
    def goes_on(self) -> bool:
        """Whether damage may be left out: with ``on_error="skip"`` or a callable."""
        return self._scan.reader.recovery is not None

    def leave_out(self, fault: RowFault) -> bool:
        """Whether the row of a fault, counted from the first one delivered, may be left out; it counts as skipped."""
        path, record = self.origins.of(fault.row)
        left_out = leave_out(self._scan.reader.recovery, fault, path, self.origins.file_of(fault.row), record)
        self.report.records -= left_out
        return left_out

    def row_error(self, fault: RowFault) -> TFRecordError:
        """The error of a row, counted from the first one delivered."""
        error = fault.to_error(*self.origins.of(fault.row))
        error.__cause__ = fault.__cause__
        return _located(error, self._scan.sources[self.origins.file_of(fault.row)])

    def defer_warning(self) -> None:
        """Leave the warning of what is left out to the caller, who may leave out more rows: `report.skipped.warn`."""
        self.warn_of_damage = lambda skipped: None

    @property
    def is_one_whole_file(self) -> bool:
        """Whether all rows of one file are read: only then does its stored RangeIndex apply."""
        options, selection = self._scan.options, self._scan.selection
        is_filtered = selection is not None and (selection.row_filter is not None or selection.limit is not None)
        return len(self._scan.sources) == 1 and options.offset == 0 and options.limit is None and not is_filtered

    def _close(self) -> None:
        self._batches.close()
        self._close_files()
        if self._scan.replan is not None:
            for source in self._scan.sources:
                source.close()

    def _close_files(self) -> None:
        self._chunks.close()
        self._scan.reader.close()


def _located(error: E, source: Source) -> E:
    """An error of a source, which may be a part of a file."""
    if isinstance(error, TFRecordError):
        error.in_piece(source.begin)
        origin = None if source.origin is None or error.record is None else source.origin(error.record)
        if origin is not None:
            error.path, error.record, error.offset = origin
    return error


def _without_rows(
    chunk: DecodedChunk, parts: list[tuple[int, pa.RecordBatch]], rows: int, left_out: Sequence[int]
) -> list[tuple[int, pa.RecordBatch]]:
    """The batches of a chunk without its first `rows`, not counting those that are `left_out`."""
    kept = []
    for first, batch in parts:
        number = rows + bisect(left_out, first)
        begin = max(first, number if chunk.kept is None else int(chunk.kept.searchsorted(number)))
        if begin < first + len(batch):
            kept.append((begin, batch.slice(begin - first)))
    return kept or [(0, parts[0][1].slice(0, 0))]


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Join the batches, and empty the list so that only the caller holds the result."""
    joined = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    batches.clear()
    return joined


class RowOrigins:
    """The records that the rows of a read come from.

    Consecutive records of one file take one entry; where a filter leaves some out, an entry has a bit for each record.

    Attributes
    ----------
    rows : int
        Number of rows.

    Examples
    --------
    >>> origins = RowOrigins()
    >>> origins.add("a.tfrecord", 0, 3, file=0)
    >>> origins.add("b.tfrecord", 0, 2, file=1)
    >>> origins.of(4), origins.file_of(4)
    (('b.tfrecord', 1), 1)
    """

    def __init__(self) -> None:
        self.rows = 0
        self._first_rows: list[int] = []
        self._runs: list[tuple[int, str, int, Array | None]] = []  # file, path, first record, bits, by `_first_rows`

    def add(self, path: str, first_record: int, rows: int, *, file: int) -> None:
        """Add `rows` rows: the records from `first_record` on of the file with this number in the order of reading."""
        is_next = self.rows > 0 and self._runs[-1][3] is None and self._locate(self.rows) == (file, path, first_record)
        if rows and not is_next:
            self._begin(file, path, first_record, None)
        self.rows += rows

    def add_some(self, path: str, first_record: int, numbers: Array, *, file: int) -> None:
        """Add a row for each of `numbers`, which are in order: the records so many behind `first_record`."""
        rows = len(numbers)
        if not rows or int(numbers[-1] - numbers[0]) + 1 == rows:
            self.add(path, first_record + (int(numbers[0]) if rows else 0), rows, file=file)
            return
        bits = np.zeros(int(numbers[-1]) + 1, bool)
        bits[numbers] = True
        self._begin(file, path, first_record, np.packbits(bits))
        self.rows += rows

    def _begin(self, file: int, path: str, first_record: int, bits: Array | None) -> None:
        self._first_rows.append(self.rows)
        self._runs.append((file, path, first_record, bits))

    def of(self, row: int) -> tuple[str, int]:
        """Path and record index of a row."""
        return self._known(row)[1:]

    def runs(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The rows [begin, end) of a read without a filter: file, first record and number of consecutive records."""
        while begin < end:
            file, _, record = self._known(begin)
            at = bisect_right(self._first_rows, begin)
            stop = min(end, self._first_rows[at]) if at < len(self._first_rows) else end
            yield file, record, stop - begin
            begin = stop

    def file_of(self, row: int) -> int:
        """The number of the file of a row: a path may be given twice, or in pieces."""
        return self._known(row)[0]

    def _known(self, row: int) -> tuple[int, str, int]:
        if row >= self.rows:
            raise IndexError("no such row was read")
        return self._locate(row)

    def _locate(self, row: int) -> tuple[int, str, int]:
        run = bisect_right(self._first_rows, row) - 1
        file, path, first_record, bits = self._runs[run]
        row -= self._first_rows[run]
        return file, path, first_record + (row if bits is None else int(np.flatnonzero(np.unpackbits(bits))[row]))
