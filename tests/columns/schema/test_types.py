"""The types that columns are restored with."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.bytes.format.feature_types import Kind
from tfrecord_io.columns.schema.tensor_types import tensor_field
from tfrecord_io.columns.schema.types import (
    UnsupportedType,
    common_type,
    kind_of,
    restored_field,
    restored_type,
    share_types,
)


def test_restored_type_has_no_views_run_ends_or_large_offsets() -> None:
    original = pa.struct(
        [
            pa.field("a", pa.large_list_view(pa.field("el", pa.string_view(), False))),
            ("b", pa.list_(pa.run_end_encoded(pa.int32(), pa.large_binary()), 3)),
            ("c", pa.dictionary(pa.int16(), pa.large_string(), True)),
            ("d", pa.json_(pa.large_string())),
            ("e", pa.timestamp("ms", "UTC")),
        ]
    )
    assert restored_type(original) == pa.struct(
        [
            pa.field("a", pa.list_(pa.field("el", pa.string(), False))),
            ("b", pa.list_(pa.binary(), 3)),
            ("c", pa.dictionary(pa.int16(), pa.string(), True)),
            ("d", pa.json_(pa.string())),
            ("e", pa.timestamp("ms", "UTC")),
        ]
    )


def test_restored_field_names_the_dtype_of_tensors_and_keeps_the_rest() -> None:
    original = pa.field("x", pa.fixed_shape_tensor(pa.bool_(), (2, 3), permutation=[1, 0]), False, {b"unit": b"m"})
    restored = restored_field(original)
    assert restored.equals(
        pa.field("x", pa.fixed_shape_tensor(pa.uint8(), (3, 2)), False, {b"unit": b"m", b"tfrecord_io.dtype": b"bool"}),
        check_metadata=True,
    )
    assert restored_field(restored).equals(restored, check_metadata=True)
    steps = restored_field(original.with_type(pa.large_list(original.type)))
    assert (steps.type, steps.metadata) == (pa.list_(restored.type), restored.metadata)


def test_tensor_without_a_dtype_is_unsupported() -> None:
    with pytest.raises(UnsupportedType, match="no dtype"):
        restored_field(pa.field("x", pa.fixed_shape_tensor(pa.binary(3), (2,))))
    with pytest.raises(UnsupportedType, match="metadata says"):
        restored_field(
            tensor_field("x", Dtype.of_name("int8"), (2,)).with_metadata({b"tfrecord_io.dtype": b"complex64"})
        )


def test_an_extension_type_has_the_kind_of_its_storage() -> None:
    assert kind_of(pa.opaque(pa.timestamp("ns"), "t", "v")) is Kind.INT64
    assert kind_of(pa.opaque(pa.large_string(), "t", "v")) is Kind.BYTES
    with pytest.raises(UnsupportedType, match=r"arrow.opaque are not stored as single values; cast"):
        kind_of(pa.opaque(pa.list_(pa.int8()), "t", "v"), "x")


@pytest.mark.parametrize("name", ["item", "element"])
def test_columns_share_the_objects_of_common_types_alone(name: str) -> None:
    common = [pa.int8(), pa.large_string(), pa.list_(pa.field(name, pa.float32()))]
    other = [
        *(pa.list_(pa.field("x", pa.int8())), pa.list_(pa.field(name, pa.int8(), nullable=False)), pa.date32()),
        *(pa.list_(pa.field(name, pa.int8(), metadata={b"k": b"v"})), pa.list_(pa.int8(), 2), pa.large_list(pa.int8())),
        pa.list_(pa.list_(pa.int8())),
    ]
    assert all(common_type(type).equals(type, check_metadata=True) for type in common)
    assert list(map(common_type, other)) == [None] * len(other)
    fields = [pa.field(f"c{at}", type) for at, type in enumerate([*common, *other])]
    fields += [fields[2].with_name("r").with_nullable(False), fields[2].with_name("m").with_metadata({b"k": b"v"})]
    schema = pa.schema(fields, {b"k": b"v"})
    assert share_types(schema).equals(schema, check_metadata=True)
