"""Masked arrays among the values of a column: a masked row is a null.

Tests: tests/bytes/format/test_missing_values.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrecord_io.bytes import NestedValues
from tfrecord_io.columns.arrow.input.array_likes import imported_module, is_object_dtype, is_series
from tfrecord_io.errors import EncodeError


def unmask_column(values: Any) -> Any:
    """A list, a Series or an array of objects with None for each masked array in it; anything else as it is.

    An array that is masked in part is an EncodeError whose ``record`` is the row.
    """
    is_objects = (isinstance(values, np.ndarray) or is_series(values)) and is_object_dtype(values.dtype)
    plain = values.to_numpy() if is_objects and is_series(values) else values
    cells = unmask_cells(plain) if is_objects or isinstance(values, list | tuple) else None
    if cells is None:
        return values
    return imported_module("pandas").Series(cells, dtype=object) if is_series(values) else cells


def unmask_cells(cells: Sequence[Any] | np.ndarray[Any, Any]) -> list[Any] | None:
    """The cells of a column, with None for each masked array at any depth; None if no array in them has a mask.

    An array that is masked in part is an EncodeError whose ``record`` is the number of its cell.

    >>> masked = np.ma.masked_array([1, 2], True)
    >>> unmask_cells([[3], masked, [masked]]), unmask_cells([[3]])
    ([[3], None, [None]], None)
    """
    is_masked = isinstance(cells, np.ma.MaskedArray)
    values = cells.tolist() if isinstance(cells, np.ndarray) else cells  # a masked value is None
    if not is_masked and not NestedValues(values).holds_masked:
        return None
    plain = []
    for row, cell in enumerate(values):
        try:
            plain.append(_unmask(cell))
        except EncodeError as error:
            error.record = row
            raise
    return plain


def _unmask(cell: Any) -> Any:
    if isinstance(cell, np.ma.MaskedArray):
        from tfrecord_io.columns.arrow.input.tensor_cast import unmasked_rows

        return np.asarray(cell) if unmasked_rows(cell[None])[0] else None
    if isinstance(cell, list | tuple):
        return [_unmask(item) for item in cell]
    if isinstance(cell, dict):
        return {name: _unmask(item) for name, item in cell.items()}
    if isinstance(cell, np.ndarray) and cell.dtype.kind == "O" and NestedValues(cell.reshape(-1).tolist()).holds_masked:
        return [_unmask(item) for item in cell]
    return cell
