"""A mapping of names to arrays or lists as an Arrow table."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.input.tensor_detection import native, tensors_of_array, tensors_of_cells
from tfrecord_io.arrow.input.tensor_sources import Columns, Tensors
from tfrecord_io.errors import EncodeError, printable

NOT_ARROW = (pa.ArrowException, TypeError, ValueError, OverflowError)  # raised by Arrow for values that it cannot hold


def table_of_arrays(
    data: Mapping[Any, Any], nan_to_null: bool = True, encodings: Mapping[str, str] | None = None
) -> Columns:
    """Make a table of NumPy arrays, whose first axis counts the rows, lists, Arrow arrays and pandas Series.

    NumPy's NaN are values; with `nan_to_null` those of a Series are missing values. `encodings` is the
    ``column_encoding=`` of a writer: with some encodings, text and bytes become tensors. Names that are not text,
    lengths that differ, and values that Arrow cannot hold are EncodeErrors.
    """
    columns: dict[str, pa.Array | pa.ChunkedArray | Tensors] = {}
    for name, values in data.items():
        if not isinstance(name, str):
            raise EncodeError(f"a column's name is of type {type(name).__name__}", advice="names must be text")
        refuse_pointers(name, getattr(values, "dtype", None))
        columns[name] = _column(name, values, nan_to_null, (encodings or {}).get(name))
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        first = next(iter(lengths))
        other = next(name for name in lengths if lengths[name] != lengths[first])
        reason = f"has {lengths[other]} values, where '{first}' has {lengths[first]}"
        raise EncodeError(reason, feature=other, expected=lengths[first], got=lengths[other])
    tensors: dict[int, Tensors] = {}
    for at, (name, column) in enumerate(columns.items()):
        if not isinstance(column, pa.Array | pa.ChunkedArray):
            tensors[at], columns[name] = column, pa.nulls(len(column))
    return Columns(pa.table(columns), tensors)


def fields_of(values: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The columns of a structured array."""
    return {name: values[name] for name in values.dtype.names or ()}


def _column(name: str, values: Any, nan_to_null: bool, encoding: str | None) -> pa.Array | pa.ChunkedArray | Tensors:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if isinstance(values, np.ndarray) and values.ndim == 0:
        advice = "its first axis counts the rows: pass array[None] for one row"
        raise EncodeError("an array without dimensions has no rows", feature=name, advice=advice)
    if is_single(values):
        advice = "pass an array or a list, with an item for each row; or a list of dicts, one for each row"
        raise EncodeError("this is not an array", feature=name, advice=advice)
    try:
        values = dense(values)
        if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):  # an array of another library
            values = np.asarray(values)
        tensors = tensors_of(values, nan_to_null, encoding)
        if tensors is not None:
            return tensors
        if _is_series(values):
            keep_nan = not nan_to_null and isinstance(values.dtype, np.dtype) and values.dtype.kind == "f"
            return pa.array(native(values.to_numpy()) if keep_nan else values)
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        column = pa.array(native(values) if isinstance(values, np.ndarray) else values)
    except EncodeError as error:
        error.feature = name
        raise
    except NOT_ARROW as error:
        raise no_arrow_form(name, values) from error
    refuse_mixture(name, values, column.type)
    return column


def tensors_of(values: Any, nan_to_null: bool, encoding: str | None) -> Tensors | pa.Array | None:
    """The tensors of an array, a Series or a list; None if it is a plain column.

    Arrays of different ranks or dtypes, of objects, or masked in part are EncodeErrors whose ``record`` is the row.
    """
    valid = None
    if _is_series(values):
        if not isinstance(values.dtype, np.dtype):
            return None
        valid = np.asarray(values.notna()) if nan_to_null and values.dtype.kind == "c" else None
        values = values.to_numpy()
    if isinstance(values, np.ndarray) and (values.dtype.kind != "O" or values.ndim > 1):
        return tensors_of_array(values, encoding, valid)
    return tensors_of_cells(values, encoding) if isinstance(values, np.ndarray | Sequence) else None


def _is_series(values: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, (pandas.Series, pandas.Index))


def is_single(values: Any) -> bool:
    """Whether this is one value, not a column of values."""
    if isinstance(values, str | bytes | bytearray | memoryview | Mapping) or not hasattr(values, "__len__"):
        return True
    return isinstance(values, np.ndarray) and not values.ndim


def table_of_rows(rows: Sequence[Mapping[Any, Any]]) -> dict[Any, list[Any]]:
    """The columns of dicts, one for each row; what a row does not have is missing.

    >>> table_of_rows([{"x": 1}, {"x": 2, "y": "a"}])
    {'x': [1, 2], 'y': [None, 'a']}
    """
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(chain.from_iterable(rows))}


def dense(values: Any) -> Any:
    """A sparse array or Series of pandas with all its values; anything else as it is."""
    if type(getattr(values, "dtype", None)).__name__ != "SparseDtype":
        return values
    return values.sparse.to_dense() if hasattr(values, "sparse") else values.to_dense()


def refuse_pointers(name: str, dtype: Any) -> None:
    """Refuse Object columns of polars, also nested ones: Arrow sees the addresses of Python objects in them."""
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(dtype, polars.DataType | type(polars.Object)):
        return
    if dtype == polars.Object:
        reason = "a polars Object column holds pointers to Python objects, which cannot be stored in a TFRecord"
        raise EncodeError(reason, feature=name, advice="convert it to a type such as pl.String, or drop it")
    for inner in [getattr(dtype, "inner", None), *(field.dtype for field in getattr(dtype, "fields", ()))]:
        refuse_pointers(name, inner)


def refuse_mixture(name: str, values: Any, type_: pa.DataType) -> None:
    """Refuse mixed types that Arrow converts silently: text among bytes to bytes, a datetime among dates to its day."""
    guessed = str if pa.types.is_binary(type_) else dt.datetime if pa.types.is_date(type_) else None
    plain = isinstance(values, np.ndarray) and values.dtype.kind != "O"
    if guessed and not plain and any(issubclass(cls, guessed) for cls in set(map(type, values))):
        raise no_arrow_form(name, values)


def no_arrow_form(name: str, values: Any) -> EncodeError:
    """The error for values that Arrow cannot hold, with their types."""
    dtype = getattr(values, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "") != "O":
        reason, advice = f"values of dtype {dtype} cannot be stored in a TFRecord", "convert the column first"
    else:
        types = sorted({type(cell).__name__ for cell in values if cell is not None})[:5]
        if len(types) == 1:
            reason = f"values of the Python type {types[0]} cannot be stored in a TFRecord"
        else:
            reason = f"values of the Python types {', '.join(types)} are mixed types"
        example = "[str(v) for v in values]" if dtype is None else f"df['{printable(name, 40)}'].map(str)"
        advice = f"convert them to one type, for example with {example}"
    return EncodeError(reason, feature=name, advice=advice)
