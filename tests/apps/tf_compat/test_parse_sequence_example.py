"""parse_sequence_example returns what tf.io.parse_sequence_example returns; tests/conformance compares the two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from records import blobs, entry, field, floats, int64s
from tfrecord_io.apps.tf_compat.parse_example import RaggedTensor, SparseTensor
from tfrecord_io.columns import feature_values
from tfrecord_io.errors import DecodeError, FeatureNotFoundError, FeatureTypeError, SchemaError

pytestmark = pytest.mark.usefixtures("engine")
IO = tfr.io
INT64 = IO.FixedLenSequenceFeature([], "int64")
ROWS = IO.RaggedFeature("int64", "v", [IO.RaggedFeature.RowLengths("n")])


def sequence(lists: dict[str, list[bytes]] | None = None, **context: bytes) -> bytes:
    """A serialized SequenceExample: features of the context, and the steps of each feature list."""
    parts = b""
    if context:
        parts += field(1, b"".join(entry(name, feature) for name, feature in context.items()))
    if lists is not None:
        parts += field(
            2, b"".join(entry(name, b"".join(field(1, step) for step in steps)) for name, steps in lists.items())
        )
    return parts


def lists_of(records: Any, **features: Any) -> Any:
    return IO.parse_sequence_example(records, sequence_features=features)[1]


TWO, NONE, ONE = sequence({"a": [int64s(1), int64s(2)]}), sequence(), sequence({"a": [int64s(3)]})
VARIED = sequence({"a": [int64s(1, 2), b"", int64s(3)]})


def test_dense_steps_are_padded_to_the_longest_and_their_numbers_are_returned() -> None:
    feature = IO.FixedLenSequenceFeature([], "int64", allow_missing=True)
    context, lists, lengths = IO.parse_sequence_example([TWO, NONE, ONE], None, {"a": feature})
    assert context == {}
    assert lists["a"].tolist() == [[1, 2], [0, 0], [3, 0]]
    assert lists["a"].dtype == np.int64
    assert lengths["a"].tolist() == [2, 0, 1]
    assert lengths["a"].dtype == np.int64
    assert IO.parse_single_sequence_example(TWO, None, {"a": feature})[1]["a"].tolist() == [1, 2]
    _, lists, lengths = IO.parse_sequence_example(TWO, None, {"a": feature})  # without a batch axis, as in TensorFlow
    assert (lists["a"].tolist(), lengths["a"]) == ([1, 2], 2)
    texts = lists_of(
        [sequence({"t": [blobs(b"x", b"y")]}), NONE], t=IO.FixedLenSequenceFeature([2, 1], "string", allow_missing=True)
    )["t"]
    assert texts.tolist() == [[[[b"x"], [b"y"]]], [[[b""], [b""]]]]


def test_varying_steps_are_sparse() -> None:
    parsed = lists_of([TWO, NONE, VARIED], a=IO.VarLenFeature("int64"))["a"]
    assert isinstance(parsed, SparseTensor)
    assert parsed.indices.tolist() == [[0, 0, 0], [0, 1, 0], [2, 0, 0], [2, 0, 1], [2, 2, 0]]
    assert parsed.values.tolist() == [1, 2, 1, 2, 3]
    assert parsed.dense_shape.tolist() == [3, 3, 2]
    single = IO.parse_single_sequence_example(VARIED, None, {"a": IO.VarLenFeature("int64")})[1]["a"]
    assert single.indices.tolist() == [[0, 0], [0, 1], [2, 0]]
    assert single.dense_shape.tolist() == [3, 2]


def test_ragged_steps_are_rows_of_rows_and_of_the_partitions() -> None:
    parsed = lists_of([VARIED, NONE, ONE], a=IO.RaggedFeature("int64"))["a"]
    assert isinstance(parsed, RaggedTensor)
    assert parsed.to_list() == [[[1, 2], [], [3]], [], [[3]]]
    assert parsed.row_splits.dtype == np.int32
    first = sequence({"v": [int64s(1, 2), b"", int64s(3)], "n": [int64s(1, 1), b"", int64s(0, 1)]})
    records = [first, NONE, sequence({"v": [int64s(7)], "n": [int64s(1)]})]
    assert lists_of(records, r=ROWS)["r"].to_list() == [[[[1], [2]], [], [[], [3]]], [], [[[7]]]]
    assert IO.parse_single_sequence_example(first, None, {"r": ROWS})[1]["r"].to_list() == [[[1], [2]], [], [[], [3]]]


def test_the_context_is_parsed_as_an_example_beside_lists_of_the_same_names() -> None:
    record = sequence({"a": [int64s(1)]}, a=floats(9), t=blobs(b"x", b"y"), n=int64s(1, 1))
    partitions = [IO.RaggedFeature.RowLengths("n")]
    context, lists, _ = IO.parse_sequence_example(
        [record, sequence(n=int64s())],
        {"a": IO.FixedLenFeature([], "float32", 5), "r": IO.RaggedFeature("string", "t", partitions)},
        {"a": IO.VarLenFeature("int64")},
    )
    assert context["a"].tolist() == [9, 5]
    assert context["r"].to_list() == [[[b"x"], [b"y"]], []]
    assert lists["a"].values.tolist() == [1]
    context, lists = IO.parse_single_sequence_example(record, {"a": IO.FixedLenFeature([], "float32")}, {"a": INT64})
    assert (context["a"], lists["a"].tolist()) == (9, [1])


def test_chunks_of_a_batch_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [TWO, NONE, VARIED, NONE, ONE] * 3
    whole = lists_of(records, a=IO.RaggedFeature("int64"))["a"].to_list()
    monkeypatch.setattr(feature_values, "_CHUNK_BYTES", 1)
    assert lists_of(records, a=IO.RaggedFeature("int64"))["a"].to_list() == whole


def test_an_empty_batch() -> None:
    _, lists, lengths = IO.parse_sequence_example(
        [], None, {"d": INT64, "v": IO.VarLenFeature("int64"), "r": IO.RaggedFeature("int64")}
    )
    assert lists["d"].shape == (0, 0)
    assert lists["v"].dense_shape.tolist() == [0, 0, 0]
    assert lists["v"].indices.shape == (0, 3)
    assert lists["r"].to_list() == []
    assert lengths["d"].tolist() == []


@pytest.mark.parametrize(
    ("record", "feature", "error", "message"),
    [
        (NONE, INT64, FeatureNotFoundError, "record 1: feature 'a': the record lacks the feature list"),
        (VARIED, INT64, DecodeError, "record 1: feature 'a': step 0: expected 1 values, got 2"),
        (
            sequence({"a": [int64s(1), b""]}),
            INT64,
            DecodeError,
            "record 1: feature 'a': step 1: expected 1 values, got 0",
        ),
        (sequence({"a": [int64s(1), floats(1)]}), INT64, FeatureTypeError, "record 1: feature 'a'"),
        (
            b"\xff",
            IO.VarLenFeature("int64"),
            DecodeError,
            "record 1: the payload is not a valid Example or SequenceExample",
        ),
        (
            sequence({"v": [int64s(1), int64s(2)], "n": [int64s(1)]}),
            ROWS,
            DecodeError,
            "record 1: feature 'n': expected 2 steps, as many as the values of the RaggedFeature 'a' have, got 1",
        ),
        (
            sequence({"v": [int64s(1), int64s(2)], "n": [int64s(1), int64s(0)]}),
            ROWS,
            DecodeError,
            "record 1: feature 'n': step 1: there are 1 values, but the rows have 0",
        ),
    ],
    ids=["no list", "two values", "no value", "another kind", "not protobuf", "fewer rows", "other rows"],
)
def test_the_first_bad_record_and_step_are_named(record: bytes, feature: Any, error: Any, message: str) -> None:
    good = sequence({"a": [int64s(1)], "v": [int64s(1)], "n": [int64s(1)]})
    with pytest.raises(error, match=message) as caught:
        lists_of([good, record, record], a=feature)
    assert caught.value.record == 1
    with pytest.raises(error, match=f"second: {message}"):
        IO.parse_sequence_example([good, record], None, {"a": feature}, ["first", "second"])
    with pytest.raises(error, match=f"only: {message.replace('record 1', 'record 0')}"):
        IO.parse_single_sequence_example(record, None, {"a": feature}, "only")


@pytest.mark.parametrize(
    ("context", "lists", "message"),
    [
        (None, None, "no feature is described; pass context_features=, sequence_features= or both"),
        ({}, {}, "no feature is described"),
        ({"a": INT64}, None, "the context of a SequenceExample has no FixedLenSequenceFeature, only FixedLenFeature"),
        ({"a": IO.SparseFeature("i", "v", "int64", 3)}, None, "the context of a SequenceExample has no SparseFeature"),
        (None, {"a": IO.FixedLenFeature([], "int64")}, "a feature list has no FixedLenFeature"),
        (None, {"a": IO.FixedLenSequenceFeature([], "int64", True, 7)}, "takes no default_value"),
        (None, {"n": IO.VarLenFeature("int64"), "r": ROWS}, "'n': it is described both as sparse"),
    ],
)
def test_descriptions_that_tensorflow_rejects(context: Any, lists: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        IO.parse_sequence_example([TWO], context, lists)


def test_arguments_of_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="record 0: expected bytes, got int"):
        lists_of([3], a=INT64)
    with pytest.raises(
        TypeError, match="expected the bytes of a record, got list; parse_sequence_example takes several"
    ):
        IO.parse_single_sequence_example([TWO], None, {"a": INT64})
    with pytest.raises(ValueError, match="example_names= has 1 names for 2 records: pass one for each"):
        IO.parse_sequence_example([TWO, ONE], None, {"a": INT64}, example_names=["x"])


def test_padding_is_limited() -> None:
    long = sequence({"a": [int64s(1)] * 4000})
    feature = IO.FixedLenSequenceFeature([], "int64", allow_missing=True)
    few = tfr.Limits(expansion_bytes=1000)
    with pytest.raises(DecodeError, match="records padded to the longest take"):
        IO.parse_sequence_example([long, *[NONE] * 1000], None, {"a": feature}, limits=few)
