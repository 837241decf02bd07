"""A mapping of names to one-dimensional arrays or lists, as an Arrow table."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.errors import EncodeError

NOT_ARROW = (pa.ArrowException, TypeError, ValueError, OverflowError)  # what Arrow raises for values that it cannot hold


def table_of_arrays(data: Mapping[Any, Any], nan_to_null: bool = True) -> pa.Table:
    """Make a table of arrays; NumPy's NaN are values.

    Parameters
    ----------
    data : mapping of str to array
        NumPy arrays, lists, Arrow arrays, pandas Series.
    nan_to_null : bool
        For pandas Series: NaN is a missing value.

    Raises
    ------
    EncodeError
        Names that are no text, lengths that differ, values without an Arrow form.
    NotImplementedError
        Arrays of two and more dimensions.
    """
    columns = {}
    for name, values in data.items():
        if not isinstance(name, str):
            raise EncodeError(f"a column's name is of type {type(name).__name__}", advice="names are text")
        columns[name] = _column(name, values, nan_to_null)
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        first, other = next(iter(lengths)), next(name for name in lengths if lengths[name] != next(iter(lengths.values())))
        reason = f"has {lengths[other]} values, where '{first}' has {lengths[first]}"
        raise EncodeError(reason, feature=other, expected=lengths[first], got=lengths[other])
    return pa.table(columns)


def _column(name: str, values: Any, nan_to_null: bool) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__") or (isinstance(values, np.ndarray) and values.ndim == 0):
        raise EncodeError("this is no array", feature=name, advice="pass a one-dimensional array or a list")
    try:
        if _is_series(values):
            keep_nan = not nan_to_null and isinstance(values.dtype, np.dtype) and values.dtype.kind == "f"
            return pa.array(native(values.to_numpy()) if keep_nan else values)
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        if isinstance(values, np.ndarray):
            refuse_tensors(name, values)
            values = native(values)
        found = pa.array(values)
    except NOT_ARROW as error:
        refuse_tensors(name, values)
        raise no_arrow_form(name, values) from error
    refuse_mixture(name, values, found.type)
    return found


def _is_series(values: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, (pandas.Series, pandas.Index))


def native(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in this machine's byte order, which is the only one Arrow takes."""
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def refuse_tensors(name: str, values: Any) -> None:
    """Raise for an array of rank 2 or more, or a column of such."""
    plain = isinstance(values, np.ndarray) and values.dtype.kind != "O"
    cells = [values] if plain or getattr(values, "ndim", 1) > 1 else values
    if any(isinstance(cell, np.ndarray) and cell.ndim > 1 for cell in cells):
        raise NotImplementedError(f"column {name!r}: writing arrays of two and more dimensions is not built yet; flatten them to lists")


def refuse_mixture(name: str, values: Any, found: pa.DataType) -> None:
    """Raise where Arrow guessed: it takes text among bytes for bytes, and of a datetime among dates only the day."""
    guessed = str if pa.types.is_binary(found) else dt.datetime if pa.types.is_date(found) else None
    plain = isinstance(values, np.ndarray) and values.dtype.kind != "O"
    if guessed and not plain and any(issubclass(type_, guessed) for type_ in set(map(type, values))):
        raise no_arrow_form(name, values)


def no_arrow_form(name: str, values: Any) -> EncodeError:
    """An error that says of which types the values are."""
    dtype = getattr(values, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "") != "O":
        return EncodeError(f"values of dtype {dtype} have no form in a record", feature=name, advice="convert the column first")
    types = sorted({type(cell).__name__ for cell in values if cell is not None})[:5]
    return EncodeError(f"values of types {', '.join(types)} have no one type in Arrow", feature=name, advice="convert them to one type")
