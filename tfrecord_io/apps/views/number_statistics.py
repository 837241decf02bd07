"""Statistics of numbers in one pass: exact moments, and a random sample for quantiles and histograms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEPT = 32_768  # values that are kept of more: a random sample
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_MOST_BINS, _LEAST_BINS = 40, 8
_EXACT_INTEGERS = 2.0**53


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers of values in intervals of the same width.

    Bin ``i`` has the values of [edges[i], edges[i + 1]), the last one also ``edges[-1]``. If all values are
    `integers`, so are the edges.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    integers: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"edges": list(self.edges), "counts": list(self.counts)}


@dataclass(frozen=True, slots=True)
class NumberStatistics:
    """Statistics of numbers, or of lengths.

    Attributes
    ----------
    count : int
        Number of values, NaN and infinite ones included.
    nans, infinities, zeros : int
    minimum, maximum : int, float or None
        Of the finite values.
    mean, deviation : float or None
        Of the finite values; the deviation is that of the whole population, as ``numpy.std``.
    quantiles : tuple of float
        For `QUANTILES`, interpolated as by ``numpy.quantile``; of `kept` values.
    kept : ndarray
        All finite values, or a random sample of `KEPT` of them, sorted: float64.
    """

    count: int
    nans: int
    infinities: int
    zeros: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    deviation: float | None
    quantiles: tuple[float, ...]
    kept: NDArray[Any] = field(repr=False, compare=False)

    @property
    def histogram(self) -> Histogram | None:
        """Histogram of the values kept; None if there are none."""
        return histogram(self.kept, edges_of(self)) if len(self.kept) else None

    def times(self, scale: int) -> NumberStatistics:
        """Statistics of the numbers in a unit `scale` times finer."""
        if scale == 1:
            return self
        moments = (self.minimum, self.maximum, self.mean, self.deviation)
        low, high, mean, deviation = (None if value is None else value * scale for value in moments)
        quantiles = tuple(value * scale for value in self.quantiles)
        kept = self.kept * scale
        return replace(self, minimum=low, maximum=high, mean=mean, deviation=deviation, quantiles=quantiles, kept=kept)

    def to_dict(self) -> dict[str, Any]:
        named = {f"{q:g}": value for q, value in zip(QUANTILES, self.quantiles, strict=False)}
        histogram = self.histogram
        names = ("count", "nans", "infinities", "zeros", "minimum", "maximum", "mean", "deviation")
        values = {name: getattr(self, name) for name in names}
        return {**values, "quantiles": named, "histogram": None if histogram is None else histogram.to_dict()}


class NumberAccumulator:
    """Accumulates arrays of numbers.

    >>> numbers = NumberAccumulator(np.random.default_rng(0))
    >>> numbers.add(np.array([1.0, 2.0, np.nan, 0.0]))
    >>> result = numbers.result()
    >>> result.count, result.nans, result.zeros, result.mean, result.quantiles[3]
    (4, 1, 1, 1.0, 1.0)
    """

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self._count = self._nans = self._infinities = self._zeros = self._finite = 0
        self._mean = self._squares = 0.0  # of the finite values; the sum of squared differences from the mean
        self._low, self._high = math.inf, -math.inf
        self._kept, self._keys = np.empty(0), np.empty(0)  # the values with the smallest of all random keys

    def add(self, values: NDArray[Any]) -> None:
        """Add numbers of any dtype."""
        values = np.asarray(values).astype(np.float64, copy=False).reshape(-1)
        self._count += len(values)
        finite = values[np.isfinite(values)]
        if len(finite) < len(values):
            nans = int(np.isnan(values).sum())
            self._nans += nans
            self._infinities += len(values) - len(finite) - nans
        if not len(finite):
            return
        self._zeros += len(finite) - int(np.count_nonzero(finite))
        self._low, self._high = min(self._low, float(finite.min())), max(self._high, float(finite.max()))
        self._add_moments(finite)
        self._keep(finite)

    def _add_moments(self, finite: NDArray[Any]) -> None:
        """Chan, Golub and LeVeque: Updating formulae and a pairwise algorithm for computing sample variances."""
        with np.errstate(over="ignore", invalid="ignore"):
            count = len(finite)
            total = self._finite + count
            mean = float(finite.mean())
            squares = float(np.square(finite - mean).sum())
            difference = mean - self._mean
            self._squares += squares + float(np.square(difference)) * self._finite * count / total
            self._mean += difference * count / total
            self._finite = total

    def _keep(self, finite: NDArray[Any]) -> None:
        keys = self._random.random(len(finite))
        if len(self._kept) >= KEPT:
            is_chosen = keys < self._keys.max()
            finite, keys = finite[is_chosen], keys[is_chosen]
        self._kept, self._keys = np.concatenate([self._kept, finite]), np.concatenate([self._keys, keys])
        if len(self._kept) > KEPT:
            smallest = np.argpartition(self._keys, KEPT)[:KEPT]
            self._kept, self._keys = self._kept[smallest], self._keys[smallest]

    def result(self) -> NumberStatistics:
        sample = np.sort(self._kept)
        has_values = bool(self._finite)
        with np.errstate(over="ignore", invalid="ignore"):
            quantiles = tuple(np.quantile(sample, QUANTILES).tolist()) if has_values else ()
            deviation = math.sqrt(self._squares / self._finite) if has_values else None
        return NumberStatistics(
            count=self._count,
            nans=self._nans,
            infinities=self._infinities,
            zeros=self._zeros,
            minimum=self._low if has_values else None,
            maximum=self._high if has_values else None,
            mean=self._mean if has_values else None,
            deviation=deviation,
            quantiles=quantiles,
            kept=sample,
        )


def edges_of(*statistics: NumberStatistics) -> NDArray[Any]:
    """Edges of one histogram of the numbers of all sides, at least one number: integers for integers.

    >>> numbers = NumberAccumulator(np.random.default_rng(0))
    >>> numbers.add(np.array([1, 2, 4]))
    >>> edges_of(numbers.result()).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """
    present = [side for side in statistics if side.minimum is not None and side.maximum is not None]
    low, high = min(side.minimum for side in present), max(side.maximum for side in present)  # type: ignore[type-var]
    assert low is not None
    assert high is not None
    most_kept = max(len(side.kept) for side in present)
    bins = int(min(_MOST_BINS, max(_LEAST_BINS, 2 * np.cbrt(most_kept))))
    is_exact = max(abs(low), abs(high)) < _EXACT_INTEGERS
    if is_exact and all((side.kept == np.floor(side.kept)).all() for side in present):
        span = high - low + 1
        smallest_width = max(1, math.ceil(span / bins))
        width = min(
            range(smallest_width, smallest_width + 8), key=lambda width: (-span % width) / width
        )  # the last bin is as full as can be
        return low + width * np.arange(math.ceil(span / width) + 1, dtype=np.float64)
    if low == high:
        return np.array([low, high])
    halves = np.linspace(low / 2, high / 2, bins + 1)  # the range itself may overflow
    return np.unique((2 * halves).clip(low, high))


def histogram(kept: NDArray[Any], edges: NDArray[Any]) -> Histogram:
    """The numbers of sorted values between edges that enclose them all."""
    positions = np.searchsorted(kept, edges[1:-1], side="left")
    counts = np.diff(np.concatenate([[0], positions, [len(kept)]]))
    integers = bool((edges == np.floor(edges)).all() and len(kept) and (kept == np.floor(kept)).all())
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), integers)
