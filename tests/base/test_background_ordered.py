"""Tasks on several threads: results and errors come in order, the source stays with the caller, no thread remains."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from running_threads import ends_by_ctrl_c, running, tasks_until_ctrl_c
from tfrecord_io.base.background import ordered

THREADS = st.sampled_from([1, 2, 3, 4, 8])


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    yield
    assert running("worker") == []


def run(number: int, bad: int | None, late: int) -> int:
    if number % 3 == late:
        time.sleep(0.0005)
    if number == bad:
        raise OSError(f"task {number}")
    return number


@given(
    threads=THREADS,
    count=st.integers(0, 30),
    bad=st.none() | st.integers(0, 30),
    source_ends=st.none() | st.integers(0, 30),
    late=st.integers(0, 3),
)
def test_results_and_the_first_error_are_those_of_one_thread(
    threads: int, count: int, bad: int | None, source_ends: int | None, late: int
) -> None:
    def tasks() -> Iterator[Callable[[], int]]:
        for number in range(count):
            if number == source_ends:
                raise ValueError("source")
            yield partial(run, number, bad, late)

    def outcome(threads: int) -> tuple[list[int], str]:
        results = []
        try:
            for result in ordered(tasks(), threads):
                results.append(result)
        except (OSError, ValueError) as error:
            return results, str(error)
        return results, ""

    assert outcome(threads) == outcome(1)


def test_the_source_stays_in_the_calling_thread_and_tasks_run_side_by_side() -> None:
    pulled, both = set(), threading.Barrier(2)

    def tasks() -> Iterator[Callable[[], int]]:
        for _ in range(2):
            pulled.add(threading.current_thread())
            yield lambda: both.wait(20)

    assert sorted(ordered(tasks(), 2)) == [0, 1]
    assert pulled == {threading.current_thread()}


@given(threads=THREADS)
def test_few_tasks_are_taken_before_their_turn(threads: int) -> None:
    taken = []

    def tasks() -> Iterator[Callable[[], int]]:
        for number in range(50):
            taken.append(number)
            yield partial(int, number)

    for result in ordered(tasks(), threads):
        assert len(taken) - result <= 2 * threads


def test_a_single_task_starts_no_thread() -> None:
    assert list(ordered(iter([threading.current_thread]), 8)) == [threading.current_thread()]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_ctrl_c_ends_the_work_at_once(threads: int) -> None:
    ends_by_ctrl_c(ordered(tasks_until_ctrl_c(), threads))


def test_an_exit_in_another_thread_is_raised_here() -> None:
    caller = threading.current_thread()

    def task() -> None:
        if threading.current_thread() is caller:
            time.sleep(0.01)
        else:
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        list(ordered((task for _ in range(20)), 2))
