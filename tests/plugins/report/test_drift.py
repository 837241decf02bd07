"""Drift between two datasets."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.apps.views.number_statistics import NumberAccumulator, NumberStatistics
from tfrecord_io.base import ReadOptions
from tfrecord_io.plugins.report.dataset_statistics import dataset_statistics
from tfrecord_io.plugins.report.drift import FeatureDrift, drifts, jensen_shannon, l_infinity
from tfrecord_io.plugins.report.report_sample import SampleLimits

NUMBERS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30)
COUNTS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9), min_size=1)


def numbers(values: list[float]) -> NumberStatistics:
    accumulator = NumberAccumulator(np.random.default_rng(0))
    accumulator.add(np.array(values))
    return accumulator.result()


@given(NUMBERS, NUMBERS)
def test_divergence_is_symmetric_and_within_one_bit(a: list[float], b: list[float]) -> None:
    left, right = numbers(a), numbers(b)
    distance = jensen_shannon(left, right)
    assert 0 <= distance <= 1
    assert distance == pytest.approx(jensen_shannon(right, left))
    assert jensen_shannon(left, left) == 0


def test_divergence_of_disjoint_numbers_is_one() -> None:
    assert jensen_shannon(numbers([0.0, 0.1]), numbers([5.0, 6.0])) == 1
    assert jensen_shannon(numbers([0.0, 1.0]), numbers([0.0])) == pytest.approx(0.311278, abs=1e-6)


@given(NUMBERS, NUMBERS, st.integers(1, 9), st.sampled_from([math.nan, math.inf]))
def test_divergence_of_values_that_are_not_finite(a: list[float], b: list[float], count: int, value: float) -> None:
    """They differ from all others, and so do NaN from infinities."""
    assert jensen_shannon(numbers(a), numbers([value] * count)) == pytest.approx(1)
    assert jensen_shannon(numbers([value] * count), numbers([value])) == 0
    assert jensen_shannon(numbers([math.nan]), numbers([-math.inf])) == 1
    left, right = numbers([*a, *[value] * len(a)]), numbers([*b, *[value] * len(b)])
    assert jensen_shannon(left, right) == pytest.approx(jensen_shannon(numbers(a), numbers(b)) / 2)


@given(COUNTS, COUNTS)
def test_l_infinity_is_the_largest_difference_of_shares(a: dict[str, int], b: dict[str, int]) -> None:
    shares = [[side.get(v, 0) / sum(side.values()) for v in "abcd"] for side in (a, b)]
    expected = np.abs(np.subtract(*shares)).max()
    assert l_infinity(a, b) == pytest.approx(expected)
    assert math.isclose(l_infinity(a, b), l_infinity(b, a))


def compared(tmp_path: Path, a: dict, b: dict) -> dict[str, FeatureDrift]:
    sides = []
    for name, data in (("a", a), ("b", b)):
        tfr.write_tfrecord(data, tmp_path / f"{name}.tfrecord", float64="round")
        sides.append(dataset_statistics(tmp_path / f"{name}.tfrecord", ReadOptions(), SampleLimits()).features)
    return {each.name: each for each in drifts(*sides)}


def test_features_of_one_side_come_first(tmp_path: Path) -> None:
    a = {"same": [1, 2] * 50, "old": [1] * 100, "word": ["x", "y"] * 50, "x": np.linspace(0, 1, 100)}
    b = {"same": [2, 1] * 50, "new": ["a"] * 100, "word": ["x", "z"] * 50, "x": np.linspace(5, 6, 100)}
    found = compared(tmp_path, a, b)
    assert list(found) == ["old", "new", "x", "word", "same"]
    assert (found["old"].types, found["old"].presence) == (("int64", None), (1.0, None))
    assert found["new"].distance is None
    assert (found["x"].measure, found["x"].distance) == ("Jensen-Shannon", 1.0)
    word = found["word"]
    assert (word.measure, word.distance, word.new_values, word.lost_values) == ("L-infinity", 0.5, ("z",), ("y",))
    assert (found["same"].distance, found["same"].is_notable) == (0.0, False)


def test_a_feature_that_becomes_nan_is_notable(tmp_path: Path) -> None:
    values = np.arange(100, dtype=np.float32)
    found = compared(
        tmp_path, {"x": values, "y": values}, {"x": values * np.nan, "y": np.where(values < 50, values, np.nan)}
    )
    assert (found["x"].distance, found["x"].is_notable) == (1.0, True)
    assert found["y"].is_notable


def test_presence_and_types_are_compared(tmp_path: Path) -> None:
    found = compared(
        tmp_path, {"x": [1, 2, 3, 4], "y": [1, 2, 3, 4]}, {"x": [1, 2, None, None], "y": ["1", "2", "3", "4"]}
    )
    assert found["x"].presence == (1.0, 0.5)
    assert found["x"].is_notable
    assert found["y"].types == ("int64", "string")
    assert found["y"].is_notable


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        (pa.timestamp("us"), pa.timestamp("ns"), 0),
        (pa.timestamp("s", "UTC"), pa.timestamp("ms", "Europe/Paris"), 0),
        (pa.date32(), pa.timestamp("us"), 0),
        (pa.date64(), pa.date32(), 0),
        (pa.duration("s"), pa.duration("ns"), 0),
        (pa.timestamp("s"), pa.duration("s"), None),
        (pa.int64(), pa.timestamp("s"), None),
    ],
)
def test_times_in_other_units_are_compared_in_one(
    tmp_path: Path, a: pa.DataType, b: pa.DataType, distance: float | None
) -> None:
    for name, type_ in (("a", a), ("b", b)):
        seconds = pa.array(np.arange(19_000, 19_201) * 86_400)
        values = seconds.cast(pa.duration("s")) if pa.types.is_duration(type_) else seconds.cast(pa.timestamp("s"))
        values = seconds if pa.types.is_integer(type_) else values.cast(type_)
        tfr.write_tfrecord({"x": values}, tmp_path / f"{name}.tfrecord")
    report = tfr.report(tmp_path / "a.tfrecord", compare=tmp_path / "b.tfrecord")
    assert report.drift[0].distance == distance
    years = set(re.findall(r"<title>(\d+)-[^<]* to ", report.html))
    assert years == (set() if distance is None or pa.types.is_duration(a) else {"2022"})
