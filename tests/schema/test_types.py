"""The types that columns are restored with."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from tfrecord_io.format.dtypes import element
from tfrecord_io.schema.tensor_types import tensor_field
from tfrecord_io.schema.types import UnsupportedType, kind_of, restored_field, restored_type


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
        restored_field(tensor_field("x", element("int8"), (2,)).with_metadata({b"tfrecord_io.dtype": b"complex64"}))


@pytest.mark.parametrize(
    ("values", "advice"),
    [
        (pd.period_range("2020-01", periods=2, freq="M"), "to_timestamp"),
        (pd.interval_range(0, 2), "left"),
        (pd.Series(pd.cut([1, 2, 3], 2)), "left"),
    ],
    ids=["period", "interval", "categories"],
)
def test_types_of_pandas_alone_are_refused_with_a_conversion(values: object, advice: str) -> None:
    type_ = pa.Table.from_pandas(pd.DataFrame({"x": values})).schema.field("x").type
    with pytest.raises(UnsupportedType) as caught:
        kind_of(type_, "x")
    assert advice in caught.value.advice
    assert "astype(str)" in caught.value.advice
