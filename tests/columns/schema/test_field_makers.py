"""Field makers describe columns; overrides replace inferred ones."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.columns.schema.column_features import FEATURE_LIST
from tfrecord_io.columns.schema.column_selection import Overrides
from tfrecord_io.columns.schema.field import CONTEXT, Field
from tfrecord_io.columns.schema.field_makers import image, list_, scalar, sequence, tensor
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.tensor_types import variable_shape_tensor
from tfrecord_io.columns.schema.type_names import type_from_name, type_name
from tfrecord_io.errors import FeatureNotFoundError, SchemaError


def test_type_of_each_maker() -> None:
    schema = Schema(
        {
            "label": scalar("int32", default=0),
            "day": scalar(pa.date32()),
            "scores": list_(np.float32),
            "box": list_("float32", 4, required=True),
            "name": scalar("string", default="?"),
            "blob": scalar("binary"),
            "photo": image((None, None, 3)),
            "digits": tensor("uint8", (28, 28)),
            "words": sequence(scalar("string")),
            "plain": "list<string>",
            "numpy": np.dtype("int16"),
        }
    )
    assert schema.to_arrow().types == [
        pa.int32(),
        pa.date32(),
        pa.list_(pa.float32()),
        pa.list_(pa.float32(), 4),
        pa.string(),
        pa.binary(),
        pa.binary(),
        pa.fixed_shape_tensor(pa.uint8(), [28, 28]),
        pa.list_(pa.string()),
        pa.list_(pa.string()),
        pa.int16(),
    ]
    assert [f.feature for f in schema] == schema.names
    assert schema["box"].required
    assert schema["box"].shape == (4,)
    assert schema["photo"].shape == (None, None, 3)
    assert schema["words"].part == FEATURE_LIST
    assert schema["plain"].part == CONTEXT


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (bool, pa.bool_()),
        (int, pa.int64()),
        (float, pa.float32()),
        (str, pa.string()),
        (bytes, pa.binary()),
        (dt.datetime, pa.timestamp("us")),
        (dt.date, pa.date32()),
        (list[str], pa.list_(pa.string())),
        (list[list[int]], pa.list_(pa.list_(pa.int64()))),
    ],
    ids=str,
)
def test_python_types_are_types(given: Any, expected: pa.DataType) -> None:
    assert Schema({"x": given}).types == [expected]


@pytest.mark.parametrize(
    ("given", "got"),
    [(list, "'list<int64>' or list"), (dict, "got <class 'dict'>"), (dict[str, int], "dict.str, int"), (1, "got int")],
    ids=str,
)
def test_other_python_types_are_refused_with_an_example(given: Any, got: str) -> None:
    with pytest.raises(TypeError, match=f"column 'x': expected a type, such as .*{got}"):
        Schema({"x": given})


def test_feature_is_named_after_the_column_unless_given() -> None:
    schema = Schema({"a": scalar("int8"), "b": scalar("int8", feature="x/y")})
    assert [(f.column, f.feature) for f in schema] == [("a", "a"), ("b", "x/y")]


@pytest.mark.parametrize(
    ("made", "type_", "shape"),
    [
        (tensor("float32", ()), pa.float32(), None),
        (tensor("float32", (3,)), pa.fixed_shape_tensor(pa.float32(), [3]), (3,)),
        (tensor("float32", (-1, 2)), variable_shape_tensor(pa.float32(), (None, 2)), (None, 2)),
        (tensor("float32", [None]), variable_shape_tensor(pa.float32(), (None,)), (None,)),
        (tensor("timestamp[us]", (2,)), pa.fixed_shape_tensor(pa.timestamp("us"), [2]), (2,)),
        (tensor("complex64", (2, 3)), pa.fixed_shape_tensor(pa.float32(), [2, 3, 2]), (2, 3)),
        (tensor(np.complex128, ()), pa.fixed_shape_tensor(pa.float64(), [2]), ()),
        (tensor("bfloat16", (None,)), variable_shape_tensor(pa.binary(2), (None,)), (None,)),
        (tensor(np.dtype("S3"), (2,)), pa.fixed_shape_tensor(pa.binary(3), [2]), (2,)),
        (tensor("datetime64[D]", (2,)), pa.fixed_shape_tensor(pa.int64(), [2]), (2,)),
        (tensor("bool", ()), pa.bool_(), None),
        (tensor("bytes", (2, 3)), pa.list_(pa.binary(), 6), (2, 3)),
        (tensor("string", (None, 3)), pa.list_(pa.string()), (None, 3)),
        (tensor("bool", (2, 0)), pa.fixed_shape_tensor(pa.uint8(), [2, 0]), (2, 0)),
    ],
)
def test_tensors(made: Field, type_: pa.DataType, shape: object) -> None:
    assert made.type == type_
    assert made.shape == shape


BOOLS, BYTES = pa.fixed_shape_tensor(pa.bool_(), [2, 3]), pa.fixed_shape_tensor(pa.uint8(), [2, 3])


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda type_: type_,
        pa.list_,
        pa.large_list,
        lambda type_: pa.struct([("a", pa.int8()), ("x", type_)]),
        lambda type_: pa.list_(pa.struct([("x", type_)])),
        lambda type_: pa.struct([("s", pa.struct([("x", pa.list_(type_))]))]),
    ],
)
def test_tensors_of_bools_are_marked_uint8(wrapped: Any) -> None:
    field = Field("x", wrapped(BOOLS))
    assert field.type == wrapped(BYTES)
    assert "bool" in str(pa.schema([field.to_arrow()]))
    assert field == Field.from_arrow(field.to_arrow())
    other = Field("x", wrapped(pa.fixed_shape_tensor(pa.int8(), [2, 3])))
    assert "bool" not in str(pa.schema([other.to_arrow()]))


def test_a_tensor_of_bools_is_that_of_tensor() -> None:
    permuted = pa.fixed_shape_tensor(pa.bool_(), [3, 2], permutation=[1, 0])
    for type_ in (BOOLS, permuted, variable_shape_tensor(pa.bool_(), (None, 3))):
        shape = (None, 3) if type_ not in (BOOLS, permuted) else (2, 3)
        assert Field("x", type_) == tensor("bool", shape, encoding="list").named("x")


@pytest.mark.parametrize(
    ("step", "type_", "shape"),
    [
        ("int64", pa.int64(), None),
        (list_("int64"), pa.list_(pa.int64()), None),
        (list_("int64", 2), pa.list_(pa.int64(), 2), (2,)),
        (tensor("float32", (7,)), pa.fixed_shape_tensor(pa.float32(), [7]), (7,)),
        (tensor("float32", (None, 2)), variable_shape_tensor(pa.float32(), (None, 2)), (None, 2)),
        (image(), pa.binary(), None),
    ],
)
def test_sequences_are_lists_of_their_steps(step: object, type_: pa.DataType, shape: object) -> None:
    made = sequence(step, required=True, feature="f")
    assert made.type == pa.list_(type_)
    assert made.value == type_
    assert (made.part, made.shape, made.required, made.feature) == (FEATURE_LIST, shape, True, "f")


def test_lists_of_lists_are_feature_lists_by_default() -> None:
    assert Schema({"a": "list<list<int64>>"})["a"] == sequence(list_("int64")).named("a")
    assert Field("a", pa.list_(pa.list_(pa.int64())), part=CONTEXT).part == CONTEXT


@pytest.mark.parametrize(
    "make",
    [
        lambda: scalar("list<int64>"),
        lambda: scalar("int31"),
        lambda: scalar("int8", default=300),
        lambda: scalar("int64", default=1.5),
        lambda: scalar("int64", default=Decimal("1.5")),
        lambda: scalar("date32", default=dt.datetime(2020, 1, 1, 5)),
        lambda: list_("date32", 1, default=[dt.datetime(2020, 1, 1, 5)]),
        lambda: scalar("timestamp[us]", default=dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        lambda: scalar("time64[us]", default=dt.time(5, tzinfo=dt.UTC)),
        lambda: scalar("timestamp[us]", default=pd.Timestamp(1)),
        lambda: scalar("duration[us]", default=pd.Timedelta(1)),
        lambda: scalar("timestamp[s]", default=dt.datetime(2020, 1, 1, 0, 0, 0, 500_000)),
        lambda: scalar("time32[s]", default=dt.time(0, 0, 0, 500_000)),
        lambda: scalar("duration[ms]", default=dt.timedelta(microseconds=1500)),
        lambda: scalar("timestamp[ns]", default=pd.Timestamp(1, tz="UTC")),
        lambda: scalar("date32", default=pd.Timestamp(1)),
        lambda: list_("int32", 2, default=[1, 2.5]),
        lambda: list_("int64", -2),
        lambda: list_("int64", 2, default=[1, 2, 3]),
        lambda: tensor("float32", (2, -3)),
        lambda: tensor("float32", (2**20, 2**20)),
        lambda: tensor("float32", (2**40, 2**40, 0)),
        lambda: tensor("complex64", (2**31 - 1,)),
        lambda: tensor("float32", ""),
        lambda: tensor("float32", ("height", "")),
        lambda: tensor("float32", ("height", None, None)),
        lambda: tensor("float32", ("height", -2)),
        lambda: tensor("float32", ("height", 2.5)),
        lambda: tensor("string", ("height", "width")),
        lambda: tensor("uint8", ("height", "width"), encoding="npy"),
        lambda: tensor("uint8", ("height", "width"), default=0),
        lambda: tensor("timestamp[us, tz=UTC]", (2,)),
        lambda: tensor("date32", (2,)),
        lambda: tensor("decimal128(4, 2)", (2,)),
        lambda: tensor("complex64", (2,), default="a"),
        lambda: tensor("uint8", (2,), default=[1, 300]),
        lambda: tensor("float32", (None, 2), default=[[1.0]]),
        lambda: Field("a", pa.fixed_shape_tensor(pa.int8(), [2]), metadata={b"tfrecord_io.dtype": b"complex64"}),
        lambda: Field("a", pa.fixed_shape_tensor(pa.int8(), [2]), metadata={b"tfrecord_io.dtype": b"object"}),
        lambda: tensor("float32", (2,), default=[1.0]),
        lambda: tensor("float32", (2,), encoding="pickle"),
        lambda: sequence(sequence("int64")),
        lambda: Field("a", pa.int64(), part=FEATURE_LIST),
        lambda: Field("a", pa.int64(), part="frames"),
        lambda: scalar("null", required=True),
        lambda: scalar("int64", empty="none"),
        lambda: Field("a", pa.list_(pa.int64()), part=FEATURE_LIST, empty="null"),
        lambda: Field("a", pa.int64(), shape=(2,)),
        lambda: Field("a", pa.list_(pa.int64(), 4), shape=(2, 3)),
        lambda: Field("a", pa.fixed_shape_tensor(pa.int64(), [2, 3]), shape=(3, 2)),
    ],
)
def test_invalid_arguments_are_refused(make: object) -> None:
    with pytest.raises(SchemaError):
        make()  # type: ignore[operator]


def test_unknown_words_are_answered_with_the_valid_ones() -> None:
    with pytest.raises(SchemaError, match=r"^unknown part='sequence'; valid names: 'context', 'feature_list'$"):
        scalar("int64", part="sequence")
    with pytest.raises(SchemaError, match=r"^empty='nul': expected None or 'null'$"):
        scalar("int64", empty="nul")
    with pytest.raises(SchemaError, match=r"^'gzip' is not a tensor encoding; valid names: list, raw, "):
        tensor("uint8", (3,), encoding="gzip")


def test_one_default_applies_to_all_values() -> None:
    assert tensor("uint8", (2, 2), default=7).default_array().to_pylist() == [[7, 7, 7, 7]]
    assert tensor("uint8", (2, 2), default=np.array([[1, 2], [3, 4]])).default == [1, 2, 3, 4]
    assert list_("int64", 2, default=[5, 6]).default_array().to_pylist() == [[5, 6]]
    assert scalar("dictionary<values=string, indices=int8, ordered=0>", default="a").default_array().to_pylist() == [
        "a"
    ]


UNITS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}  # in nanoseconds


@pytest.mark.parametrize("of", [pd.Timestamp, pd.Timedelta, np.datetime64, np.timedelta64])
@pytest.mark.parametrize("unit", UNITS)
@given(number=st.integers(-(10**18), 10**18), step=st.sampled_from([*UNITS.values()]))
def test_a_default_keeps_its_nanoseconds_or_is_refused(of: Any, unit: str, number: int, step: int) -> None:
    number -= number % step
    default = of(number, "ns") if issubclass(of, np.generic) else of(number)
    type_ = pa.timestamp(unit) if of in (pd.Timestamp, np.datetime64) else pa.duration(unit)
    struct = pa.struct({"a": type_})
    made: list[tuple[Callable[[], Field], Any]] = [
        (lambda: scalar(type_, default=default), number // UNITS[unit]),
        (lambda: list_(type_, default=[default]), [number // UNITS[unit]]),
        (lambda: Field("x", struct, default={"a": default}), {"a": number // UNITS[unit]}),
    ]
    for make, expected in made:
        if number % UNITS[unit]:
            with pytest.raises(SchemaError, match="does not fit the type"):
                make()
            continue
        schema = Schema({"x": make()})
        whole = pa.array([expected], schema["x"].type)
        for read in (schema, Schema.from_json(schema.to_json()), Schema.from_arrow(schema.to_arrow())):
            assert read["x"].default_array().equals(whole)
            assert read == schema


def test_defaults_that_differ_only_in_type_are_not_equal() -> None:
    fields = [
        scalar("int64", default=0),
        scalar("int64", default=1),
        scalar("bool", default=False),
        scalar("float", default=0.0),
    ]
    assert len(set(fields)) == 4
    assert scalar("float", default=float("nan")) == scalar("float", default=float("nan"))
    assert scalar("float", default=0.0) != scalar("float", default=-0.0)


def test_repr_of_a_field() -> None:
    schema = Schema(
        {
            "x": tensor("float32", (None, 2), feature="deep/x"),
            "c": tensor("complex64", (4, 4)),
            "w": sequence("int64", required=True),
        }
    )
    assert repr(schema).splitlines() == [
        "Schema of 3 columns",
        "  x  tensor<float32>[?,2]    feature deep/x, encoding wire",
        "  c  tensor<complex64>[4,4]  encoding wire",
        "  w  list<item: int64>       feature list, required",
    ]


# ---- overrides

INFERRED = pa.schema([("box/x", pa.float32()), ("box/y", pa.float32()), ("id", pa.int64()), ("[z]", pa.int64())])


def test_overrides_keep_the_order_and_accept_globs() -> None:
    found = Overrides({"box/*": list_("float32"), "id": "int32"}).apply(INFERRED)
    assert found.names == INFERRED.names
    assert found.to_arrow().types == [pa.list_(pa.float32()), pa.list_(pa.float32()), pa.int32(), pa.int64()]
    assert [f.feature for f in found] == INFERRED.names


def test_a_literal_name_wins_over_a_glob_and_the_first_glob_over_later_ones() -> None:
    found = Overrides({"*": "int8", "box/*": "int16", "box/y": "float64", "[z]": "bool"}).apply(INFERRED)
    assert found.to_arrow().types == [pa.int8(), pa.float64(), pa.int8(), pa.bool_()]


@pytest.mark.parametrize("key", ["nothing", "no*", "[a]"])
def test_override_that_matches_nothing_raises(key: str) -> None:
    with pytest.raises(FeatureNotFoundError, match="box/x"):
        Overrides({key: "int8"}).apply(INFERRED)


@pytest.mark.parametrize("make", [list_, lambda type_: pa.list_(pa.type_for_alias(type_)), "list<{}>".format])
def test_an_override_by_the_same_type_keeps_how_a_column_is_stored(make: Any, tmp_path: Path) -> None:
    """Nulls in lists, for one, are in another feature, which a type does not name."""
    lists = [[None, 1.0], [], None, [2.0, None]]
    tfr.write_tfrecord(pa.table({"x": pa.array(lists, pa.list_(pa.float32()))}), tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord", schema_overrides={"x": make("float32")})
    assert tfr.read_table(dataset)["x"].to_pylist() == lists
    assert tfr.read_table(dataset, columns=["x"])["x"].to_pylist() == lists


def test_overrides_keep_features_and_metadata() -> None:
    schema = Schema([Field("a", pa.int64(), "deep/a")], {b"k": b"v"})
    found = Overrides({"a": "int8"}).apply(schema)
    assert found["a"] == Field("a", pa.int8(), "deep/a")
    assert found.metadata == {b"k": b"v"}
    assert Overrides({"a": scalar("int8", feature="b")}).apply(schema)["a"].feature == "b"
    assert Overrides({}).apply(schema) == schema


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (tensor("float64", (3,)), "Field(tensor<float64>[3], encoding wire)"),
        (tensor("timedelta64[ns]", (None,)), "Field(tensor<timedelta64[ns]>[?], encoding wire)"),
        (image(mode="L", resize=(2, 3)), "Field(binary, image L, resize (2, 3))"),
        (Schema({"x": "tensor<float32>[3]"})["x"], "Field(x: tensor<float32>[3])"),
    ],
)
def test_repr_of_a_tensor_field_has_numpys_dtype(field: Field, text: str) -> None:
    assert repr(field) == text
    assert type_from_name(type_name(field.type)) == field.type


@pytest.mark.parametrize("dtype", ["object", "list<float32>", "void", "nonsense"])
def test_unsupported_tensor_dtype_lists_the_supported_ones(dtype: str) -> None:
    with pytest.raises(SchemaError, match=f"tensors of {dtype} are not supported.*int8 to int64.*complex64.*S<n>"):
        tensor(dtype, (2,))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("image", image()),
        (" image ( mode = L, resize = (8, 4) )", image(mode="L", resize=(8, 4))),
        ("image((None, ?, 3))", image((None, None, 3))),
        ("image(orient=False)", image(orient=False)),
        ("image(uint8,(3,h,w),CHW)", image(tensor("uint8", (3, "h", "w")), layout="CHW")),
        ("image(uint8,image/shape,resize=(2,2))", image(tensor("uint8", "image/shape"), resize=(2, 2))),
        ("tensor(image/dtype, 'image/shape')", tensor("image/dtype", "image/shape")),
        ("tensor(int16,(None,-1,3),encoding=tensor_proto)", tensor("int16", (None, -1, 3), encoding="tensor_proto")),
        ("tensor(uint8,4)", tensor("uint8", 4)),
        ("sequence(tensor(uint8,(h,w)))", sequence(tensor("uint8", ("h", "w")))),
        ("sequence(int64)", sequence("int64")),
        ("list(image(resize=(2,2)))", list_(image(resize=(2, 2)))),
        ("list(float32, 3)", list_("float32", 3)),
    ],
)
def test_text_of_a_call_is_what_the_call_returns(text: str, field: Field) -> None:
    assert Schema({"x": text})["x"] == Schema({"x": field})["x"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tensor(uint8,(h,w)", "a comma or parenthesis is missing"),
        ("tensor(uint8,(h,w)) x", "it has no end, or words after it"),
        ("tensor(,3)", "a value is missing"),
        ("tensor(uint8)", "missing 1 required positional argument: 'shape'"),
        ("image(size=3)", "unexpected keyword argument 'size'"),
        ("image(uint8)", "raw pixels are image"),
        ("sequence(scalar(int64))", "'scalar' makes no field"),
    ],
)
def test_text_that_is_no_call_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(reason)):
        Schema({"x": text})
