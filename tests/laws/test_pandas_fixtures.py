"""What pandas' own test fixtures hold, Parquet keeps nothing of that this library does not: all equal after a read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import pandas._testing
import pytest

import tfrecord_io as tfr

FRAMES = ("float_frame", "int_frame", "datetime_frame", "multiindex_year_month_day_dataframe_random_data")
FRAMES += ("multiindex_dataframe_random_data", "object_series", "datetime_series", "string_series")
LEAST = 190  # cases that both keep; there are fewer dtypes in earlier versions of pandas


@pytest.fixture(scope="module")
def fixtures() -> Any:
    """pandas' conftest, which loads a profile of Hypothesis of its own."""
    profile = hypothesis.settings.get_current_profile_name()
    import pandas.conftest

    hypothesis.settings.load_profile(profile)
    return pandas.conftest


def cases_of(fixtures: Any) -> Iterator[tuple[str, Callable[[], pd.DataFrame]]]:
    """The names of the cases, and what makes their frames; pandas itself refuses some of them."""
    for name, index in fixtures.indices_dict.items():
        rows = np.arange(len(index))
        yield f"index: {name}", lambda index=index, rows=rows: pd.DataFrame({"a": rows}, index=index)
        yield f"column: {name}", lambda index=index: pd.DataFrame({"a": index})
        yield f"frame: {name}", lambda index=index: index.to_frame(index=False)
        if index.is_unique and len(index):
            yield f"labels: {name}", lambda index=index, rows=rows: pd.DataFrame([rows], columns=index)
    dtypes = {dtype for name in dir(pd._testing) if name.startswith("ALL_") for dtype in getattr(pd._testing, name)}
    for dtype in sorted(dtypes, key=repr):
        yield f"column: {dtype!r}", lambda dtype=dtype: pd.DataFrame({"a": pd.Series([1, 0, 1], dtype=dtype)})
        yield f"nulls: {dtype!r}", lambda dtype=dtype: pd.DataFrame({"a": pd.Series([1, None, 1], dtype=dtype)})
        yield f"index: {dtype!r}", lambda dtype=dtype: pd.DataFrame({"a": [1]}, index=pd.Index([1], dtype=dtype))
    for dtype, values in fixtures._any_skipna_inferred_dtype:
        yield f"objects: {dtype}", lambda values=values: pd.DataFrame({"a": pd.Series(values, dtype=object)})
    for name in filter(vars(fixtures).__contains__, FRAMES):
        fixture = getattr(fixtures, name)
        make = getattr(fixture, "__wrapped__", None) or fixture._get_wrapped_function()
        yield f"frame: {name}", lambda make=make: pd.DataFrame(make())


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
    only_parquet, both = [], 0
    for number, (name, make) in enumerate(cases_of(fixtures)):
        try:
            frame = make()
        except (TypeError, ValueError, AttributeError, NotImplementedError):  # pandas has no such values
            continue
        if not is_kept(frame, pd.DataFrame.to_parquet, pd.read_parquet, f"{tmp_path}/a.parquet"):
            continue
        # a file without records states no types; the manifest of a folder does
        path = f"{tmp_path}/{number}{'.tfrecord' if len(frame) else '/'}"
        if is_kept(frame, write_tfrecord, tfr.read_tfrecord, path):
            both += 1
        else:
            only_parquet.append(name)
    assert only_parquet == []
    assert both >= LEAST
