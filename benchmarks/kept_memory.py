"""What keeping memory between reads gains, and costs: ``python -m benchmarks.kept_memory``.

Each line compares processes that keep none with others that keep 256 MiB (``TFRECORD_IO_KEPT_BYTES=268435456``), in
turn: the least CPU time of repeated reads on one thread, and what is resident after the last result is dropped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.memory import status
from benchmarks.readers import library
from benchmarks.workloads import PLAIN, WORKLOADS

ROUNDS, REPEATS = 5, 10
KEPT = str(256 << 20)


def measure(path: str) -> dict[str, float]:
    """Read a file repeatedly in this process."""
    tfr = library()
    seconds = []
    for _ in range(REPEATS):
        begin = time.process_time()
        table = tfr.read_table(tfr.dataset(path, threads=1))
        seconds.append(time.process_time() - begin)
        del table
    return {"seconds": min(seconds[1:]), "resident": status("VmRSS")}


def compare(path: str) -> str:
    """A line of the table."""
    runs: dict[str, list[dict[str, float]]] = {"0": [], KEPT: []}
    for _ in range(ROUNDS):
        for kept, results in runs.items():
            environment = {**os.environ, "TFRECORD_IO_KEPT_BYTES": kept}
            command = [sys.executable, "-m", "benchmarks.kept_memory", path]
            results.append(json.loads(subprocess.run(command, env=environment, check=True, stdout=-1).stdout))
    none, kept = ([min(result[name] for result in runs[key]) for name in ("seconds", "resident")] for key in runs)
    times = f"{none[0] * 1e3:.1f} ms | {kept[0] * 1e3:.1f} ms | {kept[0] / none[0]:.2f}"
    return f"{times} | {none[1] / 1e6:.0f} MB | {kept[1] / 1e6:.0f} MB |"


def main() -> None:
    if sys.argv[1:]:
        print(json.dumps(measure(sys.argv[1])))
        return
    print("| workload | none kept | kept | ratio | resident, none kept | kept |\n|:--|--:|--:|--:|--:|--:|")
    with TemporaryDirectory() as folder:
        for workload in map(WORKLOADS.__getitem__, PLAIN):
            path = str(Path(folder) / f"{workload.name}.tfrecord")
            library().write_tfrecord(workload.table(workload.rows), path)
            print(f"| {workload.title} | {compare(path)}", flush=True)


if __name__ == "__main__":
    main()
