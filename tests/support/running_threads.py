"""The threads that tfrecord_io has started in this test and that have not ended."""

from __future__ import annotations

import pytest

from tfrecord_io import background
from tfrecord_io.background import BackgroundThread

_earlier: frozenset[BackgroundThread] = frozenset()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Leave out the threads that run now: what an earlier test dropped in a reference cycle ends with the cycle."""
    global _earlier
    _earlier = frozenset(background._running)


def running(name: str = "") -> list[BackgroundThread]:
    """Those whose name begins like this."""
    threads = list(background._running)
    return [each for each in threads if each not in _earlier and each.name.startswith(f"tfrecord_io {name}")]
