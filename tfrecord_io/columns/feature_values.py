"""Decode the features of serialized Examples and SequenceExamples: the values of each, and their number by record.

`FeatureBatch.decode` takes payloads, and the dtypes of the features that are wanted.

Tests: tests/columns/test_feature_values.py; by descriptions: tests/apps/tf_compat/test_parse_example.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np

from tfrecord_io.base import Expansion, Limits
from tfrecord_io.bytes import Array, ColumnBuffers, Kind, Layout, Plan, PlanColumn, RecordType, Text, get_engine
from tfrecord_io.columns.arrow.buffers import runs_within
from tfrecord_io.columns.arrow.output.to_numpy import listed_values
from tfrecord_io.errors import DecodeError, TFRecordError

T = TypeVar("T")

_CHUNK_BYTES = 1 << 30  # of payloads, so that no column overflows its 32-bit offsets
# The exact types: where np.int64 is long, an array of long long prints as another dtype.
_NUMBERS: dict[Kind, type] = {Kind.INT64: np.int64, Kind.FLOAT: np.float32}


@dataclass(frozen=True, slots=True)
class FeatureValues:
    """Values of one feature in all records."""

    name: str
    values: Array  # int64, float32 or object (bytes)
    counts: Array  # int64: number of values of each record
    present: Array  # bool: True if a record has the feature, with a type

    @property
    def starts(self) -> Array:
        """Index of the first value of each record."""
        return np.cumsum(self.counts) - self.counts

    @property
    def records(self) -> Array:
        """Record of each value."""
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
class StepValues:
    """Values of one feature list in all records."""

    values: FeatureValues  # here a step counts as a record
    counts: Array  # int64: number of steps of each record
    present: Array  # bool: True if a record has the feature list

    @property
    def records(self) -> Array:
        """Record of each step."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def parse(self, steps: Callable[[], T]) -> T:
        """Return the result of `steps`, for which steps are records; its errors name the record and the step."""
        try:
            return steps()
        except TFRecordError as error:
            if error.record is not None:
                record = int(self.records[error.record])
                step = error.record - int(self.counts[:record].sum())
                error.record, error.reason = record, f"step {step}: {error.reason}"
            raise


@dataclass(frozen=True, slots=True)
class FeatureBatch:
    """Features of all records, or of the records before a fault."""

    # The dtypes that TensorFlow parses.
    KINDS: ClassVar = {"int64": Kind.INT64, "float32": Kind.FLOAT, "string": Kind.BYTES}

    columns: dict[str, FeatureValues]
    fault: TFRecordError | None
    lists: dict[str, StepValues] = field(default_factory=dict)  # the feature lists of SequenceExamples
    is_single: bool = False  # it is one record, whose results have no batch axis
    padding: Expansion = field(default_factory=Expansion)  # the room for padding to the longest record

    @classmethod
    def decode(
        cls,
        payloads: Sequence[bytes],
        dtypes: Mapping[str, str],
        lists: Mapping[str, str] | None = None,
        *,
        is_single: bool = False,
        limits: Limits = Limits.DEFAULT,
    ) -> FeatureBatch:
        """Decode features of dtype int64, float32 or string, up to the first record that is damaged or of another kind.

        With `lists`, the dtypes of feature lists, records are SequenceExamples, and `dtypes` those of their contexts.
        `limits` bound the padding of results.
        """
        columns = [PlanColumn(name, cls.KINDS[dtype], Layout.LIST, Text.NO) for name, dtype in dtypes.items()]
        for name, dtype in (lists or {}).items():
            columns.append(PlanColumn(name, cls.KINDS[dtype], Layout.LIST, Text.NO, steps=True))
        record_type = RecordType.EXAMPLE if lists is None else RecordType.SEQUENCE_EXAMPLE
        plan = Plan(
            tuple(columns),
            unknown="skip",
            check_crc=False,
            record_type=record_type,
            names_in_both=True,
            typed_empties=True,
        )
        engine = get_engine()
        decoder = engine.decoder(plan)
        parts: list[Sequence[ColumnBuffers]] = []
        fault: TFRecordError | None = None
        runs = runs_within(np.fromiter(map(len, payloads), np.int64, len(payloads)), _CHUNK_BYTES)
        for begin, end in [*runs] or [(0, 0)]:
            progress = decoder.feed(engine.frame(payloads[begin:end]))
            parts.append(decoder.take())
            if progress.fault is not None:
                fault = progress.fault.to_error(record=begin)
                fault.offset = fault.records_intact = None  # they make sense for files only
                fault.set_hint(None)
                break
        if lists is None:
            fault = fault or decoder.counts.not_examples(None, is_declared=True)
        chunks = dict(zip(columns, zip(*parts, strict=True), strict=True))
        return cls(
            {c.name: _concat_values(c.name, part, c.kind) for c, part in chunks.items() if not c.steps},
            fault,
            {c.name: _concat_steps(c.name, part, c.kind) for c, part in chunks.items() if c.steps},
            is_single=is_single,
            padding=Expansion(limits.expansion_bytes, sum(map(len, payloads))),
        )


def _concat_steps(name: str, chunks: Sequence[ColumnBuffers], kind: Kind) -> StepValues:
    counts, present = [], []
    for chunk in chunks:
        offsets = chunk.offsets if chunk.is_list else None  # None: no record has the feature list
        counts.append(np.zeros(chunk.rows, np.int64) if offsets is None else np.diff(offsets).astype(np.int64))
        present.append(np.zeros(chunk.rows, bool) if offsets is None else chunk.mask)
    steps = [chunk.steps for chunk in chunks]
    return StepValues(_concat_values(name, steps, kind), np.concatenate(counts), np.concatenate(present))


def _concat_values(name: str, chunks: Sequence[ColumnBuffers | None], kind: Kind) -> FeatureValues:
    parts = [_values(chunk, kind) for chunk in chunks]
    return FeatureValues(name, *(parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))))


def _values(part: ColumnBuffers | None, kind: Kind) -> tuple[Array, Array, Array]:
    values, counts, present = listed_values(part, kind)
    return values if kind is Kind.BYTES else values.view(_NUMBERS[kind]), counts, present
