"""Feature descriptions round-trip through schemas; TensorFlow's own objects are read by their attributes."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import example, int64s, written
from tfrecord_io.apps.tf_compat.tf_features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    RowLengths,
    SparseFeature,
    VarLenFeature,
    as_description,
    parse_dtype,
)
from tfrecord_io.columns.schema.composite import composite_of
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.field_makers import list_, scalar, sequence, tensor
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.errors import SchemaError

EMPTY = b"\x1a\0"  # an Int64List without values


class Foreign:
    """Objects like TensorFlow's: named tuples in classes of the same names."""

    class DType:
        def __init__(self, name: str, as_numpy_dtype: Any) -> None:
            self.name = name
            self.as_numpy_dtype = as_numpy_dtype

    class TensorShape:
        def as_list(self) -> list[int]:
            return [2, 3]

    FixedLenFeature = namedtuple("FixedLenFeature", "shape dtype default_value")
    VarLenFeature = namedtuple("VarLenFeature", "dtype")
    FixedLenSequenceFeature = namedtuple("FixedLenSequenceFeature", "shape dtype allow_missing default_value")
    SparseFeature = namedtuple("SparseFeature", "index_key value_key dtype size already_sorted")
    RaggedFeature = namedtuple("RaggedFeature", "dtype value_key partitions row_splits_dtype validate")
    RowLengths = namedtuple("RowLengths", "key")
    UniformRowLength = namedtuple("UniformRowLength", "length")


def test_tensorflow_objects_are_read_by_their_attributes() -> None:
    int64, string = Foreign.DType("int64", np.int64), Foreign.DType("string", object)
    int32 = Foreign.DType("int32", np.int32)
    assert as_description(
        {
            "a": Foreign.FixedLenFeature(Foreign.TensorShape(), int64, np.arange(6).reshape(2, 3)),
            "b": Foreign.VarLenFeature(string),
            "c": Foreign.FixedLenSequenceFeature([2], np.float32, True, None),
            "d": Foreign.SparseFeature(["i", "j"], "v", int64, [3, 4], False),
            "e": Foreign.RaggedFeature(
                int64, None, (Foreign.RowLengths("n"), Foreign.UniformRowLength(2)), int32, True
            ),
        }
    ) == {
        "a": FixedLenFeature((2, 3), "int64", [[0, 1, 2], [3, 4, 5]]),
        "b": VarLenFeature("string"),
        "c": FixedLenSequenceFeature([2], "float32", True),
        "d": SparseFeature(("i", "j"), "v", "int64", (3, 4)),
        "e": RaggedFeature(
            "int64", None, [RaggedFeature.RowLengths("n"), RaggedFeature.UniformRowLength(2)], "int32", True
        ),
    }


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("int64", "int64"),
        (np.int64, "int64"),
        (np.dtype("float32"), "float32"),
        ("float", "float32"),
        (pa.float32(), "float32"),
        (str, "string"),
        (bytes, "string"),
        (object, "string"),
        ("bytes", "string"),
        (np.dtype("S5"), "string"),
        (pa.binary(), "string"),
    ],
)
def test_dtypes(given: object, name: str) -> None:
    assert parse_dtype(given) == name


@pytest.mark.parametrize("dtype", ["int32", np.float64, "bool", None, 3, "int", np.uint8])
def test_dtypes_that_a_record_cannot_have_are_refused(dtype: object) -> None:
    with pytest.raises((SchemaError, TypeError)):
        VarLenFeature(dtype)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: FixedLenFeature([None], "int64"),
        lambda: FixedLenFeature(None, "int64"),  # type: ignore[arg-type]
        lambda: FixedLenSequenceFeature([0], "int64", True),
        lambda: SparseFeature([], "v", "int64", []),
        lambda: SparseFeature("i", "", "int64", 3),
        lambda: SparseFeature("i", "v", "int64", [3]),
        lambda: SparseFeature(["i"], "v", "int64", [3, 4]),
        lambda: RaggedFeature("int64", ""),
        lambda: RaggedFeature("int64", row_splits_dtype="int8"),
        lambda: RaggedFeature("int64", partitions=["n"]),
        lambda: RaggedFeature.UniformRowLength(0),
        lambda: as_description({"a": "int64"}),
        lambda: Schema.from_feature_description({"a": FixedLenSequenceFeature([], "int64")}),
    ],
)
def test_what_tensorflow_refuses_is_refused(make: Any) -> None:
    with pytest.raises(SchemaError):
        make()


def test_description_is_a_mapping_of_names() -> None:
    with pytest.raises(TypeError):
        as_description([("a", VarLenFeature("int64"))])  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match=r"feature 'a'.*int32"):
        as_description({"a": Foreign.VarLenFeature("int32")})


PAIRS = {
    "scalar": (FixedLenFeature((), "int64"), scalar("int64", required=True)),
    "default": (FixedLenFeature((), "float32", 0.5), scalar("float32", default=0.5)),
    "text": (FixedLenFeature((), "string", b"?"), scalar("binary", default=b"?")),
    "fixed": (FixedLenFeature((3,), "int64", [1, 2, 3]), list_("int64", 3, default=[1, 2, 3])),
    "matrix": (FixedLenFeature((2, 2), "float32"), tensor("float32", (2, 2), encoding="list", required=True)),
    "strings": (FixedLenFeature((2, 2), "string"), tensor("bytes", (2, 2), required=True)),
    "varlen": (VarLenFeature("string"), list_("bytes")),
    "blocks": (FixedLenSequenceFeature((2,), "float32", True), tensor("float32", (None, 2), encoding="list")),
}


@pytest.mark.parametrize("name", PAIRS)
def test_descriptions_and_columns(name: str) -> None:
    feature, column = PAIRS[name]
    schema = Schema({"x": column})
    assert Schema.from_feature_description({"x": feature}) == schema
    assert schema.to_feature_description() == {"x": feature}


def test_ragged_features_are_nested_lists() -> None:
    lengths, uniform = RaggedFeature.RowLengths, RaggedFeature.UniformRowLength
    description = {
        "flat": RaggedFeature("int64", "v"),
        "rows": RaggedFeature("float32", "w", [lengths("n"), uniform(2)]),
    }
    schema = Schema.from_feature_description(description)
    assert schema.to_arrow().types == [pa.list_(pa.int64()), pa.list_(pa.list_(pa.list_(pa.float32(), 2)))]
    assert composite_of(schema["rows"]) is not None
    assert schema.to_feature_description() == {"v": VarLenFeature("int64"), "rows": description["rows"]}


def test_other_partitions_and_sparse_features_give_a_column_for_each_feature() -> None:
    schema = Schema.from_feature_description(
        {
            "r": RaggedFeature("int64", "v", [RaggedFeature.RowSplits("s")]),
            "sparse": SparseFeature(["i", "j"], "w", "float32", [3, 4]),
            "j": VarLenFeature("int64"),
        }
    )
    assert [(f.column, f.feature, f.type) for f in schema] == [
        ("r", "v", pa.list_(pa.int64())),
        ("s", "s", pa.list_(pa.int64())),
        ("sparse", "w", pa.list_(pa.float32())),
        ("i", "i", pa.list_(pa.int64())),
        ("j", "j", pa.list_(pa.int64())),
    ]


def test_context_and_feature_lists() -> None:
    context = {"length": FixedLenFeature((), "int64")}
    lists = {
        "words": FixedLenSequenceFeature((), "int64"),
        "pairs": FixedLenSequenceFeature((2,), "float32", True),
        "bags": VarLenFeature("string"),
    }
    schema = Schema.from_feature_description(context, lists)
    assert list(schema) == [
        scalar("int64", required=True).named("length"),
        sequence("int64", required=True).named("words"),
        sequence(list_("float32", 2)).named("pairs"),
        sequence(list_("bytes")).named("bags"),
    ]
    assert schema.to_feature_description() == context
    assert schema.to_feature_description("feature_list") == lists
    with pytest.raises(SchemaError, match="'length'"):
        Schema.from_feature_description(context, {"length": VarLenFeature("int64")})


def test_any_schema_is_described_by_feature_names() -> None:
    schema = Schema(
        {
            "a": scalar("bool", default=True, feature="A"),
            "b": scalar("date32", required=True),
            "c": scalar("string", default="é"),
            "d": scalar("decimal128(4, 1)", required=True),
            "e": "struct<x: int8, y: list<string>>",
            "f": tensor("uint8", (28, 28), encoding="raw", required=True),
            "g": "null",
            "h": scalar("dictionary<values=string, indices=int8, ordered=0>", default="k"),
            "i": tensor("int16", (2, 2), default=3),
            "j": pa.uuid(),
            "k": tensor("complex64", (2, 2), required=True),
            "l": tensor("float32", (None, None)),
            "m": tensor("int8", (2, 2), encoding="tensor_proto", required=True),
        }
    )
    assert schema.to_feature_description() == {
        "A": FixedLenFeature((), "int64", 1),
        "b": FixedLenFeature((), "int64"),
        "c": FixedLenFeature((), "string", "é".encode()),
        "d": FixedLenFeature((), "string"),
        "e/x": VarLenFeature("int64"),
        "e/y": VarLenFeature("string"),
        "f": FixedLenFeature((), "string"),
        "h": FixedLenFeature((), "string", b"k"),
        "i": FixedLenFeature((2, 2), "int64", [3, 3, 3, 3]),
        "j": VarLenFeature("string"),
        "k": FixedLenFeature((), "string"),
        "l": VarLenFeature("float32"),
        "m": FixedLenFeature((), "string"),
    }
    with pytest.raises(SchemaError, match="'m'"):
        Schema([Field("m", pa.map_(pa.string(), pa.int8()))]).to_feature_description()


def test_nested_columns_are_described_as_they_are_stored(tmp_path: Path) -> None:
    lists, pair = pa.list_(pa.list_(pa.int32())), pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())})
    table = pa.table(
        {
            "ll": pa.array([[[1, 2], []], None, []], lists),
            "lll": pa.array([[[[1], []], [[2, 3]]], [], None], pa.list_(lists)),
            "m": pa.array([[("a", [1.5]), ("c", [])], None, []], pa.map_(pa.string(), pa.list_(pa.float32()))),
            "s": pa.array([[{"a": 1, "b": ["s"]}, {"a": 2, "b": []}], [], None], pa.list_(pair)),
            "n": pa.array([[1, None], None, []], pa.list_(pa.int64())),
            "json": pa.array([[[1]], None, []], lists),
        }
    )
    tfr.write_tfrecord(table, tmp_path / "a", column_encoding={"json": "json"})
    description = Schema(tfr.dataset(tmp_path / "a").schema).to_feature_description()
    assert description["ll"] == RaggedFeature("int64", "ll/ragged_flat_values", [RowLengths("ll/ragged_row_lengths_0")])
    parsed = tfr.io.parse_example([*tfr.RecordReader(tmp_path / "a")], description)
    ragged = {name: parsed[name].to_list() for name in ("ll", "lll", "m/value", "s/b")}
    assert ragged == {
        "ll": [[[1, 2], []], [], []],
        "lll": [[[[1], []], [[2, 3]]], [], []],
        "m/value": [[[1.5], []], [], []],
        "s/b": [[[b"s"], []], [], []],
    }
    flat = {name: parsed[name].values.tolist() for name in ("m/key", "s/a", "n", "n/null_positions", "json")}
    assert flat == {
        "m/key": [b"a", b"c"],
        "s/a": [1, 2],
        "n": [1, 0],
        "n/null_positions": [1],
        "json": [b"[[1]]", b"[]"],
    }


PARTITIONS = {
    "lengths": ([RaggedFeature.RowLengths("l")], [{"l": [0]}, {"v": [], "l": [0, 0]}, {"v": [1, 2], "l": [0, 2]}]),
    "two levels": (
        [RaggedFeature.RowLengths("l"), RaggedFeature.RowLengths("m")],
        [{"l": [0]}, {"l": [2], "m": [0, 0]}, {"m": []}, {"v": [1], "l": [2], "m": [1, 0]}],
    ),
    "uniform": (
        [RaggedFeature.UniformRowLength(2), RaggedFeature.RowLengths("m")],
        [{"m": [0, 0]}, {"v": [1], "m": [1, 0]}],
    ),
    "uniform rows": (
        [RaggedFeature.RowLengths("l"), RaggedFeature.UniformRowLength(2)],
        [{"l": [0]}, {"v": [1, 2], "l": [1, 0]}],
    ),
}


@pytest.mark.parametrize("case", PARTITIONS)
def test_row_lengths_without_values_are_empty_rows(engine: str, tmp_path: Path, case: str) -> None:
    partitions, records = PARTITIONS[case]
    payloads = [example(**{name: int64s(*values) or EMPTY for name, values in record.items()}) for record in records]
    description = {"r": RaggedFeature("int64", "v", tuple(partitions))}
    schema = Schema.from_feature_description(description)
    table = tfr.read_table(written(tmp_path / "a", [*payloads, example()]), schema=schema)
    assert table["r"].to_pylist() == [*tfr.io.parse_example(payloads, description)["r"].to_list(), None]
