"""How much memory a call takes at a time, of Python and NumPy: the same on any machine, unlike that of a process."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any


def peak(act: Callable[[], Any]) -> int:
    """The most bytes that are allocated at a time during a call, beyond those before it."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
