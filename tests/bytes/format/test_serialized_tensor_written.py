"""serialize_tensor writes what TensorFlow writes; see also tests/conformance and test_serialized_tensor."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import tfrecord_io as tfr
from limited import set_limits
from protos import NUMBERS, STRING, arrays, content, dtype, proto, texts
from records import field
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.bytes.format.serialized_tensor import ParsedTensor


@given(arrays())
def test_dtype_shape_and_raw_bytes(array: np.ndarray) -> None:
    raw = array.tobytes()
    assert tfr.io.serialize_tensor(array) == proto(NUMBERS[array.dtype.name], array.shape, content(raw) if raw else b"")


@given(texts())
def test_strings_are_written_one_by_one(array: np.ndarray) -> None:
    assert tfr.io.serialize_tensor(array) == proto(STRING, array.shape, *(field(8, each) for each in array.reshape(-1)))


@given(arrays())
def test_order_and_endianness_do_not_matter(array: np.ndarray) -> None:
    expected = tfr.io.serialize_tensor(array)
    assert tfr.io.serialize_tensor(array.astype(array.dtype.newbyteorder(">"))) == expected
    assert tfr.io.serialize_tensor(np.asfortranarray(array).reshape(array.shape)) == expected
    assert tfr.io.serialize_tensor(np.stack([array, array], axis=-1)[..., 0]) == expected


@given(arrays())
def test_prefix_and_raw_bytes_make_the_tensor(array: np.ndarray) -> None:
    assert ParsedTensor.prefix(array.dtype.name, array.shape) + array.tobytes() == tfr.io.serialize_tensor(array)


@pytest.mark.parametrize("name", ["string", "S3", "datetime64[ns]", "object", "qint8"])
def test_no_prefix_without_raw_values(name: str) -> None:
    with pytest.raises(ValueError, match="no raw values"):
        ParsedTensor.prefix(name, (2,))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "int32"),
        ([1, -(2**31)], "int32"),
        ([2**31], "int64"),
        ([[1.5], [2]], "float32"),
        ([], "float32"),
        ([[], []], "float32"),
        (range(3), "int32"),
        (True, "bool"),
        ((1j, 2.0), "complex128"),
        (np.float64(1), "float64"),
        ([np.float64(0.1), 2.0], "float64"),
        ([np.array([0.1]), np.array([2.0])], "float64"),
    ],
)
def test_python_numbers_get_tensorflows_dtypes(value: Any, name: str) -> None:
    found = tfr.io.parse_tensor(tfr.io.serialize_tensor(value))
    assert found.dtype == dtype(name)
    assert found.tolist() == np.array(value, name).tolist()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("é", "é".encode()),
        (b"a\x00", b"a\x00"),
        (["a", b"b\x00"], [b"a", b"b\x00"]),
        ([["a"], ["bc"]], [[b"a"], [b"bc"]]),
        (np.array(["é", ""]), ["é".encode(), b""]),
        (np.array([b"ab", b""]), [b"ab", b""]),
        (np.array(["é", "x" * 40], Dtype.text(missing=False)), ["é".encode(), b"x" * 40]),
    ],
)
def test_text_and_bytes(value: Any, expected: Any) -> None:
    assert tfr.io.parse_tensor(tfr.io.serialize_tensor(value)).tolist() == expected


class Unpicklable:
    def __reduce__(self) -> Any:
        raise AssertionError("pickled")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([b"a", None], object), "item 1 of an array of objects is of type NoneType"),
        (np.array([[1]], object), "item 0 of an array of objects is of type int"),
        (Unpicklable(), "of type Unpicklable"),
        (["a", 1], "item 1 of an array of objects is of type int"),
        (["\ud800"], "item 0 is not valid Unicode text"),
        ([[1], [2, 3]], "do not form an array"),
        (2**70, "of type int"),
        (1e300, "too large for float32"),
        (np.zeros(2, "i4,f4"), "cannot be stored as a tensor"),
        (np.zeros(2, "V8"), "cannot be stored as a tensor"),
        (np.zeros(2, "M8[ns]"), r"no dtype for datetime64\[ns\].*int64"),
        (datetime.timedelta(1), "of type timedelta"),
        (np.zeros(2, np.longdouble), "float128|longdouble"),
    ],
)
def test_invalid_tensors_are_refused(value: Any, message: str) -> None:
    with pytest.raises(tfr.errors.EncodeError, match=message):
        tfr.io.serialize_tensor(value)


@pytest.mark.parametrize("value", [np.zeros(300, "uint8"), np.array([b"a" * 200, b"b" * 100], object)])
def test_more_bytes_than_protobuf_can_hold(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, MAX_RECORD_BYTES=256)
    with pytest.raises(tfr.errors.EncodeError, match="holds 256 at most"):
        tfr.io.serialize_tensor(value)
