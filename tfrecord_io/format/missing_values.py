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

_ADVICE = "fill the masked values (numpy.ma.filled), or mask all of the row"


def unmasked_rows(values: np.ma.MaskedArray[Any, Any]) -> np.ndarray[Any, Any]:
    """True for rows that are not masked; a partly masked row is an EncodeError whose ``record`` is its number.

    >>> unmasked_rows(np.ma.masked_array([[1, 2], [3, 4]], [[True, True], [False, False]]))
    array([False,  True])
    """
    mask = np.ma.getmaskarray(values)
    if mask.dtype.names is not None:  # of a structured array: a bool for each field
        mask = np.ascontiguousarray(mask).view(np.bool_).reshape(len(values), -1)
    axes = tuple(range(1, mask.ndim))
    some, whole = mask.any(axis=axes), mask.all(axis=axes) & (mask.size > 0)
    if (partly := some & ~whole).any():
        reason = "part of its array is masked, but only a whole array can be null"
        raise EncodeError(reason, record=int(partly.argmax()), advice=_ADVICE)
    return np.asarray(~whole)


def without_masks(cells: Sequence[Any] | np.ndarray[Any, Any]) -> list[Any] | None:
    """The cells of a column, with None for each masked array at any depth; None if no array in them has a mask.

    An array that is masked in part is an EncodeError whose ``record`` is the number of its cell.

    >>> masked = np.ma.masked_array([1, 2], True)
    >>> without_masks([[3], masked, [masked]]), without_masks([[3]])
    ([[3], None, [None]], None)
    """
    is_masked = isinstance(cells, np.ma.MaskedArray)
    values = cells.tolist() if isinstance(cells, np.ndarray) else cells  # a masked value is None
    if not is_masked and not _holds_masked(values):
        return None
    found = []
    for row, cell in enumerate(values):
        try:
            found.append(_without_mask(cell))
        except EncodeError as error:
            error.record = row
            raise
    return found


def has_missing(value: Any) -> bool:
    """Whether an array of NumPy, pandas, Arrow or polars has a masked value or a null, or nested lists have one.

    NaN in NumPy's own arrays is a value.

    >>> has_missing(np.ma.masked_array([1.0, 2.0], [True, False])), has_missing(np.array([np.nan]))
    (True, False)
    """
    if isinstance(value, np.ma.MaskedArray):
        return value.dtype.names is None and bool(np.any(np.ma.getmaskarray(value)))
    if isinstance(value, list | tuple):
        return _holds_masked(value) and any(map(has_missing, value))
    nulls = getattr(value, "null_count", None)  # a number in Arrow, a method in polars
    if nulls is not None:
        return bool(nulls() if callable(nulls) else nulls)
    dtype = getattr(value, "dtype", None)
    if dtype is None or isinstance(dtype, np.dtype) or not callable(getattr(value, "isna", None)):
        return False
    return bool(np.any(value.isna()))


def _holds_masked(cells: Sequence[Any]) -> bool:
    """Whether one of the cells is a masked array, or holds one. Each level is one pass over the types of its values."""
    types = set(map(type, cells))
    if any(issubclass(cls, np.ma.MaskedArray) for cls in types):
        return True
    if types <= {list, tuple, type(None)}:
        inner = list(chain.from_iterable(filter(None, cells)))
    elif any(issubclass(cls, list | tuple | dict | np.ndarray) for cls in types):
        inner = list(chain.from_iterable(map(_inner, filter(_has_inner, cells))))
    else:
        return False
    return bool(inner) and _holds_masked(inner)


def _has_inner(cell: Any) -> bool:
    return cell.dtype.kind == "O" if isinstance(cell, np.ndarray) else isinstance(cell, list | tuple | dict)


def _inner(cell: Any) -> Iterable[Any]:
    if isinstance(cell, dict):
        return cell.values()
    return cell.reshape(-1).tolist() if isinstance(cell, np.ndarray) else cell


def _without_mask(cell: Any) -> Any:
    if isinstance(cell, np.ma.MaskedArray):
        return np.asarray(cell) if unmasked_rows(cell[None])[0] else None
    if isinstance(cell, list | tuple):
        return [_without_mask(item) for item in cell]
    if isinstance(cell, dict):
        return {name: _without_mask(item) for name, item in cell.items()}
    if isinstance(cell, np.ndarray) and _has_inner(cell) and _holds_masked(cell.reshape(-1).tolist()):
        return [_without_mask(item) for item in cell]
    return cell
