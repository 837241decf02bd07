"""Damaged files for the tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Damage = Callable[[str, int, int], Path]


@pytest.fixture
def flipped(data: Path, tmp_path: Path) -> Damage:
    """``flipped(name, byte, bit)``: a copy of a golden file with one bit turned over; a negative byte counts from the end."""

    def make(name: str, byte: int, bit: int = 0) -> Path:
        content = bytearray((data / name).read_bytes())
        content[byte] ^= 1 << bit
        path = tmp_path / "flipped.tfrecord"
        path.write_bytes(content)
        return path

    return make
