"""What pandas' own test fixtures hold, Parquet keeps nothing of that this library does not: all equal after a read."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import pandas._testing
import pytest

import tfrecord_io as tfr

Make = Callable[[], pd.DataFrame]

# Fixtures of pandas.conftest whose values are data; others are functions, flags, and words for arguments of methods.
OBJECTS = "index series_with_simple_index index_or_series_obj index_or_series_memory_obj index_with_missing float_frame"
OBJECTS += " int_frame datetime_series string_series object_series lexsorted_two_level_string_multiindex"
OBJECTS += " multiindex_dataframe_random_data multiindex_year_month_day_dataframe_random_data"
OBJECTS += " rand_series_with_duplicate_datetimeindex"
NULLS = "nulls_fixture unique_nulls_fixture np_nat_fixture"
ZONES = "tz_aware_fixture tz_naive_fixture utc_fixture warsaw"
OTHERS = "any_skipna_inferred_dtype ea_scalar_and_dtype string_dtype_arguments names closed unit tick_classes ordered"
OTHERS += " box_with_array"
LEAST = 460  # different frames that both keep: 466 of 765 with pandas 3.1, 475 of 770 with 2.2


@pytest.fixture(scope="module")
def fixtures() -> Any:
    """pandas' conftest, which loads a profile of Hypothesis of its own."""
    profile = hypothesis.settings.get_current_profile_name()
    import pandas.conftest

    hypothesis.settings.load_profile(profile)
    return pandas.conftest


def is_fixture(value: Any) -> bool:
    return hasattr(value, "_get_wrapped_function") or hasattr(value, "_pytestfixturefunction")


def parameters_of(fixture: Any) -> list[Any]:
    """The parameters of a fixture; a single None if it has none."""
    marker = getattr(fixture, "_fixture_function_marker", None) or fixture._pytestfixturefunction
    found = [getattr(each, "values", (each,)) for each in marker.params or [None]]
    return [each[0] if isinstance(each, tuple) and len(each) == 1 else each for each in found]


def values_of(fixtures: Any, name: str) -> Iterator[tuple[Any, Any]]:
    """The values of a fixture with their parameters, as pytest gives them to a test."""
    fixture = getattr(fixtures, name, None)
    if fixture is None:  # of another version of pandas
        return
    make = fixture._get_wrapped_function() if hasattr(fixture, "_get_wrapped_function") else fixture.__wrapped__
    needed = [each for each in inspect.signature(make).parameters if each != "request"]
    for parameter in parameters_of(fixture):
        for values in zip(*(values_of(fixtures, each) for each in needed), strict=False) if needed else [()]:
            arguments = {each: value for each, (_, value) in zip(needed, values, strict=True)}
            if "request" in inspect.signature(make).parameters:
                arguments["request"] = SimpleNamespace(param=parameter)
            value = make(**arguments)
            yield (parameter, next(value) if inspect.isgenerator(value) else value)


def frames_of(value: Any) -> Iterator[tuple[str, Make]]:
    """The frames that hold an index, a series or a frame."""
    if isinstance(value, pd.Index):
        rows = np.arange(len(value))
        yield "index", lambda: pd.DataFrame({"a": rows}, index=value)
        yield "column", lambda: pd.DataFrame({"a": value})
        yield "frame", lambda: value.to_frame(index=False)
        if value.is_unique and len(value):
            yield "labels", lambda: pd.DataFrame([rows], columns=value)
    else:
        yield "frame", lambda: pd.DataFrame(value)


def frames_of_dtype(dtype: Any) -> Iterator[tuple[str, Make]]:
    """Columns, with and without missing values, and indexes of a dtype; pandas refuses some."""
    yield "column", lambda: pd.DataFrame({"a": pd.Series([1, 0, 1], dtype=dtype)})
    yield "nulls", lambda: pd.DataFrame({"a": pd.Series([1, None, 1], dtype=dtype)})
    yield "index", lambda: pd.DataFrame({"a": [1]}, index=pd.Index([1], dtype=dtype))
    yield "empty", lambda: pd.DataFrame({"a": pd.Series([], dtype=dtype)})


def frames_of_zone(zone: Any) -> Iterator[tuple[str, Make]]:
    times = pd.date_range("2024-03-30 01:30", periods=3, tz=zone)
    yield from frames_of(times)
    yield "nulls", lambda: pd.DataFrame({"a": times.insert(1, pd.NaT)})


def frames_of_null(null: Any) -> Iterator[tuple[str, Make]]:
    for kind, values in {"objects": [null, "a"], "nulls": [null, null]}.items():
        yield kind, lambda values=values: pd.DataFrame({"a": pd.Series(values, dtype=object)})
        yield f"inferred {kind}", lambda values=values: pd.DataFrame({"a": values})


def frames_of_other(name: str, value: Any) -> Iterator[tuple[str, Make]]:
    """The frames of a value whose meaning depends on its fixture."""
    if name == "any_skipna_inferred_dtype":
        yield "objects", lambda: pd.DataFrame({"a": pd.Series(value[1], dtype=object)})
        yield "inferred", lambda: pd.DataFrame({"a": value[1]})
    elif name == "ea_scalar_and_dtype":
        yield from frames_of(pd.Index(pd.array([value[0], value[0]], dtype=value[1])))
    elif name == "string_dtype_arguments":
        yield from frames_of_dtype(pd.StringDtype(*value))
    elif name == "names":
        levels = pd.MultiIndex.from_product([[1], ["a"], [2.5]], names=value)
        yield from frames_of(levels)
        yield from frames_of(pd.Index([1, 2], name=value[0]))
    elif name == "closed":
        yield from frames_of(pd.interval_range(0, 4, closed=value))
    elif name == "unit":
        yield from frames_of(pd.date_range("2024-01-01", periods=3).as_unit(value))
        yield from frames_of(pd.timedelta_range("1 day", periods=3).as_unit(value))
    elif name == "tick_classes":
        yield from frames_of(pd.period_range("2024-01-01", periods=3, freq=value(2)))
        yield from frames_of(pd.date_range("2024-01-01", periods=3, freq=value(2)))
    elif name == "ordered":
        categories = pd.CategoricalDtype(["b", "a", "c"], ordered=value)
        yield from frames_of(pd.Index(pd.Categorical(["a", "b", None], dtype=categories)))
    elif name == "box_with_array" and callable(value):
        yield from frames_of(value([1.5, 2.5]))


def cases_of(fixtures: Any) -> Iterator[tuple[str, str, Make]]:
    """The fixture, the name and what makes the frame of each case; pandas itself refuses some of them."""

    def named(name: str, parameter: Any, frames: Iterator[tuple[str, Make]]) -> Iterator[tuple[str, str, Make]]:
        for kind, make in frames:
            yield name, f"{name}[{parameter!r}]: {kind}", make

    for name in OBJECTS.split():
        for parameter, value in values_of(fixtures, name):
            yield from named(name, parameter, frames_of(value))
    for name in filter(lambda name: "dtype" in name and is_fixture(getattr(fixtures, name)), dir(fixtures)):
        if name not in OTHERS.split():
            for parameter, value in values_of(fixtures, name):
                yield from named(name, parameter, frames_of_dtype(value))
    for name in filter(lambda name: name.startswith("ALL_"), dir(pd._testing)):
        for dtype in getattr(pd._testing, name):
            yield from named(name, dtype, frames_of_dtype(dtype))
    for names, frames in ((NULLS, frames_of_null), (ZONES, frames_of_zone)):
        for name in names.split():
            for parameter, value in values_of(fixtures, name):
                yield from named(name, parameter, frames(value))
    for name in OTHERS.split():
        for parameter, value in values_of(fixtures, name):
            yield from named(name, parameter, frames_of_other(name, value))


def is_kept(frame: pd.DataFrame, write: Callable[[pd.DataFrame, str], Any], read: Any, path: str) -> bool:
    """True if the frame equals what is read back of it."""
    try:
        write(frame, path)
        pd.testing.assert_frame_equal(read(path), frame)
    except Exception:  # the two raise errors of any type
        return False
    return True


def write_tfrecord(frame: pd.DataFrame, path: str) -> None:
    tfr.write_tfrecord(frame, path, float64="raw")


@pytest.mark.filterwarnings("ignore")
def test_parquet_keeps_nothing_that_tfrecord_loses(fixtures: Any, tmp_path: Path) -> None:
    only_parquet, both, of_fixtures, seen = [], 0, set(), set()
    for number, (fixture, name, make) in enumerate(cases_of(fixtures)):
        try:
            frame = make()
        except (TypeError, ValueError, AttributeError, NotImplementedError):  # pandas has no such values
            continue
        of_fixtures.add(fixture)
        content = pickle.dumps(frame)
        if content in seen:  # many fixtures have the same values
            continue
        seen.add(content)
        if not is_kept(frame, pd.DataFrame.to_parquet, pd.read_parquet, f"{tmp_path}/a.parquet"):
            continue
        # a file without records states no types; the manifest of a folder does
        path = f"{tmp_path}/{number}{'.tfrecord' if len(frame) else '/'}"
        if is_kept(frame, write_tfrecord, tfr.read_tfrecord, path):
            both += 1
        else:
            only_parquet.append(name)
    # Each fixture of data, whatever else a version of pandas has, and all dtypes of its lists.
    expected = {name for name in f"{OBJECTS} {NULLS} {ZONES} {OTHERS}".split() if hasattr(fixtures, name)}
    assert expected <= of_fixtures
    assert only_parquet == []
    assert both >= LEAST
