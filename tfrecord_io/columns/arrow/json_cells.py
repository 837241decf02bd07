"""Columns of any type as a text of JSON for each row (``column_encoding="json"``), and back.

The JSON of a type has the values that its features would have: times are numbers of their unit, decimals are text,
maps lists of their keys and values; bytes are base64. Only the text itself is made row by row.
"""

from __future__ import annotations

import base64
import binascii
import json
from functools import partial

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.columns.arrow.nested_from_features import nested_array
from tfrecord_io.columns.arrow.nested_to_features import nested_columns
from tfrecord_io.columns.arrow.row_fault import RowFault, first_failing
from tfrecord_io.columns.schema.column_features import Node
from tfrecord_io.columns.schema.types import is_list_like, is_text, is_text_or_bytes
from tfrecord_io.errors import EncodeError

_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError, RowFault)


def json_column(array: pa.Array, tree: Node, row_base: int = 0) -> pa.Array:
    """The JSON of each row; null where the row is.

    EncodeError if a number is NaN or infinite, which JSON does not have.

    >>> from tfrecord_io.columns.schema.column_features import nested_tree, set_encoding
    >>> column = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8()))
    >>> json_column(column, nested_tree(set_encoding(pa.field("x", column.type), "json"))).to_pylist()
    ['[{"key":"a","value":1}]', None]
    """
    value_tree, as_json = tree.children
    columns = {
        stored.name: (stored, column)
        for stored, column in zip(value_tree.all_features(), nested_columns(array, value_tree), strict=True)
    }
    parts = []
    for target in as_json.all_features():
        stored, column = columns.get(target.name, (target, None))  # only the keys of maps cannot be null
        absent = column is None
        parts.append(pa.nulls(len(array), target.type) if absent else _to_json(column, stored.type, target.type))
    values, rows = nested_array(as_json, parts, len(array)).to_pylist(), []
    dumps = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for row, value in enumerate(values):
        try:
            rows.append(None if value is None else dumps(value))
        except ValueError:
            reason = "JSON has no NaN and no infinity"
            advice = 'make it null, or leave out column_encoding="json"'
            advice_cli = "make it null, or leave out --column-encoding json"
            raise EncodeError(
                reason, feature=tree.feature, record=row_base + row, hint=advice, hint_cli=advice_cli
            ) from None
    return pa.array(rows, pa.string())


def array_of_json(column: pa.Array, tree: Node) -> pa.Array:
    """The column whose JSON `column` has; RowFault for a row that is not JSON of its type."""
    value_tree, as_json = tree.children
    texts, values = column.to_pylist(), []
    for row, text in enumerate(texts):
        try:
            values.append(None if text is None else json.loads(text))
        except (ValueError, RecursionError) as error:
            raise RowFault(row, f"the text is not JSON ({error})", feature=tree.feature, expected="JSON") from None

    def build(begin: int, end: int) -> pa.Array:
        parts = nested_columns(pa.array(values[begin:end], as_json.type), as_json, keeps_nulls=True)
        columns = {stored.name: (stored, part) for stored, part in zip(as_json.all_features(), parts, strict=True)}
        needed = [(stored, *columns.pop(stored.name)) for stored in value_tree.all_features()]
        if any(part.null_count < len(part) for _, part in columns.values()):
            raise ValueError("the key of a map is null")
        arrays = [_from_json(part, stored.type, source.type) for stored, source, part in needed]
        return nested_array(value_tree, arrays, end - begin)

    try:
        return build(0, len(values))
    except _MISFITS as error:
        row = first_failing(len(values), build, _MISFITS)
        reason = f"its JSON is not a value of {tree.type} ({error})"
        raise RowFault(row, reason, feature=tree.feature, expected=str(tree.type)) from None


# ---- columns of features: values, or a list of them in each row


def _to_json(column: pa.Array, type_: pa.DataType, target: pa.DataType) -> pa.Array:
    if is_list_like(type_):
        return replace_items(column, _to_json(column.values, type_.value_type, target.value_type))
    if column.type == target:
        return column
    if t.is_temporal(type_):
        return column.view(pa.int32() if type_.bit_width == 32 else pa.int64()).cast(pa.int64())
    if is_text_or_bytes(type_) and not is_text(type_) and not t.is_string_view(type_):
        data = column.cast(pa.large_binary()).to_pylist()
        return pa.array([None if value is None else base64.b64encode(value).decode() for value in data], pa.string())
    return column.cast(target)


def _from_json(column: pa.Array, type_: pa.DataType, source: pa.DataType) -> pa.Array:
    if is_list_like(type_):
        return replace_items(column, _from_json(column.values, type_.value_type, source.value_type))
    if column.type == type_:
        return column
    if t.is_temporal(type_):
        return column.cast(pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)
    if is_text_or_bytes(type_) and not is_text(type_):
        try:
            data = [None if text is None else base64.b64decode(text, validate=True) for text in column.to_pylist()]
        except binascii.Error as error:
            raise ValueError(f"not base64: {error}") from None
        return pa.array(data, type_)
    if t.is_floating(type_) and type_.bit_width < column.type.bit_width:
        floats = np.asarray(column.fill_null(0.0)).astype(type_.to_pandas_dtype())
        return pa.array(floats, mask=np.asarray(column.is_null()))
    return column.cast(type_)


def replace_items(column: pa.Array, values: pa.Array) -> pa.Array:
    """The lists of a column, with other values."""
    make = pa.large_list if t.is_large_list(column.type) else pa.list_
    buffers = column.buffers()[:2]
    return pa.Array.from_buffers(
        make(values.type), len(column), buffers, column.null_count, column.offset, children=[values]
    )
