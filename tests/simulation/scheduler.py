"""Actors that run one at a time, and change places only at calls of the world.

An actor is a process: a thread of its own that has the baton, or waits for it. Each call of a store, a lock or a sleep
is a `Scheduler.point`, with a number. There a schedule may give the baton to another actor (``12>1``), let the
call fail (``12!EIO``, after its effect ``12!EIO+``), or end the process (``12x``).
"""

from __future__ import annotations

import math
import os
import random
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

MOST_STEPS = 20_000  # of one program: more are a loop without end
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
        self.turn = threading.Lock()
        self.turn.acquire()


_by_thread: dict[int, tuple[Scheduler, Actor]] = {}


def running() -> tuple[Scheduler, Actor] | None:
    """The scheduler and the actor of this thread; None of other threads."""
    return _by_thread.get(threading.get_ident())


class Schedule(Protocol):
    """What is decided at the steps."""

    def at(self, step: int, scheduler: Scheduler, faults: Sequence[str]) -> str | None:
        """What happens at a step: ``>1``, ``x``, ``!EIO``; None: the call is made. Asked again after each."""

    def after(self, step: int, others: Sequence[Actor]) -> Actor:
        """Who goes on where one has ended."""


class GivenSchedule:
    """The decisions of a text such as ``12>1 30x``."""

    def __init__(self, text: str) -> None:
        self._decisions: dict[int, list[str]] = {}
        for step, what in _DECISION.findall(text):
            self._decisions.setdefault(int(step), []).append(what)

    def at(self, step: int, scheduler: Scheduler, faults: Sequence[str]) -> str | None:
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
    most_deaths, most_faults : int
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
        most_faults: int = 2,
        most_deaths: int = 1,
        losses: float = 0.0,
    ) -> None:
        self._rng, self._losses = rng, losses
        self._odds = {"switch": switches, "fault": faults, "death": deaths}
        self._left = {"switch": 10**9, "fault": most_faults, "death": most_deaths}
        self._next = {kind: self._gap(kind) for kind in self._odds}
        self._soonest = min(self._next.values())

    def _gap(self, kind: str) -> int:
        odds = self._odds[kind] if self._left[kind] else 0.0
        return 10**9 if odds <= 0 else int(math.log(1 - self._rng.random()) / math.log(1 - min(odds, 0.999)))

    def at(self, step: int, scheduler: Scheduler, faults: Sequence[str]) -> str | None:
        if step < self._soonest:
            return None
        for kind, when in self._next.items():
            if step < when or (kind == "fault" and not faults):
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
        self.step, self.now = 0, 1_800_000_000.0
        self.decisions: list[str] = []
        self.deaths = 0
        self.trace: list[tuple[int, int, str, str]] | None = [] if traced else None
        self.on_death: Callable[[Actor], None] = lambda actor: None
        self.on_power_loss: Callable[[], None] = lambda: None
        self.error: BaseException | None = None
        self._over = threading.Lock()
        self.main = Actor(-1, _OWN_PROCESS, random.Random(0))  # who prepares and judges, where nothing is decided

    @contextmanager
    def alone(self, rng: random.Random) -> Iterator[None]:
        """Let this thread call the world in a block; nothing is decided meanwhile."""
        self.actor, self.main.rng = self.main, rng
        _by_thread[threading.get_ident()] = self, self.main
        try:
            yield
        finally:
            del _by_thread[threading.get_ident()]

    def runnable(self) -> list[Actor]:
        return [actor for actor in self.actors if not actor.done]

    # ---- calls of actors

    def point(self, text: str, faults: Sequence[str] = ()) -> str:
        """Be called before an effect; returns the fault that the call meets, or no text."""
        actor = self.actor
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
        while (decision := self._schedule.at(step, self, faults)) is not None:
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
        return fault

    def _end(self, actor: Actor) -> None:
        actor.dead = True
        self.deaths += 1
        for other in self.actors:
            other.waiting = False  # it may have had the lock
        self.on_death(actor)

    def _lose_power(self) -> None:
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
                raise Stuck(f"a lock is held by nobody: {text}")
            actor.waiting = True
            if all(other.waiting for other in self.runnable()):
                self.error = Stuck(f"all wait: {text}")
                raise Death
            self._pass_on()

    def released(self) -> None:
        """Be told that a lock is free."""
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
        self.actor = other
        other.turn.release()
        actor.turn.acquire()
        if actor.dead:
            raise Death

    # ---- the whole

    def run(self, bodies: Sequence[Callable[[], None]]) -> None:
        """Run a function in each actor until all have ended."""
        self._over.acquire()
        for actor, body in zip(self.actors, bodies, strict=True):
            _worker().start(self, actor, body)
        self.actor = self.actors[0]
        self.actor.turn.release()
        self._over.acquire()
        self._over.release()
        if self.error is not None:
            raise self.error

    def _run(self, actor: Actor, body: Callable[[], None]) -> None:
        actor.turn.acquire()
        try:
            body()
        except Death:
            pass
        except BaseException as error:
            self.error = self.error or error
        actor.done = True
        others = self.runnable()
        if not others:
            self._over.release()
            return
        free = [other for other in others if not other.waiting] or others
        other = self._schedule.after(self.step, free)
        if other is not free[0]:
            self.decisions.append(f"{self.step}>{other.number}")
        self.actor = other
        other.turn.release()


class _Worker:
    """A thread that runs one actor after the other."""

    def __init__(self) -> None:
        self._task: tuple[Scheduler, Actor, Callable[[], None]] | None = None
        self._begin = threading.Lock()
        self._begin.acquire()
        threading.Thread(target=self._work, daemon=True).start()

    def start(self, scheduler: Scheduler, actor: Actor, body: Callable[[], None]) -> None:
        self._task = scheduler, actor, body
        self._begin.release()

    def _work(self) -> None:
        while True:
            self._begin.acquire()
            assert self._task is not None
            (scheduler, actor, body), self._task = self._task, None
            _by_thread[threading.get_ident()] = scheduler, actor
            scheduler._run(actor, body)
            del scheduler, actor, body
            _by_thread.pop(threading.get_ident(), None)
            _idle.append(self)


_idle: list[_Worker] = []


def _worker() -> _Worker:
    return _idle.pop() if _idle else _Worker()
