"""Programs at random, and which calls each kind of world and form of dataset has."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from calls import READERS, WRITERS
from programs import BESIDE, PARTS, Program, Step, letter_sum

from tfrecord_io.store.paths.file_names import FileName

_GROWN = (
    "append",
    "append",
    "note",
    "append",
    "evolve",
    "indexed",
    "overwrite",
    "overwrite",
    "tasks",
    "txn",
    "txn",
    "txn_tasks",
    "tasks_over",
    "new",
    "compact",
    "delete",
    "copy_in",
    "index",
    "clean",
)
_FOLDERS = (
    "append",
    "append",
    "note",
    "tasks",
    "txn",
    "txn_tasks",
    "overwrite",
    "folders",
    "folders",
    "compact",
    "delete",
    "copy_in",
    "clean",
)
_FIXED = (
    "write",
    "write",
    "write_indexed",
    "write_indexed",
    "create",
    "compact",
    "delete",
    "copy_in",
    "copy_in",
    "index",
    "clean",
)
_CLAIMED = (
    "append",
    "append",
    "note",
    "tasks",
    "txn",
    "txn_tasks",
    "evolve",
    "compact",
    "delete",
    "clean",
)  # what a store without conditions keeps apart
_ALL_FORMS = {"grown": _GROWN, "folders": _FOLDERS, "fixed": _FIXED}
FORMS_OF = {**dict.fromkeys(("s3", "kms", "gcs", "azure", "disk"), _ALL_FORMS), "plain": {"grown": _CLAIMED}}
"""The calls that write, by kind of world and form of dataset; more often drawn where they are named twice."""


_OF_DIRECTORIES = ("tasks", "tasks_over", "copy_in")  # calls that name no dataset
_OF_ONE = ("delete", "shards", "names")  # calls that always name one
_ADDING = ("append", "indexed", "evolve", "txn", "overwrite")
_FIRST_BESIDE = 200  # numbers of calls that are added to a program
_SAME_NAMES = (3, 12)  # from one call to the next: numbered shards have the same names; by 12, other sizes
_MEETINGS_DRAWN = 0.2
_REPEATED = 0.6  # transactions
_MEETINGS: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("fixed", (("write_indexed",), ("write", "write_indexed", "delete"), ("verify", "verify", "number", "key"))),
    ("fixed", (("write_indexed",), ("verify", "number"), ("write_indexed",))),
    ("fixed", (("write_indexed",), ("verify", "number", "key"), ("write_indexed", "index"))),
    ("fixed", ((), ("copy_in",), ("write", "write_indexed", "copy_in"))),
    ("grown", (("append",), ("append", "indexed", "evolve", "tasks"), ("overwrite", "tasks_over"))),
    ("grown", (("append",), ("txn", "txn_tasks"), ("txn", "txn_tasks"))),
    ("folders", ((), ("note",), ("note", "append", "txn"))),
)
"""Forms, with calls before, of the actor that begins, and of another one, which programs of any calls seldom make: in
numbered shards of one name, an index is used while its file is replaced, a copy is made where another call writes; a
dataset is replaced while a shard that no manifest names yet is added to it; one is begun by a call without rows, of
which there is no shard."""


def first_step(form: str) -> str:
    """The call that makes a dataset of a form."""
    return "write" if form == "fixed" else "append"


def random_program(rng: random.Random, worlds: Sequence[str]) -> Program:
    """Draw a program of two or three actors, each with one to three calls; a third have parts."""
    program = _random_program(rng, worlds)
    return with_parts(program) if letter_sum(program) % 3 == 0 else program


def with_parts(program: Program) -> Program:
    """The program with a manifest that has parts, of one file or of up to four."""
    if program.parts:
        return program
    return replace(program, parts=1 if letter_sum(program) % 2 else PARTS)


def with_beside(program: Program) -> Program:
    """The program with another dataset in the directory, to which some of its calls go, and with parts.

    There are some shards before, as only the manifest of several files is believed to be alone. Programs of other forms
    than that to which shards are added are left as they are.
    """
    if program.form != "grown":
        return program
    stems = ("", FileName.DIRECTORY_STEM, BESIDE)
    rng = random.Random(f"{program} beside")
    stem_of_job = rng.choice(stems)

    def changed(step: Step) -> Step:
        if step.name.startswith("txn"):  # numbers of the job are repeated
            return replace(step, name="txn", stem=stem_of_job)
        if step.name in _OF_DIRECTORIES:
            return step
        return replace(step, stem=rng.choice(stems[1:] if step.name in _OF_ONE else stems))

    before = [changed(step) for step in program.before]
    before += [Step("append", _FIRST_BESIDE + i) for i in range(rng.choice((0, 2, 3)))]
    actors = [[changed(step) for step in steps] for steps in program.actors]
    if not any(step.stem == BESIDE and step.name in _ADDING for steps in actors for step in steps):
        steps = rng.choice(actors)
        steps.insert(rng.randrange(len(steps) + 1), Step("append", _FIRST_BESIDE + 3, BESIDE))
    beside = replace(program, before=tuple(before), actors=tuple(map(tuple, actors)))
    return with_parts(beside) if rng.random() < 0.8 else beside


def _random_program(rng: random.Random, worlds: Sequence[str]) -> Program:
    world = rng.choice(worlds)
    meets = len(FORMS_OF[world]) > 1 and rng.random() < _MEETINGS_DRAWN
    form = rng.choice(
        ("grown", "grown", "folders", "fixed", "fixed") if len(FORMS_OF[world]) > 1 else tuple(FORMS_OF[world])
    )
    if meets:
        form, (prepared, *calls) = rng.choice(_MEETINGS)
    number = rng.randrange(3) if form == "fixed" else 0  # one, two or three shards
    last = 0
    transacted: list[int] = []  # numbers of the job

    def step(names: Sequence[str]) -> Step:
        nonlocal number
        name = rng.choice(names)
        if name == "delete":
            return Step(name, last + 1)  # rows of the calls before the actors begin, which none of them writes again
        if name.startswith("txn") and transacted and rng.random() < _REPEATED:
            return Step(name, rng.choice(transacted))
        if name in WRITERS and WRITERS[name].has_rows:
            number += rng.choice(_SAME_NAMES if meets else (1, *_SAME_NAMES)) if form == "fixed" else 1
            if name.startswith("txn"):
                transacted.append(number)
            return Step(name, number)
        return Step(name)

    if meets:
        before = (step(prepared),) if prepared else ()
        last = number
        return Program(world, form, before, tuple((step(names),) for names in calls))
    writers, readers = FORMS_OF[world][form], tuple(READERS)
    first = [name for name in ("append", "indexed", "write", "write_indexed") if name in writers]
    before = tuple(step(first) for _ in range(rng.choice((0, 0, 1, 2))))
    last = number if before else 0
    actors = []
    for _ in range(rng.choice((2, 2, 2, 3))):
        reads = rng.random() < 0.45
        actors.append(tuple(step(readers if reads else writers) for _ in range(rng.choice((1, 1, 1, 1, 2, 3)))))
    return Program(world, form, before, tuple(actors), rng.random() < 0.3)
