"""Run programs by number; shrink what is found; replay it.

python tests/simulation/runs.py --number 1000 --seed 1
python tests/simulation/runs.py --replay "s3 grown ; append:1 | table @ 3>1 7x"
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parent))

import disk
import process
from calls import READERS
from drawing import random_program, with_beside, with_parts
from exploration import programs_of_three, schedules, schedules_of_three, small_programs
from model import Finding
from programs import Program, Step
from running import Run
from scheduler import Actor, Death, GivenSchedule, RandomSchedule, Schedule, Scheduler, Stuck
from worlds import WORLDS

_PROCESS = 1_000_000_000  # numbers that no real process has
_SHRINK_SECONDS = 20
# How probable a switch is at a step, and how many there are at most: with few, whole calls run in a pause of another.
_SWITCHES = ((0.01, 1), (0.03, 1), (0.03, 2), (0.05, 3), (0.02, 10**9), (0.1, 10**9), (0.3, 10**9))
# How probable a fault and a death are at a step; where all programs are to meet both, the second ones.
_MET = ((0, 0), (0, 0), (0.02, 0), (0, 0.02), (0.02, 0.01))
_BOTH_MET = ((0.02, 0.01), (0.05, 0.02), (0.1, 0.04))
_COLLECTED, _YOUNG_COLLECTED = 500, 20  # programs between two collections of all, and of what is new
_count = 0
_steps: dict[str, tuple[int, set[int]]] = {}  # of an actor of small programs, alone


@contextmanager
def simulated() -> Iterator[None]:
    """Let programs run during a block."""
    gc.collect()
    was_frozen = gc.get_freeze_count() > 0
    gc.freeze()
    gc.disable()  # what has a `__del__` would run at any step
    shown, sys.unraisablehook = sys.unraisablehook, _not_of_the_dead
    try:
        with process.installed(), disk.installed(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.unraisablehook = shown
        gc.enable()
        if not was_frozen:
            gc.unfreeze()


def _not_of_the_dead(found: Any) -> None:
    """Show an error of a ``__del__``, unless its process has ended."""
    if not isinstance(found.exc_value, Death):
        sys.__unraisablehook__(found)


def run(program: Program, schedule: Schedule, *, traced: bool = False) -> tuple[Scheduler, Finding | None]:
    """Run a program once; returns what it did, and what was found."""
    global _count
    _count += 1
    if _count == 20 or _count % _COLLECTED == 0:
        gc.collect()
        gc.freeze()  # what is left is the libraries'
    elif _count % _YOUNG_COLLECTED == 0:
        gc.collect(0)
    scheduler = Scheduler(schedule, traced=traced)
    world = WORLDS[program.world](scheduler)
    try:
        for number in range(len(program.actors)):
            rng = random.Random(f"{program} {number}")
            scheduler.actors.append(Actor(number, _PROCESS + 16 * _count + number, rng))
            scheduler.actors[-1].skew = rng.choice((0.0, 0.0, 600.0, -600.0))
        run = Run(program, world, scheduler)
        try:
            run()
        except Finding as finding:
            return scheduler, finding
        except (Stuck, Exception) as error:
            finding = Finding(f"{type(error).__name__}: {error}", run.calls)
            finding.__cause__ = error
            return scheduler, finding
        return scheduler, None
    finally:
        world.close()


def by_seed(
    seed: int, worlds: tuple[str, ...], *, losses: bool = False, beside: bool = False
) -> tuple[Program, Schedule]:
    """The program and the schedule of a number.

    With `losses`, one of faults and deaths, on a disk losses of power; `beside`: of two datasets in a directory.
    """
    rng = random.Random(f"program {seed}")
    program = random_program(rng, worlds)
    switches, most = rng.choice(_SWITCHES)
    faults, deaths = rng.choice(_BOTH_MET if losses else _MET)
    if beside:
        program = with_beside(program)
    share = (1.0 if losses else 0.5) if program.world == "disk" else 0.0
    return program, RandomSchedule(rng, switches, faults, deaths, most_switches=most, losses=share)


def shrink(program: Program, decisions: str, what: str) -> tuple[Program, str]:
    """Leave out calls, actors and decisions as long as a run ends with a finding of the same kind."""

    def fails(program: Program, decisions: str) -> str | None:
        scheduler, finding = run(program, GivenSchedule(decisions))
        return " ".join(scheduler.decisions) if finding is not None and _kind(finding) == what else None

    def smaller(program: Program) -> Iterator[Program]:
        for i in range(len(program.before)):
            yield replace(program, before=program.before[:i] + program.before[i + 1 :])
        for i, steps in enumerate(program.actors):
            if len(program.actors) > 1 and i == len(program.actors) - 1:
                yield replace(program, actors=program.actors[:i])
            for j in range(len(steps)):
                if len(steps) > 1:
                    kept = steps[:j] + steps[j + 1 :]
                    yield replace(program, actors=(*program.actors[:i], kept, *program.actors[i + 1 :]))
        if program.retries:
            yield replace(program, retries=False)

    changed, end = True, time.monotonic() + _SHRINK_SECONDS
    while changed and time.monotonic() < end:
        changed = False
        for other in smaller(program):
            if (found := fails(other, decisions)) is not None:
                program, decisions, changed = other, found, True
                break
        each = decisions.split()
        for i in range(len(each)):
            if (found := fails(program, " ".join(each[:i] + each[i + 1 :]))) is not None and len(found.split()) < len(
                each
            ):
                decisions, changed = found, True
                break
    return program, decisions


def _kind(finding: Finding) -> str:
    return finding.what.split(":")[0][:40]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--replay", default="")
    parser.add_argument("--most", type=int, default=1, help="findings after which to stop")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which to stop")
    parser.add_argument("--explore", action="store_true", help="all schedules of the small programs")
    parser.add_argument("--switches", type=int, default=1, help="with --explore: at most so many in a schedule")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--losses", action="store_true", help="faults and deaths in all programs, by loss of power")
    parser.add_argument("--parts", action="store_true", help="manifests have parts, in all programs")
    parser.add_argument("--beside", action="store_true", help="two datasets in the directory, where shards are added")
    options = parser.parse_args()
    with simulated():
        if options.replay:
            return replay(options.replay)
        worlds = tuple(options.worlds.split(","))
        if options.explore:
            cases = ((f"{p} @ {s}", p, GivenSchedule(s)) for w in worlds for p, s in explored(w, options.switches))
        else:
            numbers = range(options.seed, options.seed + options.number)
            kind = "+losses" * options.losses + "+beside" * options.beside
            given = {"losses": options.losses, "beside": options.beside}
            cases = ((f"SEED={seed}{kind}", *by_seed(seed, worlds, **given)) for seed in numbers)
        if options.parts:
            cases = ((f"{name}+parts", with_parts(program), schedule) for name, program, schedule in cases)
        return many(cases, options)


def explored(world: str, switches: int = 1, *, every: int = 1, first: int = 0) -> Iterator[tuple[Program, str]]:
    """All small programs with all their schedules of so many switches, or one of so many, from a number on."""
    count = 0
    for program in small_programs(world):
        (steps, changes), (others, _) = (_alone(program, actors) for actors in (program.actors[:1], program.actors[1:]))
        is_alone = program.actors[1][0].name in READERS
        for decisions in schedules(steps, steps + others, switches, changes=changes, alone=is_alone):
            if count % every == first:
                yield program, decisions
            count += 1


def explored_of_three(world: str, *, every: int = 1, first: int = 0) -> Iterator[tuple[Program, str]]:
    """The programs of three writers with their schedules, or one of so many, from a number on."""
    count = 0
    for program in programs_of_three(world):
        (_, changes), (steps, _) = (_alone(program, (actor,)) for actor in program.actors[:2])
        for decisions in schedules_of_three(changes, steps):
            if count % every == first:
                yield program, decisions
            count += 1


def _alone(program: Program, actors: tuple[tuple[Step, ...], ...]) -> tuple[int, set[int]]:
    """How many steps actors make in a program without the others, and those by which something may change."""
    alone = replace(program, actors=actors)
    if (found := _steps.get(str(alone))) is None:
        scheduler = run(alone, GivenSchedule(""))[0]
        found = _steps[str(alone)] = scheduler.ended_at, scheduler.changes
    return found


def many(cases: Iterator[tuple[str, Program, Schedule]], options: argparse.Namespace) -> int:
    """Run programs, and print what is found, shrunk; the number of the programs is printed at the end."""
    begun, count, kinds = time.process_time(), 0, dict[str, int]()
    end = time.monotonic() + options.seconds
    for name, program, schedule in cases:
        scheduler, finding = run(program, schedule)
        count += 1
        if finding is not None:
            kind = _kind(finding)
            kinds[kind] = kinds.get(kind, 0) + 1
            if kinds[kind] <= 3:
                decisions = " ".join(scheduler.decisions)
                print(f"{name} {program} @ {decisions}\n{finding}", flush=True)
                if not options.no_shrink:
                    program, decisions = shrink(program, decisions, kind)
                    again = run(program, GivenSchedule(decisions))[1]
                    print(f"shrunk:\n{program} @ {decisions}\n{again}\n", flush=True)
        if sum(kinds.values()) >= options.most or time.monotonic() > end:
            break
    rate = count / (time.process_time() - begun)
    print(f"{count} programs, {sum(kinds.values())} findings {kinds}, {rate:.0f} programs a second of one core")
    return int(bool(kinds))


def replay(text: str) -> int:
    """Print the calls of a program in order, by actor."""
    if text.strip().isdigit():
        program, schedule = by_seed(int(text), tuple(WORLDS))
    else:
        shown, _, decisions = text.partition("@")
        program, schedule = Program.parse(shown), GivenSchedule(decisions)
    scheduler, finding = run(program, schedule, traced=True)
    print(program)
    for step, actor, call, fault in scheduler.trace or ():
        print(f"{step:5} {'    ' * actor}{actor}: {call}{fault and f'   <- {fault}'}")
    print("nothing found" if finding is None else finding)
    if finding is not None and finding.__cause__ is not None:
        import traceback

        traceback.print_exception(finding.__cause__)
    return int(finding is not None)


if __name__ == "__main__":
    sys.exit(main())
