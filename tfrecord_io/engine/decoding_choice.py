"""Choose by measurement whether the columns of a filter are decoded before the others."""

from __future__ import annotations

from dataclasses import dataclass

_LEAST_BYTES = 1 << 19  # decoded in one go before anything is tried
_TRIED_BYTES = 1 << 20
_TRIED_SHARE = 0.02  # of the time, after the first attempt
_GAIN = 0.95  # the time that decoding in two steps may take at most, in comparison
_WEIGHT = 0.3  # of the last measurement


@dataclass(slots=True)
class _Rate:
    """Seconds for each byte, the last measurements counting most."""

    value: float | None = None

    def add(self, seconds: float, size: int) -> None:
        if size:
            rate = seconds / size
            self.value = rate if self.value is None else self.value + _WEIGHT * (rate - self.value)


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
        self._whole, self._filter, self._passing = _Rate(), _Rate(), _Rate()
        self._share = _Rate()  # of the bytes, in records that pass
        self._seconds = self._tried_seconds = 0.0
        self._bytes = 0

    @property
    def in_two_steps(self) -> bool:
        """Whether two steps take less time."""
        if self.fixed is not None:
            return self.fixed
        whole, first, share = self._whole.value, self._filter.value, self._share.value
        if whole is None or first is None or share is None:
            return False
        second = whole if self._passing.value is None else self._passing.value
        return first + share * second < _GAIN * whole

    @property
    def share(self) -> float:
        """The share of the bytes that are expected in records that pass; 1 if unknown."""
        return 1.0 if self._share.value is None else min(1.0, self._share.value)

    def next(self) -> tuple[bool, int | None]:
        """Whether to decode the next records in two steps, and at most how many bytes of them; None: all."""
        best = self.in_two_steps
        if self.fixed is not None or self._bytes < _LEAST_BYTES:
            return best, None
        untried = self._filter.value is None
        if untried or self._tried_seconds < _TRIED_SHARE * self._seconds:
            return not best, _TRIED_BYTES
        return best, None

    def note_whole(self, size: int, seconds: float) -> None:
        """Count records that were decoded in one go."""
        self._count(size, seconds, tried=self.in_two_steps)
        self._whole.add(seconds, size)

    def note_two_steps(self, size: int, seconds: float, passing: int, passing_seconds: float) -> None:
        """Count records that were decoded in two steps, the second step of which was that of `passing` bytes."""
        self._count(size, seconds + passing_seconds, tried=not self.in_two_steps)
        self._filter.add(seconds, size)
        self._passing.add(passing_seconds, passing)
        self._share.add(passing, size)

    def _count(self, size: int, seconds: float, *, tried: bool) -> None:
        self._bytes += size
        self._seconds += seconds
        if tried:
            self._tried_seconds += seconds
