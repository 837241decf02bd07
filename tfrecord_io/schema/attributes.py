"""Attributes of arrays, such as ``units`` of NetCDF, in the metadata of a field: a JSON object under one key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

KEY = b"attributes"


def with_attributes(schema: pa.Schema, attributes: Mapping[str, Mapping[Any, Any]]) -> pa.Schema:
    """The schema with the attributes of its columns; values that JSON does not have are stored as text.

    >>> schema = with_attributes(pa.schema([("t", pa.float32())]), {"t": {"units": "K", "levels": np.arange(2)}})
    >>> attributes_of(schema.field("t"))
    {'units': 'K', 'levels': [0, 1]}
    """
    for at, field in enumerate(schema):
        if own := {str(name): _plain(value) for name, value in attributes.get(field.name, {}).items()}:
            metadata = {**(field.metadata or {}), KEY: json.dumps(own, ensure_ascii=False).encode("utf-8", "replace")}
            schema = schema.set(at, field.with_metadata(metadata))
    return schema


def attributes_of(field: pa.Field) -> dict[str, Any]:
    """The attributes of a column; none if the metadata is of something else."""
    try:
        found = json.loads((field.metadata or {}).get(KEY, b"{}"))
    except (ValueError, RecursionError):  # written by another program
        return {}
    return found if isinstance(found, dict) else {}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
