"""Several processes rewrite the assertions of each file of tests once, not each of them those of all files.

Each goes through the folders in an order of its own, and finds most files rewritten by another one: without bytecode of
an earlier run, the rewriting takes more than half of a collection. The tests are then brought into the order that they
have in one process, as all processes must have the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest


class SharedCollection:
    def __init__(self, process: str) -> None:
        self.random = random.Random(process)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        report = yield
        if isinstance(collector, pytest.Directory):
            report.result = self.random.sample(report.result, len(report.result))
        return report

    @pytest.hookimpl(tryfirst=True)  # before pytest groups the tests by the parameters of fixtures
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: item.path.parts)
