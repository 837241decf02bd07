"""Some features of a batch of records, decoded to arrays: the values of all records, and how many each has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.buffers import column_mask, variable_width
from tfrecord_io.arrow.decode.layout import widen
from tfrecord_io.engine.contract import Array, ColumnBuffers, Plan, PlanColumn
from tfrecord_io.engine.fault_messages import to_error
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import TFRecordError
from tfrecord_io.format.kinds import Kind, Layout, Text
from tfrecord_io.schema.formats.tf_features import KINDS

Demands = Mapping[str, str]
"""The dtype of each feature: int64, float32 or string."""

_NUMBERS: dict[Kind, type] = {
    Kind.INT64: np.int64,
    Kind.FLOAT: np.float32,
}  # long long is an int64, too, but shows as another
_CHUNK_BYTES = 1 << 30  # of payloads: no column of that many bytes overflows its offsets


@dataclass(frozen=True, slots=True)
class BatchValues:
    """One feature.

    Attributes
    ----------
    values : int64, float32 or object (bytes) ndarray
    counts : int64 ndarray
        Values of each record.
    present : bool ndarray
        Whether a record has it, with a kind.
    """

    values: Array
    counts: Array
    present: Array

    @property
    def records(self) -> Array:
        """The record of each value."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


@dataclass(frozen=True, slots=True)
class Batch:
    """Features of the records before a fault, or of all of them."""

    columns: dict[str, BatchValues]
    fault: TFRecordError | None


def decode(payloads: Sequence[bytes], demands: Demands) -> Batch:
    """Decode the features of `demands`; the records up to the first one that is damaged or has another kind."""
    plan = Plan(
        tuple(PlanColumn(name, KINDS[dtype], Layout.LIST, Text.NO) for name, dtype in demands.items()),
        unknown="skip",
        check_crc=False,
    )
    engine = get_engine()
    decoder = engine.decoder(plan)
    parts: list[list[ColumnBuffers]] = []
    fault, done = None, 0
    for chunk in _chunks(payloads):
        progress = decoder.feed(engine.frame(chunk))
        parts.append(decoder.take())
        if progress.fault is not None:
            fault = to_error(progress.fault, record=done)
            fault.offset = fault.records_intact = fault.advice = None  # there is no file, and nothing is handed over
            break
        done += len(chunk)
    columns = zip(*parts, strict=True)
    found = {
        name: _joined(list(each), KINDS[dtype]) for (name, dtype), each in zip(demands.items(), columns, strict=True)
    }
    return Batch(found, fault)


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


def _joined(parts: list[ColumnBuffers], kind: Kind) -> BatchValues:
    found = [_values(part, kind) for part in parts]
    if len(found) == 1:
        return found[0]
    return BatchValues(
        *(np.concatenate([getattr(each, name) for each in found]) for name in ("values", "counts", "present"))
    )


def _values(part: ColumnBuffers, kind: Kind) -> BatchValues:
    column = widen(part, kind, Layout.LIST)
    assert column.values is not None
    assert column.offsets is not None
    counts = np.diff(column.offsets).astype(np.int64)
    present = column_mask(column)
    if kind is not Kind.BYTES:
        return BatchValues(column.values.view(_NUMBERS[kind]), counts, present)
    assert column.value_offsets is not None
    texts = variable_width(pa.binary(), len(column.value_offsets) - 1, 0, None, column.value_offsets, column.values)
    return BatchValues(texts.to_numpy(zero_copy_only=False), counts, present)
