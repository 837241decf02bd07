"""`read_tfrecord` keeps each value of a column exactly, whatever its type, depth and missing values."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import types as t

import tfrecord_io as tfr
from arrow_tables import LEAVES, leaf_arrays, list_arrays, run_arrays, struct_arrays
from rounds import rounds

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
_LISTS = (t.is_list, t.is_large_list, t.is_fixed_size_list)


def is_list(type_: pa.DataType) -> bool:
    return any(is_kind(type_) for is_kind in _LISTS)


def from_arrow(scalar: Any, *, in_array: bool = False) -> Any:
    """A value as Arrow has it: times as integers, floats as text. NumPy's floats have no null but NaN."""
    type_ = scalar.type
    if t.is_dictionary(type_):
        return from_arrow(scalar.value if scalar.is_valid else pa.scalar(None, type_.value_type), in_array=in_array)
    if not scalar.is_valid:
        return "nan" if in_array and t.is_floating(type_) else None
    if t.is_struct(type_):
        return {child.name: from_arrow(scalar[at]) for at, child in enumerate(type_)}
    if is_list(type_):
        return [from_arrow(item, in_array=True) for item in scalar.values]
    if t.is_date(type_):
        return scalar.cast(pa.date32()).cast(pa.int32()).as_py()
    if t.is_timestamp(type_) or t.is_duration(type_) or t.is_time(type_):
        return scalar.value * _NANOSECONDS[type_.unit]
    return repr(float(scalar.as_py())) if t.is_floating(type_) else scalar.as_py()


def from_pandas(value: Any, type_: pa.DataType, *, in_array: bool = False, in_column: bool = False) -> Any:
    """A value of a frame in that form; AssertionError if it is not of the kind of its type."""
    if t.is_dictionary(type_):
        return from_pandas(value, type_.value_type, in_array=in_array, in_column=in_column)
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, np.timedelta64 | np.datetime64) and np.isnat(value):  # in an array
        return None
    if t.is_struct(type_):
        assert type(value) is dict
        assert list(value) == [child.name for child in type_]
        return {child.name: from_pandas(value[child.name], child.type) for child in type_}
    if is_list(type_):
        assert type(value) is np.ndarray
        return [from_pandas(item, type_.value_type, in_array=True) for item in value]
    if t.is_floating(type_):
        assert isinstance(value, float | np.floating)
        return None if in_column and np.isnan(value) else repr(float(value))
    if in_column and isinstance(value, float) and np.isnan(value):
        return None
    if t.is_boolean(type_):
        assert isinstance(value, bool | np.bool_)
        return bool(value)
    if t.is_integer(type_):
        assert isinstance(value, int | np.integer)
        return int(value)
    if t.is_timestamp(type_) or t.is_duration(type_) or t.is_time(type_) or t.is_date(type_):
        return from_time(value, type_, in_array=in_array)
    return value


def from_time(value: Any, type_: pa.DataType, *, in_array: bool) -> int:
    if t.is_date(type_):
        return np.datetime64(value, "D").astype(int).item()
    if t.is_time(type_):
        assert isinstance(value, dt.time)
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000
    if t.is_duration(type_):
        assert isinstance(value, dt.timedelta | np.timedelta64)
        value = value.to_timedelta64() if isinstance(value, pd.Timedelta) else np.timedelta64(value)
        return value.astype("m8[ns]").astype(int).item()
    assert isinstance(value, dt.datetime | np.datetime64)
    if isinstance(value, np.datetime64):
        return value.astype("M8[ns]").astype(int).item()
    assert (value.tzinfo is not None) == (type_.tz is not None)
    return (
        pd.Timestamp(value).tz_convert("UTC").as_unit("ns").value
        if type_.tz
        else pd.Timestamp(value).as_unit("ns").value
    )


def assert_exact(frame: pd.DataFrame, table: pa.Table) -> None:
    assert list(frame.columns) == table.column_names
    for name in table.column_names:
        column = table[name]
        is_float = t.is_floating(column.type) or (
            t.is_dictionary(column.type) and t.is_floating(column.type.value_type)
        )
        expected = [from_arrow(value) for value in column]
        if is_float:  # a column of floats has no null but NaN
            expected = [None if value == "nan" else value for value in expected]
        assert [from_pandas(value, column.type, in_column=True) for value in frame[name]] == expected


@st.composite
def nested_tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 5))
    kinds = [leaf_arrays(rows), list_arrays(rows, depth=2), struct_arrays(rows, depth=2), run_arrays(rows)]
    arrays = draw(st.lists(st.one_of(kinds), min_size=1, max_size=3))
    return pa.Table.from_arrays(arrays, [f"c{at}" for at in range(len(arrays))])


@settings(max_examples=rounds(600))
@given(table=nested_tables(), backend=st.sampled_from([None, None, "numpy_nullable"]), shards=st.sampled_from([1, 2]))
def test_frames_have_each_value(table: pa.Table, backend: Any, shards: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord(table, Path(folder) / "a.tfrecord", shards=shards)
        paths = sorted(Path(folder).glob("a*.tfrecord*"))
        assert_exact(tfr.read_tfrecord(paths, dtype_backend=backend), tfr.read_table(paths))


@settings(max_examples=rounds(200))
@given(data=st.data(), type_=st.sampled_from([each for each in LEAVES if not t.is_float16(each[0])]))
def test_feature_lists_keep_each_value(data: st.DataObject, type_: tuple[pa.DataType, Any]) -> None:
    leaf, values = type_
    steps = st.lists(st.none() | st.lists(values, min_size=1, max_size=1), max_size=4)
    rows = data.draw(st.lists(steps, min_size=1, max_size=4))
    table = pa.table({"c": pa.array(rows, pa.list_(pa.list_(leaf)))})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        tfr.write_tfrecord(table, path, record_type="sequence_example")
        schema = {"c": tfr.sequence(leaf)}
        assert_exact(tfr.read_tfrecord(path, schema=schema), tfr.read_table(path, schema=schema))


def test_feature_lists_of_integers_with_an_empty_step_stay_integers(tmp_path: Path) -> None:
    rows = pa.array([[[2**60 + 1], None], [[1], [2]]], pa.list_(pa.list_(pa.int64())))
    tfr.write_tfrecord(pa.table({"c": rows}), tmp_path / "a.tfrecord", record_type="sequence_example")
    some, all_ = tfr.read_tfrecord(tmp_path / "a.tfrecord", schema={"c": tfr.sequence("int64")})["c"]
    assert some.tolist() == [2**60 + 1, None]
    assert all_.tolist() == [1, 2]
    assert all_.dtype == np.int64


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_a_column_of_their_dtype(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"c": np.array([1 + 2j, 3], dtype)}, path)
    frame = tfr.read_tfrecord(path)
    assert frame["c"].dtype == dtype
    tfr.write_tfrecord(frame, tmp_path / "b.tfrecord")
    assert tfr.read_table(tmp_path / "b.tfrecord").equals(tfr.read_table(path))
    tfr.write_tfrecord({"c": [np.dtype(dtype).type(1j), None]}, path, mode="overwrite")
    column = tfr.read_tfrecord(path)["c"]
    np.testing.assert_array_equal(column.to_numpy(), np.array([1j, np.nan], dtype), strict=True)
    tfr.write_tfrecord(tfr.read_tfrecord(path), tmp_path / "b.tfrecord", mode="overwrite")
    assert tfr.read_table(tmp_path / "b.tfrecord").equals(tfr.read_table(path))


def test_categories_with_null_are_read_in_several_batches(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int8()), pa.array([None, "a"]))
    tfr.write_tfrecord(pa.table({"c": column}), tmp_path / "a.tfrecord", shards=2)
    assert tfr.read_table(tmp_path)["c"].to_pylist() == [None, "a", "a"]
    assert tfr.read_tfrecord(tmp_path)["c"].cat.categories.tolist() == ["a"]
