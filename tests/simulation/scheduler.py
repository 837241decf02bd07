"""Actors that run one at a time, and change places only at calls of the world.

An actor is a process: a greenlet that runs, or waits until another one passes on to it, all in one thread. Each call of
a store, a lock or a sleep is a `Scheduler.point`, with a number. There a schedule may pass on to another actor
(``12>1``), let the call fail (``12!EIO``, after its effect ``12!EIO+``), or end the process (``12x``).
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import re
from _thread import get_ident
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from greenlet import greenlet

MOST_STEPS = 20_000  # of one program: more are a loop without end
_STEP_SECONDS = 0.001
_OF_CHANGES = ("EIO+", "ENOSPC", "slow+")  # the last fault of calls that change something; locks and sleeps have none
_OWN_PROCESS = os.getpid()
_DECISION = re.compile(r"(\d+)(>\d+|x|p|![A-Za-z0-9]+\+?)")


class Death(BaseException):
    """The process ends here: whatever its handlers still call has no effect."""


class Stuck(Exception):
    """No actor can go on, or one never ends."""


class Actor:
    """A process.

    Attributes
    ----------
    dead : bool
        Its process ended before its program did.
    skew : float
        Seconds by which its clock is ahead.
    waiting : bool
        For a lock that another one has.
    """

    def __init__(self, number: int, process: int, rng: random.Random) -> None:
        self.number, self.process, self.rng = number, process, rng
        self.dead = self.done = self.waiting = False
        self.skew = 0.0
        self.faults = 0  # that it met
        self.loop: Any = None  # for its requests
        self.locks: set[int] = set()
        self.run: Any = None  # its greenlet


_running: tuple[Scheduler, Actor] | None = None
_thread = 0  # of all actors


def running() -> tuple[Scheduler, Actor] | None:
    """The scheduler and the actor that runs; None in other threads."""
    return _running if _running is not None and get_ident() == _thread else None


class Schedule(Protocol):
    """What is decided at the steps; `may_lose_power`: one of it may be a loss of power."""

    may_lose_power: bool

    def at(self, step: int, scheduler: Scheduler, faults: Sequence[str], commits: bool) -> str | None:
        """What happens at a step: ``>1``, ``x``, ``!EIO``; None: the call is made. Asked again after each."""

    def after(self, step: int, others: Sequence[Actor]) -> Actor:
        """Who goes on where one has ended."""


class GivenSchedule:
    """The decisions of a text such as ``12>1 30x``."""

    def __init__(self, text: str) -> None:
        self._decisions: dict[int, list[str]] = {}
        self.may_lose_power = False
        for step, what in _DECISION.findall(text):
            self._decisions.setdefault(int(step), []).append(what)
            self.may_lose_power |= what == "p"

    def at(self, step: int, scheduler: Scheduler, faults: Sequence[str], commits: bool) -> str | None:
        if (left := self._decisions.get(step)) is None or not left:
            return None
        return left.pop(0)

    def after(self, step: int, others: Sequence[Actor]) -> Actor:
        left = self._decisions.get(step, [])
        wanted = int(left.pop(0)[1:]) if left and left[0][0] == ">" else -1
        return next((actor for actor in others if actor.number == wanted), others[0])


class RandomSchedule:
    """Decisions of a generator of random numbers.

    Parameters
    ----------
    switches, faults, deaths : float
        How probable each is, at a step.
    most_switches, most_deaths, most_faults : int
    losses : float
        How many of the deaths are a loss of power, in which all processes end.
    """

    def __init__(
        self,
        rng: random.Random,
        switches: float,
        faults: float = 0.0,
        deaths: float = 0.0,
        *,
        most_switches: int = 10**9,
        most_faults: int = 2,
        most_deaths: int = 1,
        losses: float = 0.0,
    ) -> None:
        self._rng, self._losses, self.may_lose_power = rng, losses, losses > 0 and deaths > 0
        self._odds = {"switch": switches, "fault": faults, "death": deaths}
        self._left = {"switch": most_switches, "fault": most_faults, "death": most_deaths}
        self._next = {kind: self._gap(kind) for kind in self._odds}
        self._soonest = min(self._next.values())
        self._before_changes = rng.random() < 0.5  # where what was seen may be outdated
        self._at_commits = rng.random() < 0.5  # faults and deaths, where what was done is published or becomes durable

    def _gap(self, kind: str) -> int:
        odds = self._odds[kind] if self._left[kind] else 0.0
        return 10**9 if odds <= 0 else int(math.log(1 - self._rng.random()) / math.log(1 - min(odds, 0.999)))

    def at(self, step: int, scheduler: Scheduler, faults: Sequence[str], commits: bool) -> str | None:
        if step < self._soonest:
            return None
        for kind, when in self._next.items():
            if step < when or (kind == "fault" and not faults):
                continue
            if kind == "switch" and self._before_changes and faults and faults[-1] not in _OF_CHANGES:
                continue
            if kind != "switch" and self._at_commits and not commits:
                continue
            self._left[kind] -= 1
            self._next[kind] = step + 1 + self._gap(kind)
            self._soonest = min(self._next.values())
            if kind == "switch":
                others = [actor for actor in scheduler.runnable() if actor is not scheduler.actor]
                if others:
                    return f">{self._rng.choice(others).number}"
                continue
            if kind == "death":
                return "p" if self._losses and self._rng.random() < self._losses else "x"
            return f"!{self._rng.choice(faults)}"
        return None

    def after(self, step: int, others: Sequence[Actor]) -> Actor:
        return self._rng.choice(others)


class Scheduler:
    """Runs programs of actors, one call at a time.

    Attributes
    ----------
    actor : Actor
        Who has the baton.
    decisions : list of str
        What was decided, as a text for `GivenSchedule`.
    trace : list or None
        Step, actor, call and fault of each call, if wanted.
    now : float
        Seconds, by a right clock.
    """

    def __init__(self, schedule: Schedule, *, traced: bool = False) -> None:
        self._schedule = schedule
        self.actors: list[Actor] = []
        self.lost_at = -1  # the step at which power was lost
        self.step, self.now = 0, 1_800_000_000.0
        self.decisions: list[str] = []
        self.changes = set[int]()  # steps by which something of the world may change
        self.ended_at = 0  # the number of steps of all actors
        self.deaths = 0
        self.trace: list[tuple[int, int, str, str]] | None = [] if traced else None
        self.on_death: Callable[[Actor], None] = lambda actor: None
        self.on_power_loss: Callable[[], None] = lambda: None
        self.error: BaseException | None = None
        self.main = Actor(-1, _OWN_PROCESS, random.Random(0))  # who prepares and judges, where nothing is decided

    @contextmanager
    def alone(self, rng: random.Random) -> Iterator[None]:
        """Call the world in a block; nothing is decided meanwhile."""
        self.main.rng = rng
        self._set_running(self.main)
        try:
            yield
        finally:
            self._set_running(None)

    def _set_running(self, actor: Actor | None) -> None:
        global _running, _thread
        if actor is None:
            _running = None
            return
        self.actor, _running, _thread = actor, (self, actor), get_ident()

    def runnable(self) -> list[Actor]:
        return [actor for actor in self.actors if not actor.done]

    @property
    def may_lose_power(self) -> bool:
        """Whether what is durable is to be known: of what is prepared for more than one schedule, always."""
        return self._schedule.may_lose_power or self.actor is self.main

    # ---- calls of actors

    def point(self, text: str, faults: Sequence[str] = (), *, commits: bool = False) -> str:
        """Be called before an effect; returns the fault that the call meets, or no text.

        A call `commits` if by it what others see or what is durable changes: of these there are few.
        """
        actor = self.actor
        self.now += _STEP_SECONDS
        if actor is self.main:
            return ""
        if actor.dead or self.error is not None:
            raise Death
        step = self.step
        self.step += 1
        if step > MOST_STEPS:
            self.error = Stuck(f"more than {MOST_STEPS} calls")
            raise Death
        fault = ""
        while (decision := self._schedule.at(step, self, faults, commits)) is not None:
            kind = decision[0]
            if kind == ">":
                other = self.actors[min(int(decision[1:]), len(self.actors) - 1)]
                if other.done or other is actor:
                    continue
                self.decisions.append(f"{step}{decision}")
                self._give(actor, other)
            elif kind == "!":
                if decision[1:] not in faults:
                    continue
                self.decisions.append(f"{step}{decision}")
                fault = decision[1:]
                actor.faults += 1
                break
            else:
                self.decisions.append(f"{step}{decision}")
                if kind == "p":
                    self._lose_power()
                else:
                    self._end(actor)
                if self.trace is not None:
                    self.trace.append((step, actor.number, text, "power is lost" if kind == "p" else "it dies"))
                raise Death
        if self.trace is not None:
            self.trace.append((step, actor.number, text, fault))
        if not faults or faults[-1] in _OF_CHANGES:
            self.changes.add(step)
        return fault

    def _end(self, actor: Actor) -> None:
        actor.dead = True
        self.deaths += 1
        for other in self.actors:
            other.waiting = False  # it may have had the lock
        self.on_death(actor)

    def _lose_power(self) -> None:
        self.lost_at = self.step
        for actor in self.actors:
            if not actor.done:
                self._end(actor)
        self.on_power_loss()

    def sleep(self, seconds: float) -> None:
        """Let time pass, and others go on."""
        self.now += max(seconds, 0.0)
        if self.actor is not self.main:
            self.point(f"sleep {seconds:.2f}")
            self._pass_on()

    def wait(self, text: str, attempt: Callable[[], bool]) -> None:
        """Try until it succeeds; others go on meanwhile."""
        actor = self.actor
        while True:
            if actor.dead:
                raise Death
            if attempt():
                actor.waiting = False
                return
            if actor is self.main:
                raise Stuck(f"a lock has no holder: {text}")
            actor.waiting = True
            if all(other.waiting for other in self.runnable()):
                self.error = Stuck(f"all wait: {text}")
                raise Death
            self._pass_on()

    def released(self) -> None:
        """Note that a lock is free."""
        for actor in self.actors:
            actor.waiting = False

    def _pass_on(self) -> None:
        """Give the baton to the next one that does not wait."""
        actor, count = self.actor, len(self.actors)
        for i in range(1, count):
            other = self.actors[(actor.number + i) % count]
            if not (other.done or other.waiting):
                self._give(actor, other)
                return

    def _give(self, actor: Actor, other: Actor) -> None:
        loop = asyncio._get_running_loop()  # of this thread, not of the actor
        asyncio._set_running_loop(None)
        self._set_running(other)
        other.run.switch()
        asyncio._set_running_loop(loop)
        if actor.dead:
            raise Death

    # ---- the whole

    def run(self, bodies: Sequence[Callable[[], None]]) -> None:
        """Run a function in each actor until all have ended."""
        for actor, body in zip(self.actors, bodies, strict=True):
            actor.run = greenlet(partial(self._run, actor, body))
        actor = self.actors[0]
        while True:
            self._set_running(actor)
            actor.run.switch()  # returns where an actor has ended
            others = self.runnable()
            if not others:
                break
            free = [other for other in others if not other.waiting] or others
            actor = self._schedule.after(self.step, free)
            if actor is not free[0]:
                self.decisions.append(f"{self.step}>{actor.number}")
        self._set_running(None)
        self.ended_at = self.step
        if self.error is not None:
            raise self.error

    def _run(self, actor: Actor, body: Callable[[], None]) -> None:
        try:
            body()
        except Death:
            pass
        except BaseException as error:
            self.error = self.error or error
        actor.done = True
