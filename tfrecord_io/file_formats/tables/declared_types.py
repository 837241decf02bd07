"""The types of columns in formats that have none, such as CSV: those that the caller declares, or inferred ones."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tfrecord_io.errors import SchemaError
from tfrecord_io.file_formats.tables.source_options import SourceOptions
from tfrecord_io.schema.column_selection import apply_overrides
from tfrecord_io.schema.schema import Schema
from tfrecord_io.schema.type_names import logical_name

ADVICE = "declare the types of such columns with schema_overrides=, for example as text"


def declared_types(inferred: pa.Schema, options: SourceOptions, can_parse: Callable[[pa.DataType], bool]) -> pa.Schema:
    """The inferred schema with the types that ``schema=`` and ``schema_overrides=`` declare.

    A type of ``schema=`` that the format cannot parse is left to the writer, which casts what was inferred.

    Raises
    ------
    FeatureNotFoundError
        An override matches no column.
    SchemaError
        The format cannot parse the type of an override.
    """
    types = {field.name: field.type for field in inferred}
    if options.schema is not None:
        for field in Schema.parse(options.schema):
            declared = field.to_arrow().type
            if field.column in types and can_parse(declared):
                types[field.column] = declared
    if options.schema_overrides:
        for field in apply_overrides(pa.schema(list(types.items())), options.schema_overrides):
            arrow = field.to_arrow()
            if arrow.type != types[field.column] and not can_parse(arrow.type):
                name = logical_name(arrow.type, arrow.metadata)
                advice = "declare it with schema=, or declare it as text"
                raise SchemaError(f"the file format cannot hold {name}", feature=field.column, got=name, advice=advice)
            types[field.column] = arrow.type
    return pa.schema([field.with_type(types[field.name]) for field in inferred])
