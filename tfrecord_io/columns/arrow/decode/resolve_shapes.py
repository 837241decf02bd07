"""Decide the types of columns of arrays whose shape or dtype is stored in other features, by the first records.

`tfrecord_io.tensor` leaves such a field open. `plan_scan` closes it: a tensor of one shape if all records of the sample
state the same, else one whose dimensions vary. Tests: tests/laws/test_shapes_from_features.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import ScanOptions, did_you_mean, printable
from tfrecord_io.bytes import ColumnBuffers, Dtype, FeatureColumns, Kind, Layout, ShapeSource
from tfrecord_io.columns.arrow.decode.companion_checks import LONGEST_AXIS
from tfrecord_io.columns.arrow.decode.lists import is_nothing
from tfrecord_io.columns.arrow.decode.stated_shapes import dtype_of, stated_dtypes, text_of
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.schema.column_features import (
    BY_WIRE,
    CONTEXT,
    FEATURE_LIST,
    LIST,
    PART_KEY,
    RAW,
    field_at,
    shape_entries,
)
from tfrecord_io.columns.schema.column_selection import is_glob, states_shapes
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.field_makers import as_field, is_call
from tfrecord_io.columns.schema.image_form import RawImageForm
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.tensor_types import Shape, dtype_metadata, element_and_shape, is_any_tensor, tensor_type
from tfrecord_io.columns.schema.types import is_list_like, map_fields, relist
from tfrecord_io.errors import FeatureNotFoundError, SchemaError
from tfrecord_io.store import Source

_FEW_RECORDS = 100
_MOST_DIMENSIONS = 62  # of a row: NumPy has 64, of which one counts the rows, and one may be that of complex numbers

Sample = Callable[[ScanOptions, tuple[str, ...]], list[Mapping[str, ColumnBuffers]]]
"""Decodes the first records, of these columns, with these options."""


class OpenShapes:
    """The columns that ``schema=`` or ``schema_overrides=`` leaves open, as features state their shapes or dtypes."""

    def __init__(self, options: ScanOptions) -> None:
        has_schema = options.schema is not None and not isinstance(options.schema, str)
        self._options = options
        self._declared = Schema.parse(options.schema) if has_schema else None
        self._overrides = {
            name: as_field(name, type_) if is_call(type_) or states_shapes(type_) else type_
            for name, type_ in (options.schema_overrides or {}).items()
        }
        self._columns = [] if self._declared is None else _open_columns(self._declared)
        self._overridden = [
            column
            for name, f in self._overrides.items()
            if isinstance(f, Field)
            for column in _open_columns_of(name, f)
        ]

    def declared_schema(self, selects: Callable[[str], bool]) -> Schema | None:
        """The ``schema=``, if no override is open, but a column is, and all open columns are selected; else None."""
        selected = bool(self._columns) and all(selects(column.column) for column in self._columns)
        return self._declared if selected and not self._overridden else None

    def close(self, sources: Sequence[Source], decode_sample: Sample) -> ScanOptions:
        """The options with a type for each column, by a sample that is decoded for this.

        FeatureNotFoundError if no record of the sample has a feature that states a size; SchemaError if the number of
        dimensions or the dtype differs between records.
        """
        options, open_columns = self._options, [*self._columns, *self._overridden]
        if not open_columns:
            return options
        if glob := next((column.column for column in open_columns if is_glob(column.column)), None):
            reason = "the shapes of several columns cannot be stored in the same features"
            raise SchemaError(reason, feature=glob, hint="name each column")
        columns = _sampled_columns(open_columns, options, sources, decode_sample)
        closed = _closed_fields(open_columns, lambda column: column.close(columns, options))
        changes: dict[str, Any] = {}
        if self._declared is not None:
            changes["schema"] = _replace_fields(self._declared, closed)
        if self._overrides:
            changes["schema_overrides"] = {name: closed.get(id(f), f) for name, f in self._overrides.items()}
        return options.changed(**changes)

    @staticmethod
    def assume(schema: Schema) -> Schema:
        """The schema with an assumed type for each column; features are decoded alike by the type from a sample."""
        return _replace_fields(schema, _closed_fields(_open_columns(schema), _OpenColumn.assume))

    @staticmethod
    def close_by(schema: Schema, columns: Sequence[Mapping[str, ColumnBuffers]], options: ScanOptions) -> Schema | None:
        """The schema with a type for each column by the first records, as decoded by the assumed schema.

        None if no record has a feature that states a size, which an error of `close` explains.
        """
        open_columns = _open_columns(schema)
        names = {name for column in open_columns for name in column.source.features}
        if not all(any(True for part in columns for _ in _columns_of(part, name)) for name in names):
            return None
        return _replace_fields(schema, _closed_fields(open_columns, lambda column: column.close(columns, options)))


def close_as_data(schema: Schema, data: pa.Schema) -> Schema:
    """The schema of data to write, with a type for each column whose rank or dtype only the arrays of `data` say.

    A column of bytes, whose sizes the caller writes, stays as it is.
    """

    def close(column: _OpenColumn) -> Field | None:
        at = data.get_field_index(column.column)
        item = None if at < 0 else field_at(data.field(at), column.path)
        if item is not None and is_list_like(column.field.type) and is_list_like(item.type):
            item = item.with_type(item.type.value_type)
        if item is None or not is_any_tensor(item.type) or is_any_tensor(column.field.value):
            return None
        element, shape = element_and_shape(item)
        source = column.source.decide(RAW, is_number=False, in_context=False)
        dtype, axes = source.element or element.name, source.shape or (None,) * len(shape)
        return column.as_tensor(dtype, axes, {**column.field.metadata, **source.metadata})

    return _replace_fields(schema, _closed_fields(_open_columns(schema), close))


def _replace_fields(schema: Schema, fields: Mapping[int, Field]) -> Schema:
    """Replace fields of a schema by their ids; without `fields`, return the schema."""
    return Schema([fields.get(id(f), f) for f in schema], schema.metadata) if fields else schema


def _open_columns(schema: Schema) -> list[_OpenColumn]:
    return [column for f in schema.others.values() for column in _open_columns_of(f.column, f)]


def _open_columns_of(name: str, field: Field) -> Iterator[_OpenColumn]:
    """The field, and the fields of its structs, whose types the first records decide."""
    for path, entry in () if field.is_common else shape_entries(field.type, field.metadata).items():
        source = ShapeSource.from_entry(entry, field.feature)
        if source.is_open:
            yield _OpenColumn(name, _as_column(field, path) if path else field, source, owner=field, path=path)


def _as_column(field: Field, path: tuple[str, ...]) -> Field:
    """The field of a struct in a column as a column of its own: of lists, if it is in a list of structs."""
    part, feature = field_at(field.to_arrow(), path), "/".join((field.feature, *path))
    assert part is not None
    alone = replace(Field.from_arrow(part), column=feature, feature=feature)
    if (outer := _list_around(field.type, path)) is None:
        return alone
    encoding = RAW if is_any_tensor(alone.type) else LIST
    return replace(alone, type=relist(outer, alone.type), part=CONTEXT, encoding=encoding)


def _list_around(type_: pa.DataType, path: tuple[str, ...]) -> pa.DataType | None:
    """The type of the list of structs that the field of this path is in, None if it is in none."""
    outer = None
    for name in path:
        if is_list_like(type_):
            outer, type_ = type_, type_.value_type
        type_ = type_.field(name).type
    return outer


def _replace_at(type_: pa.DataType, path: tuple[str, ...], part: pa.Field) -> pa.DataType:
    """The type with another field at this path."""
    if not path:
        return part.type
    if is_list_like(type_):
        return relist(type_, type_.value_field.with_type(_replace_at(type_.value_type, path, part)))
    name, *inner = path

    def change(child: pa.Field) -> pa.Field:
        if child.name != name:
            return child
        return child.with_type(_replace_at(child.type, tuple(inner), part)) if inner else part

    return map_fields(type_, change)


def _closed_fields(
    open_columns: Sequence[_OpenColumn], close: Callable[[_OpenColumn], Field | None]
) -> dict[int, Field]:
    """The fields with the types that `close` decides for their open columns, by the ids of the open fields."""
    fields: dict[int, Field] = {}
    for column in open_columns:
        if (closed := close(column)) is not None:
            fields[id(column.owner)] = column.put_into(fields.get(id(column.owner), column.owner), closed)
    return fields


def _sampled_columns(
    open_columns: Sequence[_OpenColumn], options: ScanOptions, sources: Sequence[Source], decode_sample: Sample
) -> list[Mapping[str, ColumnBuffers]]:
    """The columns of the first records: the values of the arrays, and the features that state their shapes."""
    stated = {name: column for column in open_columns for name in column.source.features}
    values = [column.feature for column in open_columns if column.feature not in stated]
    needs_rank = any(column.source.shape is None or column.source.element is None for column in open_columns)
    if not all(source.can_be_read_again for source in sources):
        if not needs_rank:
            return []
        reason = "the file object is read once, and the first records decide the dtype and the number of dimensions"
        raise SchemaError(
            reason,
            feature=open_columns[0].feature,
            hint="pass a path, or state both by tfr.tensor",
            hint_cli="pass a path, or state both by --type",
        )
    options = options.changed(schema="infer", schema_overrides=None, progress=False)
    columns, arrays = list[Mapping[str, ColumnBuffers]](), _first_values(values, options, decode_sample)
    while stated:
        try:
            columns = decode_sample(options, (*stated,))
            break
        except FeatureNotFoundError as missing:
            if (name := missing.feature) not in stated:
                raise
            assert name is not None
            for column in (column for column in open_columns if name in column.source.features):
                has_values = any(True for part in arrays for _ in _columns_of(part, column.feature))
                if has_values or column.source.shape is None or column.source.element is None:
                    raise _missing_size(name, column, missing) from None
            del stated[name]  # the columns are null in these records, and their sizes vary
    return columns + arrays


def _first_values(
    features: Sequence[str], options: ScanOptions, decode_sample: Sample
) -> list[Mapping[str, ColumnBuffers]]:
    """The first arrays, which show whether they are bytes or lists: of few records, as all would take much memory."""
    few = _FEW_RECORDS if options.sample == "all" else min(options.sample, _FEW_RECORDS)
    columns = list[Mapping[str, ColumnBuffers]]()
    for feature in features:
        for sample in dict.fromkeys((few, options.sample)):
            try:
                found = decode_sample(options.changed(sample=sample), (feature,))
            except FeatureNotFoundError as missing:
                if missing.feature != feature:
                    raise
                continue  # whose kind is not needed
            if any(True for part in found for _ in _columns_of(part, feature)):
                columns += found
                break
    return columns


def _missing_size(name: str, column: _OpenColumn, missing: FeatureNotFoundError) -> FeatureNotFoundError:
    is_dtype = name == column.source.dtype
    what = "dtype" if is_dtype else "shape"
    reason = f"no record of the sample has it, and it states the {what} of '{printable(column.feature)}'"
    hint = missing.hint
    if is_dtype and "/" not in name:
        question = did_you_mean(name, Dtype.SUPPORTED.replace(",", "").split())
        hint = question or hint
    elif column.path and not name.startswith(f"{column.owner.feature}/"):
        hint = f"name features in full, such as '{printable(column.owner.feature)}/{printable(name)}'; {hint}"
    error = FeatureNotFoundError(reason, feature=name, hint=hint)
    error.path = missing.path
    return error


@dataclass(frozen=True, slots=True)
class _OpenColumn:
    """A column whose type the first records decide, or the field of a struct in a column, as a column of its own."""

    column: str
    field: Field
    source: ShapeSource
    owner: Field  # the field of the column
    path: tuple[str, ...]  # from the column to the field of a struct; empty for a column

    @property
    def feature(self) -> str:
        return self.field.feature or self.column

    def put_into(self, owner: Field, closed: Field) -> Field:
        """The field of the column with the decided field instead of this one."""
        if not self.path:
            return closed
        part, source = closed.to_arrow(), closed.shape_source
        assert source is not None
        metadata = {**part.metadata, **source._replace(in_struct=True).metadata}
        part = part.with_metadata(metadata).with_name(self.path[-1])
        if _list_around(owner.type, self.path) is not None:
            metadata = {key: value for key, value in part.metadata.items() if key != PART_KEY}
            part = part.with_metadata(metadata).with_type(closed.type.value_type)
        return replace(owner, type=_replace_at(owner.type, self.path, part))

    def assume(self) -> Field:
        """The field with a type of arrays; of what is not known, any."""
        return self.as_tensor(self.source.element or "uint8", self.source.shape or (None,), self.field.metadata)

    def close(self, columns: Sequence[Mapping[str, ColumnBuffers]], options: ScanOptions) -> Field:
        """The field with the type that the sample shows; dimensions whose sizes differ, or are not known, vary."""
        field, source = self.field, self.source
        shape, dtype, is_number = self._shape(columns), source.element, False
        if source.dtype is not None:
            dtype, is_number = self._dtype(columns)
        kinds = {c.kind for part in columns for c in _columns_of(part, self.feature) if c.value_row >= 0}
        encoding = RAW if Kind.BYTES in kinds else LIST if kinds else source.encoding
        in_context = is_list_like(field.type) and self._is_in_context(columns)
        closed = source.decide(encoding, is_number=is_number, in_context=in_context)
        metadata = {**field.metadata, **closed.metadata}
        if shape is None or dtype is None:  # no record has an array: the column stays one of bytes
            return replace(field, metadata=metadata)
        if options.stable_types:
            shape = source.shape or (None,) * len(shape)
        if (form := RawImageForm.from_metadata(field.metadata, self.column)) is not None:
            form.check(dtype, shape, self.column)
        return self.as_tensor(dtype, shape, metadata)

    def as_tensor(self, dtype: str, shape: Shape, metadata: Mapping[bytes, bytes]) -> Field:
        """The field of arrays of a dtype and a shape, in a list where it is a feature list."""
        field, value = self.field, Dtype.of_name(dtype)
        type_, encoding = tensor_type(value, shape), field.encoding
        if encoding == LIST:
            is_list = is_list_like(field.type) and field.part != FEATURE_LIST
            encoding = RAW if is_list else self.source.encoding or BY_WIRE
        return replace(
            field,
            type=relist(field.type, type_) if is_list_like(field.type) else type_,
            encoding=encoding,
            shape=shape,
            metadata={**metadata, **dtype_metadata(value)},
        )

    def _is_in_context(self, columns: Sequence[Mapping[str, ColumnBuffers]]) -> bool:
        """True if the context, and no feature list, has the features that state the shape of all steps, or arrays."""
        names = self.source.features
        if self.field.part != FEATURE_LIST:
            if any(map(self._is_in_each_struct, self.source.axis_sizes)):
                return False
            sizes = (c for part in columns for name in self.source.axis_sizes for c in _columns_of(part, name))
            return not any(map(_has_several, sizes))
        lists = (part.get(name + FeatureColumns.LIST_MARK) for part in columns for name in names)
        if any(column is not None and not is_nothing(column) for column in lists):
            return False
        parts = (part.get(name) for part in columns for name in names)
        return any(column is not None and column.steps is None for column in parts)

    def _is_in_each_struct(self, feature: str) -> bool:
        """True if a feature is a field of the structs in a list that the arrays are in: each has a value of it."""
        path = tuple(feature.removeprefix(f"{self.owner.feature}/").split("/"))
        is_field = bool(self.path) and field_at(self.owner.to_arrow(), path) is not None
        return is_field and _list_around(self.owner.type, path) is not None

    def _shape(self, columns: Sequence[Mapping[str, ColumnBuffers]]) -> Shape | None:
        """The common shape of all sampled records, None for each dimension that varies; None without a record."""
        axes = self.source.axes
        if not isinstance(axes, str):
            sizes = [set(self._values(columns, axis)) if isinstance(axis, str) else {axis} for axis in axes]
            return tuple(map(_common_size, sizes))
        lists = {row for part in columns for c in _columns_of(part, axes) for row in self._rows(c, axes)}
        if not lists:
            return None
        ranks = {len(row) for row in lists}
        if len(ranks) > 1:
            reason = f"'{printable(axes)}' states arrays of {' and '.join(map(str, sorted(ranks)))} dimensions"
            advice = "declare the column as binary, and reshape its arrays"
            raise SchemaError(reason, feature=self.feature, got=sorted(ranks), hint=advice)
        if (rank := ranks.pop()) > _MOST_DIMENSIONS:
            reason = f"'{printable(axes)}' states arrays of {rank} dimensions, but NumPy has at most {_MOST_DIMENSIONS}"
            raise SchemaError(reason, feature=self.feature, got=rank, hint="declare the column as binary")
        return tuple(_common_size(set(sizes)) for sizes in zip(*lists, strict=True))

    def _values(self, columns: Sequence[Mapping[str, ColumnBuffers]], name: str) -> Iterator[int]:
        for part in columns:
            for column in _columns_of(part, name):
                yield from (size for row in self._rows(column, name) for size in row)

    def _rows(self, column: ColumnBuffers, name: str) -> set[tuple[int, ...]]:
        """The distinct lists of sizes in a column."""
        if column.kind is not Kind.INT64:
            reason = f"'{printable(name)}' has {column.kind.description}, but the sizes of dimensions are integers"
            expected, got = Kind.INT64.description, column.kind.description
            advice = "declare the column as binary, and reshape its arrays"
            raise SchemaError(reason, feature=self.feature, expected=expected, got=got, hint=advice)
        assert column.values is not None
        mask = column.mask
        if column.layout is Layout.SCALAR:
            sizes = column.values if mask.all() else column.values[mask]
            is_common = len(sizes) and (sizes == sizes[0]).all()  # which is the usual case, and need not be sorted
            return {(size,) for size in (sizes[:1] if is_common else np.unique(sizes)).tolist()}
        assert column.offsets is not None
        bounds, values = column.offsets.tolist(), column.values
        rows = {values[bounds[row] : bounds[row + 1]].tobytes() for row in np.flatnonzero(mask).tolist()}
        return {tuple(np.frombuffer(row, np.int64).tolist()) for row in rows}

    def _dtype(self, columns: Sequence[Mapping[str, ColumnBuffers]]) -> tuple[str | None, bool]:
        """The name of the dtype that the sampled records state, and whether they state it as a number."""
        assert self.source.dtype is not None
        name, is_number = self.source.dtype, False
        names: dict[str, str | None] = {}
        for part in columns:
            for column in _columns_of(part, name):
                try:
                    values, _ = stated_dtypes(column, name)
                except RowFault as fault:
                    raise SchemaError(fault.reason, feature=self.feature) from None
                names |= {text_of(value): dtype_of(value) for value in values}
                is_number |= column.kind is Kind.INT64
        unknown = next((text for text, found in names.items() if found is None), None)
        if unknown is not None:
            reason = f"'{printable(name)}' is {printable(repr(unknown), 60)}, which names no dtype"
            raise SchemaError(reason, feature=self.feature, got=unknown, hint=f"use {Dtype.SUPPORTED}")
        found = sorted({*names.values()}, key=str)
        if len(found) > 1:
            reason = f"'{printable(name)}' states arrays of {' and '.join(map(str, found))}"
            advice = "declare the column as binary, and convert its arrays"
            raise SchemaError(reason, feature=self.feature, got=found, hint=advice)
        return (found[0] if found else None), is_number


def _has_several(column: ColumnBuffers) -> bool:
    """True if a row does not have one value, and is not null."""
    if column.layout is Layout.SCALAR or column.offsets is None:
        return False
    return bool((np.diff(column.offsets)[column.mask] != 1).any())


def _common_size(sizes: set[Any]) -> int | None:
    """The size that all records state; None if they differ, or if no array has it, which the record's error says."""
    size = next(iter(sizes)) if len(sizes) == 1 else None
    return size if size is not None and 0 <= size <= LONGEST_AXIS else None


def _columns_of(columns: Mapping[str, ColumnBuffers], name: str) -> Iterator[ColumnBuffers]:
    """The columns of a feature that have a value: those of the context, and the steps of a feature list."""
    for key in (name, name + FeatureColumns.LIST_MARK):
        column = columns.get(key)
        if column is None or is_nothing(column):
            continue
        inner = column if column.steps is None else column.steps
        if not is_nothing(inner):
            yield inner
