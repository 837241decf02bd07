"""Observations of the features of records, and the schema that follows.

Tests: tests/columns/schema/test_inferred_type.py and tests/columns/schema/test_inferred_schema.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tfrecord_io.base import ScanOptions
from tfrecord_io.bytes import Array, ColumnBuffers, FeatureColumns, Kind, Layout, ShapeSource
from tfrecord_io.columns.arrow.decode.inferred_column import FoldedTensor, candidates, count_kinds, fold
from tfrecord_io.columns.schema.column_features import FEATURE_LIST, RAW
from tfrecord_io.columns.schema.column_selection import Projection
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.inferred_type import (
    KindCount,
    Observation,
    arrow_type,
    contradiction,
    join,
    join_columns,
)
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.tensor_types import dtype_metadata, tensor_type
from tfrecord_io.errors import SchemaError
from tfrecord_io.store import RecordRef

if TYPE_CHECKING:
    from tfrecord_io.columns.schema.inferred_schema import Evidence


class Observations(dict[str, Observation]):
    """Observations of each feature, by name."""

    def schema(
        self,
        options: ScanOptions,
        folded: Mapping[str, FoldedTensor] = MappingProxyType({}),
        columns: Sequence[str] | None = None,
    ) -> Schema:
        """The schema for what was observed, sorted by name, as their order in records has no meaning.

        The companions of folded columns are not columns, unless `columns` selects them by name.
        """
        hidden = {companion for name in folded for companion in ShapeSource.companions(name)} - set(columns or ())
        keys = {name: id(seen) for name, seen in self.items()}
        distinct = dict(zip(keys.values(), self.values(), strict=True))
        types: dict[int, pa.DataType] = {  # by observation: many columns show the same
            key: arrow_type(
                seen,
                infer_text=options.infer_text,
                stable_types=options.stable_types,
                large_offsets=options.large_offsets,
            )
            for key, seen in distinct.items()
        }
        names = [name for name in sorted(self) if name in folded or name not in hidden] if folded else sorted(self)
        others = dict[int, Field]()
        has_others = folded or any(seen.steps is not None for seen in distinct.values())
        for at, name in enumerate(names if has_others else ()):
            if name in folded:
                others[at] = _folded_field(name, folded[name])
            elif self[name].steps is not None:
                others[at] = Field(name, types[keys[name]], part=FEATURE_LIST)
        return Schema.from_common_types(names, [types[keys[name]] for name in names], others=others)

    def fold_companions(
        self, batches: Sequence[Mapping[str, ColumnBuffers]], may_fold: Callable[[str], bool]
    ) -> dict[str, FoldedTensor]:
        """Find the features that are tensors by their companions in every record; a companion is never one."""
        names = [name for name in candidates(self) if may_fold(name)]
        companion_names = {companion for name in names for companion in ShapeSource.companions(name)}
        tensors = {name: fold(name, batches) for name in names if name not in companion_names}
        return {name: tensor for name, tensor in tensors.items() if tensor is not None}

    def evidence(
        self,
        batches: Iterable[Mapping[str, ColumnBuffers]],
        contested: Mapping[FeatureColumns.Name, Sequence[KindCount]],
    ) -> dict[str, Evidence]:
        """The evidence for each feature in the batches whose observations these are."""
        counts: dict[str, tuple[int, int | None, int | None]] = dict.fromkeys(self, (0, None, None))
        for columns in batches:
            for name, column in columns.items():
                present, shortest, longest = counts[name]
                lengths = np.concatenate([_lengths(part) for part in (column, *column.others)])
                if len(lengths):
                    shortest = min(int(lengths.min()), shortest if shortest is not None else 2**62)
                    longest = max(int(lengths.max()), longest or 0)
                counts[name] = (present + len(lengths), shortest, longest)
        other_kinds = {name: kinds[1:] for (name, _), kinds in contested.items()}
        return {name: _evidence(seen, *counts[name], other_kinds.get(name, ())) for name, seen in self.items()}

    def contradiction(self, name: str, got: Kind, *, expected: str, number: int, at: RecordRef) -> SchemaError | None:
        """The error for a record whose feature has values of another kind than earlier records; None if it has not.

        The record is that of this `number`, in the file of `at`; `expected` is the name of the kind that was decoded.
        """
        before = self.get(name, Observation())
        if before.steps is None and before.kind is got:  # it contradicts the declared type, and no earlier record
            return None
        record = RecordRef(at.path, number, at.file)
        observation = Observation(got, Layout.LIST, first=record)
        if before.steps is not None:
            observation = Observation(layout=Layout.LIST, first=record, steps=observation)
        try:
            join(name, before, observation)
        except SchemaError as both:
            return both
        if expected in Kind.__members__ and Kind[expected] is not Kind.NONE:  # two steps of one feature list
            return contradiction(name, record, expected=Kind[expected].description, after=record, got=got.description)
        return None

    @staticmethod
    def left_out_companions(
        batches: Sequence[Mapping[str, ColumnBuffers]], features: AbstractSet[str], projection: Projection
    ) -> set[str]:
        """The companions of features that are left out; they are not columns either."""
        return {
            companion
            for name in (() if projection.takes_all else features)
            if projection.leaves_out(name) and features >= set(ShapeSource.companions(name))
            if fold(name, batches, is_read=False) is not None
            for companion in ShapeSource.companions(name)
        }

    @staticmethod
    def count_kinds(chunks: Iterable[tuple[ColumnBuffers, Callable[[int], RecordRef]]]) -> list[KindCount]:
        """Count the records of each kind of values of a feature, the most frequent kind first, else the earliest.

        Each chunk is a column, and the record that a row of it was decoded from.
        """
        return count_kinds(chunks)

    def join(self, others: Mapping[str, Observation]) -> Observations:
        """Join the observations of two groups of records; SchemaError if they contradict each other."""
        return Observations(join_columns(self, others))


def _folded_field(name: str, tensor: FoldedTensor) -> Field:
    """The field of a folded column; single numbers get a plain one."""
    element = tensor.element
    if not tensor.rank and element.plain is not None:
        return Field(name, element.plain, encoding=RAW)
    shape = (None,) * tensor.rank if tensor.shape is None else tensor.shape
    return Field(name, tensor_type(element, shape), encoding=RAW, metadata=dtype_metadata(element))


def _lengths(column: ColumnBuffers) -> Array:
    """Number of values (steps) in each row that has the column."""
    if column.layout is Layout.NULL:
        return np.zeros(0, np.int64)
    present = column.mask
    if column.offsets is None:
        return np.ones(int(present.sum()), np.int64)
    return np.diff(column.offsets)[present]


def _evidence(
    observation: Observation, records: int, least: int | None, most: int | None, others: Sequence[KindCount]
) -> Evidence:
    from tfrecord_io.columns.schema.inferred_schema import Evidence  # if it is requested

    values = observation if observation.steps is None else observation.steps
    text = values.kind is Kind.BYTES and values.text
    part = "context" if observation.steps is None else FEATURE_LIST
    kind = values.kind.name.lower()
    return Evidence(
        kind=kind,
        records=records,
        least=least,
        most=most,
        text=text,
        part=part,
        listed=values.listed,
        binary=values.binary,
        others=tuple(others),
    )
