"""The decoder of records that are not parsed, for ``record_type="bytes"``.

Tests: tests/faults/test_decode_faults.py and tests/read/test_reader.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tfrecord_io.bytes import Array, Checks, ColumnBuffers, Engine, FeatureColumns, Kind, Layout, RecordCounts


class PayloadDecoder:
    """A `tfrecord_io.bytes.engine.contract.Decoder` of one column: at most `max_bytes` of payloads."""

    sequence = False
    kept: Array | None = None
    counts = RecordCounts()
    integer_bytes = 0
    new_names: ClassVar[list[FeatureColumns.Name]] = []

    def __init__(self, engine: Engine, column: str, *, check_crc: bool, max_record_bytes: int, max_bytes: int) -> None:
        self._engine, self._column = engine, column
        self._checks = Checks.from_check_crc(check_crc, payloads=True)
        self._max_record_bytes, self._max_bytes = max_record_bytes, max_bytes
        self.clear()

    def lengths(self, begin: int = 0) -> Array:
        return np.concatenate([np.empty(0, np.int64), *self._lengths])[begin:]

    def clear(self) -> None:
        self.rows = self.value_bytes = 0
        self._values: list[Array] = []
        self._lengths: list[Array] = []

    def _ignore(self, *_: Any, **__: Any) -> None:
        """Nothing is parsed, no memory is reserved in advance, and no part has anything left to do."""

    know = expect = accept_embedded = complete = _ignore

    def feed(
        self, data: Any, begin: int = 0, *, max_records: int = -1, max_bytes: int = -1, final: bool = True
    ) -> Engine.Progress:
        limit = self._max_bytes if max_bytes < 0 else min(max_bytes, self._max_bytes)
        frames, fault = self._engine.scan(
            data,
            begin,
            max_records=max_records,
            checks=self._checks,
            max_record_bytes=self._max_record_bytes,
            final=final,
        )
        fitting = int(frames.lengths.cumsum().searchsorted(limit - self.value_bytes, side="right"))
        if fitting < len(frames.starts):
            records = max(fitting, 0 if self.rows else 1)
            frames, fault = self._engine.scan(
                data,
                begin,
                max_records=records,
                checks=Checks.NONE,  # they were compared
                max_record_bytes=self._max_record_bytes,
                final=final,
            )
        self._values.append(self._engine.payloads(data, frames))
        self._lengths.append(frames.lengths)
        self.rows += len(frames.lengths)
        self.value_bytes += int(frames.lengths.sum())
        return Engine.Progress(len(frames.lengths), frames.consumed, fault)

    def feed_file(self, file: Engine.FileView, begin: int, end: int, *, max_bytes: int) -> int:
        """All is left to `feed`."""
        return 0

    def append(self, part: PayloadDecoder, begin: int, end: int, payload_bytes: int) -> bool:
        lengths = part.lengths()
        first = int(lengths[:begin].sum())
        self._values.append(np.concatenate(part._values)[first : first + payload_bytes])
        self._lengths.append(lengths[begin:end])
        self.rows += end - begin
        self.value_bytes += payload_bytes
        return True

    def take_columns(self) -> Mapping[str, ColumnBuffers]:
        offsets = np.zeros(self.rows + 1, np.int32)
        np.cumsum(self.lengths(), out=offsets[1:], dtype=np.int32)
        values = self._values[0] if len(self._values) == 1 else np.concatenate([np.empty(0, np.uint8), *self._values])
        column = ColumnBuffers(self._column, Kind.BYTES, Layout.SCALAR, self.rows, value_offsets=offsets, values=values)
        self.clear()
        return {self._column: column}
