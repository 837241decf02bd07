"""Ranks with loader workers that take the steps of an epoch together, as loaders of PyTorch do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import tfrecord_io as tfr

Row = Any
Rows = Callable[[dict[str, Any]], list[Row]]


class Layout:
    """Iterators of R ranks with W loader workers each; a rank takes its batches from one worker after the other."""

    def __init__(
        self, source: Any, ranks: int, workers: int, state: Any = None, epoch: int = 0, **options: Any
    ) -> None:
        self.ranks, self.workers, self._taken = ranks, workers, 0
        self.iterators: dict[tuple[int, int], tfr.typing.ArrayIterator] = {}
        for rank in range(ranks):
            seat = {"worker": (rank, ranks), "state": state}
            base = source.iter_arrays(**{**options, "state": None}, worker=(rank, ranks))
            for worker in range(workers):
                of_worker = base.begin_epoch(epoch, loader=(worker, workers), epochs=epoch + 1, **seat)
                self.iterators[rank, worker] = of_worker

    def steps(self, most: int, rows_of: Rows) -> tuple[list[list[Row]], list[dict[str, Any]]]:
        """The rows of at most so many steps of all ranks, and the states of those who had a batch in the last one."""
        steps, states = list[list[Row]](), list[dict[str, Any]]()
        for _ in range(most):
            worker = self._taken % self.workers
            self._taken += 1
            batches = [self.next(rank, worker) for rank in range(self.ranks)]
            had = [rank for rank, batch in enumerate(batches) if batch is not None]
            steps.append([row for batch in batches if batch is not None for row in rows_of(batch)])
            if had:
                states = [json.loads(json.dumps(self.iterators[rank, worker].state())) for rank in had]
        return steps, states

    def next(self, rank: int, worker: int) -> Any:
        """The next batch of a worker; None after the last one."""
        return next(self.iterators[rank, worker], None)

    def rest(self, rows_of: Rows) -> list[Row]:
        """The rows of all further batches, in any order."""
        found = list[Row]()
        for iterator in self.iterators.values():
            while (batch := next(iterator, None)) is not None:
                found += rows_of(batch)
        return found


def place_in(state: dict[str, Any]) -> Any:
    """What is the same in the states of all ranks."""
    return {name: value for name, value in state.items() if name != "marks"}
