"""Arrays, Series and frames of other libraries, none of which is imported to recognize them.

Tests: tests/columns/arrow/input/test_from_arrays.py.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrecord_io.base import printable
from tfrecord_io.bytes import Dtype
from tfrecord_io.errors import EncodeError


def imported_module(name: str) -> Any:
    """The module, if it has been imported: otherwise no value is of its types. An import under way is waited for."""
    return importlib.import_module(name) if sys.modules.get(name) is not None else None


def class_name(value: Any) -> str:
    """The full name of the class of a value, for messages."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def is_object_dtype(dtype: Any) -> bool:
    """True if this is NumPy's dtype of Python objects."""
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def is_series(values: Any) -> bool:
    """True if this is a Series or an Index of pandas."""
    pandas = imported_module("pandas")
    return pandas is not None and isinstance(values, (pandas.Series, pandas.Index))


def is_frame(values: Any) -> bool:
    """True if this is a DataFrame of pandas."""
    pandas = imported_module("pandas")
    return pandas is not None and isinstance(values, pandas.DataFrame)


def is_sparse_matrix(values: Any) -> bool:
    """True if it is a matrix or a two-dimensional array of scipy.sparse."""
    scipy = imported_module("scipy.sparse")
    return scipy is not None and scipy.issparse(values) and values.ndim == 2


def is_single(values: Any) -> bool:
    """True if this is one value, not a column of values."""
    if hasattr(values, "__dlpack__"):  # by the array API standard without a length
        return is_without_axes(values)
    return isinstance(values, str | bytes | bytearray | memoryview | Mapping) or not hasattr(values, "__len__")


def is_without_axes(values: Any) -> bool:
    """True if this is an array, of any library, without axes; those of Arrow have one, and do not say so."""
    return hasattr(values, "__dlpack__") and getattr(values, "ndim", 1) == 0


def dense(values: Any) -> Any:
    """A sparse array or Series of pandas with all its values; anything else as it is."""
    if type(getattr(values, "dtype", None)).__name__ != "SparseDtype":
        return values
    return values.sparse.to_dense() if hasattr(values, "sparse") else values.to_dense()


def no_column(values: Any, name: str | None = None) -> EncodeError:
    """The error for a value that is not a column."""
    advice = "pass an array or a list, with an item for each row; or dicts, one for each row"
    return EncodeError(f"a column is an array or a list, not {type(values).__name__}", feature=name, hint=advice)


def as_ndarray(values: Any) -> np.ndarray[Any, Any]:
    """An array of another library as one of NumPy."""
    if (row := torch_extension(values)) is not None:
        return as_ndarray(values.view(getattr(imported_module("torch"), f"int{8 * row.itemsize}"))).view(row.dtype)
    is_exchanged = hasattr(values, "__dlpack__") and not hasattr(values, "__array__")
    try:
        array = np.from_dlpack(values) if is_exchanged else np.asarray(values)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:  # such as for tensors that need gradients
        kind, cause = class_name(values), str(error).rstrip(".")
        reason = f"this {kind} does not become an array of NumPy: {printable(cause, 300)}"
        raise EncodeError(reason, hint="pass an array of NumPy") from error
    if not array.ndim:
        raise no_column(values)
    return array


def torch_extension(values: Any) -> Dtype | None:
    """The dtype of a tensor of PyTorch that cannot be a NumPy array without ml_dtypes; None for other values."""
    dtype = getattr(values, "dtype", None)
    return Dtype.extension_of(dtype) if str(dtype).startswith("torch.") else None
