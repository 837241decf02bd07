"""Statistics of one feature, accumulated batch by batch in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.arrow.output.to_python import python_value
from tfrecord_io.arrow.tensor_values import flat_values
from tfrecord_io.reports.statistics.number_statistics import NumberAccumulator, NumberStatistics, numbers_of
from tfrecord_io.reports.statistics.value_counts import ValueCounter, ValueCounts, is_countable
from tfrecord_io.schema.tensor_types import is_any_tensor
from tfrecord_io.schema.types import is_list_like, is_text, is_text_or_bytes
from tfrecord_io.tools.column_summary import ColumnAccumulator, ColumnSummary, is_ordered, plain

CATEGORIES = 20  # integers with at most so many distinct values are compared as categories


@dataclass(frozen=True, slots=True)
class FeatureStatistics:
    """One feature.

    Attributes
    ----------
    kind : str
        "bytes_list", "float_list" or "int64_list"; "" of columns that are not features, such as partition columns.
    part : str
        "context" or "feature_list".
    records : int
        Number of records examined.
    summary : ColumnSummary
        Type, nulls, minimum and maximum, lengths, shapes, an example.
    values_per_record : NumberStatistics or None
        Of lists: number of values, or of steps of a feature list; of tensors: number of values.
    lengths : NumberStatistics or None
        Of text in characters, of bytes in bytes.
    numbers : NumberStatistics or None
        Of numbers, also those in lists and tensors; of dates and times, their integers.
    counts : ValueCounts or None
    """

    kind: str
    part: str
    records: int
    summary: ColumnSummary
    values_per_record: NumberStatistics | None
    lengths: NumberStatistics | None
    numbers: NumberStatistics | None
    counts: ValueCounts | None
    value_type: pa.DataType

    @property
    def name(self) -> str:
        return self.summary.name

    @property
    def presence(self) -> float:
        """Share of the records that have the feature; 0 without records."""
        return (self.records - self.summary.nulls) / self.records if self.records else 0.0

    @property
    def is_temporal(self) -> bool:
        """Whether `numbers` are those of dates or times."""
        return bool(pa.types.is_temporal(self.value_type))

    @property
    def is_categorical(self) -> bool:
        """Whether values are compared one by one: text, bytes, bools, and integers of which there are few."""
        if self.counts is None:
            return False
        return self.numbers is None or (self.counts.exact and self.counts.distinct <= CATEGORIES)

    def to_dict(self) -> dict[str, Any]:
        parts = {name: getattr(self, name) for name in ("values_per_record", "lengths", "numbers", "counts")}
        return {
            **self.summary.to_dict(),
            "kind": self.kind,
            "part": self.part,
            "records": self.records,
            "presence": self.presence,
            **{name: None if part is None else part.to_dict() for name, part in parts.items()},
        }


class FeatureAccumulator:
    """Accumulates the arrays of a column, and returns its `FeatureStatistics`.

    >>> accumulator = FeatureAccumulator(pa.field("x", pa.int64()), "int64_list", "context", np.random.default_rng(0))
    >>> accumulator.add(pa.array([3, None, 4]))
    >>> statistics = accumulator.result()
    >>> statistics.numbers.mean, statistics.counts.distinct, round(statistics.presence, 2)
    (3.5, 2, 0.67)
    """

    def __init__(self, field: pa.Field, kind: str, part: str, random: np.random.Generator) -> None:
        self._field, self._kind, self._part = field, kind, part
        self._summary = ColumnAccumulator(field.name, field.type, field.metadata)
        self._records = 0
        self._value_type = _value_type(field.type)
        self._random = random
        self._values_per_record: NumberAccumulator | None = None
        self._lengths: NumberAccumulator | None = None
        self._numbers: NumberAccumulator | None = None
        self._counter = ValueCounter()

    def add(self, array: pa.Array) -> None:
        self._records += len(array)
        self._summary.add(array)
        present = array.drop_null()
        if not len(present):
            return
        if is_any_tensor(self._field.type):
            values, counts, _ = flat_values(present, self._field)
            self._value_type = values.type
            self._values_per_record = self._added(self._values_per_record, counts)
        else:
            values = plain(present)
            if is_list_like(values.type):
                self._values_per_record = self._added(
                    self._values_per_record, pc.list_value_length(values).to_numpy(zero_copy_only=False)
                )
            while is_list_like(values.type):
                values = plain(values.flatten().drop_null())
            if is_countable(values.type):
                self._counter.add(values)
        if is_text_or_bytes(values.type):
            lengths = pc.utf8_length(values) if is_text(values.type) else pc.binary_length(values)
            self._lengths = self._added(self._lengths, lengths.to_numpy(zero_copy_only=False))
        elif is_ordered(values.type) and not pa.types.is_boolean(values.type):
            self._numbers = self._added(self._numbers, numbers_of(values))

    def _added(self, accumulator: NumberAccumulator | None, values: Any) -> NumberAccumulator:
        accumulator = accumulator or NumberAccumulator(self._random)
        accumulator.add(values)
        return accumulator

    def result(self) -> FeatureStatistics:
        return FeatureStatistics(
            self._kind,
            self._part,
            self._records,
            self._summary.summary(),
            _result(self._values_per_record),
            _result(self._lengths),
            _result(self._numbers),
            self._counter.result(),
            self._value_type,
        )


def _result(accumulator: NumberAccumulator | None) -> NumberStatistics | None:
    return None if accumulator is None else accumulator.result()


def _value_type(type_: pa.DataType) -> pa.DataType:
    """The type of single values, without lists, dictionaries and extension types."""
    if isinstance(type_, pa.BaseExtensionType):
        return _value_type(type_.storage_type)
    if is_list_like(type_) or pa.types.is_dictionary(type_):
        return _value_type(type_.value_type)
    return type_


def temporal_value(type_: pa.DataType, value: float) -> Any:
    """The date or time of an integer, as `FeatureStatistics.numbers` has them.

    >>> temporal_value(pa.date32(), 366.0)
    datetime.date(1971, 1, 2)
    """
    integers = pa.int32() if type_.bit_width == 32 else pa.int64()
    return python_value(pa.array([int(value)], integers).view(type_)[0])
