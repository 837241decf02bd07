"""Fault 63: a read or write that may not use more memory gives a MemoryError, and the process goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from faulty_calls import FaultyProcess
from rounds import COMPLETE

ROWS = 1500  # of 16 kB
MIB = 1 << 20
ROOMS = [*(range(0, 60, 6) if COMPLETE else (0, 12)), 600]  # MiB; the rows have 24

pytestmark = [
    pytest.mark.fault(63),
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="limits address space, and reads its size in /proc"
    ),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, native_engine: None) -> Iterator[FaultyProcess]:
    """Without the address space that Arrow's other pools and the arenas of threads have reserved before the limit."""
    folder = tmp_path_factory.mktemp("limits")
    with FaultyProcess(folder, None, ARROW_DEFAULT_MEMORY_POOL="system", MALLOC_ARENA_MAX="1") as process:
        yield process


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "a.tfrecord"
    noise = np.random.default_rng(0)
    tfr.write_tfrecord({"n": range(ROWS), "x": [noise.bytes(16_000) for _ in range(ROWS)]}, path)
    return path


@pytest.mark.parametrize(
    "way",
    [
        *("read_table", "read_arrays", "write", "write gzip"),
        *("read_table, threads", "open_reader, threads", "iter_arrays, threads", "write gzip, threads"),
    ],
)
def test_a_limit_of_memory(
    run: FaultyProcess, large: Path, tmp_path: Path, engine: str, way: str, record_property: Any
) -> None:
    """The whole result or a MemoryError; then the same call without the limit, in the same process, is right."""
    if engine == "reference_engine":
        pytest.skip("protobuf's extension module does not check its allocations: a segmentation fault in upb")
    rows = repr(1 if way.startswith("write") else ROWS)
    target, refused = tmp_path / "target.tfrecord", 0
    for room in ROOMS:
        target.write_bytes(b"old")
        answer = run(
            "within",
            room=room * MIB,
            way=way,
            path=str(large),
            target=str(target),
            environment={"TFRECORD_IO_ENGINE": engine},
        )
        assert answer["status"] == 0, room
        if answer["error"] is None:
            assert answer["value"] == rows, room
        else:
            assert "MemoryError" in answer["error"]["classes"], answer["error"]["trace"]
            assert answer["target"] == "old", room
            refused += 1
        assert answer["afterwards"]["value"] == rows, answer["afterwards"]
        assert os.listdir(tmp_path) == [target.name]
    assert answer["error"] is None
    assert refused > 0
    record_property("calls under limits of memory, MemoryError or the whole result", len(ROOMS))
