"""Which tests `make quick` runs: the first case of each, without storms, servers and what takes long.

tests/slow_tests.txt lists the functions that take more than `LIMIT` seconds of CPU; ``make slow-tests`` writes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rounds import SAMPLED

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not SAMPLED:
        return
    left_out = set() if WRITES else set(SLOW.read_text(encoding="utf-8").splitlines())
    kept: dict[str, pytest.Item] = {}
    for item in items:
        name = function_of(item)
        is_slow = item.get_closest_marker("storm") is not None or name in left_out
        if not is_slow and SERVERS.isdisjoint(getattr(item, "fixturenames", ())):
            kept.setdefault(name, item)
    chosen = set(kept.values())
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
