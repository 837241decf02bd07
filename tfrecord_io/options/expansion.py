"""The limit `Limits.expansion_bytes` of the memory that few bytes of a file may become.

A few bytes can state large values: a tensor of one repeated value, a type whose nulls are large, a name that makes a
column. What is made of them has a budget: `Limits.expansion_bytes` bytes, and `RATIO` bytes for each byte read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tfrecord_io.errors import say
from tfrecord_io.options.checked_options import MAX_EXPANSION
from tfrecord_io.remedies import Written

RATIO = 512  # plain values take at most 8 bytes for each that is read; sparse columns and tensors may take more
BYTES_PER_CELL = 8  # of a column whose type is not known yet


class Expansion:
    """What the rows that are held at a time may still take."""

    def __init__(self, limit: int = MAX_EXPANSION, bytes_read: int = 0) -> None:
        self.limit = limit  # the option `Limits.expansion_bytes`
        self.room = limit  # bytes left; never negative
        self.add(bytes_read)

    def add(self, bytes_read: int) -> None:
        """Extend the room by what these bytes account for."""
        self.room += RATIO * bytes_read

    def take(self, size: int) -> bool:
        """Whether `size` bytes fit; they then count as taken."""
        if size > self.room:
            return False
        self.room -= size
        return True

    def excess(self, reason: str) -> str:
        """`reason`, which states a size that does not fit, with the limit."""
        return reason & say(
            "{limits.expansion_bytes=} leaves room for {}", self.room, expansion_bytes=Written(self.limit)
        )

    def advice(self, size: int) -> str:
        """What to do if `size` bytes do not fit but are intended."""
        return say(
            "if this is intended, pass {limits.expansion_bytes=} or more",
            expansion_bytes=Written(self.limit + size - self.room),
        )

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Make this the `current` one."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_current: ContextVar[Expansion | None] = ContextVar("expansion", default=None)


def current() -> Expansion:
    """The one that the values being decoded count towards."""
    return _current.get() or Expansion()
