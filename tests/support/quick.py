"""Which cases `make test` and `make quick` leave out.

`make test` runs so many cases of a test with the mark ``matrix`` that each value of each of its parameters is met, and
none of one with the mark ``complete``; with STORM=1 all.

`make quick` runs the first case of each test, without storms, servers and what takes long: tests/slow_tests.txt lists
the functions that take more than `LIMIT` seconds of CPU; ``make slow-tests`` writes it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from rounds import COMPLETE, SAMPLED

LIMIT = 0.1
SLOW = Path(__file__).parent.parent / "slow_tests.txt"
SERVERS = {
    *("s3", "gcs", "azure", "bucket", "conditional", "web", "chaos", "dying", "example_buckets"),
    *("s3_endpoint", "gcs_endpoint", "azure_endpoint"),
}
WRITES = os.environ.get("TFRECORD_IO_SLOW_TESTS") == "1"

taken: dict[str, float] = {}  # seconds of CPU by function


def function_of(item: pytest.Item) -> str:
    return item.nodeid.split("[")[0].removeprefix("tests/")


def covering(cases: list[pytest.Item], name: str) -> Iterator[pytest.Item]:
    """So many `cases` of a test that each value of each parameter is met; those of a `name` are the same each time."""
    met: set[tuple[str, int]] = set()
    shuffled = random.Random(name).sample(cases, len(cases))
    shuffled.sort(key=lambda case: "azure" in case.name)  # skipped without its server: no other value is met only there
    for case in shuffled:
        values = {(name, id(value)) for name, value in case.callspec.params.items()}  # type: ignore[attr-defined]
        if not values <= met:
            met |= values
            yield case


def of_matrices(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """What a run that is not complete leaves of the cases of each matrix."""
    matrices: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("matrix") is None or not hasattr(item, "callspec"):
            yield item
        else:
            matrices.setdefault(function_of(item), []).append(item)
    for name, cases in matrices.items():
        yield from covering(cases, name)


def quick(items: list[pytest.Item]) -> Iterable[pytest.Item]:
    left_out = set() if WRITES else set(SLOW.read_text(encoding="utf-8").splitlines())
    kept: dict[str, pytest.Item] = {}
    for item in items:
        name = function_of(item)
        is_slow = item.get_closest_marker("storm") is not None or name in left_out
        if not is_slow and SERVERS.isdisjoint(getattr(item, "fixturenames", ())):
            kept.setdefault(name, item)
    return kept.values()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if COMPLETE:
        return
    brief = [item for item in items if item.get_closest_marker("complete") is None]
    chosen = set(quick(brief) if SAMPLED else of_matrices(brief))
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    begin = os.times()
    result = yield
    if WRITES:  # of this process and of those that it started
        taken[function_of(item)] = sum(os.times()[:4]) - sum(begin[:4])
    return result


def pytest_sessionfinish() -> None:
    if WRITES:
        slow = sorted(name for name, seconds in taken.items() if seconds > LIMIT)
        SLOW.write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")
