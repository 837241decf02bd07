"""What a row format costs beside Parquet, in bytes and in time: ``python -m benchmarks.special.sizes``.

The table has eight columns as logs and exports have them: numbers that ascend or repeat, times, categories, prices.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.readers import library

ROWS, ROUNDS = 1_000_000, 7


def eight_columns(rows: int = ROWS) -> pa.Table:
    """A table of orders."""
    random = np.random.default_rng(0)
    words = np.array([f"product {number:02}" for number in range(40)])
    seconds = 1_700_000_000 + np.cumsum(random.integers(0, 3, rows))
    return pa.table(
        {
            "id": np.arange(rows),
            "time": pa.array(seconds, pa.timestamp("s")),
            "customer": random.integers(0, 50_000, rows),
            "product": words[random.integers(0, len(words), rows)],
            "country": np.array(["de", "fr", "it", "pl", "us"])[random.integers(0, 5, rows)],
            "count": random.integers(1, 5, rows).astype("int8"),
            "price": (random.integers(100, 10_000, rows) / 100).astype("float32"),
            "paid": random.random(rows) < 0.9,
        }
    )


def least(run: Callable[[], object]) -> float:
    """The least CPU seconds of several runs, of all threads: the machine may be shared."""
    times = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times)


def main() -> None:
    tfr, table = library(), eight_columns()
    print("| file | size | CPU time of the table | of one column |\n|:--|--:|--:|--:|")
    with TemporaryDirectory() as folder:
        for title, name in (("Parquet", "a.parquet"), ("TFRecord", "a.tfrecord"), ("TFRecord, gzip", "a.tfrecord.gz")):
            path = str(Path(folder) / name)
            read = pq.read_table if name.endswith("parquet") else tfr.read_table
            if read is pq.read_table:
                pq.write_table(table, path)
            else:
                tfr.write_tfrecord(table, path)
            times = [least(partial(read, path, columns=columns)) for columns in (None, ["price"])]
            shown = " | ".join(f"{seconds * 1e3:.0f} ms" for seconds in times)
            print(f"| {title} | {os.path.getsize(path) / 1e6:.0f} MB | {shown} |", flush=True)


if __name__ == "__main__":
    main()
