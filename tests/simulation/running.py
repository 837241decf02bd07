"""Runs of programs: make the calls, judge their errors, and look at the dataset in the end."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from calls import READERS, WRITERS, Target
from model import Call, Finding, explain, explain_both, overlapping
from programs import BESIDE, Batch, Program, Step, letter_sum, rows_of
from scheduler import Actor, Death, Scheduler
from stored import are_named, index_matches, leftovers, marks, named_rows
from worlds import World

import tfrecord_io as tfr
from messages import published_by
from tfrecord_io.base import LIMITS
from tfrecord_io.base.closing import Unconfirmed
from tfrecord_io.base.options.tuned_limits import TunedLimits
from tfrecord_io.store import clean
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.paths.manifest_files import SIZES
from tfrecord_io.store.write import atomic_remote
from tfrecord_io.typing import DeleteReport

_ALL = timedelta(days=-40_000)  # older than the end of all clocks
_RETRIES = 2
_INCOMPLETE = ("the dataset is incomplete", "the mark of a shard that a writer is removing")  # of a new dataset
_NO_MATCH = "index does not match"
_TWO = "has 2 families of shards"  # of a path that does not say which dataset it means
_IN_PARTS = TunedLimits()
_IN_PARTS.s3_part_bytes = 100  # a shard has more bytes

PREPARED: dict[tuple[Any, ...], tuple[Any, list[Call], float]] = {}  # by world, form and steps
_MOST_PREPARED = 10_000  # so that a million programs keep no more in memory


class Run:
    """A program in a world, under a schedule.

    Attributes
    ----------
    calls : list of Call
        What was called, in the order of the beginnings.
    thorough : bool
        Whether more is looked at in the end, and shards are stored in parts where the world has them.
    """

    def __init__(self, program: Program, world: World, scheduler: Scheduler) -> None:
        self.program, self.world, self.scheduler = program, world, scheduler
        self.calls: list[Call] = []
        self.thorough = letter_sum(program) % 8 == 0

    def __call__(self) -> None:
        """Run it, and raise `Finding` for what the model does not allow."""
        try:
            with sizes_of(self.program):
                self._run()
        except Finding as finding:
            finding.calls = self.calls
            raise

    def _run(self) -> None:
        with self.scheduler.alone(random.Random(0)):
            self._prepare(self._target())
        atomic_remote.LIMITS = _IN_PARTS if self.thorough and self.world.takes_parts else LIMITS
        self.scheduler.run([self._body(actor, steps) for actor, steps in self._actors()])
        self._check_errors()
        atomic_remote.LIMITS = LIMITS
        with self.scheduler.alone(random.Random(1)):
            self._check_end(self._target())

    def _target(self, actor: Actor | None = None) -> Target:
        """The dataset as an actor reaches it, or a process that begins now."""
        options = self.world.options(actor or self.scheduler.main)
        target = Target(self.world, self.program.form, options, has_parts=self.program.parts > 0)
        return target if actor is None else replace(target, actor=actor.number, others=self.world.other_options(actor))

    def _prepare(self, target: Target) -> None:
        """Make the calls before the actors begin, which leave the same in each program: once."""
        copied = [step for steps in self.program.actors for step in steps if step.name == "copy_in"]
        if not (self.program.before or copied):
            return
        which = self.program.world, self.program.form, self.program.parts, self.program.before, *copied
        if which in PREPARED:
            state, calls, self.scheduler.now = PREPARED[which]
            self.world.restore(state)
            self.calls = [replace(call) for call in calls]
            return
        for step in self.program.before:
            self._call(step, target, 0)
        for step in dict.fromkeys(copied):
            rows = rows_of(step)
            target.source(rows).write_source(rows)
        if len(PREPARED) >= _MOST_PREPARED:
            PREPARED.clear()
        PREPARED[which] = self.world.state(), [replace(call) for call in self.calls], self.scheduler.now

    def _actors(self) -> list[tuple[Actor, tuple[Step, ...]]]:
        return list(zip(self.scheduler.actors, self.program.actors, strict=True))

    def _body(self, actor: Actor, steps: Sequence[Step]) -> Callable[[], None]:
        def body() -> None:
            target = self._target(actor)
            for step in steps:
                retries = self.program.retries or step.name.startswith("txn")
                for _ in range(1 + retries * _RETRIES):
                    call = self._call(step, target, actor.number, actor)
                    if call.state == "done" or not isinstance(call.error, OSError) or call.effect is None:
                        break

        return body

    def _call(self, step: Step, target: Target, number: int, actor: Actor | None = None) -> Call:
        call = Call(number, str(step), self.scheduler.step, stem=step.stem)
        target = replace(target, stem=step.stem)
        self.calls.append(call)
        faults = 0 if actor is None else actor.faults
        writer = WRITERS.get(step.name)
        rows: Batch = ()
        if writer is not None:
            rows = rows_of(step) if writer.has_rows else ()
            call.effect, call.changes = writer.effect(self.program.form, rows), writer.changes
        try:
            if writer is not None:
                made = writer.call(target, rows)
                if isinstance(made, DeleteReport) and not made.records:
                    call.is_durable = False  # what it saw, without these rows, may be lost
            else:
                call.seen = READERS[step.name](target)
            call.state = "done"
        except Death:
            call.end = self.scheduler.step if self.world.has_locks else call.end
            raise
        except Exception as error:
            call.state, call.error = "failed", error
            call.seen = None
            if step.name == "verify" and _NO_MATCH in str(error):
                call.matches = index_matches(self.world, error.path)
            is_dead = actor is not None and actor.dead  # a library may keep what ended the process, as if it were data
            if not is_dead and (published := published_by(error)):
                call.state = "done"
                call.is_durable = not isinstance(published, Unconfirmed)
                is_replaced = isinstance(error, tfr.errors.ReplacedError)  # before its indexes were made
                is_documented = is_replaced or getattr(error, "errno", None) == errno.EBUSY
                if actor is not None and actor.faults == faults and not is_documented:
                    raise Finding(f"an error that is not documented, of {call.name}") from error
            elif writer is not None and writer.can_be_repeated and (_is_refused(error) or _TWO in str(error)):
                call.state = "refused"
        if actor is not None and actor.dead:  # what its process made of a call that never returned
            call.state, call.seen, call.error, call.end = "died", None, None, self.scheduler.step
            raise Death
        call.end = self.scheduler.step
        is_new = writer is not None and writer.has_own_rows and not self.program.retries
        can_look = actor is not None and actor.faults < faults + 2
        if is_new and can_look and call.state == "failed" and are_named(self.world, rows):
            raise Finding(f"an error does not say that its rows are published, of {call.name}")
        if call.error is not None and call.state != "done":
            self._judge(call, met_fault=actor is not None and actor.faults > faults)
        if call.error is not None:
            call.error = call.error.with_traceback(None)  # which would keep what is open
        return call

    def _judge(self, call: Call, *, met_fault: bool) -> None:
        """Decide what an error means; those that are not documented are looked at in the end."""
        error = call.error
        if isinstance(error, Finding):
            raise error
        if isinstance(error, FileNotFoundError) and call.effect is None:
            call.absent = True
        elif self._has_two(call, error):
            call.present = call.effect is None
        elif _is_incomplete(error):
            call.absent = call.effect is None
            if call.absent and self.program.has_beside:  # of a directory, too, the error is of one dataset
                call.stem = _dataset_of(error)
        elif not (met_fault and isinstance(error, OSError | tfr.errors.CorruptRecordError)):
            return
        elif isinstance(error, OSError):
            call.error = None

    def _check(self) -> None:
        """Look at errors that no fault explains, then search for the moments of all calls."""
        self._check_errors()
        # What a reader saw before a loss of power may have been lost, if no caller was told.
        begin = self.scheduler.lost_at
        before = [call for call in self.calls if call.begin <= begin]
        after = [
            call if call.is_durable or call.end > begin else replace(call, state="failed")
            for call in self.calls
            if call.effect is not None or call.begin > begin
        ]
        if not (self._explains(before) and self._explains(after)):
            raise Finding("no order of the calls explains what was seen")

    def _explains(self, calls: Sequence[Call]) -> bool:
        if not self.program.has_beside:
            return explain(calls)
        written = (s for s in self.program.steps if s.name in WRITERS and not WRITERS[s.name].deletes)
        numbers = {step.number for step in written if step.stem == BESIDE}
        return explain_both(calls, BESIDE, lambda row: row // 10 in numbers)

    def _has_two(self, call: Call, error: BaseException) -> bool:
        """Whether an error says that a path is that of two datasets."""
        return isinstance(error, ValueError) and _TWO in str(error) and self.program.has_beside and not call.stem

    def _check_errors(self) -> None:
        for call in self.calls:
            error = call.error
            if error is None or call.absent or call.present or call.state not in ("failed", "refused"):
                continue
            if not self._is_documented(call, error):
                raise Finding(f"an error that is not documented, of {call.name}") from error

    def _is_documented(self, call: Call, error: BaseException) -> bool:
        if isinstance(error, tfr.errors.ReplacedError):
            return overlapping(call, self.calls, changes=True)
        if call.effect is None:  # files that are not those of the state are refused by their number and sizes
            if call.name == "verify" and _NO_MATCH in str(error):
                # It could not be removed with its shard, of which that writer has warned; or its shard was replaced
                # before it was written, and the call that wrote it removes it.
                return self._is_disturbed or not call.matches
            if call.name == "verify" and "does not name it" in str(error):  # a shard of a writer that was overtaken
                return overlapping(call, self.calls, changes=False) or self._is_disturbed
            is_other = isinstance(error, ValueError) and "the state is that of other files" in str(error)
            return is_other and overlapping(call, self.calls, changes=False)
        name = call.name.partition(":")[0].removeprefix(f"{call.stem}.")
        if self._has_two(call, error):
            return True
        if _is_incomplete(error):
            return overlapping(call, self.calls, changes=True) or self._is_disturbed
        if isinstance(error, FileExistsError):
            is_foreign = "not of the dataset" in str(error) or "of no dataset with a manifest" in str(error)
            return name in ("new", "create") or (self.program.has_beside and is_foreign)
        if name in ("compact", "delete", "index", "clean") and isinstance(error, FileNotFoundError):
            return True
        if name in ("tasks", "txn_tasks", "tasks_over") and isinstance(error, FileNotFoundError):
            return "begin it again" in str(error) and overlapping(call, self.calls, changes=False)
        if not (isinstance(error, OSError) and error.errno == errno.EBUSY):
            return False
        return overlapping(call, self.calls, changes=False) or (self._is_disturbed and not self.world.has_locks)

    @property
    def _is_disturbed(self) -> bool:
        """Whether a process has ended early, or met a fault: what it was writing may be left."""
        return any(actor.dead or actor.faults for actor in self.scheduler.actors)

    # ---- the end

    def _check_end(self, target: Target) -> None:
        """Clean, look for what is left, read, and of some programs write again, alone and without faults."""
        self.scheduler.step += 1
        if (self.thorough and self.world.names()) or self._left():
            clean(self.world.path, remove=True, older_than=_ALL, **target.options)
        if left := self._left():
            raise Finding(f"left after `clean`: {left}")
        self._look(target)
        self._look_at_marks()
        if self.thorough:
            for stem in self._stems:
                self._call(Step("verify", stem=stem), target, -1)
                self._call(Step("count", stem=stem), target, -1)
            self._call(Step("write" if self.program.form == "fixed" else "append", 999), target, -1)
            for stem in self._stems:
                self._call(Step("table", stem=stem), target, -1)
        self._check()

    @property
    def _stems(self) -> tuple[str, ...]:
        """The names of the datasets; "" if there is one, which needs none."""
        return (FileName.DIRECTORY_STEM, BESIDE) if self.program.has_beside else ("",)

    def _look(self, target: Target) -> None:
        """See the rows: of some programs, and where not all that the manifest names is there, by a call that reads."""
        rows = None if self.thorough or self.program.has_beside else named_rows(self.world)
        for stem in self._stems if self.program.has_beside else ():
            self._call(Step("table", stem=stem), target, -1)
        if rows is None:
            self._call(Step("table"), target, -1)
        else:
            step = self.scheduler.step
            self.calls.append(Call(-1, "look", step, step, "done", seen=rows or None, absent=not rows))

    def _look_at_marks(self) -> None:
        """See which transaction and which notes the manifest states."""
        step = self.scheduler.step
        for stem in self._stems:
            self.calls.append(Call(-1, "marks", step, step, "done", marks=marks(self.world, stem), stem=stem))

    def _left(self) -> list[str]:
        """What is left, but not the numbered shards of a writer that ended early, which the next writer removes."""
        left = leftovers(self.world)
        return [name for name in left if "-of-" not in name] if self._is_disturbed else left


@contextmanager
def sizes_of(program: Program) -> Iterator[None]:
    """Let manifests have small parts during a block, of which none is kept longer than to the next change."""
    names = ("many", "part", "tail", "retired")
    before = [getattr(SIZES, name) for name in names]
    try:
        for name, size in zip(names, (1, program.parts, 1, 0) if program.parts else before, strict=True):
            setattr(SIZES, name, size)
        yield
    finally:
        for name, size in zip(names, before, strict=True):
            setattr(SIZES, name, size)


def _is_incomplete(error: BaseException) -> bool:
    """Whether an error says that a new dataset is not there as a whole."""
    return isinstance(error, tfr.errors.CorruptRecordError) and any(text in str(error) for text in _INCOMPLETE)


def _dataset_of(error: BaseException) -> str:
    """The name of the dataset whose manifest or shard an error is of."""
    name = str(getattr(error, "path", "")).rpartition("/")[2]
    is_beside = name == FileName.manifest(BESIDE) or name.startswith(f"{BESIDE}-")
    return BESIDE if is_beside else FileName.DIRECTORY_STEM


def _is_refused(error: BaseException) -> bool:
    """Whether an error says that another writer was first."""
    return isinstance(error, OSError) and error.errno in (errno.EBUSY, errno.EEXIST)
