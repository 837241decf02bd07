"""decode_raw reads what tf.io.decode_raw reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from protos import NUMBERS, arrays, bits, dtype


@given(arrays())
def test_the_bytes_of_an_array(array: np.ndarray) -> None:
    found = tfr.decode_raw(array.tobytes(), array.dtype)
    assert found.dtype == array.dtype
    assert found.shape == (array.size,)
    assert bits(found) == bits(array)
    swapped = array.astype(array.dtype.newbyteorder(">")).tobytes()
    assert bits(tfr.decode_raw(swapped, array.dtype, little_endian=False)) == bits(array)


@given(st.sampled_from(sorted(NUMBERS)), st.lists(st.binary(max_size=20), max_size=4), st.integers(1, 4))
def test_cut_or_filled_up_with_zeros(name: str, items: list[bytes], count: int) -> None:
    length = count * dtype(name).itemsize
    found = tfr.decode_raw(items, name, fixed_length=length)
    assert found.shape == (len(items), count)
    assert found.flags.writeable
    for row, item in zip(found, items, strict=True):
        assert bits(row) == bits(tfr.decode_raw((item + bytes(length))[:length], name))


def test_shapes() -> None:
    assert tfr.decode_raw(b"", "int32").shape == (0,)
    assert tfr.decode_raw([b"abcd", b"efgh"], "int16").shape == (2, 2)
    assert tfr.decode_raw([[b"abcd", b"efgh"]], "int16").shape == (1, 2, 2)
    assert tfr.decode_raw(np.array([[b"abcd"]], object), "uint8").shape == (1, 1, 4)
    assert tfr.decode_raw(np.array(b"abcd", object), "uint8").shape == (4,)
    assert tfr.decode_raw([], "int16").shape == (0, 0)
    assert tfr.decode_raw([], "int16", fixed_length=4).shape == (0, 2)
    assert tfr.decode_raw(np.empty((0, 3), object), "int16").shape == (0, 3, 0)


@pytest.mark.parametrize("data", [b"ab\x00", bytearray(b"ab\x00"), memoryview(b"ab\x00")])
def test_one_item(data: Any) -> None:
    found = tfr.decode_raw(data, np.uint8)
    found[0] = 1
    assert found.tolist() == [1, 98, 0]
    assert bytes(data) == b"ab\x00"


def test_a_column_of_arrow() -> None:
    assert tfr.decode_raw(pa.array([b"ab", b"cd"]), "uint8").tolist() == [[97, 98], [99, 100]]
    assert tfr.decode_raw(pa.chunked_array([[b"ab"], [b"cd"]]), "uint8").tolist() == [[97, 98], [99, 100]]


def test_bools_are_what_is_not_zero() -> None:
    found = tfr.decode_raw(b"\x02\x00\x01", "bool")
    assert found.view(np.uint8).tolist() == [1, 0, 1]


def test_times() -> None:
    times = np.array(["2024-02-29", "NaT"], "M8[ns]")
    assert bits(tfr.decode_raw(times.tobytes(), "datetime64[ns]")) == bits(times)


@pytest.mark.fault(51)
def test_no_whole_number_of_values() -> None:
    with pytest.raises(
        tfr.DecodeError, match=r"6 bytes are no whole number of int32 values of 4 bytes; they fit int16, .* bool"
    ) as caught:
        tfr.decode_raw(b"abcdef", "int32")
    assert (caught.value.expected, caught.value.got) == ("a multiple of 4", 6)


def test_items_of_different_lengths() -> None:
    with pytest.raises(tfr.DecodeError, match="item 1 has 2 bytes, and the first one 4; pass fixed_length"):
        tfr.decode_raw([b"abcd", b"ef"], "int16")


@pytest.mark.parametrize("length", [0, -2, 3])
def test_a_fixed_length_that_is_none(length: int) -> None:
    with pytest.raises(ValueError, match=f"fixed_length={length} "):
        tfr.decode_raw(b"abcd", "int16", fixed_length=length)


@pytest.mark.parametrize(
    ("data", "words"),
    [("ab", "str"), ([b"a", None], "item 1 is of type NoneType"), (np.array([b"a"]), "NULs"), (1, "int")],
)
def test_what_is_no_bytes(data: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        tfr.decode_raw(data, "uint8")


@pytest.mark.fault(53)
@pytest.mark.parametrize("name", ["string", "S4", "U4", "V8", "object", None, float, "i4,f4", "qint8", "1"])
def test_a_dtype_that_raw_bytes_have_not(name: Any) -> None:
    with pytest.raises(tfr.SchemaError):
        tfr.decode_raw(b"abcd", name)


@pytest.mark.parametrize("dtype", ["object", object, np.dtype(object)], ids=repr)
def test_objects_are_no_raw_bytes(dtype: object) -> None:
    with pytest.raises(tfr.SchemaError, match="object is no dtype of raw bytes"):
        tfr.decode_raw(b"abcd", dtype)
