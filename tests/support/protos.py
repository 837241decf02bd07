"""TensorProtos made by hand, and arrays at random to make them of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from records import field, tag, varint

ml_dtypes = pytest.importorskip("ml_dtypes")  # which the environments of few adapters have

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
NUMBERS = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "bfloat16": 14,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}
STRING = 7


def dtype(name: str) -> np.dtype:
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def number(of: int, value: int) -> bytes:
    """A varint field."""
    return tag(of, 0) + varint(value)


def axis(size: int) -> bytes:
    """A field of the shape; protobuf leaves zeros out."""
    return field(2, number(1, size) if size else b"")


def proto(kind: int, shape: tuple[int, ...], *fields: bytes) -> bytes:
    return number(1, kind) + field(2, b"".join(map(axis, shape))) + b"".join(fields)


def content(data: bytes) -> bytes:
    return field(4, data)


def bits(array: Any) -> bytes:
    """Raw bytes of an array, for comparisons, as NaN != NaN."""
    return np.ascontiguousarray(array).tobytes()


@st.composite
def arrays(draw: Any, name: str | None = None) -> np.ndarray:
    """Arrays of any bits, rank 0 to 5."""
    of = dtype(name or draw(st.sampled_from(sorted(NUMBERS))))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=5)))
    size = math.prod(shape)
    raw = draw(st.binary(min_size=size * of.itemsize, max_size=size * of.itemsize))
    if of.kind == "b":
        return (np.frombuffer(raw, np.uint8) % 2 == 1).reshape(shape)
    return np.frombuffer(raw, of).reshape(shape)


@st.composite
def texts(draw: Any) -> np.ndarray:
    """Object arrays of bytes."""
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    found = np.empty(math.prod(shape), object)
    found[:] = draw(st.lists(st.binary(max_size=8), min_size=len(found), max_size=len(found)))
    return found.reshape(shape)
