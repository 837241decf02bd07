"""decode_raw returns what tf.io.decode_raw returns."""

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
def test_bytes_of_an_array_are_decoded(array: np.ndarray) -> None:
    numbers = tfr.io.decode_raw(array.tobytes(), array.dtype)
    assert numbers.dtype == array.dtype
    assert numbers.shape == (array.size,)
    assert bits(numbers) == bits(array)
    swapped = array.astype(array.dtype.newbyteorder(">")).tobytes()
    assert bits(tfr.io.decode_raw(swapped, array.dtype, little_endian=False)) == bits(array)


@given(st.sampled_from(sorted(NUMBERS)), st.lists(st.binary(max_size=20), max_size=4), st.integers(1, 4))
def test_items_are_truncated_or_padded_to_the_fixed_length(name: str, items: list[bytes], count: int) -> None:
    length = count * dtype(name).itemsize
    numbers = tfr.io.decode_raw(items, name, fixed_length=length)
    assert numbers.shape == (len(items), count)
    assert numbers.flags.writeable
    for row, item in zip(numbers, items, strict=True):
        assert bits(row) == bits(tfr.io.decode_raw((item + bytes(length))[:length], name))


def test_shapes() -> None:
    assert tfr.io.decode_raw(b"", "int32").shape == (0,)
    assert tfr.io.decode_raw([b"abcd", b"efgh"], "int16").shape == (2, 2)
    assert tfr.io.decode_raw([[b"abcd", b"efgh"]], "int16").shape == (1, 2, 2)
    assert tfr.io.decode_raw(np.array([[b"abcd"]], object), "uint8").shape == (1, 1, 4)
    assert tfr.io.decode_raw(np.array(b"abcd", object), "uint8").shape == (4,)
    assert tfr.io.decode_raw([], "int16").shape == (0, 0)
    assert tfr.io.decode_raw([], "int16", fixed_length=4).shape == (0, 2)
    assert tfr.io.decode_raw(np.empty((0, 3), object), "int16").shape == (0, 3, 0)


@pytest.mark.parametrize("data", [b"ab\x00", bytearray(b"ab\x00"), memoryview(b"ab\x00")])
def test_one_item(data: Any) -> None:
    numbers = tfr.io.decode_raw(data, np.uint8)
    numbers[0] = 1
    assert numbers.tolist() == [1, 98, 0]
    assert bytes(data) == b"ab\x00"


def test_arrow_arrays_are_decoded() -> None:
    assert tfr.io.decode_raw(pa.array([b"ab", b"cd"]), "uint8").tolist() == [[97, 98], [99, 100]]
    assert tfr.io.decode_raw(pa.chunked_array([[b"ab"], [b"cd"]]), "uint8").tolist() == [[97, 98], [99, 100]]


def test_nonzero_bytes_are_true() -> None:
    numbers = tfr.io.decode_raw(b"\x02\x00\x01", "bool")
    assert numbers.view(np.uint8).tolist() == [1, 0, 1]


def test_times() -> None:
    times = np.array(["2024-02-29", "NaT"], "M8[ns]")
    assert bits(tfr.io.decode_raw(times.tobytes(), "datetime64[ns]")) == bits(times)


@pytest.mark.fault(51)
def test_a_length_that_does_not_fit_the_dtype_is_refused() -> None:
    with pytest.raises(
        tfr.errors.DecodeError,
        match=r"6 bytes are not a multiple of the 4 bytes of int32; dtypes that fit: int16, .* bool",
    ) as caught:
        tfr.io.decode_raw(b"abcdef", "int32")
    assert (caught.value.expected, caught.value.got) == ("a multiple of 4", 6)


def test_items_of_different_lengths_are_refused() -> None:
    with pytest.raises(tfr.errors.DecodeError, match="item 1 has 2 bytes, but the first one has 4; pass fixed_length"):
        tfr.io.decode_raw([b"abcd", b"ef"], "int16")


@pytest.mark.parametrize("length", [0, -2, 3])
def test_a_bad_fixed_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"fixed_length={length}: expected a positive multiple of 2"):
        tfr.io.decode_raw(b"abcd", "int16", fixed_length=length)


@pytest.mark.parametrize("length", ["4", 4.0, True])
def test_a_fixed_length_that_is_no_integer_is_refused(length: Any) -> None:
    with pytest.raises(TypeError, match=f"fixed_length={length!r}: expected a positive multiple of 2"):
        tfr.io.decode_raw(b"abcd", "int16", fixed_length=length)


@pytest.mark.parametrize(
    ("data", "message"),
    [("ab", "str"), ([b"a", None], "item 1: expected bytes, got NoneType"), (np.array([b"a"]), "NULs"), (1, "int")],
)
def test_other_types_than_bytes_are_refused(data: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tfr.io.decode_raw(data, "uint8")


@pytest.mark.fault(53)
@pytest.mark.parametrize("name", ["string", "S4", "U4", "V8", "object", None, float, "i4,f4", "qint8", "1"])
def test_dtypes_other_than_numbers_are_refused(name: Any) -> None:
    with pytest.raises(tfr.errors.SchemaError):
        tfr.io.decode_raw(b"abcd", name)


def test_a_dtype_that_states_another_byte_order_is_refused() -> None:
    dtype = np.dtype("float64").newbyteorder()
    with pytest.raises(tfr.errors.SchemaError, match=r"pass 'float64', and little_endian=False"):
        tfr.io.decode_raw(np.arange(2, dtype=dtype).tobytes(), dtype)


@pytest.mark.parametrize("dtype", ["object", object, np.dtype(object)], ids=repr)
def test_the_object_dtype_is_refused(dtype: object) -> None:
    with pytest.raises(tfr.errors.SchemaError, match="raw bytes hold numbers, not object"):
        tfr.io.decode_raw(b"abcd", dtype)
