"""What a call takes for a few records: the first one in a process, and later ones; beside pyarrow's Parquet reader.

``python -m benchmarks.latency CALL REPEAT`` is one fresh process, in which everything is imported before.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.readers import library
from benchmarks.results import Row
from benchmarks.workload_files import ensure, records
from benchmarks.workloads import WORKLOADS, Variant

RECORDS = 10
CASE = f"{RECORDS} records of the tutorial"
CALLS = ("read_table", "read_tfrecord", "read_arrays", "open_reader", "pyarrow.parquet", "pandas.read_parquet")


def files() -> tuple[Path, Path]:
    """A TFRecord file and a Parquet file with the same rows."""
    import pyarrow.parquet as pq

    tutorial = WORKLOADS["tutorial"]
    path = tutorial.path.with_name(f"few{Variant.current().suffix}.tfrecord")
    parquet = path.with_suffix(".parquet")
    if not parquet.exists():
        ensure([tutorial.name])
        path.write_bytes(b"".join(records(tutorial.path, RECORDS)))
        pq.write_table(library().read_table(path), parquet)
    return path, parquet


def measure(call: str, repeat: int) -> dict[str, float]:
    """Seconds of the first call, and the median of later ones."""
    import pandas as pd
    import pyarrow.parquet as pq

    tfr, (path, parquet) = library(), map(str, files())

    def streamed() -> list[Any]:
        with tfr.open_reader(path) as reader:
            return list(reader)

    calls: dict[str, Callable[[], Any]] = {
        "open_reader": streamed,
        "pyarrow.parquet": lambda: pq.read_table(parquet),
        "pandas.read_parquet": lambda: pd.read_parquet(parquet),
    }
    run = calls.get(call) or (lambda: getattr(tfr, call)(path))
    times = []
    for _ in range(1 + 50 * repeat):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return {"first": round(times[0], 7), "later": round(statistics.median(times[1:]), 7)}


def rows(settings: Any) -> Iterator[Row]:
    """The calls, each in a process of its own."""
    files()
    for call in CALLS:
        print(f"latency: {call} …", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "benchmarks.latency", call, str(settings.repeat)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
        numbers = json.loads(done.stdout)
        role = "peer" if "." in call else "own"
        yield Row("latency", CASE, call, role, numbers["later"], numbers={"first": numbers["first"]})


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
