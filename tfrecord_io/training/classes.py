"""The rows of each class of a column, in one or several datasets: what balanced rows are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrays.random_rows import PartLookup
from tfrecord_io.arrow.buffers import offsets_of
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import DecodeError, FeatureNotFoundError, SchemaError, say
from tfrecord_io.schema.type_names import logical_name
from tfrecord_io.schema.types import is_bytes, is_text


@dataclass(frozen=True, eq=False)
class Classes:
    """Groups of rows: those of one class in one dataset.

    Attributes
    ----------
    column : str
    parts : int64 array
        The dataset of each group.
    weights : tuple of float
        Of each group: all classes have the same, which is divided among the datasets that have it.
    rows : int64 array
        The numbers, in their datasets, of the rows of all groups, one group after the other, ascending in each.
    ends : int64 array
        Where each group begins in `rows`, and where the last one ends.
    lookups : tuple of PartLookup
        Of the datasets.
    """

    column: str
    parts: Array
    weights: tuple[float, ...]
    rows: Array
    ends: Array
    lookups: tuple[PartLookup, ...]

    @property
    def lengths(self) -> list[int]:
        """The number of rows of each group."""
        lengths: list[int] = np.diff(self.ends).tolist()
        return lengths

    def rows_at(self, groups: Array, places: Array) -> tuple[Array, Array]:
        """The dataset, and the number in it, of the rows at some places of groups."""
        return self.parts[groups], self.rows[self.ends[groups] + places]


def find_classes(lookups: Sequence[PartLookup], column: str, weights: Sequence[float]) -> Classes:
    """Read a column, from column indexes where files have one of it, and group the rows of datasets by it.

    Raises
    ------
    FeatureNotFoundError
        There is no such column.
    DecodeError
        A row has no value in it.
    SchemaError
        Its values are not classes.
    ValueError
        There are no rows; or rows have no number: a file is compressed, or a dataset has an `on_error`.
    """
    _check_field(lookups[0].schema, column)
    values = [_values(lookup, column) for lookup in lookups]
    sizes = list(map(len, values))
    codes = pa.concat_arrays(values).dictionary_encode().indices.to_numpy().astype(np.int64)
    if not len(codes):
        raise ValueError(say("{balance=}: the datasets have no rows", balance=column))
    datasets = np.repeat(np.arange(len(lookups)), sizes)
    groups = codes * len(lookups) + datasets
    order = np.argsort(groups, kind="stable")
    found, counts = np.unique(groups, return_counts=True)
    classes, parts = np.divmod(found, len(lookups))
    own = np.array(weights)[parts]
    shares = own / np.bincount(classes, own)[classes] / (int(classes[-1]) + 1)
    rows = order - offsets_of(np.array(sizes))[datasets[order]]
    return Classes(column, parts, tuple(shares.tolist()), rows, offsets_of(counts), tuple(lookups))


def _check_field(schema: pa.Schema, column: str) -> None:
    if column not in schema.names:
        valid = f"valid names: {', '.join(sorted(schema.names))}"
        raise FeatureNotFoundError(say("{balance=} names a column that does not exist"), feature=column, advice=valid)
    field = schema.field(column)
    type_ = _value_type(field.type)
    if not (t.is_integer(type_) or t.is_boolean(type_) or is_text(type_) or is_bytes(type_)):
        got = logical_name(type_, field.metadata)
        reason = f"classes are integers, bools, text or bytes, one for each row, not {got}"
        raise SchemaError(reason, feature=column, got=str(type_), advice=say("name another column by {balance=}"))


def _value_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if t.is_dictionary(type_) else type_


def _values(lookup: PartLookup, column: str) -> pa.Array:
    """The values of a column, in all rows; DecodeError if one is missing."""
    chunks = lookup.column(column)
    type_ = _value_type(lookup.schema.field(column).type)
    values = pa.concat_arrays([pa.array([], type_), *(chunk.cast(type_) for chunk in chunks)])
    if values.null_count:
        row = int(values.is_null().to_numpy(zero_copy_only=False).argmax())
        reason, advice = "a row has no class", f'leave such rows out: filter([("{column}", "!=", None)])'
        raise lookup.row_error(RowFault(row, reason, feature=column, advice=advice, error=DecodeError))
    return values
