"""Errors for values that Arrow cannot hold: what they are, and how to convert them.

Tests: tests/columns/arrow/input/test_from_arrays.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from tfrecord_io.base import LIMITS, printable
from tfrecord_io.bytes import Kind
from tfrecord_io.columns.arrow.input.array_likes import (
    class_name,
    is_frame,
    is_object_dtype,
    is_series,
    torch_extension,
)
from tfrecord_io.errors import EncodeError


def no_arrow_form(name: str, values: Any) -> EncodeError:
    """The error for values that Arrow cannot hold, with their types."""
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and not isinstance(values, np.ndarray) and not is_series(values):
        return _array_of_another_library(name, values)
    if dtype is not None and getattr(dtype, "kind", "") != "O":
        reason = f"values of dtype {dtype} cannot be stored in a TFRecord"
        return EncodeError(reason, feature=name, hint="convert the column first")
    cells = [cell for cell in values if cell is not None]
    classes = {type(cell) for cell in cells}
    if classes == {int}:
        return _outside_int64(name, values)
    if classes == {np.ndarray} and not any(is_object_dtype(cell.dtype) for cell in cells):
        return refused_dtypes(name, {cell.dtype for cell in cells})
    return _refused_value(name, values, classes) or _refused_classes(name, cells, classes, dtype)


def _array_of_another_library(name: str, values: Any) -> EncodeError:
    reason = f"a column is an array of NumPy or a list, not {class_name(values)}"
    dense = next((method for method in ("toarray", "todense") if hasattr(values, method)), None)  # of sparse ones
    advice = "convert it with numpy.asarray" if dense is None else f"pass its {dense}(), or a matrix of scipy.sparse"
    return EncodeError(reason, feature=name, hint=advice)


def _outside_int64(name: str, values: Any) -> EncodeError:
    row = next((i for i, cell in enumerate(values) if cell is not None and not -(2**63) <= cell < 2**63), None)
    reason = "an integer is outside the range of int64, which cannot be stored in a TFRecord"
    advice = _conversion(name, getattr(values, "dtype", None), "str(v)")
    return EncodeError(reason, record=row, feature=name, expected="-2**63 to 2**63 - 1", hint=advice)


def _refused_classes(name: str, cells: list[Any], classes: set[type], dtype: Any) -> EncodeError:
    """The error for values of classes that no column holds, or no column holds together."""
    names = sorted({cls.__name__ for cls in classes})[:5]
    if len(names) == 1:
        reason = f"values of the Python type {names[0]} cannot be stored in a TFRecord"
        advice = Kind.image_advice(cells[0])
    else:
        reason, advice = f"values of the Python types {', '.join(names)} are mixed types", None
    return EncodeError(reason, feature=name, hint=advice or _conversion(name, dtype, _one_type(cells)))


def _refused_value(name: str, values: Any, classes: set[type]) -> EncodeError | None:
    """The error for the first value that cannot be stored although its type can; None if the type is the reason."""
    for row, cell in enumerate(values):
        if (refusal := _refusal(cell, classes)) is not None:
            reason, advice = refusal
            return EncodeError(reason, record=row, feature=name, hint=advice)
    if classes == {Decimal}:
        reason = "the Decimals need more than 76 digits, which no decimal type of Arrow has"
        return EncodeError(reason, feature=name, hint=_conversion(name, getattr(values, "dtype", None), "str(v)"))
    return _refused_item(name, values) if classes <= {list, tuple} else None


def _refusal(cell: Any, classes: set[type]) -> tuple[str, str] | None:
    """Why a value cannot be stored, and advice, in a column of values of these classes; None if it can be."""
    if isinstance(cell, bytes | str) and len(cell) > LIMITS.MAX_RECORD_BYTES:
        return LIMITS.too_large(), "write large values to separate files"
    if classes == {Decimal} and isinstance(cell, Decimal) and not cell.is_finite():
        reason = "a Decimal that is NaN or infinite cannot be stored in a TFRecord"
        return reason, "pass None for a missing value, or floats"
    if classes == {str} and isinstance(cell, str) and any("\ud800" <= character <= "\udfff" for character in cell):
        reason = "a text with a lone surrogate cannot be encoded as UTF-8"
        return reason, 'pass bytes, for example v.encode("utf-8", "surrogatepass"), or replace it'
    return None


def _refused_item(name: str, rows: Any) -> EncodeError | None:
    """The error for the values in lists, with the row that the first such value is in."""
    items, row_of = [], []
    for row, cell in enumerate(rows):
        items += list(cell or ())
        row_of += [row] * len(cell or ())
    if all(item is None or isinstance(item, Mapping) for item in items):
        return None
    plain = [item for item in items if not (isinstance(item, float) and math.isnan(item))]
    if len(plain) < len(items) and not any(isinstance(item, int | float | np.number) for item in plain):
        nan = next(at for at, item in enumerate(items) if isinstance(item, float))
        reason = f"a list has NaN among values of the type {type(plain[0]).__name__}" if plain else "a list has NaN"
        return EncodeError(reason, record=row_of[nan], feature=name, hint="remove it, or make the whole row None")
    error = no_arrow_form(name, items)
    error.record = None if error.record is None else row_of[error.record]
    return inside("lists", error)


def refused_dtypes(name: str | None, dtypes: Iterable[np.dtype[Any]]) -> EncodeError:
    """The error for arrays of these dtypes, which no column holds."""
    shown = sorted(map(str, dtypes))
    if len(shown) == 1:
        reason, advice = f"arrays of dtype {shown[0]} cannot be stored in a TFRecord", "convert them to another"
        if shown[0].startswith("StringDType"):
            advice = "convert each to text of one width by numpy.array(array.tolist())"
    else:
        reason, advice = f"its arrays have the dtypes {', '.join(shown[:5])}", "convert them to one dtype"
    return EncodeError(reason, feature=name, hint=advice)


def inside(where: str, error: EncodeError) -> EncodeError:
    error.reason = f"in the {where}, {error.reason}"
    if error.record is None:
        error.set_hint(f"convert the values in the {where} to one type")
    return error


def _one_type(cells: list[Any]) -> str | None:
    """Python text for converting a value `v`, so that all cells get a single type without loss; None if none does."""
    if all(callable(getattr(cell, "SerializeToString", None)) for cell in cells):
        return "v.SerializeToString()"
    if all(is_frame(cell) for cell in cells):
        return "v.to_dict('list')"
    if all(hasattr(cell, "__array__") and not isinstance(cell, np.generic) for cell in cells):
        return "v.float().numpy()" if any(map(torch_extension, cells)) else "numpy.asarray(v)"
    if not any(isinstance(cell, bytes | bytearray | memoryview) for cell in cells):
        return "str(v)"
    if all(isinstance(cell, bytes | str) or (isinstance(cell, float) and math.isnan(cell)) for cell in cells):
        return "v.encode() if isinstance(v, str) else v"
    return None


def _conversion(name: str, dtype: Any, expression: str | None) -> str:
    """Advice to convert each value of a column, of a list or of a DataFrame, by an expression of `v`."""
    if expression is None:
        return "write a column for each type: bytes have no text or number that stands for them"
    convert = "str" if expression == "str(v)" else f"lambda v: {expression}"
    column = f"df['{printable(name, 40)}']" if not name.startswith("__index_level_") else "df.index"
    example = f"[{expression} for v in values]" if dtype is None else f"{column}.map({convert})"
    return f"convert them to one type, for example with {example}"
