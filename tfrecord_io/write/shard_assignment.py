"""Which record goes to which shard.

An assigner takes the sizes of the next records and returns runs of them, each with its shard. With a number of shards
these are contiguous parts of equal length or, on request, record ``i`` goes to shard ``i % shards``, as in TensorFlow's
``Dataset.shard``; with a size, a new shard begins when the next record would not fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np


class ShardAssigner(ABC):
    """Assigns records to shards, in their order."""

    current = 0  # shards below this one receive no more records

    @abstractmethod
    def assign(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        """Yield (shard, slice of the next records), for records with these frame sizes."""


class Contiguous(ShardAssigner):
    """Contiguous parts of the rows, as equal in length as possible.

    >>> list(Contiguous(5, 2).assign(np.ones(5)))
    [(0, slice(0, 2, None)), (1, slice(2, 5, None))]
    """

    def __init__(self, rows: int, shards: int) -> None:
        self._row = 0
        self._ends = [rows * (i + 1) // shards for i in range(shards)]

    @property
    def ranges(self) -> list[range]:
        """The rows of each shard."""
        return [range(begin, end) for begin, end in pairwise([0, *self._ends])]

    def assign(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        begin, last = 0, len(self._ends) - 1
        while begin < len(sizes):
            while self.current < last and self._row >= self._ends[self.current]:
                self.current += 1
            count = len(sizes) - begin
            if self.current < last:
                count = min(count, self._ends[self.current] - self._row)
            yield self.current, slice(begin, begin + count)
            begin += count
            self._row += count


class RoundRobin(ShardAssigner):
    """One record per shard in turn.

    >>> list(RoundRobin(2).assign(np.ones(3)))
    [(0, slice(0, None, 2)), (1, slice(1, None, 2))]
    """

    def __init__(self, shards: int, row: int = 0) -> None:
        self._row = row
        self._shards = shards

    def assign(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        for begin in range(min(self._shards, len(sizes))):
            yield (self._row + begin) % self._shards, slice(begin, None, self._shards)
        self._row += len(sizes)


class BySize(ShardAssigner):
    """A new shard before the record that would exceed `max_bytes`; a larger record gets a shard of its own.

    Sizes are framed and uncompressed; `prefix_bytes` are added to the first record of each shard.

    >>> list(BySize(10).assign(np.array([4, 4, 4, 20])))
    [(0, slice(0, 2, None)), (1, slice(2, 3, None)), (2, slice(3, 4, None))]
    """

    def __init__(self, max_bytes: int, prefix_bytes: int = 0) -> None:
        self._max_bytes, self._prefix_bytes = max_bytes, prefix_bytes
        self._used = 0  # bytes of the current shard

    def assign(self, sizes: Any) -> Iterator[tuple[int, slice]]:
        ends = np.cumsum(sizes)
        begin = 0
        while begin < len(sizes):
            used = self._used or self._prefix_bytes
            before = int(ends[begin - 1]) if begin else 0
            end = int(np.searchsorted(ends, before + self._max_bytes - used, side="right"))
            if end <= begin and self._used:
                self.current, self._used = self.current + 1, 0
                continue
            end = max(end, begin + 1)
            yield self.current, slice(begin, end)
            self._used = used + int(ends[end - 1]) - before
            begin = end
