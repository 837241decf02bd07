"""The type map: how each Arrow type is written."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.bytes.format.feature_types import Kind, Layout
from tfrecord_io.columns.schema.column_features import leaves, set_encoding, step_field
from tfrecord_io.columns.schema.tensor_types import tensor_field
from tfrecord_io.columns.schema.types import UnsupportedType, kind_of, value_type

INT64 = [
    pa.bool_(),
    *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()),
    *(
        pa.date32(),
        pa.date64(),
        pa.time32("s"),
        pa.time64("ns"),
        pa.timestamp("ms", "UTC"),
        pa.duration("us"),
        pa.bool8(),
    ),
]
FLOAT = [pa.float16(), pa.float32(), pa.float64()]
BYTES = [
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)),
    *(pa.decimal128(5, 2), pa.decimal256(50, 2), pa.uuid(), pa.json_()),
]
KINDS = [*((t, Kind.INT64) for t in INT64), *((t, Kind.FLOAT) for t in FLOAT), *((t, Kind.BYTES) for t in BYTES)]
LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda t: pa.list_(t, 2)]


@pytest.mark.parametrize(("type_", "kind"), KINDS, ids=str)
def test_kind_of_values_and_of_lists(type_: pa.DataType, kind: Kind) -> None:
    (leaf,) = leaves(pa.field("x", type_))
    assert (leaf.feature, leaf.path, leaf.type, leaf.kind, leaf.layout, leaf.encoding) == (
        "x",
        (),
        type_,
        kind,
        Layout.SCALAR,
        "list",
    )
    assert kind_of(value_type(type_)) == kind
    for make in LISTS:
        (leaf,) = leaves(pa.field("x", make(type_)))
        assert (leaf.type, leaf.kind, leaf.layout) == (make(type_), kind, Layout.LIST)
        assert kind_of(value_type(make(type_))) == kind


@pytest.mark.parametrize("type_", [*INT64[:-1], *FLOAT, *BYTES[:-2]], ids=str)
def test_dictionaries_and_run_ends_are_written_as_their_values(type_: pa.DataType) -> None:
    (plain,) = leaves(pa.field("x", type_))
    (leaf,) = leaves(pa.field("x", pa.dictionary(pa.int8(), type_)))
    assert (leaf.kind, leaf.layout, leaf.type) == (plain.kind, plain.layout, pa.dictionary(pa.int8(), type_))
    (leaf,) = leaves(pa.field("x", pa.list_(pa.run_end_encoded(pa.int32(), type_))))
    assert (leaf.kind, leaf.layout, leaf.type) == (plain.kind, Layout.LIST, pa.list_(type_))


def test_struct_has_a_leaf_for_each_child() -> None:
    type_ = pa.struct([("a", pa.int8()), ("b", pa.struct([("c", pa.list_(pa.string()))]))])
    assert [(leaf.feature, leaf.path, leaf.type) for leaf in leaves(pa.field("s", type_))] == [
        ("s/a", ("a",), pa.int8()),
        ("s/b/c", ("b", "c"), pa.list_(pa.string())),
    ]


@pytest.mark.parametrize("make", LISTS)
def test_list_of_structs_is_a_struct_of_lists(make: object) -> None:
    type_ = pa.struct([("a", pa.int8()), ("b", pa.struct([("c", pa.dictionary(pa.int8(), pa.string()))]))])
    found = leaves(pa.field("s", make(type_)))
    assert [(leaf.feature, leaf.path, leaf.type, leaf.layout) for leaf in found] == [
        ("s/a", ("a",), make(pa.int8()), Layout.LIST),
        ("s/b/c", ("b", "c"), make(pa.dictionary(pa.int8(), pa.string())), Layout.LIST),
    ]


@pytest.mark.parametrize("make", LISTS)
def test_a_list_has_the_encoding_of_its_values(make: Callable[[pa.Field], pa.DataType]) -> None:
    (leaf,) = leaves(pa.field("x", make(set_encoding(pa.field("item", pa.int64()), "raw"))))
    assert (leaf.encoding, leaf.kind, leaf.layout) == ("raw", Kind.BYTES, Layout.SCALAR)


def test_null_writes_nothing() -> None:
    for type_ in (pa.null(), pa.list_(pa.null())):
        (leaf,) = leaves(pa.field("x", type_))
        assert (leaf.kind, leaf.layout) == (Kind.NONE, Layout.NULL)
        assert kind_of(value_type(type_)) == Kind.NONE


class Unknown(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.list_(pa.int32()), "tests.unknown")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (pa.list_(pa.list_(pa.int8())), 'record_type="sequence_example"'),
        (pa.list_(pa.struct([("a", pa.list_(pa.int8()))])), 'record_type="sequence_example"'),
        (pa.map_(pa.string(), pa.int8()), "list of structs"),
        (pa.dense_union([pa.field("a", pa.int8())]), "struct"),
        (pa.month_day_nano_interval(), "cast"),
        (pa.decimal128(5, 39), "scale"),
        (pa.decimal128(5, -34), "scale"),
        (pa.struct([]), "leave the column out"),
        (pa.dictionary(pa.int8(), pa.list_(pa.int8())), "decode"),
        (Unknown(), "storage"),
        (pa.opaque(pa.struct({"a": pa.int8()}), "t", "v"), "storage"),
    ],
    ids=str,
)
def test_unsupported_type_says_what_to_do(type_: pa.DataType, message: str) -> None:
    with pytest.raises(UnsupportedType, match=message) as caught:
        leaves(pa.field("x", type_))
    assert caught.value.feature.startswith("x")


@pytest.mark.parametrize(
    ("dtype", "shape", "kind"),
    [("bool", (2, 2), Kind.INT64), ("float16", (), Kind.FLOAT), ("datetime64[M]", (None,), Kind.INT64)],
)
def test_tensors_are_one_value_or_a_list(dtype: str, shape: tuple[int | None, ...], kind: Kind) -> None:
    field = tensor_field("x", Dtype.of_name(dtype), shape)
    (leaf,) = leaves(field)
    assert (leaf.kind, leaf.layout, leaf.encoding, leaf.companions, leaf.element) == (
        kind,
        Layout.LIST,
        "list",
        (),
        Dtype.of_name(dtype),
    )
    (leaf,) = leaves(set_encoding(field, "raw"))
    assert (leaf.kind, leaf.layout, leaf.companions) == (Kind.BYTES, Layout.SCALAR, ("x/shape", "x/dtype"))


@pytest.mark.parametrize(
    ("dtype", "shape", "encoding", "message"),
    [
        ("complex64", (2,), "list", "raw"),
        ("U3", (2,), "list", "raw"),
        ("int8", (None, 2), "list", "raw"),
        ("datetime64[s]", (2,), "tensor_proto", "raw"),
        ("int8", (2,), "hdf5", "tensor_proto"),
    ],
)
def test_tensors_that_an_encoding_cannot_hold(
    dtype: str, shape: tuple[int | None, ...], encoding: str, message: str
) -> None:
    with pytest.raises(UnsupportedType, match=message):
        leaves(set_encoding(tensor_field("x", Dtype.of_name(dtype), shape), encoding))


def test_list_of_tensors_is_a_feature_list_only() -> None:
    field = pa.field("x", pa.list_(pa.fixed_shape_tensor(pa.int8(), (2,))))
    with pytest.raises(UnsupportedType, match="sequence_example"):
        leaves(field)
    step = step_field(field)
    assert step is not None
    assert step.type == pa.fixed_shape_tensor(pa.int8(), (2,))


def test_raw_has_companions() -> None:
    (leaf,) = leaves(set_encoding(pa.field("x", pa.list_(pa.float64())), "raw"))
    assert (leaf.kind, leaf.layout, leaf.encoding) == (Kind.BYTES, Layout.SCALAR, "raw")
    assert leaf.companions == ("x/shape", "x/dtype")
    with pytest.raises(UnsupportedType, match="raw"):
        leaves(set_encoding(pa.field("x", pa.date32()), "raw"))
    with pytest.raises(UnsupportedType, match="'rot13' is not a tensor encoding; valid names: list, raw"):
        leaves(set_encoding(pa.field("x", pa.int8()), "rot13"))


def test_encoding_of_a_struct_is_that_of_its_children() -> None:
    field = pa.field("s", pa.struct([("a", pa.int8()), set_encoding(pa.field("b", pa.int8()), "raw")]))
    assert [leaf.encoding for leaf in leaves(field)] == ["list", "raw"]
    assert [leaf.encoding for leaf in leaves(set_encoding(field, "raw"))] == ["raw", "raw"]


def test_value_type_removes_all_wrappers() -> None:
    assert value_type(pa.large_list_view(pa.dictionary(pa.int8(), pa.large_string()))) == pa.large_string()
    assert value_type(pa.run_end_encoded(pa.int16(), pa.binary_view())) == pa.binary()
    assert value_type(pa.uuid()) == pa.binary(16)
