"""Columns that folders stand for: ``data/label=cat/part-00000.tfrecord`` gives ``label`` to all rows of its file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import copy

import numpy as np
import pyarrow as pa

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.column_selection import Projection
from tfrecord_io.schema.schema import Schema
from tfrecord_io.schema.type_names import logical_name
from tfrecord_io.storage.read.source import Source

_INTEGER = re.compile(r"-?[0-9]+")
_LEAST, _MOST = -(2**63), 2**63 - 1


class PartitionColumns:
    """The columns of the folders that files are in, behind the features; one that no file's folders name has none.

    Of the declared type where a schema names them, else int64 where all values are integers, else string; null where a file is in
    no such folder.

    Attributes
    ----------
    names : list of str
        Of all of them, also of those that are not wanted.
    """

    def __init__(self, sources: Sequence[Source], wanted: Projection) -> None:
        self._sources = sources
        self.names = list(dict.fromkeys(name for source in sources for name, _ in source.partitions))
        self._fields = [self._field(name) for name in self.names if wanted(name)]
        self._projection = wanted
        self._order: list[str] = []  # of the columns of a declared schema
        self._schema: pa.Schema | None = None

    def _field(self, name: str) -> pa.Field:
        values = {
            value for source in self._sources for each, value in source.partitions if each == name and value is not None
        }
        whole = bool(values) and all(_INTEGER.fullmatch(v) and _LEAST <= int(v) <= _MOST for v in values)
        return pa.field(name, pa.int64() if whole else pa.string())

    def declared(self, schema: Schema) -> Schema:
        """What is left of a declared schema for the records: its columns of the folders' names are theirs.

        Raises
        ------
        SchemaError
            A folder's name is no value of the declared type.
        """
        own = {f.column: f.to_arrow() for f in schema if f.column in self.names and f.feature == f.column}
        self._order = schema.names
        for source in self._sources:
            for name, field in own.items():
                _value(field, dict(source.partitions).get(name), source)
        self._fields = [own.get(field.name, field) for field in self._fields]
        return schema.select(name for name in schema.names if name not in own)

    def over(self, sources: Sequence[Source]) -> PartitionColumns:
        """The same columns for other files."""
        other = copy(self)
        other._sources = sources
        return other

    def refuse_features(self, features: Iterable[str]) -> None:
        """A feature and a folder may not give one column.

        Raises
        ------
        SchemaError
        """
        for name in features:
            if name in self.names:
                source = next(s for s in self._sources if any(each == name for each, _ in s.partitions))
                value = next(value for each, value in source.partitions if each == name)
                raise SchemaError(
                    f"a feature and the folder '{name}={value}' both give a column of this name",
                    path=source.path,
                    feature=name,
                    advice="rename the folders, or read their files by an explicit list",
                )

    def extended(self, schema: pa.Schema) -> pa.Schema:
        """The schema with these columns: at the end, or where the projection says."""
        if not self._fields:
            return schema
        found = {field.name: field for field in [*schema, *self._fields]}
        fields = {name: found[name] for name in dict.fromkeys([*self._order, *found]) if name in found}
        order = self._projection.order(list(fields))
        self._schema = pa.schema([fields[n] for n in dict.fromkeys([*order, *fields])], metadata=schema.metadata)
        return self._schema

    def add_to(self, batch: pa.RecordBatch, files: Sequence[int]) -> pa.RecordBatch:
        """The batch with these columns; `files` is the number of the file of each row, or one number for all rows."""
        if self._schema is None:
            return batch
        numbers = list(dict.fromkeys(files))
        places = {file: place for place, file in enumerate(numbers)}
        rows = (
            np.zeros(len(batch), np.int64)
            if len(numbers) == 1
            else np.array([places[file] for file in files], np.int64)
        )
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for field in self._fields:
            values = [
                _value(field, dict(source.partitions).get(field.name), source)
                for source in map(self._sources.__getitem__, numbers)
            ]
            columns[field.name] = pa.chunked_array(values, field.type).combine_chunks().take(pa.array(rows))
        return pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)


def _value(field: pa.Field, text: str | None, source: Source) -> pa.Array:
    """The value of a folder as an array of one."""
    if text is None and field.nullable:
        return pa.nulls(1, field.type)
    expected = logical_name(field.type, field.metadata)
    if text is None:
        reason = f"the file is in no folder '{field.name}=...', and the schema requires the column"
        raise SchemaError(reason, path=source.path, feature=field.name, expected=expected)
    try:
        return pa.array([text], pa.string()).cast(field.type)
    except pa.ArrowException as error:
        reason = f"the folder '{field.name}={text}' is no {expected}, which the schema says"
        advice = "declare another type, or leave the column out of the schema"
        raise SchemaError(
            reason, path=source.path, feature=field.name, expected=expected, got=text, advice=advice
        ) from error
