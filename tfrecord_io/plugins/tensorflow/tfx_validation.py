"""Validate records against a TFX schema: the anomalies that TensorFlow Data Validation (TFDV) names.

Tests: tests/plugins/tensorflow/test_tfx_validation.py.
"""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.columns import Column
from tfrecord_io.errors import DamagedDataWarning
from tfrecord_io.kit import counted, listed, printable
from tfrecord_io.plugins.tensorflow.tfx import TfxSchemaReader, is_in_use, read_message
from tfrecord_io.plugins.tensorflow.tfx_messages import BYTES, FLOAT, INT, STRUCT

_TYPES = {INT: "INT", FLOAT: "FLOAT", BYTES: "BYTES"}
_EXAMPLES, _MOST_COUNTED = 3, 10_000  # unexpected values that are shown, and that are told apart


@dataclass(frozen=True, slots=True)
class Anomaly:
    """An anomaly of a feature of a dataset.

    Attributes
    ----------
    feature : str
    kind : str
        TFDV's name, such as "ENUM_TYPE_UNEXPECTED_STRING_VALUES".
    text : str
        What was expected, and what was found.
    """

    feature: str
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{printable(self.feature)}: {self.text} ({self.kind})"

    def to_dict(self) -> dict[str, str]:
        """The attributes, for JSON."""
        return {"feature": self.feature, "kind": self.kind, "text": self.text}


def find_anomalies(source: Any, schema: str | bytes | os.PathLike[str], **reading: Any) -> tuple[Anomaly, ...]:
    """The anomalies of the records of a source, in the order of the schema, then of new features.

    `schema` is the path of a ``schema.pbtxt`` or a binary message, or its content. `reading` are keywords of
    `tfrecord_io.dataset`, which say how the source is read. Damaged records are left out.
    """
    import tfrecord_io as tfr

    message = read_message(schema)
    constraints, unused = _constraints(message)
    options: dict[str, Any] = {"schema": "infer", "stable_types": True, "sample": "all", "on_error": "skip", **reading}
    observed: dict[str, _Observed] = {}
    records = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedDataWarning)  # of what the other checks report
        with tfr.dataset(source, **options).to_batches() as batches:
            folders = {name for name in batches.schema.names if Column(batches.schema.field(name)).is_list is False}
            for batch in batches:
                records += len(batch)
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    if name not in folders and name not in unused:
                        if (seen := observed.get(name)) is None:
                            seen = observed[name] = _Observed(constraints.get(name))
                        seen.add(column)
    anomalies = [
        anomaly
        for name, constraint in constraints.items()
        for anomaly in constraint.anomalies(observed.get(name) or _Observed(constraint), records)
    ]
    new = (
        Anomaly(
            name, "SCHEMA_NEW_COLUMN", f"new feature of the type {seen.type_name}, in {_share(seen.present, records)}"
        )
        for name, seen in observed.items()
        if name not in constraints and seen.present
    )
    return (*anomalies, *new)


def _constraints(message: Any) -> tuple[dict[str, _Constraint], set[str]]:
    """The constraints of each feature that is in use, by name, and the names of all others."""
    reader = TfxSchemaReader(message)
    constraints: dict[str, _Constraint] = {}
    unused: set[str] = set()
    for feature in _features(message.feature):
        if is_in_use(feature):
            constraints[feature.name] = _Constraint(feature, *reader.domain_of(feature))
        else:
            unused.add(feature.name)
    return constraints, unused


def _features(features: Iterable[Any]) -> Iterator[Any]:
    """The features with values: of a STRUCT, as feature lists are described, those in it."""
    for feature in features:
        if feature.type == STRUCT:
            yield from _features(feature.struct_domain.feature)
        else:
            yield feature


@dataclass(frozen=True, slots=True)
class _Constraint:
    """Constraints of a schema on a feature, with the kind of its domain and the domain, if any."""

    feature: Any
    domain_kind: str | None
    domain: Any

    @property
    def name(self) -> str:
        return str(self.feature.name)

    def texts(self) -> frozenset[bytes] | None:
        """The values that text may have; None: any."""
        if self.domain_kind == "string_domain" and self.domain.value:
            return frozenset(value.encode() for value in self.domain.value)
        if self.domain_kind == "bool_domain" and (self.domain.true_value or self.domain.false_value):
            return frozenset(value.encode() for value in (self.domain.true_value, self.domain.false_value) if value)
        return None

    def anomalies(self, seen: _Observed, records: int) -> Iterator[Anomaly]:
        """The anomalies of what was seen of the feature in so many records."""
        yield from (Anomaly(self.name, kind, text) for kind, text in self._presence(seen, records))
        if not seen.present:
            return
        expected = _TYPES.get(self.feature.type)
        if expected is not None and seen.type_name not in (expected, "unknown"):
            yield Anomaly(self.name, "UNEXPECTED_DATA_TYPE", f"expected {expected}, found {seen.type_name}")
            return
        yield from (Anomaly(self.name, kind, text) for kind, text in self._counts(seen))
        yield from (Anomaly(self.name, kind, text) for kind, text in self._values(seen))

    def _presence(self, seen: _Observed, records: int) -> Iterator[tuple[str, str]]:
        presence = self.feature.presence
        is_required = presence.min_count > 0 or presence.min_fraction > 0
        if not seen.present:
            if is_required and records:
                yield "SCHEMA_MISSING_COLUMN", "the feature is in no record, and the schema requires it"
            return
        if seen.present < presence.min_count:
            text = f"expected in at least {counted(presence.min_count, 'record')}, found in {seen.present:,}"
            yield "FEATURE_TYPE_LOW_NUMBER_PRESENT", text
        if seen.present < presence.min_fraction * records:
            text = f"expected in {presence.min_fraction:.6g} of the records, found in {_share(seen.present, records)}"
            yield "FEATURE_TYPE_LOW_FRACTION_PRESENT", text

    def _counts(self, seen: _Observed) -> Iterator[tuple[str, str]]:
        feature = self.feature
        if feature.HasField("shape"):
            size = math.prod(dim.size for dim in feature.shape.dim)
            if (seen.fewest, seen.most) != (size, size):
                yield "INVALID_FEATURE_SHAPE", f"expected {counted(size, 'value')}, found {seen.count_text}"
        counts = feature.value_count if feature.HasField("value_count") else None
        if counts is None:
            return
        if seen.fewest < counts.min:
            yield (
                "FEATURE_TYPE_LOW_NUMBER_VALUES",
                f"expected at least {counted(counts.min, 'value')}, found {seen.count_text}",
            )
        if counts.HasField("max") and counts.max and seen.most > counts.max:
            yield (
                "FEATURE_TYPE_HIGH_NUMBER_VALUES",
                f"expected at most {counted(counts.max, 'value')}, found {seen.count_text}",
            )

    def _values(self, seen: _Observed) -> Iterator[tuple[str, str]]:
        domain, kind = self.domain, self.domain_kind
        if kind == "bool_domain" and seen.type_name in ("INT", "FLOAT"):
            bounds: tuple[float | None, float | None] = 0, 1
            small, big = "BOOL_TYPE_SMALL_INT", "BOOL_TYPE_BIG_INT"
            if seen.type_name == "FLOAT":
                small = big = "BOOL_TYPE_UNEXPECTED_FLOAT"
        elif kind in ("int_domain", "float_domain"):
            bounds = tuple(getattr(domain, name) if domain.HasField(name) else None for name in ("min", "max"))  # type: ignore[assignment]
            small, big = (
                ("INT_TYPE_SMALL_INT", "INT_TYPE_BIG_INT")
                if seen.type_name == "INT"
                else ("FLOAT_TYPE_SMALL_FLOAT", "FLOAT_TYPE_BIG_FLOAT")
            )
        else:
            bounds, small, big = (None, None), "", ""
        if seen.least is not None and bounds[0] is not None and seen.least < bounds[0]:
            yield small, f"expected at least {bounds[0]:.9g}, found {seen.least:.9g}"
        if seen.largest is not None and bounds[1] is not None and seen.largest > bounds[1]:
            yield big, f"expected at most {bounds[1]:.9g}, found {seen.largest:.9g}"
        if kind == "float_domain" and domain.disallow_nan and seen.nans:
            yield "FLOAT_TYPE_HAS_NAN", f"expected no NaN, found {seen.nans:,}"
        if kind == "float_domain" and domain.disallow_inf and seen.infinities:
            yield "FLOAT_TYPE_HAS_INF", f"expected no infinity, found {seen.infinities:,}"
        mass = self.feature.distribution_constraints
        minimum = mass.min_domain_mass if mass.HasField("min_domain_mass") else 1.0
        outside = seen.unexpected.total()
        if outside and seen.values and 1 - outside / seen.values < minimum:
            shown = listed(
                "and", *(printable(repr(_text(value)), 60) for value, _ in seen.unexpected.most_common(_EXAMPLES))
            )
            name = "BOOL_TYPE_UNEXPECTED_STRING" if kind == "bool_domain" else "ENUM_TYPE_UNEXPECTED_STRING_VALUES"
            yield name, f"{_share(outside, seen.values)} of the values are not in the domain, such as {shown}"


@dataclass(slots=True)
class _Observed:
    """Observations of a feature."""

    constraint: _Constraint | None = None
    type_name: str = "unknown"
    present: int = 0  # records
    fewest: int = 0  # values of a record
    most: int = 0
    values: int = 0
    least: float | int | None = None
    largest: float | int | None = None
    nans: int = 0
    infinities: int = 0
    unexpected: Counter[bytes] = field(default_factory=Counter)  # values that the domain lacks
    domain: pa.Array | None = field(init=False)  # the texts of the constraint

    def __post_init__(self) -> None:
        texts = None if self.constraint is None else self.constraint.texts()
        self.domain = None if texts is None else pa.array(sorted(texts), pa.large_binary())

    @property
    def count_text(self) -> str:
        """How many values the records have."""
        return f"{self.fewest:,}" if self.fewest == self.most else f"{self.fewest:,} to {self.most:,}"

    def add(self, column: pa.Array) -> None:
        """Count the values of a feature in some records, a list for each; of a feature list, those of all steps."""
        present = column.drop_null()
        if not len(present):
            return
        lengths = pc.list_value_length(present)
        values = pc.list_flatten(present)
        while Column(values.type).is_list:
            values = pc.list_flatten(values)
        minimum, maximum = (int(number) for number in pc.min_max(lengths).as_py().values())
        self.fewest, self.most = (min(self.fewest, minimum) if self.present else minimum), max(self.most, maximum)
        self.present += len(present)
        if not pa.types.is_null(values.type):
            name = (
                "FLOAT" if pa.types.is_floating(values.type) else "INT" if pa.types.is_integer(values.type) else "BYTES"
            )
            self.type_name = name
        self.values += len(values)
        if self.type_name == "BYTES":
            self._add_texts(values)
        elif len(values) and not pa.types.is_null(values.type):
            self._add_numbers(np.asarray(values))

    def _add_numbers(self, numbers: Any) -> None:
        if numbers.dtype.kind == "f":
            self.nans += int(np.isnan(numbers).sum())
            self.infinities += int(np.isinf(numbers).sum())
            numbers = numbers[~np.isnan(numbers)]
        if len(numbers):
            minimum, largest = numbers.min().item(), numbers.max().item()
            self.least = minimum if self.least is None else min(self.least, minimum)
            self.largest = largest if self.largest is None else max(self.largest, largest)

    def _add_texts(self, values: pa.Array) -> None:
        if self.domain is None or not len(values):
            return
        values = values.cast(pa.large_binary())
        for pair in pc.value_counts(values.filter(pc.invert(pc.is_in(values, self.domain)))).to_pylist():
            value, count = pair["values"], pair["counts"]
            is_counted = value in self.unexpected or len(self.unexpected) < _MOST_COUNTED
            self.unexpected[value if is_counted else b""] += count


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _share(count: int, total: int) -> str:
    """A number of records or values, and its share of all."""
    return f"{count:,} of {total:,}"
