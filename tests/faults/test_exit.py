"""A process ends as Python ends it, whatever threads are running: exit status, stderr, threads, descriptors, files."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from rounds import COMPLETE, rounds

ROUNDS = 12 if COMPLETE else 1  # each is a process of its own
START = "import sys, tfrecord_io as tfr\npath = sys.argv[1]\n"
RAISED_IN_A_STEP = """
def train():
    batches = tfr.iter_arrays(path, batch_size=100, epochs=None, seed=0, shuffle_buffer=1000, threads={threads})
    for step, batch in enumerate(batches):
        if step == 5:
            raise ValueError("a bug in the training step")
train()
"""
HELD_BY_A_CYCLE = """
class Holder: pass
holder = Holder()
holder.itself = holder
holder.batches = tfr.iter_arrays(path, batch_size=100, epochs=None, seed=0, shuffle_buffer=1000, threads={threads})
next(holder.batches)
"""
HELD_READER = """
reader = tfr.open_reader(path, batch_size=100, threads={threads})
reader.read_next_batch()
"""
HELD_RECORD_READER = """
records = tfr.RecordReader(path)
next(records)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images in several blocks, so that there is something to read ahead."""
    path = tmp_path_factory.mktemp("exit") / "images.tfrecord"
    tfr.write_tfrecord({"image": np.zeros((20_000, 28, 28), "uint8"), "label": np.arange(20_000) % 10}, path)
    return path


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", START + code, path], capture_output=True, text=True, check=False)


@pytest.mark.storm
@pytest.mark.parametrize(
    ("code", "status", "threads"),
    [
        *((RAISED_IN_A_STEP, 1, threads) for threads in (1, 2, 4)),
        *((HELD_BY_A_CYCLE, 0, threads) for threads in (1, 2, 4)),
        *((HELD_READER, 0, threads) for threads in (1, 2, 4)),
        (HELD_RECORD_READER, 0, 1),
    ],
)
def test_exit_with_threads_running(path: Path, code: str, status: int, threads: int) -> None:
    for _ in range(ROUNDS):
        done = run(code.format(threads=threads), path)
        assert done.returncode == status, done.stderr
        last = done.stderr.strip().splitlines()[-1:]
        assert last == (["ValueError: a bug in the training step"] if status else [])


@pytest.mark.parametrize(
    "abandon",
    [
        lambda path: next(tfr.iter_arrays(path, batch_size=10, shuffle_buffer=50, seed=0, threads=4)),
        lambda path: tfr.open_reader(path, batch_size=10, threads=2).read_next_batch(),
        lambda path: tfr.open_reader(path, batch_size=10, threads=4).read_next_batch(),
        lambda path: next(tfr.RecordReader(path)),
    ],
    ids=["iter_arrays", "read ahead", "decoding threads", "RecordReader"],
)
def test_abandoned_readers_leave_no_threads_and_descriptors(path: Path, abandon: Callable[[Path], Any]) -> None:
    abandon(path)  # what is imported and opened once
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(rounds(200)):
        abandon(path)
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("tfrecord_io"):
            thread.join(10)
            assert not thread.is_alive(), thread.name
    if descriptors:
        assert len(os.listdir("/proc/self/fd")) <= descriptors
