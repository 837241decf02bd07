"""parse_example returns what tf.io.parse_example returns; the expected values are from TensorFlow's documentation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from records import entry, example, field, floats, int64s
from tfrecord_io.apps.tf_compat.parse_example import RaggedTensor, SparseTensor, parse_example
from tfrecord_io.apps.tf_compat.tf_features import (
    FEATURES,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
)
from tfrecord_io.columns import feature_values
from tfrecord_io.columns.example import encode_example
from tfrecord_io.columns.schema.schema import DESCRIPTIONS
from tfrecord_io.errors import DecodeError, FeatureNotFoundError, FeatureTypeError, SchemaError

pytestmark = pytest.mark.usefixtures("engine")
INT64, FLOAT, STRING = np.dtype(np.int64), np.dtype(np.float32), np.dtype(object)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def same(parsed: Any, expected: Any, dtype: np.dtype[Any]) -> None:
    assert isinstance(parsed, np.ndarray)
    assert parsed.dtype == dtype
    assert parsed.shape == np.array(expected, dtype).shape
    assert parsed.tolist() == expected


def test_a_schema_knows_the_classes_of_feature_descriptions() -> None:
    assert FEATURES.keys() == DESCRIPTIONS


# ---- dense


def test_the_tutorials_four_features() -> None:
    records = [encode_example({"feature0": ints(0), "feature1": ints(4), "feature2": b"goat", "feature3": 0.9876})]
    description = {
        "feature0": FixedLenFeature([], "int64", default_value=0),
        "feature1": FixedLenFeature([], "int64", default_value=0),
        "feature2": FixedLenFeature([], "string", default_value=""),
        "feature3": FixedLenFeature([], "float32", default_value=0.0),
    }
    parsed = parse_example(records, description)
    assert list(parsed) == list(description)
    same(parsed["feature1"], [4], INT64)
    same(parsed["feature2"], [b"goat"], STRING)
    assert parsed["feature3"] == np.float32([0.9876])
    one = parse_example(records[0], description)
    assert one["feature1"] == 4
    assert one["feature2"] == b"goat"
    assert type(one["feature2"]) is bytes


def test_dense_shapes_and_defaults() -> None:
    records = [example(age=int64s(0)), example(gender=field(1, field(1, b"f")), m=floats(1, 2, 3, 4)), example(age=b"")]
    parsed = parse_example(
        records,
        {
            "age": FixedLenFeature([], "int64", -1),
            "gender": FixedLenFeature([1], "string", ["?"]),
            "m": FixedLenFeature([2, 2], "float32", [[0, 0], [0, 9]]),
        },
    )
    same(parsed["age"], [0, -1, -1], INT64)
    same(parsed["gender"], [[b"?"], [b"f"], [b"?"]], STRING)
    same(parsed["m"], [[[0, 0], [0, 9]], [[1, 2], [3, 4]], [[0, 0], [0, 9]]], FLOAT)


@pytest.mark.parametrize(
    ("dtype", "default", "expected"),
    [
        ("int64", [np.int64(7), np.uint8(8)], np.array([7, 8], INT64)),
        ("float32", (np.float32(0.5), np.float16(2)), np.array([0.5, 2], FLOAT)),
        ("float32", [1e-46, -np.inf], np.array([0, -np.inf], FLOAT)),
        ("string", [np.str_("a"), np.bytes_(b"b")], np.array([b"a", b"b"], STRING)),
    ],
)
def test_defaults_are_lists_of_numpy_values(dtype: str, default: Any, expected: Any) -> None:
    feature = FixedLenFeature([2], dtype, default)
    same(parse_example([b""], {"x": feature})["x"], [expected.tolist()], expected.dtype)


@pytest.mark.parametrize("default", [1e39, 2**200, 10**400])
def test_defaults_beyond_float32_are_refused(default: float) -> None:
    with pytest.raises(SchemaError, match=r"the default .* is out of range of float32"):
        parse_example([b""], {"x": FixedLenFeature([], "float32", default)})


def test_a_default_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(SchemaError, match="lone surrogate"):
        parse_example([b""], {"x": FixedLenFeature([], "string", "\ud800")})


@pytest.mark.parametrize("records", [None, 5, "ab"])
def test_other_records_than_bytes_are_refused(records: Any) -> None:
    with pytest.raises(TypeError, match=f"expected the bytes of a record, or of several, got {type(records).__name__}"):
        parse_example(records, {"x": FixedLenFeature([], "int64")})


@pytest.mark.fault(44)
@pytest.mark.parametrize("kindless", [example(b=int64s(1)), example(a=b"", b=int64s(1))])
def test_a_missing_feature_without_a_default_is_named_with_its_record(kindless: bytes) -> None:
    with pytest.raises(FeatureNotFoundError, match="record 1: feature 'a'") as caught:
        parse_example(
            [example(a=int64s(1)), kindless], {"a": FixedLenFeature([], "int64"), "b": VarLenFeature("int64")}
        )
    assert (caught.value.record, caught.value.feature) == (1, "a")


@pytest.mark.fault(43)
@pytest.mark.parametrize("feature", [FixedLenFeature([], "int64", 0), VarLenFeature("int64"), RaggedFeature("int64")])
def test_another_kind_is_named_with_its_record(feature: Any) -> None:
    with pytest.raises(FeatureTypeError, match="record 2: feature 'a'") as caught:
        parse_example([example(a=int64s(1)), b"", example(a=floats(1)), example(a=floats(1))], {"a": feature})
    assert (caught.value.expected, caught.value.got) == ("INT64", "FLOAT")


@pytest.mark.fault(48)
def test_another_number_of_values_is_named_with_its_record() -> None:
    with pytest.raises(DecodeError, match="expected 2 values, got 3") as caught:
        parse_example(
            [example(a=int64s(1, 2)), example(a=int64s(1, 2, 3))], {"a": FixedLenFeature([2], "int64", [0, 0])}
        )
    assert (caught.value.record, caught.value.feature, caught.value.expected, caught.value.got) == (1, "a", 2, 3)


def test_the_error_of_the_first_faulty_record_is_raised() -> None:
    records = [
        example(a=int64s(1), b=int64s(1)),
        example(a=int64s(1), b=int64s(1, 2)),
        example(a=floats(1), b=int64s(1)),
        b"\xff",
    ]
    description = {"a": FixedLenFeature([], "int64"), "b": FixedLenFeature([], "int64")}
    for last, feature in ((4, "b"), (3, "b"), (2, "b")):
        with pytest.raises(DecodeError) as caught:
            parse_example(records[:last], description)
        assert (caught.value.record, caught.value.feature) == (1, feature)
    with pytest.raises(DecodeError, match="record 1: the payload is not a valid Example or SequenceExample"):
        parse_example([records[0], b"\xff"], description)


def test_sequences_are_padded_to_the_longest() -> None:
    records = [example(a=int64s(1, 2, 3, 4)), example(a=int64s(5, 6)), b""]
    parsed = parse_example(records, {"a": FixedLenSequenceFeature([2], "int64", True, 9)})
    same(parsed["a"], [[[1, 2], [3, 4]], [[5, 6], [9, 9]], [[9, 9], [9, 9]]], INT64)
    same(parse_example(records[0], {"a": FixedLenSequenceFeature([2], "int64", True, 9)})["a"], [[1, 2], [3, 4]], INT64)
    same(
        parse_example(records, {"a": FixedLenSequenceFeature([], "int64", allow_missing=True)})["a"][1],
        [5, 6, 0, 0],
        INT64,
    )
    texts = parse_example([encode_example({"t": [b"x", b""]}), b""], {"t": FixedLenSequenceFeature([], "string", True)})
    same(texts["t"], [[b"x", b""], [b"", b""]], STRING)
    with pytest.raises(DecodeError, match="a multiple of 2 values, got 3"):
        parse_example([example(a=int64s(1, 2, 3))], {"a": FixedLenSequenceFeature([2], "int64", True)})


# ---- sparse


def test_features_of_varying_length_are_sparse() -> None:
    records = [example(ft=floats(1, 2)), b"", example(ft=floats(3))]
    parsed = parse_example(records, {"ft": VarLenFeature("float32")})["ft"]
    assert isinstance(parsed, SparseTensor)
    same(parsed.indices, [[0, 0], [0, 1], [2, 0]], INT64)
    same(parsed.values, [1.0, 2.0, 3.0], FLOAT)
    same(parsed.dense_shape, [3, 2], INT64)
    same(parsed.to_dense(), [[1, 2], [0, 0], [3, 0]], FLOAT)
    one = parse_example(records[0], {"ft": VarLenFeature("float32")})["ft"]
    same(one.indices, [[0], [1]], INT64)
    same(one.dense_shape, [2], INT64)


def test_sparse_features_are_sorted() -> None:
    records = [example(val=floats(0.5, -1), ix=int64s(3, 20)), example(val=floats(0), ix=int64s(42))]
    parsed = parse_example(records, {"sparse": SparseFeature("ix", "val", "float32", 100)})["sparse"]
    same(parsed.indices, [[0, 3], [0, 20], [1, 42]], INT64)
    same(parsed.values, [0.5, -1, 0], FLOAT)
    same(parsed.dense_shape, [2, 100], INT64)

    backward = [example(v=int64s(1, 2, 3), x=int64s(2, 0, 0), y=int64s(0, 1, 0))]
    description = {"s": SparseFeature(["x", "y"], "v", "int64", [3, 2])}
    assert parse_example(backward, description)["s"].to_dense().tolist() == [[[3, 2], [0, 0], [1, 0]]]
    same(parse_example(backward[0], description)["s"].indices, [[0, 0], [0, 1], [2, 0]], INT64)
    kept = SparseFeature(["x", "y"], "v", "int64", [3, 2], already_sorted=True)
    same(parse_example(backward, {"s": kept})["s"].values, [1, 2, 3], INT64)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (example(v=int64s(1), x=int64s(4)), "index 4 is out of range for size 4"),
        (example(v=int64s(1), x=int64s(-1)), "index -1 is out of range for size 4"),
        (example(v=int64s(1, 2), x=int64s(1)), "expected 2 indices, one per value, got 1"),
        (example(v=int64s(1)), "expected 1 indices, one per value, got 0"),
    ],
)
def test_sparse_indices_that_do_not_fit_are_refused(record: bytes, message: str) -> None:
    good = example(v=int64s(1), x=int64s(3))
    with pytest.raises(DecodeError, match=f"record 1: feature 'x': .*{message}"):
        parse_example([good, record, good], {"s": SparseFeature("x", "v", "int64", 4, already_sorted=True)})


# ---- ragged

BATCH = [
    example(v=int64s(3, 1, 4, 1, 5, 9), s1=int64s(0, 2, 3, 3, 6), s2=int64s(0, 2, 3, 4)),
    example(v=int64s(2, 7, 1, 8, 2, 8, 1), s1=int64s(0, 3, 4, 5, 7), s2=int64s(0, 1, 1, 4)),
]
SPLITS = RaggedFeature.RowSplits


def test_ragged_features_as_in_tensorflows_documentation() -> None:
    description = {
        "f1": RaggedFeature("int64", "v"),
        "f2": RaggedFeature("int64", "v", [SPLITS("s1")]),
        "f3": RaggedFeature("int64", "v", [SPLITS("s2"), SPLITS("s1")]),
    }
    one = parse_example(BATCH[0], description)
    same(one["f1"], [3, 1, 4, 1, 5, 9], INT64)
    assert one["f2"].to_list() == [[3, 1], [4], [], [1, 5, 9]]
    assert one["f3"].to_list() == [[[3, 1], [4]], [[]], [[1, 5, 9]]]
    batch = parse_example(BATCH, description)
    assert batch["f1"].to_list() == [[3, 1, 4, 1, 5, 9], [2, 7, 1, 8, 2, 8, 1]]
    assert batch["f2"].to_list() == [[[3, 1], [4], [], [1, 5, 9]], [[2, 7, 1], [8], [2], [8, 1]]]
    assert batch["f3"].to_list() == [[[[3, 1], [4]], [[]], [[1, 5, 9]]], [[[2, 7, 1]], [], [[8], [2], [8, 1]]]]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_row_splits_have_the_requested_dtype(dtype: str) -> None:
    parsed = parse_example(BATCH, {"f": RaggedFeature("int64", "v", [SPLITS("s1")], row_splits_dtype=dtype)})["f"]
    assert isinstance(parsed, RaggedTensor)
    assert [splits.dtype.name for splits in parsed.nested_row_splits] == [dtype, dtype]
    same(parsed.row_splits, [0, 4, 8], np.dtype(dtype))
    same(parsed.flat_values, [3, 1, 4, 1, 5, 9, 2, 7, 1, 8, 2, 8, 1], INT64)


ROWS = {  # each describes [[1, 2], [], [3]] for the values 1, 2, 3
    "RowSplits": [0, 2, 2, 3],
    "RowLengths": [2, 0, 1],
    "RowStarts": [0, 2, 2],
    "RowLimits": [2, 2, 3],
    "ValueRowIds": [0, 0, 2],
}


@pytest.mark.parametrize("name", ROWS)
def test_all_partitions_give_the_same_rows(name: str) -> None:
    one_row = {"RowSplits": [0, 1], "RowLimits": [1], "RowLengths": [1]}.get(name, [0])
    empty, other = example(a=int64s()), example(a=int64s(7), p=int64s(*one_row))
    record = example(a=int64s(1, 2, 3), p=int64s(*ROWS[name]))
    description = {"a": RaggedFeature("int64", partitions=[getattr(RaggedFeature, name)("p")])}
    parsed = parse_example([empty, record, empty, other, record], description)["a"]
    assert parsed.to_list() == [[], [[1, 2], [], [3]], [], [[7]], [[1, 2], [], [3]]]
    assert parse_example(record, description)["a"].to_list() == [[1, 2], [], [3]]


def test_innermost_rows_of_uniform_length_are_an_axis() -> None:
    uniform, lengths = RaggedFeature.UniformRowLength, RaggedFeature.RowLengths
    record = example(a=int64s(1, 2, 3, 4, 5, 6), n=int64s(1, 2))
    inner = parse_example([record, b""], {"a": RaggedFeature("int64", partitions=[lengths("n"), uniform(2)])})["a"]
    same(inner.flat_values, [[1, 2], [3, 4], [5, 6]], INT64)
    assert inner.to_list() == [[[[1, 2]], [[3, 4], [5, 6]]], []]
    same(
        parse_example(record, {"a": RaggedFeature("int64", partitions=[uniform(3), uniform(2)])})["a"],
        [[[1, 2], [3, 4], [5, 6]]],
        INT64,
    )
    with pytest.raises(DecodeError, match="record 1: feature 'a': expected rows of 2 values, got 1"):
        parse_example(
            [record, example(a=int64s(1)), example(a=int64s(1))], {"a": RaggedFeature("int64", partitions=[uniform(2)])}
        )


def test_rows_of_uniform_length_around_rows_of_other_lengths() -> None:
    partitions = [RaggedFeature.UniformRowLength(2), RaggedFeature.RowLengths("n")]
    record = example(a=int64s(1, 2, 3), n=int64s(1, 0, 0, 2))
    parsed = parse_example([record, b"", record], {"a": RaggedFeature("int64", partitions=partitions)})["a"]
    assert parsed.to_list() == [[[[1], []], [[], [2, 3]]], [], [[[1], []], [[], [2, 3]]]]


@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("RowSplits", [1, 3]),
        ("RowSplits", [0, 2, 1, 3]),
        ("RowSplits", [0, 2]),
        ("RowSplits", [0]),
        ("RowSplits", []),
        ("RowLengths", [4, -1]),
        ("RowLengths", [2]),
        ("RowLengths", [2**62, 2**62]),
        ("RowStarts", [1]),
        ("RowStarts", [0, 2, 1]),
        ("RowStarts", [0, 4]),
        ("RowStarts", []),
        ("RowLimits", [2]),
        ("RowLimits", [3, 2, 3]),
        ("RowLimits", [-1, 3]),
        ("ValueRowIds", [0, 1]),
        ("ValueRowIds", [0, 1, 0]),
        ("ValueRowIds", [-1, 0, 0]),
        ("ValueRowIds", [0, 0, 2**40]),
    ],
)
@pytest.mark.parametrize("validate", [False, True])
def test_rows_that_do_not_fit_the_values_are_refused(name: str, splits: list[int], validate: bool) -> None:
    good = example(a=int64s(1, 2, 3), p=int64s(*ROWS[name]))
    bad = example(a=int64s(1, 2, 3), p=int64s(*splits))
    description = {"a": RaggedFeature("int64", partitions=[getattr(RaggedFeature, name)("p")], validate=validate)}
    with pytest.raises(DecodeError, match="feature 'p'") as caught:
        parse_example([good, bad, good], description)
    assert caught.value.record == 1
    with pytest.raises(DecodeError):
        parse_example(bad, description)


@pytest.mark.parametrize("name", sorted(ROWS))
@pytest.mark.parametrize(
    "lacking", [example(v=int64s(1, 2)), example(v=int64s(1, 2), p=b"")], ids=["absent", "no type"]
)
def test_a_missing_partition_is_named(engine: str, name: str, lacking: bytes) -> None:
    good = example(v=int64s(1, 2, 3), p=int64s(*ROWS[name]))
    description = {"words": RaggedFeature("int64", "v", (getattr(RaggedFeature, name)("p"),))}
    message = f"'p': the record lacks the {name} that split the 2 items of the RaggedFeature 'words' into rows"
    for records, record in (([good, example(), lacking], 2), (lacking, 0)):
        with pytest.raises(DecodeError, match=message) as caught:
            parse_example(records, description)
        assert (caught.value.record, caught.value.feature, caught.value.expected) == (record, "p", 2)


def test_a_missing_partition_of_inner_rows_is_named() -> None:
    feature = RaggedFeature("int64", partitions=[*map(RaggedFeature.RowLengths, ("outer", "inner"))])
    with pytest.raises(
        DecodeError, match=r"'outer': the record lacks the RowLengths that split the 2 items of .*words"
    ):
        parse_example([example(words=int64s(1, 2, 3), inner=int64s(1, 2))], {"words": feature})


def test_a_single_record_needs_row_splits_even_without_values() -> None:
    description = {"a": RaggedFeature("int64", partitions=[RaggedFeature.RowSplits("p")])}
    with pytest.raises(DecodeError, match="'p': the record lacks the RowSplits that split the 0 items"):
        parse_example(example(), description)
    with pytest.raises(DecodeError, match="'p': expected at least 1 row split, got 0"):
        parse_example(example(p=b"\x1a\0"), description)
    assert parse_example(example(p=int64s(0)), description)["a"].to_list() == []


# ---- batches


@pytest.mark.parametrize(
    "make", [list, tuple, iter, lambda r: np.array(r, object), pa.array, lambda r: pa.chunked_array([r[:1], r[1:]])]
)
def test_batches_of_any_type_are_parsed(make: Any) -> None:
    records = [example(a=int64s(1)), example(a=int64s(2)), b""]
    same(parse_example(make(records), {"a": FixedLenFeature([], "int64", 0)})["a"], [1, 2, 0], INT64)


@pytest.mark.parametrize("records", ["text", [b"", "text"], [None], np.array([b"a"]), 3])
def test_records_other_than_bytes_are_refused(records: Any) -> None:
    with pytest.raises(TypeError):
        parse_example(records, {"a": FixedLenFeature([], "int64", 0)})


def test_an_empty_batch() -> None:
    parsed = parse_example(
        [],
        {
            "f": FixedLenFeature([2], "int64"),
            "s": FixedLenSequenceFeature([2], "string", True),
            "v": VarLenFeature("float32"),
            "r": RaggedFeature("int64", partitions=[SPLITS("p")]),
        },
    )
    assert parsed["f"].shape == (0, 2)
    assert parsed["s"].shape == (0, 0, 2)
    same(parsed["v"].dense_shape, [0, 0], INT64)
    assert parsed["v"].indices.shape == (0, 2)
    assert parsed["r"].to_list() == []


def test_large_batches_are_decoded_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [encode_example({"a": list(range(i % 5)) or ints(), "t": str(i)}) for i in range(50)]
    description = {"a": VarLenFeature("int64"), "t": FixedLenFeature([], "string")}
    at_once = parse_example(records, description)
    monkeypatch.setattr(feature_values, "_CHUNK_BYTES", 40)
    chunked = parse_example(records, description)
    same(chunked["t"], at_once["t"].tolist(), STRING)
    for column, other in zip(chunked["a"], at_once["a"], strict=True):
        same(column, other.tolist(), other.dtype)
    with pytest.raises(FeatureNotFoundError, match="record 50"):
        parse_example([*records, b""], description)
    with pytest.raises(FeatureTypeError, match="record 50"):
        parse_example([*records, example(t=int64s(1))], description)


def test_other_features_are_ignored() -> None:
    record = field(1, entry("a", int64s(1)) + entry("b", floats(1)))
    assert list(parse_example([record], {"a": VarLenFeature("int64")})) == ["a"]


@pytest.mark.parametrize(
    "description",
    [
        {},
        {"a": VarLenFeature("int64"), "b": RaggedFeature("int64", "a")},
        {"a": FixedLenFeature([], "int64"), "b": SparseFeature("a", "v", "int64", 3)},
        {"a": VarLenFeature("float32"), "b": SparseFeature("a", "v", "int64", 3)},
        {"a": RaggedFeature("int64"), "b": RaggedFeature("int64", "a", row_splits_dtype="int64")},
        {"a": FixedLenFeature([2], "int64", 1)},
        {"a": FixedLenFeature([], "int64", 1.0)},
        {"a": FixedLenFeature([], "int64", 2**63)},
        {"a": FixedLenFeature([], "float32", "x")},
        {"a": FixedLenFeature([], "string", 1)},
        {"a": FixedLenSequenceFeature([], "int64")},
        {"a": FixedLenSequenceFeature([], "int64", True, [1, 2])},
    ],
)
def test_descriptions_that_tensorflow_refuses(description: Any) -> None:
    with pytest.raises(SchemaError):
        parse_example([b""], description)
