"""Which columns of NumPy arrays become tensors.

Those with two or more dimensions do, those of dtypes that lists in a record cannot hold (complex numbers, bfloat16,
months), and text and dates if an encoding is requested that stores them as arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.input.tensor_sources import ArrayTensors, CellTensors, Tensors
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError
from tfrecord_io.schema.tensor_encodings import TENSOR_ENCODINGS, encoding_rules

_ARROW_TIMES = {"M": ("D", "s", "ms", "us", "ns"), "m": ("s", "ms", "us", "ns")}


def tensors_of_array(values: Array, encoding: str | None = None, valid: Array | None = None) -> Tensors | None:
    """The tensors of an array whose first axis counts the rows; None if it is a plain column.

    `encoding` is the one requested for the column. An array of objects is an EncodeError.

    Examples
    --------
    >>> tensors_of_array(np.zeros((3, 2, 2), "complex64")).field("x").type.shape
    [2, 2, 2]
    >>> tensors_of_array(np.zeros(3)) is None
    True
    """
    if values.ndim > 1 and values.dtype.kind == "O":
        raise _objects()
    return ArrayTensors(values, valid) if values.ndim > 1 or _only_tensors_hold(values.dtype, encoding) else None


def tensors_of_cells(cells: Sequence[Any] | Array, encoding: str | None = None) -> Tensors | pa.Array | None:
    """The tensors of a sequence of arrays, in which None, NaN, NA and NaT are missing; None if it is a plain column.

    Arrays without dimensions are single values, which become a plain column if lists can hold them. So do
    one-dimensional arrays in the other byte order, which Arrow does not support. An array of objects is an EncodeError.
    """
    first = next((cell for cell in cells if not _is_missing(cell)), None)
    if not _is_array(first):
        return None
    cells = [None if _is_missing(cell) else cell for cell in cells]
    arrays = [cell for cell in cells if _is_array(cell)]
    dtypes = {getattr(cell, "dtype", np.dtype(complex)) for cell in arrays}
    needs_tensors = any(_only_tensors_hold(dtype, encoding) for dtype in dtypes)
    if not needs_tensors and all(np.ndim(cell) == 1 for cell in arrays):
        swapped = not all(dtype.isnative for dtype in dtypes)
        return pa.array([native(cell) if isinstance(cell, np.ndarray) else cell for cell in cells]) if swapped else None
    if any(np.ndim(cell) > 1 and cell.dtype.kind == "O" for cell in arrays):
        raise _objects()
    tensors = CellTensors(cells)
    return tensors if tensors.rank or needs_tensors else tensors.scalars()


def native(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in this machine's byte order, the only one that Arrow supports."""
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def _is_array(cell: Any) -> bool:
    """An array, or a single value that lists in a record cannot hold."""
    is_single = isinstance(cell, np.generic)
    return isinstance(cell, np.ndarray | complex) or (is_single and _only_tensors_hold(cell.dtype, None))


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and cell != cell) or type(cell).__name__ in ("NAType", "NaTType")


def _only_tensors_hold(dtype: np.dtype[Any], encoding: str | None) -> bool:
    """Whether lists in a record cannot hold such values, or the encoding stores text and dates as arrays."""
    kind = dtype.kind
    if kind in _ARROW_TIMES:
        unit, count = np.datetime_data(dtype)
        return unit not in _ARROW_TIMES[kind] or count != 1 or (unit == "D" and _stores_kind(encoding, kind))
    return kind == "c" or dtype.name == "bfloat16" or (kind in "SU" and _stores_kind(encoding, kind))


def _stores_kind(encoding: str | None, kind: str) -> bool:
    """Whether bytes of this encoding hold such values, and not plain text instead."""
    rules = encoding_rules(encoding) if encoding in TENSOR_ENCODINGS else None  # reported where columns are planned
    return rules is not None and rules.one_value_per_cell and not rules.stores_text and kind in rules.dtype_kinds


def _objects() -> EncodeError:
    return EncodeError(
        "arrays of objects cannot be stored in a TFRecord, and are not pickled",
        expected="a dtype of numbers, or of text or bytes of one width",
        got="object",
        advice="convert them to one dtype, or write the bytes that tfr.serialize_tensor makes of each",
    )
