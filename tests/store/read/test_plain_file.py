"""An open file is read at any offset, and stays open as long as it is referred to."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tfrecord_io.store.read.plain_file import OpenPlainFile


def test_bytes_are_those_of_the_open_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    with path.open("rb") as raw:
        file = OpenPlainFile(raw.fileno(), 10)
    path.unlink()
    buffer = np.zeros(4, np.uint8)
    assert (file.read_into(buffer, 3), buffer.tobytes()) == (4, b"3456")
    assert (file.read_into(buffer, 8), buffer[:2].tobytes()) == (2, b"89")


def test_the_descriptor_is_closed_with_the_last_reference(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x")
    before = len(os.listdir("/proc/self/fd"))
    with path.open("rb") as raw:
        file = OpenPlainFile(raw.fileno(), 1)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    del file
    assert len(os.listdir("/proc/self/fd")) == before
