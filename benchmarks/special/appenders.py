"""Processes that append to one dataset in a bucket at the same time: how long the unluckiest append takes.

``python -m benchmarks.special.appenders``; ``--writers 30 --appends 5 --shards 10000`` are the defaults.

Each request takes 20 ms, and the bucket is a process of this machine. The exit code is 1 if an append is lost, or one
takes longer than 8 times the median, and longer than a second.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import fsspec

import tfrecord_io as tfr
from benchmarks.special.remote import object_store
from benchmarks.special.scale import make

DELAY_MS, MB_PER_S = 20, 10_000
TARGET = "s3://bucket/d/"
ADDED = 10**6  # the least value of a row that is added
MOST_OF_MEDIAN, MOST_SECONDS = 8, 1.0


def _append(begin: Any, times: Any, writer: int, appends: int, options: dict[str, Any]) -> None:
    how: dict[str, Any] = {"partition_by": ["day"], "mode": "append", "storage_options": options}
    for _ in range(2):  # imports, which take seconds
        tfr.write_tfrecord({"x": [0], "day": [0]}, f"s3://bucket/imports-{writer}/", **how)
    begin.wait()
    for at in range(appends):
        row, started = {"x": [ADDED + writer * appends + at], "day": [3]}, time.perf_counter()
        tfr.write_tfrecord(row, TARGET, **how)
        times.put(time.perf_counter() - started)


def measure(writers: int, appends: int, shards: int) -> list[float]:
    """Seconds of each append, in ascending order; an error is raised if one is lost."""
    with tempfile.TemporaryDirectory() as folder, object_store(DELAY_MS, MB_PER_S) as options:
        make(Path(folder) / "d", shards)
        files = [path for path in Path(folder, "d").rglob("*") if path.is_file()]
        objects = {f"bucket/{path.relative_to(folder)}": path.read_bytes() for path in files}
        fsspec.filesystem("s3", **options).pipe(objects)
        processes = multiprocessing.get_context("spawn")
        begin, times = processes.Barrier(writers), processes.Queue()
        running = [
            processes.Process(target=_append, args=(begin, times, writer, appends, options))
            for writer in range(writers)
        ]
        for process in running:
            process.start()
        seconds = sorted(times.get(timeout=120) for _ in range(writers * appends))
        for process in running:
            process.join()
        rows = tfr.read_table(TARGET, filters=[("day", "==", 3)], storage_options=options)["x"].to_pylist()
        added = sorted(value for value in rows if value >= ADDED)
        assert added == [*range(ADDED, ADDED + writers * appends)], "an append is lost, or is there twice"
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--writers", type=int, default=30)
    parser.add_argument("--appends", type=int, default=5, help="of each writer, one after the other")
    parser.add_argument("--shards", type=int, default=10_000)
    given = parser.parse_args()
    seconds = measure(given.writers, given.appends, given.shards)
    median, longest = statistics.median(seconds), seconds[-1]
    print(f"{given.writers} writers, {given.appends} appends each, {given.shards:,} shards, {DELAY_MS} ms a request")
    print(f"median {median:.2f} s, longest {longest:.2f} s ({longest / median:.1f} times the median)")
    return 0 if longest <= max(MOST_OF_MEDIAN * median, MOST_SECONDS) else 1


if __name__ == "__main__":
    sys.exit(main())
