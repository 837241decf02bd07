"""Conditions that are given as tuples."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.base.options.filters import condition_of

DAY = datetime.date(1970, 1, 2)
UNITS = {"M": ["M", "W", "D", "h", "m", "s", "ms", "us", "ns"], "m": ["W", "D", "h", "m", "s", "ms", "us", "ns"]}


@given(st.sampled_from([kind + unit for kind, units in UNITS.items() for unit in units]), st.integers(-2000, 2000))
def test_a_time_of_numpy_is_that_of_the_same_moment(kind: str, number: int) -> None:
    value = np.array(number, f"{kind[0]}8[{kind[1:]}]")[()]
    literal = condition_of([("t", "==", value)]).arguments[1].value
    assert literal is not None
    exact = value.astype(f"{kind[0]}8[s]") if kind[1:] in "MWDhm" else value
    assert np.array(literal.as_py() if pa.types.is_date(literal.type) else literal.value, exact.dtype) == exact
    members = condition_of([("t", "in", [value])]).value["value_set"].values
    assert members[0].equals(literal)


@pytest.mark.parametrize("missing", [np.datetime64("NaT"), np.datetime64("NaT", "ns"), pd.NaT, None])
def test_a_missing_time(missing: object) -> None:
    assert condition_of([("t", "==", missing)]).text == condition_of([("t", "==", None)]).text
    values = condition_of([("t", "in", [np.datetime64("1970-01-02", "ns"), missing])]).value
    assert values is not None
    assert values["value_set"].values.null_count == 1


@pytest.mark.parametrize(
    ("filters", "key"),
    [
        ([("a", "==", None)], "is_null(a, {nan_is_null=false})"),
        ("a is not null", "is_valid(a)"),
        ([("a", ">", 1), ("s", "!=", "x")], '((a > 1) and (s != "x"))'),
        ([("a", "not in", [1])], "invert(is_in(a, {value_set=int64:[\n  1\n], null_matching_behavior=MATCH}))"),
        ([("t", "contains", "x")], 'contains(t, "x")'),
        ("s startswith x and a between 1 and 2", '(startswith(s, "x") and between(a, 1, 2))'),
    ],
)
def test_states_of_iterators_name_conditions_as_older_versions_did(filters: object, key: str) -> None:
    assert condition_of(filters).key == key


def test_a_unit_that_arrow_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="got timedelta64"):
        condition_of([("t", "==", np.timedelta64(1, "Y"))])


def test_days_of_numpy_in_a_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    times = pa.array([0, 86_400_000_000, None], pa.timestamp("us"))
    tfr.write_tfrecord(pa.table({"d": times.cast(pa.date32()), "t": times}), path)
    for name in ("d", "t"):
        for value in (np.datetime64("1970-01-02"), np.datetime64("1970-01-02T00", "h"), DAY):
            assert tfr.read_table(path, filters=[(name, "==", value)]).num_rows == 1
            assert tfr.read_table(path, filters=[(name, "in", [value])]).num_rows == 1


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("indexed", [False, True])
def test_nan_among_values_is_nan_of_any_bits(tmp_path: Path, dtype: str, indexed: bool) -> None:
    values = pa.array(np.array([np.nan, -np.nan, 1, 2], dtype))
    table = pa.table({"x": pa.concat_arrays([values, pa.nulls(1, values.type)])})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord", float64="raw")
    if indexed:
        tfr.build_index(tmp_path / "a.tfrecord", columns="x")

    def found(symbol: str, members: list[float | None]) -> str:
        return str(tfr.read_table(tmp_path / "a.tfrecord", filters=[("x", symbol, members)])["x"].to_pylist())

    assert found("in", [np.nan, 1.0]) == "[nan, nan, 1.0]"
    assert found("not in", [np.nan, 1.0]) == "[2.0, None]"
    assert found("in", [np.nan, None]) == "[nan, nan, None]"
    assert found("not in", [np.nan, None]) == "[1.0, 2.0]"


def test_a_dict_is_no_condition() -> None:
    with pytest.raises(TypeError, match="filters: got dict, expected an expression"):
        condition_of({"x": 1})
