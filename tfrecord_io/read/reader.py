"""Read Arrow record batches of one schema from decoded chunks.

`plan_read` opens the files of a scan as a `Planned`, and a `Reader` of that delivers its rows: it makes a batch of each
chunk, applies the filter, joins small batches, and ends as ``on_error=`` says. `NumberedRows` are the rows of a reader
with their numbers among all records.
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import starmap
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
import pyarrow as pa

from tfrecord_io.base import MIB, Expansion, LateTypes, OnDamage, and_more, printable
from tfrecord_io.bytes import Array
from tfrecord_io.columns import BatchBuilder, BatchStream, Column, RowFault, uncommon_columns, value_bytes
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.chunks.block_walker import RecordMemoryError
from tfrecord_io.read.chunks.chunk import DecodedChunk, RowBudget, row_budget
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import SchemaRevision
from tfrecord_io.read.record_checks import RecordTypeVerdict, check_counts, warn_of_no_records
from tfrecord_io.read.report import ReadReport, RowOrigins
from tfrecord_io.read.scan import EarlyFilter, Scan
from tfrecord_io.store import Source
from tfrecord_io.typing import DtypeBackend

if TYPE_CHECKING:
    import pandas as pd

    from tfrecord_io.columns import InferredSchema
    from tfrecord_io.read.absent_columns import AbsentColumns
    from tfrecord_io.read.chunks.indexed_chunks import IndexedChunks
    from tfrecord_io.read.chunks.interleaved_chunks import InterleavedChunks
else:
    pd = LateTypes("pandas")

E = TypeVar("E", bound=Exception)

_PUBLIC = "schema report fault origins payload_bytes read_all read_next_batch read_pandas close".split()
_MOST_COPIED = 16 * MIB  # of a batch that is joined with what precedes it


@dataclass(eq=False, repr=False)
class Planned:
    """A scan whose files are open, for a `Reader`; and what was found while the scan was planned."""

    scan: Scan
    chunk_reader: ChunkReader | IndexedChunks | InterleavedChunks  # reads the files on, from where planning stopped
    budget: RowBudget
    whole: bool = False  # all rows are held at once
    # The chunks that were decoded to infer the schema; they come first.
    sample: list[DecodedChunk] = field(default_factory=list)
    absent: AbsentColumns | None = None  # the declared columns to warn of if no record has them
    early: EarlyFilter | None = None
    # Plans the read by a chunk reader again: under an embedded schema that was found too late, or with the features
    # of files that have none.
    replan: Callable[[Any, SchemaRevision | TFRecordError], Planned] | None = None
    inferred: InferredSchema | None = None  # with its evidence, if that was requested
    error: Exception | None = None  # what ended the sample
    sampled: int | None = None  # number of records in the sample

    def close(self) -> Scan:
        """Close the files, drop the sample, and return the scan."""
        self.sample.clear()
        self.chunk_reader.close()
        return self.scan


def plan_read(
    scan: Scan,
    reader: ChunkReader | IndexedChunks | InterleavedChunks | None = None,
    *,
    whole: bool = False,
    absent: AbsentColumns | None = None,
) -> Planned:
    """Prepare to read a scan by a chunk reader, from its current position; by default by a new one of its files.

    Only with `absent` does the read warn of declared columns that no record has, as a scan may be a piece of a read.
    """
    if reader is None and scan.has_values:
        from tfrecord_io.read.chunks.indexed_chunks import IndexedChunks

        files = [file for file in scan.picked or () if file.source is not None]
        reader = IndexedChunks(files, scan.options, scan.decode_selection, whole=whole)
    elif reader is None:
        reader = ChunkReader(scan.sources, scan.options, scan.decode_selection, whole=whole)
    early = None if scan.row_filter is None else scan.early_filter(rereads=absent is not None)
    reader.decode_by(scan.compiled.settings, None if early is None else early.settings)
    reader.check = scan.embedded_check
    budget = row_budget(scan.options, scan.decode_selection, whole=whole)
    return Planned(scan, reader, budget, whole, absent=absent, early=early)


def open_as_it_is(scan: Scan, absent: AbsentColumns | None = None, *, whole: bool = False) -> Reader:
    """Open all files of a scan: no index is searched."""
    scan.refuse_conflicts()
    return Reader(plan_read(scan, whole=whole, absent=absent))


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

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            from tfrecord_io.base import OTHER_NAMES  # for mistakes only

            raise OTHER_NAMES.attribute_error(self, name)

    def __dir__(self) -> list[str]:
        """The public names; adapters use others."""
        return sorted({*dir(object), *_PUBLIC, *(name for name in super().__dir__() if name[:2] == "__")})

    def __init__(self, planned: Planned) -> None:
        super().__init__()
        if planned.scan.options.damage.hands_over:  # as stated for a dataset, which any call may read
            OnDamage.check(planned.scan.options.on_error, OnDamage.needs_no_report)
        self._begin(planned)
        # At the end, of what was left out; callers that leave out more rows warn themselves, by `warn_of_skipped`.
        self.warns_of_damage = True
        self._may_unite = False  # whether all is read again if a file without an embedded schema has more features
        self._batches: Generator[pa.RecordBatch] = self._join_batches()

    def _begin(self, planned: Planned) -> None:
        self._planned = planned
        self.scan = scan = planned.scan  # what is read
        of_sample = planned.sample or scan.resolved.observations
        self._chunks = self._chunks_of(planned) if of_sample else planned.chunk_reader.chunks(planned.budget)
        _, self._to_drop = scan.options.damage.split_offset(scan.selection.offset)
        self._left = None if scan.row_filter is None else scan.selection.limit  # rows that are still delivered
        self._revision: SchemaRevision | TFRecordError | None = None
        self._expansion = Expansion(scan.options.limits.expansion_bytes)
        self.origins = RowOrigins(scan.sources)
        self.payload_bytes = 0
        self._begun: set[str] = set()  # files whose first record was read
        self._rows_of_files: dict[int, int] = {}  # intact rows, by the number of the file
        self.report = ReadReport(schema_source=scan.resolved.source)
        self._builder = scan.compiled.builder
        if not isinstance(self._builder, BatchBuilder):
            self._builder = self._builder.counting()
            self.report.unknown_fields = self._builder.unknown
        if planned.chunk_reader.recovery is not None:
            self.report.skipped = planned.chunk_reader.recovery.skipped

    def __repr__(self) -> str:
        return f"<Reader of {self.scan.files_and_columns()}>"

    def _build_batches(self) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yield from `_chunk_batches`; an error for lack of memory names the files."""
        try:
            yield from self._chunk_batches()
        except RecordMemoryError:
            raise
        except MemoryError as error:
            files = self.scan.files
            what = f"{printable(files[0])}{and_more(len(files) - 1, 'file')}"
            advice = "choose columns by columns=, or read batches with open_reader"
            reason = f" ({error})" if str(error) else ""
            raise MemoryError(f"{what}: not enough memory for the rows{reason}; {advice}") from error

    def _chunk_batches(self) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yield each chunk's batch, with True at the end of a joined batch, then raise the error that ended the read.

        A revision in the last chunk is kept instead, and ends the iteration.
        """
        scan, planned = self.scan, self._planned
        if self._left == 0 or not scan.sources:  # no row of them is in the result
            return
        verdict = RecordTypeVerdict(scan.sources, scan.options, whole=planned.whole, decided=scan.resolved.is_inferred)
        for chunk in self._chunks:
            verdict.observe(chunk)
            parts, error, intact = self._parts(chunk)
            if planned.absent is not None:
                planned.absent.observe(*(batch for _, batch in parts))  # this generator keeps none in a variable
            last, ends = chunk.record_of(intact), chunk.ends_batch
            self._count_files(chunk, intact, None if error is None else last.file)
            revision: SchemaRevision | TFRecordError | None = chunk.revision
            if error is not None and last.path in self._begun:
                revision = self._restart_error(error)
            self.report.bytes, self.report.files = planned.chunk_reader.bytes, planned.chunk_reader.files
            batches = deque(starmap(partial(self._deliver, chunk), parts))
            del chunk, parts
            while batches:
                yield batches.popleft(), ends and len(batches) == 0  # only the consumer keeps it from here on
            if self._left == 0:
                self._close_files()
                self._warn_of_left_out()
                return
            if revision is not None:
                self._revision = revision
                return
            if error is not None:
                verdict.decide()
                self._stop(_locate_error(error, scan.sources[last.file]))
                return
        verdict.decide()
        self._finish()

    def _count_files(self, chunk: DecodedChunk, intact: int, failed_file: int | None) -> None:
        """Count the `intact` rows of a chunk by their files, and note which files begin with them, or with an error."""
        for file in chunk.files():
            count = max(0, min(intact, file.end) - file.begin)
            self._rows_of_files[file.file] = self._rows_of_files.get(file.file, 0) + count
            is_begun = count > 0 or file.file == failed_file
            if file.first_record == 0 and is_begun and self.scan.sources[file.file].begins_file:
                self._begun.add(file.path)

    def _finish(self) -> None:
        """Check the counts of files at the end of the read; warn of missing records and columns."""
        scan, planned, selection = self.scan, self._planned, self.scan.decode_selection
        if not selection.offset and selection.limit is None:
            check_counts(scan.sources, self._rows_of_files, self.report.skipped, scan.sidecar)
        self._warn_of_left_out()
        is_unknown = scan.resolved.source == "inferred" and not scan.resolved.observations
        if not self.report.records and is_unknown and not selection.offset and selection.limit != 0:
            warn_of_no_records(scan.sources)
        if planned.absent is not None:
            self._warn_of_absent(planned.absent)

    def _warn_of_left_out(self) -> None:
        """Warn of damaged regions, and of fields of messages, that were left out, if there are any."""
        if self.warns_of_damage:
            self.report.warn_of_skipped()
        if not isinstance(self._builder, BatchBuilder):
            self._builder.warn_of_unknown(self.scan.sources[0].path)

    def _chunks_of(self, planned: Planned) -> Generator[DecodedChunk]:
        """All chunks in order; the last one may have an error or a revision."""
        while planned.sample:
            chunk = planned.sample.pop(0)
            ends_read = chunk.ends_read
            yield chunk
            if ends_read:
                return
            del chunk
        observations = planned.scan.resolved.observations
        from tfrecord_io.read.infer_from_sample import name_contradicted_record

        for chunk in planned.chunk_reader.chunks(planned.budget):
            if observations:
                name_contradicted_record(chunk, observations)
            yield chunk
            del chunk  # only the consumer keeps it while the next one is decoded

    def _warn_of_absent(self, absent: AbsentColumns) -> None:
        if self._planned.early is not None and self.report.records:  # columns of rows that do not pass: not decoded
            absent.observe_until_found(
                lambda names: open_as_it_is(self.scan.select_all_rows(names).with_options(on_error="raise"))
            )
        absent.finish(self.scan.sources, self.scan.options, self.report.records)

    def _parts(self, chunk: DecodedChunk) -> tuple[list[tuple[int, pa.RecordBatch]], Exception | None, int]:
        """The batches of a chunk, its error, and the number of records before the error that are not left out.

        Each batch has the index of its first row among those held; there are several where rows are left out.
        """
        scan, planned = self.scan, self._planned
        self._expansion.add(chunk.payload_bytes)
        self.payload_bytes += chunk.payload_bytes
        parts, fault, left_out = self._batches_of(chunk)
        if chunk.ends_batch and not planned.whole:
            self._expansion = Expansion(scan.options.limits.expansion_bytes)
        error, rows = chunk.error, chunk.rows
        if fault is not None:
            chunk.revision, rows = None, chunk.row(fault.row)
            at = chunk.record_of(rows)
            error = fault.to_error(at.path, at.record)
        intact = rows - len(left_out)
        if dropped := min(self._to_drop, intact):
            parts = _drop_rows(chunk, parts, dropped, left_out)
            self._to_drop -= dropped
        self.report.records += intact - dropped
        if len(schema := scan.compiled.schema) > len(self._builder.schema):
            parts = [
                (first, scan.added.add_to(batch, self._sources_of(chunk, first, len(batch)), schema))
                for first, batch in parts
            ]
        return parts, error, intact

    def _batches_of(
        self, chunk: DecodedChunk
    ) -> tuple[list[tuple[int, pa.RecordBatch]], RowFault | None, Sequence[int]]:
        """The batches of a chunk, the fault of the row that ends them, and the damaged rows left out; see `_parts`."""
        planned, recovery = self._planned, self._planned.chunk_reader.recovery
        if chunk.batch is not None and isinstance(self._builder, BatchBuilder):
            return [(0, self._builder.batch_of_values(chunk.batch))], None, ()
        if recovery is None:
            room = self._expansion.room
            batch, fault = self._builder.batch(chunk.columns, chunk.held, self._expansion)
            if fault is None or planned.early is None:
                return [(0, batch)], fault, ()
            del batch  # made again, without the faults of rows that do not pass
            self._expansion.room = room
        from tfrecord_io.read.chunks.recovery import chunk_batches

        return chunk_batches(
            chunk,
            self._builder,
            expansion=self._expansion,
            recovery=recovery,
            budget=planned.budget,
            may_pass=None if planned.early is None else planned.early.may_pass,
        )

    def _sources_of(self, chunk: DecodedChunk, first: int, rows: int) -> list[Source]:
        """The sources of the rows from the `first` on, or the one of all rows."""
        if not chunk.more_files:
            return [self.scan.sources[chunk.file]]
        files = ((self.scan.sources[file.file], file) for file in chunk.files())
        return [source for source, file in files for _ in range(max(file.begin, first), min(file.end, first + rows))]

    def _deliver(self, chunk: DecodedChunk, first: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns and rows to deliver of a batch, which begins at the row `first` of those held."""
        names, row_filter = self.scan.selected, self.scan.row_filter
        if row_filter is None:
            chosen, numbers = batch if names is None else batch.select(names), None
        else:
            names = self.scan.compiled.schema.names if names is None else names
            chosen, numbers = row_filter.select_rows(batch, names, self._left)
        if chunk.kept is None and len(chosen) == len(batch):
            for file in chunk.files():
                begin, end = max(file.begin, first), min(file.end, first + len(batch))
                if begin < end:
                    self.origins.add(file.path, file.first_record + begin - file.begin, end - begin, file=file.file)
        else:
            numbers = np.arange(first, first + len(batch)) if numbers is None else numbers + first
            numbers = numbers if chunk.kept is None else chunk.kept[numbers]
            for file in chunk.files():
                own_numbers = numbers[slice(*np.searchsorted(numbers, (file.begin, file.end)))] - file.begin
                self.origins.add_some(file.path, file.first_record, own_numbers, file=file.file)
        if self._left is not None:
            self._left -= len(chosen)
        return chosen

    def _restart_error(self, error: Exception) -> TFRecordError | None:
        """An error that ends the read, if all is to be read again with its feature; else make it name the schema."""
        if self._may_unite and self._planned.chunk_reader.check.is_of_foreign_feature(error):
            self._may_unite = False
            return error
        self._planned.chunk_reader.check.name_governing_file(error)
        return None

    def _stop(self, error: Exception) -> None:
        self._close_files()
        if isinstance(error, TFRecordError):
            error.records_intact = self.report.records
        self.report.stopped = self.scan.options.damage.end_read(error)
        self._warn_of_left_out()

    def _join_batches(self) -> Generator[pa.RecordBatch]:
        """Batches of the requested size: those of small files are joined, a large one stays as it is."""
        pending: list[pa.RecordBatch] = []
        schema = self.scan.compiled.schema
        joins = cache(lambda: all(Column(schema.field(at).type).can_unify for at in uncommon_columns(schema)))
        if self._planned.replan is not None:  # the plan is final now, and no other scan shares the sources
            for source in self.scan.sources:
                source.read_once()
        try:
            for batch, ends in self._build_batches():
                if pending and (not joins() or sum(map(value_bytes, batch.columns)) > _MOST_COPIED):
                    yield _join(pending)
                if len(batch):
                    pending.append(batch)
                del batch
                if ends and pending:
                    yield _join(pending)
            if self._revision is not None:
                self._raise_late(self._revision)
        except Exception:
            if pending:
                yield _join(pending)
            raise
        if pending:
            yield _join(pending)

    def _raise_late(self, revision: SchemaRevision | TFRecordError) -> NoReturn:
        """An embedded schema was found too late for the plan."""
        self._close_files()
        raise revision.late_error() if isinstance(revision, SchemaRevision) else revision

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        return self.scan.schema

    def read_all(self) -> pa.Table:
        """All remaining rows as one table.

        Raises
        ------
        TFRecordError
            With ``records_intact``, the number of rows before the damage.
        """
        with self._lock:
            self._refuse_used()
            if self._started:
                return self._keep_common_index(BatchBuilder.table_of(list(self), self.schema))
            replan = self._planned.replan
            self._may_unite = replan is not None
            try:
                while True:
                    batches = list(filter(len, map(itemgetter(0), self._build_batches())))
                    if self._revision is None:
                        break
                    if replan is None:
                        self._raise_late(self._revision)
                    batches.clear()
                    self._begin(replan(self._planned.chunk_reader, self._revision))
                table = self._keep_common_index(BatchBuilder.table_of(batches, self.scan.schema))
                self._started = self._ended = True
                return table
            except Exception as error:
                self._fail(error)
                raise
            except BaseException as interrupt:
                self._mark_interrupted(interrupt)
                raise

    def _keep_common_index(self, table: pa.Table) -> pa.Table:
        """The table; its metadata states an index only if all files that were read have it."""
        if self.report.schema_source != "embedded" or self._planned.chunk_reader.check.index_is_in(self._begun):
            return table
        from tfrecord_io.columns import EmbeddedSchema

        return table.replace_schema_metadata(EmbeddedSchema.drop_index(table.schema).metadata)

    def read_pandas(self, dtype_backend: DtypeBackend | None = None) -> pd.DataFrame:
        """All remaining rows as a DataFrame; see `tfrecord_io.read_tfrecord`."""
        from tfrecord_io.columns import to_pandas

        scan, selection = self.scan, self.scan.selection
        is_all = selection.offset == 0 and selection.limit is None and scan.row_filter is None and not self._started
        whole_file = is_all and len(scan.sources) == 1  # only then does its stored RangeIndex apply
        return to_pandas(self.read_all(), dtype_backend, whole_file=whole_file, added_index=self.scan.added_index)

    def origin(self, row: int) -> tuple[str, int]:
        """Path and record index of a row, counted from the first one delivered."""
        return self.origins.locate(row)

    @property
    def goes_on(self) -> bool:
        """True if damage may be left out: with ``on_error="skip"``, ``"collect"`` or a callable."""
        return self._planned.chunk_reader.recovery is not None

    def leave_out(self, fault: RowFault) -> bool:
        """Leave out the row of a fault, counted from the first row delivered, if it may be; it counts as skipped."""
        from tfrecord_io.read.chunks.recovery import leave_out

        file, path, record = self.origins.place(fault.row)
        left_out = leave_out(self._planned.chunk_reader.recovery, fault, path=path, file=file, record=record)
        self.report.records -= left_out
        return left_out

    def row_error(self, fault: RowFault) -> TFRecordError:
        """The error of a row, counted from the first one delivered."""
        file, path, record = self.origins.place(fault.row)
        error = fault.to_error(path, record)
        error.__cause__ = fault.__cause__
        return _locate_error(error, self.scan.sources[file])

    def _close(self) -> None:
        self._batches.close()
        self._close_files()
        if self._planned.replan is not None:
            for source in self.scan.sources:
                source.close()

    def _close_files(self) -> None:
        self._chunks.close()
        self._planned.chunk_reader.close()


class NumberedRows:
    """The rows of a reader, and their numbers among all records: of a scan without a filter, which may read only some.

    `next` is the number after those of the rows read so far; at the end, after those of all records.
    """

    def __init__(self, reader: Reader, begin: int) -> None:
        self.reader, self.begin, self.next = reader, begin, begin
        self._picked = reader.scan.picked or ()  # by column indexes; else all records are read
        self._read_files = [at for at, file in enumerate(self._picked) if file.source is not None]
        self._firsts = [begin - reader.scan.left_out]  # numbers of the first records of these files, as far as read

    def __iter__(self) -> Iterator[tuple[Array, pa.RecordBatch]]:
        """Yield the numbers of the rows of each batch, and the batch."""
        if not self._picked:
            for batch in self.reader:
                self.next += len(batch)
                yield np.arange(self.next - len(batch), self.next), batch
            return
        rows = 0
        for batch in self.reader:
            parts = []
            for run in self.reader.origins.runs(rows, rows + len(batch)):
                parts.append(self._numbers(*run))
                self.next = int(parts[-1][-1]) + 1
            rows += len(batch)
            yield parts[0] if len(parts) == 1 else np.concatenate(parts), batch
        self.next = max(self.next, self._first_number(len(self._picked)))

    def _numbers(self, file: int, record: int, rows: int) -> Array:
        """The numbers of consecutive records of a file, as the reader counts both."""
        at = self._read_files[file]
        records = self._picked[at].records
        records_of_run = np.arange(record, record + rows) if records is None else records[record : record + rows]
        return self._first_number(at) + records_of_run

    def _first_number(self, at: int) -> int:
        """The number of the first record of a file, or after the last one; all before it have been read."""
        while len(self._firsts) <= at:
            before, count = self._firsts[-1], self._picked[len(self._firsts) - 1].count
            self._firsts.append(max(before, self.next) if count is None else before + count)
        return self._firsts[at]

    def row_of(self, number: int) -> int:
        """The row with a number that was delivered, counted from the first one."""
        if not self._picked:
            return number - self.begin
        rows, runs = range(self.reader.origins.rows), self.reader.origins.runs
        return bisect_left(rows, number, key=lambda row: int(self._numbers(*next(runs(row, row + 1)))[0]))


def _locate_error(error: E, source: Source) -> E:
    """An error of a source, which may be a part of a file."""
    if isinstance(error, TFRecordError):
        error.count_from_piece(source.begin)
        origin = None if source.origin is None or error.record is None else source.origin(error.record)
        if origin is not None:
            error.path, error.record, error.offset = origin
    return error


def _drop_rows(
    chunk: DecodedChunk, parts: list[tuple[int, pa.RecordBatch]], rows: int, left_out: Sequence[int]
) -> list[tuple[int, pa.RecordBatch]]:
    """The batches of a chunk without its first `rows`, to which rows `left_out` do not count."""
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
