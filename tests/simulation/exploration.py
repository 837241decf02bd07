"""All schedules of small programs: every switch there and back of two actors, and every death of the first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from programs import FORMS_OF, READERS, WRITERS, Program, Step, first_step

_READERS_EXPLORED = ("table", "stream", "number", "filter", "count")


def small_programs(world: str) -> Iterator[Program]:
    """Two actors with one call each, of which the first writes."""
    for form, names in FORMS_OF[world].items():
        writers = tuple(dict.fromkeys(names))
        before = (Step(first_step(form), 1),)
        for first, second in product(writers, (*writers, *_READERS_EXPLORED)):
            if second in READERS or first <= second:
                actors = ((_step(first, 2),), (_step(second, 3),))
                for prepared in ((), before):
                    yield Program(world, form, prepared, actors)


def _step(name: str, number: int) -> Step:
    return Step(name, number if name in WRITERS and WRITERS[name].rows else 0)


def schedules(steps: int) -> Iterator[str]:
    """The schedules of a program whose first actor makes so many steps when nothing interrupts it.

    The second one runs, to its end, before each of them; or the first dies there.
    """
    yield ""
    for at in range(steps):
        yield f"{at}>1"
        yield f"{at}x"
