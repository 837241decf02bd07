"""Read Arrow record batches of one schema from decoded chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from tfrecord_io.arrow.decode.batch_builder import BatchBuilder, to_table
from tfrecord_io.arrow.decode.composite import CompositeBatchBuilder
from tfrecord_io.arrow.output.to_pandas import to_pandas
from tfrecord_io.arrow.stream import BatchStream
from tfrecord_io.engine.fault_messages import OTHER_MESSAGE
from tfrecord_io.errors import DecodeError, TFRecordError
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.absent_columns import AbsentColumns
from tfrecord_io.read.chunk import DecodedChunk
from tfrecord_io.read.chunk_reader import ChunkReader, RowBudget
from tfrecord_io.read.embedded_schemas import SchemaRevision
from tfrecord_io.read.inference import name_contradicted_record
from tfrecord_io.read.on_error import end_read
from tfrecord_io.read.partition_columns import PartitionColumns
from tfrecord_io.read.row_origins import RowOrigins
from tfrecord_io.read.sidecar_schema import SidecarSchema
from tfrecord_io.schema.observation import Observation
from tfrecord_io.storage.read.source import Source

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class ReadReport:
    """What a reader has read so far.

    Attributes
    ----------
    records, bytes : int
        Rows delivered, and uncompressed bytes of the records read.
    files : int
        Files opened.
    schema_source : str
        "schema=", "embedded", "features.json", "companions" (companion features make bytes tensors) or "inferred".
    stopped : str or None
        Why reading ended early, with ``on_error="stop"``.
    """

    records: int = 0
    bytes: int = 0
    files: int = 0
    schema_source: str = "inferred"
    stopped: str | None = None


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
        Plans the read again under an embedded schema that was found too late for the plan.
    absent : AbsentColumns, optional
        The declared columns to warn of if no record has them.
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
    replan: Callable[[SchemaRevision], OpenScan] | None = None
    absent: AbsentColumns | None = None

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

    def check_record_type(self, seen: int, foreign: int) -> None:
        """Raise DecodeError if none of the non-empty records `seen` holds a feature."""
        if self.options.record_type is None and 0 < seen == foreign:
            raise DecodeError(
                "the records are not tf.train.Examples: none of them holds a feature",
                path=self.sources[0].path,
                record=0,
                expected="Example",
                got="another message",
                advice=OTHER_MESSAGE,
            )

    def check_counts(self, rows: Mapping[int, int]) -> None:
        """Compare the number of rows of each file, once all were read, with manifests and sidecars."""
        if self.options.offset or self.options.limit is not None:
            return
        by_path: Counter[str] = Counter()
        for number, source in enumerate(self.sources):
            by_path[source.path] += rows.get(number, 0)
            if source.shard is not None and source.span is None:  # a piece has a part of the file's records
                source.shard.check_records(rows.get(number, 0), source.path)
        if self.sidecar is not None:
            self.sidecar.check(by_path)


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
    """

    _word = "reader"

    def __init__(self, scan: OpenScan) -> None:
        super().__init__()
        self._begin(scan)
        self._batches: Generator[pa.RecordBatch] = self._joined()

    def _begin(self, scan: OpenScan) -> None:
        self._scan = scan
        self._chunks = scan.chunks()
        self._revision: SchemaRevision | None = None
        self.origins = RowOrigins()
        self.report = ReadReport(schema_source=scan.schema_source)

    def __repr__(self) -> str:
        return f"<Reader of {self._scan.describe()}>"

    def _built(self) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yield (batch, whether it ends a joined one) for each chunk, then raise the error that ended the read.

        A revision in the last chunk is kept instead, and ends the iteration.
        """
        scan, rows = self._scan, Counter[int]()
        unchecked = scan.schema_source not in ("inferred", "companions")
        for chunk in self._chunks:
            if unchecked and chunk.rows:
                scan.check_record_type(chunk.seen, chunk.foreign)
                unchecked = False
            batch, error = self._batch(chunk)
            if scan.absent is not None:
                scan.absent.observe(batch)
            self.report.records += len(batch)
            self.origins.add(chunk.path, chunk.first_record, len(batch))
            rows[chunk.file] += len(batch)
            self.report.bytes, self.report.files = scan.reader.bytes, scan.reader.files
            ends, begin, revision = chunk.ends_batch, scan.sources[chunk.file].begin, chunk.revision
            del chunk
            yield batch, ends
            del batch  # only the consumer keeps it while the next one is decoded
            if error is not None:
                self._stop(error.in_piece(begin) if isinstance(error, TFRecordError) else error)
                return
            if revision is not None:
                self._revision = revision
                return
        scan.check_counts(rows)
        if scan.absent is not None:
            scan.absent.finish(scan.sources, scan.options, self.report.records)

    def _batch(self, chunk: DecodedChunk) -> tuple[pa.RecordBatch, Exception | None]:
        scan = self._scan
        batch, fault = scan.builder.batch(chunk.columns, chunk.rows)
        error = chunk.error
        if fault is not None:
            chunk.revision = None
            error = fault.to_error(path=chunk.path, record=chunk.first_record + fault.row)
        path_column = scan.options.include_file_paths
        return scan.partitions.add_to(batch, [scan.sources[chunk.file]], self.schema, path_column), error

    def _stop(self, error: Exception) -> None:
        self._close_files()
        if isinstance(error, TFRecordError):
            error.records_intact = self.report.records
        self.report.stopped = end_read(error, self._scan.options.on_error)

    def _joined(self) -> Generator[pa.RecordBatch]:
        """Batches of the requested size: those of small files are joined."""
        pending: list[pa.RecordBatch] = []
        if self._scan.replan is not None:  # the plan is final now, and no other scan shares the sources
            for source in self._scan.sources:
                source.read_once()
        try:
            for batch, ends in self._built():
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
        self._refuse_used()
        if self._started:
            return to_table(list(self), self.schema)
        try:
            while True:
                batches = [batch for batch, _ in self._built() if len(batch)]
                if self._revision is None or self._scan.replan is None:
                    self._raise_revision()
                    break
                batches.clear()
                self._begin(self._scan.replan(self._revision))
        except Exception as error:
            self._fail(error)
            raise
        self._started = self._ended = True
        return to_table(batches, self.schema)

    def read_pandas(self, dtype_backend: str | None = None) -> pd.DataFrame:
        """All remaining rows as a DataFrame; see `tfrecord_io.read_tfrecord`."""
        started = self._started
        return to_pandas(self.read_all(), dtype_backend, whole_file=self.is_one_whole_file and not started)

    @property
    def is_one_whole_file(self) -> bool:
        """Whether all rows of one file are read: only then does its stored RangeIndex apply."""
        options = self._scan.options
        return len(self._scan.sources) == 1 and options.offset == 0 and options.limit is None

    def close(self) -> None:
        """Close the files; reading is over."""
        self._closed = True
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
