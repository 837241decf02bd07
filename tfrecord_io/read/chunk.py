"""Chunks: records that were decoded together, and what decodes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, NamedTuple

from tfrecord_io.engine.contract import ColumnBuffers, Decoder, Fault, Plan
from tfrecord_io.engine.fault_messages import to_error
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import SchemaError
from tfrecord_io.read.embedded_schemas import EmbeddedSchemaCheck, SchemaRevision
from tfrecord_io.read.payload_decoder import PayloadDecoder


@dataclass(slots=True)
class DecodedChunk:
    """The columns of consecutive records of one file.

    Attributes
    ----------
    file : int
        Number of the file in the order of reading.
    first_record : int
        Index of the first row in its file.
    error : Exception or None
        What ended the read after these rows.
    revision : SchemaRevision or None
        The embedded schema of the record after these rows, which the plan does not cover.
    ends_batch : bool
        Whether a batch ends with these rows.
    seen, foreign : int
        Non-empty records, and those of them without a feature; see `engine.contract.Decoder`.
    """

    path: str
    file: int
    first_record: int
    rows: int
    columns: dict[str, ColumnBuffers]
    error: Exception | None = None
    revision: SchemaRevision | None = None
    ends_batch: bool = False
    payload_bytes: int = 0
    seen: int = 0
    foreign: int = 0
    sequence: bool = False

    @property
    def ends_read(self) -> bool:
        return self.error is not None or self.revision is not None


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """How records are decoded.

    Attributes
    ----------
    plan : Plan
    contradicts_sample : bool
        A value that does not fit contradicts a schema that was inferred, not one that was declared.
    as_bytes : bool
        Records are payloads, not messages.
    """

    plan: Plan
    contradicts_sample: bool = False
    as_bytes: bool = False

    def decoder(self) -> Decoder:
        engine = get_engine()
        if self.as_bytes:
            return PayloadDecoder(engine, self.plan.check_crc, self.plan.max_record_bytes)
        return engine.decoder(replace(self.plan, stop_at_embedded=True))


class Step(NamedTuple):
    """What one call of `ChunkDecoder.feed` did: at most one of the last three is set."""

    records: int
    consumed: int
    fault: Fault | None = None
    error: SchemaError | None = None
    revision: SchemaRevision | None = None


class ChunkDecoder:
    """A decoder that checks the embedded schemas it meets; used by one thread at a time."""

    def __init__(self, settings: DecodeSettings, check: EmbeddedSchemaCheck) -> None:
        self._decoder = settings.decoder()
        self._check = check
        self._seen = self._foreign = 0

    @property
    def rows(self) -> int:
        """Rows held."""
        return self._decoder.rows

    @property
    def seen(self) -> int:
        """Non-empty records met."""
        return self._decoder.seen

    @property
    def foreign(self) -> int:
        """Those of them without a feature."""
        return self._decoder.foreign

    @property
    def sequence(self) -> bool:
        """Whether a feature list was met."""
        return self._decoder.sequence

    def expect(self, payload_bytes: int) -> None:
        """See `engine.contract.Decoder.expect`."""
        self._decoder.expect(payload_bytes)

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
    ) -> Step:
        """Decode the records of `data`, the first of which is `record` at byte `offset` of the file `path`."""
        records = consumed = 0
        while True:
            left = max_records if max_records < 0 else max_records - records
            progress = self._decoder.feed(data, consumed, max_records=left, max_bytes=max_bytes, final=final)
            fault = progress.fault and replace(progress.fault, record=progress.fault.record + records)
            records, consumed = records + progress.records, consumed + progress.consumed
            for content in progress.embedded:
                verdict = self._check.check(path, record + records, offset + consumed, content)
                if isinstance(verdict, SchemaRevision):
                    return Step(records, consumed, revision=verdict)
                if verdict is not None:
                    return Step(records, consumed, error=verdict)
            if not progress.embedded:
                return Step(records, consumed, fault)
            self._decoder.accept_embedded()

    def take(self, chunk: DecodedChunk) -> DecodedChunk:
        """Move the rows held into the chunk, with their counts."""
        decoder = self._decoder
        chunk.rows, chunk.payload_bytes = decoder.rows, decoder.value_bytes
        chunk.seen, chunk.foreign = decoder.seen - self._seen, decoder.foreign - self._foreign
        chunk.sequence = decoder.sequence
        self._seen, self._foreign = decoder.seen, decoder.foreign
        chunk.columns = {column.name: column for column in decoder.take()}
        return chunk


@dataclass(slots=True)
class DecodeTask:
    """Whole records for a thread to decode into `chunk`."""

    chunk: DecodedChunk
    data: Any  # uint8 array; None where the chunk is nothing but its error
    offset: int  # of its first byte in the uncompressed file
    settings: DecodeSettings

    def run(self, decoders: SimpleQueue[ChunkDecoder]) -> DecodedChunk:
        chunk = self.chunk
        if self.data is None:
            return chunk
        decoder = decoders.get()
        try:
            decoder.expect(len(self.data))
            step = decoder.feed(self.data, chunk.path, chunk.first_record, self.offset)
            if step.fault is not None:
                chunk.error = to_error(
                    step.fault,
                    path=chunk.path,
                    record=chunk.first_record,
                    offset=self.offset,
                    contradicts_sample=self.settings.contradicts_sample,
                    plan=self.settings.plan,
                )
            elif step.error is not None:
                chunk.error = step.error
            elif step.revision is not None:
                chunk.error, chunk.revision = None, step.revision
            return decoder.take(chunk)
        finally:
            decoders.put(decoder)
