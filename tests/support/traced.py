"""How much memory a call takes at a time, of Python and NumPy: the same on any machine, unlike that of a process."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any


def peak(act: Callable[[], Any]) -> int:
    """Peak of the bytes that a call allocates, beyond those allocated before."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
