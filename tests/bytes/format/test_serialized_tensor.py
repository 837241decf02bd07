"""parse_tensor reads what TensorFlow writes, in every form that the message allows, and refuses the rest."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from protos import BFLOAT16, NUMBERS, STRING, arrays, axis, bits, content, dtype, number, proto, texts
from records import field, group, tag, varint
from tfrecord_io.bytes.format.dtypes import Dtype

ONE = struct.pack("<f", 1)


def golden(data: Path) -> dict[str, bytes]:
    records = map(tfr.decode_example, tfr.RecordReader(data / "tensors.tfrecord"))
    return {record["name"][0].decode(): record["tensor"][0] for record in records}


def test_golden_tensors(data: Path) -> None:
    answers = np.load(data / "tensors.npz")
    tensors = golden(data)
    assert len(tensors) == len(answers.files) == 72
    for name, written in tensors.items():
        found = tfr.io.parse_tensor(written)
        if name == "string":
            assert found.tolist() == [[b"a", b""], [b"\xff\x00", "é".encode()]]  # NumPy's file has lost a NUL
            assert found.astype("S").tolist() == answers["string"].tolist()
            continue
        if name == "bfloat16":
            expected = answers["bfloat16_as_float32"].astype(BFLOAT16)
        else:
            expected = answers[name]
        assert found.dtype == expected.dtype, name
        assert found.shape == expected.shape, name
        assert bits(found) == bits(expected), name
        assert tfr.io.serialize_tensor(found) == written


@given(arrays() | texts())
def test_read_back(array: np.ndarray) -> None:
    found = tfr.io.parse_tensor(tfr.io.serialize_tensor(array))
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tolist() == array.tolist() if array.dtype == object else bits(found) == bits(array)


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_result_is_a_writable_copy(form: Any) -> None:
    written = form(tfr.io.serialize_tensor(np.arange(3)))
    found = tfr.io.parse_tensor(written)
    found[:] = 7
    assert tfr.io.parse_tensor(written).tolist() == [0, 1, 2]


def test_scalar_is_an_array_of_rank_0() -> None:
    for value in (np.float64(2), b"a"):
        found = tfr.io.parse_tensor(tfr.io.serialize_tensor(value))
        assert isinstance(found, np.ndarray)
        assert found.shape == ()
        assert found.item() == value


def test_text_is_not_a_tensor() -> None:
    with pytest.raises(TypeError, match="not str"):
        tfr.io.parse_tensor("abc")


# ---- values in the field of their dtype

FLOATS = struct.pack("<3f", 1, -0.0, float("inf"))
TYPED: dict[str, tuple[str, bytes, list[Any]]] = {
    "float32 packed": ("float32", field(5, FLOATS), [1, -0.0, np.inf]),
    "float32 one by one": ("float32", b"".join(tag(5, 5) + FLOATS[at : at + 4] for at in (0, 4, 8)), [1, -0.0, np.inf]),
    "float64": ("float64", field(6, struct.pack("<2d", 1e300, 2)) + tag(6, 1) + struct.pack("<d", 3), [1e300, 2, 3]),
    "int32": ("int32", field(7, varint(-1) + varint(2**31 - 1) + varint(-(2**31))), [-1, 2**31 - 1, -(2**31)]),
    "int16": ("int16", number(7, -(2**15)) + number(7, 2**15 - 1) + number(7, 0), [-(2**15), 2**15 - 1, 0]),
    "int8": ("int8", field(7, varint(-128) + varint(127) + varint(-1)), [-128, 127, -1]),
    "uint8": ("uint8", field(7, varint(255) + varint(0) + varint(1)), [255, 0, 1]),
    "uint16": ("uint16", field(7, varint(65535) + varint(0) + varint(1)), [65535, 0, 1]),
    "int64": ("int64", field(10, varint(-(2**63)) + varint(2**63 - 1) + varint(0)), [-(2**63), 2**63 - 1, 0]),
    "uint32": ("uint32", field(16, varint(2**32 - 1) + varint(0) + varint(1)), [2**32 - 1, 0, 1]),
    "uint64": ("uint64", field(17, varint(2**64 - 1) + varint(0) + varint(1)), [2**64 - 1, 0, 1]),
    "bool": ("bool", field(11, varint(1) + varint(0) + varint(300)), [True, False, True]),
    "float16": (
        "float16",
        field(13, varint(0x3C00) + varint(0xFC00) + varint(1)),
        [1, -np.inf, 5.9604644775390625e-08],
    ),
    "bfloat16": ("bfloat16", field(13, varint(0x3F80) + varint(0xFF80) + varint(0x4000)), [1, -np.inf, 2]),
    "complex64": ("complex64", field(9, struct.pack("<6f", 1, 2, 3, 4, 5, 6)), [1 + 2j, 3 + 4j, 5 + 6j]),
    "complex128": ("complex128", field(12, struct.pack("<6d", 1, 2, 3, 4, 5, 6)), [1 + 2j, 3 + 4j, 5 + 6j]),
}


@pytest.mark.parametrize("form", TYPED)
def test_values_in_the_field_of_their_dtype(form: str) -> None:
    name, values, expected = TYPED[form]
    exact = np.array(expected, dtype(name))
    found = tfr.io.parse_tensor(proto(NUMBERS[name], (3,), values), name)
    assert found.dtype == exact.dtype
    assert bits(found) == bits(exact)
    longer = tfr.io.parse_tensor(proto(NUMBERS[name], (2, 3), values))
    assert bits(longer) == bits(np.append(exact, [exact[-1]] * 3))
    with pytest.raises(tfr.errors.DecodeError, match="3 values for a shape of 2"):
        tfr.io.parse_tensor(proto(NUMBERS[name], (2,), values))


def test_strings_repeat_the_last_one() -> None:
    strings = field(8, b"a\x00") + field(8, b"\xff")
    assert tfr.io.parse_tensor(proto(STRING, (2,), strings)).tolist() == [b"a\x00", b"\xff"]
    assert tfr.io.parse_tensor(proto(STRING, (2, 2), strings)).tolist() == [[b"a\x00", b"\xff"], [b"\xff", b"\xff"]]
    with pytest.raises(tfr.errors.DecodeError, match="2 values for a shape of 1"):
        tfr.io.parse_tensor(proto(STRING, (), strings))


def test_strings_in_raw_bytes() -> None:
    assert tfr.io.parse_tensor(proto(STRING, (2,), content(b"\x01\x82\x00abc"))).tolist() == [b"a", b"bc"]


@pytest.mark.parametrize(
    "raw", [b"\x01\x02abcd", b"\x01\x04abc", b"\x01", b"\x80\x80", b"\xff\xff\xff\xff\xff\x01", b"\x00\x00a"]
)
def test_strings_that_do_not_fit_the_raw_bytes(raw: bytes) -> None:
    with pytest.raises(tfr.errors.DecodeError, match="string"):
        tfr.io.parse_tensor(proto(STRING, (2,), content(raw)))


@pytest.mark.parametrize("name", [*NUMBERS, "string"])
def test_no_values_are_zeros(name: str) -> None:
    found = tfr.io.parse_tensor(proto(NUMBERS.get(name, STRING), (2, 1)))
    assert found.tolist() == ([[b""], [b""]] if name == "string" else np.zeros((2, 1), dtype(name)).tolist())


@pytest.mark.parametrize("pattern", [0x7FA00001, 0xFF800001, 0x7FC12345])
@pytest.mark.parametrize("repeated", [1, 3])
def test_bits_of_a_nan_are_kept(pattern: int, repeated: int) -> None:
    raw = struct.pack("<I", pattern)
    for name, values in {"float32": field(5, raw), "complex64": field(9, raw * 2)}.items():
        found = tfr.io.parse_tensor(proto(NUMBERS[name], (repeated,), values))
        assert set(found.view(np.uint32).tolist()) == {pattern}
    wide = pattern << 32 | 1
    for name, values in {
        "float64": field(6, struct.pack("<Q", wide)),
        "complex128": field(12, struct.pack("<Q", wide) * 2),
    }.items():
        found = tfr.io.parse_tensor(proto(NUMBERS[name], (repeated,), values))
        assert set(found.view(np.uint64).tolist()) == {wide}


def test_raw_bytes_take_precedence_over_the_field() -> None:
    assert tfr.io.parse_tensor(proto(1, (), content(ONE), field(5, ONE * 5))).item() == 1


def test_rules_of_protobuf() -> None:
    """Shapes merge, the last dtype counts, unknown fields and those of another wire type are ignored."""
    written = (
        number(1, 3) + field(2, axis(1)) + number(3, 5) + field(2, axis(2)) + number(1, 1) + group(77, number(1, 9))
    )
    written += number(5, 7) + field(2, b"") + field(5, ONE) + field(99, b"x")
    assert tfr.io.parse_tensor(written).tolist() == [[1, 1]]


# ---- what is refused


def refused(data: bytes, message: str, declared: Any = None) -> tfr.errors.DecodeError:
    with pytest.raises(tfr.errors.DecodeError, match=message) as caught:
        tfr.io.parse_tensor(data, declared)
    return caught.value


def test_dtype_other_than_declared() -> None:
    error = refused(proto(1, ()), "is of float32, not of int32", np.int32)
    assert (error.expected, error.got) == ("int32", "float32")


@pytest.mark.fault(53)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *[
            (0, "DT_INVALID"),
            (11, "DT_QINT8"),
            (20, "DT_RESOURCE"),
            (21, "DT_VARIANT"),
            (26, "DT_FLOAT8_E4M3FNUZ"),
            (31, "DT_INT2"),
        ],
        *[
            (99, "dtype 99"),
            (101, "a reference to float32"),
            (111, "a reference to DT_QINT8"),
            (500, "dtype 500"),
            (-1, "dtype -1"),
        ],
    ],
)
def test_dtypes_that_no_array_has(kind: int, name: str) -> None:
    refused(proto(kind, (1,), content(b"a")), f"is of {name}, ")


@pytest.mark.fault(53)
@pytest.mark.parametrize("name", ["O", "V8", "float8", "i4,f4", "numpy.object_", "__import__('os')", ""])
def test_declared_dtype_that_is_unsupported(name: str) -> None:
    with pytest.raises(tfr.errors.SchemaError, match="cannot have the dtype"):
        tfr.io.parse_tensor(proto(1, ()), name)


@pytest.mark.fault(53)
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((-1,), "negative axis"),
        ((2, -(2**63)), "negative axis"),
        ((2**62, 2**62), "larger than any array"),
        ((2**62, 2**62, 0), "larger than any array"),
        ((0, 2**62, 2**62), "larger than any array"),
        ((2**63 - 1,), "larger than any array"),
        ((2**29,), f"{2**31} bytes; a tensor has {2**31 - 1} at most"),
        ((1,) * 65, "65 axes"),
    ],
)
@pytest.mark.parametrize("values", [b"", field(5, ONE), content(ONE)])
def test_shapes_that_no_array_has(shape: tuple[int, ...], message: str, values: bytes) -> None:
    refused(proto(1, shape, values), message)


@pytest.mark.fault(53)
def test_unknown_rank() -> None:
    refused(number(1, 1) + field(2, number(3, 1)) + field(5, ONE), "rank is unknown")


def test_strings_are_counted_by_their_references() -> None:
    refused(proto(STRING, (2**28,), field(8, b"a")), "bytes; a tensor has")


def test_as_many_axes_as_numpy_has_are_accepted() -> None:
    assert tfr.io.parse_tensor(proto(1, (1,) * Dtype.MAX_AXES, content(ONE))).ndim == Dtype.MAX_AXES


@pytest.mark.parametrize(
    ("kind", "shape", "values", "message"),
    [
        (1, (2,), content(ONE), "4 bytes of content for 2 values of 4 bytes"),
        (1, (0,), content(ONE), "4 bytes of content for 0 values"),
        (1, (), content(b"abc"), "3 bytes of content for 1 value"),
        (1, (0,), field(5, ONE), "1 value for a shape of 0"),
        (10, (2,), content(b"\x01\x02"), "a byte is not a bool"),
        (8, (2,), field(9, ONE * 3), "3 halves of complex numbers"),
        (4, (1,), number(7, 256), "a value is outside of uint8"),
        (4, (1,), number(7, -1), "a value is outside of uint8"),
        (6, (2,), field(7, varint(-128) + varint(128)), "a value is outside of int8"),
        (19, (1,), number(13, 65536), "a value is outside of float16"),
        (14, (1,), number(13, -1), "a value is outside of bfloat16"),
        (1, (1,), number(7, 1), "float32 with values in int_val"),
    ],
)
def test_values_that_do_not_fit(kind: int, shape: tuple[int, ...], values: bytes, message: str) -> None:
    refused(proto(kind, shape, values), message)


@pytest.mark.parametrize(
    "data", [b"", b"\x08", b"\x12\x05\x12", b"\x00", b"\xff" * 11, b"\x0b", field(2, field(2, field(2, b"\xff")))]
)
def test_other_bytes_are_not_a_tensor_proto(data: bytes) -> None:
    refused(data, "not a TensorProto|DT_INVALID")


SAMPLES = [
    *(proto(NUMBERS[name], (3,), values) for name, values, _ in TYPED.values()),
    *(tfr.io.serialize_tensor(np.ones(shape, "uint16")) for shape in [(), (0, 2), (2, 3)]),
    tfr.io.serialize_tensor([[b"a", b""], [b"\xff", b"abc"]]),
    proto(STRING, (2,), content(b"\x01\x02abc")),
]


@given(st.sampled_from(SAMPLES), st.data())
def test_damage_is_a_decode_error(sample: bytes, draw: st.DataObject) -> None:
    damaged = bytearray(sample)
    for _ in range(draw.draw(st.integers(1, 3))):
        at = draw.draw(st.integers(0, len(damaged)))
        damaged[at : at + draw.draw(st.integers(0, 2))] = draw.draw(st.binary(max_size=2))
    sized(bytes(damaged))


@given(st.binary(max_size=40))
def test_any_bytes_are_a_tensor_or_a_decode_error(data: bytes) -> None:
    sized(data)


def sized(data: bytes) -> None:
    limit = 2**20  # that chance does not fill the memory
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, MAX_RECORD_BYTES=limit)
        try:
            found = tfr.io.parse_tensor(data)
        except tfr.errors.DecodeError:
            return
    assert found.nbytes <= limit
    assert found.dtype == object or found.dtype.name in NUMBERS
