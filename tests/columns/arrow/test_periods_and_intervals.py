"""Periods and intervals of pandas come back: as columns, indexes, labels and categories; so does a complex index."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.columns.arrow.periods_and_intervals import labels_as_json, labels_from_json, series_of_categories

MONTHS = pd.PeriodIndex(["2020-01", None, "2019-12"], freq="M")
ENDS: dict[str, Any] = {
    "integers": pd.Index([0, 1, 5, 9]),
    "floats": pd.Index([0.1, 0.2, 1e300, math.inf]),
    "times": pd.to_datetime(
        ["2020-01-01", "2020-01-02", "2020-01-03 00:00:00.000000001", "2200-01-01"], format="ISO8601"
    ),
    "times in a zone": pd.to_datetime(
        ["2020-01-01", "2020-01-02", "2020-10-25 01:30", "2030-01-01"], format="ISO8601", utc=True
    ).tz_convert("Europe/Berlin"),
    "durations": pd.to_timedelta([0, 1, 2, 3], unit="s"),
}
TYPES: dict[str, Any] = {"months": MONTHS, "weeks": pd.period_range("2020", periods=3, freq="W-WED")}
TYPES |= {name: pd.IntervalIndex.from_breaks(ends, closed="left") for name, ends in ENDS.items()}
TYPES["missing"] = pd.IntervalIndex.from_arrays([0.5, math.nan, 2.5], [1.5, math.nan, 3.5], closed="neither")
TYPES |= {f"categories of {name}": pd.CategoricalIndex(values, ordered=True) for name, values in TYPES.items()}
TYPES["complex"] = pd.Index([1j, 2, complex("nan")])


def assert_comes_back(frame: pd.DataFrame, path: Path) -> None:
    tfr.write_tfrecord(frame, path, float64="raw")
    pd.testing.assert_frame_equal(tfr.read_tfrecord(path), frame)


@pytest.mark.parametrize("values", TYPES.values(), ids=TYPES)
def test_columns_and_levels_come_back(tmp_path: Path, values: pd.Index) -> None:
    numbers = {"n": [1, 2, 3]}
    assert_comes_back(pd.DataFrame({"x": values, **numbers}), tmp_path / "a.tfrecord")
    assert_comes_back(pd.DataFrame(numbers, index=values), tmp_path / "a.tfrecord")
    assert_comes_back(pd.DataFrame(numbers, index=values.rename("level")), tmp_path / "a.tfrecord")
    levels = pd.MultiIndex.from_arrays([["a", "b", "c"], values], names=["text", None])
    assert_comes_back(pd.DataFrame(numbers, index=levels), tmp_path / "a.tfrecord")


@pytest.mark.parametrize("values", TYPES.values(), ids=TYPES)
def test_labels_of_columns_come_back(tmp_path: Path, values: pd.Index) -> None:
    assert_comes_back(pd.DataFrame([[1, 2, 3]], columns=values.rename("level")), tmp_path / "a.tfrecord")
    if not values.hasnans:  # pandas does not parse the names of tuples of NaN
        levels = pd.MultiIndex.from_arrays([["a", "b", "c"], values], names=["text", None])
        assert_comes_back(pd.DataFrame([[1, 2, 3]], columns=levels), tmp_path / "a.tfrecord")


def test_labels_of_selected_columns_are_theirs(tmp_path: Path) -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=pd.period_range("2020", periods=3, freq="Y"))
    tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")
    read = tfr.read_tfrecord(tmp_path / "a.tfrecord", columns=["2022", "2020"])
    assert list(read.columns) == [pd.Period("2022"), pd.Period("2020")]


def test_bins_of_cut_and_groups_by_them_come_back(tmp_path: Path) -> None:
    values = pd.DataFrame({"v": np.arange(20) / 7})
    values["bin"] = pd.cut(values["v"], [-math.inf, 0.5, 0.5000000001, math.inf])  # which float32 does not tell apart
    values["quantile"] = pd.qcut(values["v"], 4)
    assert_comes_back(values, tmp_path / "a.tfrecord")
    groups = values.groupby(["bin", "quantile"], observed=False)["v"].sum()
    assert_comes_back(groups.to_frame(), tmp_path / "a.tfrecord")
    assert_comes_back(groups.unstack(), tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").num_rows == 3


def test_categories_are_texts_for_other_readers(tmp_path: Path) -> None:
    tfr.write_tfrecord(pd.DataFrame({"x": pd.cut([1, 2], [0, 1, 2])}), tmp_path / "a.tfrecord")
    column = tfr.read_table(tmp_path / "a.tfrecord")["x"]
    assert column.to_pylist() == ["(0, 1]", "(1, 2]"]
    assert column.type.ordered


def test_an_index_that_is_not_kept_is_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1, 2, 3]}, index=pd.Index([1j, 2, 3]))
    tfr.write_tfrecord(frame, tmp_path / "a.tfrecord", index=False)
    assert tfr.read_table(tmp_path / "a.tfrecord").column_names == ["n"]


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_they_come_back_in_every_backend(tmp_path: Path, backend: Any) -> None:
    frame = pd.DataFrame({"p": MONTHS, "i": pd.interval_range(0, 3), "c": pd.cut([1, 2, 3], 2)})
    tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")
    pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "a.tfrecord", dtype_backend=backend), frame)


@given(st.sampled_from([name for name in TYPES if name != "complex"]), st.data())
def test_any_labels_are_the_same_after_json(name: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, 2), max_size=5))
    labels = TYPES[name].take(rows)
    pd.testing.assert_index_equal(labels_from_json(labels_as_json(labels)), labels)


HOSTILE: list[Any] = [
    None,
    [],
    {},
    {"dtype": "int64", "values": [1]},
    {"dtype": "__import__('os')", "values": []},
    {"dtype": "period[Q-XYZ]", "values": [1]},
    {"dtype": "period[M]", "values": ["a"]},
    {"dtype": "period[M]", "values": [2**70]},
    {"dtype": "interval[int64, right]", "values": [[3, 1]]},
    {"dtype": "interval[int64, right]", "values": [[1]]},
    {"dtype": "interval[float64, right]", "values": [["nan", "x"]]},
    {"dtype": "interval[datetime64[ns, Mars], right]", "values": [[1, 2]]},
    {"of": {"of": None}, "ordered": 1, "codes": []},
    {"of": {"dtype": "period[M]", "values": [1]}, "ordered": True, "codes": [7]},
]


@pytest.mark.parametrize("stated", HOSTILE, ids=range(len(HOSTILE)))
def test_json_of_other_writers_is_no_labels(stated: Any) -> None:
    assert labels_from_json(stated) is None
    assert series_of_categories(pa.chunked_array([["a"]]), {"of": stated, "texts": ["a"], "ordered": False}) is None


def test_texts_that_are_no_categories_stay_texts() -> None:
    stated = {"of": labels_as_json(pd.interval_range(0, 1)), "texts": ["(0, 1]"], "ordered": True}
    assert series_of_categories(pa.chunked_array([["(0, 1]", "else"]]), stated) is None
    assert series_of_categories(pa.chunked_array([[1]]), stated) is None
    assert list(series_of_categories(pa.chunked_array([["(0, 1]", None]]), stated).isna()) == [False, True]
