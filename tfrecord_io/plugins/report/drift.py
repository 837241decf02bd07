"""Drift between two datasets, feature by feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tfrecord_io.apps.views import FeatureStatistics, NumberStatistics, convert_to_one_unit, edges_of, histogram
from tfrecord_io.kit import Array, json_value, printable

BINS = 20  # of the histograms that are compared
NEW_VALUES = 10
NOTABLE = 0.1  # distances, and differences of presence, from here on are marked


@dataclass(frozen=True, slots=True)
class FeatureDrift:
    """Drift of one feature between dataset `a` and dataset `b`.

    Attributes
    ----------
    types : tuple
        The types in `a` and `b`; None where the feature is missing.
    presence : tuple of float or None
        Shares of the records that have the feature.
    means : tuple of float or None
    measure : str or None
        "L-infinity" or "Jensen-Shannon"; None if the values cannot be compared.
    distance : float or None
        From 0, equal, to 1. "L-infinity": the largest difference between the shares of a value. "Jensen-Shannon": the
        divergence, with logarithms to base 2, of histograms with `BINS` bins of the same width, one for NaN and one for
        infinities.
    new_values, lost_values : tuple
        Values that only `b`, or only `a`, has: the most frequent ones, `NEW_VALUES` at most.
    new_count, lost_count : int
        The number of all of them.
    """

    name: str
    types: tuple[str | None, str | None]
    presence: tuple[float | None, float | None]
    means: tuple[float | None, float | None]
    measure: str | None = None
    distance: float | None = None
    new_values: tuple[Any, ...] = ()
    new_count: int = 0
    lost_values: tuple[Any, ...] = ()
    lost_count: int = 0

    @property
    def is_notable(self) -> bool:
        """True if the feature is missing on one side, has another type, or differs by `NOTABLE` or more."""
        return self._has_other_type or self._difference >= NOTABLE

    def exceeds(self, limit: float) -> bool:
        """True if the feature is missing on one side, has another type, or differs by more than a limit.

        What differs is the distance, or the share of records that have the feature.
        """
        return self._has_other_type or self._difference > limit

    @property
    def text(self) -> str:
        """A line about the difference: the types if they differ, else distance and presence."""
        if self._has_other_type:
            return f"{printable(self.name)}: type {' → '.join(type_ or 'none' for type_ in self.types)}"
        shares = " → ".join("none" if share is None else f"{share:.3f}" for share in self.presence)
        measure = "" if self.distance is None else f"{self.measure} {self.distance:.3f}, "
        return f"{printable(self.name)}: {measure}presence {shares}"

    @property
    def _has_other_type(self) -> bool:
        return None in self.types or self.types[0] != self.types[1]

    @property
    def _difference(self) -> float:
        """The distance, or the difference of presence, if that is larger."""
        shares = [share or 0.0 for share in self.presence]
        return max(abs(shares[0] - shares[1]), self.distance or 0.0)

    def to_dict(self) -> dict[str, Any]:
        return {name: json_value(getattr(self, name)) for name in self.__slots__}


def drifts(a: Sequence[FeatureStatistics], b: Sequence[FeatureStatistics]) -> tuple[FeatureDrift, ...]:
    """The drift of every feature: features of one side alone first, then in order of descending difference."""
    left, right = ({feature.name: feature for feature in side} for side in (a, b))
    feature_drifts = [drift(left.get(name), right.get(name)) for name in dict.fromkeys([*left, *right])]
    return tuple(
        sorted(
            feature_drifts, key=lambda drift: (None not in drift.types, not drift.is_notable, -(drift.distance or 0.0))
        )
    )


def drift(a: FeatureStatistics | None, b: FeatureStatistics | None) -> FeatureDrift:
    """The drift of a feature, of which one side may be missing."""
    sides = (a, b)
    name = next(side.name for side in sides if side is not None)
    types = tuple(None if side is None else side.summary.type for side in sides)
    presence = tuple(None if side is None else side.presence for side in sides)
    means = tuple(
        None if side is None or side.is_temporal or side.numbers is None else side.numbers.mean for side in sides
    )
    result = FeatureDrift(name, types, presence, means)  # type: ignore[arg-type]
    if a is None or b is None:
        return result
    if a.is_categorical and b.is_categorical and a.counts is not None and b.counts is not None:
        left, right = a.counts.counts, b.counts.counts
        if not (a.counts.exact and b.counts.exact):
            return result
        result = replace(result, measure="L-infinity", distance=l_infinity(left, right))
        new, lost = _only_in_first(right, left), _only_in_first(left, right)
        result = replace(result, new_values=tuple(new[:NEW_VALUES]), new_count=len(new))
        return replace(result, lost_values=tuple(lost[:NEW_VALUES]), lost_count=len(lost))
    numbers = [side for side in convert_to_one_unit((a, b)) or () if side is not None and side.count]
    if len(numbers) < 2:
        return result
    return replace(result, measure="Jensen-Shannon", distance=jensen_shannon(*numbers))


def _only_in_first(first: dict[Any, int], second: dict[Any, int]) -> list[Any]:
    """Values of the first counts that the second lack, most frequent first."""
    return [value for value, _ in sorted(first.items(), key=lambda item: -item[1]) if value not in second]


def l_infinity(a: dict[Any, int], b: dict[Any, int]) -> float:
    """The largest difference between the shares of a value.

    >>> l_infinity({"x": 1, "y": 1}, {"x": 3, "z": 1})
    0.5
    """
    sums = sum(a.values()) or 1, sum(b.values()) or 1
    return max((abs(a.get(v, 0) / sums[0] - b.get(v, 0) / sums[1]) for v in {*a, *b}), default=0.0)


def jensen_shannon(a: NumberStatistics, b: NumberStatistics) -> float:
    """The divergence of the histograms of numbers, with bins for NaN and infinities, in bits: from 0 to 1."""
    finite = [side for side in (a, b) if len(side.kept)]
    ends = edges_of(*finite)[[0, -1]] if finite else np.zeros(2)
    edges = 2 * np.linspace(ends[0] / 2, ends[1] / 2, BINS + 1)
    shares = [_shares(side, edges) for side in (a, b)]
    middle = (shares[0] + shares[1]) / 2
    divergence = 0.0
    for share in shares:  # Kullback and Leibler's
        present = share > 0
        divergence += float((share[present] * np.log2(share[present] / middle[present])).sum())
    return min(1.0, max(0.0, divergence / 2))


def _shares(side: NumberStatistics, edges: Array) -> Array:
    """The shares of the finite values between edges, of NaN, and of infinities."""
    finite = side.count - side.nans - side.infinities
    counts = np.array(histogram(side.kept, edges).counts) * (finite / max(1, len(side.kept)))
    return np.array([*counts, side.nans, side.infinities]) / side.count
