"""The kernel borrows the memory of arrays that outlive a call, or refuses them: a converted copy would be gone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrecord_io.bytes._native import _kernel
from tfrecord_io.bytes.engine.contract import ColumnBuffers
from tfrecord_io.bytes.engine.native import ENGINE
from tfrecord_io.bytes.engine.numpy_output import NUMPY_API
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.bytes.format.feature_types import Kind, Layout

REFUSED = "another dtype than expected, or is not contiguous"


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Kind.INT64, np.arange(20)[::2]),
        (Kind.INT64, np.arange(10, dtype=np.int32)),
        (Kind.FLOAT, np.arange(10.0)),
        (Kind.BYTES, np.arange(10, dtype=np.int8)),
    ],
    ids=["strided", "int32", "float64", "int8"],
)
def test_an_encoder_refuses_values_that_it_would_convert(kind: Kind, values: Any) -> None:
    offsets = np.arange(11) if kind is Kind.BYTES else None
    column = ColumnBuffers("x", kind, Layout.SCALAR, 10, value_offsets=offsets, values=values)
    with pytest.raises(TypeError, match=REFUSED):
        ENGINE.encoder([column])


def test_an_encoder_refuses_validity_that_it_would_convert() -> None:
    validity = np.full(4, 255, np.uint8)[::2]
    with pytest.raises(TypeError, match=REFUSED):
        ENGINE.encoder([ColumnBuffers("x", Kind.INT64, Layout.SCALAR, 10, 0, validity, values=np.arange(10))])


@pytest.mark.parametrize("valid", [np.ones(8, np.bool_)[::2], np.ones(4, np.int64)], ids=["strided", "int64"])
def test_masks_are_refused_that_would_be_converted(valid: Any) -> None:
    data, offsets = np.frombuffer(b"abcdefgh", np.uint8), np.arange(0, 10, 2)
    objects = np.empty(4, object)
    strings = np.empty(4, Dtype.text(missing=True))
    with pytest.raises(TypeError, match=REFUSED):
        _kernel.make_bytes(objects.ctypes.data, valid, offsets, data)
    with pytest.raises(TypeError, match=REFUSED):
        _kernel.fill_text(NUMPY_API, strings.dtype, strings.ctypes.data, valid, offsets, data)
