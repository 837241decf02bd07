"""Chunks: records that are decoded together, and their decoders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tfrecord_io.engine.contract import Array, ColumnBuffers, Decoder, Fault, FeatureName, Plan, RecordCounts
from tfrecord_io.engine.decoded_columns import by_feature
from tfrecord_io.engine.filtering_decoder import FilteringDecoder, Prefilter
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import SchemaError
from tfrecord_io.format.kinds import RecordType
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck, SchemaRevision
from tfrecord_io.read.chunks.payload_decoder import PayloadDecoder

_NO_RECORDS = RecordCounts()


@dataclass(slots=True)
class DecodedChunk:
    """The columns of consecutive records of one file.

    Attributes
    ----------
    file : int
        Number of the file in the order of reading.
    first_record : int
        Record index of the first row in its file.
    error : Exception or None
        What ended the read after these rows.
    revision : SchemaRevision or None
        The embedded schema of the record after these rows, if the plan does not cover it.
    ends_batch : bool
        Whether a batch ends with these rows.
    kept : array of int64 or None
        The numbers of the rows that the columns have, where others are known not to pass the filter; None: all.
    full : bool
        The rows take as much memory as `max_expansion` allows; more follow in the next chunk.
    integer_bytes : int
        See `Decoder.integer_bytes`.
    counts : RecordCounts
        The records of these rows.
    new_names : sequence of FeatureName
        The names that the plan does not have, and that the decoder met first in these rows.
    """

    path: str
    file: int
    first_record: int
    rows: int
    columns: Mapping[str, ColumnBuffers]
    kept: Array | None = None
    error: Exception | None = None
    revision: SchemaRevision | None = None
    ends_batch: bool = False
    full: bool = False
    payload_bytes: int = 0
    integer_bytes: int = 0
    counts: RecordCounts = _NO_RECORDS
    sequence: bool = False
    new_names: Sequence[FeatureName] = ()

    @property
    def ends_read(self) -> bool:
        return self.error is not None or self.revision is not None

    @property
    def held(self) -> int:
        """How many rows the columns have."""
        return self.rows if self.kept is None else len(self.kept)

    def row(self, held: int) -> int:
        """The number of one of the rows that the columns have; `rows` after the last one."""
        if self.kept is None or held == len(self.kept):
            return held if self.kept is None else self.rows
        return int(self.kept[held])


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """How records are decoded.

    Attributes
    ----------
    plan : Plan
    contradicts_sample : bool
        The schema was inferred: a value that does not fit contradicts the sample, not a declaration.
    as_bytes : bool
        Records are read as payloads, not parsed.
    prefilter : Prefilter or None
        Rows that are known not to pass are left out of the columns.
    """

    plan: Plan
    contradicts_sample: bool = False
    as_bytes: bool = False
    prefilter: Prefilter | None = None

    @property
    def fault_context(self) -> dict[str, Any]:
        """Keyword arguments of `engine.fault_messages.to_error` for faults under these settings."""
        return {"contradicts_sample": self.contradicts_sample, "plan": self.plan}

    def with_plan(self, **changes: Any) -> DecodeSettings:
        """These settings with some fields of the plan changed."""
        return replace(self, plan=replace(self.plan, **changes))

    def decoder(self, *, keep_lengths: bool = False) -> Decoder:
        engine = get_engine()
        if self.as_bytes:
            return PayloadDecoder(engine, self.plan.check_crc, self.plan.max_record_bytes)
        plan = replace(self.plan, stop_at_embedded=True, keep_lengths=keep_lengths)
        return engine.decoder(plan) if self.prefilter is None else FilteringDecoder(engine, plan, self.prefilter)


def kept_rows(decoder: Decoder) -> Array | None:
    """The numbers of the rows that the columns of a decoder have, if it leaves out others; see `DecodedChunk.kept`."""
    return decoder.kept if isinstance(decoder, FilteringDecoder) else None


def plan_limits(options: ReadOptions) -> dict[str, Any]:
    """The fields of a `Plan` that options state."""
    names = ("check_crc", "max_record_bytes", "max_features", "max_expansion")
    return {name: getattr(options, name) for name in names}


def first_record_settings(options: ReadOptions) -> DecodeSettings:
    """Settings to look at a file's first record: its type and its embedded schema, without any column."""
    return DecodeSettings(
        Plan(
            unknown="skip",
            record_type=RecordType.DETECT,
            check_crc=options.check_crc,
            max_record_bytes=options.max_record_bytes,
        )
    )


class FeedResult(NamedTuple):
    """What one call of `ChunkDecoder.feed` decoded; at most one of the last three fields is set."""

    records: int
    consumed: int
    fault: Fault | None = None
    error: SchemaError | None = None
    revision: SchemaRevision | None = None
    full: bool = False


class ChunkDecoder:
    """Decodes records and checks the embedded schemas they carry; used by one thread at a time.

    Attributes
    ----------
    engine_decoder : Decoder
        Holds the rows decoded so far.
    """

    def __init__(self, settings: DecodeSettings, check: EmbeddedSchemaCheck) -> None:
        self.engine_decoder = settings.decoder()
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
            fault = progress.fault and replace(progress.fault, record=progress.fault.record + records)
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
        chunk.integer_bytes, chunk.kept = decoder.integer_bytes, kept_rows(decoder)
        chunk.counts = decoder.counts - self._counts
        chunk.sequence = decoder.sequence
        self._counts = decoder.counts
        chunk.new_names = decoder.new_names[self._names :]
        self._names += len(chunk.new_names)
        chunk.columns = by_feature(decoder.take())
        return chunk
