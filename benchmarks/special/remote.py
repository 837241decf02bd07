"""Reading and writing an object store behind a slow link, in relation to its bandwidth.

``make bench BENCH_ARGS=--remote``. The exit code is 1 if reading uses less than 80 % of the bandwidth, or writing less
than 70 %.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

import tfrecord_io as tfr

DELAY_MS = 30
MB_PER_S = 200
ROWS, ROW_BYTES = 2400, 100_000  # 240 MB, like images
MINIMUM = {"write_tfrecord": 0.7, "open_reader": 0.8, "read_table": 0.8}  # of the bandwidth


@contextmanager
def object_store(
    delay_ms: float = DELAY_MS, mb_per_s: float = MB_PER_S, mb_per_s_each: float | None = None
) -> Iterator[dict[str, Any]]:
    """Run the store in a separate process; yields storage_options. `mb_per_s_each` is the rate of a connection."""
    numbers = [delay_ms, mb_per_s, *([] if mb_per_s_each is None else [mb_per_s_each])]
    command = [sys.executable, "-m", "benchmarks.special.object_store", *map(str, numbers)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield {"anon": True, "endpoint_url": f"http://127.0.0.1:{int(server.stdout.readline())}"}
    finally:
        server.communicate()


def _rows() -> pa.Table:
    payload = np.random.default_rng(0).integers(0, 256, ROWS * ROW_BYTES, dtype=np.uint8)
    offsets = np.arange(ROWS + 1, dtype=np.int32) * ROW_BYTES
    image = pa.Array.from_buffers(pa.binary(), ROWS, [None, pa.py_buffer(offsets), pa.py_buffer(payload)])
    return pa.table({"label": np.arange(ROWS), "image": image})


def _timed(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _read(url: str, options: dict[str, Any]) -> None:
    with tfr.open_reader(url, storage_options=options) as reader:
        rows = sum(len(batch) for batch in reader)
    assert rows == ROWS


def _s3fs_reads(url: str, options: dict[str, Any]) -> None:
    import fsspec

    with fsspec.open(url, "rb", **options) as file:
        while file.read(4 << 20):
            pass


def _s3fs_writes(url: str, options: dict[str, Any], size: int) -> None:
    import fsspec

    piece = bytes(4 << 20)
    with fsspec.open(url, "wb", **options) as file:
        for _ in range(size // len(piece)):
            file.write(piece)


def measure(repeat: int = 3) -> tuple[str, bool]:
    """Time both directions; return the table, and whether enough of the bandwidth is used."""
    table = _rows()
    size = ROWS * (ROW_BYTES + 50)
    with object_store() as options:
        url = "s3://bucket/images.tfrecord"
        work: dict[str, Callable[[], Any]] = {
            "write_tfrecord": lambda: tfr.write_tfrecord(table, url, storage_options=options),
            "open_reader": lambda: _read(url, options),
            "read_table": lambda: tfr.read_table(url, storage_options=options),
            "s3fs alone: write": lambda: _s3fs_writes("s3://bucket/zeros", options, size),
            "s3fs alone: read": lambda: _s3fs_reads(url, options),
        }
        lines = [f"{size / 1e6:.0f} MB, {DELAY_MS} ms per request, {MB_PER_S} MB/s; best of {repeat}.", ""]
        lines += ["| | MB/s | of the link |", "|---|---|---|"]
        passed = True
        for name, run in work.items():
            best = min(_timed(run) for _ in range(repeat))
            lines.append(f"| {name} | {size / best / 1e6:.0f} | {size / best / 1e4 / MB_PER_S:.0f} % |")
            passed &= size / best / 1e6 >= MINIMUM.get(name, 0) * MB_PER_S
        head = min(_timed(lambda: tfr.read_table(url, limit=10, storage_options=options)) for _ in range(repeat))
    lines += ["", f"The first 10 records: {head * 1000:.0f} ms."]
    return "\n".join(lines), passed
