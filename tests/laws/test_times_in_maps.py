"""Times in maps keep their nanoseconds, as those in lists and structs do: in Arrow, in pandas and as arrays."""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr

TYPES = (pa.time64("ns"), pa.timestamp("ns"), pa.timestamp("ns", "Europe/Amsterdam"), pa.duration("ns"))
DAY = 86_400 * 10**9


@st.composite
def columns(draw: st.DrawFn, rows: int) -> pa.Array:
    """Maps of times, in which there may be structs, lists and maps, and which may be in lists and structs."""
    type_ = draw(st.sampled_from(TYPES))
    numbers = draw(st.lists(st.integers(0, DAY - 1), min_size=rows, max_size=rows))
    values = pa.array(numbers, pa.int64()).cast(type_)
    ones, names = list(range(rows + 1)), pa.array([f"k{row}" for row in range(rows)])
    if draw(st.booleans()):
        values = pa.StructArray.from_arrays([values], ["x"])
    elif draw(st.booleans()):
        values = pa.MapArray.from_arrays(ones, names, values)
    elif draw(st.booleans()):
        return pa.MapArray.from_arrays(ones, values, names)
    column = pa.MapArray.from_arrays(ones, names, values)
    if draw(st.booleans()):
        return pa.ListArray.from_arrays(ones, column)
    return column


def nanoseconds(value: Any) -> Any:
    """The same with times as nanoseconds, and with lists instead of arrays and pairs."""
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        return value.value
    if isinstance(value, np.datetime64 | np.timedelta64):
        return int(value.astype(np.int64))
    if isinstance(value, dt.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000
    if isinstance(value, dict):
        return {name: nanoseconds(each) for name, each in value.items()}
    return [nanoseconds(each) for each in value] if isinstance(value, list | tuple | np.ndarray) else value


def as_numbers(type_: pa.DataType) -> pa.DataType:
    """A type with int64 instead of times."""
    if pa.types.is_map(type_):
        return pa.map_(as_numbers(type_.key_type), as_numbers(type_.item_type))
    if pa.types.is_list(type_):
        return pa.list_(as_numbers(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, as_numbers(field.type)) for field in type_])
    return pa.int64() if pa.types.is_temporal(type_) else type_


@pytest.mark.parametrize("encoding", ["nested", "json"])
@given(data=st.data())
def test_times_in_maps_keep_their_nanoseconds(encoding: str, data: st.DataObject) -> None:
    column = data.draw(columns(data.draw(st.integers(1, 4))))
    expected = nanoseconds(column.cast(as_numbers(column.type)).to_pylist())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "maps.tfrecord"
        tfr.write_tfrecord({"m": column}, path, column_encoding={"m": encoding})
        assert tfr.read_table(path)["m"].combine_chunks() == column
        assert nanoseconds(list(tfr.read_tfrecord(path)["m"])) == expected
        assert nanoseconds(list(tfr.read_arrays(path)["m"])) == expected
        (batch,) = tfr.iter_arrays(path, batch_size=len(column))
        assert nanoseconds(list(batch["m"])) == expected
