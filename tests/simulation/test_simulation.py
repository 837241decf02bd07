"""Programs of writers and readers in simulated worlds see what the model allows; `runs` has the commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import faults
import pytest
import running
from exploration import schedules
from found import FOUND
from model import Call, explain, explain_both
from programs import Program
from runs import by_seed, explored, explored_of_three, replay, run, simulated
from scheduler import GivenSchedule
from worlds import WORLDS

from rounds import COMPLETE, rounds

PARTS, _PARTS_OF_SMALL = 20, 4
_SMALL = 57_000  # schedules of small programs, in all worlds
_RANDOM, _EXPLORED = rounds(20_000, 2000), rounds(_SMALL, 8000)


@pytest.fixture(autouse=True, scope="module")
def _in_simulation() -> Iterator[None]:
    with simulated():
        yield


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part: int) -> None:
    for seed in range(part * _RANDOM // PARTS, (part + 1) * _RANDOM // PARTS):
        finding = run(*by_seed(seed, tuple(WORLDS)))[1]
        assert finding is None, f"make simulate SEED={seed}\n{finding}"


def test_random_programs_with_losses_of_power() -> None:
    lost, programs = 0, max(10, _RANDOM // 20)
    for seed in range(programs):
        scheduler, finding = run(*by_seed(seed, ("disk",), losses=True))
        assert finding is None, f"SEED={seed} with losses, on the disk\n{finding}"
        lost += scheduler.lost_at >= 0
    assert lost > programs // 4


def test_random_programs_of_two_datasets_in_a_directory() -> None:
    tried = 0
    for seed in range(_RANDOM // 5):
        program, schedule = by_seed(seed, ("disk", "disk", "plain", "s3"), beside=True)
        if program.has_beside:
            tried += 1
            finding = run(program, schedule)[1]
            assert finding is None, f"SEED={seed} with two datasets\n{finding}"
    assert tried > _RANDOM // 20


@pytest.mark.parametrize("part", range(_PARTS_OF_SMALL))
@pytest.mark.parametrize("world", WORLDS)
def test_all_schedules_of_small_programs(world: str, part: int) -> None:
    """In `make test`, every seventh one."""
    every = _SMALL // _EXPLORED
    for program, decisions in explored(world, every=every * _PARTS_OF_SMALL, first=every * part):
        finding = run(program, GivenSchedule(decisions))[1]
        assert finding is None, f'make simulate SEED="{program} @ {decisions}"\n{finding}'


@pytest.mark.parametrize("world", ["s3", "kms", "gcs", "azure"])
def test_three_writers(world: str) -> None:
    """In `make test`, some schedules. On the disk, where a lock keeps them apart, two writers show the same."""
    for program, decisions in explored_of_three(world, every=1 if COMPLETE else 23):
        finding = run(program, GivenSchedule(decisions))[1]
        assert finding is None, f'make simulate SEED="{program} @ {decisions}"\n{finding}'


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_what_was_found_is_mended(text: str) -> None:
    program, _, decisions = text.partition("@")
    finding = run(Program.parse(program), GivenSchedule(decisions))[1]
    assert finding is None, finding


def programs_with_each_word() -> Iterator[str]:
    """Choose programs in which each world, state, call and error of `FOUND` is met."""
    met: set[str] = set()
    for text in sorted(FOUND.values(), key=len, reverse=True):
        words = set(re.findall(r"[A-Za-z_]+", text))
        if not words <= met:
            met |= words
            yield text


@pytest.mark.parametrize("text", programs_with_each_word())
def test_a_program_does_the_same_each_time(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also on what was prepared before, of which files have other times and numbers in the system."""
    replay(text)  # loads what is imported late
    capsys.readouterr()
    running.PREPARED.clear()
    shown = []
    for _ in range(2):
        replay(text)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert shown[0].count("\n") > 10


@pytest.mark.complete
@pytest.mark.timeout(3600)  # the number of programs is limited, not the time, which is that of a busy machine
@pytest.mark.parametrize("name", faults.FAULTS)
def test_a_fault_that_is_put_back_is_found(name: str) -> None:
    assert faults.programs_until_found(name) is not None


@pytest.mark.parametrize("name", faults.FAULTS_OF_THREE)
def test_a_fault_of_three_writers_is_found(name: str) -> None:
    assert faults.found_by_three(name) is not None


@pytest.mark.parametrize("name", faults.FAULTS_OF_ONE)
def test_a_fault_is_found_by_one_decision(name: str) -> None:
    assert faults.found_by_one_decision(name) is not None


@pytest.mark.parametrize("name", faults.FAULTS)
def test_each_fault_can_be_put_back(name: str) -> None:
    with pytest.MonkeyPatch.context() as monkey:
        faults.FAULTS[name][1](monkey)


def _write(begin: int, end: int, number: int, state: str = "done") -> Call:
    return Call(0, "append", begin, end, state, lambda version: [(*(version or ()), (number,))])


def _read(begin: int, end: int, seen: list[int]) -> Call:
    return Call(1, "table", begin, end, "done", seen=seen)


def test_the_model_explains_what_may_be_seen() -> None:
    assert explain([_write(0, 5, 1), _write(5, 9, 2), _read(6, 8, [1])])
    assert explain([_write(0, 5, 1), _write(5, 9, 2, "died"), _read(10, 11, [1, 2])])
    assert explain([_write(0, 5, 1), _write(5, 9, 2, "failed"), _read(10, 11, [1])])


def test_the_model_refuses_what_may_not_be_seen() -> None:
    assert not explain([_write(0, 5, 1), _read(6, 8, [])])
    assert not explain([_write(0, 5, 1), _write(5, 9, 2), _read(10, 11, [1])])
    assert not explain([_write(0, 5, 1), _read(6, 8, [1, 1])])
    assert not explain([_write(0, 9, 1, "died"), _read(1, 2, [1]), _read(3, 4, [])])


def test_the_model_explains_two_datasets_each_by_itself() -> None:
    calls = [_write(0, 5, 1), replace(_write(5, 9, 2), stem="b")]
    both = Call(1, "table", 10, 11, "failed", present=True)
    for read in (_read(6, 8, [1]), _read(6, 8, [2]), replace(_read(10, 11, [2]), stem="b"), both):
        assert explain_both([*calls, read], "b", lambda row: row == 2) == (read.seen != [2] or read.stem == "b")
    assert explain_both([*calls, Call(1, "count", 6, 8, "done", seen=1)], "b", lambda row: row == 2)
    assert not explain_both([*calls, Call(1, "count", 10, 11, "done", seen=1)], "b", lambda row: row == 2)
    assert not explain_both([*calls, _read(10, 11, [1])], "b", lambda row: row == 2)


def test_schedules_are_all_switches_and_deaths() -> None:
    assert list(schedules(2, 3)) == ["", "0x", "1x", "0>1", "1>1"]
    assert list(schedules(1, 3, 2)) == ["", "0x", "0>1", "0>1 1>0", "0>1 2>0"]
    assert list(schedules(4, 6, changes={1}, alone=True)) == ["", "1x", "3x", "1>1"]
    assert list(schedules(4, 6, changes={1})) == ["", "1x", "3x", "0>1", "1>1", "2>1", "3>1"]
