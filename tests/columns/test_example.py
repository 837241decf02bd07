"""Single records: the tutorial's helpers, and dicts encoded and decoded."""

from __future__ import annotations

import enum
import inspect
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from google.protobuf.message import DecodeError as WireError
from google.protobuf.message import EncodeError as NotSerialized
from hypothesis import given
from hypothesis import strategies as st

from limited import set_limits
from reference_engine.record_parser import read_record
from strategies import datasets
from tfrecord_io.bytes.format.example_messages import Example, Feature, Int64List
from tfrecord_io.bytes.format.feature_types import Kind, RecordType
from tfrecord_io.columns.example import (
    bytes_feature,
    decode_example,
    encode_example,
    encode_features,
    float_feature,
    int64_feature,
)
from tfrecord_io.errors import DecodeError, EncodeError


def type_name(value: Any) -> str:
    return value.__name__ if inspect.isfunction(value) else type(value).__name__


class Tensor:
    """Has the part of an eager tensor's interface that the helpers use."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def numpy(self) -> Any:
        return self.value


class Plain(enum.Enum):
    ONE = 1


class Whole(enum.IntEnum):
    TWO = 2


INTEGERS = [
    (True, [1]),
    (7, [7]),
    (Plain.ONE, [1]),
    (Whole.TWO, [2]),
    (np.bool_(True), [1]),
    (np.int32(-3), [-3]),
    (np.uint32(2**32 - 1), [2**32 - 1]),
    (np.uint64(2**63 - 1), [2**63 - 1]),
    (np.array(5), [5]),
    (np.array([True, False]), [1, 0]),
    (np.array([1, 2], np.uint8), [1, 2]),
    ([1, True, Plain.ONE, np.int8(4)], [1, 1, 1, 4]),
    ((), []),
    (range(3), [0, 1, 2]),
    (Tensor(np.int64(9)), [9]),
    (-(2**63), [-(2**63)]),
]
FLOATS = [
    (0.5, [0.5]),
    (2, [2.0]),
    (np.float64(0.5), [0.5]),
    (np.array([1, 2]), [1, 2]),
    ([1.5, 2], [1.5, 2]),
    (np.float16(0.5), [0.5]),
    (ml_dtypes.bfloat16(0.5), [0.5]),
    (np.array([0.5, -2], ml_dtypes.bfloat16), [0.5, -2]),
    ([], []),
]
NO_INTEGERS = [1.0, "1", b"1", None, np.float32(1), np.array([1.0]), [1, 2.0], {1}]
NO_FLOATS = [True, np.bool_(False), np.array([True]), "1.0", b"1", None, 1j]


@pytest.mark.parametrize(
    ("make", "kind", "value", "expected"),
    [
        *((int64_feature, "int64_list", *case) for case in INTEGERS),
        *((float_feature, "float_list", *case) for case in FLOATS),
    ],
    ids=type_name,
)
def test_numbers_of_every_type_are_accepted(make: Any, kind: str, value: Any, expected: list[Any]) -> None:
    feature = make(value)
    assert feature.WhichOneof("kind") == kind
    assert list(getattr(feature, kind).value) == expected


@pytest.mark.parametrize(
    ("make", "value"),
    [*((int64_feature, value) for value in NO_INTEGERS), *((float_feature, value) for value in NO_FLOATS)],
    ids=type_name,
)
def test_other_types_than_numbers_are_refused(make: Any, value: Any) -> None:
    with pytest.raises(TypeError):
        make(value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, np.uint64(2**63), np.array([2**63], np.uint64)], ids=type_name)
def test_int64_feature_refuses_integers_out_of_range(value: Any) -> None:
    with pytest.raises(EncodeError, match="int64"):
        int64_feature(value)


def test_float_feature_keeps_infinity_and_nan_but_creates_none() -> None:
    bits = np.array([0x7F800001, 0xFF800000, 0x80000000], np.uint32)
    for value in (bits.view(np.float32), list(bits.view(np.float32))):
        assert decode_example(encode_example({"f": float_feature(value)}))["f"].tobytes() == bits.tobytes()
    with pytest.raises(EncodeError, match="infinite"):
        float_feature(1e39)
    with pytest.raises(EncodeError, match="infinite"):
        float_feature(10**400)


BLOBS = [
    (b"cat", [b"cat"]),
    (bytearray(b"x"), [b"x"]),
    (memoryview(b"x"), [b"x"]),
    ([b"a", b""], [b"a", b""]),
    (np.bytes_(b"x"), [b"x"]),
]
BLOBS += [(np.array([b"a", b"bc"]), [b"a", b"bc"]), (Tensor(b"t"), [b"t"]), (np.array([b"a\0"], object), [b"a\0"])]


@pytest.mark.parametrize(("value", "expected"), BLOBS, ids=type_name)
def test_bytes_feature_accepts_bytes(value: Any, expected: list[bytes]) -> None:
    assert list(bytes_feature(value).bytes_list.value) == expected


@pytest.mark.parametrize("value", ["é", ["é", b"b"], np.array(["é"]), np.array(["é"], object)], ids=type_name)
def test_bytes_feature_writes_text_as_encode_example_does(value: Any) -> None:
    assert encode_example({"x": bytes_feature(value)}) == encode_example({"x": value})
    assert bytes_feature(value).bytes_list.value[0] == "é".encode()


def test_bytes_feature_refuses_other_types() -> None:
    with pytest.raises(TypeError, match="expected bytes or str, got int"):
        bytes_feature(3)
    with pytest.raises(EncodeError, match="surrogate"):
        bytes_feature("\ud800")


def test_messages_in_place_of_their_bytes_are_told_what_to_call() -> None:
    with pytest.raises(TypeError, match=r"got Example: call its SerializeToString\(\)"):
        decode_example(Example())
    with pytest.raises(TypeError, match="expected bytes, got str"):
        decode_example("text")
    with pytest.raises(TypeError, match=r"expected a dict .* got Example: call its SerializeToString\(\)"):
        encode_example(Example())  # type: ignore[arg-type]


def test_array_of_two_dimensions_is_refused() -> None:
    with pytest.raises(EncodeError, match="dimensions"):
        int64_feature(np.zeros((2, 2), np.int64))


def test_empty_features_keep_their_kind() -> None:
    payload = encode_example(
        {"i": np.empty(0, np.int32), "f": float_feature([]), "b": bytes_feature([]), "none": Feature(), "omitted": None}
    )
    decoded = decode_example(payload)
    assert {name: None if value is None else (value.dtype, len(value)) for name, value in decoded.items()} == {
        "i": (np.int64, 0),
        "f": (np.float32, 0),
        "b": (object, 0),
        "none": None,
    }


def test_protobuf_reads_what_encode_example_writes() -> None:
    payload = encode_example(
        {
            "label": 3,
            "name": "кот",
            "raw": [b"\0", b""],
            "scores": [0.5, 1.5],
            "made": Feature(int64_list=Int64List(value=[1])),
        }
    )
    features = Example.FromString(payload).features.feature
    assert list(features["name"].bytes_list.value) == ["кот".encode()]
    assert list(features["scores"].float_list.value) == [0.5, 1.5]
    assert list(decode_example(payload)) == ["label", "name", "raw", "scores", "made"]
    assert decode_example(encode_example({})) == {}


@pytest.mark.parametrize(
    "value",
    [
        [1, 2.0],
        [b"a", 1],
        [None],
        [],
        2**63,
        1e39,
        {"a": 1},
        np.array([1j]),
        np.array(["2020"], "M8[D]"),
        [[1]],
        "\ud800",
        object(),
    ],
    ids=lambda v: repr(v)[:20],
)
def test_encode_example_names_the_feature_that_cannot_be_stored(value: Any) -> None:
    with pytest.raises(EncodeError) as caught:
        encode_example({"good": 1, "bad one": value})
    assert caught.value.feature == "bad one"
    assert "bad one" in str(caught.value)


def test_lists_that_are_nested_too_deep_are_refused() -> None:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    with pytest.raises(EncodeError, match="nested more than 120 levels deep"):
        encode_example({"a": value})


def test_a_record_that_protobuf_would_not_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Large:
        def SerializeToString(self) -> bytes:
            raise NotSerialized("Failed to serialize proto")

    with pytest.raises(EncodeError, match="exceed 2147483647 bytes, protobuf's limit") as caught:
        encode_features([("a", Large())])
    assert caught.value.feature == "a"
    size = len(encode_example({"a": b"b"}))
    set_limits(monkeypatch, MAX_RECORD_BYTES=size)
    encode_example({"a": b"b"})
    with pytest.raises(EncodeError, match=f"exceed {size} bytes"):
        encode_example({"a": b"bc"})


def test_names_that_are_not_text_are_refused() -> None:
    with pytest.raises(EncodeError):
        encode_example({b"a": 1})  # type: ignore[dict-item]
    with pytest.raises(EncodeError):
        encode_example({"\ud800": 1})


@pytest.mark.parametrize("payload", [b"\x0a", b"text", struct.pack("<Q", 3)], ids=type_name)
def test_decode_example_refuses_other_bytes(payload: bytes) -> None:
    with pytest.raises(DecodeError, match="record_type"):
        decode_example(payload)


def test_decoded_arrays_are_copies() -> None:
    decoded = decode_example(bytearray(encode_example({"i": [1, 2], "f": [1.5], "b": [b"x"]})))
    for value in decoded.values():
        assert value.flags.writeable
        assert value.flags.owndata


int64 = st.integers(-(2**63), 2**63 - 1)
values = st.lists(int64, min_size=1) | st.lists(st.floats(width=32), min_size=1) | st.lists(st.binary(), min_size=1)


@pytest.mark.fault(47)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values))
def test_encoded_features_are_decoded_unchanged(features: dict[str, Any]) -> None:
    decoded = decode_example(encode_example(features))
    assert list(decoded) == list(features)
    for name, value in features.items():
        if isinstance(value[0], float):
            assert decoded[name].tobytes() == np.array(value, np.float32).tobytes()
        else:
            assert decoded[name].tolist() == value


@given(datasets(), st.integers(0, 2**32 - 1), st.integers(0, 7))
def test_any_payload_is_decoded_as_protobuf_reads_it(payloads: list[bytes], at: int, bit: int) -> None:
    for payload in payloads:
        changed = bytearray(payload)
        if changed:
            changed[at % len(changed)] ^= 1 << bit
        for content in (payload, bytes(changed)):
            try:
                record = read_record(content, RecordType.EXAMPLE, lambda name, is_list: True)
            except WireError:
                record = None
            if record is None or (record.has_feature and not record.has_plain):
                reason = "not a valid Example" if record is None else "ExampleListWithContext"
                with pytest.raises(DecodeError, match=reason):
                    decode_example(content)
                continue
            decoded = decode_example(content)
            assert list(decoded) == list(record.features)
            for name, cell in record.features.items():
                value = decoded[name]
                if cell is None or value is None:
                    assert cell is value
                elif cell.kind == Kind.BYTES:
                    assert (value.dtype, value.tolist()) == (object, cell.values)
                else:
                    assert (value.dtype, value.tobytes()) == (cell.values.dtype, cell.values.tobytes())


def test_values_of_mixed_types_are_named_with_their_index() -> None:
    with pytest.raises(
        EncodeError, match="the float at index 0 is a FloatList, the str at index 2 is a BytesList"
    ) as caught:
        encode_example({"x": [1.0, 2.5, "a"]})
    assert caught.value.feature == "x"


@pytest.mark.parametrize("encode", [lambda x: encode_example({"x": x}), int64_feature, float_feature])
@pytest.mark.parametrize("shape", [(2,), ()])
def test_masked_values_are_refused(encode: Any, shape: tuple[int, ...]) -> None:
    array = np.ma.masked_array(np.ones(shape, int), mask=np.ones(shape, bool))
    with pytest.raises(EncodeError, match="masked"):
        encode(array)


def test_a_masked_array_without_masked_values_is_an_array() -> None:
    payload = encode_example({"x": np.ma.masked_array([1, 2], mask=[False, False])})
    assert decode_example(payload)["x"].tolist() == [1, 2]


@pytest.mark.parametrize("value", [1.0, np.float32(1), [1, 2.0]])
def test_a_float_is_no_integer_and_what_to_do_is_said(value: Any) -> None:
    with pytest.raises(TypeError, match=r"got float(32)?: convert it by int\(\), or call float_feature"):
        int64_feature(value)
