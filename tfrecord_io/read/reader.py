"""Read Arrow record batches of one schema from decoded chunks."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from tfrecord_io.arrow.decode.batch_builder import BatchBuilder, to_table
from tfrecord_io.arrow.decode.composite import CompositeBatchBuilder
from tfrecord_io.arrow.output.pandas_metadata import stored_index, without_index
from tfrecord_io.arrow.output.to_pandas import to_pandas
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.arrow.stream import BatchStream
from tfrecord_io.display import counted
from tfrecord_io.engine.contract import RecordCounts
from tfrecord_io.engine.fault_messages import not_examples
from tfrecord_io.errors import SchemaWarning, TFRecordError, printable, warn
from tfrecord_io.format.expansion import Expansion
from tfrecord_io.options import MIB, ReadOptions
from tfrecord_io.read.absent_columns import AbsentColumns
from tfrecord_io.read.chunks.chunk import DecodedChunk
from tfrecord_io.read.chunks.chunk_reader import ChunkReader, RowBudget
from tfrecord_io.read.chunks.embedded_schemas import ForeignFeature, SchemaRevision
from tfrecord_io.read.chunks.recovery import SkippedRegions
from tfrecord_io.read.fitting_parts import chunk_batches, leave_out
from tfrecord_io.read.inference import name_contradicted_record
from tfrecord_io.read.on_error import end_read
from tfrecord_io.read.partition_columns import PartitionColumns
from tfrecord_io.read.report import ReadReport
from tfrecord_io.read.row_origins import RowOrigins
from tfrecord_io.read.sidecar_schema import SidecarSchema
from tfrecord_io.schema.observation import Observation
from tfrecord_io.storage.read.source import Source
from tfrecord_io.typing import DtypeBackend

if TYPE_CHECKING:
    import pandas as pd

_VERDICT_BYTES = 64 * MIB
_MOST_COPIED = 16 * MIB  # of a batch that is joined with what precedes it


def check_record_type(counts: RecordCounts, sources: Sequence[Source], options: ReadOptions) -> None:
    """Raise DecodeError if the records are another message: with `record_type`, only if they look like one."""
    error = not_examples(counts, sources[0].path, is_declared=options.record_type is not None)
    if error is not None:
        raise error


@dataclass
class OpenScan:
    """A scan whose files are being read; made by `Scan.opened`.

    Attributes
    ----------
    describe : callable
        Returns files and columns, for display.
    sample : list of DecodedChunk
        The chunks that were decoded to infer the schema; they come first.
    replan : callable, optional
        Plans the read again under an embedded schema that was found too late for the plan, or with the features of
        files that have none.
    absent : AbsentColumns, optional
        The declared columns to warn of if no record has them.
    whole : bool
        All rows are held at once.
    added_index : sequence of str
        The columns that were not selected, and are only read because they are levels of the index.
    """

    describe: Callable[[], str]
    sources: tuple[Source, ...]
    options: ReadOptions
    schema: pa.Schema
    schema_source: str
    observations: Mapping[str, Observation]
    partitions: PartitionColumns
    sidecar: SidecarSchema | None
    builder: BatchBuilder | CompositeBatchBuilder
    reader: ChunkReader
    budget: RowBudget
    sample: list[DecodedChunk] = field(default_factory=list)
    replan: Callable[[SchemaRevision | ForeignFeature], OpenScan] | None = None
    absent: AbsentColumns | None = None
    whole: bool = False
    added_index: Sequence[str] = ()

    def chunks(self) -> Generator[DecodedChunk]:
        """All chunks in order; the last one may have an error or a revision."""
        failed = any(chunk.ends_read for chunk in self.sample)
        while self.sample:
            yield self.sample.pop(0)
        if failed:
            return
        for chunk in self.reader.chunks(self.budget):
            if self.observations:
                name_contradicted_record(chunk, self.observations)
            yield chunk
            del chunk  # only the consumer keeps it while the next one is decoded

    def check_record_type(self, counts: RecordCounts) -> None:
        """Raise DecodeError if the records are another message; see `check_record_type`."""
        check_record_type(counts, self.sources, self.options)

    def warn_of_no_records(self) -> None:
        """Warn, after a read without a row, that its columns are unknown if the files have no records at all."""
        options = self.options
        if self.schema_source == "inferred" and not self.observations and not options.offset and options.limit != 0:
            others = f" and {counted(len(self.sources) - 1, 'more file')}" if len(self.sources) > 1 else ""
            files = f"{printable(self.sources[0].path)}{others}"
            reason = "no records, so the columns are unknown"
            warn(f"{files}: {reason}; pass schema= to read no rows of known columns", SchemaWarning)

    def check_counts(self, rows: Mapping[int, int], skipped: SkippedRegions) -> None:
        """Compare the number of rows of each file, once all were read, with manifests and sidecars.

        Of files with `skipped` regions the records are known to be fewer.
        """
        if self.options.offset or self.options.limit is not None:
            return
        by_path: Counter[str] = Counter()
        for number, source in enumerate(self.sources):
            if skipped.has_file(number):
                continue
            by_path[source.path] += rows.get(number, 0)
            if source.shard is not None and source.span is None:  # a piece has a part of the file's records
                source.shard.check_records(rows.get(number, 0), source.path)
        if self.sidecar is not None and not skipped.total:
            self.sidecar.check(by_path)


class RecordTypeVerdict:
    """Decides from the first records whether they are another message, where no sample was decoded to infer a schema.

    Of a whole read, which holds all rows anyway, these are all records of `_VERDICT_BYTES`; of others, those of the
    first chunk.
    """

    def __init__(self, scan: OpenScan) -> None:
        self._scan = scan
        self._counts = RecordCounts()
        self._left = _VERDICT_BYTES if scan.whole else 1  # payload bytes to observe
        self._decided = scan.schema_source in ("inferred", "companions")

    def observe(self, chunk: DecodedChunk) -> None:
        """Count the records of a chunk."""
        if self._decided or not chunk.rows:
            return
        self._counts += chunk.counts
        self._left -= max(chunk.payload_bytes, 1)
        if self._left <= 0 or chunk.ends_read:
            self.decide()

    def decide(self) -> None:
        """Raise DecodeError if the records so far are another message."""
        if not self._decided:
            self._decided = True
            self._scan.check_record_type(self._counts)


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
        self.tell_of_damage: Callable[[SkippedRegions], None] = SkippedRegions.warn  # at the end
        self._may_unite = False  # whether all is read again if a file without an embedded schema has more features
        self._batches: Generator[pa.RecordBatch] = self._joined()

    def _begin(self, scan: OpenScan) -> None:
        self._scan = scan
        self._chunks = scan.chunks()
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
        record_type = RecordTypeVerdict(scan)
        for chunk in self._chunks:
            record_type.observe(chunk)
            parts, error = self._parts(chunk)
            for first_record, batch in parts:
                if scan.absent is not None:
                    scan.absent.observe(batch)
                self.report.records += len(batch)
                self.origins.add(chunk.path, first_record, len(batch))
                rows[chunk.file] += len(batch)
            ends, begin = chunk.ends_batch, scan.sources[chunk.file].begin
            revision: SchemaRevision | ForeignFeature | None = chunk.revision
            if chunk.first_record == begin == 0 and (any(len(batch) for _, batch in parts) or error is not None):
                self._begun.add(chunk.path)
            if error is not None and chunk.path in self._begun:
                revision = self._governed(error)
            self.report.bytes, self.report.files = scan.reader.bytes, scan.reader.files
            batches = deque(batch for _, batch in parts)
            del chunk, parts, batch
            while batches:
                yield batches.popleft(), ends and len(batches) == 0  # only the consumer keeps it from here on
            if revision is not None:
                self._revision = revision
                return
            if error is not None:
                record_type.decide()
                self._stop(error.in_piece(begin) if isinstance(error, TFRecordError) else error)
                return
        record_type.decide()
        scan.check_counts(rows, self.report.skipped)
        self.tell_of_damage(self.report.skipped)
        if not self.report.records:
            scan.warn_of_no_records()
        if scan.absent is not None:
            scan.absent.finish(scan.sources, scan.options, self.report.records)

    def _parts(self, chunk: DecodedChunk) -> tuple[list[tuple[int, pa.RecordBatch]], Exception | None]:
        """The batches of a chunk with their first records, more than one where rows are left out, and its error."""
        scan = self._scan
        self._expansion.add(chunk.payload_bytes)
        self.payload_bytes += chunk.payload_bytes
        parts, fault = chunk_batches(chunk, scan.builder, self._expansion, scan.reader.recovery, scan.budget)
        if chunk.ends_batch and not scan.whole:
            self._expansion = Expansion(scan.options.max_expansion)
        error = chunk.error
        if fault is not None:
            chunk.revision = None
            error = fault.to_error(path=chunk.path, record=chunk.first_record + fault.row)
        add, source, path_column = scan.partitions.add_to, scan.sources[chunk.file], scan.options.include_file_paths
        return [(record, add(batch, [source], self.schema, path_column)) for record, batch in parts], error

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
        return self._scan.schema

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

    @property
    def goes_on(self) -> bool:
        """Whether damage may be left out: with ``on_error="skip"`` or a callable."""
        return self._scan.reader.recovery is not None

    def leave_out(self, fault: RowFault) -> bool:
        """Whether the row of a fault, counted from the first one delivered, may be left out; it counts as skipped."""
        path, record = self.origins.of(fault.row)
        file = next(number for number, source in enumerate(self._scan.sources) if source.path == path)
        return leave_out(self._scan.reader.recovery, fault, path, file, record)

    @property
    def is_one_whole_file(self) -> bool:
        """Whether all rows of one file are read: only then does its stored RangeIndex apply."""
        options = self._scan.options
        return len(self._scan.sources) == 1 and options.offset == 0 and options.limit is None

    def _close(self) -> None:
        self._batches.close()
        self._close_files()
        if self._scan.replan is not None:
            for source in self._scan.sources:
                source.close()

    def _close_files(self) -> None:
        self._chunks.close()
        self._scan.reader.close()


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Join the batches, and empty the list so that only the caller holds the result."""
    joined = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    batches.clear()
    return joined
