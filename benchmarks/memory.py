"""Memory at the peak, beyond that of the process before the call: whole reads by result, and streams.

Each measurement is a fresh process that has imported the library and read a small file in the same way. The kernel of
the system reports the peak of resident memory (``VmHWM``, which is reset before the call), so this part needs Linux.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.readers import library
from benchmarks.results import Row
from benchmarks.workload_files import ensure, records
from benchmarks.workloads import WORKLOADS

WHOLE = ("read_table", "read_tfrecord", "read_arrays")
STREAMS = ("open_reader", "open_reader, sample", "iter_arrays")
SAMPLE = 1000


def status(name: str) -> int:
    """A line of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def peak(work: Callable[[], Any]) -> tuple[int, Any]:
    """Bytes at the peak of a call, beyond those before it, and its result."""
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    result = work()
    return status("VmHWM") - before, result


def _consume(batches: Any) -> int:
    count = 0
    for batch in batches:
        del batch  # before the next one is made
        count += 1
    return count


def call(mode: str, path: str, threads: int) -> Any:
    """Read a file in one of the modes."""
    tfr = library()
    source = tfr.dataset(path, threads=threads)
    if mode == "read_arrays":
        return tfr.read_arrays(source, missing="mask")
    if mode == "iter_arrays":
        return _consume(tfr.iter_arrays(source, batch_size=256, missing="mask", ragged="object"))
    if mode.startswith("open_reader"):
        schema = None if "sample" in mode else tfr.read_table(path, limit=SAMPLE).schema
        with tfr.open_reader(tfr.dataset(path, threads=threads, sample=SAMPLE), schema=schema) as reader:
            return _consume(reader)
    return getattr(tfr, mode)(source)


def size(result: Any) -> int:
    """Bytes of a result: of a table, a DataFrame or arrays; 0 of a stream."""
    if isinstance(result, dict):
        return sum(array.nbytes for array in result.values())
    if hasattr(result, "nbytes"):
        return int(result.nbytes)
    if hasattr(result, "memory_usage"):
        return int(result.memory_usage(index=False, deep=True).sum())
    return 0


def measure(mode: str, name: str, threads: int) -> dict[str, float]:
    """Peak of one read, the bytes of the table, the largest record and the file."""
    path = WORKLOADS[name].path
    with TemporaryDirectory() as folder:
        small = Path(folder, "small.tfrecord")
        small.write_bytes(b"".join(records(path, 3)))
        call(mode, str(small), threads)
    top, result = peak(lambda: call(mode, str(path), threads))
    return {"peak": top, "result": size(result), "file": path.stat().st_size}


def rows(settings: Any) -> Iterator[Row]:
    """The peaks of whole reads and of streams on each workload."""
    for name in settings.workloads:
        ensure([name])
        print(f"memory: {name} …", file=sys.stderr, flush=True)
        for threads in settings.threads[:2]:
            for mode in (*WHOLE, *STREAMS):
                command = [sys.executable, "-m", "benchmarks.memory", mode, name, str(threads)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                contender = f"{mode}, {threads} thread{'s' * (threads > 1)}"
                if done.returncode:
                    yield Row("memory", name, contender, error=done.stderr.strip().splitlines()[-1][:300])
                else:
                    yield Row("memory", name, contender, numbers=json.loads(done.stdout))


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
