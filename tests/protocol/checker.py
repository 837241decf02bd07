"""All interleavings of the requests of a few processes to one store, with deaths and lost answers.

A process is a generator that yields requests and is sent their answers. A process may die before any request that
changes something, and the answer to one may be lost (`LOST`): such a request is carried out at any later time, or
never. What a process does depends on the answers alone, so that a state is the objects in the store, the answers that
each process has, and the requests under way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

ABSENT, REFUSED, LOST, DEAD = "absent", "refused", "lost", "dead"


class Request(NamedTuple):
    """One request; its `condition` is the content that the object must have, `ABSENT`, or None for any.

    The version of an object is its content, as an ETag of S3: an equal one that is stored again has the same.
    """

    kind: str  # "get", "list", "put", "copy" or "delete"
    key: Any  # of "list" the beginning of the keys, of "delete" several
    body: Any = None  # of "copy" the key of the source
    condition: Any = None


Process = Generator[Request, Any, Any]
Objects = Mapping[str, Any]
Record = Callable[[Objects, Request], dict[str, Any]]


def carry_out(objects: Objects, request: Request) -> tuple[dict[str, Any], Any]:
    """The objects after a request, and its answer."""
    kind, key, body, condition = request
    after = dict(objects)
    if kind == "get":
        return after, objects.get(key)
    if kind == "list":
        return after, tuple(sorted((name, body) for name, body in objects.items() if name.startswith(key)))
    for name in key if kind == "delete" else (key,):
        if condition is not None and objects.get(name, ABSENT) != condition:
            return after, REFUSED
    if kind == "delete":
        for name in key:
            after.pop(name, None)
        return after, True
    if kind == "copy":
        if body not in objects:
            return after, None
        body = objects[body]
    after[key] = body
    return after, True


def run_alone(process: Process, objects: Objects) -> tuple[dict[str, Any], list[Request], Any]:
    """The objects after a process that nothing disturbs, its requests and its result."""
    objects, requests = dict(objects), list[Request]()
    try:
        request = next(process)
        while True:
            requests.append(request)
            objects, answer = carry_out(objects, request)
            request = process.send(answer)
    except StopIteration as stop:
        return objects, requests, stop.value


class _Node:
    """A process after some answers: its next request, or its `result` if it has ended."""

    def __init__(self, make: Callable[[], Process], answers: tuple[Any, ...]) -> None:
        self._make, self._answers, self.after = make, answers, dict[Any, _Node]()
        self.request: Request | None = None
        self.result: Any = None
        process = make()
        try:
            self.request = next(process)
            for answer in answers:
                self.request = process.send(answer)
        except StopIteration as stop:
            self.request, self.result = None, stop.value
        except AssertionError as error:
            self.request, self.result = None, f"damaged: {error}"

    def answered(self, answer: Any) -> _Node:
        """The process after the answer to its request."""
        if answer not in self.after:
            self.after[answer] = _Node(self._make, (*self._answers, answer))
        return self.after[answer]


class Found(Exception):
    """A state that must not be, and the requests that lead there."""


def explore(
    start: Objects,
    processes: Sequence[Callable[[], Process]],
    check_objects: Callable[[Objects], str | None],
    check_end: Callable[[Objects, Sequence[Any]], str | None],
    *,
    record: Record,
    deaths: int = 1,
    losses: int = 1,
    loses: Callable[[Request], bool],
    is_unseen: Callable[[Request], bool] = lambda request: False,
) -> int:
    """Visit every state, and return their number.

    Parameters
    ----------
    start : mapping
        The objects at the beginning, by key.
    processes : sequence of callable
        Each makes a generator.
    check_objects, check_end : callable
        Return what is wrong with the objects of a state, and of one in which all processes have ended or died, by
        their results.
    record : callable
        Returns what becomes of the objects besides the effect of a request, as a history for the checks.
    deaths, losses : int
        So many processes die, and so many answers are lost, at most.
    loses : callable
        True if the answer to a request may be lost.
    is_unseen : callable
        True if no process sees the effect of a request before a later one of the process: of its order among those of
        others, one is tried.

    Raises
    ------
    Found
        A check has found something.
    """
    numbers: dict[frozenset[tuple[str, Any]], int] = {}
    stores: list[Objects] = []
    dead = _Node(_ended, ())

    def number_of(objects: Objects) -> int:
        if (number := numbers.setdefault(frozenset(objects.items()), len(stores))) == len(stores):
            stores.append(objects)
        return number

    @cache
    def step(store: int, request: Request) -> tuple[int, Any]:
        after, answer = carry_out(stores[store], request)
        if request.kind in ("get", "list") or answer is REFUSED:
            return store, answer
        return number_of(record(after, request)), answer

    problem_of = cache(lambda store: check_objects(stores[store]))
    State = tuple[int, tuple[_Node, ...], tuple[Request, ...], int, int]

    def following(state: State) -> Iterator[tuple[tuple[Any, ...], State]]:
        """What may happen next, as (process, request, answer), and the states after it."""
        store, nodes, late, deaths, losses = state
        for at, request in enumerate(late):
            yield ("late", request, None), (step(store, request)[0], nodes, late[:at] + late[at + 1 :], deaths, losses)
        unseen = [at for at, node in enumerate(nodes) if node.request is not None and is_unseen(node.request)]
        for at, node in list(enumerate(nodes))[unseen[0] : unseen[0] + 1] if unseen else enumerate(nodes):
            if (request := node.request) is None:
                continue
            now, answer = step(store, request)
            before, behind = nodes[:at], nodes[at + 1 :]
            yield (at, request, answer), (now, (*before, node.answered(answer), *behind), late, deaths, losses)
            if request.kind in ("get", "list"):
                continue
            if losses and request.condition is not None and any(each.key == request.key for each in late):
                # Stores refuse it also while another one is under way, and has no effect yet.
                after = (*before, node.answered(REFUSED), *behind)
                yield (at, request, REFUSED), (store, after, late, deaths, losses - 1)
            under_way = late if unseen else tuple(sorted((*late, request), key=hash))
            if deaths:
                yield (at, request, DEAD), (store, (*before, dead, *behind), under_way, deaths - 1, losses)
            if losses and loses(request):
                after = (*before, node.answered(LOST), *behind)
                yield (at, request, LOST), (store, after, under_way, deaths, losses - 1)

    first: State = (number_of(start), tuple(_Node(make, ()) for make in processes), (), deaths, losses)
    seen: dict[State, tuple[State, Any] | None] = {first: None}
    stack = [first]
    while stack:
        state = stack.pop()
        store, nodes, *_ = state
        problem = problem_of(store)
        if problem is None and all(node.request is None for node in nodes):
            problem = check_end(stores[store], [node.result for node in nodes])
        if problem is not None:
            raise Found("\n".join([problem, *_path_to(state, seen)]))
        for happened, after in following(state):
            if after not in seen:
                seen[after] = state, happened
                stack.append(after)
    return len(seen)


def _ended() -> Process:
    return DEAD
    yield


def _path_to(state: Any, seen: Mapping[Any, tuple[Any, str] | None]) -> list[str]:
    """The requests that lead to a state, in their order."""
    lines = []
    while (before := seen[state]) is not None:
        state, (process, request, answer) = before
        condition = "" if request.condition is None else f" if {request.condition}"
        lines.append(f"{process}: {request.kind} {request.key} {request.body or ''}{condition} -> {answer}")
    return lines[::-1]
