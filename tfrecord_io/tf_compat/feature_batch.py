"""Decoding some features of a batch of records to flat arrays, with the number of values of each record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import column_mask, variable_width
from tfrecord_io.arrow.decode.layout import widen
from tfrecord_io.arrow.output.to_numpy import memory_errors
from tfrecord_io.engine.contract import Array, ColumnBuffers, Plan, PlanColumn
from tfrecord_io.engine.fault_messages import not_examples, to_error
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import DecodeError, TFRecordError
from tfrecord_io.format.kinds import Kind, Layout, Text
from tfrecord_io.schema.formats.tf_features import KINDS

# The exact types: where np.int64 is long, an array of long long prints as another dtype.
_NUMBERS: dict[Kind, type] = {Kind.INT64: np.int64, Kind.FLOAT: np.float32}
_CHUNK_BYTES = 1 << 30  # of payloads, so that no column overflows its 32-bit offsets


@dataclass(frozen=True, slots=True)
class FeatureValues:
    """The values of one feature in all records."""

    name: str
    values: Array  # int64, float32 or object (bytes)
    counts: Array  # int64: number of values of each record
    present: Array  # bool: whether a record has the feature, with a type

    @property
    def starts(self) -> Array:
        """The index of the first value of each record."""
        return np.cumsum(self.counts) - self.counts

    @property
    def records(self) -> Array:
        """The record of each value."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def refuse_records(
        self, bad: Array, expected: Any, got: Array | None = None, reason: str = "expected {} values, got {}"
    ) -> None:
        """Raise DecodeError for the first bad record; `reason` is a format string for what it expected and got."""
        if np.any(bad):
            record = int(bad.argmax())
            want = int(expected[record]) if isinstance(expected, np.ndarray) else expected
            have = int((self.counts if got is None else got)[record])
            raise DecodeError(reason.format(want, have), record=record, feature=self.name, expected=want, got=have)


@dataclass(frozen=True, slots=True)
class Batch:
    """The features of all records, or of those before a fault."""

    columns: dict[str, FeatureValues]
    fault: TFRecordError | None


def decode(payloads: Sequence[bytes], dtypes: Mapping[str, str]) -> Batch:
    """Decode features of dtype int64, float32 or string, up to the first record that is damaged or has another kind."""
    columns = tuple(PlanColumn(name, KINDS[dtype], Layout.LIST, Text.NO) for name, dtype in dtypes.items())
    engine = get_engine()
    decoder = engine.decoder(Plan(columns, unknown="skip", check_crc=False))
    parts: list[Sequence[ColumnBuffers]] = []
    fault: TFRecordError | None = None
    done = 0
    for chunk in _chunks(payloads):
        progress = decoder.feed(engine.frame(chunk))
        parts.append(decoder.take())
        if progress.fault is not None:
            fault = to_error(progress.fault, record=done)
            fault.offset = fault.records_intact = fault.advice = None  # these are about files
            break
        done += len(chunk)
    fault = fault or not_examples(decoder.counts, None, is_declared=True)
    chunks = zip(*parts, strict=True)
    return Batch({c.name: _joined(c.name, own, c.kind) for c, own in zip(columns, chunks, strict=True)}, fault)


def _chunks(payloads: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    ends = np.cumsum(np.fromiter(map(len, payloads), np.int64, len(payloads)))
    begin = 0
    while True:
        before = ends[begin - 1] if begin else 0
        end = max(int(np.searchsorted(ends, before + _CHUNK_BYTES, side="right")), min(begin + 1, len(payloads)))
        yield payloads[begin:end]
        begin = end
        if begin == len(payloads):
            return


def _joined(name: str, chunks: Sequence[ColumnBuffers], kind: Kind) -> FeatureValues:
    parts = [_values(chunk, kind) for chunk in chunks]
    return FeatureValues(name, *(parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))))


def _values(part: ColumnBuffers, kind: Kind) -> tuple[Array, Array, Array]:
    column = widen(part, kind, Layout.LIST)
    assert column.values is not None
    assert column.offsets is not None
    counts = np.diff(column.offsets).astype(np.int64)
    present = column_mask(column)
    if kind is not Kind.BYTES:
        return column.values.view(_NUMBERS[kind]), counts, present
    assert column.value_offsets is not None
    texts = variable_width(pa.binary(), len(column.value_offsets) - 1, 0, None, column.value_offsets, column.values)
    with memory_errors():
        return texts.to_numpy(zero_copy_only=False), counts, present
