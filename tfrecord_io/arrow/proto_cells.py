"""Serialized TensorProtos in plain columns, where a cell is a single value or a list: read as what raw bytes or values would be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.faults import RowFault
from tfrecord_io.arrow.physical import mask_of
from tfrecord_io.arrow.widen import is_nothing, widen
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.errors import DecodeError
from tfrecord_io.schema.dtypes import element_of
from tfrecord_io.schema.kinds import Kind, Layout
from tfrecord_io.schema.types import is_list_like, is_text_or_bytes, value_type

_LIST_RANK, _SINGLE_RANK = 1, 0


def unserialized(column: ColumnBuffers, type_: pa.DataType) -> ColumnBuffers:
    """The column whose cells are the bytes of the tensors' numbers, or the strings of tensors of strings.

    Parameters
    ----------
    column : ColumnBuffers
        Decoded: serialized TensorProtos.
    type_ : pyarrow.DataType
        Of the column: of numbers, text or bytes, or of lists of them.

    Raises
    ------
    RowFault
        A cell is no TensorProto, or one of another dtype or rank.
    """
    if is_nothing(column):
        return column
    narrow = widen(column, Kind.BYTES, Layout.SCALAR)
    assert narrow.value_offsets is not None
    assert narrow.values is not None
    rows = np.flatnonzero(mask_of(narrow.validity if narrow.null_count else None, narrow.rows))
    offsets = np.append(narrow.value_offsets[:-1][rows], narrow.value_offsets[-1:])  # the slots of nulls are empty
    read = _strings if is_text_or_bytes(value_type(type_)) else _numbers
    try:
        return read(narrow, rows, offsets, narrow.values, type_)
    except RowFault as fault:
        fault.row = int(rows[fault.row])
        raise


def _numbers(column: ColumnBuffers, rows: Array, offsets: Array, values: Array, type_: pa.DataType) -> ColumnBuffers:
    from tfrecord_io.tensors.proto_columns import parse_protos  # loads protobuf

    found, wanted = parse_protos(offsets, values), element_of(value_type(type_)).name
    if found.dtype != wanted:
        raise RowFault(0, f"the TensorProto is of {found.dtype}, the column of {wanted}", expected=wanted, got=found.dtype)
    for at, shape in enumerate(found.shapes if isinstance(found.shapes, list) else found.shapes[:1].tolist()):
        _refuse_rank(at, tuple(shape), type_)
    return replace(column, values=found.contents, value_offsets=_ends(found.lengths, rows, column.rows))


def _strings(column: ColumnBuffers, rows: Array, offsets: Array, values: Array, type_: pa.DataType) -> ColumnBuffers:
    from tfrecord_io.tensors.proto import parsed  # loads protobuf

    counts, items = [], []
    for at, (begin, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        try:
            tensor = parsed(values[begin:end].tobytes(), "string")
        except DecodeError as error:
            raise RowFault(at, error.reason, expected=error.expected, got=error.got) from error
        _refuse_rank(at, tensor.shape, type_)
        counts.append(tensor.values.size)
        items.extend(tensor.values.tolist())
    data = np.frombuffer(b"".join(items), np.uint8)
    lengths = np.fromiter(map(len, items), np.int64, len(items))
    made = replace(column, values=data, binary_row=0)  # it is not known whether they are text
    if not is_list_like(type_):
        return replace(made, value_offsets=_ends(lengths, rows, column.rows))
    whole = _ends(lengths, np.arange(len(items)), len(items))
    return replace(made, layout=Layout.LIST, offsets=_ends(np.array(counts, np.int64), rows, column.rows), value_offsets=whole)


def _refuse_rank(at: int, shape: tuple[int, ...], type_: pa.DataType) -> None:
    rank = _LIST_RANK if is_list_like(type_) else _SINGLE_RANK
    if len(shape) != rank:
        reason = f"the TensorProto has the shape {shape}, and a {type_} has {rank} dimensions"
        raise RowFault(at, reason, expected=rank, got=len(shape))


def _ends(lengths: Array, rows: Array, count: int) -> Array:
    """Offsets of `count` slots, of which those of `rows` have these lengths and the others none."""
    spread = np.zeros(count, np.int64)
    spread[rows] = lengths
    found = np.zeros(count + 1, np.int64)
    np.cumsum(spread, out=found[1:])
    return found
