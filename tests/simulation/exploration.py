"""All schedules of small programs of two actors, with few switches, and with each death of the first.

Of three writers, those where the first is interrupted by the second, and this one by the third, before it ends or dies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, product

from calls import READERS, WRITERS
from drawing import FORMS_OF, first_step
from programs import Program, Step

_READERS_EXPLORED = ("table", "stream", "number", "filter", "count", "follow")


def small_programs(world: str) -> Iterator[Program]:
    """Two actors with one call each, of which the first writes."""
    for form, names in FORMS_OF[world].items():
        writers = tuple(dict.fromkeys(names))
        numbers = (2, 5, 8) if form == "fixed" else (1, 2, 3)  # of numbered shards, all have the same names
        before = (Step(first_step(form), numbers[0]),)
        for names_of_both in product(writers, (*writers, *_READERS_EXPLORED)):
            first, second = names_of_both
            if second in READERS or first <= second:
                actors = tuple((_step(name, numbers, i),) for i, name in enumerate(names_of_both, 1))
                for prepared in ((), before):
                    yield Program(world, form, prepared, actors)


def _step(name: str, numbers: Sequence[int], which: int) -> Step:
    if name == "delete":
        return Step(name, numbers[0] + 1)
    return Step(name, numbers[which] if name in WRITERS and WRITERS[name].has_rows else 0)


def programs_of_three(world: str) -> Iterator[Program]:
    """Three writers of shards with the same names, of which the last stores again what was there before the others."""
    if "fixed" in FORMS_OF[world]:
        for second in ("write", "copy_in", "delete", "compact"):
            rows = 3 if second == "delete" else 8 if WRITERS[second].has_rows else 0
            actors = Step("write", 5), Step(second, rows), Step("write", 2)
            yield Program(world, "fixed", (Step("write", 2),), tuple((step,) for step in actors))


def schedules_of_three(changes: Collection[int], second: int) -> Iterator[str]:
    """The first is interrupted before each step that changes something; the second, of so many steps, before each.

    The third then writes all; before that, the second one dies, or it goes on at the end.
    """
    for at in sorted(changes):
        for then in range(at + 1, at + second + 2):
            yield f"{at}>1 {then}>2"
            yield f"{at}>1 {then}x {then + 1}>2"


def schedules(
    first: int, both: int, switches: int = 1, *, changes: Collection[int] | None = None, alone: bool = False
) -> Iterator[str]:
    """The schedules of a program whose first actor makes so many steps when nothing interrupts it, and both so many.

    The actors change places up to so many times, before each step; or the first one dies there. Of those that differ
    only in steps by which nothing changes, one is left: given the steps of the first actor that are `changes`, a death
    before each and before its last step; if the first is `alone` in changing something, one switch before each.
    """
    dying = range(first) if changes is None else sorted({*changes, first - 1} & set(range(first)))
    begins = sorted(changes) if changes is not None and alone and switches == 1 else range(first)
    yield ""
    yield from (f"{at}x" for at in dying)
    for count in range(1, switches + 1):
        for steps in combinations(range(both), count):
            if steps[0] in begins:
                yield " ".join(f"{step}>{(i + 1) % 2}" for i, step in enumerate(steps))
