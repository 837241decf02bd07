"""Embedded schemas of several files as one that covers them all."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa

from tfrecord_io.arrow.casts import join_categories
from tfrecord_io.arrow.output.pandas_metadata import describe_both, feature_descriptions, united_features
from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.schema.common_type import common_field
from tfrecord_io.schema.embedded import has_dictionary, unpack
from tfrecord_io.schema.leaf import ENCODING_KEY, leaves, step_field
from tfrecord_io.schema.types import uncommon, value_type


@dataclass(frozen=True, slots=True)
class EmbeddedSchema:
    """The embedded schema that governs a read, and the first file that carries it.

    Attributes
    ----------
    origins : mapping of str to str
        The other files that columns were added from, by column.
    conflicts : mapping of str to SchemaError
        By column: the error for reading it, as files have types for it that no type has in common.
    """

    schema: pa.Schema
    dictionaries: Mapping[str, pa.Array]
    path: str
    origins: Mapping[str, str] = field(default_factory=dict)
    conflicts: Mapping[str, SchemaError] = field(default_factory=dict)

    @classmethod
    def of(cls, content: bytes, path: str) -> Self:
        """The schema that a record of a file, or the manifest at `path`, carries.

        Raises
        ------
        EmbeddedSchemaUnreadable
            The content is not a schema of this package.
        """
        embedded = unpack(content)
        return cls(embedded.schema, embedded.dictionaries, path)

    def __reduce__(self) -> tuple[Any, ...]:  # pyarrow does not pickle tensors of shapes that vary
        state = (self.dictionaries, self.path, self.origins, self.conflicts)
        return _unpickle, (self.schema.serialize().to_pybytes(), *state)

    def origin(self, column: str) -> str:
        """The path of the file that a column and its type are from."""
        return self.origins.get(column, self.path)

    def refuse_conflicts(self, columns: Container[str] | None = None) -> None:
        """Raise SchemaError if one of the columns, by default of all, has types that no type has in common."""
        for column, error in self.conflicts.items():
            if columns is None or column in columns:
                raise error


def _unpickle(schema: bytes, *state: Any) -> EmbeddedSchema:
    return EmbeddedSchema(pa.ipc.read_schema(pa.py_buffer(schema)), *state)


def merge(a: EmbeddedSchema, b: EmbeddedSchema) -> EmbeddedSchema:
    """The schema that covers both: `a` itself if it covers `b`.

    Columns are united by name: their type is the one that holds the values of both (`common_field`), a missing column
    is null. A column whose types have none in common stays that of `a`, and is one of the `conflicts`. An index that
    only one of them has is not one of the result; its levels are columns.
    """
    fields = {f.name: f for f in a.schema}
    origins, conflicts = dict(a.origins), {**b.conflicts, **a.conflicts}
    names_of_b = set(b.schema.names)
    for known in a.schema:
        if known.name not in names_of_b:
            fields[known.name] = known.with_nullable(True)
    for other in b.schema:
        before = fields.get(other.name)
        if before is None:
            fields[other.name] = other.with_nullable(True)
            origins[other.name] = b.origin(other.name)
        elif other.name not in conflicts:
            common = common_field(before, other)
            if common is None:
                conflicts[other.name] = _conflict(a, b, before, other)
            elif pa.types.is_null(before.type) and not pa.types.is_null(other.type):
                origins[other.name] = b.origin(other.name)
            fields[other.name] = common or before
    dictionaries = _joined_dictionaries(a, b)
    united = pa.schema(list(fields.values()))
    is_covered = dictionaries.keys() == a.dictionaries.keys() and len(conflicts) == len(a.conflicts)
    is_covered &= all(values is a.dictionaries.get(name) for name, values in dictionaries.items())
    is_covered &= united_features(a.schema, b.schema) == feature_descriptions(a.schema)
    if is_covered and united.equals(a.schema) and _encodings(united) == _encodings(a.schema):
        return a
    return EmbeddedSchema(describe_both(united, a.schema, b.schema), dictionaries, a.path, origins, conflicts)


def _encodings(schema: pa.Schema) -> list[bytes | None]:
    return [(f.metadata or {}).get(ENCODING_KEY) for f in schema]


def _conflict(a: EmbeddedSchema, b: EmbeddedSchema, before: pa.Field, other: pa.Field) -> SchemaError:
    """The error for a column whose types in two files have no type in common."""
    name = other.name
    types = [value_type(f.type) for f in (before, other)]
    advice = f"leave it out by columns=['*', '!{name}'], or read the files separately"
    if any(map(pa.types.is_integer, types)) and any(map(pa.types.is_floating, types)):
        advice = f"declare a type for both by schema_overrides={{'{name}': 'float64'}}, or {advice}"
    return SchemaError(
        f"its type is {before.type} in {printable(a.origin(name))} and {other.type} in {printable(b.origin(name))}",
        path=b.origin(name),
        feature=name,
        expected=str(before.type),
        got=str(other.type),
        advice=advice,
    )


def _joined_dictionaries(a: EmbeddedSchema, b: EmbeddedSchema) -> Mapping[str, pa.Array]:
    """The categories of both; of a column of both that lacks them in one of the schemas there are none."""
    if not a.dictionaries and not b.dictionaries:
        return a.dictionaries
    of_a, of_b = _dictionary_features(a.schema), _dictionary_features(b.schema)
    joined = {name: values for name, values in a.dictionaries.items() if name not in of_b}
    joined |= {name: values for name, values in b.dictionaries.items() if name not in of_a}
    for name in a.dictionaries.keys() & b.dictionaries.keys():
        known, values = a.dictionaries[name], b.dictionaries[name]
        common = common_field(pa.field(name, known.type), pa.field(name, values.type))
        if common is not None:
            known = known if known.type == common.type else known.cast(common.type)
            joined[name] = join_categories(known, values)
    return joined


def _dictionary_features(schema: pa.Schema) -> set[str]:
    """The features whose values have categories."""
    columns = [schema.field(at) for at in uncommon(schema)]
    found = [leaf for column in columns for leaf in leaves(step_field(column) or column)]
    return {leaf.feature for leaf in found if has_dictionary(leaf.type)}
