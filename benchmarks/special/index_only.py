"""Columns that a column index has, beside Parquet: the same table, each side reading the file that it wrote.

``make bench BENCH_ARGS=--index_only``. The exit code is 1 if a read takes more than `MOST` times that of Parquet. The
ways alternate, and the best time of each counts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq

import tfrecord_io as tfr

ROWS = 500_000
MOST = 2.0


def _table() -> pa.Table:
    rng = np.random.default_rng(0)
    numbers = {f"I{i}": rng.integers(0, 1000, ROWS) for i in range(13)}
    texts = {f"C{i}": pa.array([f"v{n}" for n in rng.integers(0, 5000, ROWS).tolist()]) for i in range(8)}
    return pa.table({**numbers, **texts, "x": rng.random(ROWS, np.float32)})


def _best(ways: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    times = dict.fromkeys(ways, float("inf"))
    for _ in range(repeat):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            times[name] = min(times[name], time.perf_counter() - begin)
    return times


def measure(repeat: int = 3) -> tuple[str, bool]:
    """Time the reads; return the table, and whether all are fast enough."""
    lines = ["| | index, ms | Parquet, ms | ratio |", "|---|---|---|---|"]
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        path, parquet = str(Path(folder) / "a.tfrecord"), str(Path(folder) / "a.parquet")
        table = _table()
        tfr.write_tfrecord(table, path)
        pq.write_table(table, parquet)
        time.sleep(0.1)  # until the file system distinguishes later changes of the file from its writing
        tfr.build_index(path, columns="*scalars")
        connection = duckdb.connect()
        tfr.register_duckdb(connection, path, name="t")
        dataset, seven, mean = tfr.dataset(path), pc.field("I0") == 7, pl.col("I0").mean()
        reads: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            f"read_table(columns=['{name}'])": (
                lambda name=name: tfr.read_table(path, columns=[name]),  # type: ignore[misc]
                lambda name=name: pq.read_table(parquet, columns=[name]),  # type: ignore[misc]
            )
            for name in ("I0", "x", "C0")
        }
        reads["filter(I0 == 7).count_rows()"] = (
            lambda: dataset.filter(seven).count_rows(),
            lambda: pads.dataset(parquet).count_rows(filter=seven),
        )
        reads["mean of I0 in polars"] = (
            lambda: tfr.scan_polars(path).select(mean).collect(),
            lambda: pl.scan_parquet(parquet).select(mean).collect(),
        )
        reads["mean of I0 in DuckDB"] = (
            lambda: connection.execute("SELECT avg(I0) FROM t").fetchall(),
            lambda: connection.execute(f"SELECT avg(I0) FROM '{parquet}'").fetchall(),
        )
        for name, (ours, theirs) in reads.items():
            best = _best({"ours": ours, "theirs": theirs}, 10 * repeat)
            ratio = best["ours"] / best["theirs"]
            passed &= ratio <= MOST
            lines.append(f"| {name} | {best['ours'] * 1e3:.1f} | {best['theirs'] * 1e3:.1f} | {ratio:.2f} |")
    return "\n".join(lines), passed
