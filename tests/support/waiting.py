"""Wait for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(condition: Callable[[], T], seconds: float = 20) -> T:
    """Ask again and again until the answer is true; returns the answer, or fails when the time is over."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s, and the answer is {answer!r}"
        time.sleep(0.005)
    return answer
