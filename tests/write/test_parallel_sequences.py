"""Sequences side by side: each is used in its order, errors are those of the first sequence, no thread stays."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_processors
from running_threads import ends_by_ctrl_c, running, tasks_until_ctrl_c
from tfrecord_io.store.write.atomic_local import LocalOutput
from tfrecord_io.store.write.output_file import OutputFile
from tfrecord_io.store.write.publication import Publication
from tfrecord_io.write.parallel_sequences import open_at_a_time, side_by_side

THREADS = st.sampled_from([1, 2, 3, 4, 8])
Key = tuple[int, int]


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    yield
    assert running("write") == []


class Target:
    """What was used of each sequence, and how often two threads used results of one at a time."""

    def __init__(self, sequences: int, bad: dict[str, Key], late: int) -> None:
        self.used: list[list[int]] = [[] for _ in range(sequences)]
        self.ended: list[bool] = [False] * sequences
        self.opened: set[int] = set()
        self.most_open = self.clashes = 0
        self._locks = [threading.Lock() for _ in range(sequences)]
        self.bad, self.late = bad, late

    def tasks(self, sequence: int, count: int) -> Iterator[Callable[[], Key]]:
        for number in range(count):
            self.fail("source", sequence, number)
            yield partial(self.run, sequence, number)

    def run(self, sequence: int, number: int) -> Key:
        if (sequence + number) % 3 == self.late:
            time.sleep(0.0005)
        self.fail("task", sequence, number)
        return sequence, number

    def use(self, result: Key) -> None:
        sequence, number = result
        self.opened.add(sequence)
        self.most_open = max(self.most_open, len(self.opened))
        if not self._locks[sequence].acquire(blocking=False):
            self.clashes += 1
        self.fail("use", sequence, number)
        self.used[sequence].append(number)
        self._locks[sequence].release()

    def end(self, sequence: int) -> None:
        self.fail("end", sequence, 0)
        assert not self.ended[sequence]
        self.ended[sequence] = True
        self.opened.discard(sequence)

    def fail(self, where: str, sequence: int, number: int) -> None:
        if self.bad.get(where) == (sequence, number):
            raise OSError(f"{where} {sequence} {number}")


@given(
    threads=THREADS,
    counts=st.lists(st.integers(0, 12), max_size=12),
    bad=st.dictionaries(
        st.sampled_from(["source", "task", "use", "end"]), st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=3
    ),
    late=st.integers(0, 3),
)
def test_each_sequence_is_used_in_order_and_the_first_error_is_that_of_one_thread(
    threads: int, counts: list[int], bad: dict[str, Key], late: int
) -> None:
    def outcome(threads: int) -> tuple[Target, str]:
        target, error = Target(len(counts), bad, late), ""
        results = []
        try:
            sources = [target.tasks(sequence, count) for sequence, count in enumerate(counts)]
            for result in side_by_side(sources, target.use, target.end, threads):
                results.append(result)
                assert result[1] in target.used[result[0]]
        except OSError as raised:
            error = str(raised)
        assert sorted(results) == [(s, n) for s, used in enumerate(target.used) for n in used]
        assert target.clashes == 0
        assert target.most_open <= open_at_a_time(len(counts), threads)
        return target, error

    (expected, first), (made, error) = outcome(1), outcome(threads)
    assert error == first
    failed = int(error.split()[1]) if error else len(counts)
    assert made.used[: failed + 1] == expected.used[: failed + 1]
    assert made.ended[: failed + 1] == expected.ended[: failed + 1]
    assert all(made.ended[:failed])
    assert all(used == list(range(len(used))) for used in made.used)


def test_results_of_different_sequences_are_used_at_a_time_and_sources_stay_in_the_calling_thread() -> None:
    both, pulled = threading.Barrier(2), set()

    def tasks(number: int) -> Iterator[Callable[[], int]]:
        pulled.add(threading.current_thread())
        yield lambda: number

    def use(result: int) -> None:
        both.wait(20)

    results = side_by_side([tasks(1), tasks(2)], use, lambda number: None, 2)
    assert sorted(results) == [1, 2]
    assert pulled == {threading.current_thread()}


@given(threads=THREADS, sequences=st.integers(1, 6))
def test_few_tasks_are_taken_before_their_turn(threads: int, sequences: int) -> None:
    taken, used = [0] * sequences, [0] * sequences

    def tasks(sequence: int) -> Iterator[Callable[[], int]]:
        for _ in range(20):
            taken[sequence] += 1
            assert sum(taken) - sum(used) <= 2 * threads
            yield partial(int, sequence)

    def use(sequence: int) -> None:
        used[sequence] += 1

    for _ in side_by_side([tasks(sequence) for sequence in range(sequences)], use, lambda number: None, threads):
        pass
    assert taken == used == [20] * sequences


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_ctrl_c_ends_the_work_at_once(threads: int) -> None:
    sources = [tasks_until_ctrl_c() for _ in range(3)]
    ends_by_ctrl_c(side_by_side(sources, lambda result: None, lambda number: None, threads))


@pytest.mark.parametrize("where", ["task", "use"])
def test_an_exit_in_another_thread_is_raised_here(where: str) -> None:
    caller = threading.current_thread()

    def leave() -> int:
        if threading.current_thread() is caller:
            time.sleep(0.01)
        else:
            raise SystemExit(3)
        return 1

    def use(result: int) -> None:
        if where == "use":
            leave()

    tasks = [iter([leave if where == "task" else lambda: 1] * 20) for _ in range(3)]
    with pytest.raises(SystemExit):
        list(side_by_side(tasks, use, lambda number: None, 2))


def test_dropping_the_results_ends_the_threads() -> None:
    results = side_by_side([iter([lambda: 1] * 50) for _ in range(4)], lambda result: None, lambda number: None, 4)
    assert next(results) == 1
    results.close()


def before_finishing(patch: pytest.MonkeyPatch, act: Callable[[LocalOutput], None]) -> None:
    """Call `act` with each file whose content is complete, before it is synced."""
    finish = LocalOutput._finish

    def finish_after(file: LocalOutput) -> None:
        act(file)
        finish(file)

    patch.setattr(LocalOutput, "_finish", finish_after)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_shards_are_open_only_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    set_processors(monkeypatch, 8)
    opened: list[int] = []
    open_shard = Publication.open

    def noted_open(self: Publication, index: int, folder: str = "") -> OutputFile:
        opened.append(1)
        assert sum(opened) <= 2 * threads
        return open_shard(self, index, folder)

    monkeypatch.setattr(Publication, "open", noted_open)
    before_finishing(monkeypatch, lambda file: opened.extend([-1] * (file._fd >= 0 and "staged" in file._target)))
    tfr.write_tfrecord({"n": range(100)}, tmp_path / "train@50", threads=threads)
    assert tfr.read_table(tmp_path)["n"].to_pylist() == list(range(100))
    assert opened.count(1) == 50


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("form", [{"shards": 5}, {"max_shard_bytes": 300}], ids=str)
@pytest.mark.parametrize("stream", [False, True], ids=["table", "stream"])
def test_an_error_of_completing_a_shard_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, form: dict[str, int], stream: bool
) -> None:
    set_processors(monkeypatch, 8)

    def fail(file: LocalOutput) -> None:
        time.sleep(0.002)
        if file.path.endswith(("part-00002-of-00005.tfrecord", "part-00002.tfrecord")):
            raise OSError(5, "no sync", file.path)

    before_finishing(monkeypatch, fail)
    data = pa.table({"n": range(100)})
    with pytest.raises(OSError, match="no sync") as raised:
        tfr.write_tfrecord(
            iter(data.to_batches(max_chunksize=10)) if stream else data, f"{tmp_path}/d/", threads=threads, **form
        )
    assert "part-00002" in str(raised.value.filename)
    assert not (tmp_path / "d").exists()


def test_an_error_is_raised_wherever_the_threads_are_switched() -> None:
    """Also where it is set between two looks of the loop at the sequences."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(500):
            bad: list[Callable[[], int]] = [int, int, int, partial(int, "x"), int, int]
            sources = [iter(bad if number == 2 else [int] * 6) for number in range(6)]
            with pytest.raises(ValueError, match="invalid literal"):
                list(side_by_side(sources, lambda result: None, lambda number: None, 4))
    finally:
        sys.setswitchinterval(interval)
