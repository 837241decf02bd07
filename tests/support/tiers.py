"""The tiers of tests: which cases each of them runs.

====== =================================================== =====================================================
tier   run by                                              cases
====== =================================================== =====================================================
first  ``make quick``                                      the first case of each fast test
fast   ``make test``                                       one case for each value of each parameter, all laws; no
                                                           servers, no browser, no storms, no case of more than `LONG`
                                                           seconds
near   ``make quick FOR=read/reader``                      all cases of the files of tests that are named
full   ``make test-full``, and a plain ``pytest``          all; of a ``matrix``, one case for each value of each
                                                           parameter
storm  ``make test-full STORM=1``                          all, with all rounds
====== =================================================== =====================================================

The compiled engine runs alone in first, fast and near; in full, laws run on the reference engine as well, and in storm
all tests. ``TFRECORD_IO_MEASURE=1 .venv/bin/pytest`` writes tests/slow_tests.txt: the functions that take more than
`LIMIT` seconds of CPU for a case.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from rounds import TIER

LIMIT = 0.1  # seconds of CPU of a case of the first tier
LONG = 1.0  # of a case of the fast one, but for `KEPT`
KEPT = ("laws/", "test_layout.py", "test_rooms.py")  # laws, and what tells that a change of the tree is not done
SLOW = Path(__file__).parent.parent / "slow_tests.txt"
SERVERS = {
    *("s3", "gcs", "azure", "bucket", "conditional", "web", "chaos", "dying", "example_buckets"),
    *("s3_endpoint", "gcs_endpoint", "azure_endpoint"),
}
BROWSER = "page"  # the fixture of tests in Chromium, those of the site after `make docs` among them
WITHOUT_SERVERS = ("tests", "simulation")  # folders in which a parameter may be the name of a store, not of a server
MEASURE = os.environ.get("TFRECORD_IO_MEASURE") == "1"

measured: dict[str, float] = {}  # the most seconds of CPU of a case, by function


def function_of(item: pytest.Item) -> str:
    return item.nodeid.split("[")[0].removeprefix("tests/")


def covering(cases: list[pytest.Item], name: str) -> Iterator[pytest.Item]:
    """Choose few cases of a test so that each value of each parameter is met; the same ones each time for a `name`."""
    left = {}
    for case in random.Random(name).sample(cases, len(cases)):
        left[case] = {(name, id(value)) for name, value in case.callspec.params.items()}  # type: ignore[attr-defined]
    unmet = set[tuple[str, int]]().union(*left.values())

    def gain(case: pytest.Item) -> int:
        values = len(left[case] & unmet)
        return values - len(left[case]) if "azure" in case.name else values  # skipped without its server: taken last

    while unmet:
        case = max(left, key=gain)
        values = left.pop(case)
        if not values.isdisjoint(unmet):
            unmet -= values
            yield case


def covering_cases(items: list[pytest.Item], *, matrices_only: bool) -> Iterator[pytest.Item]:
    """Reduce the cases of each parametrised test, or of those with the mark ``matrix``, to a covering."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        is_reduced = not matrices_only or item.get_closest_marker("matrix") is not None
        if is_reduced and hasattr(item, "callspec"):
            tests.setdefault(function_of(item), []).append(item)
        else:
            yield item
    for name, cases in tests.items():
        yield from covering(cases, name)


def slow_tests() -> dict[str, float]:
    """Read the seconds of each slow function."""
    lines = SLOW.read_text(encoding="utf-8").splitlines()
    return {name: float(seconds) for seconds, name in (line.split(maxsplit=1) for line in lines)}


def uses_server(item: pytest.Item) -> bool:
    """True if a case takes a server as a fixture, or by its name, which is a parameter."""
    names = {*getattr(item, "fixturenames", ())}
    if hasattr(item, "callspec") and item.path.parent.name not in WITHOUT_SERVERS:
        names |= {value for value in item.callspec.params.values() if isinstance(value, str)}
    return not SERVERS.isdisjoint(names)


def uses_browser(item: pytest.Item) -> bool:
    """True if a case takes the page of a browser; a parameter of this name is a page of the documentation."""
    is_parameter = hasattr(item, "callspec") and BROWSER in item.callspec.params
    return BROWSER in getattr(item, "fixturenames", ()) and not is_parameter


def light_tests(items: list[pytest.Item], limit: float, *, kept: tuple[str, ...] = ()) -> Iterator[pytest.Item]:
    """Leave out storms, tests with servers or a browser, and functions of more than `limit` seconds.

    Files and folders that are `kept` have no limit.
    """
    slow = {name for name, seconds in slow_tests().items() if seconds > limit}
    for item in items:
        name = function_of(item)
        is_slow = name in slow and not name.startswith(kept)
        is_heavy = is_slow or item.get_closest_marker("storm") is not None
        if not is_heavy and not uses_server(item) and not uses_browser(item):
            yield item


def first_cases(items: Iterable[pytest.Item]) -> Iterable[pytest.Item]:
    first: dict[str, pytest.Item] = {}
    for item in items:
        first.setdefault(function_of(item), item)
    return first.values()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if TIER == "storm":
        return
    brief = [item for item in items if item.get_closest_marker("complete") is None]
    chosen: set[pytest.Item]
    match TIER:
        case "first":
            chosen = set(first_cases(light_tests(brief, LIMIT)))
        case "fast":
            chosen = set(covering_cases([*light_tests(brief, LONG, kept=KEPT)], matrices_only=False))
        case _:
            chosen = set(covering_cases(brief, matrices_only=True))
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    begin = os.times()
    result = yield
    if MEASURE:  # of this process and of those that it started
        seconds = sum(os.times()[:4]) - sum(begin[:4])
        measured[function_of(item)] = max(seconds, measured.get(function_of(item), 0))
    return result


def pytest_sessionfinish() -> None:
    if MEASURE:
        slow = sorted((name, seconds) for name, seconds in measured.items() if seconds > LIMIT)
        SLOW.write_text("".join(f"{seconds:.1f} {name}\n" for name, seconds in slow), encoding="utf-8")
