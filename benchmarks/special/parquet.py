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

import numpy as np
import pyarrow as pa

from benchmarks import report
from benchmarks.readers import library
from benchmarks.results import geometric_mean
from benchmarks.workloads import WORKLOADS, Workload, generator, lists, words

MAX_RATIO = 1.1
CALLS = {  # ours, Parquet's
    "read_table": "pq.read_table",
    "read_tfrecord": "pd.read_parquet",
    "write_tfrecord(table)": "pq.write_table",
    "write_tfrecord(df)": "df.to_parquet",
}
PACKAGES = ("pandas", "pyarrow", "numpy")
Seconds = dict[str, float]


def _multihot(rows: int) -> pa.Table:
    """16 lists of 0 to 5 integers, and 16 of as many floats."""
    rng = generator("multihot")
    columns = {}
    for i in range(16):
        lengths = rng.integers(0, 6, rows)
        total = int(lengths.sum())
        columns[f"ids_{i:02}"] = lists(rng.integers(0, 2 ** (4 + i), total), lengths)
        columns[f"weights_{i:02}"] = lists(rng.random(total, np.float32), lengths)
    return pa.table(columns)


def _clicks(rows: int) -> pa.Table:
    """Rows as of Criteo's logs: a label, 13 counts, and 26 categories as texts of 8 bytes."""
    rng = generator("clicks")
    columns: dict[str, Any] = {"label": (rng.random(rows) < 0.03).astype(np.int64)}
    columns |= {f"count_{i:02}": rng.integers(0, 2 ** (2 + i), rows) for i in range(13)}
    columns |= {f"category_{i:02}": words(rng, rows, 8, 8) for i in range(26)}
    return pa.table(columns)


def _documents(rows: int) -> pa.Table:
    """Texts of 0.5 to 6 KB, a URL, and four scalars."""
    rng = generator("documents")
    columns: dict[str, Any] = {"text": words(rng, rows, 500, 6000), "url": words(rng, rows, 20, 90)}
    columns |= {name: rng.integers(0, 2**20, rows) for name in ("tokens", "fetched")}
    columns |= {name: rng.random(rows, np.float32) for name in ("score", "quality")}
    return pa.table(columns)


SHAPES = (
    *(
        WORKLOADS[name]
        for name in ("tutorial", "wide", "tokens", "ids", "log", "images", "vectors", "detection", "sparse")
    ),
    Workload("clicks", "100 k × 14 integers and 26 categories", 100_000, _clicks),
    Workload("documents", "20 k × texts of 0.5–6 KB", 20_000, _documents),
    Workload("multihot", "60 k × 32 lists of 0–5 numbers", 60_000, _multihot),
)


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
