"""Columns of times that pandas cannot hold as Python objects: NumPy's dtypes hold them."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from arrow_tables import TEXT_DTYPE
from tfrecord_io.columns.arrow.output.to_pandas import to_pandas
from tfrecord_io.errors import SchemaWarning

LAST_DAY = pa.array([2**31 - 1, 0], pa.int32()).view(pa.date32())


@pytest.mark.parametrize(
    ("array", "dtype", "shown"),
    [
        (LAST_DAY, "datetime64[s]", "5881580-07-11"),
        (pa.array([86_400_000 * 10**10]).view(pa.date64()), "datetime64[ms]", "27381040-01-27"),
        (pa.array([1_234_567_891]).view(pa.time64("ns")), "timedelta64[ns]", "00:00:01.234567891"),
        (pa.array([2**60]).view(pa.timestamp("s")), "datetime64[s]", "36534630048-05-13"),
        (pa.array([2**62]).view(pa.duration("s")), "timedelta64[s]", "days"),
        (LAST_DAY.dictionary_encode(), "category", "5881580-07-11"),
        (pa.array([[0]], pa.list_(pa.int32())).cast(pa.list_(pa.date32())), "object", "1970-01-01"),
        (pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), LAST_DAY), "object", "5881580-07-11"),
        (pa.StructArray.from_arrays([LAST_DAY], ["a"]), "object", "5881580-07-11"),
    ],
    ids=lambda each: str(getattr(each, "type", "")),
)
def test_numpy_holds_them(array: pa.Array, dtype: str, shown: str) -> None:
    table = pa.table({"x": array, "y": ["text"] * len(array)})
    frame = to_pandas(table)
    assert [str(each) for each in frame.dtypes] == [dtype, TEXT_DTYPE]
    assert shown in repr(frame)
    assert len(to_pandas(table, "numpy_nullable")) == len(array)


@pytest.mark.parametrize(
    ("seconds", "zone", "dtype", "reason"),
    [
        (2**30, "No/Where", "datetime64[s, UTC]", "column 'x': the time zone 'No/Where' is unknown here"),
        (2**30, "a\x1bb", "datetime64[s, UTC]", r"time zone 'a\\x1bb' is unknown"),
        (2**60, "Europe/Berlin", "datetime64[s]", "column 'x': years before 1 or after 9999"),
        (-(2**60), "UTC", "datetime64[s]", "column 'x': years before 1 or after 9999"),
        (2**60, "No/Where", "datetime64[s]", "column 'x': years before 1 or after 9999"),
    ],
)
def test_time_zones(seconds: int, zone: str, dtype: str, reason: str) -> None:
    array = pa.array([seconds, None]).view(pa.timestamp("s", zone))
    with pytest.warns(SchemaWarning, match=reason):
        frame = to_pandas(pa.table({"x": array}))
    assert str(frame.dtypes["x"]) == dtype
    assert frame["x"].astype("int64")[0] == seconds
    assert repr(frame)
    with pytest.warns(SchemaWarning, match=reason):
        categories = to_pandas(pa.table({"x": array.dictionary_encode()}))["x"].cat.categories
    assert categories.astype("int64").tolist() == [seconds]


@pytest.mark.parametrize("levels", [["x"], ["x", "y"]])
@pytest.mark.parametrize("backend", [None, "pyarrow"])
@pytest.mark.parametrize(("seconds", "zone"), [(2**30, "No/Where"), (2**60, "Europe/Berlin")])
def test_an_index_of_such_times(seconds: int, zone: str, backend: Any, levels: list[str]) -> None:
    metadata = {b"pandas": json.dumps({"index_columns": levels, "column_indexes": [], "columns": []})}
    array = pa.array([seconds, 0]).view(pa.timestamp("s", zone))
    table = pa.table({"x": array, "y": [1, 2], "z": [3, 4]}).replace_schema_metadata(metadata)
    with pytest.warns(SchemaWarning, match="column 'x': "):
        frame = to_pandas(table, backend)
    assert frame.index.names == levels
    assert repr(frame)
    assert frame["z"].tolist() == [3, 4]
    assert pc.cast(pa.array(frame.index.get_level_values(0)), pa.int64()).to_pylist() == [seconds, 0]


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63) + 1])
def test_nanoseconds_whose_local_time_is_out_of_range(number: int) -> None:
    array = pa.array([number, None]).view(pa.timestamp("ns", "Europe/Paris"))
    with pytest.warns(SchemaWarning, match=r"column 'x': the first or last day of datetime64\[ns\] in a time zone"):
        frame = to_pandas(pa.table({"x": array}))
    assert str(frame.dtypes["x"]) == "datetime64[ns]"
    assert frame["x"].astype("int64")[0] == number
    assert repr(frame)


def test_known_zones_are_kept() -> None:
    array = pa.array([0, 253_370_764_799, -62_104_060_800, None]).view(pa.timestamp("s", "Europe/Paris"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = to_pandas(pa.table({"x": array, "z": array.view(pa.timestamp("s", "+01:00")).slice(0)}))
    assert str(frame.dtypes["x"]) == "datetime64[s, Europe/Paris]"
    if TEXT_DTYPE == "str":  # pandas 2 crashes in its repr()
        assert repr(frame)


def test_the_index(tmp_path: Any) -> None:
    frame = to_pandas(pa.Table.from_pandas(pd.DataFrame({"x": [1, 2]}, pd.Index([[1, 2], [3]], tupleize_cols=False))))
    assert len(frame.index) == 2
    levels = pd.DataFrame({"x": [1, 2], "a": [(1, 2), (3,)], "b": [5, 6]}).set_index(["a", "b"])
    assert to_pandas(pa.Table.from_pandas(levels)).index.equals(levels.index)
