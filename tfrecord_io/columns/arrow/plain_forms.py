"""Maps, unions and intervals as lists and structs, and back: the form that JSON lines have them in.

It is the form of their features: a map is a list of structs of key and value, a union a struct of the code of its type
and a field for each type, an interval a struct of months, days and nanoseconds.

Tests: tests/apps/file_formats/tables/test_json_files.py and tests/columns/arrow/input/test_schema_cast.py.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.columns.arrow.json_cells import replace_items
from tfrecord_io.columns.arrow.nested_from_features import nested_array
from tfrecord_io.columns.arrow.nested_to_features import nested_columns
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.schema.column_features import Node, nested_tree, representation_of, set_encoding
from tfrecord_io.columns.schema.tensor_types import NESTED, is_any_tensor
from tfrecord_io.columns.schema.types import EXTENSIONS, is_list_like, types_within


def plain_form(type_: pa.DataType) -> pa.DataType:
    """The type of lists and structs in which there is no map, union or interval; the type itself if it has none.

    >>> plain_form(pa.map_(pa.string(), pa.int8()))
    ListType(list<item: struct<key: string, value: int8>>)
    """
    return _form(type_) if any(map(_is_other, types_within(type_, storage=True))) else type_


def _is_other(type_: pa.DataType) -> bool:
    return bool(t.is_map(type_) or t.is_union(type_) or type_.id == pa.lib.Type_INTERVAL_MONTH_DAY_NANO)


def _form(type_: pa.DataType) -> pa.DataType:
    is_extension = isinstance(type_, pa.BaseExtensionType)
    if is_extension and (is_any_tensor(type_) or type_.extension_name in EXTENSIONS):
        return type_
    if is_extension or _is_other(type_) or (t.is_dictionary(type_) and t.is_nested(type_.value_type)):
        row = representation_of(type_)
        assert row is not None
        return _form(row.stored(type_))
    if is_list_like(type_):  # in a union, those of a fixed size are empty where another type is
        return pa.list_(_form(type_.value_type))
    if t.is_struct(type_):
        return pa.struct([(child.name, _form(child.type)) for child in type_])
    return type_


def to_plain_form(array: pa.Array) -> pa.Array:
    """The values of an array as its `plain_form`.

    >>> to_plain_form(pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8()))).to_pylist()
    [[{'key': 'a', 'value': 1}], None]
    """
    target = plain_form(array.type)
    if target == array.type:
        return array
    source_tree, target_tree = _tree(array.type), _tree(target)
    columns = _columns(array, source_tree)
    parts = []
    for feature in target_tree.all_features():
        column = columns.get(feature.name)  # None: the keys of maps cannot be null
        parts.append(pa.nulls(len(array), feature.type) if column is None else _cast_to(column, feature.type))
    return nested_array(target_tree, parts, len(array))


def from_plain_form(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The array of a type whose `plain_form` an array has; ArrowInvalid where it is not one of the type.

    >>> from_plain_form(pa.array([[{"key": "a", "value": 1}]]), pa.map_(pa.string(), pa.int64())).to_pylist()
    [[('a', 1)]]
    """
    tree, columns = _tree(type_), _columns(array, _tree(array.type), keeps_nulls=True)
    parts = [_cast_to(columns.pop(stored.name), stored.type) for stored in tree.all_features()]
    if any(part.null_count < len(part) for part in columns.values()):
        raise pa.ArrowInvalid("the key of a map is null")
    try:
        return nested_array(tree, parts, len(array))
    except RowFault as fault:
        raise pa.ArrowInvalid(str(fault.reason)) from None


def _columns(array: pa.Array, tree: Node, *, keeps_nulls: bool = False) -> dict[str, pa.Array]:
    """The columns of the features that an array would be stored as, by name."""
    arrays = nested_columns(array, tree, keeps_nulls=keeps_nulls)
    return {stored.name: column for stored, column in zip(tree.all_features(), arrays, strict=True)}


def _cast_to(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if column.type == type_:
        return column
    if is_list_like(type_):
        return replace_items(column, _cast_to(column.values, type_.value_type))
    return column.cast(type_)


def _tree(type_: pa.DataType) -> Node:
    return nested_tree(set_encoding(pa.field("", type_), NESTED))
