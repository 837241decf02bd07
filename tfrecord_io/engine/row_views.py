"""Views of the rows of an array, made by the kernel."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from tfrecord_io._native import _kernel
from tfrecord_io.engine.contract import Array

# The C API, as NumPy's import_array() gets it.
NUMPY_API: Any = import_module("numpy._core._multiarray_umath")._ARRAY_API


def row_views(values: Array, offsets: Array, valid: Array | None) -> Array:
    """See `tfrecord_io.engine.contract.Engine.row_views`."""
    rows = np.full(len(offsets) - 1, None, object)
    offsets = np.ascontiguousarray(offsets, np.int64)
    place, data, dtype = rows.ctypes.data, values.ctypes.data, values.dtype
    _kernel.row_views(NUMPY_API, place, values, dtype, data, dtype.itemsize, values.flags.writeable, valid, offsets)
    return rows
