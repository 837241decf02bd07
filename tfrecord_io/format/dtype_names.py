"""The dtype that a caller declares, in any of the words there are for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrecord_io.errors import SchemaError
from tfrecord_io.format.dtypes import dtype_name, element

STRING = "string"
_SYNONYMS = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "bytes": STRING,
    "str": STRING,
    "object": STRING,
}


def declared_name(dtype: Any) -> str:
    """The name of a dtype given as a name, a dtype of NumPy or TensorFlow, or a scalar type; "string" for bytes and text.

    Raises
    ------
    SchemaError
        It is none that a tensor may have.

    Examples
    --------
    >>> declared_name(np.float32), declared_name("half"), declared_name(object)
    ('float32', 'float16', 'string')
    """
    if isinstance(dtype, str):
        name = _SYNONYMS.get(dtype, dtype)
        return name if name == STRING else dtype_name(dtype_named(name))
    if any(dtype is each for each in (None, int, float, complex)):  # NumPy and TensorFlow disagree on their widths
        raise _refusal(f"{getattr(dtype, '__name__', dtype)} says no number of bits", dtype)
    try:
        found = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))  # tf.DType
        return STRING if found.kind in "OSU" else dtype_name(found)
    except (TypeError, ValueError):
        raise _refusal(f"a tensor has no dtype {dtype!r}", dtype) from None


def dtype_named(name: str) -> np.dtype:
    """The dtype of a name.

    Raises
    ------
    SchemaError
        The name is not on the list.
    """
    try:
        return element(name).dtype
    except ValueError:
        raise _refusal(f"a tensor has no dtype {name!r}", name) from None


def _refusal(reason: str, got: object) -> SchemaError:
    return SchemaError(reason, got=got, advice="use a name like 'float32', 'uint8', 'bfloat16' or 'string'")
