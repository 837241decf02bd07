"""`.npy` files: NumPy's files are read in blocks, and hostile ones are refused without unpickling or evaluation."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import tfrecord_io as tfr
from tfrecord_io.apps.file_formats.array_files.open_array import npy_array
from tfrecord_io.bytes.format.npy_header import MAGIC, NpyHeader
from tfrecord_io.errors import DecodeError

arrays = nps.arrays(
    st.one_of(
        nps.boolean_dtypes(),
        nps.integer_dtypes(endianness="?"),
        nps.floating_dtypes(endianness="?"),
        nps.unicode_string_dtypes(),
    ),
    nps.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
)


def saved(array: np.ndarray, version: tuple[int, int] = (1, 0)) -> io.BytesIO:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version, allow_pickle=False)
    file.seek(0)
    return file


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )


@given(arrays, st.sampled_from([(1, 0), (2, 0), (3, 0)]), st.booleans())
def test_whole_arrays_are_read(array: np.ndarray, version: tuple[int, int], fortran: bool) -> None:
    given_array = np.asarray(array, order="F") if fortran else array
    assert same(npy_array(saved(given_array, version), "x").read(), array)


@given(arrays.filter(lambda array: array.ndim > 0 and len(array) > 0), st.integers(1, 6), st.booleans(), st.booleans())
def test_blocks_are_the_array(array: np.ndarray, rows: int, fortran: bool, seekable: bool) -> None:
    file = saved(np.asfortranarray(array) if fortran else array)
    blocks = list(npy_array(file, "x", seekable=seekable).blocks(rows))
    assert [len(block) for block in blocks[:-1]] == [rows] * (len(blocks) - 1)
    assert same(np.concatenate(blocks).astype(array.dtype), array)


@given(arrays)
def test_headers_are_those_of_numpy(array: np.ndarray) -> None:
    array = np.ascontiguousarray(array).reshape(array.shape)
    assert saved(array).getvalue() == NpyHeader.to_bytes(array.dtype, array.shape) + array.tobytes()


def made(text: str, version: bytes = b"\1\0") -> io.BytesIO:
    data = text.encode("latin-1")
    return io.BytesIO(MAGIC + version + struct.pack("<H", len(data)) + data)


@pytest.mark.fault(54)
@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (io.BytesIO(b"PAR1 and more"), "not a .npy file"),
        (io.BytesIO(MAGIC + b"\1"), "ends inside its header"),
        (made("", b"\x09\0"), "version 9.0"),
        (io.BytesIO(MAGIC + b"\2\0" + struct.pack("<I", 1 << 30)), "a header of 1073741824 bytes"),
        (made("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), "objects"),
        (made("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,)}"), "objects"),
        (made("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), "damaged"),
        (made("{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}"), "damaged"),
        (made("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}"), "damaged"),
        (made("{'descr': '<f4', 'fortran_order': False, 'shape': [1]}"), "damaged"),
        (made("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}"), "damaged"),
        (made("{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,)}"), "damaged"),
        (made("__import__('os').system('true')"), "damaged"),
        (made("(" * 5000), "damaged"),
        (made("\0"), "damaged"),
    ],
)
def test_hostile_headers_are_refused(file: io.BytesIO, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason) as caught:
        npy_array(file, "x.npy")
    assert caught.value.path == "x.npy"


@pytest.mark.parametrize("seekable", [False, True])
def test_a_truncated_file_raises_with_its_size(seekable: bool, tmp_path: Path) -> None:
    for array in (np.arange(100.0), np.asfortranarray(np.arange(100.0).reshape(10, 10))):
        cut = saved(array).getvalue()[:-100]
        with pytest.raises(DecodeError, match=r"ends after 700 bytes of values; its shape .* of float64 has 800"):
            list(npy_array(io.BytesIO(cut), "x", seekable=seekable).blocks(100))


def test_a_large_stated_shape_allocates_only_a_block() -> None:
    opened = npy_array(made("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8)}"), "x")
    with pytest.raises(DecodeError, match="ends after 0 bytes"):
        next(opened.blocks(10))


def test_archives_and_dicts_saved_as_npy_get_advice(tmp_path: Path) -> None:
    with open(tmp_path / "archive.npy", "wb") as file:
        np.savez(file, x=np.arange(3))
    with pytest.raises(tfr.errors.DecodeError, match=r"an archive as np\.savez writes it.*rename it to \.npz"):
        tfr.convert(tmp_path / "archive.npy", tmp_path / "x.tfrecord")
    np.save(tmp_path / "dict.npy", {"x": np.arange(3)}, allow_pickle=True)
    with pytest.raises(tfr.errors.DecodeError, match=r"one object, such as a dict.*np\.savez\(file, \*\*arrays\)"):
        tfr.convert(tmp_path / "dict.npy", tmp_path / "x.tfrecord")
