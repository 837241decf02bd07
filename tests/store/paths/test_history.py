"""The history of a dataset says which commit added which row, whatever was appended, removed and reordered since."""

from __future__ import annotations

import random
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.store.paths import history
from tfrecord_io.store.paths.history import History, merge, without_rows

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.integers(0, 4), min_size=1, max_size=3)),
        st.tuples(st.just("compact"), st.integers(0, 2**20)),
        st.tuples(st.just("delete"), st.integers(0, 2**20)),
    ),
    max_size=12,
)


def expand(runs: history.Runs) -> list[int]:
    """The commit of each row."""
    return [commit for commit, rows in runs for _ in range(rows)]


@given(STEPS)
def test_each_row_keeps_its_commit(steps: list[tuple[str, object]]) -> None:
    files: list[list[int]] = [[0, 0]]  # the commit of each row, by file
    stated = History()
    for name, how in steps:
        counts = list(map(len, files))
        if name == "append":
            assert isinstance(how, list)
            stated = stated.append(sum(counts), sum(how), "0" * 16)
            files += [[stated.commit] * rows for rows in how] if sum(how) else []
            continue
        rng, runs_of = random.Random(f"{how}"), list(stated.split(counts))
        if name == "compact":
            order = rng.sample(range(len(files)), len(files))
            first, *others = order
            files = [
                [*files[first], *chain.from_iterable(files[at] for at in others[:1])],
                *(files[at] for at in others[1:]),
            ]
            joined = merge(chain.from_iterable(runs_of[at] for at in order[:2]))
            stated = stated.change(chain(joined, *(runs_of[at] for at in order[2:])), "0" * 16)
        else:
            at = rng.randrange(len(files))
            removed = sorted(rng.sample(range(counts[at]), rng.randint(0, counts[at])))
            files[at] = [commit for row, commit in enumerate(files[at]) if row not in removed]
            runs_of[at] = without_rows(runs_of[at], removed)
            stated = stated.change(chain(*runs_of), "0" * 16)
        assert list(map(expand, stated.split(list(map(len, files))))) == files
    rows = [commit for file in files for commit in file]
    assert expand(stated.runs_of(len(rows))) == rows
    for since in range(stated.commit + 1):
        found = stated.added_runs(len(rows), since, stated.commit)
        assert [row for _, begin, end in found for row in range(begin, end)] == sorted(
            (row for row, commit in enumerate(rows) if commit > since), key=lambda row: (rows[row], row)
        )


def test_too_many_runs_are_shortened_from_the_oldest_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_MOST_RUNS", 10)
    monkeypatch.setattr(history, "_KEPT_RUNS", 6)
    stated, rows = History(), 1
    for _ in range(50):
        stated = stated.append(rows, 2, "0" * 16)
        rows += 2
        assert len(stated.runs) <= 10
        assert sum(count for _, count in stated.runs) == rows
        assert stated.oldest >= stated.commit - 10
        assert {commit for commit, _ in stated.runs} == {*range(max(stated.oldest, 0), stated.commit + 1)}
    assert stated.added_runs(rows, stated.commit - 3, stated.commit) == [
        (commit, 2 * commit - 1, 2 * commit + 1) for commit in (48, 49, 50)
    ]


def test_shortening_reaches_commits_that_are_in_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_MOST_RUNS", 10)
    monkeypatch.setattr(history, "_KEPT_RUNS", 6)
    runs = tuple((commit, 1) for _ in range(4) for commit in (1, 2, 3))
    stated = History(3, "", 0, runs).shorten()
    assert (stated.oldest, stated.runs) == (3, ((3, 12),))


def test_rows_count_as_those_of_the_oldest_commit_without_runs() -> None:
    assert History(5, "", 2).runs_of(7) == ((2, 7),)
    assert History().append(0, 0, "") == History()
    assert History().change((), "ab") == History(1, "ab")
