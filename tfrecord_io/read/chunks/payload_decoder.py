"""Decode records to a column of payloads, for ``record_type="bytes"``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.engine.contract import Array, ColumnBuffers, Engine, FeatureName, Progress, RecordCounts
from tfrecord_io.format.kinds import Kind, Layout

COLUMN = "record"
SCHEMA = pa.schema([pa.field(COLUMN, pa.binary(), nullable=False)])
_MAX_BYTES = 2**31 - 1  # of a batch, whose offsets have 32 bits


class PayloadDecoder:
    """A `tfrecord_io.engine.contract.Decoder` that parses nothing: one column of payloads."""

    sequence = False
    counts = RecordCounts()

    def __init__(self, engine: Engine, check_crc: bool, max_record_bytes: int) -> None:
        self._engine = engine
        self._check_crc = check_crc
        self._max_record_bytes = max_record_bytes
        self._start()

    @property
    def new_names(self) -> list[FeatureName]:
        """Payloads are not parsed."""
        return []

    @property
    def integer_bytes(self) -> int:
        """Payloads are not parsed."""
        return 0

    def lengths(self, begin: int = 0) -> Array:
        return np.concatenate([np.empty(0, np.int64), *self._lengths])[begin:]

    def know(self, names: Iterable[FeatureName]) -> None:
        """Payloads are not parsed."""

    def _start(self) -> None:
        self.rows = self.value_bytes = 0
        self._values: list[Array] = []
        self._lengths: list[Array] = []

    def expect(self, payload_bytes: int) -> None:
        """No memory is reserved in advance."""

    def feed(
        self, data: Any, begin: int = 0, *, max_records: int = -1, max_bytes: int = -1, final: bool = True
    ) -> Progress:
        limit = _MAX_BYTES if max_bytes < 0 else min(max_bytes, _MAX_BYTES)
        frames, fault = self._engine.scan(
            data,
            begin,
            max_records=max_records,
            check_crc=self._check_crc,
            max_record_bytes=self._max_record_bytes,
            final=final,
        )
        fitting = int(frames.lengths.cumsum().searchsorted(limit - self.value_bytes, side="right"))
        if fitting < len(frames.starts):
            records = max(fitting, 0 if self.rows else 1)
            frames, fault = self._engine.scan(
                data, begin, max_records=records, check_crc=False, max_record_bytes=self._max_record_bytes, final=final
            )
        self._values.append(self._engine.payloads(data, frames))
        self._lengths.append(frames.lengths)
        self.rows += len(frames.lengths)
        self.value_bytes += int(frames.lengths.sum())
        return Progress(len(frames.lengths), frames.consumed, fault)

    def accept_embedded(self) -> None:
        """Payloads are not parsed."""

    def complete(self) -> None:
        """Nothing is left to do."""

    def append(self, part: PayloadDecoder, begin: int, end: int, payload_bytes: int) -> bool:
        lengths = part.lengths()
        first = int(lengths[:begin].sum())
        self._values.append(np.concatenate(part._values)[first : first + payload_bytes])
        self._lengths.append(lengths[begin:end])
        self.rows += end - begin
        self.value_bytes += payload_bytes
        return True

    def clear(self) -> None:
        self._start()

    def take(self) -> list[ColumnBuffers]:
        offsets = np.zeros(self.rows + 1, np.int32)
        np.cumsum(self.lengths(), out=offsets[1:], dtype=np.int32)
        values = self._values[0] if len(self._values) == 1 else np.concatenate([np.empty(0, np.uint8), *self._values])
        column = ColumnBuffers(COLUMN, Kind.BYTES, Layout.SCALAR, self.rows, value_offsets=offsets, values=values)
        self._start()
        return [column]
