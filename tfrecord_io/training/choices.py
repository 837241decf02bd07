"""What each row of a mixture is drawn from: a sequence of choices, one for each row.

The sequence is the order of an epoch, and a seed alone determines it: the n-th row of the sequence that chooses a part
is the n-th row of that part. So the position in the sequence is all that has to be known to go on from it, and workers
share the sequence as they share the rows of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.training.shuffle_buffer import sorting
from tfrecord_io.typing import MixStop

_CHOICES = 2  # the purpose of a stream of random numbers; `shuffle_buffer` has others
_FIRST_COUNTED, _COUNTED = 1 << 10, 1 << 20  # choices at a time


class Choices:
    """What each row of a mixture is drawn from: the sequence of a seed, of one worker where each has its own.

    Parameters
    ----------
    weights : sequence of float
        Of each choice: the parts, or else the groups of `Classes`.
    seed : int
    stop : {"first", "all", "never"}
        Where an epoch ends.
    worker : int, default 0
    """

    def __init__(self, weights: Sequence[float], seed: int, stop: MixStop, worker: int = 0) -> None:
        self.count, self.stop = len(weights), stop
        self._bounds = np.cumsum(weights)[:-1]
        self._seed = [seed, worker, _CHOICES]

    def stream(self, begin: int) -> np.random.Generator:
        """The random numbers from position `begin` on; see `datasets`."""
        bits = np.random.PCG64(np.random.SeedSequence(self._seed))
        bits.advance(begin)
        return np.random.Generator(bits)

    def datasets(self, numbers: Array) -> Array:
        """The choices that random numbers make."""
        return self._bounds.searchsorted(numbers, side="right")

    def blocks(self, begin: int = 0, end: int | None = None) -> Iterator[Array]:
        """The choices at the positions [begin, end)."""
        stream, at, size = self.stream(begin), begin, _FIRST_COUNTED
        while end is None or at < end:
            size = size if end is None else min(size, end - at)
            yield self.datasets(stream.random(size))
            at, size = at + size, min(2 * size, _COUNTED)

    def counts(self, end: int) -> Array:
        """How often each choice is made before a position."""
        counts = np.zeros(self.count, np.int64)
        for block in self.blocks(0, end):
            counts += np.bincount(block, minlength=self.count)
        return counts

    def drawn(self, rows: Sequence[int], begin: int = 0, end: int | None = None) -> Iterator[tuple[Array, Array]]:
        """The choices from a position on, each of so many rows, and how often it was made before; until the epoch ends.

        A choice of no rows is complete from the beginning; see `refuse_empty`.
        """
        sizes, before = np.array(rows, np.int64), self.counts(begin)
        for block in self.blocks(begin, end):
            if self.stop == "all" and (before >= sizes).all():
                return
            order = sorting(block, self.count)
            counts = np.bincount(block, minlength=self.count)
            ordinals = np.empty(len(block), np.int64)
            ordinals[order] = np.arange(len(block)) - np.repeat(np.cumsum(counts) - counts - before, counts)
            before += counts
            lacking = ordinals >= sizes[block] if self.stop == "first" else np.zeros(1, np.bool_)
            size = int(lacking.argmax()) if lacking.any() else len(block)
            if self.stop == "all" and (before >= sizes).all():
                size = int(np.flatnonzero(ordinals == sizes[block] - 1)[-1]) + 1
            yield block[:size], ordinals[:size]
            if size < len(block):
                return

    def length(self, rows: Sequence[int]) -> int:
        """The number of rows of an epoch, if the choices have so many; TypeError if it never ends."""
        refuse_empty(rows, self.stop)
        return self.own_length(rows)

    def own_length(self, rows: Sequence[int]) -> int:
        """That of a worker, which has no rows of some choices, perhaps."""
        self.refuse_endless()
        return sum(len(block) for block, _ in self.drawn(rows))

    def refuse_endless(self) -> None:
        """Raise TypeError if no epoch ends."""
        if self.stop == "never":
            raise TypeError('the number of rows is unknown: stop="never" has no end')


def refuse_empty(rows: Sequence[int], stop: str) -> None:
    """Raise ValueError for a part without rows, from which none can be drawn again."""
    if stop != "first" and 0 in rows:
        raise ValueError(f"stop={stop!r}: dataset {list(rows).index(0)} of the mixture has no rows")
