"""IDX files, the format of MNIST."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

from tfrecord_io.apps.file_formats.array_files.open_array import idx_array, idx_name
from tfrecord_io.bytes.format.known_formats import FORMATS
from tfrecord_io.errors import DecodeError

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def idx(array: np.ndarray, code: int) -> bytes:
    return (
        bytes([0, 0, code, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.astype(TYPES[code]).tobytes()
    )


@pytest.mark.parametrize("code", TYPES)
@pytest.mark.parametrize("shape", [(5,), (4, 3), (3, 2, 2), (0, 2)])
def test_arrays_of_each_type_are_read(code: int, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape)
    blocks = list(idx_array(io.BytesIO(idx(array, code)), "x").blocks(2))
    actual = np.concatenate(blocks) if blocks else np.empty(shape)
    assert np.array_equal(actual, array)
    assert actual.shape == shape


@pytest.mark.parametrize("data", [b"", b"\0\0\x08", b"\x93NUMPY", b"\0\0\x07\x01\0\0\0\1", b"\0\0\x08\x03\0\0\0\1"])
def test_other_files_raise(data: bytes) -> None:
    with pytest.raises(DecodeError, match="IDX file"):
        idx_array(io.BytesIO(data), "x")


def test_a_truncated_file_raises() -> None:
    with pytest.raises(DecodeError, match="ends after 3 bytes of values"):
        list(idx_array(io.BytesIO(bytes([0, 0, 8, 1, 0, 0, 0, 9, 1, 2, 3])), "x").blocks(9))


def test_columns_are_named_after_the_files() -> None:
    assert [idx_name(name) for name in ("train-images-idx3-ubyte", "t10k-labels.idx1-ubyte", "masks")] == [
        "image",
        "label",
        "masks",
    ]
    assert FORMATS.of_name("t10k-labels-idx1-ubyte") is FORMATS.idx
    assert FORMATS.of_name("train.tfrecord") is None
