"""Tables and DataFrames beside Parquet: each side reads the file that it wrote of the same table.

``make bench BENCH_ARGS=--parquet``. All calls have their defaults, on every side; they take turns in one process, and
the best time of each counts. Needs no TensorFlow. The exit code is 1 if a ratio is above `MAX_RATIO`.
"""

from __future__ import annotations

import gc
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.readers import library
from benchmarks.results import geometric_mean
from benchmarks.workloads import WORKLOADS, Workload

MAX_RATIO = 1.1
CALLS = {  # ours, Parquet's
    "read_table": "pq.read_table",
    "read_tfrecord": "pd.read_parquet",
    "write_tfrecord(table)": "pq.write_table",
    "write_tfrecord(df)": "df.to_parquet",
}
PACKAGES = ("pandas", "pyarrow", "numpy")
Seconds = dict[str, float]


NAMES = "tutorial wide tokens ids log images vectors detection sparse clicks documents multihot"
SHAPES = tuple(WORKLOADS[name] for name in NAMES.split())


def _timed(calls: dict[str, Callable[[], Any]], repeat: int) -> Seconds:
    """The best time of each call, in turns."""
    best = dict.fromkeys(calls, math.inf)
    for _ in range(repeat):
        for name, call in calls.items():
            gc.collect()
            begin = time.perf_counter()
            result = call()
            best[name] = min(best[name], time.perf_counter() - begin)
            del result
    return best


def seconds(workload: Workload, repeat: int, folder: Path) -> Seconds:
    """The best time of each call of both sides."""
    import pandas as pd
    import pyarrow.parquet as pq

    tfr, table = library(), workload.table(workload.rows)
    own, other = str(folder / "own.tfrecord"), str(folder / "other.parquet")
    written = str(folder / "written")
    tfr.write_tfrecord(table, own)
    pq.write_table(table, other)
    frame, parquet_frame = tfr.read_tfrecord(own), pd.read_parquet(other)
    calls: dict[str, Callable[[], Any]] = {
        "read_table": lambda: tfr.read_table(own),
        "pq.read_table": lambda: pq.read_table(other),
        "read_tfrecord": lambda: tfr.read_tfrecord(own),
        "pd.read_parquet": lambda: pd.read_parquet(other),
        "write_tfrecord(table)": lambda: tfr.write_tfrecord(table, f"{written}.tfrecord", mode="overwrite"),
        "pq.write_table": lambda: pq.write_table(table, f"{written}.parquet"),
        "write_tfrecord(df)": lambda: tfr.write_tfrecord(frame, f"{written}.tfrecord", mode="overwrite"),
        "df.to_parquet": lambda: parquet_frame.to_parquet(f"{written}.parquet"),
    }
    return _timed(calls, repeat)


def measure(repeat: int = 7) -> tuple[str, bool]:
    """Run all; return the table, and whether no ratio is above `MAX_RATIO`."""
    ratios: dict[str, list[float]] = {own: [] for own in CALLS}
    body = []
    for workload in SHAPES:
        print(f"parquet: {workload.name} …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            times = seconds(workload, repeat, Path(folder))
        line = [workload.title]
        for own, other in CALLS.items():
            ratios[own].append(times[own] / times[other])
            line.append(f"{times[own]:.3f} s, {ratios[own][-1]:.2f}")
        body.append(line)
    body.append(["geometric mean", *(f"{geometric_mean(found):.2f}" for found in ratios.values())])
    text = report.table(["workload", *(f"{own} ÷ {other}" for own, other in CALLS.items())], body)
    return text, all(ratio <= MAX_RATIO for found in ratios.values() for ratio in found)
