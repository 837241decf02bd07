"""The sequence of choices of a mixture: which part each row is taken from, by weights and a seed alone.

As the seed determines the sequence, a position in it is enough to go on from there, and workers share the sequence as
they share the rows of files.

Tests: tests/rows/training/test_mixture_choices.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tfrecord_io.bytes import Array
from tfrecord_io.rows.training.shuffle_buffer import Purpose, random_stream, stable_argsort
from tfrecord_io.typing import MixStop

_FIRST_COUNTED, _COUNTED = 1 << 10, 1 << 20  # choices at a time


class Choices:
    """Sequence of choices that a seed makes, one for each row of a mixture; some workers have sequences of their own.

    A choice is a part, or in a balanced mixture a group of `Classes`; `stop` says where an epoch ends.
    """

    def __init__(self, weights: Sequence[float], seed: int, stop: MixStop, worker: int = 0) -> None:
        self.count, self.stop = len(weights), stop
        self._bounds = np.cumsum(weights)[:-1]
        self._seed = [seed, worker, Purpose.CHOICES]

    def stream(self, begin: int) -> np.random.Generator:
        """Random numbers from position `begin` on, for `datasets`."""
        return random_stream(*self._seed, begin=begin)

    def datasets(self, numbers: Array) -> Array:
        """Choices that random numbers make."""
        return self._bounds.searchsorted(numbers, side="right")

    def blocks(self, begin: int = 0, end: int | None = None) -> Iterator[Array]:
        """Choices at the positions [begin, end), a block at a time."""
        stream, at, size = self.stream(begin), begin, _FIRST_COUNTED
        while end is None or at < end:
            size = size if end is None else min(size, end - at)
            yield self.datasets(stream.random(size))
            at, size = at + size, min(2 * size, _COUNTED)

    def counts(self, end: int) -> Array:
        """Number of times each choice is made before a position."""
        counts = np.zeros(self.count, np.int64)
        for block in self.blocks(0, end):
            counts += np.bincount(block, minlength=self.count)
        return counts

    def draw(self, rows: Sequence[int], begin: int = 0, end: int | None = None) -> Iterator[tuple[Array, Array]]:
        """Choices from a position on, a block at a time, each with its ordinal: how often it was made before.

        `rows`: number of rows of each choice. The epoch ends by `stop`; a choice without rows is complete from the
        beginning (see `refuse_empty`).
        """
        sizes, before = np.array(rows, np.int64), self.counts(begin)
        for block in self.blocks(begin, end):
            if self.stop == "all" and (before >= sizes).all():
                return
            order = stable_argsort(block, self.count)
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
        """Number of rows of an epoch, by the number of rows of each choice; TypeError if the epoch never ends."""
        self.refuse_empty(rows)
        return self.worker_length(rows)

    def worker_length(self, rows: Sequence[int]) -> int:
        """Number of rows of a worker, which may have no rows of some choices; TypeError if the epoch never ends."""
        self.refuse_endless()
        return sum(len(block) for block, _ in self.draw(rows))

    def refuse_endless(self) -> None:
        """Raise TypeError if no epoch ends."""
        if self.stop == "never":
            raise TypeError('the number of rows is unknown: stop="never" has no end')

    def refuse_empty(self, rows: Sequence[int]) -> None:
        """Raise ValueError for a part without rows, unless ``stop="first"`` ends the epoch there."""
        if self.stop != "first" and 0 in rows:
            raise ValueError(f"stop={self.stop!r}: dataset {list(rows).index(0)} of the mixture has no rows")
