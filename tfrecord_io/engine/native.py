"""The compiled engine: the kernel's arrays as `ColumnBuffers`, and answers to its questions about names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrecord_io._native import _kernel
from tfrecord_io.engine.contract import (
    MAX_RECORD_BYTES,
    Array,
    ColumnBuffers,
    Decoder,
    Fault,
    FaultCode,
    Frames,
    Plan,
    Progress,
)
from tfrecord_io.format.kinds import Kind, Layout

_UNKNOWN = {"discover": 0, "skip": 1, "fault": 2}
_STOP_NEW_NAMES, _STOP_EMBEDDED = 48, 49


def _as_array(data: Any) -> Any:
    return data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)


def _fault(raw: tuple[Any, ...] | None, record: int = 0) -> Fault | None:
    if raw is None:
        return None
    code, at, offset, byte, feature, expected, got = raw
    name = None if feature is None else feature.decode("utf-8", "replace")
    if code == FaultCode.LENGTH_TOO_LARGE:
        got %= 2**64  # the kernel's numbers are signed
    return Fault(FaultCode(code), record + at, offset, byte, name, expected, got)


def _column(name: str, raw: tuple[Any, ...]) -> ColumnBuffers:
    column = ColumnBuffers(name, Kind(raw[0]), Layout(raw[1]), raw[2])
    column.null_count, column.validity, column.offsets, column.value_offsets, column.values = raw[3:8]
    column.text, column.first_row, column.list_row, column.binary_row = raw[8:12]
    column.steps = None if raw[12] is None else _column(name, raw[12])
    return column


class NativeDecoder:
    """See `tfrecord_io.engine.contract.Decoder`."""

    def __init__(self, plan: Plan) -> None:
        self._kernel = _kernel.Decoder(
            [(c.name.encode(), int(c.kind), int(c.layout), int(c.text), c.required, c.steps) for c in plan.columns],
            _UNKNOWN[plan.unknown],
            int(plan.text),
            int(plan.record_type),
            plan.check_crc,
            plan.max_record_bytes,
            plan.max_features,
        )
        for name in plan.ignored:
            self._kernel.leave_out(name.encode(), False)
            self._kernel.leave_out(name.encode(), True)
        self._select = plan.select
        self._refuses = plan.unknown == "fault"
        self._stops_at_embedded = plan.stop_at_embedded
        self.rows = 0

    @property
    def value_bytes(self) -> int:
        return self._kernel.value_bytes

    @property
    def seen(self) -> int:
        return self._kernel.seen

    @property
    def foreign(self) -> int:
        return self._kernel.foreign

    @property
    def sequence(self) -> bool:
        return self._kernel.sequence

    def expect(self, payload_bytes: int) -> None:
        self._kernel.expect(payload_bytes)

    def feed(
        self, data: Any, begin: int = 0, *, max_records: int = -1, max_bytes: int = -1, final: bool = True
    ) -> Progress:
        block = _as_array(data)
        records, at = 0, begin
        while True:
            left = max_records if max_records < 0 else max_records - records
            done, consumed, raw = self._kernel.feed(block, at, left, max_bytes, final)
            base, records, at = records, records + done, at + consumed
            self.rows += done
            if raw is None or raw[0] < _STOP_NEW_NAMES:
                return Progress(records, at - begin, _fault(raw, base))
            if raw[0] == _STOP_NEW_NAMES:
                unknown = self._add_names()
                if unknown is not None:
                    return Progress(records, at - begin, Fault(FaultCode.UNKNOWN_FEATURE, records, at, feature=unknown))
            elif self._stops_at_embedded:
                return Progress(records, at - begin, embedded=tuple(self._kernel.embedded()))
            else:
                self._kernel.accept_embedded()

    def _add_names(self) -> str | None:
        """Tell the kernel which new names are selected; return the first one that the plan refuses, if any."""
        for raw, steps in self._kernel.new_names():
            name = raw.decode()
            wanted = self._select is None or self._select(name)
            if wanted and self._refuses:
                return name
            self._kernel.add_name(raw, steps, wanted)
        return None

    def accept_embedded(self) -> None:
        self._kernel.accept_embedded()

    def take(self) -> list[ColumnBuffers]:
        self.rows = 0
        return [_column(name.decode(), raw) for name, _, raw in self._kernel.take()]


def _wide(offsets: Any) -> Any:
    return None if offsets is None else np.ascontiguousarray(offsets, np.int64)


def _source(column: ColumnBuffers) -> tuple[Any, ...]:
    steps = None if column.steps is None else _source(column.steps)
    values = column.values
    if values is None and column.kind is not Kind.NONE:
        values = np.empty(0, {Kind.INT64: np.int64, Kind.FLOAT: np.float32, Kind.BYTES: np.uint8}[column.kind])
    arrays = (column.validity, _wide(column.offsets), _wide(column.value_offsets), values)
    return (column.name.encode(), int(column.kind), int(column.layout), *arrays, steps)


class NativeEngine:
    """See `tfrecord_io.engine.contract.Engine`."""

    name = "native"

    def crc32c(self, data: Any, value: int = 0) -> int:
        return _kernel.crc32c(_as_array(data), value)

    def scan(
        self,
        data: Any,
        begin: int = 0,
        *,
        max_records: int = -1,
        check_crc: bool = True,
        max_record_bytes: int = MAX_RECORD_BYTES,
        final: bool = True,
    ) -> tuple[Frames, Fault | None]:
        *frames, raw = _kernel.scan(_as_array(data), begin, max_records, check_crc, max_record_bytes, final)
        return Frames(*frames), _fault(raw)

    def find_header(self, data: Any, begin: int = 0, *, max_record_bytes: int = MAX_RECORD_BYTES) -> int:
        return int(_kernel.find_header(_as_array(data), begin, max_record_bytes))

    def payloads(self, data: Any, frames: Frames) -> Array:
        return np.asarray(_kernel.payloads(_as_array(data), frames.starts, frames.lengths))

    def frame(self, payloads: Sequence[Any]) -> bytes:
        lengths = np.fromiter((memoryview(p).nbytes for p in payloads), np.int64, len(payloads))
        return np.asarray(_kernel.frame(_as_array(b"".join(payloads)), lengths)).tobytes()

    def decoder(self, plan: Plan) -> Decoder:
        return NativeDecoder(plan)

    def encode(
        self, columns: Sequence[ColumnBuffers], begin: int, end: int, *, prefix: bytes = b"", sequence: bool = False
    ) -> tuple[Any, int]:
        return _kernel.encode([_source(column) for column in columns], begin, end, prefix, sequence)


ENGINE = NativeEngine()
