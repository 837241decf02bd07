"""Columns of declared arrays: values of the wire, or bytes, in the shape that the schema says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.faults import RowFault
from tfrecord_io.arrow.lists import Restore, leaf_restore
from tfrecord_io.arrow.physical import mask_of
from tfrecord_io.engine.contract import ColumnBuffers
from tfrecord_io.schema.kinds import Kind, Layout
from tfrecord_io.schema.shapes import Shape, fixed_part
from tfrecord_io.schema.types import BY_WIRE, LIST, RAW, Leaf, is_list_like, is_tensor


def value_restore(leaf: Leaf, type_: pa.DataType, shape: Shape | None, dictionary: pa.Array | None = None) -> Restore:
    """How the feature of a leaf becomes an array of `type_`, which is the leaf's type or a tensor that is stored as it.

    Parameters
    ----------
    shape : tuple of int or None, optional
        What a list's number of values has to fit.
    """
    restore = _by_wire(leaf) if leaf.encoding == BY_WIRE else leaf_restore(leaf, dictionary)
    if shape is not None and is_list_like(leaf.type) and not t.is_fixed_size_list(leaf.type):
        restore = _counted(restore, shape)
    return _as_tensor(restore, type_) if is_tensor(type_) else restore


def _by_wire(leaf: Leaf) -> Restore:
    """Bytes are decoded raw, numbers are values: whichever the records have."""
    values = leaf_restore(replace(leaf, encoding=LIST))
    raw = leaf_restore(replace(leaf, encoding=RAW, kind=Kind.BYTES, layout=Layout.SCALAR))
    return lambda column: (raw if column.kind is Kind.BYTES else values)(column)


def _counted(restore: Restore, shape: Shape) -> Restore:
    """Refuse rows whose number of values is not that of the shape, or none of its multiples where an axis is free."""
    size = fixed_part(shape)
    expected = f"a multiple of {size}" if None in shape else str(size)

    def counted(column: ColumnBuffers) -> pa.Array:
        array = restore(column)
        counts = np.diff(np.asarray(array.offsets))
        fits = counts == size if None not in shape or size == 0 else counts % size == 0
        if np.any(bad := ~fits & _valid(array)):
            row = int(bad.argmax())
            reason = f"expected {expected} values for the shape {shape}, got {counts[row]}"
            raise RowFault(row, reason, expected=expected, got=int(counts[row]))
        return array

    return counted


def _valid(array: pa.Array) -> np.ndarray:
    bitmap = array.buffers()[0] if array.null_count else None
    return mask_of(None if bitmap is None else np.frombuffer(bitmap, np.uint8), len(array))


def _as_tensor(restore: Restore, type_: pa.DataType) -> Restore:
    return lambda column: pa.ExtensionArray.from_storage(type_, restore(column))
