"""Structs and lists of structs, put together from the arrays of their leaves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.buffers import either_bitmap, mask_of
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.schema.types import is_list_like

Path = tuple[str, ...]


def has_struct(type_: pa.DataType) -> bool:
    """Whether `type_` is a struct or a list of structs."""
    return bool(t.is_struct(type_) or (is_list_like(type_) and has_struct(type_.value_type)))


def assemble(type_: pa.DataType, path: Path, leaves: Mapping[Path, pa.Array]) -> pa.Array:
    """The array of `type_` at `path`, made of the leaves below it.

    A struct is null where all its leaves are; the leaves of a list of structs must have the same number of
    values in every row, else RowFault.
    """
    if not has_struct(type_):
        return leaves[path]
    if not t.is_struct(type_):
        return _list_of_structs(type_, path, leaves)
    children = [assemble(child.type, (*path, child.name), leaves) for child in type_]
    rows = len(children[0])
    bitmaps = [_bitmap(child) for child in children if not t.is_null(child.type)]
    validity = either_bitmap(bitmaps, rows) if bitmaps else np.zeros((rows + 7) // 8, np.uint8)
    return _struct(type_, rows, validity, children)


def _bitmap(array: pa.Array) -> Array | None:
    return None if array.null_count == 0 else np.frombuffer(array.buffers()[0], np.uint8)


def _struct(type_: pa.DataType, rows: int, validity: Array | None, children: list[pa.Array]) -> pa.Array:
    # A list is made with nullable items, whatever the type says.
    children = [
        array if array.type == child.type else array.cast(child.type)
        for child, array in zip(type_, children, strict=True)
    ]
    return pa.Array.from_buffers(type_, rows, [None if validity is None else pa.py_buffer(validity)], children=children)


def _list_of_structs(type_: pa.DataType, path: Path, leaves: Mapping[Path, pa.Array]) -> pa.Array:
    below = {
        at: array for at, array in leaves.items() if at[: len(path)] == path and not t.is_null(array.type.value_type)
    }
    if not below:  # every leaf is of the null type: nothing says how many structs a row has
        return pa.nulls(len(next(iter(leaves.values()))), type_)
    model = next(iter(below.values()))
    rows = len(model)
    for at, array in below.items():
        _same_lengths(model, array, at)
    validity = either_bitmap([_bitmap(array) for array in below.values()], rows)
    count = len(model.values)
    structs = _values(type_.value_type, path, leaves, count)
    buffers = [None if validity is None else pa.py_buffer(validity)]
    if not t.is_fixed_size_list(type_):
        buffers.append(model.buffers()[1])
    return pa.Array.from_buffers(type_, rows, buffers, children=[structs])


def _values(type_: pa.DataType, path: Path, leaves: Mapping[Path, pa.Array], count: int) -> pa.Array:
    """The values inside a list, which are `count` and never null."""
    if t.is_struct(type_):
        return _struct(type_, count, None, [_values(child.type, (*path, child.name), leaves, count) for child in type_])
    return pa.nulls(count, type_) if t.is_null(type_) else leaves[path].values


def _same_lengths(model: pa.Array, array: pa.Array, path: Path) -> None:
    """A row without the feature counts as a row of no values."""
    expected, lengths = _lengths(model), _lengths(array)
    if np.any(bad := expected != lengths):
        row = int(bad.argmax())
        reason = f"the structs of a row have {expected[row]} values in one feature and {lengths[row]} in this"
        feature = "/".join(path)
        raise RowFault(row, reason, feature=feature, expected=int(expected[row]), got=int(lengths[row]))


def _lengths(array: pa.Array) -> Array:
    if t.is_fixed_size_list(array.type):
        bitmap = _bitmap(array)
        return mask_of(bitmap, len(array)) * np.int64(array.type.list_size)
    return np.diff(np.asarray(array.offsets))
