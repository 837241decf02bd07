"""tfrecord_io.io.parse_example and TensorFlow's agree: values, dtypes, shapes, and whether they fail."""

from __future__ import annotations

import itertools
import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from records import blobs, entry, example, field, floats, group, int64s, tag, varint, written
from tfrecord_io.apps.tf_compat.parse_example import RaggedTensor, SparseTensor, parse_example
from tfrecord_io.errors import DecodeError, TFRecordError

SEEDS_PER_TEST = 60
DTYPES = ["int64", "float32", "string"]
INTS = [0, 1, -1, 300, -(2**63), 2**63 - 1]
FLOATS = [0.0, -0.0, 1.5, float("inf"), float("nan"), 1e-45, 3.25]
TEXTS = [b"", b"a", b"\x00\xff\x00", "größe".encode(), b"x" * 40]


class Case:
    """A random feature description for TensorFlow, and records for it.

    Attributes
    ----------
    broken : bool
        Some record has invalid row partitions or sparse indices: TensorFlow may give a broken tensor.
    """

    def __init__(self, tf: Any, seed: int) -> None:
        self.tf = tf
        self.random = random.Random(seed)
        self.broken = False
        self.description: dict[str, Any] = {}
        self._writers: list[Any] = []
        for at in range(self.random.randint(1, 3)):
            make = self.random.choice(
                [self._fixed, self._fixed, self._blocks, self._varying, self._ragged, self._rows, self._sparse]
            )
            make(self.random.choice(["f{}", "größe {}", "a\nb{}", "x/{}/日本", "x" * 300 + "{}"]).format(at))
        self.records = [self._record() for _ in range(self.random.choice([0, 1, 1, 2, 3, 5]))]

    # descriptions

    def _fixed(self, name: str) -> None:
        dtype = self.random.choice(DTYPES)
        shape = self.random.choice([[], [], [1], [2], [3], [2, 2], [1, 3, 1], [0]])
        size = int(np.prod(shape))
        default = self._default(dtype, size) if self.random.random() < 0.6 else None
        if default is not None and shape == []:
            default = default[0]
        self.description[name] = self.tf.io.FixedLenFeature(shape, dtype, default)
        self._add(name, dtype, lambda: size if self.random.random() < 0.95 else self.random.randint(0, 4))

    def _blocks(self, name: str) -> None:
        dtype = self.random.choice(DTYPES)
        shape = self.random.choice([[], [], [1], [2], [2, 3]])
        size = int(np.prod(shape))
        default = self._default(dtype, 1)[0] if self.random.random() < 0.5 else None
        self.description[name] = self.tf.io.FixedLenSequenceFeature(shape, dtype, True, default)
        self._add(name, dtype, lambda: size * self.random.randint(0, 3) + (self.random.random() < 0.04))

    def _varying(self, name: str) -> None:
        dtype = self.random.choice(DTYPES)
        self.description[name] = self.tf.io.VarLenFeature(dtype)
        self._add(name, dtype, lambda: self.random.randint(0, 4))

    def _ragged(self, name: str) -> None:
        dtype = self.random.choice(DTYPES)
        self.description[name] = self.tf.io.RaggedFeature(
            dtype, row_splits_dtype=self.random.choice(["int32", "int64"])
        )
        self._add(name, dtype, lambda: self.random.randint(0, 4))

    def _rows(self, name: str) -> None:
        ragged = self.tf.io.RaggedFeature
        dtype = self.random.choice(DTYPES)
        partitions = []
        for at in range(self.random.randint(1, 3)):
            kind = self.random.choice(
                ["RowSplits", "RowLengths", "RowStarts", "RowLimits", "ValueRowIds", "UniformRowLength"]
            )
            content = self.random.randint(1, 2) if kind == "UniformRowLength" else f"{name}/rows{at}"
            partitions.append(getattr(ragged, kind)(content))
        validate = self.random.choice([True, False])
        values = self.random.choice([None, f"{name}/values"])
        self.description[name] = ragged(dtype, values, partitions, self.random.choice(["int32", "int64"]), validate)
        self._writers.append(lambda: self._partitioned(values or name, dtype, partitions))

    def _sparse(self, name: str) -> None:
        dtype = self.random.choice(DTYPES)
        size = [self.random.randint(1, 5) for _ in range(self.random.randint(1, 3))]
        keys = [f"{name}/at{axis}" for axis in range(len(size))]
        one = len(size) == 1 and self.random.random() < 0.5
        already = self.random.random() < 0.3
        self.description[name] = self.tf.io.SparseFeature(
            keys[0] if one else keys, f"{name}/values", dtype, size[0] if one else size, already_sorted=already
        )
        self._writers.append(lambda: self._scattered(name, dtype, keys, size))

    # records

    def _values(self, dtype: str, count: int) -> list[Any]:
        return self.random.choices({"int64": INTS, "float32": FLOATS, "string": TEXTS}[dtype], k=count)

    def _default(self, dtype: str, count: int) -> list[Any]:
        """Values without −0.0, of which TensorFlow makes 0.0 in a default."""
        return [0.0 if value == 0.0 and dtype == "float32" else value for value in self._values(dtype, count)]

    def _feature(self, dtype: str, values: list[Any]) -> bytes:
        if not values:  # the kind is set
            return field({"string": 1, "float32": 2, "int64": 3}[dtype], b"")
        return {"int64": int64s, "float32": floats, "string": blobs}[dtype](*values)

    def _add(self, name: str, dtype: str, count: Any) -> None:
        def write() -> dict[str, bytes]:
            chance = self.random.random()
            if chance < 0.08:
                return {}
            if chance < 0.14:
                return {name: b""}
            kind = self.random.choice(DTYPES) if self.random.random() < 0.03 else dtype
            return {name: self._feature(kind, self._values(kind, count()))}

        self._writers.append(write)

    def _partitioned(self, name: str, dtype: str, partitions: list[Any]) -> dict[str, bytes]:
        """Rows in rows that fit, seldom spoiled."""
        written: dict[str, bytes] = {}
        items = self.random.randint(0, 3) if self.random.random() < 0.9 else 0
        for partition in partitions:
            lengths = [self.random.randint(0, 3) for _ in range(items)]
            kind = type(partition).__name__
            if kind == "UniformRowLength":
                items *= partition.length
                continue
            if kind == "ValueRowIds" and lengths and not lengths[-1]:  # rows behind the last value cannot be expressed
                lengths[-1] = 1
            content = self._partition_content(kind, lengths)
            if self.random.random() < 0.05:
                content = self._damaged(content)
            if content or self.random.random() < 0.5:
                written[partition.key] = self._feature("int64", content)
            items = sum(lengths)
        values = self._values(dtype, items)
        if values or self.random.random() < 0.5:
            written[name] = self._feature(dtype, values)
        return written

    @staticmethod
    def _partition_content(kind: str, lengths: list[int]) -> list[int]:
        limits = np.cumsum([0, *lengths]).tolist()
        return {
            "RowSplits": limits,
            "RowLengths": lengths,
            "RowStarts": limits[:-1],
            "RowLimits": limits[1:],
            "ValueRowIds": np.repeat(np.arange(len(lengths)), lengths).tolist(),
        }[kind]

    def _damaged(self, content: list[int]) -> list[int]:
        self.broken = True
        content = list(content)
        if content and self.random.random() < 0.7:
            content[self.random.randrange(len(content))] += self.random.choice([-7, 7, 2**40])
            return content
        return [*content, self.random.choice([-1, 90, 2**62])]

    def _scattered(self, name: str, dtype: str, keys: list[str], size: list[int]) -> dict[str, bytes]:
        places = [list(at) for at in np.ndindex(*size)]
        chosen = self.random.sample(places, self.random.randint(0, min(4, len(places))))
        if chosen and self.random.random() < 0.04:
            self.broken = True
            self.random.choice(chosen)[0] = self.random.choice([-1, 5, 2**40])
        values = self._values(dtype, len(chosen))
        if self.random.random() < 0.04:
            self.broken = True
            values = [*values, *self._values(dtype, 1)]
        written = {key: self._feature("int64", [at[axis] for at in chosen]) for axis, key in enumerate(keys)}
        return written | {f"{name}/values": self._feature(dtype, values)}

    def _record(self) -> bytes:
        features: dict[str, bytes] = {"other": int64s(1)}
        for write in self._writers:
            features |= write()
        names = list(features)
        self.random.shuffle(names)
        return example() if not names else field(1, b"".join(entry(name, features[name]) for name in names))


def as_numpy(tf: Any, found: Any) -> Any:
    """TensorFlow's tensors as the types of tfrecord_io."""
    if isinstance(found, tf.sparse.SparseTensor):
        return SparseTensor(found.indices.numpy(), found.values.numpy(), found.dense_shape.numpy())
    if isinstance(found, tf.RaggedTensor):
        return RaggedTensor(found.flat_values.numpy(), tuple(each.numpy() for each in found.nested_row_splits))
    return found.numpy()


def assert_same(actual: Any, reference: Any, where: str) -> None:
    assert type(actual) is type(reference) or not isinstance(reference, tuple), where
    if isinstance(reference, tuple):
        assert len(actual) == len(reference), where
        for mine, other in zip(actual, reference, strict=True):
            assert_same(mine, other, where)
        return
    assert isinstance(actual, bytes) == isinstance(reference, bytes), where
    dtype = object if isinstance(actual, bytes) else None
    mine, other = np.asarray(actual, dtype), np.asarray(reference, dtype)
    assert mine.shape == other.shape, where
    assert mine.dtype == other.dtype, where
    if mine.dtype == np.float32:
        mine, other = mine.view(np.uint32), other.view(np.uint32)
    assert mine.tolist() == other.tolist(), where


def answer(parse: Any) -> Any:
    """What a call gives, or the error."""
    try:
        return parse()
    except Exception as error:  # TensorFlow has many classes for it
        return error


def check(tf: Any, case: Case, records: Any, parse: Any, where: str) -> bool:
    """Compare the two; whether they gave values."""
    actual = answer(lambda: parse_example(records, case.description))
    reference = answer(lambda: {name: as_numpy(tf, found) for name, found in parse(records, case.description).items()})
    assert not isinstance(actual, Exception) or isinstance(actual, TFRecordError), f"{where}: {actual!r}"
    if case.broken and isinstance(actual, DecodeError):
        return False
    assert isinstance(actual, Exception) == isinstance(reference, Exception), (
        f"{where}: {actual!r}, TensorFlow {reference!r}"
    )
    if isinstance(actual, Exception):
        return False
    assert set(actual) == set(reference), where
    for name in reference:
        assert_same(
            actual[name],
            reference[name],
            f"{where}, {name}: {case.description[name]}, {actual[name]!r}, TensorFlow {reference[name]!r}",
        )
    return True


@pytest.mark.parametrize("part", range(10))
def test_same_answer_to_random_descriptions(engine: str, part: int, tf: Any) -> None:
    def parse(records: Any, description: Any) -> Any:
        return tf.io.parse_example(tf.constant(records, tf.string), description)

    read = 0
    for seed in range(part * SEEDS_PER_TEST, (part + 1) * SEEDS_PER_TEST):
        case = Case(tf, seed)
        batch = np.array(case.records, object)
        read += check(tf, case, batch, parse, f"seed {seed}, {case.description}")
        for at, record in enumerate(case.records[:2]):
            check(tf, case, record, tf.io.parse_single_example, f"seed {seed}, record {at}, {case.description}")
    assert SEEDS_PER_TEST * 0.3 < read < SEEDS_PER_TEST  # both answers are reached


# Forms in which TensorFlow's fast parser differs from protobuf; dev/parser-differences.md lists them. Values: those by
# protobuf's rules, as tfrecord_io gives them, and TensorFlow's.
# The feature a of each is an int64 feature with a value count of its own; ERROR: refused.
ERROR = "error"
INTS_1, INTS_2 = field(1, varint(1)), field(1, varint(2))
FORMS: dict[str, tuple[bytes, Any, Any]] = {
    "packed and unpacked values in one list": (example(a=field(3, tag(1, 0) + varint(1) + INTS_2)), [1, 2], ERROR),
    "two packed runs": (example(a=field(3, INTS_1 + INTS_2)), [1, 2], [1]),
    "two lists of one feature type": (example(a=field(3, INTS_1) + field(3, INTS_2)), [1, 2], [1]),
    "two kinds, the other one first": (example(a=floats(1) + int64s(2)), [2], ERROR),
    "two kinds, the other one last": (example(a=int64s(2) + floats(1)), ERROR, [2]),
    "a group in Example": (example(a=int64s(1)) + group(5, b""), [1], ERROR),
    "an unknown field in Features": (field(1, entry("a", int64s(1)) + field(7, b"x")), [1], ERROR),
    "an unknown field in a map entry": (
        field(1, field(1, field(1, b"a") + field(2, int64s(1)) + field(7, b"x"))),
        [1],
        ERROR,
    ),
    "an unknown field in Feature, before the kind": (example(a=field(7, b"x") + int64s(1)), [1], ERROR),
    "an unknown field in a list, before the values": (example(a=field(3, field(7, b"x") + INTS_1)), [1], ERROR),
    "a map entry without a value": (field(1, field(1, field(1, b"a"))), [], ERROR),
    "a map entry without a key": (field(1, entry("a", int64s(1)) + field(1, field(2, int64s(2)))), [1], ERROR),
    "a key twice in a map entry": (
        field(1, field(1, field(1, b"b") + field(1, b"a") + field(2, int64s(1)))),
        [1],
        ERROR,
    ),
    "a value twice in a map entry": (
        field(1, field(1, field(1, b"a") + field(2, int64s(1)) + field(2, int64s(2)))),
        [1, 2],
        ERROR,
    ),
    "a tag longer than it needs to be": (
        tag(1, 2, 1) + varint(len(entry("a", int64s(1)))) + entry("a", int64s(1)),
        [1],
        [],
    ),
    "a name that is not UTF-8": (field(1, entry(b"\xff", int64s(1)) + entry("a", int64s(1))), ERROR, [1]),
}
AGREED: dict[str, tuple[bytes, Any]] = {
    "unpacked": (example(a=field(3, tag(1, 0) + varint(1) + tag(1, 0) + varint(2))), [1, 2]),
    "an unknown field in Example": (field(21574, b"TFRA") + example(a=int64s(1)) + field(5, b"x"), [1]),
    "a key twice in the map": (field(1, entry("a", int64s(1)) + entry("a", int64s(2))), [2]),
    "a key twice in the map, of two kinds": (field(1, entry("a", floats(1)) + entry("a", int64s(2))), [2]),
    "two Features": (example(a=int64s(1)) + example(a=int64s(2)), [2]),
    "a length longer than it needs to be": (field(1, entry("a", int64s(1)), 2), [1]),
    "a varint longer than it needs to be": (example(a=field(3, field(1, varint(1, 3)))), [1]),
    "a varint of eleven bytes": (example(a=field(3, field(1, b"\xff" * 10 + b"\x01"))), ERROR),
    "a cut record": (example(a=int64s(1))[:-1], ERROR),
}


def values_of(parse: Any, feature: Any, payload: bytes) -> Any:
    found = answer(lambda: parse([payload], {"a": feature})["a"])
    return ERROR if isinstance(found, Exception) else np.asarray(getattr(found, "values", found)).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_protobufs_rules_win(engine: str, tf: Any, form: str) -> None:
    payload, actual, reference = FORMS[form]
    feature = tf.io.VarLenFeature(tf.int64)
    assert values_of(parse_example, feature, payload) == actual
    assert values_of(tf.io.parse_example, feature, payload) == reference


@pytest.mark.parametrize("form", AGREED)
def test_odd_forms_that_both_read_alike(engine: str, tf: Any, form: str) -> None:
    payload, expected = AGREED[form]
    feature = tf.io.VarLenFeature(tf.int64)
    assert values_of(parse_example, feature, payload) == values_of(tf.io.parse_example, feature, payload) == expected


@pytest.mark.filterwarnings("ignore:.*occurs in none of:tfrecord_io.errors.SchemaWarning")
@pytest.mark.parametrize("levels", ["l", "l m", "l 2", "2 m"])
def test_columns_of_partitioned_features_are_those_of_tensorflow(
    engine: str, tf: Any, tmp_path: Path, levels: str
) -> None:
    """Values, lengths or both may be missing; a record without any of them is null in a table, empty in TensorFlow."""
    ragged = tf.io.RaggedFeature
    partitions = [ragged.UniformRowLength(2) if key == "2" else ragged.RowLengths(key) for key in levels.split()]
    description = {"r": ragged(tf.int64, "v", partitions, validate=True)}
    schema = tfr.Schema.from_feature_description(description)
    keys = ["v", *(key for key in levels.split() if key != "2")]
    agreed = 0
    for values in itertools.product([None, b"\x1a\0", int64s(0), int64s(0, 0), int64s(1, 1)], repeat=len(keys)):
        record = {key: value for key, value in zip(keys, values, strict=True) if value is not None}
        payload = example(**record)
        path = written(tmp_path / "a", [payload])
        actual = answer(partial(tfr.read_table, path, schema=schema))
        expected = answer(partial(tf.io.parse_example, [payload], description))
        if not isinstance(expected, Exception):
            assert actual["r"].to_pylist() == (expected["r"].to_list() if record else [None]), record
            agreed += 1
    assert agreed > 5
