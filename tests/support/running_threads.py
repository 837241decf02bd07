"""The threads that tfrecord_io has started in this test and that have not ended."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

_earlier: frozenset[threading.Thread] = frozenset()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Leave out the threads that run now: what an earlier test dropped in a reference cycle ends with the cycle."""
    global _earlier
    _earlier = frozenset(threading.enumerate())


def running(name: str = "") -> list[threading.Thread]:
    """Running threads whose name begins like this."""
    threads = [thread for thread in threading.enumerate() if thread not in _earlier]
    return [thread for thread in threads if thread.name.startswith(f"tfrecord_io {name}")]


def ends(thread: threading.Thread) -> bool:
    """True if a thread ends within ten seconds."""
    thread.join(10)
    return not thread.is_alive()


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


def _slow() -> int:
    time.sleep(0.001)
    return 1


def tasks_until_ctrl_c() -> Iterator[Callable[[], int]]:
    """A thousand tasks; this process is sent Ctrl-C when the 21st is asked for."""
    for number in range(1000):
        if number == 20:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        yield _slow


def ends_by_ctrl_c(results: Iterator[Any]) -> None:
    """Check that Ctrl-C is raised while results are taken, and that no result comes afterwards."""
    # A shell starts processes in the background with this signal ignored.
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(results)
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert list(results) == []
