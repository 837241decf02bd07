"""Missing values inside arrays: a feature or a tensor has none, so a masked value or a null is not stored as a number.

A mask or a null is lost where an array is converted with ``np.asarray``; what is stored instead is the number after
the mask, or a NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tfrecord_io.base import LIMITS


class NestedValues:
    """Values of Python, which may be lists, tuples, dicts and arrays of others."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    @property
    def has_missing(self) -> bool:
        """True if an array of NumPy, pandas, Arrow or polars, at any depth of lists, has a masked value or a null.

        NaN in NumPy's own arrays is a value.

        >>> NestedValues([np.ma.masked_array([1.0, 2.0], [True, False])]).has_missing
        True
        >>> NestedValues([np.array([np.nan])]).has_missing
        False
        """
        return any(map(_has_missing, self.values))

    @property
    def holds_masked(self) -> bool:
        """True if a value is a masked array or holds one; a pass over the types of values at each level.

        EncodeError for values that are nested deeper than those of any column.
        """
        return _holds_masked(self.values)


def _has_missing(value: Any) -> bool:
    if isinstance(value, np.ma.MaskedArray):
        return value.dtype.names is None and bool(np.any(np.ma.getmaskarray(value)))
    if isinstance(value, list | tuple):
        return _holds_masked(value) and any(map(_has_missing, value))
    nulls = getattr(value, "null_count", None)  # a number in Arrow, a method in polars
    if nulls is not None:
        return bool(nulls() if callable(nulls) else nulls)
    dtype = getattr(value, "dtype", None)
    if dtype is None or isinstance(dtype, np.dtype) or not callable(getattr(value, "isna", None)):
        return False
    return bool(np.any(value.isna()))


def _holds_masked(values: Sequence[Any], level: int = 0) -> bool:
    LIMITS.check_nesting(level)
    types = set(map(type, values))
    if any(issubclass(cls, np.ma.MaskedArray) for cls in types):
        return True
    if types <= {list, tuple, type(None)}:
        inner = list(chain.from_iterable(filter(None, values)))
    elif any(issubclass(cls, list | tuple | dict | np.ndarray) for cls in types):
        inner = list(chain.from_iterable(map(_inner, filter(_has_inner, values))))
    else:
        return False
    return bool(inner) and _holds_masked(inner, level + 1)


def _has_inner(cell: Any) -> bool:
    """True if a cell may hold other values."""
    return cell.dtype.kind == "O" if isinstance(cell, np.ndarray) else isinstance(cell, list | tuple | dict)


def _inner(cell: Any) -> Iterable[Any]:
    if isinstance(cell, dict):
        return cell.values()
    return cell.reshape(-1).tolist() if isinstance(cell, np.ndarray) else cell
