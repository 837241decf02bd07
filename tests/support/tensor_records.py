"""Records of arrays as other people write them: raw bytes, their shape and their dtype, put together by hand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from records import blobs, example, int64s
from tfrecord_io.format.dtypes import dtype_name


def companions(array: np.ndarray) -> dict[str, bytes]:
    """The three features of an array by their suffixes, put together by hand."""
    shape = int64s(*array.shape) if array.ndim else b"\x1a\x00"  # an Int64List without values
    return {"": blobs(array.tobytes()), "/shape": shape, "/dtype": blobs(dtype_name(array.dtype).encode())}


def record(arrays: Mapping[str, np.ndarray | None], **features: bytes) -> bytes:
    """An Example of arrays; None is left out."""
    found = {
        name + suffix: value
        for name, array in arrays.items()
        if array is not None
        for suffix, value in companions(array).items()
    }
    return example(**found, **features)
