"""Default values: as JSON and back, and those of tensor columns, given as arrays, nested lists or one value for all."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.format.dtypes import Array, Element
from tfrecord_io.schema.tensor_types import Shape, element_and_shape, is_fixed_shape_tensor

# What conversions raise for a value or a text that does not fit a type.
CONVERSION_ERRORS = (
    pa.ArrowException,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    RecursionError,
)

_MICROSECOND = dt.timedelta(microseconds=1)
# Values that JSON does not have are objects of one key, which names their class. A datetime is a date: it comes first.
_TAGS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "bytes": (bytes, lambda v: base64.b64encode(v).decode(), base64.b64decode),
    "datetime": (dt.datetime, dt.datetime.isoformat, dt.datetime.fromisoformat),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "time": (dt.time, dt.time.isoformat, dt.time.fromisoformat),
    "microseconds": (dt.timedelta, lambda v: v // _MICROSECOND, lambda n: n * _MICROSECOND),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
    "float": (float, str, float),
    "struct": (
        dict,
        lambda d: {k: to_json_value(v) for k, v in d.items()},
        lambda d: {k: from_json_value(v) for k, v in d.items()},
    ),
}


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON text, with keys in their order and without escapes for characters outside of ASCII."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def to_json_value(value: Any) -> Any:
    """A value as what JSON has; TypeError if its class is not supported.

    >>> to_json_value([1, b"ab"])
    [1, {'bytes': 'YWI='}]
    """
    if isinstance(value, np.float16):  # of a pa.Array, before pyarrow 21
        value = float(value)
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    for tag, (class_, write, _) in _TAGS.items():
        if isinstance(value, class_):
            return {tag: write(value)}
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def from_json_value(value: Any) -> Any:
    """The value that `to_json_value` converted.

    >>> from_json_value({"float": "inf"})
    inf
    """
    if isinstance(value, list):
        return [from_json_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    return _TAGS[tag][2](content)


# ---- defaults of tensor columns


def normalized_tensor_default(default: Any, field: pa.Field) -> Any:
    """The default as a field stores it; ValueError or TypeError if it does not have the shape, or the dtype.

    For tensors of one shape: one value for every element, or a flat list of Arrow's values. For others: nested lists.

    >>> from tfrecord_io.format.dtypes import element
    >>> from tfrecord_io.schema.tensor_types import tensor_field
    >>> normalized_tensor_default([[1 + 2j], [0]], tensor_field("x", element("complex64"), (2, 1)))
    [1.0, 2.0, 0.0, 0.0]
    """
    element, shape = element_and_shape(field)
    if not is_fixed_shape_tensor(field.type):
        if element.marked:
            raise ValueError(f"no default of {element.name} tensors whose shapes vary")
        return _of_variable_shape(default, element, shape).tolist()
    size = field.type.storage_type.list_size
    if element.marked:
        if _is_normalized(default, element, size):
            return default
        return _arrow_values(_of_fixed_shape(default, element, shape), element)
    if isinstance(default, np.generic):
        return default.item()
    if isinstance(default, np.ndarray | list | tuple):
        return _arrow_values(_of_fixed_shape(default, element, shape), element)
    return default


def tensor_default_array(default: Any, field: pa.Field) -> pa.Array:
    """A normalized default as an array of one row."""
    element, shape = element_and_shape(field)
    if is_fixed_shape_tensor(field.type):
        values = default if isinstance(default, list) else [default] * field.type.storage_type.list_size
        storage = pa.array([values], field.type.storage_type)
    else:
        array = _of_variable_shape(default, element, shape)
        storage = pa.array([{"data": array.reshape(-1).tolist(), "shape": list(array.shape)}], field.type.storage_type)
    return pa.ExtensionArray.from_storage(field.type, storage)


def _of_fixed_shape(default: Any, element: Element, shape: Shape) -> Array:
    array = np.asarray(default)
    if array.dtype == object:  # dates and times
        array = np.asarray(default, element.dtype)
    if not np.can_cast(array.dtype, element.dtype, "same_kind") and array.dtype.kind not in "iub":
        raise ValueError(f"expected {element.name}, got {array.dtype}")
    cast = array.astype(element.dtype)
    if element.dtype.kind in "iu" and not np.array_equal(cast, array):
        raise ValueError(f"a value does not fit {element.name}")
    known: Any = shape  # these shapes have no unknown dimension
    return cast.reshape(known) if cast.ndim else np.broadcast_to(cast, known)


def _of_variable_shape(default: Any, element: Element, shape: Shape) -> Array:
    array = np.asarray(default, element.dtype)
    if not array.size:
        array = array.reshape([axis or 0 for axis in shape])
    if array.ndim != len(shape) or any(axis not in (None, size) for axis, size in zip(shape, array.shape, strict=True)):
        raise ValueError(f"expected the shape {shape}, got {array.shape}")
    return array


def _is_normalized(default: Any, element: Element, size: int) -> bool:
    if not isinstance(default, list) or len(default) != size:
        return False
    try:
        pa.array(default, element.arrow)
    except (pa.ArrowException, TypeError, ValueError):
        return False
    return True


def _arrow_values(array: Array, element: Element) -> list[Any]:
    """Arrow's values of an array, flat."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    width = max(element.arrow.bit_width // 8, 1)
    return pa.Array.from_buffers(element.arrow, data.size // width, [None, pa.py_buffer(data)]).to_pylist()
