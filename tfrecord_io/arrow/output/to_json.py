"""Values of columns as JSON: one rule for ``tfr cat``, ``--json`` and JSON lines files."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.arrow.output.to_python import rows_of

BYTES_KEY = "base64"  # bytes are an object with this key alone


def json_value(value: Any) -> Any:
    """Convert a value to what JSON supports: bytes to base64, NaN and infinities to text.

    >>> json_value([b"\\xff", float("nan"), 1])
    [{'base64': '/w=='}, 'NaN', 1]
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, bytes):
        return {BYTES_KEY: base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(v) for v in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def record_dicts(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as dicts; tensors are nested lists."""
    if not table.num_columns:
        return list(table.to_pylist())
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*python_columns(table), strict=True)]


def python_columns(table: pa.Table) -> list[list[Any]]:
    """The rows of each column as Python values."""
    return [rows_of(column, field) for column, field in zip(table.columns, table.schema, strict=True)]


def json_line(record: dict[str, Any]) -> str:
    """A record as JSON, in one line.

    >>> json_line({"x": 1, "b": b"a"})
    '{"x": 1, "b": {"base64": "YQ=="}}'
    """
    return json.dumps(json_value(record))


def json_lines(table: pa.Table) -> list[str]:
    """The rows of a table, each as `json_line`, column by column: several times as fast.

    >>> json_lines(pa.table({"x": [1, None], "s": ["a", "b"]}))
    ['{"x": 1, "s": "a"}', '{"x": null, "s": "b"}']
    """
    if not table.num_columns:
        return ["{}"] * table.num_rows
    names = (json.dumps(name).replace("%", "%%") for name in table.column_names)
    line = "{" + ", ".join(f"{name}: %s" for name in names) + "}"
    columns = (
        list(map(_to_text(column), values)) for column, values in zip(table.columns, python_columns(table), strict=True)
    )
    return [line % row for row in zip(*columns, strict=True)]


def _to_text(column: pa.ChunkedArray) -> Callable[[Any], str]:
    """The function that makes JSON of the values of a column."""
    if not column.null_count:
        if t.is_integer(column.type):
            return int.__repr__
        if t.is_string(column.type) or t.is_large_string(column.type):
            return encode_basestring_ascii
        if (t.is_float32(column.type) or t.is_float64(column.type)) and pc.all(
            pc.is_finite(column)
        ).as_py() is not False:
            return float.__repr__
    return lambda value: json.dumps(json_value(value))
