"""Missing values inside arrays: a feature or a tensor has none, so a masked value or a null is not stored as a number.

A mask or a null is lost where an array is converted with ``np.asarray``; what is stored instead is the number behind
the mask, or a NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tfrecord_io.errors import EncodeError

_MOST_LEVELS = 120  # as many as a type has, at most


def has_missing(value: Any) -> bool:
    """True if an array of NumPy, pandas, Arrow or polars has a masked value or a null, or nested lists have one.

    NaN in NumPy's own arrays is a value.

    >>> has_missing(np.ma.masked_array([1.0, 2.0], [True, False])), has_missing(np.array([np.nan]))
    (True, False)
    """
    if isinstance(value, np.ma.MaskedArray):
        return value.dtype.names is None and bool(np.any(np.ma.getmaskarray(value)))
    if isinstance(value, list | tuple):
        return holds_masked(value) and any(map(has_missing, value))
    nulls = getattr(value, "null_count", None)  # a number in Arrow, a method in polars
    if nulls is not None:
        return bool(nulls() if callable(nulls) else nulls)
    dtype = getattr(value, "dtype", None)
    if dtype is None or isinstance(dtype, np.dtype) or not callable(getattr(value, "isna", None)):
        return False
    return bool(np.any(value.isna()))


def check_nesting_level(level: int) -> None:
    """Refuse values that are nested deeper than those of any column."""
    if level > _MOST_LEVELS:
        raise EncodeError(f"its values are nested more than {_MOST_LEVELS} levels deep", hint="flatten them")


def holds_masked(cells: Sequence[Any], level: int = 0) -> bool:
    """True if a cell is a masked array or holds one; a pass over the types of values at each level."""
    check_nesting_level(level)
    types = set(map(type, cells))
    if any(issubclass(cls, np.ma.MaskedArray) for cls in types):
        return True
    if types <= {list, tuple, type(None)}:
        inner = list(chain.from_iterable(filter(None, cells)))
    elif any(issubclass(cls, list | tuple | dict | np.ndarray) for cls in types):
        inner = list(chain.from_iterable(map(_inner, filter(_has_inner, cells))))
    else:
        return False
    return bool(inner) and holds_masked(inner, level + 1)


def _has_inner(cell: Any) -> bool:
    """True if a cell may hold other values."""
    return cell.dtype.kind == "O" if isinstance(cell, np.ndarray) else isinstance(cell, list | tuple | dict)


def _inner(cell: Any) -> Iterable[Any]:
    if isinstance(cell, dict):
        return cell.values()
    return cell.reshape(-1).tolist() if isinstance(cell, np.ndarray) else cell
