"""A unit of decoded columns, and what makes one of bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from tfrecord_io.engine.contract import ColumnBuffers, Decoder, EmbeddedHook, Engine, Plan
from tfrecord_io.engine.fault_messages import to_error
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.payload_decoder import PayloadDecoder


@dataclass(slots=True)
class DecodedChunk:
    """Decoded rows: a run of records of one file."""

    path: str
    file: int  # number of the file in the order of reading
    first_record: int  # index in its file
    rows: int
    columns: dict[str, ColumnBuffers]
    error: Exception | None = None  # what stopped the reading behind these rows
    ends_batch: bool = False
    payload_bytes: int = 0
    seen: int = 0  # non-empty records,
    foreign: int = 0  # and those of them without a feature (engine/contract.py)
    sequence: bool = False


@dataclass(slots=True)
class DecodeSettings:
    """What decoders are made with; changed only between units."""

    engine: Engine
    plan: Plan
    on_embedded: Callable[[str, int, int, bytes], None]  # path, record, offset, content
    contradicts_sample: bool = False  # a misfit contradicts what was inferred, not what was declared
    as_bytes: bool = False  # records are payloads, not messages

    def decoder(self, on_embedded: EmbeddedHook) -> Decoder:
        if self.as_bytes:
            return PayloadDecoder(self.engine, self.plan.check_crc, self.plan.max_record_bytes)
        return self.engine.decoder(self.plan, on_embedded)


class ChunkDecoder:
    """A decoder and where its data comes from: used by one thread at a time."""

    def __init__(self, setup: DecodeSettings) -> None:
        self._setup = setup
        self.decoder = setup.decoder(self._embedded)
        self._path = ""
        self._record = self._offset = self._seen = self._foreign = 0

    def locate(self, path: str, record: int, offset: int) -> None:
        """The next data's first record and byte."""
        self._path, self._record, self._offset = path, record, offset

    def _embedded(self, record: int, offset: int, content: bytes) -> None:
        self._setup.on_embedded(self._path, self._record + record, self._offset + offset, content)

    def take(self, unit: DecodedChunk) -> DecodedChunk:
        """Fill in the columns held and their counts."""
        decoder = self.decoder
        unit.rows, unit.payload_bytes = decoder.rows, decoder.value_bytes
        unit.seen, unit.foreign = decoder.seen - self._seen, decoder.foreign - self._foreign
        unit.sequence = decoder.sequence
        self._seen, self._foreign = decoder.seen, decoder.foreign
        unit.columns = {column.name: column for column in decoder.take()}
        return unit


@dataclass(slots=True)
class DecodeTask:
    """Whole records for a thread to decode into `unit`."""

    unit: DecodedChunk
    data: Any  # uint8 array, or None: there is only an error to tell
    offset: int  # of its first byte in the uncompressed file
    setup: DecodeSettings

    def run(self, workers: SimpleQueue[ChunkDecoder]) -> DecodedChunk:
        unit = self.unit
        if self.data is None:
            return unit
        worker = workers.get()
        try:
            worker.locate(unit.path, unit.first_record, self.offset)
            ends_batch, later = unit.ends_batch, unit.error
            worker.decoder.expect(len(self.data))
            try:
                progress = worker.decoder.feed(self.data)
                if progress.fault is not None:
                    later = to_error(
                        progress.fault,
                        path=unit.path,
                        record=unit.first_record,
                        offset=self.offset,
                        contradicts_sample=self.setup.contradicts_sample,
                        plan=self.setup.plan,
                    )
            except TFRecordError as error:
                later = error
            unit.error, unit.ends_batch = later, ends_batch
            return worker.take(unit)
        finally:
            workers.put(worker)
