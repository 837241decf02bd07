"""CRC-32C (Castagnoli), unmasked: the kernel's, for modules below the engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache  # not at import: the stub of the package is written where nothing is installed
def _implementation() -> Callable[[Any, int], int]:
    from numpy import frombuffer, uint8

    from tfrecord_io._native import _kernel

    return lambda data, value: _kernel.crc32c(frombuffer(data, uint8), value)


def crc32c(data: Any, value: int = 0) -> int:
    """The CRC-32C of `data`, appended to what gave `value`."""
    return int(_implementation()(data, value))
