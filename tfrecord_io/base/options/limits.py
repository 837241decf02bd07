"""Limits of users on the resources of untrusted files.

A few bytes can state large values: a tensor of one repeated value, a type whose nulls are large, a name that makes a
column. What is made of them has a budget, an `Expansion`: `Limits.expansion_bytes` bytes, and `RATIO` bytes for each
byte read.

Tests: tests/faults/test_expansion.py and tests/base/options/test_options.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from numbers import Real
from typing import Any, ClassVar, TypeVar

from tfrecord_io.base.options.options_base import INT64_MAX, MIB, check_integer
from tfrecord_io.base.options.tuned_limits import LIMITS

T = TypeVar("T")
_EXPANSION_BYTES = 256 * MIB


def _check_keywords(cls: type[T]) -> type[T]:
    """Make the error for an unknown keyword of a constructor name the one meant."""
    init, names = cls.__init__, cls.__dataclass_fields__.keys()  # type: ignore[attr-defined]

    @wraps(init)
    def check_and_set(self: T, *values: Any, **keywords: Any) -> None:
        for name in keywords.keys() - names:
            from tfrecord_io.base.options.other_names import unknown_keyword  # for mistakes only

            raise unknown_keyword(name, names, cls)
        init(self, *values, **keywords)

    cls.__init__ = check_and_set  # type: ignore[assignment]
    return cls


@_check_keywords
@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on what an untrusted file may use; exceeding one is an error.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2]}, "foreign.tfrecord")
    >>> limits = tfr.Limits(record_bytes=1 << 20, features=100, decompression_ratio=100)
    >>> tfr.read_table(tfr.dataset("foreign.tfrecord", limits=limits))["x"].to_pylist()
    [1, 2]

    Parameters
    ----------
    record_bytes : int, default 2**31 - 1
        Bytes of a record.
    features : int, default 100,000
        Distinct names of features; in files of other formats, columns and fields.
    expansion_bytes : int, default 256 MiB
        Bytes of memory that data may take beyond 512 times the bytes it is read from: the rows of a batch, or all rows
        if they are read at once. A few bytes can state tensors of a repeated value, wide types or many columns; the
        batches of a stream end earlier. Types in ``schema=`` do not count. Arrays that are padded to the longest list,
        or have rows of missing lists, may take as much beyond their values.
    decompression_ratio : float, optional
        How many times the bytes read of a compressed file it may decompress to, beyond 1 MiB: a CompressionError after
        the records before. None: no limit. Text that repeats may reach 1,000.
    """

    DEFAULT: ClassVar[Limits]  # where a call states none

    record_bytes: int = LIMITS.MAX_RECORD_BYTES
    features: int = 100_000
    expansion_bytes: int = _EXPANSION_BYTES
    decompression_ratio: float | None = None

    def __post_init__(self) -> None:
        limits = {"record_bytes": LIMITS.MAX_RECORD_BYTES, "features": INT64_MAX, "expansion_bytes": INT64_MAX}
        for name, maximum in limits.items():
            object.__setattr__(self, name, check_integer(name, getattr(self, name), 1, maximum))
        ratio = self.decompression_ratio
        if isinstance(ratio, bool) or not isinstance(ratio, Real | None):
            raise TypeError(f"decompression_ratio={ratio!r}: expected a number or None")
        if ratio is not None and not float(ratio) >= 1:
            raise ValueError(f"decompression_ratio={ratio!r}: expected at least 1")


Limits.DEFAULT = Limits()


class Expansion:
    """The budget for memory of rows held at a time."""

    DEFAULT_BYTES: ClassVar = _EXPANSION_BYTES
    RATIO: ClassVar = 512  # plain values take at most 8 bytes for each that is read; sparse columns, tensors may more
    BYTES_PER_CELL: ClassVar = 8  # of a column whose type is not known yet

    def __init__(self, limit: int = _EXPANSION_BYTES, bytes_read: int = 0) -> None:
        self.limit = limit  # the option `Limits.expansion_bytes`
        self.room = limit  # bytes left; never negative
        self.add(bytes_read)

    def add(self, bytes_read: int) -> None:
        """Extend the room by what these bytes account for."""
        self.room += self.RATIO * bytes_read

    def take(self, size: int) -> bool:
        """True if `size` bytes fit; they then count as taken."""
        if size > self.room:
            return False
        self.room -= size
        return True

    def excess(self, reason: str) -> str:
        """`reason`, which states a size that does not fit, with the limit."""
        return f"{reason}; tfr.dataset(…, limits=tfr.Limits(expansion_bytes={self.limit})) leaves room for {self.room}"

    def advice(self, size: int) -> str:
        """Advice for a caller who intends `size` bytes that do not fit."""
        return (
            "if this is intended, pass tfr.dataset(…, limits=tfr.Limits(expansion_bytes="
            f"{self.limit + size - self.room})) or more"
        )

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Make this the `current` one."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @staticmethod
    def current() -> Expansion:
        """The one that the values being decoded count towards."""
        return _current.get() or Expansion()


_current: ContextVar[Expansion | None] = ContextVar("expansion", default=None)
