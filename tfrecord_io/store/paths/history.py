"""When the rows of a dataset were added: runs of rows in the order of its manifest, each with the number of a commit.

By it, a reader that has read a version of the dataset finds the rows that were appended since, also after shards were
joined and rows removed. It does not depend on the files: a shard that joins those of several commits has several runs.

Tests: tests/store/paths/test_history.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

Runs = tuple[tuple[int, int], ...]
"""Commits, each with how many rows of it come next."""

_MOST_RUNS, _KEPT_RUNS = 4000, 3000  # above the first, the oldest commits become one, until so many are left


class History(NamedTuple):
    """The commits of a dataset, and the rows of each."""

    commit: int = 0  # of the last change, which a version of the dataset has
    line: str = ""  # the id of the writing since which no rows were replaced; "": that of the manifest
    oldest: int = 0  # the first commit that is still distinguished: earlier rows count as its own
    runs: Runs = ()  # of all rows; (): all were there at `oldest`

    def runs_of(self, rows: int) -> Runs:
        """The runs of all rows, of which there are so many."""
        return self.runs or merge([(self.oldest, rows)])

    def append(self, before: int, added: int, line: str) -> History:
        """The history once rows were added after `before` others; without rows it stays as it is."""
        if not added:
            return self
        commit = self.commit + 1
        return History(commit, line, self.oldest, (*self.runs_of(before), (commit, added))).shorten()

    def change(self, runs: Iterable[tuple[int, int]], line: str) -> History:
        """The history after rows were removed, or brought into another order, with the runs that are left."""
        left = merge((max(commit, self.oldest), rows) for commit, rows in runs) if self.runs else ()
        return History(self.commit + 1, line, self.oldest, left).shorten()

    def reorder(self, records: Sequence[int], order: Sequence[int]) -> History:
        """The history where files, of which these are the numbers of records, are put into another order."""
        if not self.runs:
            return self
        of_files = list(self.split(records))
        return self._replace(runs=merge(run for number in order for run in of_files[number])).shorten()

    def shorten(self) -> History:
        """The same with fewer runs, if there are too many: the oldest commits are not distinguished any more."""
        if len(self.runs) <= _MOST_RUNS:
            return self
        commits = sorted({commit for commit, _ in self.runs})
        low, high = 0, len(commits) - 1  # the first number from which on few runs are left
        while low < high:
            middle = (low + high) // 2
            if len(_forget(self.runs, commits[middle])) <= _KEPT_RUNS:
                high = middle
            else:
                low = middle + 1
        return self._replace(oldest=commits[low], runs=_forget(self.runs, commits[low]))

    def split(self, records: Sequence[int]) -> Iterator[Runs]:
        """The runs of each file, of which these are the numbers of records."""
        runs = iter(self.runs_of(sum(records)))
        commit, left = 0, 0
        for count in records:
            new_run = []
            while count:
                if not left:
                    commit, left = next(runs)
                rows = min(count, left)
                new_run.append((commit, rows))
                count, left = count - rows, left - rows
            yield tuple(new_run)

    def split_at(self, files: Sequence[tuple[int, int]], all_records: int) -> Iterator[tuple[Runs, Runs]]:
        """Split the runs at files in ascending order, given as the begin and the number of their rows.

        Yields the runs before each file, with those of its rows; at the end, the runs after them, with none.
        """
        begins, counts = [begin for begin, _ in files], [count for _, count in files]
        ends = [0, *(begin + count for begin, count in files)]
        gaps = [begin - end for begin, end in zip([*begins, all_records], ends, strict=True)]
        pieces = self.split([*chain.from_iterable(zip(gaps, [*counts, 0], strict=True))])
        return zip(pieces, pieces, strict=True)

    def added_runs(self, rows: int, since: int, until: int) -> list[tuple[int, int, int]]:
        """The commits after `since`, up to `until`, and the begin and end of each run of their rows, by commit.

        `rows` is the number of all rows.
        """
        runs = self.runs_of(rows)
        ends = accumulate(count for _, count in runs)
        found = [(commit, end - count, end) for (commit, count), end in zip(runs, ends, strict=True)]
        return sorted(run for run in found if since < run[0] <= until)


def merge(runs: Iterable[tuple[int, int]]) -> Runs:
    """Join neighbouring runs of one commit, and leave out those without rows.

    >>> merge([(1, 2), (1, 3), (2, 0), (1, 1), (3, 4)])
    ((1, 6), (3, 4))
    """
    merged: list[tuple[int, int]] = []
    for commit, rows in runs:
        if merged and merged[-1][0] == commit:
            merged[-1] = commit, merged[-1][1] + rows
        elif rows:
            merged.append((commit, rows))
    return tuple(merged)


def without_rows(runs: Runs, removed: Sequence[int]) -> Runs:
    """The runs of a file without the rows of these numbers, in ascending order.

    >>> without_rows(((1, 3), (2, 2)), [0, 2, 4])
    ((1, 1), (2, 1))
    """
    from bisect import bisect_left

    ends = [*accumulate(rows for _, rows in runs)]
    gone = [
        bisect_left(removed, end) - bisect_left(removed, end - rows) for (_, rows), end in zip(runs, ends, strict=True)
    ]
    return merge((commit, rows - lost) for (commit, rows), lost in zip(runs, gone, strict=True))


def _forget(runs: Runs, oldest: int) -> Runs:
    """The runs, with the rows of earlier commits as those of the oldest one."""
    return merge((max(commit, oldest), rows) for commit, rows in runs)
