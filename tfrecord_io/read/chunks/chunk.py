"""Chunks: records that are decoded together, how they are decoded, and how many there may be.

- `DecodedChunk`: the columns of consecutive records, and where each row comes from.
- `DecodeSettings`: how records are decoded; `KnownRecords` is what earlier records say about later ones.
- `ChunkDecoder`: decodes records to chunks, and checks the embedded schemas that they carry.
- `RowBudget` and `BatchLimit`: how many rows, and bytes of them, the next chunk may have.

All of these are needed by every read, and so are in one file. `payload_decoder` is loaded for ``record_type="bytes"``.

Tests: tests/read/chunks/test_chunk_row_budget.py and tests/faults/test_decode_faults.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tfrecord_io.base import LIMITS, MIB, ScanOptions, Selection
from tfrecord_io.bytes import (
    Array,
    ColumnBuffers,
    Decoder,
    Fault,
    FeatureColumns,
    Kind,
    Layout,
    Plan,
    RecordCounts,
    RecordType,
    get_engine,
)
from tfrecord_io.errors import SchemaError
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck, SchemaRevision
from tfrecord_io.store import RecordRef

if TYPE_CHECKING:
    from tfrecord_io.read.chunks.filtering_decoder import Prefilter

_PAYLOADS = "record"
PAYLOAD_SCHEMA = pa.schema([pa.field(_PAYLOADS, pa.binary(), nullable=False)])
MAX_BATCH_BYTES = 2**31 - 1  # of payloads: offsets have 32 bits, and payloads have no more values than bytes
_NO_RECORDS = RecordCounts()


def is_little(size: int) -> bool:
    """True if data is not worth a segment."""
    return size < LIMITS.decoded_file_bytes


class FileRun(NamedTuple):
    """Rows of a chunk that are consecutive records of one file: from `begin` up to `end`."""

    path: str
    file: int  # its number in the order of reading
    first_record: int  # record index of the row `begin`
    begin: int
    end: int


@dataclass(slots=True, eq=False, repr=False)
class DecodedChunk:
    """The columns of consecutive records, of one file or of several small ones."""

    path: str
    file: int  # number of the file in the order of reading; of several, the first
    first_record: int  # record index of the first row in its file
    rows: int
    columns: Mapping[str, ColumnBuffers]
    # The numbers of the rows that the columns have, where others are known not to pass the filter; None: all.
    kept: Array | None = None
    error: Exception | None = None  # what ended the read after these rows
    # The embedded schema of the record after these rows, if the plan does not cover it.
    revision: SchemaRevision | None = None
    ends_batch: bool = False  # whether a batch ends with these rows
    full: bool = False  # the rows take as much memory as `max_expansion` allows; more follow in the next chunk
    payload_bytes: int = 0
    integer_bytes: int = 0  # see `Decoder.integer_bytes`
    counts: RecordCounts = _NO_RECORDS  # the records of these rows
    sequence: bool = False
    # The names that the plan does not have, and that the decoder met first in these rows.
    new_names: Sequence[FeatureColumns.Name] = ()
    # What follows of other files: path, number, the first row, and its record index.
    more_files: Sequence[tuple[str, int, int, int]] = ()
    batch: pa.RecordBatch | None = None  # the rows instead of `columns`, where an index has them

    def files(self) -> Iterator[FileRun]:
        """The rows of each file."""
        path, file, first_record, begin = self.path, self.file, self.first_record, 0
        for next_path, next_file, row, record in self.more_files:
            yield FileRun(path, file, first_record=first_record, begin=begin, end=row)
            path, file, first_record, begin = next_path, next_file, record, row
        yield FileRun(path, file, first_record=first_record, begin=begin, end=self.rows)

    def record_of(self, row: int) -> RecordRef:
        """The record of a row, or the next record of the file for the number of rows."""
        at = bisect_right(self.more_files, row, key=itemgetter(2)) if self.more_files else 0
        if not at:
            return RecordRef(self.path, self.first_record + row, self.file)
        path, file, begin, first_record = self.more_files[at - 1]
        return RecordRef(path, first_record + row - begin, file)

    def row_of(self, path: str | None, record: int) -> int:
        """The row of a record; of a path that was given twice, where it comes first."""
        rows = (file.begin + max(0, record - file.first_record) for file in self.files() if file.path == path)
        return next(rows, 0)

    @property
    def ends_read(self) -> bool:
        return self.error is not None or self.revision is not None

    @staticmethod
    def to_deliver(sample: Iterable[DecodedChunk]) -> list[DecodedChunk]:
        """The chunks of a sample that the reader begins with: those that have rows, or end something."""
        return [chunk for chunk in sample if chunk.rows or chunk.ends_batch or chunk.ends_read]

    @property
    def held(self) -> int:
        """How many rows the columns have."""
        return self.rows if self.kept is None else len(self.kept)

    def row(self, held: int) -> int:
        """The number of one of the rows that the columns have; `rows` after the last one."""
        if self.kept is None or held == len(self.kept):
            return held if self.kept is None else self.rows
        return int(self.kept[held])


class DecodeSettings(NamedTuple):
    """How records are decoded."""

    plan: Plan
    # The schema was inferred: a value that does not fit contradicts the sample, not a declaration.
    contradicts_sample: bool = False
    as_bytes: bool = False  # records are read as payloads, not parsed
    prefilter: Prefilter | None = None  # rows that are known not to pass are left out of the columns

    def decoder(self, *, keep_lengths: bool = False) -> Decoder:
        engine = get_engine()
        if self.as_bytes:
            from tfrecord_io.read.chunks.payload_decoder import PayloadDecoder

            return PayloadDecoder(
                engine,
                _PAYLOADS,
                check_crc=self.plan.check_crc,
                max_record_bytes=self.plan.max_record_bytes,
                max_bytes=MAX_BATCH_BYTES,
            )
        plan = self.plan
        if not plan.stop_at_embedded or keep_lengths:
            plan = plan._replace(stop_at_embedded=True, keep_lengths=keep_lengths)
        if self.prefilter is None:
            return engine.decoder(plan)
        from tfrecord_io.read.chunks.filtering_decoder import FilteringDecoder

        return FilteringDecoder(engine, plan, self.prefilter)


def plan_limits(options: ScanOptions) -> dict[str, Any]:
    """The fields of a `Plan` that options state."""
    return {
        "check_crc": options.check_crc,
        "max_record_bytes": options.limits.record_bytes,
        "max_features": options.limits.features,
        "max_expansion": options.limits.expansion_bytes,
    }


def first_record_settings(options: ScanOptions) -> DecodeSettings:
    """Settings to look at a file's first record: its type and its embedded schema, without any column."""
    return DecodeSettings(
        Plan(
            unknown="skip",
            record_type=RecordType.DETECT,
            check_crc=options.check_crc,
            max_record_bytes=options.limits.record_bytes,
            stop_at_embedded=True,
        )
    )


class KnownRecords:
    """The facts about the records decoded so far that apply to later ones."""

    def __init__(self) -> None:
        self.names: dict[FeatureColumns.Name, None] = {}  # the names outside the plan that they had, as keys
        self.sequence = False  # one was a SequenceExample

    def add(self, chunk: DecodedChunk) -> None:
        self.names.update(dict.fromkeys(chunk.new_names))
        self.sequence |= chunk.sequence

    def applied_to(self, settings: DecodeSettings) -> DecodeSettings:
        """The settings for the next records."""
        if self.sequence and settings.plan.record_type is RecordType.DETECT:
            return settings._replace(plan=settings.plan._replace(record_type=RecordType.SEQUENCE_EXAMPLE))
        return settings

    def allow(self, chunk: DecodedChunk, plan: Plan) -> bool:
        """True if the new names of a chunk decoded by `plan` are not a fault after these records."""
        new = [name for name in chunk.new_names if name not in self.names] if self.names else chunk.new_names
        if new and len(plan.columns) + len(self.names) + len(new) > plan.max_features:
            return False
        if plan.names_in_both or not new or not any(map(itemgetter(1), chain(self.names, new))):
            return True
        names = self.names.keys() | new
        return not any((name, not steps) in names for name, steps in new)


class FeedResult(NamedTuple):
    """The result of one call of `ChunkDecoder.feed`; at most one of the last three fields is set."""

    records: int
    consumed: int
    fault: Fault | None = None
    error: SchemaError | None = None
    revision: SchemaRevision | None = None
    full: bool = False


class ChunkDecoder:
    """Decodes records and checks the embedded schemas they carry; used by one thread at a time."""

    def __init__(self, settings: DecodeSettings, check: EmbeddedSchemaCheck) -> None:
        self.engine_decoder = settings.decoder()  # holds the rows decoded so far
        self._check = check
        self._counts = RecordCounts()
        self._names = 0  # taken

    def feed(
        self,
        data: Any,
        path: str,
        record: int,
        offset: int,
        *,
        max_records: int = -1,
        max_bytes: int = -1,
        final: bool = True,
    ) -> FeedResult:
        """Decode the records of `data`, the first of which is `record` at byte `offset` of the file `path`."""
        decoder, records, consumed = self.engine_decoder, 0, 0
        while True:
            limit = max_records if max_records < 0 else max_records - records
            progress = decoder.feed(data, consumed, max_records=limit, max_bytes=max_bytes, final=final)
            fault = progress.fault and progress.fault._replace(record=progress.fault.record + records)
            records, consumed = records + progress.records, consumed + progress.consumed
            for content in progress.embedded:
                verdict = self._check.check(path, record + records, offset + consumed, content)
                if isinstance(verdict, SchemaRevision):
                    return FeedResult(records, consumed, revision=verdict)
                if verdict is not None:
                    return FeedResult(records, consumed, error=verdict)
            if not progress.embedded:
                return FeedResult(records, consumed, fault, full=progress.full)
            decoder.accept_embedded()

    def take(self, chunk: DecodedChunk) -> DecodedChunk:
        """Move the decoded rows into the chunk, with their counts."""
        decoder = self.engine_decoder
        chunk.rows, chunk.payload_bytes = decoder.rows, decoder.value_bytes
        chunk.integer_bytes, chunk.kept = decoder.integer_bytes, decoder.kept
        counts, chunk.sequence = decoder.counts, decoder.sequence
        chunk.counts, self._counts = counts - self._counts, counts
        chunk.new_names = decoder.new_names[self._names :]
        self._names += len(chunk.new_names)
        chunk.columns = decoder.take_columns()
        return chunk


_WHOLE_ROWS = 2**62
_WHOLE_BATCH_BYTES = 64 * MIB
_INTEGER_BYTES = 8


class RowBudget:
    """How many rows and payload bytes the next chunk may have: what remains of its batch and of the whole read.

    `batch_rows` and `batch_bytes` are the most of a batch, `remaining` the rows that may still be read (None: all).
    `counts_integers`: some column may have lists of integers.
    """

    def __init__(
        self, batch_rows: int, batch_bytes: int, remaining: int | None = None, *, counts_integers: bool = False
    ) -> None:
        self.batch_rows, self.batch_bytes, self.remaining = batch_rows, batch_bytes, remaining
        self.counts_integers = counts_integers
        self.rows = self.bytes = self.integer_bytes = 0  # of the current batch so far

    @property
    def max_rows(self) -> int:
        room = self.batch_rows - self.rows
        return room if self.remaining is None else min(room, self.remaining)

    @property
    def max_bytes(self) -> int:
        return self.batch_bytes - self.bytes

    @property
    def max_integer_bytes(self) -> int | None:
        return self.batch_bytes - self.integer_bytes if self.counts_integers else None

    @property
    def is_whole(self) -> bool:
        """True if all records are read, in batches as large as possible."""
        return self.batch_rows == _WHOLE_ROWS and self.remaining is None

    @property
    def joins(self) -> bool:
        """True if one thread decodes a file into one batch: no column is copied to join its parts."""
        return self.is_whole and self.batch_bytes > _WHOLE_BATCH_BYTES

    def fit_to(self, plan: Plan) -> None:
        """Limit a batch by the slots of its rows, which absent values have too, and by the integers of lists."""
        fixed = {Kind.INT64: 8, Kind.FLOAT: 4}  # the numbers of scalar columns, and an offset of the others
        size, kinds, layouts = 0, (Kind.INT64, Kind.NONE), (Layout.LIST, Layout.ANY)
        self.counts_integers = False
        for column in plan.columns:
            size += fixed.get(column.kind, 4) if column.layout is Layout.SCALAR else 4
            self.counts_integers |= column.kind in kinds and column.layout in layouts
        self.batch_rows = min(self.batch_rows, max(1, self.batch_bytes // max(1, size)))

    def give_back(self, rows: int) -> None:
        """Let others replace rows that were counted, but are left out."""
        if self.remaining is not None:
            self.remaining += rows

    def take(self, chunk: DecodedChunk) -> None:
        """Count a chunk."""
        if self.remaining is not None:
            self.remaining -= chunk.rows
        if chunk.ends_batch:
            self.rows = self.bytes = self.integer_bytes = 0
        else:
            self.rows, self.bytes = self.rows + chunk.rows, self.bytes + chunk.payload_bytes
            self.integer_bytes += chunk.integer_bytes


def row_budget(options: ScanOptions, selection: Selection, *, whole: bool) -> RowBudget:
    """The budget of a read; the batches of a `whole` read are as large as possible."""
    batch_bytes = min(options.batch_bytes, MAX_BATCH_BYTES)
    _, to_drop = options.damage.split_offset(selection.offset)
    limit = None if selection.limit is None else selection.limit + to_drop
    if whole:
        return RowBudget(_WHOLE_ROWS, max(batch_bytes, _WHOLE_BATCH_BYTES), limit)
    return RowBudget(options.batch_size, batch_bytes, limit)


class BatchLimit:
    """The payload bytes that a decoder may hold, limited also by the integers in the lists.

    A byte of a packed list is at most one integer, of eight bytes, so payloads are allowed in steps: an eighth of what
    the integers may still take, and after these were decoded an eighth of the rest. Where a batch ends depends on its
    records alone. `max_bytes` are those of payloads; without `max_integer_bytes`, integers do not count.
    """

    def __init__(self, decoder: Decoder, max_bytes: int, max_integer_bytes: int | None = None) -> None:
        self._decoder, self._most, self._max_integer_bytes = decoder, max_bytes, max_integer_bytes
        self.max_bytes = max_bytes if max_integer_bytes is None else 0  # that are allowed now
        self.extend()

    def extend(self) -> bool:
        """Allow more bytes, if the integers so far leave room; called where the next record exceeds `max_bytes`."""
        if self._max_integer_bytes is None:
            return False
        room = max(0, self._max_integer_bytes - self._decoder.integer_bytes)
        allowed = min(self._most, self._decoder.value_bytes + room // _INTEGER_BYTES)
        if allowed <= self.max_bytes:
            return False
        self.max_bytes = allowed
        return True
