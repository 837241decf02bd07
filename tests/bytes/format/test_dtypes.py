"""Dtypes declared by NumPy's or TensorFlow's names and objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from protos import BFLOAT16
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.errors import SchemaError


class DType:
    """As tf.float32."""

    def __init__(self, kind: type) -> None:
        self.as_numpy_dtype = kind


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("float32", "float32"),
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        ("bytes", "string"),
        ("bfloat16", "bfloat16"),
        (np.float64, "float64"),
        (np.dtype("float64"), "float64"),
        (np.dtype(">i4"), "int32"),
        (BFLOAT16, "bfloat16"),
        (BFLOAT16.type, "bfloat16"),
        (bool, "bool"),
        (bytes, "string"),
        (str, "string"),
        (object, "string"),
        (np.dtype("U4"), "string"),
        (DType(np.float32), "float32"),
        (DType(np.object_), "string"),
        (np.dtype("M8[ns]"), "datetime64[ns]"),
    ],
)
def test_name_of_a_declared_dtype(dtype: Any, name: str) -> None:
    assert Dtype.declared_name(dtype) == name


@pytest.mark.parametrize(
    "dtype", [int, float, complex, None, "int", "i4", 7, [], np.dtype("i4,f4"), np.dtype("V4"), np.longdouble]
)
def test_unsupported_dtype_is_a_schema_error(dtype: Any) -> None:
    with pytest.raises(SchemaError):
        Dtype.declared_name(dtype)
