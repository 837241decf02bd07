"""What `tfr browse` takes: seconds to the first screen, for a jump and a filter, and the memory of its process.

``python -m benchmarks.special.browse FOLDER`` writes its files into the folder once: 10 GB of records of 100 kB without
an index, 10,000,000 rows with a column index, and 1,000 shards for a simulated bucket, each request to which takes
50 ms.
A screen is what the page asks for when it is opened: the page, the columns, the first rows.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa

import tfrecord_io as tfr

ROWS, PER_BATCH = 10_000_000, 100_000
LARGE_RECORDS, LARGE_BYTES = 100_000, 100_000
SHARDS, DELAY = 1000, 0.05


def write_large(path: Path) -> None:
    """10 GB without an index."""
    noise = np.random.default_rng(0).bytes(LARGE_BYTES)
    with tfr.open_writer(path) as writer:
        for first in range(0, LARGE_RECORDS, 1000):
            numbers = np.arange(first, first + 1000)
            writer.write(pa.table({"n": numbers, "payload": [noise] * 1000}))


def write_rows(path: Path) -> None:
    """10,000,000 rows with an index of labels."""

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, ROWS, PER_BATCH):
            n = np.arange(first, first + PER_BATCH)
            yield pa.record_batch({"n": n, "label": n % 1000, "word": pa.array([f"w{x % 97}" for x in n])})

    stream = batches()
    one = next(stream)
    tfr.write_tfrecord(pa.RecordBatchReader.from_batches(one.schema, itertools.chain([one], stream)), path)
    tfr.build_index(path, columns=["label"])


def write_shards(folder: Path) -> None:
    """1,000 shards."""
    tfr.write_tfrecord({"n": np.arange(200_000), "word": ["word"] * 200_000}, folder / f"train@{SHARDS}")


def serve(source: str) -> None:
    """Serve in this process, after its imports; for the bucket, behind a delay."""
    if source.startswith("delayed:"):
        from fsspec import register_implementation
        from fsspec.implementations.local import LocalFileSystem

        class Delayed(LocalFileSystem):
            protocol = "delayed"

            def __getattribute__(self, name: str) -> Any:
                if name in ("ls", "find", "info", "cat_file", "_open", "exists", "glob"):
                    time.sleep(DELAY)
                return super().__getattribute__(name)

        register_implementation("delayed", Delayed)
    with tfr.browse(source, open_page=False) as server:
        print(server.url, flush=True)
        sys.stdin.readline()
        peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        print(int(peak.split()[1]) // 1024, flush=True)


class Browsed:
    """A process that serves a source."""

    def __init__(self, source: str) -> None:
        command = [sys.executable, "-m", "benchmarks.special.browse", "--serve", source]
        begin = time.perf_counter()
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self.started = time.perf_counter() - begin
        self._client = httpx.Client(timeout=60)

    def get(self, name: str, **query: Any) -> Any:
        """The answer to a request of the page."""
        answer = self._client.get(self.url + name, params=query)
        answer.raise_for_status()
        return answer.json() if name else answer.text

    def cpu(self) -> float:
        """Seconds of the processor that the server has used, which others on the machine change little."""
        user, system = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def timed(self, call: Callable[[], Any]) -> tuple[float, str]:
        """Seconds of a call, and these with those of the processor as text."""
        begin, cpu = time.perf_counter(), self.cpu()
        call()
        seconds = time.perf_counter() - begin
        return seconds, f"{seconds:.2f} s (processor {self.cpu() - cpu:.2f} s)"

    def open_screen(self) -> Any:
        """What the page asks for when it is opened."""
        self.get("")
        self.get("info")
        return self.get("rows", first=0, count=25, columns="0,1")

    def wait_for_all(self) -> float:
        """Seconds until all rows are found, by events."""
        begin = time.perf_counter()
        with self._client.stream("GET", self.url + "events") as events:
            for line in events.iter_lines():
                if '"complete": true' in line:
                    break
        return time.perf_counter() - begin

    def end(self) -> int:
        """End the process; its peak of memory in MB."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        peak = int(self._process.stdout.readline())
        self._process.wait(20)
        return peak


def report(folder: Path) -> None:
    """Write the files if they are missing, and print the figures."""
    for name, write in (("large.tfrecord", write_large), ("rows.tfrecord", write_rows), ("shards", write_shards)):
        if not (folder / name).exists():
            write(folder / name)
    large = Browsed(str(folder / "large.tfrecord"))
    print(f"10 GB, no index: process {large.started:.2f} s, first screen {large.timed(large.open_screen)[1]}")
    print(f"  all rows found after {large.wait_for_all():.1f} s; peak {large.end()} MB")
    rows = Browsed(str(folder / "rows.tfrecord"))
    print(f"10,000,000 rows: process {rows.started:.2f} s, first screen {rows.timed(rows.open_screen)[1]}")
    print(f"  all rows found after {rows.wait_for_all():.1f} s")
    places = np.random.default_rng(0).integers(0, ROWS - 25, 50).tolist()
    cpu = rows.cpu()
    jumps = [rows.timed(lambda at=at: rows.get("rows", first=at, count=25, columns="0,1,2"))[0] for at in places]
    each = 1000 * (rows.cpu() - cpu) / len(jumps)
    median, slowest = 1000 * statistics.median(jumps), 1000 * max(jumps)
    print(f"  a jump: median {median:.0f} ms, slowest {slowest:.0f} ms (processor {each:.0f} ms)")

    def search() -> Any:
        while not rows.get("search", where="label == 7")["complete"]:
            pass
        return rows.get("rows", first=0, count=25, columns="0,1,2", where="label == 7")

    print(f"  a filter on an indexed column: {rows.timed(search)[1]}; peak {rows.end()} MB")
    shards = Browsed(f"delayed://{folder.resolve()}/shards")
    screen = shards.timed(shards.open_screen)[1]
    print(f"{SHARDS:,} shards, {1000 * DELAY:.0f} ms a request: process {shards.started:.2f} s, first screen {screen}")
    print(f"  peak {shards.end()} MB")


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    else:
        os.makedirs(sys.argv[1], exist_ok=True)
        report(Path(sys.argv[1]))
