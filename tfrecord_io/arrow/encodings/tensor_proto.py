"""Columns whose values are serialized TensorProtos."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.buffers import bitmap_of, column_mask, fixed_width, scatter, variable_width
from tfrecord_io.arrow.decode.casts import checked_cast, raw_values
from tfrecord_io.arrow.decode.layout import is_nothing, slots
from tfrecord_io.arrow.decode.lists import Restore, wrap
from tfrecord_io.arrow.encodings.tensor_proto_columns import TensorRows, parse_protos
from tfrecord_io.arrow.encodings.tensor_proto_strings import parse_string_protos
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.errors import DecodeError
from tfrecord_io.format.dtype_names import STRING
from tfrecord_io.format.dtypes import element_of
from tfrecord_io.format.tensor_proto import parsed
from tfrecord_io.schema.leaf import Leaf
from tfrecord_io.schema.tensor_types import Shape
from tfrecord_io.schema.types import is_list_like, is_number


def read_protos(column: ColumnBuffers, mask: Array, dtype: str, shape: Shape) -> tuple[Array, Array, Array]:
    """The tensors of the rows that have one: their bytes, how many each has, and the shape of each.

    Raises
    ------
    RowFault
        A row is no TensorProto, or one of another dtype or shape.
    """
    offsets, data = slots(column)
    rows = np.flatnonzero(mask)
    try:
        ends = np.append(offsets[:-1][mask], offsets[-1:])
        found = parse_string_protos(ends, data, dtype) if dtype[0] in "SU" else parse_protos(ends, data)
    except RowFault as fault:
        fault.row = int(rows[fault.row])
        raise
    if found.dtype != dtype:
        raise RowFault(
            int(rows[0]), f"the TensorProto is of {found.dtype}, the column of {dtype}", expected=dtype, got=found.dtype
        )
    return found.contents, found.lengths, _shapes(found, rows, shape)


def _shapes(found: TensorRows, rows: Array, shape: Shape) -> Array:
    ranks = np.array([len(each) for each in found.shapes])
    bad = ranks != len(shape)
    if not bad.any():
        shapes = np.asarray(found.shapes, np.int64).reshape(len(rows), len(shape))
        fixed = np.array([-1 if axis is None else axis for axis in shape], np.int64)
        bad = ((fixed >= 0) & (shapes != fixed)).any(axis=1)
        if not bad.any():
            return shapes
    at = int(bad.argmax())
    got = tuple(int(axis) for axis in found.shapes[at])
    raise RowFault(
        int(rows[at]), f"the TensorProto has the shape {got}, the column {shape}", expected=str(shape), got=str(got)
    )


def proto_restore(leaf: Leaf) -> Restore:
    """How TensorProtos become an array of the leaf's type: single values, or lists of them."""
    is_list = is_list_like(leaf.type)
    value = leaf.type.value_type if is_list else leaf.type

    def restore(column: ColumnBuffers) -> pa.Array:
        if is_nothing(column):
            return pa.nulls(column.rows, leaf.type)
        mask = column_mask(column)
        counts, values = (_numbers if is_number(value) else _texts)(column, mask, value, is_list)
        nulls = int(len(mask) - np.count_nonzero(mask))
        if not is_list:
            return values if not nulls else values.take(pa.array(np.cumsum(mask) - 1, mask=~mask))
        lengths = scatter(counts, mask)
        return wrap(leaf.type, len(mask), nulls, bitmap_of(mask), np.concatenate([[0], np.cumsum(lengths)]), values)

    return restore


def _numbers(column: ColumnBuffers, mask: Array, type_: pa.DataType, is_list: bool) -> tuple[Array, pa.Array]:
    of = element_of(type_)
    contents, sizes, _ = read_protos(column, mask, of.name, (None,) if is_list else ())
    values = (
        raw_values(type_)(contents)
        if t.is_boolean(type_)
        else fixed_width(type_, contents.size // of.itemsize, 0, None, contents)
    )
    return sizes // of.itemsize, values


def _texts(column: ColumnBuffers, mask: Array, type_: pa.DataType, is_list: bool) -> tuple[Array, pa.Array]:
    """Strings have no raw bytes: they are parsed one by one."""
    offsets, data = slots(column)
    found: list[list[bytes]] = []
    rows = np.flatnonzero(mask)
    for row in rows.tolist():
        try:
            tensor = parsed(data[offsets[row] : offsets[row + 1]].tobytes(), STRING)
        except DecodeError as error:
            raise RowFault(row, error.reason, expected=error.expected, got=error.got) from None
        if len(tensor.shape) != int(is_list):
            expected = "(None,)" if is_list else "()"
            reason = f"the TensorProto has the shape {tensor.shape}, the column {expected}"
            raise RowFault(row, reason, expected=expected, got=str(tensor.shape))
        found.append(tensor.values.tolist())
    counts = np.fromiter(map(len, found), np.int64, len(found))
    flat = [text for texts in found for text in texts]
    ends = np.cumsum([0, *map(len, flat)])
    plain = variable_width(pa.binary(), len(flat), 0, None, ends, np.frombuffer(b"".join(flat), np.uint8))
    try:
        return counts, plain if type_ == pa.binary() else checked_cast(plain, type_)
    except RowFault as fault:
        inside = fault.in_row_of(np.concatenate([[0], np.cumsum(counts)]))
        inside.row = int(rows[inside.row])
        raise inside from None
