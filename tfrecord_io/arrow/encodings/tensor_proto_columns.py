"""A column of serialized TensorProtos, read at once: the raw values of all rows, one after another.

Tensors of one dtype and shape begin with the same bytes, so that a comparison and a copy read the whole column. Others
are parsed one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import DecodeError
from tfrecord_io.format.dtype_names import STRING
from tfrecord_io.format.tensor_proto import MOST_BYTES, Parsed, parsed
from tfrecord_io.format.tensor_proto_writer import proto_prefix


class TensorRows(NamedTuple):
    """The tensors of some rows.

    Attributes
    ----------
    dtype : str
        The name of the one dtype that all have.
    shapes : int64 ndarray of shape [rows, rank], or list of tuples where the ranks differ
    contents : uint8 ndarray
        The values of all rows: C order, little-endian, no gaps; memory of its own.
    lengths : int64 ndarray
        Bytes of each row in it.
    """

    dtype: str
    shapes: Array | list[tuple[int, ...]]
    contents: Array
    lengths: Array


def parse_protos(offsets: Array, values: Array) -> TensorRows:
    """The tensors in the slots of a binary column without nulls.

    Parameters
    ----------
    offsets : int32 or int64 ndarray
        Of rows + 1 items; one row at least, as the first says the dtype.
    values : uint8 ndarray
        The bytes that the offsets point into.

    Raises
    ------
    RowFault
        A row is no tensor, is of strings, or of another dtype than the first one.

    Examples
    --------
    >>> from tfrecord_io.format.tensor_proto_writer import serialize_tensor
    >>> both = serialize_tensor(np.array([1, 2], "uint8")) + serialize_tensor(np.array([3, 4], "uint8"))
    >>> parse_protos(np.array([0, 12, 24]), np.frombuffer(both, "uint8"))
    TensorRows(dtype='uint8', shapes=array([[2],
           [2]]), contents=array([1, 2, 3, 4], dtype=uint8), lengths=array([2, 2]))
    """
    first = _row(0, offsets, values, None)
    return _alike(first, offsets, values) or _one_by_one(first, offsets, values)


def _alike(first: Parsed, offsets: Array, values: Array) -> TensorRows | None:
    """The rows, if all begin as the tensor `first` is written by TensorFlow; else None."""
    prefix = np.frombuffer(proto_prefix(first.name, first.shape), np.uint8)
    rows, width = len(offsets) - 1, len(prefix) + first.values.nbytes
    if np.any(np.diff(offsets) != width):
        return None
    table = values[int(offsets[0]) : int(offsets[-1])].reshape(rows, width)
    if np.any(table[:, : len(prefix)] != prefix):
        return None
    contents = table[:, len(prefix) :].flatten()
    if first.name == "bool" and contents.max(initial=0) > 1:  # some row is no tensor: which one, and why
        return None
    shapes = np.tile(np.array(first.shape, np.int64), (rows, 1))
    return TensorRows(first.name, shapes, contents, np.full(rows, first.values.nbytes, np.int64))


def _one_by_one(first: Parsed, offsets: Array, values: Array) -> TensorRows:
    found, size = [first], first.values.nbytes
    for row in range(1, len(offsets) - 1):
        found.append(_row(row, offsets, values, first.name))
        size += found[-1].values.nbytes
        if size > max(MOST_BYTES, len(values)):  # few bytes may claim many values
            raise RowFault(row, f"the tensors up to this one unfold to {size} bytes", expected=MOST_BYTES, got=size)
    contents = np.concatenate(
        [each.values.astype(each.values.dtype.newbyteorder("<"), copy=False).view(np.uint8) for each in found]
    )
    lengths = np.array([each.values.nbytes for each in found], np.int64)
    return TensorRows(first.name, _shapes([each.shape for each in found]), contents, lengths)


def _shapes(shapes: Sequence[tuple[int, ...]]) -> Array | list[tuple[int, ...]]:
    if len(set(map(len, shapes))) > 1:
        return list(shapes)
    return np.array(shapes, np.int64).reshape(len(shapes), len(shapes[0]))


def _row(row: int, offsets: Array, values: Array, name: str | None) -> Parsed:
    data = values[int(offsets[row]) : int(offsets[row + 1])].tobytes()
    try:
        found = parsed(data, name)
    except DecodeError as error:
        raise RowFault(row, error.reason, expected=error.expected, got=error.got) from error
    if found.name == STRING:
        raise RowFault(row, "the tensor is of strings, which have no raw values", expected="numbers", got=STRING)
    return found
