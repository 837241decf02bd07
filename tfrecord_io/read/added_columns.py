"""Columns that a read adds: the path ``data/label=cat/part-00000.tfrecord`` sets ``label`` in all rows of the file.

Tests: tests/read/test_added_columns.py and tests/read/test_sources_options.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column, EmbeddedSchema, Field, NamePattern, Overrides, Projection, Schema, int64_array
from tfrecord_io.errors import SchemaError
from tfrecord_io.store import Source, Sources

_INTEGER = r"-?[0-9]+"
_LEAST, _MOST = -(2**63), 2**63 - 1


class AddedColumns(NamedTuple):
    """The columns that a read adds to those of features: the values in directory names, and the path of the file.

    Whatever makes batches of records completes them by `add_to`, or by `row_of` where it has rows of one file.

    Columns of directories have the declared type if a schema names them, else the one that all their manifests state,
    else int64 if all values are integers, and no manifest states another type, else string; the declared default, or
    null, for a file that is in no such directory.
    """

    fields: tuple[pa.Field, ...] = ()
    declared_order: tuple[str, ...] = ()  # all columns of a declared schema, including those of features
    path: str | None = None  # the column of ``include_file_paths=``, behind all others

    @classmethod
    def from_folders(cls, sources: Sequence[Source], *, stated: bool = True) -> Self:
        """The partition columns of the directories that contain the files, of the types `stated` by a manifest."""
        sources = Sources.of(sources)
        types = _stated_types(sources) if stated else None
        if types is not None:
            return cls(tuple(types))
        values: dict[str, set[str]] = {}
        types_of_columns: dict[str, set[pa.DataType | None]] = {}
        of_manifest: dict[bytes | None, dict[str, pa.DataType]] = {None: {}}
        for source in sources:
            content = _stated_content(source) if stated else None
            if content not in of_manifest:
                of_manifest[content] = {field.name: field.type for field in _unpack_schema(content) or ()}
            for name, value in source.partitions:
                values.setdefault(name, set()).update(() if value is None else (value,))
                types_of_columns.setdefault(name, set()).add(of_manifest[content].get(name))
        return cls(tuple(pa.field(name, _type_of(texts, types_of_columns[name])) for name, texts in values.items()))

    @property
    def names(self) -> list[str]:
        """The columns of directories."""
        return [field.name for field in self.fields]

    def declare_types(self, schema: Schema, sources: Sequence[Source]) -> tuple[AddedColumns, Schema]:
        """Apply a declared schema to these columns, and return the rest of the schema, for the features.

        SchemaError if a directory name is not a value of the declared type.
        """
        names = self.names
        declared = {f.column: f.to_arrow() for f in schema if f.column in names and f.feature == f.column}
        AddedColumns(tuple(declared.values())).values_in(Sources.of(sources))
        fields = tuple(declared.get(field.name, field) for field in self.fields)
        features = schema.select(name for name in schema.names if name not in declared)
        return self._replace(fields=fields, declared_order=tuple(schema.names)), features

    def override_types(
        self, overrides: Mapping[str, Any] | None, sources: Sequence[Source]
    ) -> tuple[AddedColumns, dict[str, Any]]:
        """Apply ``schema_overrides=`` to these columns, and return the rest of the overrides, for the features.

        SchemaError if a directory name is not a value of the declared type.
        """
        all_overrides = dict(overrides or {})
        of_partitions = {key: type_ for key, type_ in all_overrides.items() if NamePattern(key).matches_any(self.names)}
        if not of_partitions:
            return self, all_overrides
        types, _ = self.declare_types(Overrides(of_partitions).apply(pa.schema(self.fields)), sources)
        names = {*self.names, *(key for key in of_partitions if not NamePattern(key).is_glob)}
        of_features = {key: type_ for key, type_ in all_overrides.items() if key not in names}
        return self._replace(fields=types.fields), of_features

    def refuse_features(self, features: Iterable[str], sources: Sequence[Source]) -> None:
        """Raise SchemaError if a feature and a directory define the same column."""
        names = self.names
        for name in features if names else ():
            if name in names:
                source = next(s for s in sources if any(partition == name for partition, _ in s.partitions))
                folder = f"{name}={dict(source.partitions)[name]}"
                reason = f"a feature and the directory '{folder}' both define this column"
                advice = "rename the directories, or read their files by an explicit list"
                raise SchemaError(reason, path=source.path, feature=name, hint=advice)

    def extend_schema(self, schema: pa.Schema, projection: Projection) -> pa.Schema:
        """`schema` with the selected columns of directories, at the end or in the order of the projection; then paths.

        SchemaError if a column has the name of the column of paths.
        """
        selected = [field for field in self.fields if projection(field.name)]
        if selected:
            fields = {field.name: field for field in [*schema, *selected]}
            names = [name for name in dict.fromkeys([*self.declared_order, *fields]) if name in fields]
            order = dict.fromkeys([*projection.order(names), *names])
            schema = pa.schema([fields[name] for name in order], metadata=schema.metadata)
        if self.path is None:
            return schema
        if self.path in schema.names:
            reason = "include_file_paths= names a column that exists"
            raise SchemaError(reason, feature=self.path, hint="pass another name")
        return schema.append(pa.field(self.path, pa.string()))

    def within(self, schema: pa.Schema) -> pa.Schema:
        """The added columns of a schema."""
        names = {*self.names, self.path}
        return pa.schema([field for field in schema if field.name in names])

    def add_to(self, batch: pa.RecordBatch, sources: Sequence[Source], schema: pa.Schema) -> pa.RecordBatch:
        """Extend `batch` by the added columns of `schema`, in the order of `schema`.

        `sources` are those of each row, or the one of all rows.
        """
        present = {*self.within(schema).names}
        if not present:
            return batch
        distinct = {id(source): source for source in sources}
        indices = np.zeros(len(batch), np.int64)  # of each row's source
        if len(distinct) > 1:
            numbers = {key: number for number, key in enumerate(distinct)}
            indices = np.array([numbers[id(source)] for source in sources], np.int64)
        added: dict[str, pa.Array] = {}
        for field in (field for field in self.fields if field.name in present):
            values = [_value(field, dict(source.partitions).get(field.name), source) for source in distinct.values()]
            added[field.name] = _concat(values, field.type).take(int64_array(indices))
        if self.path is not None and self.path in present:
            paths = _texts([source.path for source in distinct.values()], self.path)
            added[self.path] = paths.take(int64_array(indices))
        for index, name in sorted((schema.get_field_index(name), name) for name in added):
            batch = batch.add_column(index, schema.field(index), added[name])
        return batch

    def values_in(self, sources: Sources) -> tuple[pa.RecordBatch, Array]:
        """The values of these columns in each different folder, as a row, and the number of each file's row.

        SchemaError if a directory name is not a value of a column's type, or not UTF-8.
        """
        if not self.fields:
            return pa.RecordBatch.from_arrays([pa.nulls(1)], ["x"]).select([]), np.zeros(len(sources), np.int64)
        try:
            texts, numbers = sources.folders(self.names)
            arrays = [_cast(field, texts[field.name]) for field in self.fields]
        except (pa.ArrowException, UnicodeEncodeError, SchemaError):  # the first file with such a folder is to be named
            texts, numbers = {}, np.arange(len(sources))
            arrays = [
                _concat(
                    [_value(field, dict(source.partitions).get(field.name), source) for source in sources], field.type
                )
                for field in self.fields
            ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(self.fields)), numbers

    def row_of(self, source: Source, schema: pa.Schema) -> pa.RecordBatch:
        """A row with what all rows of a file have of `schema`, whose other columns are left out."""
        nothing = pa.RecordBatch.from_arrays([pa.nulls(1)], ["x"]).select([])
        return self.add_to(nothing, [source], self.within(schema))


def _concat(values: list[pa.Array], type_: pa.DataType) -> pa.Array:
    """Arrays of one type as one; those of a dictionary get a common one."""
    column = pa.chunked_array(values, type_)
    return (Column.one_dictionary(column) if pa.types.is_dictionary(type_) else column).combine_chunks()


def _cast(field: pa.Field, texts: pa.StringArray) -> pa.Array:
    """Texts as values of a column; SchemaError without a text where the column must have a value."""
    values = texts.cast(field.type)
    if not texts.null_count:
        return values
    declared = Field.from_arrow(field)
    if declared.default is not None:
        return values.fill_null(_default(declared)[0])
    if not field.nullable:
        raise SchemaError("a file is in no such directory", feature=field.name)
    return values


def _default(declared: Field) -> pa.Array:
    """The default of a column, as an array of one value."""
    default, type_ = declared.default_array(), declared.type
    if not pa.types.is_dictionary(type_):
        return default.cast(type_)
    return pa.DictionaryArray.from_arrays(pa.array([0], type_.index_type), default, ordered=type_.ordered)


def _stated_content(source: Source) -> bytes | None:
    """The types of the partition columns that the manifest of a file states."""
    shard = source.stated_shard
    return None if shard is None else shard.manifest.partition_schema


def _unpack_schema(content: bytes | None) -> pa.Schema | None:
    with suppress(EmbeddedSchema.Unreadable):
        return None if content is None else EmbeddedSchema.parse(content).schema
    return None


def _stated_types(sources: Sources) -> pa.Schema | None:
    """The types of the partition columns, if one manifest states them for all files."""
    contents = {None if manifest is None else manifest.partition_schema for manifest in sources.manifest_versions}
    types = _unpack_schema(contents.pop()) if len(contents) == 1 else None
    names = sources.partition_names if types is not None else []
    return types if types is not None and names and types.names == names else None


def _type_of(texts: set[str], stated: set[pa.DataType | None]) -> pa.DataType:
    """The type of a column with these texts, given the types of the manifests; None: one states nothing."""
    if len(stated) == 1 and (type_ := next(iter(stated))) is not None:
        return type_
    may_be_integers = all(type_ is None or pa.types.is_integer(type_) for type_ in stated)
    integers = bool(texts) and all(re.fullmatch(_INTEGER, text) and _LEAST <= int(text) <= _MOST for text in texts)
    return pa.int64() if may_be_integers and integers else pa.string()


def _value(field: pa.Field, text: str | None, source: Source) -> pa.Array:
    """The value in a directory name, as an array of one value."""
    if text is None and (declared := Field.from_arrow(field)).default is not None:
        return _default(declared)
    if text is None and field.nullable:
        return pa.nulls(1, field.type)
    if text is None:
        is_named = any(name == field.name for name, _ in source.partitions)
        place = f"is not in a directory '{field.name}=...'"
        if is_named:
            from tfrecord_io.store import ColumnFolder  # for this error only

            place = f"has no value in '{ColumnFolder(field.name, None).name}'"
        reason = f"the file {place}, but the schema requires the column"
        raise SchemaError(reason, path=source.path, feature=field.name, expected=Column(field).logical_name)
    try:
        return _texts([text], field.name, source.path).cast(field.type)
    except pa.ArrowException as error:
        expected = Column(field).logical_name
        reason = f"the directory '{field.name}={text}' is not a value of the declared type {expected}"
        advice = "declare another type, or leave the column out of the schema"
        raise SchemaError(
            reason, path=source.path, feature=field.name, expected=expected, got=text, hint=advice
        ) from error


def _texts(names: list[str], column: str, path: str | None = None) -> pa.Array:
    """Names of files or folders as values; SchemaError if one is not UTF-8, which Linux permits."""
    try:
        return pa.array(names, pa.string())
    except UnicodeEncodeError as error:
        reason = f"the name '{error.object}' is not UTF-8, so it cannot be a value of a column of text"
        advice = "rename the file or folder, or leave the column out"
        raise SchemaError(reason, path=path, feature=column, hint=advice) from None
