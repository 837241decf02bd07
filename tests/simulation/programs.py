"""Programs: what is done before actors begin, and the calls that each of them makes; also as text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from model import Finding

BESIDE = "b"  # the name of another dataset in the directory
PARTS = 4  # files in a part of a manifest, unless a program says otherwise

Batch = tuple[int, ...]


def batch(number: int, rows: int) -> Batch:
    """The rows of the call with this number, of which no other has one."""
    return tuple(number * 10 + i for i in range(rows))


@lru_cache(maxsize=2000)
def table(rows: Batch, form: str = "", more: str = "") -> pa.Table:
    """The rows, with a column of folders, and one that the dataset may not have."""
    columns: dict[str, list[Any]] = {"x": list(rows), "y": [7 * x for x in rows]}
    if form == "folders":
        columns["p"] = [x % 2 for x in rows]
    if more:
        columns[more] = [1.5] * len(rows)
    return pa.table(columns)


def batches(form: str, rows: Batch) -> tuple[Batch, ...]:
    """The rows as a call adds them: by folder, if the dataset has folders."""
    if form != "folders":
        return (rows,)
    return tuple(part for part in (tuple(x for x in rows if x % 2 == p) for p in (0, 1)) if part)


def rows_in(table: Any) -> list[int]:
    """The rows of a table, whose other column has to have their values."""
    if not len(table):  # a single file without records has no schema
        return []
    rows, others = table["x"].to_pylist(), table["y"].to_pylist()
    if [7 * x for x in rows] != others:
        raise Finding(f"values of other records: {rows}, {others}")
    return list(rows)


@dataclass(frozen=True)
class Step:
    """One call of a program: its name in `calls.WRITERS` or `calls.READERS`, and a number for its rows.

    `stem` is the name of the dataset in the directory, as of ``b.append:1``; "": the path is that of the directory.
    """

    name: str
    number: int = 0
    stem: str = ""

    def __str__(self) -> str:
        named = f"{self.stem}.{self.name}" if self.stem else self.name
        return f"{named}:{self.number}" if self.number else named


def rows_of(step: Step) -> Batch:
    return batch(step.number, 1 + step.number % 3)


@dataclass(frozen=True)
class Program:
    """The calls of each actor, in a kind of world, on a form of dataset.

    As a text: ``s3 grown append:1 table | append:2``. What precedes ``;`` is done before the actors begin. With
    ``grown+parts``, manifests of more than one file have parts of up to four, with ``grown+parts1`` of one. Calls as
    ``b.append:1`` are those of another dataset, named ``b``, in the same directory, whose own one is named ``part``.
    """

    world: str
    form: str
    before: tuple[Step, ...]
    actors: tuple[tuple[Step, ...], ...]
    retries: bool = False
    parts: int = 0  # files in a part of the manifest, at most; 0: it has no parts

    def __str__(self) -> str:
        actors = " | ".join(" ".join(map(str, steps)) for steps in self.actors)
        before = "".join(f"{step} " for step in self.before)
        flags = "+retries" * self.retries + {PARTS: "+parts", 0: ""}.get(self.parts, f"+parts{self.parts}")
        return f"{self.world} {self.form}{flags} {before}; {actors}"

    @property
    def steps(self) -> list[Step]:
        """All calls."""
        return [*self.before, *(step for steps in self.actors for step in steps)]

    @property
    def has_beside(self) -> bool:
        """Whether there may be another dataset in the directory."""
        return any(step.stem == BESIDE for step in self.steps)

    @staticmethod
    def parse(text: str) -> Program:
        head, _, tail = text.partition(";")
        world, form, *before = head.split()
        form, *flags = form.split("+")
        actors = tuple(tuple(map(_step, each.split())) for each in tail.split("|"))
        parts = next((int(flag[5:] or PARTS) for flag in flags if flag.startswith("parts")), 0)
        return Program(world, form, tuple(map(_step, before)), actors, "retries" in flags, parts)


def letter_sum(program: Program) -> int:
    """A number by which programs get what a share of them has, as `hash` is another one in each process."""
    return sum(map(ord, str(program)))


def _step(text: str) -> Step:
    name, _, number = text.partition(":")
    stem, _, name = name.rpartition(".")
    return Step(name, int(number or 0), stem)
