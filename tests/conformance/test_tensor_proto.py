"""serialize_tensor, parse_tensor and decode_raw give what TensorFlow's give."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from protos import NUMBERS, STRING, axis, bits, content, dtype, number, proto
from records import field, group, tag, varint

SHAPES = [(), (1,), (3,), (0,), (200,), (2, 3), (2, 0, 4), (1, 2, 3, 1), (2, 1, 2, 2, 3)]
NAMES = [*NUMBERS, "string"]
TYPED = {
    5: "fixed32",
    6: "fixed64",
    7: "varint",
    8: "bytes",
    9: "fixed32",
    10: "varint",
    11: "varint",
    12: "fixed64",
    13: "varint",
}
TYPED |= {16: "varint", 17: "varint"}
FIELD_OF = {
    1: 5,
    2: 6,
    3: 7,
    4: 7,
    5: 7,
    6: 7,
    7: 8,
    8: 9,
    9: 10,
    10: 11,
    14: 13,
    17: 7,
    18: 12,
    19: 13,
    22: 16,
    23: 17,
}


def array(name: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Any bits; strings as objects."""
    chance = random.Random(seed)
    size = math.prod(shape)
    if name == "string":
        found = np.empty(size, object)
        found[:] = [chance.randbytes(chance.randint(0, 5)) for _ in range(size)]
        return found.reshape(shape)
    of = dtype(name)
    raw = chance.randbytes(size * of.itemsize)
    return (
        (np.frombuffer(raw, np.uint8) % 2 == 1).reshape(shape)
        if name == "bool"
        else np.frombuffer(raw, of).reshape(shape)
    )


def as_array(found: Any) -> np.ndarray:
    """A tensor of TensorFlow's; a scalar of strings comes as bytes."""
    value = found.numpy()
    return np.array(value, object) if isinstance(value, bytes) else np.asarray(value)


def same(actual: np.ndarray, reference: np.ndarray) -> bool:
    alike = actual.dtype == reference.dtype and actual.shape == reference.shape
    return alike and (
        actual.tolist() == reference.tolist() if actual.dtype == object else bits(actual) == bits(reference)
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_bytes_and_back(name: str, shape: tuple[int, ...], tf: Any) -> None:
    given = array(name, shape)
    reference = tf.io.serialize_tensor(tf.constant(given)).numpy()
    assert tfr.io.serialize_tensor(given) == reference
    assert same(tfr.io.parse_tensor(reference, name), given)
    assert same(as_array(tf.io.parse_tensor(tfr.io.serialize_tensor(given), name)), given)
    assert same(tfr.io.parse_tensor(reference, tf.as_dtype(name)), given)


@pytest.mark.parametrize("name", NAMES)
def test_fields_that_tensorflow_fills(name: str, tf: Any) -> None:
    """make_tensor_proto writes single values, and repeated ones, in the field of the dtype."""
    for seed in range(5):
        value = array(name, (), seed)
        if name in ("float32", "float64", "complex64", "complex128", "float16", "bfloat16") and np.isnan(value):
            continue
        for shape in [(), (1,), (2, 3)]:
            item = value.item() if name == "string" else value
            written = tf.make_tensor_proto(item, dtype=name, shape=shape)
            assert not written.tensor_content
            data = written.SerializeToString()
            assert same(tfr.io.parse_tensor(data), as_array(tf.io.parse_tensor(data, name)))


@pytest.mark.parametrize(
    "value",
    [
        1,
        2**31,
        [1, 2.5],
        [],
        [[]],
        True,
        1j,
        "é",
        ["a", b"\x00"],
        np.float64(0.1),
        [np.array([0.1])],
        np.array(["é", "abc"]),
    ],
)
def test_pythons_values(value: Any, tf: Any) -> None:
    assert tfr.io.serialize_tensor(value) == tf.io.serialize_tensor(value).numpy()


class TableRepresentation:
    """Draws TensorProtos in odd forms."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kind = self.random.choice([*FIELD_OF, *FIELD_OF, 0, 11, 20, 24, 101])

    def value(self, form: str) -> bytes:
        chance = self.random
        if form == "varint":
            return varint(chance.choice([0, 1, 1, 2, 127, 300, 70000, -1, -129, 2**40]))
        return chance.randbytes({"fixed32": 4, "fixed64": 8, "bytes": chance.randint(0, 3)}[form])

    def values(self, of: int) -> bytes:
        form, count = TYPED[of], self.random.choice([0, 1, 1, 2, 2, 3, 4, 6])
        wire_type = {"varint": 0, "fixed64": 1, "bytes": 2, "fixed32": 5}[form]
        items = [self.value(form) for _ in range(count)]
        if form == "bytes":
            return b"".join(field(of, item) for item in items)
        if self.random.random() < 0.5:
            return field(of, b"".join(items))
        return b"".join(tag(of, wire_type) + item for item in items)

    def record(self) -> bytes:
        chance = self.random
        sizes = [
            chance.choice([0, 1, 1, 2, 2, 3, -1, 2**62]) if chance.random() < 0.1 else chance.randint(1, 3)
            for _ in range(3)
        ]
        shape = b"".join(axis(size) for size in sizes[: chance.randint(0, 3)])
        parts = [number(1, self.kind), field(2, shape)]
        if chance.random() < 0.8 and self.kind in FIELD_OF:
            parts.append(self.values(FIELD_OF[self.kind]))
        if chance.random() < 0.1:
            parts.append(self.values(chance.choice(list(TYPED))))
        if chance.random() < 0.3:
            parts.append(content(chance.randbytes(chance.choice([0, 1, 2, 4, 8, 16, 24]))))
        if chance.random() < 0.1:
            parts.append(
                chance.choice([group(77, number(1, 9)), field(2, axis(2)), number(3, 7), number(5, 1), field(99, b"x")])
            )
        chance.shuffle(parts)
        data = b"".join(parts)
        if chance.random() < 0.1:
            data = data[: chance.randint(0, len(data))]
        return data


STRICTER = [  # what we refuse and TensorFlow reads: it cuts, or makes zeros
    "for a shape of",
    "is outside of",
    "halves of complex numbers",
    "with values in",
    "of content for 0 values",
    "rank is unknown",
    "DT_QINT8",
    "DT_FLOAT8",
    "larger than any array",  # where an axis is 0
]


@pytest.mark.parametrize("part", range(4))
def test_the_same_answer_to_odd_forms(part: int, tf: Any) -> None:
    read = refused = 0
    for seed in range(part * 300, part * 300 + 300):
        forms = TableRepresentation(seed)
        data = forms.record()
        where = f"seed {seed}: {data!r}"
        try:
            actual: Any = tfr.io.parse_tensor(data)
        except tfr.errors.DecodeError as error:
            actual = error
        try:
            reference: Any = as_array(tf.io.parse_tensor(data, forms.kind))
        except (tf.errors.OpError, TypeError, NotImplementedError) as error:
            reference = error
        if isinstance(actual, tfr.errors.DecodeError):
            refused += 1
            assert isinstance(reference, Exception) or any(words in str(actual) for words in STRICTER), (
                f"{where}: {actual}, {reference!r}"
            )
        else:
            read += 1
            assert not isinstance(reference, Exception), f"{where}: {actual!r}, {reference}"
            assert same(actual, reference), f"{where}: {actual!r}, {reference!r}"
    assert min(read, refused) > 50


# ---- decode_raw

RAW = [name for name in NUMBERS if name not in ("uint32", "uint64")]  # which TensorFlow's op does not take
PADDED = [name for name in RAW if name not in ("bool", "float16", "complex64", "complex128")]


@pytest.mark.parametrize("little_endian", [True, False])
@pytest.mark.parametrize("name", RAW)
def test_raw_bytes(name: str, little_endian: bool, tf: Any) -> None:
    raw = random.Random(1).randbytes(96)
    for given in (raw, b"", [raw[:48], raw[48:]], [[raw[:32], raw[32:64], raw[64:]]], np.empty((0, 3), object)):
        strings = tf.constant(given, tf.string)
        actual = tfr.io.decode_raw(given, name, little_endian=little_endian)
        reference = tf.io.decode_raw(strings, name, little_endian=little_endian).numpy()
        assert same(actual, reference != 0 if name == "bool" else reference)


@pytest.mark.parametrize("little_endian", [True, False])
@pytest.mark.parametrize("name", PADDED)
def test_raw_bytes_cut_or_filled_up(name: str, little_endian: bool, tf: Any) -> None:
    given = [random.Random(length).randbytes(length) for length in (0, 1, 3, 8, 15, 40)]
    for length in (8, 16, 24):
        for items in (given, given[3], [given[:3], given[3:]]):
            actual = tfr.io.decode_raw(items, name, little_endian=little_endian, fixed_length=length)
            reference = tf.io.decode_raw(
                tf.constant(items, tf.string), name, little_endian=little_endian, fixed_length=length
            )
            assert same(actual, reference.numpy())


@pytest.mark.parametrize(
    ("items", "length"), [(b"abc", None), ([b"abcd", b"ab"], None), ([b"abcd"], 0), ([b"abcd"], -2), ([b"abcd"], 3)]
)
def test_what_both_refuse(items: Any, length: int | None, tf: Any) -> None:
    with pytest.raises(ValueError):
        tfr.io.decode_raw(items, "int16", fixed_length=length)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.decode_raw(items, "int16", fixed_length=length)


def test_a_bool_in_raw_values(tf: Any) -> None:
    data = proto(10, (2,), content(b"\x01\x02"))
    with pytest.raises(tfr.errors.DecodeError, match="not a bool"):
        tfr.io.parse_tensor(data)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_tensor(data, "bool")


def test_strings_in_raw_values(tf: Any) -> None:
    data = proto(STRING, (3,), content(b"\x01\x82\x00\x00abc"))
    assert (
        tfr.io.parse_tensor(data).tolist() == tf.io.parse_tensor(data, "string").numpy().tolist() == [b"a", b"bc", b""]
    )
