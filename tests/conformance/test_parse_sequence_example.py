"""tfrecord_io.io.parse_sequence_example and TensorFlow's agree: values, dtypes, shapes, and whether they fail."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from records import blobs, entry, field, floats, int64s
from tfrecord_io.apps.tf_compat.parse_example import RaggedTensor, SparseTensor
from tfrecord_io.errors import TFRecordError

SEEDS_PER_TEST = 60
DTYPES = ["int64", "float32", "string"]
VALUES: dict[str, list[Any]] = {
    "int64": [0, 1, -1, 300, -(2**63), 2**63 - 1],
    "float32": [0.0, -0.0, 1.5, float("inf"), float("nan"), 1e-45],
    "string": [b"", b"a", b"\x00\xff\x00", "größe".encode()],
}


class Case:
    """Random descriptions for TensorFlow, and records for them.

    Attributes
    ----------
    broken : bool
        Some record has row partitions that do not fit: TensorFlow may give a broken tensor.
    without_type : bool
        Some context has a FixedLenFeature without a type, which TensorFlow refuses.
    """

    def __init__(self, tf: Any, seed: int) -> None:
        self.tf = tf
        self.random = random.Random(seed)
        self.broken = self.without_type = False
        self.context: dict[str, Any] = {}
        self.lists: dict[str, Any] = {}
        self._writers: list[Any] = []
        for at in range(self.random.randint(0, 2)):
            self.random.choice([self._fixed, self._varying_context, self._rows_of_context])(f"f{at}")
        for at in range(self.random.randint(0 if self.context else 1, 3)):
            make = self.random.choice([self._dense, self._dense, self._varying, self._ragged, self._rows])
            make(self.random.choice(["f{}", "größe {}", "x/{}"]).format(at))
        self.records = [self._record() for _ in range(self.random.choice([0, 1, 1, 2, 3, 5]))]

    # the context

    def _fixed(self, name: str) -> None:
        dtype, shape = self.random.choice(DTYPES), self.random.choice([[], [1], [2], [2, 1]])
        size = int(np.prod(shape))
        default = self.random.choices(VALUES[dtype][2:], k=size) if self.random.random() < 0.6 else None
        if default is not None and shape == []:
            default = default[0]
        self.context[name] = self.tf.io.FixedLenFeature(shape, dtype, default)

        def write() -> dict[str, bytes]:
            if self.random.random() < 0.05:
                self.without_type = True
                return {name: b""}
            return {name: self._feature(dtype, size if self.random.random() < 0.95 else self.random.randint(0, 3))}

        self._writers.append((True, write))

    def _varying_context(self, name: str) -> None:
        dtype = self.random.choice(DTYPES)
        self.context[name] = self.tf.io.VarLenFeature(dtype)
        self._writers.append((True, lambda: {name: self._feature(dtype, self.random.randint(0, 3))}))

    def _rows_of_context(self, name: str) -> None:
        dtype, ragged = self.random.choice(DTYPES), self.tf.io.RaggedFeature
        self.context[name] = ragged(dtype, f"{name}/v", [ragged.RowLengths(f"{name}/n")], validate=True)

        def write() -> dict[str, bytes]:
            lengths = [self.random.randint(0, 2) for _ in range(self.random.randint(0, 2))]
            return {f"{name}/v": self._feature(dtype, sum(lengths)), f"{name}/n": int64s(*lengths)}

        self._writers.append((True, write))

    # feature lists

    def _dense(self, name: str) -> None:
        dtype, shape = self.random.choice(DTYPES), self.random.choice([[], [], [1], [2], [2, 3]])
        size = int(np.prod(shape))
        allow_missing = self.random.random() < 0.7
        self.lists[name] = self.tf.io.FixedLenSequenceFeature(shape, dtype, allow_missing)
        self._add_list(name, dtype, lambda: size if self.random.random() < 0.98 else self.random.randint(0, 3))

    def _varying(self, name: str) -> None:
        dtype = self.random.choice(DTYPES)
        self.lists[name] = self.tf.io.VarLenFeature(dtype)
        self._add_list(name, dtype, lambda: self.random.randint(0, 3))

    def _ragged(self, name: str) -> None:
        dtype = self.random.choice(DTYPES)
        splits = self.random.choice(["int32", "int64"])
        self.lists[name] = self.tf.io.RaggedFeature(dtype, row_splits_dtype=splits)
        self._add_list(name, dtype, lambda: self.random.randint(0, 3))

    def _rows(self, name: str) -> None:
        ragged, dtype = self.tf.io.RaggedFeature, self.random.choice(DTYPES)
        kinds = ["RowSplits", "RowLengths", "RowStarts", "RowLimits", "ValueRowIds", "UniformRowLength"]
        kind = self.random.choice(kinds)
        partition = ragged.UniformRowLength(2) if kind == "UniformRowLength" else getattr(ragged, kind)(f"{name}/n")
        splits = self.random.choice(["int32", "int64"])
        validate = self.random.choice([True, False])
        self.lists[name] = ragged(dtype, f"{name}/v", [partition], splits, validate)

        def write() -> dict[str, list[bytes]]:
            if self.random.random() < 0.1:
                return {}
            values, rows = [], []
            for _ in range(self.random.randint(0, 3)):
                lengths = [self.random.randint(0, 2) for _ in range(self.random.randint(0, 3))]
                if kind == "UniformRowLength":
                    lengths = [2] * len(lengths)
                if kind == "ValueRowIds" and lengths and not lengths[-1]:
                    lengths[-1] = 1
                limits = np.cumsum([0, *lengths]).tolist()
                content = {
                    "RowSplits": limits,
                    "RowLengths": lengths,
                    "RowStarts": limits[:-1],
                    "RowLimits": limits[1:],
                    "ValueRowIds": np.repeat(np.arange(len(lengths)), lengths).tolist(),
                    "UniformRowLength": [],
                }[kind]
                if self.random.random() < 0.03:
                    self.broken, content = True, [*content, 90]
                values.append(self._feature(dtype, sum(lengths)))
                rows.append(int64s(*content) if content else field(3, b""))
            if rows and self.random.random() < 0.03 and kind != "UniformRowLength":
                self.broken, rows = True, rows[1:]
            return {f"{name}/v": values} | ({} if kind == "UniformRowLength" else {f"{name}/n": rows})

        self._writers.append((False, write))

    def _add_list(self, name: str, dtype: str, count: Any) -> None:
        def write() -> dict[str, list[bytes]]:
            if self.random.random() < 0.1:
                return {}
            kind = self.random.choice(DTYPES) if self.random.random() < 0.03 else dtype
            steps = [self._feature(kind, count()) for _ in range(self.random.randint(0, 3))]
            return {name: [b"" if self.random.random() < 0.03 else step for step in steps]}

        self._writers.append((False, write))

    # records

    def _feature(self, dtype: str, count: int) -> bytes:
        values = self.random.choices(VALUES[dtype], k=count)
        if not values:  # the kind is set
            return field({"string": 1, "float32": 2, "int64": 3}[dtype], b"")
        return {"int64": int64s, "float32": floats, "string": blobs}[dtype](*values)

    def _record(self) -> bytes:
        context: dict[str, bytes] = {"other": int64s(1)}
        lists: dict[str, list[bytes]] = {"other": [floats(1)]}
        for in_context, write in self._writers:
            (context if in_context else lists).update(write())  # type: ignore[arg-type]  # of the two maps
        entries = [entry(name, b"".join(field(1, step) for step in steps)) for name, steps in lists.items()]
        features = [entry(name, feature) for name, feature in context.items()]
        self.random.shuffle(entries)
        return field(1, b"".join(features)) + field(2, b"".join(entries))


def as_numpy(tf: Any, found: Any) -> Any:
    """TensorFlow's tensors as the types of tfrecord_io."""
    if isinstance(found, tf.sparse.SparseTensor):
        return SparseTensor(found.indices.numpy(), found.values.numpy(), found.dense_shape.numpy())
    if isinstance(found, tf.RaggedTensor):
        return RaggedTensor(found.flat_values.numpy(), tuple(splits.numpy() for splits in found.nested_row_splits))
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
    """The result of a call, or its error."""
    try:
        return parse()
    except Exception as error:  # TensorFlow has many classes for it
        return error


def check(tf: Any, case: Case, parse: str, records: Any, where: str) -> bool:
    """Compare the two; True if both gave values."""
    required = [each for each in case.context.values() if getattr(each, "default_value", ()) is None]
    if isinstance(records, np.ndarray) and not len(records) and required:
        return False  # TensorFlow refuses an empty batch where a FixedLenFeature is required
    actual = answer(lambda: getattr(tfr.io, parse)(records, case.context, case.lists))
    data = tf.constant(records, tf.string)
    reference = answer(lambda: getattr(tf.io, parse)(data, case.context, case.lists))
    where = f"{where}, {case.context}, {case.lists}: {actual!r}, TensorFlow {reference!r}"
    assert not isinstance(actual, Exception) or isinstance(actual, TFRecordError), where
    if (case.broken and isinstance(actual, Exception)) or (case.without_type and isinstance(reference, Exception)):
        return False
    assert isinstance(actual, Exception) == isinstance(reference, Exception), where
    if isinstance(actual, Exception):
        return False
    assert len(actual) == len(reference), where
    for mine, other in zip(actual, reference, strict=True):
        assert set(mine) == set(other), where
        for name in other:
            assert_same(mine[name], as_numpy(tf, other[name]), f"{name} of {where}")
    return True


@pytest.mark.parametrize("part", range(6))
def test_same_answer_to_random_descriptions(engine: str, part: int, tf: Any) -> None:
    read = 0
    for seed in range(part * SEEDS_PER_TEST, (part + 1) * SEEDS_PER_TEST):
        case = Case(tf, seed)
        batch = np.array(case.records, object)
        read += check(tf, case, "parse_sequence_example", batch, f"seed {seed}")
        for at, record in enumerate(case.records[:2]):
            check(tf, case, "parse_single_sequence_example", record, f"seed {seed}, record {at}")
            check(tf, case, "parse_sequence_example", record, f"seed {seed}, record {at} without a batch")
    assert SEEDS_PER_TEST * 0.3 < read < SEEDS_PER_TEST  # both answers are reached


@pytest.mark.parametrize("name", ["parse_sequence_example", "parse_single_sequence_example"])
def test_parameters_are_those_of_tensorflow(tf: Any, name: str) -> None:
    import inspect

    theirs = inspect.signature(getattr(tf.io, name)).parameters.values()
    ours = inspect.signature(getattr(tfr.io, name)).parameters.values()
    positional = [parameter for parameter in ours if parameter.kind is not parameter.KEYWORD_ONLY]
    assert [(each.name, each.default) for each in positional] == [(each.name, each.default) for each in theirs]


@pytest.mark.parametrize(
    ("context", "lists"),
    [
        (None, None),
        ({"a": ("FixedLenSequenceFeature", [], "int64")}, None),
        ({"a": ("SparseFeature", "i", "v", "int64", 3)}, None),
        (None, {"a": ("FixedLenFeature", [], "int64")}),
        (None, {"a": ("FixedLenSequenceFeature", [], "int64", True, 7)}),
        (None, {"n": ("VarLenFeature", "int64"), "r": ("RaggedFeature", "int64", "n")}),
    ],
)
def test_both_refuse_a_description(tf: Any, context: Any, lists: Any) -> None:
    def described(features: Any) -> Any:
        return features and {
            name: getattr(tf.io, kind)(*[getattr(tf, part) if part == "int64" else part for part in arguments])
            for name, (kind, *arguments) in features.items()
        }

    with pytest.raises(Exception, match=r".") as reference:
        tf.io.parse_sequence_example([b""], described(context), described(lists))
    assert isinstance(reference.value, ValueError)
    with pytest.raises(tfr.errors.SchemaError):
        tfr.io.parse_sequence_example([b""], described(context), described(lists))
