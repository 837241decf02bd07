"""Embedded schemas of several files as one that covers them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from tfrecord_io.arrow.categories import join_categories
from tfrecord_io.arrow.output.pandas_metadata import describe_both
from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.schema.embedded import equal_types, unpack


@dataclass(frozen=True, slots=True)
class EmbeddedSchema:
    """The embedded schema that governs a read, and the first file that carries it.

    Attributes
    ----------
    origins : mapping of str to str
        The other files that columns were added from, by column.
    """

    schema: pa.Schema
    dictionaries: Mapping[str, pa.Array]
    path: str
    origins: Mapping[str, str] = field(default_factory=dict)

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

    def origin(self, column: str) -> str:
        """The path of the file that a column and its type are from."""
        return self.origins.get(column, self.path)


def merge(a: EmbeddedSchema, b: EmbeddedSchema) -> EmbeddedSchema:
    """The schema that covers both: `a` itself if it covers `b`.

    Columns are compared by name and type: the null type unifies with any type, a missing column is null. An index that
    only one of them has is not one of the result; its levels are columns.

    Raises
    ------
    SchemaError
        A column has two types; both files are named.
    """
    names_of_b = set(b.schema.names)
    fields = {f.name: f if f.name in names_of_b else f.with_nullable(True) for f in a.schema}
    origins = dict(a.origins)
    changed = any(f.nullable != a.schema.field(f.name).nullable for f in fields.values())
    for other in b.schema:
        known = fields.get(other.name)
        if known is None or (pa.types.is_null(known.type) and not pa.types.is_null(other.type)):
            fields[other.name] = other.with_nullable(True)
            origins[other.name] = b.origin(other.name)
            changed = True
        elif not pa.types.is_null(other.type) and not equal_types(pa.schema([known]), pa.schema([other])):
            before = printable(a.origin(other.name))
            raise SchemaError(
                f"its type is {known.type} in {before} and {other.type} in {printable(b.path)}",
                path=b.path,
                feature=other.name,
                expected=str(known.type),
                got=str(other.type),
                advice="read the files separately, or pass schema=",
            )
    dictionaries = dict(a.dictionaries)
    for name, values in b.dictionaries.items():
        known = dictionaries.get(name)
        joined = values if known is None else join_categories(known, values)
        changed |= joined is not known
        dictionaries[name] = joined
    if not changed:
        return a
    schema = describe_both(pa.schema(list(fields.values())), a.schema, b.schema)
    return EmbeddedSchema(schema, dictionaries, a.path, origins)
