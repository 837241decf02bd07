"""Conform the columns of data to a schema, and to a dataset.

Tests: tests/write/test_writer.py and tests/laws/test_wide_tables.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import WriteOptions, and_more, counted, printable, warn
from tfrecord_io.bytes import ShapeSource
from tfrecord_io.columns.arrow.buffers import empty_batch
from tfrecord_io.columns.arrow.encode.lossless_values import Rounding
from tfrecord_io.columns.arrow.image_encoding import arrays_schema
from tfrecord_io.columns.arrow.input.batch_source import BatchSource
from tfrecord_io.columns.arrow.input.from_arrays import check_name, map_types
from tfrecord_io.columns.arrow.input.schema_cast import cast_columns
from tfrecord_io.columns.schema.column_features import (
    BY_WIRE,
    COMPOSITE_KEY,
    ENCODING_KEY,
    PART_KEY,
    RAW,
    encoding_of,
    field_at,
    set_encoding,
    shape_entries,
)
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.merged_schema import fill_in_types
from tfrecord_io.columns.schema.pandas_metadata import copy_index
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.tensor_types import NESTED, element_and_shape, is_any_tensor
from tfrecord_io.columns.schema.types import is_list_like, map_fields, relist, replace_fields, value_type
from tfrecord_io.errors import SchemaError, SchemaWarning

if TYPE_CHECKING:
    from tfrecord_io.columns.schema.composite import Composite

_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")  # of a DataFrame
_MOST_NAMED = 8  # columns in a warning


class Conforming:
    """Conforms input to a schema: selects and orders columns, casts them without loss, and names them as features.

    A SchemaWarning names the columns that the schema leaves out.

    Parameters
    ----------
    schema : Schema
    encodings : dict of str to str
        As ``column_encoding=``: columns that are stored as images are conformed as arrays.
    float64 : None, "round" or "error"
    rounding : Rounding
    """

    def __init__(
        self, schema: Schema, encodings: Mapping[str, str] | None, float64: str | None, rounding: Rounding
    ) -> None:
        schema = arrays_schema(schema, encodings)
        self._schema, self._names = schema, schema.names
        self._target, self._written = schema.to_arrow(), Conforming.written_schema(schema)
        self._composites = _composites(schema)
        self._has_required = any(field.required for field in schema)
        self.maps = map_types(self._target)  # for inputs of Python values
        self._float64, self._rounding = float64, rounding
        self._selected = set(self._names)  # and the columns that a warning named

    def __call__(self, source: BatchSource, row_base: int) -> BatchSource:
        """The batches of `source`, which follow `row_base` rows."""
        present = dict.fromkeys(source.schema.names)
        for name in self._names:
            if name not in present:
                reason = "the schema names a column that the data does not have"
                raise SchemaError(reason, feature=name, hint=f"it has: {', '.join(source.schema.names)}")
        left_out = [name for name in present if not (name in self._selected or _UNNAMED_INDEX.fullmatch(name))]
        self._selected.update(left_out)  # each is named by one warning
        if left_out:
            shown = ", ".join(f"'{printable(name)}'" for name in left_out[:_MOST_NAMED])
            more = and_more(len(left_out) - _MOST_NAMED)
            reason = f"the schema leaves out {counted(len(left_out), 'column')} of the data: {shown}{more}"
            warn(f"{reason}; select the columns of the data to write them without this warning", SchemaWarning)
        if self.has_open_types(self._written):
            from tfrecord_io.columns.arrow.decode.resolve_shapes import close_as_data

            self._schema = close_as_data(self._schema, source.schema)
            self._target, self._written = self._schema.to_arrow(), Conforming.written_schema(self._schema)
        written = self._written
        if not written.metadata:
            written = written.with_metadata(source.schema.metadata)
        return source.map_batches(written, partial(self._cast, written), row_base)

    @staticmethod
    def has_open_types(schema: pa.Schema) -> bool:
        """True if a column is one of arrays whose rank or dtype only the data says."""
        paths = ((field, path) for field in schema for path in shape_entries(field.type, field.metadata))
        parts = (field_at(field, path) for field, path in paths)
        return any(part is not None and t.is_binary(value_type(part.type)) for part in parts)

    @staticmethod
    def written_schema(schema: Schema) -> pa.Schema:
        """The Arrow schema of the written data, whose columns are named as their features."""
        named = [field if field.feature == field.column else replace(field, column=field.feature) for field in schema]
        if composites := _composites(schema):
            named = list(_split_fields(schema, composites))
        for field in named:
            check_name(field.column)
        return pa.schema([field.to_arrow() for field in named], metadata=dict(schema.metadata) or None)

    @staticmethod
    def as_in_dataset(schema: pa.Schema, known: pa.Schema, options: WriteOptions) -> pa.Schema:
        """The schema of rows for a dataset, with the choices of its first writer that `options` leave open.

        Those are the encodings of columns of the same type, the features that state the shapes of arrays, and which
        columns are the index. Columns of nulls, or of empty lists, have the types of the dataset.
        """
        schema = fill_in_types(schema, known)
        stored, changed = {field.name: field for field in known}, {}
        for at, column in enumerate(schema):
            stored_field = stored.get(column.name, column)
            encoding, is_stated = encoding_of(stored_field), column.name in (options.column_encoding or {})
            if not is_stated and (shaped := _take_shapes(column, stored_field)) is not column:
                changed[at] = shaped
                continue
            if (
                encoding in (None, BY_WIRE, NESTED)
                or encoding_of(column) is not None
                or stored_field.type != column.type
            ):
                continue
            is_stated |= options.float64 is not None and encoding == RAW and t.is_float64(value_type(column.type))
            if not is_stated:
                changed[at] = set_encoding(column, encoding)
        return copy_index(replace_fields(schema, changed), known)

    def check_types(self, schema: pa.Schema) -> None:
        """Raise the error for columns whose types cannot be cast."""
        cast_columns(empty_batch(pa.schema([schema.field(name) for name in self._names])), self._target)

    def _cast(self, written: pa.Schema, batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            selected = batch if batch.schema.names == self._names else batch.select(self._names)
            if selected.schema.equals(self._target) and not self._has_required:  # nothing to cast or to check
                columns = None if selected.schema.equals(written, check_metadata=True) else selected.columns
            else:
                columns = cast_columns(selected, self._target, rows, float64=self._float64, rounding=self._rounding)
            if self._composites:
                columns = self._split(selected.columns if columns is None else columns, rows)
            rows += batch.num_rows
            yield selected if columns is None else pa.RecordBatch.from_arrays(columns, schema=written)

    def _split(self, columns: Sequence[pa.Array], row: int) -> list[pa.Array]:
        """Replace each composite column by the columns of its features."""
        from tfrecord_io.columns.arrow.encode.composite_columns import component_columns

        split: list[pa.Array] = []
        for name, column in zip(self._names, columns, strict=True):
            composite = self._composites.get(name)
            split += [column] if composite is None else component_columns(composite, column, name, row)
        return split


def _take_shapes(column: pa.Field, stored: pa.Field) -> pa.Field:
    """The column whose arrays are stored as those of `stored`, also in the fields of structs, where they can be."""
    if _may_take_shapes(column, stored):
        return column.with_metadata({**(column.metadata or {}), **_shape_entries(stored)})
    if not shape_entries(stored.type, None):
        return column

    def take(part: pa.Field) -> pa.Field:
        of_stored = field_at(stored, (part.name,))
        return part if of_stored is None else _take_shapes(part, of_stored)

    if t.is_struct(column.type):
        type_ = map_fields(column.type, take)
    elif is_list_like(column.type) and t.is_struct(column.type.value_type):
        type_ = relist(column.type, column.type.value_field.with_type(map_fields(column.type.value_type, take)))
    else:
        return column
    return column if type_.equals(column.type, check_metadata=True) else column.with_type(type_)


def _may_take_shapes(column: pa.Field, stored: pa.Field) -> bool:
    """True if arrays of `column` can be stored as those of `stored`, whose shapes are stored in features."""
    if ShapeSource.entry_of(stored.metadata or {}) is None or ShapeSource.entry_of(column.metadata or {}) is not None:
        return False
    are_lists = is_list_like(column.type)
    if encoding_of(column) is not None or are_lists != is_list_like(stored.type):
        return False
    items = [field.with_type(field.type.value_type) if are_lists else field for field in (column, stored)]
    if not all(is_any_tensor(item.type) for item in items):
        return False
    (element, shape), (stored_element, stored_shape) = map(element_and_shape, items)
    return element == stored_element and len(shape) == len(stored_shape)


def _shape_entries(stored: pa.Field) -> dict[bytes, bytes]:
    """The metadata that say how the arrays of a column are stored."""
    source = ShapeSource.from_metadata(stored.metadata, stored.name)
    kept = {key: value for key, value in (stored.metadata or {}).items() if key in (ENCODING_KEY, PART_KEY)}
    return kept if source is None else {**source.metadata, **kept}


def _composites(schema: Schema) -> dict[str, Composite]:
    """The columns that are written as several features whose names the schema states."""
    if not any(COMPOSITE_KEY in field.metadata for field in schema):
        return {}
    from tfrecord_io.columns.arrow.encode.composite_columns import written_composite

    return {field.column: composite for field in schema if (composite := written_composite(field)) is not None}


def _split_fields(schema: Schema, composites: Mapping[str, Composite]) -> Iterator[Field]:
    """The fields that are written, each named as its feature; SchemaError if two columns have the same feature."""
    from tfrecord_io.columns.arrow.encode.composite_columns import component_fields

    features = set()
    for field in schema:
        composite = composites.get(field.column)
        plain = replace(field, column=field.feature)
        for written in [plain] if composite is None else component_fields(composite, field):
            if written.feature in features:
                raise SchemaError("two columns of the schema are written to it", feature=written.feature)
            features.add(written.feature)
            yield written
