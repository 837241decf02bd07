"""The description of a DataFrame in a schema's metadata (key ``pandas``): its index, dtypes and labels."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

KEY = b"pandas"
_UNNAMED = re.compile(r"__index_level_\d+__")  # the column of an index level without a name
_PARTS: dict[str, type] = {"index_columns": list, "columns": list, "column_indexes": list, "attributes": dict}


def frame_description(schema: pa.Schema) -> dict[str, Any]:
    """The pandas metadata of a schema, its entries for columns by field name.

    Parts that are missing or of a wrong type are empty.
    """
    metadata = _loaded(schema.metadata)
    stated: dict[str, Any] = {}
    for key, kind in _PARTS.items():
        stated[key] = value if isinstance(value := metadata.get(key), kind) else kind()
    stated["columns"] = {_field_name(entry): entry for entry in stated["columns"] if _is_entry(entry)}
    return stated


def _loaded(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    try:
        loaded = json.loads((metadata or {}).get(KEY, b"{}"))
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _field_name(entry: Mapping[str, Any]) -> Any:
    return entry.get("field_name", entry.get("name"))


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("numpy_type"), str):
        return False
    return isinstance(_field_name(entry), str) and isinstance(entry.get("name"), str | None)


def is_unnamed(field: str) -> bool:
    """Whether a column's name is one that pandas gives to index levels without a name."""
    return _UNNAMED.fullmatch(field) is not None


def stored_index(schema: pa.Schema) -> list[str]:
    """Names of the columns of a schema that are levels of the frame's index."""
    names = [each for each in frame_description(schema)["index_columns"] if isinstance(each, str)]
    return [name for name in dict.fromkeys(names) if name in schema.names]


def lost_levels(schema: pa.Schema) -> list[str]:
    """Names of the columns that were index levels without a name, in a schema whose index was removed."""
    stated, index = frame_description(schema), stored_index(schema)
    entries = {
        name: entry for name, entry in stated["columns"].items() if is_unnamed(name) and entry.get("name") is None
    }
    return [name for name in schema.names if name in entries and name not in index]


def without_index(schema: pa.Schema) -> pa.Schema:
    """The schema, in whose metadata no column is a level of the index."""
    if not stored_index(schema):
        return schema
    return _described(schema, {**_loaded(schema.metadata), "index_columns": []})


def describe_both(schema: pa.Schema, a: pa.Schema, b: pa.Schema) -> pa.Schema:
    """`schema`, which unites `a` and `b`, with the metadata of `a` and the entries for columns that only `b` has.

    An index, or labels of columns, that `b` describes otherwise are left out.
    """
    schema = schema.with_metadata(a.metadata)
    own, other = frame_description(a), frame_description(b)
    added = {name: entry for name, entry in other["columns"].items() if name not in a.names}
    changes: dict[str, Any] = {}
    if added:
        changes["columns"] = [*own["columns"].values(), *added.values()]
    if stored_index(a) != stored_index(b):
        changes["index_columns"] = []
    if own["column_indexes"] != other["column_indexes"]:
        changes["column_indexes"] = []
    return _described(schema, {**_loaded(a.metadata), **changes}) if changes else schema


def _described(schema: pa.Schema, description: Mapping[str, Any]) -> pa.Schema:
    return schema.with_metadata({**(schema.metadata or {}), KEY: json.dumps(description).encode()})
