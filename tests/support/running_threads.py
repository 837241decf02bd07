"""The threads that tfrecord_io has started in this test and that have not ended."""

from __future__ import annotations

import gc
import threading

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


def collect_garbage() -> None:
    """`gc.collect()` that collects: it does nothing while another thread does, in whose finalizers this one may run."""
    collectors: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if info["generation"] == 2:
            collectors.append(threading.get_ident())

    gc.callbacks.append(note)
    try:
        while threading.get_ident() not in collectors:
            gc.collect()
    finally:
        gc.callbacks.remove(note)
