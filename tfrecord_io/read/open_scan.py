"""A scan whose files are being read, and what is checked of its records besides their columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tfrecord_io.arrow.decode.batch_builder import BatchBuilder
from tfrecord_io.arrow.decode.composite_decoder import CompositeBatchBuilder
from tfrecord_io.display import counted
from tfrecord_io.engine.contract import ColumnBuffers, RecordCounts
from tfrecord_io.engine.fault_messages import not_examples
from tfrecord_io.errors import SchemaError, SchemaWarning, printable, warn
from tfrecord_io.options import MIB, ReadOptions, StorageOptions
from tfrecord_io.read.absent_columns import AbsentColumns
from tfrecord_io.read.chunks.chunk import DecodedChunk
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import ForeignFeature, SchemaRevision
from tfrecord_io.read.chunks.recovery import SkippedRegions
from tfrecord_io.read.chunks.row_budget import RowBudget
from tfrecord_io.read.inference import name_contradicted_record
from tfrecord_io.read.partition_columns import PartitionColumns
from tfrecord_io.read.row_filter import ReadSelection
from tfrecord_io.schema.formats.tfds import check_shards
from tfrecord_io.schema.leaf import FEATURE_LIST
from tfrecord_io.schema.observation import Observation
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.read.source import Source

_VERDICT_BYTES = 64 * MIB


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


@dataclass(frozen=True, slots=True)
class SidecarSchema:
    """A dataset's description in the directory of its files."""

    schema: Schema
    directory: str
    storage: StorageOptions

    def check(self, records: Mapping[str, int]) -> None:
        """Compare the number of records read from each file, by path, with the description.

        Raises
        ------
        CorruptRecordError
            A file has more or fewer records.
        """
        counts = {path.removeprefix(self.directory).lstrip("/"): count for path, count in records.items()}
        check_shards(self.directory, counts, self.storage)


def find_sidecar_schema(sources: Sequence[Source], storage: StorageOptions) -> SidecarSchema | None:
    """The description in the directory of `sources`; None without one, or if there are several directories."""
    directories = {source.path.rpartition("/")[0] for source in sources}
    if len(directories) != 1 or any(source.is_file_object for source in sources):
        return None
    directory = directories.pop() or ("." if not sources[0].path.startswith("/") else "/")
    try:
        return SidecarSchema(Schema.from_tfds(directory, **storage.keywords), directory, storage)
    except FileNotFoundError:
        return None
    except SchemaError as error:
        reason = f"the features.json next to the files cannot be used ({error})"
        warn(f"{reason}; types are inferred from the values", SchemaWarning)
        return None


def check_record_type(counts: RecordCounts, sources: Sequence[Source], options: ReadOptions) -> None:
    """Raise DecodeError if the records are another message: with `record_type`, only if they look like one."""
    error = not_examples(counts, sources[0].path, is_declared=options.record_type is not None)
    if error is not None:
        raise error


def warn_of_feature_lists(sources: Sequence[Source], options: ReadOptions, embedded: Schema | None = None) -> None:
    """Warn that the feature lists of the first record are not read, unless the columns to read were named.

    Its embedded schema, if it has one, tells whether it has feature lists.
    """
    has_lists = embedded is None or any(field.part == FEATURE_LIST for field in embedded)
    if options.record_type == "example" and options.columns is None and has_lists:
        reason = 'the records have feature lists, which record_type="example" ignores'
        advice = "leave it out to read them, or name the columns to read"
        warn(f"{printable(sources[0].path)}: {reason}; {advice}", SchemaWarning)


class RecordTypeVerdict:
    """Decides from the first records whether they are another message, where no sample was decoded to infer a schema.

    Of a whole read, which holds all rows anyway, these are all records of `_VERDICT_BYTES`; of others, those of the
    first chunk.

    Parameters
    ----------
    check : callable
        Raises DecodeError if the records that were counted are another message.
    whole : bool
    decided : bool
        There is nothing to decide.
    """

    def __init__(self, check: Callable[[RecordCounts], None], *, whole: bool, decided: bool) -> None:
        self._check = check
        self._counts = RecordCounts()
        self._left = _VERDICT_BYTES if whole else 1  # payload bytes to observe
        self._decided = decided

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
            self._check(self._counts)
