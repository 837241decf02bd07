"""Attributes of labelled arrays, in the metadata of a field, each as JSON under one key.

These are attributes, such as ``units`` of NetCDF, and the names of dimensions without that of the rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.columns.schema.field import ROW_DIMENSION
from tfrecord_io.columns.schema.types import replace_fields

KEY = b"attributes"
DIMENSIONS = b"dimensions"


def add_attributes(schema: pa.Schema, attributes: Mapping[str, Mapping[Any, Any]]) -> pa.Schema:
    """Add attributes to the metadata of columns; values that JSON does not have are stored as text.

    >>> schema = add_attributes(pa.schema([("t", pa.float32())]), {"t": {"units": "K", "levels": np.arange(2)}})
    >>> attributes_of(schema.field("t"))
    {'units': 'K', 'levels': [0, 1]}
    """
    changed = {}
    for at, field in enumerate(schema):
        if values := {str(name): _plain(value) for name, value in attributes.get(field.name, {}).items()}:
            changed[at] = _add_json(field, KEY, values)
    return replace_fields(schema, changed)


def add_dimensions(schema: pa.Schema, dimensions: Mapping[str, Sequence[str]]) -> pa.Schema:
    """Add the names of dimensions to the metadata of columns, without the dimension of the rows.

    >>> schema = add_dimensions(pa.schema([("t", pa.list_(pa.float32(), 2))]), {"t": ["lat"]})
    >>> dimensions_of(schema.field("t"))
    ['lat']
    """
    changed = {}
    for at, field in enumerate(schema):
        if names := dimensions.get(field.name):
            changed[at] = _add_json(field, DIMENSIONS, list(names))
    return replace_fields(schema, changed)


def dimension_names(name: str, shape: Sequence[int], stated: Sequence[str], sizes: dict[str, int]) -> list[str]:
    """The names of a variable's dimensions without that of the rows: those `stated`, else ``name_0``, ``name_1``.

    A name that another variable has for another size (see `sizes`, to which these are added) is not used for this one.

    >>> sizes = {"record": 9}
    >>> dimension_names("t", (2, 3), ["lat", "lon"], sizes), dimension_names("u", (4,), ["lat"], sizes)
    (['lat', 'lon'], ['u_0'])
    """
    is_possible = len(stated) == len(shape) == len(set(stated)) and ROW_DIMENSION not in stated
    if is_possible and all(sizes.get(dim, size) == size for dim, size in zip(stated, shape, strict=True)):
        names = list(stated)
    else:
        defaults = [f"{name}_{axis}" for axis in range(len(shape))]
        names = [
            dim if sizes.get(dim, size) == size else f"{dim}_of_{size}"
            for dim, size in zip(defaults, shape, strict=True)
        ]
    sizes.update(zip(names, shape, strict=True))
    return names


def is_other_time(type_: pa.DataType) -> bool:
    """True if NumPy has values of this type as those of another one: without a zone, or as durations."""
    return bool(t.is_time(type_) or (t.is_timestamp(type_) and type_.tz is not None))


def _add_json(field: pa.Field, key: bytes, value: Any) -> pa.Field:
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    return field.with_metadata({**(field.metadata or {}), key: text})


def attributes_of(field: pa.Field) -> dict[str, Any]:
    """The attributes of a column; none if the metadata is of something else."""
    attributes = _json_of(field, KEY)
    return attributes if isinstance(attributes, dict) else {}


def dimensions_of(field: pa.Field) -> list[str]:
    """The names of a column's dimensions, without that of the rows; none if the metadata is of something else."""
    dimensions = _json_of(field, DIMENSIONS)
    return dimensions if isinstance(dimensions, list) and all(isinstance(name, str) for name in dimensions) else []


def _json_of(field: pa.Field, key: bytes) -> Any:
    try:
        return json.loads((field.metadata or {}).get(key, b"null"))
    except (ValueError, RecursionError):  # written by another program
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
