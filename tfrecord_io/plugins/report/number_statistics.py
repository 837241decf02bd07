"""Statistics of numbers in one pass: exact moments, and a random sample for quantiles and histograms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import MIB, byte_size, check_integer, counted
from tfrecord_io.bytes import Array
from tfrecord_io.columns import selectable
from tfrecord_io.read import Scan, count_scan, open_scan

KEPT = 32_768  # values that are kept of more: a random sample
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_MOST_BINS, _LEAST_BINS = 40, 8
_EXACT_INTEGERS = 2.0**53
SAMPLE_RECORDS = 50_000
SAMPLE_BYTES = 64 * MIB
_MOST_PIECES = 256  # of a dataset, to choose from
_LEAST_PIECES = 32  # to read, or all if fewer
_PIECE_BYTES = 64 << 10  # pieces are not smaller


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
    kept: Array = field(repr=False, compare=False)

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

    def add(self, values: Array) -> None:
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

    def _add_moments(self, finite: Array) -> None:
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

    def _keep(self, finite: Array) -> None:
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


def edges_of(*statistics: NumberStatistics) -> Array:
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


def histogram(kept: Array, edges: Array) -> Histogram:
    """The numbers of sorted values between edges that enclose them all."""
    positions = np.searchsorted(kept, edges[1:-1], side="left")
    counts = np.diff(np.concatenate([[0], positions, [len(kept)]]))
    integers = bool((edges == np.floor(edges)).all() and len(kept) and (kept == np.floor(kept)).all())
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), integers)


@dataclass(frozen=True, slots=True)
class SampleLimits:
    """Limits of a sample: a largest number of records, and roughly of uncompressed bytes."""

    records: int = SAMPLE_RECORDS
    bytes: int = SAMPLE_BYTES
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("sample_records", self.records, 1)
        check_integer("sample_bytes", self.bytes, 1)
        check_integer("seed", self.seed, 0)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which records were examined.

    Attributes
    ----------
    records, bytes : int
        Number of records examined, and their uncompressed bytes.
    total : int or None
        Number of all records, if it is known without reading them all.
    complete : bool
        Whether these are all records.
    text : str
        The same in a sentence.
    skipped : int
        Number of damaged regions that were left out, with ``on_error="skip"``.
    """

    records: int
    bytes: int
    total: int | None
    complete: bool
    text: str
    skipped: int = 0


class SampleReader:
    """Iterates over the batches of a sample; afterwards `sampling` says what it was."""

    def __init__(self, scan: Scan, limits: SampleLimits) -> None:
        self._scan = scan
        self._limits = limits
        self._total = self._known_total()
        self._pieces, self._all_pieces = self._choose_pieces()
        self._records = self._bytes = self._skipped = 0
        self._ended_early = False

    @property
    def expected(self) -> int:
        """The number of records to read, at most."""
        return self._limits.records if self._total is None else min(self._total, self._limits.records)

    def _known_total(self) -> int | None:
        """The number of rows, where the manifest states it, or the files are small enough to be counted."""
        scan = self._scan
        if self._scan.is_indivisible:
            return None
        if scan.rows is not None:
            return scan.rows
        is_small = scan.bytes is not None and scan.bytes <= self._limits.bytes
        return count_scan(scan) if is_small and scan.options.damage.counts_all else None

    def _choose_pieces(self) -> tuple[list[Scan], int]:
        """The pieces to read, in order, and the number of all."""
        scan, limits = self._scan, self._limits
        has_few = self._total is not None and self._total <= limits.records
        is_small = scan.bytes is not None and scan.bytes <= limits.bytes
        if self._scan.is_indivisible or scan.bytes is None or (has_few and is_small):
            return [scan], 1
        count = min(_MOST_PIECES, -(-scan.bytes // _PIECE_BYTES))
        pieces = scan.split(max(1, count), 1)
        random = np.random.default_rng(limits.seed)
        needed = max(_LEAST_PIECES, -(-limits.bytes * len(pieces) // scan.bytes))
        chosen_numbers = sorted(random.permutation(len(pieces))[:needed].tolist())
        return [pieces[i] for i in chosen_numbers], len(pieces)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        records = size = 0
        for done, piece in enumerate(self._pieces):  # later pieces may use the rest of a piece's share
            left = len(self._pieces) - done
            records = max(records, -(-(self._limits.records - self._records) // left))
            size = max(size, -(-(self._limits.bytes - self._bytes) // left))
            limited = piece.limit_rows(records + 1)  # one record more shows if the piece goes on
            rows = 0
            with open_scan(limited) as reader:
                for batch in reader:
                    rows_in_limit = batch.slice(0, records - rows)
                    rows += len(rows_in_limit)
                    self._ended_early |= len(rows_in_limit) < len(batch)
                    if len(rows_in_limit):
                        yield rows_in_limit
                    if rows >= records:
                        break
                    if reader.report.bytes >= size:
                        self._ended_early |= next(reader, None) is not None
                        break
                self._ended_early |= rows >= records and next(reader, None) is not None
                self._bytes += reader.report.bytes
                self._skipped += reader.report.skipped.total
            self._records += rows

    @property
    def sampling(self) -> Sampling:
        """The share of the dataset that has been read, after the iteration."""
        whole = not self._ended_early and len(self._pieces) == self._all_pieces
        is_complete = whole and not self._scan.is_indivisible
        total = self._records if is_complete else self._total
        return Sampling(
            self._records,
            self._bytes,
            total=total,
            complete=is_complete,
            text=self._text(is_complete),
            skipped=self._skipped,
        )

    def _text(self, is_complete: bool) -> str:
        if is_complete:
            return f"All {counted(self._records, 'record')}." if self._records else "There are no records."
        total = "" if self._total is None else f" of {self._total:,}"
        read = f"{self._records:,}{total} records" if total else counted(self._records, "record")
        selection = self._scan.selection
        if self._scan.is_indivisible:
            chosen = (("offset", selection.offset), ("limit", selection.limit))
            parts = [f"{name}={value}" for name, value in chosen if value]
            return f"{read}: a part of the data, chosen by {' and '.join(parts)}."
        if self._all_pieces == 1:
            return f"A sample: {read}, from the beginning of the data."
        size = byte_size(-(-(self._scan.bytes or 0) // self._all_pieces))
        begin = "the beginnings of " if self._ended_early else ""
        pieces = f"{begin}{len(self._pieces):,} of {self._all_pieces:,} pieces of about {size}"
        return f"A sample: {read}, from {pieces}, chosen at random (seed {self._limits.seed})."


class Reservoir:
    """Keeps a few rows of all batches, each row equally likely; `large` is the number of those that are too large."""

    def __init__(self, rows: int, random: np.random.Generator, max_bytes: int = 16 * MIB) -> None:
        self._rows, self._random, self._max_bytes = rows, random, max_bytes
        self._kept: list[tuple[float, int, pa.RecordBatch]] = []
        self._seen = 0
        self.large = 0

    def add(self, batch: pa.RecordBatch) -> None:
        keys = self._random.random(len(batch))
        for row in np.argsort(keys)[: self._rows].tolist():
            if len(self._kept) == self._rows and keys[row] >= self._kept[-1][0]:
                break
            copy = selectable(batch).take(pa.array([row]))
            if copy.nbytes > self._max_bytes:
                self.large += 1
                continue
            self._kept = sorted([*self._kept, (keys[row], self._seen + row, copy)], key=lambda kept: kept[:2])
            self._kept = self._kept[: self._rows]
        self._seen += len(batch)

    @property
    def rows(self) -> list[pa.RecordBatch]:
        """The rows kept, in the order of reading."""
        return [row for _, _, row in sorted(self._kept, key=lambda kept: kept[1])]
