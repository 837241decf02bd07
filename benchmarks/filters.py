"""``filters=`` in comparison with reading everything and then filtering, by the share of rows that pass.

The files have an embedded schema and a column of random numbers from 0 to 99, which the condition is about. The ways
alternate, in a process for each shape; the best time counts. CPU time is that of all threads: on a shared machine it is
steadier than time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.readers import library
from benchmarks.results import Row
from benchmarks.workloads import DATA, Variant, generator

RATES = (0, 1, 50, 99, 100)  # per cent of the rows
COLUMN = "pass"


def _numbers(rng: np.random.Generator, rows: int, missing: float = 0.0) -> pa.Array:
    return pa.array(rng.integers(0, 1000, rows), mask=rng.random(rows) < missing)


def _wide(rng: np.random.Generator, rows: int) -> dict[str, pa.Array]:
    values = pa.array(rng.random(rows * 768, np.float32))
    return {"vector": pa.FixedSizeListArray.from_arrays(values, 768)}


def _images(rng: np.random.Generator, rows: int) -> dict[str, pa.Array]:
    return {"image": pa.array([rng.bytes(int(size)) for size in rng.integers(3_000, 12_000, rows)])}


def _tutorial(rng: np.random.Generator, rows: int) -> dict[str, pa.Array]:
    names = pa.array(["cat", "dog", "chicken", "horse", "goat"]).take(pa.array(rng.integers(0, 5, rows)))
    return {"feature0": pa.array(rng.random(rows) < 0.5), "feature1": _numbers(rng, rows), "feature2": names}


def _scalars(rng: np.random.Generator, rows: int) -> dict[str, pa.Array]:
    floats = {f"f{i}": pa.array(rng.random(rows, np.float32)) for i in range(20)}
    return floats | {f"i{i}": _numbers(rng, rows) for i in range(20)}


def _sparse(rng: np.random.Generator, rows: int) -> dict[str, pa.Array]:
    return {f"c{i}": _numbers(rng, rows, missing=0.9) for i in range(20)}


def _ragged(rng: np.random.Generator, rows: int) -> dict[str, pa.Array]:
    offsets = np.concatenate([[0], rng.integers(0, 60, rows).cumsum()]).astype(np.int32)
    return {"tokens": pa.ListArray.from_arrays(pa.array(offsets), pa.array(rng.integers(0, 30_000, int(offsets[-1]))))}


SHAPES: dict[str, tuple[str, int, Callable[[np.random.Generator, int], dict[str, pa.Array]]]] = {
    "wide": ("60 k × 768 floats", 60_000, _wide),
    "images": ("20 k × image of 3 to 12 kB", 20_000, _images),
    "tutorial": ("1 M × 3 scalars", 1_000_000, _tutorial),
    "scalars": ("200 k × 40 scalars", 200_000, _scalars),
    "sparse": ("500 k × 20 scalars, 90 % missing", 500_000, _sparse),
    "ragged": ("400 k × list of up to 60 integers", 400_000, _ragged),
}


def file_of(shape: str) -> Path:
    """The file of a shape, written if there is none."""
    path = DATA / f"filters-{shape}{Variant.current().suffix}.tfrecord"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        _, rows, make = SHAPES[shape]
        rows, rng = max(1, round(rows * Variant.current().share)), generator("filters", shape)
        columns = {COLUMN: pa.array(rng.integers(0, 100, rows)), **make(rng, rows)}
        library().write_tfrecord(pa.table(columns), path)
    return path


def measure(shape: str, threads: int, rate: int, repeat: int) -> dict[str, float]:
    """Seconds and CPU seconds of both ways, of a whole read and of a stream."""
    import pyarrow.compute as pc

    tfr, path, condition = library(), str(file_of(shape)), pc.field(COLUMN) < rate

    def streamed(filters: Any) -> list[pa.RecordBatch]:
        with tfr.open_reader(tfr.dataset(path, threads=threads), filters=filters) as reader:
            return list(reader) if filters is not None else [batch.filter(condition) for batch in reader]

    ways: dict[str, Callable[[], Any]] = {
        "table, then filter": lambda: tfr.read_table(tfr.dataset(path, threads=threads)).filter(condition),
        "table": lambda: tfr.read_table(tfr.dataset(path, threads=threads), filters=condition),
        "stream, then filter": lambda: streamed(None),
        "stream": lambda: streamed(condition),
    }
    best: dict[str, float] = {}
    for _ in range(repeat):
        for name, way in ways.items():
            begin, begin_cpu = time.perf_counter(), time.process_time()
            result = way()
            for key, seconds in (
                (name, time.perf_counter() - begin),
                (f"{name}, CPU", time.process_time() - begin_cpu),
            ):
                best[key] = min(best.get(key, seconds), round(seconds, 5))
            del result
    return best


def rows(settings: Any) -> Iterator[Row]:
    """Each share of rows that pass, of each shape."""
    for shape in SHAPES:
        print(f"filters: {shape} …", file=sys.stderr, flush=True)
        for threads in settings.threads[:2]:
            command = [sys.executable, "-m", "benchmarks.filters", shape, str(threads), str(settings.repeat)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                yield Row("filters", shape, f"{threads}", error=done.stderr.strip().splitlines()[-1][:300])
                continue
            for rate, numbers in json.loads(done.stdout).items():
                yield Row("filters", shape, f"{rate} %, {threads} thread{'s' * (threads > 1)}", numbers=numbers)


if __name__ == "__main__":
    arguments = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps({rate: measure(*arguments[:2], rate, arguments[2]) for rate in RATES}))
