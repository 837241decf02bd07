"""The classes of rows, by the values of a column: the groups that a balanced mixture draws from.

Tests: tests/rows/training/test_label_classes.py; of mixtures: tests/rows/training/test_mixed_rows_balanced.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column, RowFault, offsets_of
from tfrecord_io.errors import DecodeError, FeatureNotFoundError, SchemaError
from tfrecord_io.rows.arrays.rows_by_number import PartLookup


@dataclass(frozen=True, eq=False)
class Classes:
    """Groups of rows: those of one class in one dataset."""

    column: str
    parts: Array  # int64: the dataset of each group
    # For each group: all classes have the same weight, which is divided among the datasets that have the class.
    weights: tuple[float, ...]
    # int64: row numbers in the datasets, one group after the other, ascending in each group.
    rows: Array
    bounds: Array  # int64: where each group begins in `rows`, and where the last one ends
    lookups: tuple[PartLookup, ...]  # of the datasets

    @property
    def lengths(self) -> list[int]:
        """The number of rows of each group."""
        lengths: list[int] = np.diff(self.bounds).tolist()
        return lengths

    def rows_at(self, groups: Array, places: Array) -> tuple[Array, Array]:
        """Dataset and row number of the rows at some positions of groups."""
        return self.parts[groups], self.rows[self.bounds[groups] + places]


def find_classes(lookups: Sequence[PartLookup], column: str, weights: Sequence[float]) -> Classes:
    """Group the rows of datasets by the values of a column, which are read from column indexes where files have one.

    FeatureNotFoundError if the column does not exist, DecodeError if a row has no value in it, SchemaError if its
    values are not classes; ValueError without rows, or if rows have no number: a file is compressed, or a dataset has
    an `on_error`.
    """
    _check_field(lookups[0].schema, column)
    values = [_values(lookup, column) for lookup in lookups]
    sizes = list(map(len, values))
    joined = pa.chunked_array([chunk for of_lookup in values for chunk in of_lookup.chunks], values[0].type)
    chunks = joined.unify_dictionaries().chunks
    indices = np.concatenate([np.empty(0, np.int64), *(chunk.indices.to_numpy() for chunk in chunks)])
    # Class of each row, numbered in the order of first rows.
    codes: Array = pa.array(indices).dictionary_encode().indices.to_numpy().astype(np.int64)
    if not len(codes):
        raise ValueError(f"balance={column!r}: the datasets have no rows")
    datasets = np.repeat(np.arange(len(lookups)), sizes)
    groups = codes * len(lookups) + datasets
    order = np.argsort(groups, kind="stable")
    present_groups, counts = np.unique(groups, return_counts=True)
    classes, parts = np.divmod(present_groups, len(lookups))
    of_parts = np.array(weights)[parts]
    shares = of_parts / np.bincount(classes, of_parts)[classes] / (int(classes[-1]) + 1)
    rows = order - offsets_of(np.array(sizes))[datasets[order]]
    return Classes(
        column, parts, weights=tuple(shares.tolist()), rows=rows, bounds=offsets_of(counts), lookups=tuple(lookups)
    )


def _check_field(schema: pa.Schema, column: str) -> None:
    if column not in schema.names:
        valid = f"valid names: {', '.join(sorted(schema.names))}"
        raise FeatureNotFoundError("balance= names a column that does not exist", feature=column, hint=valid)
    field = schema.field(column)
    type_ = field.type.value_type if t.is_dictionary(field.type) else field.type
    if not (t.is_integer(type_) or t.is_boolean(type_) or Column(type_).is_text or Column(type_).is_bytes):
        got = Column(type_, field.metadata).logical_name
        reason = f"classes are integers, bools, text or bytes, one for each row, not {got}"
        raise SchemaError(reason, feature=column, got=str(type_), hint="name another column by balance=")


def _values(lookup: PartLookup, column: str) -> pa.ChunkedArray:
    """Values of a column in all rows, as dictionary arrays; DecodeError if a value is missing."""
    values = lookup.column(column)
    if values.null_count:
        row = int(values.is_null().to_numpy().argmax())
        reason, advice = "a row has no class", f'leave such rows out: filter([("{column}", "!=", None)])'
        raise lookup.row_error(RowFault(row, reason, feature=column, hint=advice, error=DecodeError))
    return values
