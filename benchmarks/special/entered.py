"""How many functions and modules of tfrecord_io the usual calls enter: ``make bench BENCH_ARGS=--entered``.

Each call is made once before it is counted: what only the first call in a process does is left out. A function is a
file and a qualified name.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import tfrecord_io as tfr

PACKAGE = os.path.dirname(tfr.__file__)
ROWS = 2000
FRAME = pd.DataFrame(
    {
        "id": np.arange(ROWS),
        "x": np.arange(ROWS, dtype="f4"),
        "t": [f"w{number}" for number in range(ROWS)],
        "m": pd.array([None if number % 7 == 0 else number for number in range(ROWS)], "Int64"),
    }
)


def iterate() -> None:
    for _ in tfr.iter_arrays("a.tfrecord", batch_size=100, shuffle_buffer=500, seed=1, columns=["id", "x"]):
        pass


CALLS: dict[str, Callable[[], object]] = {
    "read_tfrecord": lambda: tfr.read_tfrecord("a.tfrecord"),
    "read_table with filters": lambda: tfr.read_table("a.tfrecord", filters=[("id", "<", 9)]),
    "write_tfrecord": lambda: tfr.write_tfrecord(FRAME, "b.tfrecord", mode="overwrite"),
    "iter_arrays with a shuffle buffer": iterate,
    "write_tfrecord of 4 shards": lambda: tfr.write_tfrecord(FRAME, "c@4", mode="overwrite"),
    "write_tfrecord by folders": lambda: tfr.write_tfrecord(FRAME[:40], "p/", partition_by="m", mode="overwrite"),
    "write_tfrecord that appends": lambda: tfr.write_tfrecord(FRAME, "d/", mode="append"),
    "count": lambda: tfr.count("a.tfrecord"),
}


def entered(call: Callable[[], object]) -> dict[str, int]:
    call()
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            seen.add((code.co_filename, code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {"functions": len(seen), "modules": len({file for file, _ in seen})}


def measure(_: int) -> tuple[str, bool]:
    """A table with a row for each call; nothing can fail."""
    rows = ["| call | functions | modules |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        tfr.write_tfrecord(FRAME, "a.tfrecord")
        for name, call in CALLS.items():
            found = entered(call)
            rows.append(f"| {name} | {found['functions']} | {found['modules']} |")
    return "\n".join(rows), True
