"""Columns of Python objects, looked at in one pass, which also gathers their values."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.numpy_output import NUMPY_API
from tfrecord_io.engine.select import get_engine


class GatheredValues(NamedTuple):
    """The values of cells that are ``bytes``, or arrays of one axis or lists of numbers or ``bytes``."""

    dtype: str  # "f4", "?"; "S": bytes
    valid: Array | None  # bool; None: no cell is missing
    offsets: Array | None  # int32, of the cells among the values; None: each cell is a value
    values: Array  # uint8: the memory of all
    value_offsets: Array | None  # int32, of bytes


def gather_objects(cells: Array, nan_is_missing: bool) -> GatheredValues | bool:
    """The values of an array of objects; True if they are not all of one type; False if Python has to look at each.

    With either of the first two no cell is, or holds, a masked array, and no cell is one of the values that only
    tensors hold. A cell that is None, or NaN where `nan_is_missing`, is missing; a NaN inside an array or a list is a
    value. The tests' reference engine leaves all to Python.

    >>> import numpy as np
    >>> gather_objects(np.array([b"ab", None, b""], object), False).value_offsets
    array([0, 2, 2, 2], dtype=int32)
    """
    if get_engine().name != "native":
        return False
    kernel = import_module("tfrecord_io._native._kernel")
    place = cells.__array_interface__["data"][0]
    found = kernel.gather_objects(NUMPY_API, place, cells.strides[0], len(cells), nan_is_missing)
    return found if isinstance(found, bool) else GatheredValues(*found)
