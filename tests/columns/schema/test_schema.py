"""A schema is made from many sources, compared by its fields, and immutable."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from arrow_tables import TYPES
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.type_names import type_from_name
from tfrecord_io.errors import FeatureNotFoundError, SchemaError

NAMES = {
    "int32": pa.int32(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "binary": pa.binary(),
    "float": pa.float32(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "timestamp[us]": pa.timestamp("us"),
    "timestamp[ns, UTC]": pa.timestamp("ns", "UTC"),
    "list<int64>": pa.list_(pa.int64()),
    "list<list<string>>": pa.list_(pa.list_(pa.string())),
    " list< float32 > ": pa.list_(pa.float32()),
    "list<float>[3]": pa.list_(pa.float32(), 3),
    "fixed_size_list<float, 3>": pa.list_(pa.float32(), 3),
    "large_list<bytes>": pa.large_list(pa.binary()),
    "struct<a: int8, b: struct<c: list<string>>>": pa.struct(
        [("a", pa.int8()), ("b", pa.struct([("c", pa.list_(pa.string()))]))]
    ),
    "decimal128(10, 2)": pa.decimal128(10, 2),
    "fixed_size_binary[4]": pa.binary(4),
    "int31": None,
    "": None,
    "list<": None,
    "list<int64": None,
    "struct<int64>": None,
    "decimal128(99, 2)": None,
    "list<" * 100 + "int8" + ">" * 100: None,
}


@pytest.mark.parametrize("name", NAMES)
def test_type_names(name: str) -> None:
    expected = NAMES[name]
    if expected is None:
        with pytest.raises(SchemaError, match="unknown type"):
            type_from_name(name)
    else:
        assert type_from_name(name) == expected


@given(TYPES)
def test_str_of_a_type_is_parsed(kind: pa.DataType) -> None:
    assert type_from_name(str(kind)) == kind


def test_parse_accepts_names_types_fields_and_numpy_dtypes() -> None:
    schema = Schema.parse(
        {
            "a": "int32",
            "b": pa.string(),
            "c": Field("", pa.int8()),
            "d": np.float64,
            "e": pa.field("x", pa.int8(), nullable=False),
        }
    )
    assert schema.names == ["a", "b", "c", "d", "e"]
    assert schema["c"] == Field("c", pa.int8(), "c")
    assert schema["d"].type == pa.float64()
    assert schema["e"].required
    assert Schema.parse(schema) is schema
    assert Schema.parse(schema.to_arrow()) == schema


@pytest.mark.parametrize("source", [3, "int32", [("a", "int32")], {"a": 3}, {3: "int8"}])
def test_parse_refuses_other_things(source: object) -> None:
    with pytest.raises(TypeError):
        Schema.parse(source)


def test_arrow_and_back_keeps_feature_encoding_required_and_metadata() -> None:
    fields = [Field("x", pa.float64(), "deep/x", "raw", metadata={b"k": b"v"}), Field("y", pa.string(), required=True)]
    schema = Schema(fields, {b"pandas": b"{}"})
    back = Schema.from_arrow(schema.to_arrow())
    assert back == schema
    assert back.metadata == schema.metadata
    assert back["x"].metadata == {b"k": b"v"}
    assert not back.to_arrow().field("y").nullable


def test_schema_is_immutable() -> None:
    schema = Schema.parse({"a": "int32"})
    with pytest.raises(AttributeError):
        schema.fields = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        schema.metadata[b"a"] = b""  # type: ignore[index]
    assert hash(schema) == hash(Schema.parse({"a": "int32"}))
    assert schema != Schema.parse({"a": "int64"})
    assert schema != "a"


@pytest.mark.parametrize("again", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_pickled_and_copied_schemas_are_equal(again: object) -> None:
    schema = Schema([Field("a", pa.list_(pa.int8()), default=[1]), Field("b", pa.string(), "z")], {b"m": b"n"})
    made = again(schema)  # type: ignore[operator]
    assert made == schema
    assert made.metadata == schema.metadata


def test_columns_are_selected_by_name() -> None:
    schema = Schema.parse({"a": "int32", "b": "string", "c": "float"})
    assert schema.select(["c", "a"]).names == ["c", "a"]
    assert "a" in schema
    assert schema[0].column == "a"
    with pytest.raises(FeatureNotFoundError, match="'z'"):
        schema["z"]


def test_duplicate_column_is_refused() -> None:
    with pytest.raises(SchemaError, match="twice"):
        Schema([Field("a", pa.int8()), Field("a", pa.int16())])


def test_default_must_fit_the_type() -> None:
    assert Field("a", pa.list_(pa.int8()), default=np.array([1, 2])).default == [1, 2]
    with pytest.raises(SchemaError, match="default"):
        Field("a", pa.int8(), default=300)
    with pytest.raises(SchemaError, match="default"):
        Field("a", pa.int8(), default="x")


def test_unknown_encoding_is_refused() -> None:
    with pytest.raises(SchemaError, match="pickle"):
        Field("a", pa.int8(), encoding="pickle")


def test_repr_is_a_table_and_escapes_names() -> None:
    schema = Schema([Field("a\x1b[31m", pa.int8(), required=True), Field("b", pa.string(), "bb", default="?")])
    assert repr(schema).splitlines() == [
        "Schema of 2 columns",
        "  a\\x1b[31m  int8    required",
        "  b          string  feature bb, default '?'",
    ]


def test_repr_escapes_names_inside_of_structs() -> None:
    schema = Schema({"s": pa.struct([("a\x1b[31m", pa.list_(pa.struct([("b\x07\u202e", pa.int64())])))])})
    assert "a\\x1b[31m" in repr(schema)
    for text in (repr(schema), repr(schema["s"]), schema._repr_html_()):
        assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("name", [1, True, b"a", None])
def test_names_that_are_not_text_are_refused(name: Any) -> None:
    with pytest.raises(SchemaError, match="a column's name is a str, not ") as caught:
        Schema([Field("a", pa.int64()), Field(name, pa.int64(), feature="b")])
    assert caught.value.got == name


@pytest.mark.parametrize("name", ["\ud800", "a\udfff"])
def test_names_without_a_utf8_form_are_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="lone surrogate") as caught:
        Schema({"a": "int64", name: "int64"})
    assert caught.value.feature == name
    with pytest.raises(SchemaError, match="lone surrogate"):
        Schema([Field("a", pa.int64(), feature=name)])
    assert Schema({"𐀀": "int64"}).to_arrow().names == ["𐀀"]


@pytest.mark.parametrize(
    "types",
    [
        [pa.string(), pa.int64(), pa.string()],
        [pa.list_(pa.string()), pa.int64(), pa.list_(pa.field("element", pa.float32()))],
        [pa.list_(pa.int8(), 2), pa.fixed_shape_tensor(pa.bool_(), (2,)), pa.list_(pa.field("item", pa.int8(), False))],
        [pa.timestamp("us"), pa.list_(pa.int64()), pa.list_(pa.list_(pa.int64()))],
    ],
    ids=["values", "lists", "others", "some others"],
)
def test_a_schema_of_common_types_is_like_one_of_fields(types: list[pa.DataType]) -> None:
    names = ["b", "a", "c"]
    fields = Schema(map(Field, names, types))
    for use in (
        lambda s: (s.names, s.types, len(s), s.to_arrow()),
        lambda s: s,
        lambda s: (s["a"].type, "c" in s, "d" in s, list(s)[1].column, repr(s), s.to_json()),
        lambda s: (pickle.loads(pickle.dumps(s)), copy.deepcopy(s), hash(s) == hash(fields)),
        lambda s: (s.select(["c", "b"]), s.select(names)),
        lambda s: s.replace_fields({1: Field("a", pa.int64(), feature="z"), 0: Field("b", pa.bool_())}),
        lambda s: s.replace_fields({1: Field("a", pa.int64(), feature="z")}).select(["a"]).to_arrow(),
    ):
        assert use(Schema.from_common_types(names, types)) == use(fields)
    with pytest.raises(AttributeError, match="nothing"):
        fields.nothing  # type: ignore[attr-defined] # noqa: B018
    with pytest.raises(SchemaError, match="twice"):
        Schema.from_common_types(["a", "a"], types[:2])


def test_an_arrow_schema_of_common_types_is_kept_as_it_is() -> None:
    arrow = pa.schema([("b", pa.string()), ("a", pa.int64())], metadata={b"k": b"v"})
    for schema in (Schema(arrow), Schema.from_arrow(arrow), Schema.parse(arrow)):
        assert schema.to_arrow() is arrow
        assert schema == Schema(map(Field.from_arrow, arrow), arrow.metadata)
        assert (
            schema.select(["a"]).to_arrow().equals(pa.schema([arrow.field("a")], arrow.metadata), check_metadata=True)
        )
        assert pickle.loads(pickle.dumps(schema)).to_arrow().equals(arrow, check_metadata=True)
        with pytest.raises(FeatureNotFoundError, match="'z'"):
            schema.select(["a", "z"])
        with pytest.raises(SchemaError, match="twice"):
            schema.select(["a", "a"])
    assert Schema(arrow, {}).to_arrow().equals(arrow.remove_metadata(), check_metadata=True)


@pytest.mark.parametrize(
    "field", [pa.field("c", pa.int8(), nullable=False), pa.field("c", pa.int8(), metadata={b"k": b"v"})]
)
def test_what_a_common_type_does_not_say_is_kept(field: pa.Field) -> None:
    arrow = pa.schema([pa.field("a", pa.int64()), field])
    assert Schema(arrow).to_arrow().equals(arrow, check_metadata=True)
    assert bool(Schema(arrow)["c"].required) != field.nullable
