"""Cells that are one value of a feature each: the bytes of an array, or a serialized TensorProto.

A column of tensors, of lists and of single numbers is the same here: `TensorValues`, the bytes of one cell after another. A new
encoding is a function from these to columns, and a row of `ENCODINGS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.buffers import fixed_width
from tfrecord_io.arrow.encode.feature_column import feature_column
from tfrecord_io.arrow.encode.flatten import Rows
from tfrecord_io.arrow.encode.values import raw_values
from tfrecord_io.arrow.tensor_values import TensorValues, cells_of, items_of
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.errors import EncodeError
from tfrecord_io.format.dtypes import element_of
from tfrecord_io.format.kinds import Kind
from tfrecord_io.schema.leaf import RAW, TENSOR_PROTO, Leaf
from tfrecord_io.schema.tensor_types import dtype_metadata, tensor_value_type
from tfrecord_io.schema.types import is_text_or_bytes


def whole_columns(leaf: Leaf, rows: Rows, values: pa.Array) -> Iterator[ColumnBuffers]:
    """The columns of a leaf whose cells are one value each; see `leaf.encoding`.

    Parameters
    ----------
    leaf : Leaf
    rows : Rows
    values : pyarrow.Array
        As `flatten` gives them: of tensors, or of the numbers that `rows` cuts into cells.

    Raises
    ------
    EncodeError
        A null inside a tensor, or a shape that does not fit its values.
    """
    if leaf.element is None and is_text_or_bytes(values.type):
        yield _protos_of_strings(leaf, rows, values)
        return
    items = items_of_values(rows, values) if leaf.element is None else _of_tensors(leaf, rows, values)
    yield from ENCODINGS[leaf.encoding](leaf, replace(rows, offsets=None), items)


def listed(leaf: Leaf, rows: Rows, values: pa.Array) -> tuple[Rows, pa.Array]:
    """The values of a column of tensors, cut into rows as if it was one of lists."""
    items = _of_tensors(leaf, rows, values)
    data = items.data.view(items.of.dtype)
    if not data.flags.aligned:
        data = data.copy()
    offsets = _of_rows(items.offsets, rows) // items.of.itemsize
    return replace(rows, offsets=offsets), fixed_width(items.of.arrow, len(data), 0, None, data)


def _of_tensors(leaf: Leaf, rows: Rows, values: pa.Array) -> TensorValues:
    assert leaf.element is not None
    marked = leaf.element.arrow == tensor_value_type(values.type)  # bool tensors of Arrow's are none of uint8
    try:
        return items_of(
            values, pa.field("", values.type, metadata=dtype_metadata(leaf.element) if marked else None), rows.valid
        )
    except EncodeError as error:
        error.feature, error.record = rows.feature, None if error.record is None else rows.base + error.record
        raise


def items_of_values(rows: Rows, values: pa.Array) -> TensorValues:
    """The cells of a plain column as tensors: single numbers have no dimension, lists of them one."""
    of = element_of(values.type)
    data = raw_values(values)
    if rows.offsets is None:
        if rows.valid is not None:
            data = data.reshape(-1, of.itemsize)[rows.valid].reshape(-1)
        return TensorValues(of, data, np.arange(len(data) // of.itemsize + 1) * of.itemsize, (), rows.valid)
    lengths = np.diff(rows.offsets) if rows.valid is None else np.diff(rows.offsets)[rows.valid]
    return TensorValues(of, data, _ends(lengths) * of.itemsize, lengths[:, None], rows.valid)


def _raw(leaf: Leaf, rows: Rows, items: TensorValues) -> Iterator[ColumnBuffers]:
    """The bytes, and beside them the companions, shape and dtype."""
    shape_name, dtype_name = leaf.companions
    yield feature_column(leaf.feature, Kind.BYTES, rows, items.data, value_offsets=_of_rows(items.offsets, rows))
    count = len(items)
    counted = _of_rows(np.arange(count + 1), rows)
    shapes = (
        np.tile(np.array(items.shapes, np.int64), count)
        if isinstance(items.shapes, tuple)
        else items.shapes.reshape(-1)
    )
    yield feature_column(shape_name, Kind.INT64, rows, shapes, offsets=counted * items.rank)
    name = np.frombuffer(items.of.name.encode(), np.uint8)
    yield feature_column(dtype_name, Kind.BYTES, rows, np.tile(name, count), value_offsets=counted * len(name))


def _protos(leaf: Leaf, rows: Rows, items: TensorValues) -> Iterator[ColumnBuffers]:
    """What ``tf.io.serialize_tensor`` makes of each cell: a few bytes that say dtype and shape, and then the raw ones."""
    from tfrecord_io.format.tensor_proto_writer import proto_prefix, serialize_tensor  # loads protobuf

    if items.of.dtype.kind in "SU":
        yield _joined(leaf, rows, [serialize_tensor(cell) for cell in cells_of(items)])
    elif isinstance(items.shapes, tuple):
        prefix = np.frombuffer(proto_prefix(items.of.name, items.shapes), np.uint8)
        size = math.prod(items.shapes) * items.of.itemsize
        table = np.empty((len(items), len(prefix) + size), np.uint8)
        table[:, : len(prefix)] = prefix
        table[:, len(prefix) :] = items.data.reshape(len(items), size)
        offsets = np.arange(len(items) + 1, dtype=np.int64) * table.shape[1]
        yield feature_column(leaf.feature, Kind.BYTES, rows, table.reshape(-1), value_offsets=_of_rows(offsets, rows))
    else:
        data, at, found = items.data.data, items.offsets.tolist(), []
        for i, shape in enumerate(items.shapes.tolist()):
            found.append(b"".join((proto_prefix(items.of.name, tuple(shape)), data[at[i] : at[i + 1]])))
        yield _joined(leaf, rows, found)


def _protos_of_strings(leaf: Leaf, rows: Rows, values: pa.Array) -> ColumnBuffers:
    """Text and bytes, of which TensorFlow knows one dtype: cells of one value, or of a list of them."""
    from tfrecord_io.format.tensor_proto_writer import serialize_tensor  # loads protobuf

    if t.is_string(values.type) or t.is_large_string(values.type):
        values = values.cast(pa.large_binary())
    plain = np.empty(len(values), object)
    plain[:] = values.to_pylist()
    if rows.offsets is None:
        cells = [np.array(value, object) for value, there in zip(plain, _there(rows), strict=True) if there]
    else:
        at = rows.offsets.tolist()
        cells = [plain[at[i] : at[i + 1]] for i in np.flatnonzero(_there(rows)).tolist()]
    return _joined(leaf, replace(rows, offsets=None), [serialize_tensor(cell) for cell in cells])


def _joined(leaf: Leaf, rows: Rows, found: list[bytes]) -> ColumnBuffers:
    offsets = _ends(np.fromiter(map(len, found), np.int64, len(found)))
    data = np.frombuffer(b"".join(found), np.uint8)
    return feature_column(leaf.feature, Kind.BYTES, rows, data, value_offsets=_of_rows(offsets, rows))


def _there(rows: Rows) -> Array:
    return np.ones(rows.count, np.bool_) if rows.valid is None else rows.valid


ENCODINGS: dict[str, Callable[[Leaf, Rows, TensorValues], Iterator[ColumnBuffers]]] = {RAW: _raw, TENSOR_PROTO: _protos}


def _of_rows(offsets: Array, rows: Rows) -> Array:
    """The offsets of rows from those of the cells that are not null: null rows are empty."""
    if rows.valid is None:
        return offsets
    lengths = np.zeros(rows.count, np.int64)
    lengths[rows.valid] = np.diff(offsets)
    return _ends(lengths)


def _ends(lengths: Array) -> Array:
    found = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=found[1:])
    return found
