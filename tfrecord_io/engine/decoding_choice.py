"""Choose by measurement whether the columns of a filter are decoded before the others."""

from __future__ import annotations

from dataclasses import dataclass

_LEAST_BYTES = 1 << 19  # decoded in one go before anything is tried
_FIRST_BYTES = 1 << 20  # of the first attempt
_HOPELESS = 3  # times as long as in one go: the first attempt, which takes longest, is not repeated soon
_TRIED_SHARE = 0.05  # of the time, after the second attempt
_CLEARLY_TRIED_SHARE = 0.02  # the same where one way takes far longer
_CLEARLY = 0.75  # of the time of the other way
_MANY = 0.5  # share of the bytes in records that pass from which on two steps hardly pay
_GAIN = 0.95  # the time that decoding in two steps may take at most, in comparison
_KEPT = 0.7  # of the weight of earlier measurements, after each


@dataclass(slots=True)
class _Rate:
    """An amount for each byte, the last measurements counting most."""

    amount: float = 0.0
    size: float = 0.0

    @property
    def value(self) -> float | None:
        return self.amount / self.size if self.size else None

    def add(self, amount: float, size: int) -> None:
        if size:
            self.amount, self.size = _KEPT * self.amount + amount, _KEPT * self.size + size


class DecodingChoice:
    """Which way of decoding is faster for the next records of a read, by those decoded so far.

    All columns of all records are decoded in one go, or the columns of the filter first and then all columns of the
    records that pass. The way changes no result. Decoders on several threads share it: what one thread overwrites of
    another is a measurement.

    Attributes
    ----------
    fixed : bool or None
        Always or never decode in two steps; None: as measured.
    """

    def __init__(self, fixed: bool | None = None) -> None:
        self.fixed = fixed
        self._whole, self._selection, self._filter, self._passing = _Rate(), _Rate(), _Rate(), _Rate()
        self._share = _Rate()  # of the bytes, in records that pass
        self._seconds = self._tried_seconds = 0.0
        self._bytes = self._attempts = 0

    @property
    def in_two_steps(self) -> bool:
        """Whether two steps take less time."""
        if self.fixed is not None:
            return self.fixed
        return self._filter.value is not None and 0 < self._ratio() < _GAIN

    @property
    def share(self) -> float:
        """The share of the bytes that are expected in records that pass; 1 if unknown."""
        return 1.0 if self._share.value is None else min(1.0, self._share.value)

    def next(self, available: int) -> tuple[bool, int | None]:
        """Whether to decode the next of `available` bytes in two steps, and at most how many of them; None: all."""
        best = self.in_two_steps
        if self.fixed is not None or available < _FIRST_BYTES:
            return best, None
        if self._bytes < _LEAST_BYTES:
            return False, _LEAST_BYTES
        if self._attempts == 0:
            return True, _FIRST_BYTES
        hardly_pays = self.share >= _MANY and not best
        if self._attempts == 1 and self._ratio() < _HOPELESS and not hardly_pays:
            return True, None
        is_clear = hardly_pays or not _CLEARLY < self._ratio() < 1 / _CLEARLY
        tries = self._tried_seconds < (_CLEARLY_TRIED_SHARE if is_clear else _TRIED_SHARE) * self._seconds
        return best != tries, _FIRST_BYTES if tries else None

    def _ratio(self) -> float:
        """How long two steps take, in comparison with one go; 0 if that is unknown."""
        whole, first, share = self._whole.value, self._filter.value, self._share.value
        if whole is None or first is None or share is None:
            return 0.0
        second = whole if self._passing.value is None else self._passing.value
        whole += self._selection.value or 0.0
        return (first + share * second) / whole if whole else 1.0

    def note_whole(self, size: int, seconds: float) -> None:
        """Count records that were decoded in one go."""
        self._count(size, seconds, tried=self.in_two_steps)
        self._whole.add(seconds, size)

    def note_selection(self, size: int, seconds: float) -> None:
        """Count how long it took to copy the rows that pass, of records that were all decoded in one go."""
        self._selection.add(seconds, size)

    def note_two_steps(self, size: int, seconds: float, passing: int, passing_seconds: float) -> None:
        """Count records that were decoded in two steps, the second step of which was that of `passing` bytes."""
        self._count(size, seconds + passing_seconds, tried=not self.in_two_steps)
        if self._attempts == 1 and size:
            self._filter, self._passing = _Rate(), _Rate()  # the first attempt was slow
        self._attempts += size > 0
        self._filter.add(seconds, size)
        self._passing.add(passing_seconds, passing)
        self._share.add(passing, size)

    def _count(self, size: int, seconds: float, *, tried: bool) -> None:
        self._bytes += size
        self._seconds += seconds
        if tried:
            self._tried_seconds += seconds
