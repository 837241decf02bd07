"""A scan whose files are being read, and what is checked of its records besides their columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tfrecord_io.arrow.decode.batch_builder import BatchBuilder
from tfrecord_io.arrow.decode.composite import CompositeBatchBuilder
from tfrecord_io.display import counted
from tfrecord_io.engine.contract import ColumnBuffers, RecordCounts
from tfrecord_io.errors import SchemaWarning, printable, warn
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.absent_columns import AbsentColumns
from tfrecord_io.read.chunks.chunk import DecodedChunk
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import ForeignFeature, SchemaRevision
from tfrecord_io.read.chunks.recovery import SkippedRegions
from tfrecord_io.read.chunks.row_budget import RowBudget
from tfrecord_io.read.inference import name_contradicted_record
from tfrecord_io.read.partition_columns import PartitionColumns
from tfrecord_io.read.record_type import check_record_type
from tfrecord_io.read.row_filter import ReadSelection
from tfrecord_io.read.sidecar_schema import SidecarSchema
from tfrecord_io.schema.observation import Observation
from tfrecord_io.storage.read.source import Source


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
    selection : ReadSelection, optional
        The rows and columns of `schema` that are delivered; by default all.
    fails : callable, optional
        Whether one row, in decoded columns, is known not to pass the filter: what does not fit in it is no error then.
    values_of : callable, optional
        Reads columns again, of all rows, for `absent`.
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
    selection: ReadSelection | None = None
    fails: Callable[[Mapping[str, ColumnBuffers]], bool] | None = None
    values_of: Callable[[Sequence[str]], Iterable[pa.RecordBatch]] | None = None

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

    def warn_of_absent(self, records: int) -> None:
        """Warn of declared columns that no record has, once all `records` were read."""
        if self.absent is None:
            return
        if self.values_of is not None and records:  # the columns of rows that do not pass were not decoded
            self.absent.observe_until_found(self.values_of)
        self.absent.finish(self.sources, self.options, records)

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
            warn(f"{files}: {reason}; read_table(schema=…) reads no rows of known columns", SchemaWarning)

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
