"""What may be seen of a dataset: a sequence of published versions, each made by one call at one moment.

A call that writes and succeeds has its effect at one moment between its first call of the store and its last, and so
has one whose error says that what it wrote is published. One that is refused, so that it can be made again, has none;
one that fails otherwise, or whose process dies, has it then or never. A call that reads sees the version of one moment
in its time, whole.
`explain` searches for such moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any

Row = tuple[int, ...]
Version = tuple[tuple[int, ...], ...] | None
"""The batches of rows of a dataset, in the order of their writing; None: it does not exist.

A batch of one negative number is a mark, which has no rows: a fact that the manifest states, as the last transaction of
the job, or a note.
"""

ENDLESS = 10**9


@dataclass(slots=True)
class Call:
    """One call of an actor.

    Attributes
    ----------
    begin, end : int
        Its first step, and the one after its last.
    state : str
        "done", "failed", "refused" or "died". A call that was refused has no effect; one that failed may have it.
    effect : callable
        The versions that it may make of one; [] if it cannot be made now. None of a call that reads.
    seen : list of int, int or None
        The rows, or their number, that it returned; None: it did not return any.
    marks : frozenset of int or None
        The marks that it saw; None: it did not look at them.
    absent : bool
        It reported that there is no such dataset, or none with rows.
    present : bool
        It reported that there is such a dataset, and no rows.
    stem : str
        The name of the dataset in the directory that it was made for; "": none was named.
    """

    actor: int
    name: str
    begin: int
    end: int = ENDLESS
    state: str = "died"
    effect: Callable[[Version], list[Version]] | None = None
    seen: Any = None
    marks: frozenset[int] | None = None
    absent: bool = False
    present: bool = False
    stem: str = ""
    error: BaseException | None = None
    matches: bool = False  # the index that it reported not to match does so at its end
    changes: bool = False  # readers that are open may not go on after it
    is_durable: bool = True  # a loss of power does not take its effect, if it is done

    @property
    def sees(self) -> bool:
        """Whether it saw something."""
        return self.seen is not None or self.absent or self.present or self.marks is not None

    def shown(self) -> str:
        what = f"{self.seen}" if self.seen is not None else "absent" * self.absent + "present" * self.present
        what += "" if self.marks is None else f"marks {sorted(self.marks)}"
        error = "" if self.error is None else f" {type(self.error).__name__}: {str(self.error)[:300]}"
        end = "…" if self.end == ENDLESS else self.end
        return f"actor {self.actor} {self.name} [{self.begin}, {end}] {self.state} {what}{error}"


def is_mark(batch: tuple[int, ...]) -> bool:
    """Whether a batch is a mark."""
    return bool(batch) and batch[0] < 0


def fits(version: Version, call: Call) -> bool:
    """Whether a call that reads sees this version."""
    if call.marks is not None:
        return call.marks == {batch[0] for batch in version or () if is_mark(batch)}
    version = version and tuple(batch for batch in version if not is_mark(batch))
    if call.present:
        return version is not None
    if call.absent:
        return not version or not any(version)
    if version is None:
        return False
    rows = [row for batch in version for row in batch]
    if isinstance(call.seen, int):
        return call.seen == len(rows)
    if len(call.seen) != len(rows) or sorted(call.seen) != sorted(rows):
        return False
    at = {row: i for i, row in enumerate(call.seen)}
    return all(at[b] == at[a] + 1 for batch in version for a, b in pairwise(batch))


def explain(calls: Sequence[Call]) -> bool:
    """Whether there is a moment for each call such that all that was seen is right."""
    relevant = [c for c in calls if c.effect is not None or c.sees]
    seen = set[tuple[frozenset[int], Version]]()

    def search(left: frozenset[int], version: Version) -> bool:
        if not left:
            return True
        if (left, version) in seen:
            return False
        seen.add((left, version))
        soonest = min(relevant[i].end for i in left)
        for i in left:
            call = relevant[i]
            if call.begin > soonest:
                continue
            rest = left - {i}
            if call.effect is None:
                if fits(version, call) and search(rest, version):
                    return True
                continue
            if call.state != "done" and search(rest, version):
                return True
            if call.state != "refused" and any(search(rest, made) for made in call.effect(version)):
                return True
        return False

    return search(frozenset(range(len(relevant))), None)


def explain_both(calls: Sequence[Call], beside: str, is_beside: Callable[[int], bool]) -> bool:
    """Whether there are such moments for two datasets in one directory, each by itself.

    A call that reads the directory sees both, not at the same moment: `is_beside` says of a row whether it is of the
    dataset that is named `beside`. A number of rows may be made up of theirs in any way.
    """

    def of(call: Call, name: str) -> Iterator[Call]:
        if call.stem or call.effect is not None:
            if (call.stem == beside) == (name == beside):
                yield call
        elif isinstance(call.seen, list):
            rows = [row for row in call.seen if is_beside(row) == (name == beside)]
            yield replace(call, seen=rows or None, absent=not rows)
        elif not isinstance(call.seen, int):
            yield call

    numbers = [c for c in calls if not c.stem and isinstance(c.seen, int)]
    for shares in product(*(range(call.seen + 1) for call in numbers)):
        both = {"": list[Call](), beside: list[Call]()}
        for name, found in both.items():
            found += [each for call in calls for each in of(call, name)]
            for call, share in zip(numbers, shares, strict=True):
                seen = share if name == beside else call.seen - share
                found.append(replace(call, seen=seen or None, absent=not seen))
        if all(map(explain, both.values())):
            return True
    return False


def overlapping(call: Call, calls: Sequence[Call], *, changes: bool) -> bool:
    """Whether another call was under way at the time of one: one that `changes` what is there, if so."""
    return any(
        other is not call
        and other.effect is not None
        and (other.changes or not changes)
        and other.begin < call.end
        and call.begin < other.end
        for other in calls
    )


@dataclass(slots=True)
class Finding(Exception):
    """What a model does not allow."""

    what: str
    calls: list[Call] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([self.what, *(call.shown() for call in self.calls)])
