"""Files that are read from their start to their end: compressed ones, and one in a bucket, with 1, 2, 4 and 8 threads.

``make bench BENCH_ARGS=--streams``. The exit code is 1 if reading with 8 threads takes 10 % longer than with 2.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fsspec.asyn import AsyncFileSystem

import tfrecord_io as tfr
from benchmarks.workloads import WORKLOADS

SHAPES = ("tutorial", "tokens", "images")
STORAGES = ("gzip", "zstd", "bucket")
THREADS = (1, 2, 4, 8)
DELAY_SECONDS = 0.005
MOST = 1.1  # times as long, with the most threads, as with two


class MemoryBucket(AsyncFileSystem):
    """Objects in memory; each request is answered after `DELAY_SECONDS`."""

    protocol = "benchmark"
    cachable = False

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        super().__init__()
        self._objects = dict(objects)

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        if path not in self._objects:
            raise FileNotFoundError(path)
        return {"name": path, "size": len(self._objects[path]), "type": "file"}

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        return []

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        await asyncio.sleep(DELAY_SECONDS)
        return self._objects[path][start:end]


def _stored(folder: Path, shape: str, storage: str) -> tuple[str, dict[str, Any]]:
    """Write a workload; returns its path, and the keywords to read it there."""
    workload = WORKLOADS[shape]
    path = folder / f"{shape}-{storage}.tfrecord"
    compression = None if storage == "bucket" else storage
    tfr.write_tfrecord(workload.table(workload.rows), path, compression=compression, embed_schema=False)
    if storage != "bucket":
        return str(path), {}
    bucket = MemoryBucket({"/a.tfrecord": path.read_bytes()})
    path.unlink()
    return "/a.tfrecord", {"storage_options": bucket}


def _reads(path: str, where: Mapping[str, Any], rows: int) -> Iterator[tuple[str, Callable[[int], None]]]:
    def whole(threads: int) -> None:
        assert tfr.read_table(tfr.dataset(path, threads=threads, **where)).num_rows == rows

    def stream(threads: int) -> None:
        with tfr.open_reader(tfr.dataset(path, threads=threads, **where)) as reader:
            assert sum(len(batch) for batch in reader) == rows

    yield "read_table", whole
    yield "open_reader", stream


def measure(repeat: int = 5, shapes: tuple[str, ...] = SHAPES) -> tuple[str, bool]:
    """The best time of each case in ms; returns a table, and whether 8 threads are about as fast as 2."""
    lines = ["| shape | stored | read by | " + " | ".join(f"{n} threads" for n in THREADS) + " |", "|---" * 7 + "|"]
    passed = True
    for shape in shapes:
        for storage in STORAGES:
            with TemporaryDirectory() as folder:
                path, where = _stored(Path(folder), shape, storage)
                for name, read in _reads(path, where, WORKLOADS[shape].rows):
                    best = dict.fromkeys(THREADS, float("inf"))
                    for _ in range(repeat):
                        for threads in THREADS:
                            begin = time.perf_counter()
                            read(threads)
                            best[threads] = min(best[threads], time.perf_counter() - begin)
                    passed &= best[THREADS[-1]] <= MOST * best[2]
                    times = " | ".join(f"{1000 * best[threads]:.1f}" for threads in THREADS)
                    lines.append(f"| {shape} | {storage} | {name} | {times} |")
                    print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines), passed


if __name__ == "__main__":
    report, is_passed = measure(shapes=tuple(sys.argv[1:]) or SHAPES)
    print(report)
    sys.exit(not is_passed)
