"""``schema_overrides=``: an inferred schema with some of its columns as they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tfrecord_io.errors import FeatureNotFoundError
from tfrecord_io.schema.column_selection import is_glob, matches
from tfrecord_io.schema.field import Field
from tfrecord_io.schema.schema import Schema, field_of


def apply_overrides(inferred: Schema | pa.Schema, overrides: Mapping[str, Any]) -> Schema:
    """The schema with the named columns replaced; their names and places stay.

    Parameters
    ----------
    inferred : Schema or pa.Schema
    overrides : mapping of str to field, type or type name
        Keys are names of columns and globs. A literal name wins over a glob; of several globs the first in the mapping
        that fits wins.

    Raises
    ------
    FeatureNotFoundError
        A key fits no column.
    SchemaError, TypeError
        A value is no type.

    Examples
    --------
    >>> inferred = pa.schema({"box/x": pa.float32(), "box/y": pa.float32(), "id": pa.int64()})
    >>> apply_overrides(inferred, {"box/*": "list<float>", "id": "int32"})
    Schema of 3 columns
      box/x  list<item: float>
      box/y  list<item: float>
      id     int32
    """
    schema = Schema.parse(inferred)
    for key in overrides:
        if key not in schema and not (is_glob(key) and any(matches(key, name) for name in schema.names)):
            listed = ", ".join(sorted(schema.names)[:20]) or "none"
            raise FeatureNotFoundError(
                f"schema_overrides names '{key}', and no column matches", feature=key, advice=f"there are: {listed}"
            )
    return Schema((_overridden(f, overrides) for f in schema), schema.metadata)


def _overridden(f: Field, overrides: Mapping[str, Any]) -> Field:
    key = (
        f.column
        if f.column in overrides
        else next((key for key in overrides if is_glob(key) and matches(key, f.column)), None)
    )
    if key is None:
        return f
    made = field_of(f.column, overrides[key])
    return made if made.feature != f.column else replace(made, feature=f.feature)
