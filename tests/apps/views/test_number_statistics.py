"""Statistics of numbers, compared with NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.apps.views.number_statistics import KEPT, QUANTILES, NumberAccumulator, edges_of, histogram

FLOATS = st.lists(st.floats(allow_subnormal=True), max_size=40)
INTEGERS = st.lists(st.integers(-(2**62), 2**62) | st.integers(-50, 50), max_size=40)


def accumulated(*batches: list) -> NumberAccumulator:
    accumulator = NumberAccumulator(np.random.default_rng(0))
    for batch in batches:
        accumulator.add(np.array(batch, dtype=np.float64 if not batch else None))
    return accumulator


@given(FLOATS | INTEGERS, st.integers(0, 40))
def test_statistics_are_those_of_numpy(values: list, at: int) -> None:
    result = accumulated(values[:at], values[at:]).result()
    floats = np.array(values, np.float64)
    finite = floats[np.isfinite(floats)]
    assert result.count == len(values)
    assert result.nans == np.isnan(floats).sum()
    assert result.infinities == np.isinf(floats).sum()
    assert result.zeros == (finite == 0).sum()
    if not len(finite):
        assert (result.minimum, result.mean, result.quantiles, result.histogram) == (None, None, (), None)
        return
    assert (result.minimum, result.maximum) == (finite.min(), finite.max())
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = finite.mean(), finite.std()
        if math.isfinite(deviation):
            scale = np.abs(finite).max()
            assert result.mean == pytest.approx(mean, rel=1e-9, abs=1e-9 * scale)
            assert result.deviation == pytest.approx(deviation, rel=1e-6, abs=1e-7 * scale)
        assert np.array_equal(result.quantiles, np.quantile(finite, QUANTILES), equal_nan=True)


@given(FLOATS | INTEGERS)
def test_every_finite_value_is_in_one_bin(values: list) -> None:
    result = accumulated(values).result()
    drawn = result.histogram
    finite = [v for v in map(float, values) if math.isfinite(v)]
    if drawn is None:
        assert not finite
        return
    assert sum(drawn.counts) == len(finite)
    assert len(drawn.edges) == len(drawn.counts) + 1
    assert list(drawn.edges) == sorted(drawn.edges)
    for i, count in enumerate(drawn.counts):
        low, high = drawn.edges[i], drawn.edges[i + 1]
        is_last = i == len(drawn.counts) - 1
        assert count == sum(low <= v < high or (is_last and v == high) for v in finite)


@given(FLOATS, FLOATS)
def test_two_histograms_have_the_same_edges(a: list[float], b: list[float]) -> None:
    sides = [side for side in (accumulated(a).result(), accumulated(b).result()) if len(side.kept)]
    if sides:
        edges = edges_of(*sides)
        for side in sides:
            drawn = histogram(side.kept, edges)
            assert drawn.edges == tuple(edges.tolist())
            assert sum(drawn.counts) == len(side.kept)


def test_integers_have_bins_of_integers() -> None:
    drawn = accumulated([1, 2, 2, 5]).result().histogram
    assert drawn is not None
    assert drawn.integers
    assert drawn.edges == (1, 2, 3, 4, 5, 6)
    assert drawn.counts == (1, 2, 0, 0, 1)


def test_many_values_are_sampled() -> None:
    accumulator = NumberAccumulator(np.random.default_rng(1))
    for i in range(10):
        accumulator.add(np.arange(i * 20_000, (i + 1) * 20_000))
    result = accumulator.result()
    assert (result.count, result.minimum, result.maximum, result.mean) == (200_000, 0, 199_999, 99_999.5)
    assert len(result.kept) == KEPT
    assert len(set(result.kept.tolist())) == KEPT
    assert result.quantiles[3] == pytest.approx(100_000, rel=0.02)
    assert result.quantiles[0] == pytest.approx(2000, rel=0.2)
