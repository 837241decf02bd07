"""Which record goes into which shard.

A dealer is told the sizes of the next records and gives runs of them, each with its shard. Where the number of rows is known beforehand,
shards are parts of equal length; else, with a number of shards, record ``i`` goes to shard ``i % shards``, as in TensorFlow's
``Dataset.shard``; with a size, a shard is closed when the next record would not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np


class ShardAssigner(Protocol):
    """Deals records out, in their order.

    Attributes
    ----------
    current : int
        Shards below this one get no more records.
    """

    current: int

    def deal(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        """Give (shard, which of the next records), for records of these framed sizes."""
        ...


class Contiguous:
    """Shards of rows that follow each other, as equal in number as can be.

    >>> [list(Parts(5, 2).deal(np.ones(n))) for n in (5,)]
    [[(0, slice(0, 2, None)), (1, slice(2, 5, None))]]
    """

    def __init__(self, rows: int, shards: int) -> None:
        self.current = 0
        self._row = 0
        self._ends = [rows * (i + 1) // shards for i in range(shards)]

    def deal(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        at, last = 0, len(self._ends) - 1
        while at < len(sizes):
            while self.current < last and self._row >= self._ends[self.current]:
                self.current += 1
            left = len(sizes) - at
            taken = left if self.current == last else min(left, self._ends[self.current] - self._row)
            yield self.current, slice(at, at + taken)
            at += taken
            self._row += taken


class RoundRobin:
    """One record to each shard, and again.

    >>> list(InTurn(2).deal(np.ones(3)))
    [(0, slice(0, None, 2)), (1, slice(1, None, 2))]
    """

    def __init__(self, shards: int) -> None:
        self.current = 0
        self._row = 0
        self._shards = shards

    def deal(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        for at in range(min(self._shards, len(sizes))):
            yield (self._row + at) % self._shards, slice(at, None, self._shards)
        self._row += len(sizes)


class BySize:
    """A new shard before the record that would bring one above `most` bytes; one that is larger itself has its own.

    Parameters
    ----------
    most : int
        Framed bytes, uncompressed.
    extra : int
        Bytes that are added to the first record of each shard.

    Examples
    --------
    >>> list(BySize(10).deal(np.array([4, 4, 4, 20])))
    [(0, slice(0, 2, None)), (1, slice(2, 3, None)), (2, slice(3, 4, None))]
    """

    def __init__(self, most: int, extra: int = 0) -> None:
        self.current = 0
        self._most, self.extra = most, extra
        self._used = 0

    def deal(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        ends = np.cumsum(sizes)
        at = 0
        while at < len(sizes):
            begin = int(ends[at - 1]) if at else 0
            room = self._most - (self._used or self.extra)
            taken = int(np.searchsorted(ends, begin + room, side="right")) - at
            if taken <= 0 and self._used:
                self.current, self._used = self.current + 1, 0
                continue
            end = at + max(taken, 1)
            yield self.current, slice(at, end)
            self._used = (self._used or self.extra) + int(ends[end - 1]) - begin
            at = end
