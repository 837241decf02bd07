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

from tfrecord_io.schema.types import with_fields_at

KEY = b"attributes"
DIMENSIONS = b"dimensions"
TYPE = "tfrecord_io.type"  # attribute of times that NumPy has as another type: the name of the original type
RECORD = "record"  # the dimension of the rows, in what is made of columns


def with_attributes(schema: pa.Schema, attributes: Mapping[str, Mapping[Any, Any]]) -> pa.Schema:
    """The schema with the attributes of its columns; values that JSON does not have are stored as text.

    >>> schema = with_attributes(pa.schema([("t", pa.float32())]), {"t": {"units": "K", "levels": np.arange(2)}})
    >>> attributes_of(schema.field("t"))
    {'units': 'K', 'levels': [0, 1]}
    """
    changed = {}
    for at, field in enumerate(schema):
        if own := {str(name): _plain(value) for name, value in attributes.get(field.name, {}).items()}:
            changed[at] = _add_json(field, KEY, own)
    return with_fields_at(schema, changed)


def with_dimensions(schema: pa.Schema, dimensions: Mapping[str, Sequence[str]]) -> pa.Schema:
    """The schema with the names of its columns' dimensions, without that of the rows.

    >>> schema = with_dimensions(pa.schema([("t", pa.list_(pa.float32(), 2))]), {"t": ["lat"]})
    >>> dimensions_of(schema.field("t"))
    ['lat']
    """
    stated = ((at, field, dimensions.get(field.name)) for at, field in enumerate(schema))
    return with_fields_at(schema, {at: _add_json(field, DIMENSIONS, list(own)) for at, field, own in stated if own})


def dimension_names(name: str, shape: Sequence[int], stated: Sequence[str], sizes: dict[str, int]) -> list[str]:
    """The names of a variable's dimensions without that of the rows: those `stated`, else ``name_0``, ``name_1``.

    A name that another variable has for another size (see `sizes`, to which these are added) is not used for this one.

    >>> sizes = {"record": 9}
    >>> dimension_names("t", (2, 3), ["lat", "lon"], sizes), dimension_names("u", (4,), ["lat"], sizes)
    (['lat', 'lon'], ['u_0'])
    """
    is_possible = len(stated) == len(shape) == len(set(stated)) and RECORD not in stated
    if is_possible and all(sizes.get(dim, size) == size for dim, size in zip(stated, shape, strict=True)):
        names = list(stated)
    else:
        made = [f"{name}_{axis}" for axis in range(len(shape))]
        names = [
            dim if sizes.get(dim, size) == size else f"{dim}_of_{size}" for dim, size in zip(made, shape, strict=True)
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
    found = _json_of(field, KEY)
    return found if isinstance(found, dict) else {}


def dimensions_of(field: pa.Field) -> list[str]:
    """The names of a column's dimensions, without that of the rows; none if the metadata is of something else."""
    found = _json_of(field, DIMENSIONS)
    return found if isinstance(found, list) and all(isinstance(name, str) for name in found) else []


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
