"""Statistics of one feature, accumulated batch by batch in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.apps.views.number_statistics import NumberAccumulator, NumberStatistics
from tfrecord_io.columns import Column, ColumnAccumulator, ColumnSummary
from tfrecord_io.kit import json_value

CATEGORIES = 20  # integers with at most so many distinct values are compared as categories
MOST_DISTINCT = 10_000  # beyond it, rare values are forgotten
SHOWN = 12
VALUE_BYTES = 256  # longer values on average, such as images, are not counted
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


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
        """True if `numbers` are dates or times."""
        return bool(pa.types.is_temporal(self.value_type))

    @property
    def is_categorical(self) -> bool:
        """True if values are compared one by one: text, bytes, bools, and integers with few distinct values."""
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
            **{name: None if part is None else json_value(part.to_dict()) for name, part in parts.items()},
        }


def nanoseconds_of(type_: pa.DataType) -> int:
    """The nanoseconds of one unit of dates or times; 1 for other numbers."""
    if pa.types.is_date(type_):
        return 86_400 * 10**9 if pa.types.is_date32(type_) else 10**6
    return _NANOSECONDS[type_.unit] if pa.types.is_temporal(type_) else 1


def convert_to_one_unit(sides: Sequence[FeatureStatistics]) -> list[NumberStatistics | None] | None:
    """The numbers of each side, those of times in the finest unit of all; None where they are of several kinds.

    Dates and timestamps are one kind, and so are numbers of all types.
    """
    types = [side.value_type for side in sides if side.numbers is not None]
    if len(set(map(_kind_of_numbers, types))) > 1:
        return None
    finest = min(map(nanoseconds_of, types), default=1)
    scales = [nanoseconds_of(side.value_type) // finest for side in sides]
    return [side.numbers and side.numbers.times(scale) for side, scale in zip(sides, scales, strict=True)]


def _kind_of_numbers(type_: pa.DataType) -> str:
    t = pa.types
    if t.is_date(type_) or t.is_timestamp(type_):
        return "dates"
    return "durations" if t.is_duration(type_) else "times" if t.is_time(type_) else "numbers"


class FeatureAccumulator(ColumnAccumulator):
    """Accumulates the arrays of a column, and returns its `FeatureStatistics`.

    >>> accumulator = FeatureAccumulator(pa.field("x", pa.int64()), "int64_list", "context", np.random.default_rng(0))
    >>> accumulator.add(pa.array([3, None, 4]))
    >>> statistics = accumulator.result()
    >>> statistics.numbers.mean, statistics.counts.distinct, round(statistics.presence, 2)
    (3.5, 2, 0.67)
    """

    def __init__(self, field: pa.Field, kind: str, part: str, random: np.random.Generator) -> None:
        self._kind, self._part = kind, part
        self._value_type = _value_type(field.type)
        is_narrow = kind == "float_list" and pa.types.is_float64(self._value_type)
        super().__init__(field.name, field.type, field.metadata, "float32" if is_narrow else None)
        self._records = 0
        self._random = random
        self._values_per_record: NumberAccumulator | None = None
        self._lengths: NumberAccumulator | None = None
        self._numbers: NumberAccumulator | None = None
        self._counter = ValueCounter()

    def add(self, array: pa.Array) -> None:
        self._records += len(array)
        super().add(array)

    def _add_counts(self, counts: pa.Array) -> None:
        super()._add_counts(counts)
        self._values_per_record = self._accumulate(self._values_per_record, counts)

    def _add_values(self, values: pa.Array) -> None:
        super()._add_values(values)
        type_ = values.type
        if Column(self.field.type).is_tensor:
            self._value_type = type_
        elif Column(type_).is_text_or_bytes or pa.types.is_boolean(type_) or pa.types.is_integer(type_):
            self._counter.add(values)
        if Column(type_).is_text_or_bytes:
            self._lengths = self._accumulate(self._lengths, Column.lengths_of(values))
        elif Column(type_).is_ordered and not pa.types.is_boolean(type_):
            numbers = values.cast(pa.float64(), safe=False) if pa.types.is_decimal(type_) else values
            self._numbers = self._accumulate(self._numbers, Column.numbers_of(numbers))

    def _accumulate(self, accumulator: NumberAccumulator | None, values: pa.Array) -> NumberAccumulator:
        accumulator = accumulator or NumberAccumulator(self._random)
        # Without nulls by DLPack, as `to_numpy` imports pandas.
        accumulator.add(values.to_numpy(zero_copy_only=False) if values.null_count else np.from_dlpack(values))
        return accumulator

    def result(self) -> FeatureStatistics:
        return FeatureStatistics(
            kind=self._kind,
            part=self._part,
            records=self._records,
            summary=self.summary(),
            values_per_record=None if self._values_per_record is None else self._values_per_record.result(),
            lengths=None if self._lengths is None else self._lengths.result(),
            numbers=None if self._numbers is None else self._numbers.result(),
            counts=self._counter.result(),
            value_type=self._value_type,
        )


def _value_type(type_: pa.DataType) -> pa.DataType:
    """The type of single values, without lists, dictionaries and extension types."""
    if isinstance(type_, pa.BaseExtensionType):
        return _value_type(type_.storage_type)
    if Column(type_).is_list or pa.types.is_dictionary(type_):
        return _value_type(type_.value_type)
    return type_


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """Counts of values.

    Attributes
    ----------
    total : int
        Number of all values.
    distinct : int
        Number of different values; if not `exact`, there are more.
    exact : bool
        Whether all values are counted; else the numbers of rare values are too small.
    counts : dict
        By value.
    """

    total: int
    distinct: int
    exact: bool
    counts: dict[Any, int] = field(repr=False)

    @property
    def top(self) -> list[tuple[Any, int]]:
        """The most frequent values, the first `SHOWN` of them; of equal frequency, in their order."""
        return sorted(self.counts.items(), key=lambda item: (-item[1], _order(item[0])))[:SHOWN]

    def to_dict(self) -> dict[str, Any]:
        top = [{"value": value, "count": count} for value, count in self.top]
        return {"distinct": self.distinct, "exact": self.exact, "top": top}


def _order(value: Any) -> Any:
    return (0, value, "") if isinstance(value, int) else (1, 0, repr(value) if isinstance(value, bytes) else str(value))


class ValueCounter:
    """Counts the values of arrays of text, bytes, bools or integers.

    >>> counter = ValueCounter()
    >>> counter.add(pa.array(["a", "b", "a"]))
    >>> counter.result().top
    [('a', 2), ('b', 1)]
    """

    def __init__(self) -> None:
        self._counts: Counter[Any] = Counter()
        self._total = 0
        self._exact = True
        self._too_long = False

    def add(self, values: pa.Array) -> None:
        """Add values without nulls."""
        textual = Column(values.type).is_text_or_bytes
        self._too_long = self._too_long or (textual and values.nbytes > VALUE_BYTES * max(len(values), 1))
        if self._too_long:
            return
        counted = pc.value_counts(values)
        self._total += len(values)
        numbers = counted.field("counts")
        if len(counted) > MOST_DISTINCT:
            self._exact = False
            most_frequent = pc.select_k_unstable(numbers, MOST_DISTINCT, sort_keys=[("", "descending")])
            counted, numbers = counted.take(most_frequent), numbers.take(most_frequent)
        self._counts.update(
            dict(
                zip(
                    Column(counted.field("values").type).python_rows(pa.chunked_array([counted.field("values")])),
                    numbers.to_pylist(),
                    strict=True,
                )
            )
        )
        if len(self._counts) > MOST_DISTINCT:
            self._exact = False
            self._counts = Counter(dict(self._counts.most_common(MOST_DISTINCT // 2)))

    def result(self) -> ValueCounts | None:
        """None without values, or if they are too long to be counted."""
        if self._too_long or not self._total:
            return None
        distinct = len(self._counts) if self._exact else MOST_DISTINCT
        return ValueCounts(self._total, distinct, self._exact, dict(self._counts))
