"""Read and change the entries of other libraries about columns in a schema's metadata.

Key ``pandas``: the index, dtypes and labels of a DataFrame; key ``huggingface``: the features of Hugging Face datasets.

Tests: tests/columns/arrow/output/test_to_pandas.py.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

KEY = b"pandas"
FEATURES_KEY = b"huggingface"
UNNAMED = re.compile(r"__index_level_\d+__")  # the column of an index level without a name
_SPARSE = "tfrecord_io.sparse"  # in the metadata of a column's entry: the value that is left out
_ARROW = "tfrecord_io.columns.arrow"  # the dtype of Arrow that a column is read with
_CATEGORIES = "tfrecord_io.categories"  # the periods or intervals that the texts of a column of categories stand for
_LABELS = "tfrecord_io.labels"  # in the metadata of a level of the columns' labels: periods or intervals, by column
_PARTS: dict[str, type] = {"index_columns": list, "columns": list, "column_indexes": list, "attributes": dict}


def frame_description(schema: pa.Schema) -> dict[str, Any]:
    """The pandas metadata of a schema, its entries for columns by field name.

    Parts that are missing or of a wrong type are empty.
    """
    metadata = _load_json(schema)
    description: dict[str, Any] = {}
    for key, kind in _PARTS.items():
        description[key] = value if isinstance(value := metadata.get(key), kind) else kind()
    entries, description["columns"] = description["columns"], {}
    for entry in entries:
        if isinstance(entry, dict) and isinstance(entry.get("numpy_type"), str):
            label = entry.get("name")
            name = entry.get("field_name", label)
            if isinstance(name, str) and (isinstance(label, str | None) or label != label):  # NaN is a label, too
                description["columns"][name] = entry
    return description


def _load_json(schema: pa.Schema, key: bytes = KEY) -> dict[str, Any]:
    text = (schema.metadata or {}).get(key)
    if text is None:
        return {}
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def stored_index(schema: pa.Schema, stated: Mapping[str, Any] | None = None) -> list[str]:
    """Names of the columns of a schema that are levels of the frame's index; `stated`: its `frame_description`."""
    index = (_load_json(schema) if stated is None else stated).get("index_columns")
    names = filter(schema.names.__contains__, index) if isinstance(index, list) else ()
    return list(dict.fromkeys(names))


def lost_levels(schema: pa.Schema, stated: Mapping[str, Any], index: Sequence[str]) -> list[str]:
    """Names of the columns that were index levels without a name, in a schema whose index was removed.

    `stated` is its `frame_description`, `index` its `stored_index`.
    """
    unnamed = [name for name in filter(UNNAMED.fullmatch, schema.names) if name not in index]
    return [name for name in unnamed if stated["columns"].get(name, {"name": name}).get("name") is None]


def drop_index(schema: pa.Schema) -> pa.Schema:
    """Remove the index from the metadata: its levels become columns."""
    if not stored_index(schema):
        return schema
    return _set_description(schema, {**_load_json(schema), "index_columns": []})


def copy_index(schema: pa.Schema, known: pa.Schema) -> pa.Schema:
    """Copy the index of `known` into the metadata, if the schema has the columns of its levels."""
    levels = stored_index(known)
    if stored_index(schema) == levels or not set(levels) <= set(schema.names):
        return schema
    described = schema.metadata is not None and KEY in schema.metadata
    return _set_description(schema, {**_load_json(schema if described else known), "index_columns": levels})


def drop_range_index(schema: pa.Schema) -> pa.Schema:
    """Remove a RangeIndex from the metadata: its labels do not belong to rows in another order."""
    index = frame_description(schema)["index_columns"]
    levels = [level for level in index if not isinstance(level, dict)]
    return schema if levels == index else _set_description(schema, {**_load_json(schema), "index_columns": levels})


def update_entries(schema: pa.Schema, changes: Mapping[str, Mapping[str, Any]]) -> pa.Schema:
    """Change values in the entries of a frame's columns, by field name."""
    description = _load_json(schema)
    for entry in description["columns"]:
        entry.update(changes.get(entry["field_name"], {}))
    return _set_description(schema, description)


def sparse_entry(fill: float) -> dict[str, Any]:
    """Entry of a sparse column of numbers: the value that the column is stored without."""
    return {"metadata": {_SPARSE: "nan" if fill != fill else fill}}


def sparse_fill(entry: Mapping[str, Any]) -> float | None:
    """The value that a sparse column is stored without, by its entry in `frame_description`; None if it is dense.

    >>> sparse_fill({"metadata": {"tfrecord_io.sparse": 0}}), sparse_fill({"metadata": None})
    (0, None)
    """
    metadata = entry.get("metadata")
    fill = metadata.get(_SPARSE) if isinstance(metadata, dict) else None
    if fill == "nan":
        return math.nan
    return fill if isinstance(fill, int | float) else None


def categories_entry(count: int, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Entry of a column of so many categories, where texts stand for periods or intervals."""
    return {"metadata": {"num_categories": count, "ordered": stated["ordered"], _CATEGORIES: stated}}


def stated_categories(entry: Mapping[str, Any]) -> Any:
    """The categories for the texts of a column, from its entry in `frame_description`; None if it states none."""
    metadata = entry.get("metadata")
    return metadata.get(_CATEGORIES) if isinstance(metadata, dict) else None


def add_labels(schema: pa.Schema, labels: Mapping[int, Any], columns: Sequence[str]) -> pa.Schema:
    """Add the labels of levels of a frame's `columns` to its metadata, as JSON has them."""
    if not labels:
        return schema
    description = _load_json(schema)
    for at, values in labels.items():
        level = description["column_indexes"][at]
        level["metadata"] = {**(level.get("metadata") or {}), _LABELS: {"columns": list(columns), "values": values}}
    return _set_description(schema, description)


def stated_labels(level: Any, names: Sequence[str]) -> tuple[Any, list[int]] | None:
    """The labels of a level, as JSON has them, and the number of each column's label; None if none are stated."""
    metadata = level.get("metadata") if isinstance(level, dict) else None
    labels = metadata.get(_LABELS) if isinstance(metadata, dict) else None
    columns = labels.get("columns") if isinstance(labels, dict) else None
    if not isinstance(labels, dict) or not isinstance(columns, list):
        return None
    if not all(isinstance(column, str) for column in columns):
        return None
    numbers = {column: number for number, column in enumerate(columns)}
    return (labels.get("values"), [numbers[name] for name in names]) if numbers.keys() >= {*names} else None


def arrow_entry(type_: pa.DataType) -> dict[str, Any]:
    """Entry of a column whose pandas dtype is an Arrow type, to be read back as `type_`.

    Where pandas does not find the dtype by its name, pyarrow fails on it, and says "object" of decimals.
    """
    return {"numpy_type": "object", "metadata": {_ARROW: f"{type_}[pyarrow]"}}


def stated_dtype(entry: Mapping[str, Any]) -> str | None:
    """The name of a column's dtype, by its entry in `frame_description`.

    >>> stated_dtype({"numpy_type": "int64", "metadata": None})
    'int64'
    """
    metadata = entry.get("metadata")
    of_arrow = metadata.get(_ARROW) if isinstance(metadata, dict) else None
    return of_arrow if isinstance(of_arrow, str) else entry.get("numpy_type")


def describe_both(schema: pa.Schema, a: pa.Schema, b: pa.Schema) -> pa.Schema:
    """`schema`, which unites `a` and `b`, with the metadata of `a` and the entries for columns that only `b` has.

    An index, labels of columns, or features, that `b` describes otherwise are left out.
    """
    schema, features = schema.with_metadata(a.metadata), united_features(a, b)
    if features != feature_descriptions(a):
        schema = _set_description(schema, {"info": {"features": features}}, FEATURES_KEY)
    description_a, description_b = frame_description(a), frame_description(b)
    of_a = {*a.names}
    added = {name: entry for name, entry in description_b["columns"].items() if name not in of_a}
    changes: dict[str, Any] = {}
    if added:
        changes["columns"] = [*description_a["columns"].values(), *added.values()]
    if stored_index(a) != stored_index(b):
        changes["index_columns"] = []
    if description_a["column_indexes"] != description_b["column_indexes"]:
        changes["column_indexes"] = []
    return _set_description(schema, {**_load_json(a), **changes}) if changes else schema


def _set_description(schema: pa.Schema, description: Mapping[str, Any], key: bytes = KEY) -> pa.Schema:
    return schema.with_metadata({**(schema.metadata or {}), key: json.dumps(description).encode()})


# ---- features of Hugging Face datasets


def feature_descriptions(schema: pa.Schema) -> dict[str, Any]:
    """The features that Hugging Face datasets describe in a schema's metadata, by column, as JSON has them."""
    descriptions: Any = _load_json(schema, FEATURES_KEY)
    for key in ("info", "features"):
        descriptions = descriptions.get(key) if isinstance(descriptions, dict) else None
    if not isinstance(descriptions, dict):
        return {}
    return {name: descriptions[name] for name in schema.names if name in descriptions}


def united_features(a: pa.Schema, b: pa.Schema) -> dict[str, Any]:
    """The features of the columns of both; of a column of both, if they agree."""
    of_a, of_b = feature_descriptions(a), feature_descriptions(b)
    names_of_a, names_of_b = {*a.names}, {*b.names}
    united = {name: of_a[name] for name in of_a if name not in names_of_b or of_b.get(name) == of_a[name]}
    return united | {name: of_b[name] for name in of_b if name not in names_of_a}
