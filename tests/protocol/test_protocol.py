"""No order of the requests of writers, readers and `clean` loses rows, and each wrong step is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from checker import DEAD, Found, Objects, Process, Request, explore, run_alone
from protocol import CLAIMS, FENCE, HEAD, PARTS, WRONG, File, Head, Member, Part

from rounds import QUICK

HISTORY = "~history"  # the versions that were published: the id of each, and its rows
LEFT_SHARD, LEFT_PART = "0/left", f"{PARTS}left"
# Processes that die, answers that are lost, and times that a request is made. Without any of these, nothing is left.
EITHER = [(0, 0, 2), (1, 0, 2), (0, 1, 1)]
BOTH = [(0, 0, 2), (1, 1, 2), (1, 1, 1)]


class Actor(NamedTuple):
    """A process, with the rows that it adds, and those that it removes."""

    run: Callable[[Member], Process]
    adds: tuple[int, ...] = ()
    removes: tuple[int, ...] = ()
    job: str | None = None


class Scenario(NamedTuple):
    """What a few processes do at a time."""

    start: str
    actors: tuple[Actor, ...]
    claims: bool = False
    loses_copies: bool = True  # False: a late copy may do harm, as dev/reliability.md says
    is_slow: bool = False  # it has more than about 100,000 states
    is_large: bool = False  # it has several millions, if a process dies and an answer is lost, too


def append(row: int, folder: str = "0", txn: int = 0) -> Actor:
    return Actor(lambda m: m.append(row, folder=folder, txn=txn), (row,), job="job" if txn else None)


def delete(row: int) -> Actor:
    return Actor(lambda m: m.delete(row), removes=(row,))


def replace_folder(row: int, removes: tuple[int, ...]) -> Actor:
    return Actor(lambda m: m.replace_folder(row, folder="1"), (row,), removes)


def overwrite(*rows: int, removes: tuple[int, ...]) -> Actor:
    return Actor(lambda m: m.overwrite(*([row] for row in rows)), rows, removes)


READ, FOLLOW, COMPACT, ADOPT = (Actor(getattr(Member, name)) for name in ("read", "follow", "compact", "adopt"))
CLEAN = Actor(lambda m: m.clean((LEFT_SHARD,)))
TWO_APPENDS = (append(10), append(11))
SAME_NAMES = overwrite(10, removes=(1, 2, 20)), overwrite(20, removes=(1, 2, 10))
AS_BEFORE = overwrite(10, removes=(1, 20)), overwrite(1, removes=(10,))
OTHER_NAMES = overwrite(10, removes=(1, 2, 20)), overwrite(20, 2, removes=(1, 10))
SCENARIOS = {
    "two appends, a reader": Scenario("parts", (*TWO_APPENDS, READ)),
    "an append, a delete, a reader": Scenario("parts", (append(10), delete(1), READ), is_slow=True),
    "an append, an overwrite of its folder, a reader": Scenario(
        "folders", (append(10, folder="1"), replace_folder(11, removes=(2, 10)), READ)
    ),
    "an append, a compaction, a follower": Scenario("parts", (append(10), COMPACT, FOLLOW), is_slow=True),
    "a compaction, a delete, a reader": Scenario("two", (COMPACT, delete(1), READ), is_slow=True),
    "two compactions, a reader": Scenario("two", (COMPACT, COMPACT, READ), is_slow=True),
    "two tries of a job, a reader": Scenario("two", (append(10, txn=5), append(11, txn=5), READ)),
    "an append, clean": Scenario("left", (append(10), CLEAN)),
    "two appends, clean": Scenario("left", (*TWO_APPENDS, CLEAN), is_slow=True, is_large=True),
    "an overwrite, a reader": Scenario("numbered", (SAME_NAMES[0], READ)),
    "two overwrites, a reader": Scenario("numbered", (*SAME_NAMES, READ), is_slow=True, is_large=True),
    "two overwrites": Scenario("numbered", SAME_NAMES),
    "two overwrites, of which one writes what was there": Scenario("numbered", AS_BEFORE, loses_copies=False),
    "two overwrites of other names": Scenario("two numbered", OTHER_NAMES, loses_copies=False, is_slow=True),
    "two adoptions": Scenario("no head", (ADOPT, ADOPT)),
    "two appends with claims, a reader": Scenario("parts", (*TWO_APPENDS, READ), claims=True),
    "an append and a compaction with claims, a follower": Scenario("two", (append(10), COMPACT, FOLLOW), claims=True),
    "an append with claims, clean": Scenario("left", (append(10), CLEAN), claims=True),
}
FOUND_IN = {  # the wrong steps, each with actors that it harms
    "parts after the head": Scenario("parts", (append(10), READ)),
    "head without condition": Scenario("two", TWO_APPENDS),
    "own head not recognised": Scenario("two", TWO_APPENDS),
    "shards removed first": Scenario("two", (delete(1), READ)),
    "parts removed too early": Scenario("parts", TWO_APPENDS),
    "shards withdrawn at once": Scenario("two", (append(10),)),
    "clean without a head": Scenario("left", (append(10), CLEAN)),
    "reader gives up": Scenario("parts", (*TWO_APPENDS, READ)),
    "transaction asked once": SCENARIOS["two tries of a job, a reader"],
    "names before the head": Scenario("numbered", (SAME_NAMES[0], READ)),
    "no staged_before": Scenario("numbered", AS_BEFORE, loses_copies=False),
    "copy without condition": Scenario("numbered", SAME_NAMES),
    "removal without fence": Scenario("two numbered", OTHER_NAMES, loses_copies=False),
    "reader ignores staged": Scenario("numbered", (SAME_NAMES[0], READ)),
    "joined without a look": Scenario("two", (COMPACT, delete(1))),
    "joined rows are new": Scenario("two", (COMPACT, FOLLOW)),
    "look before the claim": Scenario("two", TWO_APPENDS, claims=True),
    "head read before the claim": Scenario("two", TWO_APPENDS, claims=True),
    "claim removed early": Scenario("two", TWO_APPENDS, claims=True),
}


def start_of(name: str) -> Objects:
    """The objects of a dataset."""
    appends = [Member("x").append(1), Member("y").append(2, folder="1" if name == "folders" else "0")]
    calls = {
        "numbered": [Member("x").overwrite([1])],
        "two numbered": [Member("x").overwrite([1], [2])],
        "two": appends,
        "folders": appends,
    }
    objects: Objects = {HEAD: Head("first", line="first")}
    for call in calls.get(name, [*appends, Member("z").append(3)]):
        objects, _, result = run_alone(call, objects)
        assert result == "done"
    left: dict[str, Any] = {LEFT_SHARD: (99,), LEFT_PART: (File(LEFT_SHARD, (99,)),)} if name == "left" else {}
    history = ((objects[HEAD].id, rows_of(objects)),)
    if name == "no head":
        return {**{key: body for key, body in objects.items() if key.startswith("0/")}, HISTORY: ()}
    return {**objects, **left, HISTORY: history}


# ---- what must hold


def files_of(objects: Objects) -> list[File]:
    """The files that the head names; KeyError if a part is missing."""
    head = objects.get(HEAD, Head(""))
    pieces = [objects[PARTS + piece.id] if isinstance(piece, Part) else (piece,) for piece in head.files]
    return [file for piece in pieces for file in piece]


def rows_of(objects: Objects) -> tuple[int, ...]:
    return tuple(row for file in files_of(objects) for row in file.rows)


def record(objects: dict[str, Any], request: Request) -> dict[str, Any]:
    """The objects after a request, with the versions that were published until then."""
    if request.kind == "put" and request.key == HEAD and check_objects(objects) is None:
        version = objects[HEAD].id, rows_of(objects)
        if objects[HISTORY][-1:] != (version,):
            objects[HISTORY] += (version,)
    return objects


def check_objects(objects: Objects) -> str | None:
    """What is wrong with the head and the files that it names, at any time."""
    try:
        files = files_of(objects)
    except KeyError as error:
        return f"the head names a part that is missing: {error}"
    for file in files:
        if objects.get(file.staged or "", objects.get(file.path)) != file.rows:
            return f"the head names a shard that is missing, or another one: {file}, {objects.get(file.path)}"
    rows = rows_of(objects)
    return f"a row is there twice: {rows}" if len(set(rows)) < len(rows) else None


def check_results(
    actors: Sequence[Actor], first: Sequence[int], objects: Objects, results: Sequence[Any]
) -> str | None:
    """What is wrong in the end with the rows that are there, and with what readers saw."""
    history, rows = objects[HISTORY], set(rows_of(objects))
    removed = {row for actor in actors for row in actor.removes}
    if not set(first) - removed <= rows:
        return f"rows of before are lost: {rows}"
    jobs = [actor.job for actor in actors if actor.job is not None and rows.intersection(actor.adds)]
    if len(set(jobs)) < len(jobs):
        return f"two tries of a job are in: {rows}"
    for actor, result in zip(actors, results, strict=True):
        own, there = set(actor.adds) - removed, rows.intersection(actor.adds)
        match result:
            case "done" if not own <= rows or (not actor.adds and rows.intersection(actor.removes)):
                return f"a change is lost: {own}, of {rows}"
            case "refused" if own & rows:
                return f"a refused change is in: {own}, of {rows}"
            case _ if there and not own <= rows:
                return f"a part of the rows is in: {own}, of {rows}"
            case "replaced" if len({id for id, _ in history}) == 1:
                return "a reader gets another dataset, and there is none"
            case "read", seen if seen not in [rows for _, rows in history]:
                return f"a reader saw {seen}, of {history}"
            case "followed", before, added, after if sorted(before + added) != sorted(after):
                return f"a follower was given {added} after {before}, of {after}"
            case str() if result.startswith("damaged"):
                return result
            case "done" if actor is CLEAN and not {LEFT_SHARD, LEFT_PART}.isdisjoint(objects):
                return "clean has not removed what was left"
    return None


def check_left(objects: Objects, results: Sequence[Any], *, is_disturbed: bool) -> str | None:
    """What is left in the end that `clean` does not find; if nothing was disturbed, all that is left."""
    head = objects.get(HEAD, Head(""))
    used = {HEAD, HISTORY, *(PARTS + id for id in (*head.parts, *head.retired))}
    used.update(name for file in files_of(objects) for name in (file.path, file.staged) if name)
    found = (PARTS, CLAIMS, FENCE, "staged", "0/", "1/")
    left = [name for name in objects if name not in used and name not in (LEFT_SHARD, LEFT_PART)]
    if is_disturbed:
        # Nothing in a numbered name tells of a writing that died: the next overwrite removes such a shard.
        died = DEAD in results or "failed" in results
        left = [name for name in left if not name.startswith(found) and not died and name not in head.replaces]
    return f"left: {left}" if left else None


# ---- all orders


def explore_scenario(scenario: Scenario, deaths: int, losses: int, tries: int, wrong: str = "") -> int:
    start, actors = start_of(scenario.start), scenario.actors
    first, is_cleaned = rows_of(start), CLEAN in actors or ADOPT in actors
    losses = 0 if scenario.claims else losses  # a late request would need a condition: see dev/reliability.md

    def process(number: int) -> Process:
        return actors[number].run(Member("abc"[number], claims=scenario.claims, tries=tries, wrong=wrong))

    def check_end(objects: Objects, results: Sequence[Any]) -> str | None:
        is_disturbed = bool(deaths or losses)
        problem = check_results(actors, first, objects, results)
        return problem or check_left(objects, results, is_disturbed=is_disturbed)

    def loses(request: Request) -> bool:
        return request.key == HEAD or (request.kind == "copy" and scenario.loses_copies)

    def is_unseen(request: Request) -> bool:
        """True for a shard, a staged one or a part that is stored: no head names it yet, and no reader lists it."""
        is_listed = is_cleaned or wrong or request.kind != "put"
        return not is_listed and request.key.startswith((PARTS, "staged", "0/", "1/"))

    return explore(
        start,
        [lambda number=number: process(number) for number in range(len(actors))],  # type: ignore[misc]
        check_objects,
        check_end,
        record=record,
        deaths=deaths,
        losses=losses,
        loses=loses,
        is_unseen=is_unseen,
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_order_of_requests_does_harm(name: str) -> None:
    scenario = SCENARIOS[name]
    levels = EITHER if QUICK or scenario.is_large else BOTH
    for deaths, losses, tries in levels[: 1 if QUICK and scenario.is_slow else None]:
        assert explore_scenario(scenario, deaths, losses, tries) > len(scenario.actors)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_step_is_found(wrong: str) -> None:
    """And nothing is found in the same scenario without it."""

    def explore_all(wrong: str) -> None:
        for deaths, losses, tries in [(0, 0, 2), (1, 0, 2), (0, 1, 2), (0, 1, 1)]:
            explore_scenario(scenario, deaths, losses, tries, wrong)

    scenario = FOUND_IN[wrong]
    explore_all("")
    with pytest.raises(Found):
        explore_all(wrong)
