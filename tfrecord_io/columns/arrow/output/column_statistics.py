"""Statistics of a column, accumulated from its arrays: missing values, range, lengths, distinct values, an example."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.base import Report, Summary, printable, short
from tfrecord_io.columns.arrow.output.to_python import json_value, python_value, python_values
from tfrecord_io.columns.arrow.tensor_values import column_to_cells, flat_values
from tfrecord_io.columns.schema.tensor_types import is_any_tensor
from tfrecord_io.columns.schema.type_names import short_type_name
from tfrecord_io.columns.schema.types import integer_range, is_list_like, is_text, is_text_or_bytes

DISTINCT_LIMIT = 1000  # more distinct values than this are not counted
EXAMPLE_ROWS = 16  # number of rows searched for an example
EXAMPLE_ITEMS = 8  # of a large list that are read: fewer are shown
EXAMPLE_BYTES = 1 << 10  # a larger value has a short text as its example
DISTINCT_BYTES = 64  # longer values on average, such as images, are not compared


@dataclass(frozen=True, slots=True, repr=False)
class ColumnSummary(Report):
    """One column of a description.

    ``minimum``, ``maximum`` and ``mean`` are those of the values, including the values in lists, without NaN; None for
    types that are not ordered like numbers. ``min_length`` and ``max_length`` count values in lists, characters in
    text, bytes in binary. ``stored`` is the type in which records have the values, if it holds less than ``type``:
    "float32" for float64. ``min_shape`` and ``max_shape`` are the smallest and largest size of each axis of tensors.
    """

    HEADINGS: ClassVar[tuple[str, ...]] = ("column", "type", "nulls", "range", "mean", "length", "distinct", "example")

    name: str
    type: str
    nulls: int
    minimum: Any = None
    maximum: Any = None
    mean: float | None = None
    nans: int = 0
    min_length: int | None = None
    max_length: int | None = None
    min_shape: tuple[int, ...] | None = None
    max_shape: tuple[int, ...] | None = None
    distinct: int | None = None  # None: not counted, or more than DISTINCT_LIMIT
    example: Any = None  # an early value, preferably not empty; of more than `EXAMPLE_BYTES`, a short text
    stored: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: json_value(getattr(self, name)) for name in self.__slots__}

    @property
    def shown_type(self) -> str:
        """Type for display, with the stored type if that differs."""
        return printable(self.type if self.stored is None else f"{self.type}, stored as {self.stored}")

    @property
    def shape_range(self) -> str:
        """The range of sizes of each axis, such as ``[1 … 2, 3]``; empty if no tensor has values."""
        if self.min_shape is None or self.max_shape is None:
            return ""
        return "[" + ", ".join(map(_range, self.min_shape, self.max_shape)) + "]"

    def row(self) -> tuple[str, ...]:
        """Cells of a table, in the order of `HEADINGS`."""
        same_shape = self.min_shape == self.max_shape
        lengths = _range(self.min_length, self.max_length) if same_shape else self.shape_range
        mean = "" if self.mean is None else short(self.mean)
        distinct = "" if self.distinct is None else f"{self.distinct:,}"
        shorten = partial(short, dtype="") if self.type.startswith("tensor<") else short
        name, example = printable(self.name) or '""', "" if self.example is None else self.example
        example = example if isinstance(example, _ShortText) else shorten(example)
        extent = _range(self.minimum, self.maximum)
        return name, self.shown_type, f"{self.nulls:,}", extent, mean, lengths, distinct, example

    def _summary(self) -> Summary:
        return Summary("", self.HEADINGS, [self.row()])


class ColumnAccumulator:
    """Accumulates the arrays of a column and returns its `ColumnSummary`.

    >>> accumulator = ColumnAccumulator("x", pa.int32())
    >>> accumulator.add(pa.array([3, None, 4], pa.int32()))
    >>> summary = accumulator.summary()
    >>> summary.nulls, summary.minimum, summary.maximum, summary.mean
    (1, 3, 4, 3.5)
    """

    def __init__(
        self, name: str, type: pa.DataType, metadata: Mapping[bytes, bytes] | None = None, stored: str | None = None
    ) -> None:
        self.field = pa.field(name, type, metadata=dict(metadata or {}))
        self.stored = stored
        self.nulls = self.nans = self.numbers = 0
        self.total = 0.0  # of the numbers
        self.extremes: tuple[Any, Any] = (None, None)  # minimum and maximum, as below
        self.ordered_type: pa.DataType | None = None  # of the extremes
        self.lengths: tuple[Any, Any] = (None, None)
        self.shapes: tuple[Any, Any] = (None, None)
        self.distinct: set[Any] | None = set()
        self.example: Any = None

    def add(self, array: pa.Array) -> None:
        self.nulls += array.null_count
        if array.null_count == len(array):  # Arrow (26.0) makes no empty array of some dictionaries
            return
        present = array.drop_null()
        if is_any_tensor(self.field.type):
            self._add_values(self._values_of_tensors(present))
            return
        if self.example is None or _is_empty(self.example):
            self.example = _example(plain(present.slice(0, EXAMPLE_ROWS)))
        values = plain(present)
        if is_list_like(values.type):
            self._add_counts(pc.list_value_length(values))
        elif is_text_or_bytes(values.type):
            self._add_lengths(lengths_of(values))
        while is_list_like(values.type):
            values = plain(values.flatten().drop_null())
        self._add_values(values)

    def _values_of_tensors(self, present: pa.Array) -> pa.Array:
        """Return the values of tensors, which count as lists."""
        values, counts, shapes = flat_values(present, self.field)
        if self.example is None or _is_empty(self.example):
            cells = column_to_cells(present.slice(0, EXAMPLE_ROWS), self.field)
            cell = next((cell for cell in cells if cell.size), np.empty(0))
            self.example = cell.tolist() if cell.nbytes <= EXAMPLE_BYTES else _ShortText(short(cell, dtype=""))
        self._add_counts(pa.array(counts))
        if self.shapes[0] is not None:
            shapes = np.concatenate([shapes, self.shapes])
        self.shapes = tuple(shapes.min(axis=0).tolist()), tuple(shapes.max(axis=0).tolist())
        return values

    def _add_counts(self, counts: pa.Array) -> None:
        self._add_lengths(counts)
        self.distinct = None

    def _add_values(self, values: pa.Array) -> None:
        if is_ordered(values.type):
            self._add_numbers(values)
        self._add_distinct(values)

    def _add_lengths(self, lengths: pa.Array) -> None:
        if len(lengths):
            self.lengths = _merge_extremes(self.lengths, pc.min_max(lengths).as_py().values())

    def _add_numbers(self, values: pa.Array) -> None:
        values = _widen(values)
        if pa.types.is_floating(values.type):
            nan = pc.is_nan(values)
            self.nans += pc.sum(nan).as_py() or 0
            values = values.filter(pc.invert(nan))
        if not len(values):
            return
        self.extremes, self.ordered_type = _merge_extremes(self.extremes, extremes(values)), values.type
        if not pa.types.is_temporal(values.type):  # as float64: a sum of int64 may wrap around
            self.total += pc.sum(values.cast(pa.float64(), safe=False)).as_py()
            self.numbers += len(values)

    def _add_distinct(self, values: pa.Array) -> None:
        textual = is_text_or_bytes(values.type)
        too_long = textual and values.nbytes > DISTINCT_BYTES * len(values)
        if self.distinct is None or too_long or not (textual or is_ordered(values.type)):
            self.distinct = None
            return
        unique = pc.unique(_widen(values))
        if len(unique) <= DISTINCT_LIMIT:
            self.distinct.update("NaN" if isinstance(v, float) and math.isnan(v) else v for v in python_values(unique))
        if max(len(unique), len(self.distinct)) > DISTINCT_LIMIT:
            self.distinct = None

    def summary(self) -> ColumnSummary:
        name, type_ = self.field.name, short_type_name(self.field.type, self.field.metadata)
        mean = self.total / self.numbers if self.numbers else None
        distinct = len(self.distinct) if self.distinct else None
        ends = self._from_number(self.extremes[0]), self._from_number(self.extremes[1])
        return ColumnSummary(
            name,
            type_,
            self.nulls,
            *ends,
            mean,
            self.nans,
            *self.lengths,
            *self.shapes,
            distinct,
            self.example,
            self.stored,
        )

    def _from_number(self, end: Any) -> Any:
        """One of `extremes` as a value of the column."""
        is_time = self.ordered_type is not None and pa.types.is_temporal(self.ordered_type)
        return temporal_value(self.ordered_type, end) if is_time else end


def _merge_extremes(ends: tuple[Any, Any], further: Iterable[Any]) -> tuple[Any, Any]:
    """Merge two pairs of minimum and maximum."""
    low, high = further
    return (low, high) if ends[0] is None else (min(ends[0], low), max(ends[1], high))


class _ShortText(str):
    """A short text that stands for a large value."""

    __slots__ = ()


def _range(low: Any, high: Any) -> str:
    """Show an interval, or nothing.

    >>> _range(1, 9), _range(0, 0), _range(None, None)
    ('1 … 9', '0', '')
    """
    if low is None:
        return ""
    return short(low) if low == high else f"{short(low)} … {short(high)}"


def _example(values: pa.Array) -> Any:
    """Choose the first value that is not empty, if any; of a large list, only the items to show are converted."""
    first = None
    for at in range(len(values)):
        value = values.slice(at, 1)
        is_large = value.nbytes > EXAMPLE_BYTES
        if is_large and is_list_like(value.type):
            items = plain(value.flatten())
            return _ShortText(short(python_values(items.slice(0, EXAMPLE_ITEMS)), count=len(items)))
        (converted,) = python_values(value)
        if not _is_empty(converted):
            return _ShortText(short(converted)) if is_large else converted
        first = converted
    return first


def _is_empty(value: Any) -> bool:
    return isinstance(value, str | bytes | list) and not value


def plain(array: pa.Array) -> pa.Array:
    """Unwrap extension types and decode dictionaries."""
    if isinstance(array, pa.ExtensionArray):
        return plain(array.storage)
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    return array


def _widen(values: pa.Array) -> pa.Array:
    """Widen half floats to floats and narrow decimals to 128 bits, as Arrow has no kernels for the narrow types."""
    type_ = values.type
    if pa.types.is_decimal(type_) and type_.bit_width < 128:
        return values.cast(pa.decimal128(type_.precision, type_.scale))
    return values.cast(pa.float32()) if pa.types.is_float16(type_) else values


def lengths_of(values: pa.Array) -> pa.Array:
    """Count the characters of texts, or the bytes of bytes."""
    return pc.utf8_length(values) if is_text(values.type) else pc.binary_length(values)


def extremes(values: pa.Array) -> tuple[Any, Any]:
    """Minimum and maximum; dates and times as integers, as Arrow has no kernel for durations."""
    ends = pc.min_max(times_to_integers(values))
    return ends["min"].as_py(), ends["max"].as_py()


def times_to_integers(values: pa.Array) -> pa.Array:
    """View dates and times as integers; other values stay."""
    return values.view(_integers(values.type)) if pa.types.is_temporal(values.type) else values


def temporal_value(type_: pa.DataType, value: float) -> Any:
    """Convert an integer from `times_to_integers` back to a date or time.

    >>> temporal_value(pa.date32(), 366.0)
    datetime.date(1971, 1, 2)
    """
    integers = _integers(type_)
    low, high = integer_range(integers)  # the float that is nearest to the last integer is above it
    return python_value(pa.array([min(max(int(value), low), high)], integers).view(type_)[0])


def _integers(type_: pa.DataType) -> pa.DataType:
    return pa.int32() if type_.bit_width == 32 else pa.int64()


def is_ordered(type_: pa.DataType) -> bool:
    """True if values are ordered like numbers."""
    t = pa.types
    is_number = t.is_integer(type_) or t.is_floating(type_) or t.is_boolean(type_) or t.is_decimal(type_)
    return is_number or (t.is_temporal(type_) and not t.is_interval(type_))
