"""The share of a read that is serial, and what more cores would give by Amdahl's law.

Two estimates, for want of a machine with many cores. From times: with one thread a read takes T₁, with two T₂; if a
share s cannot be divided, T₂ = T₁ (s + (1 − s) / 2). That share also contains what threads wait for, such as memory.
By parts: the CPU time of a read with one thread outside of the functions that other threads would call, which release
the GIL. CPU time hardly depends on what else runs.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from benchmarks.readers import library
from benchmarks.results import Row
from benchmarks.workload_files import ensure
from benchmarks.workloads import WORKLOADS

CORES = (2, 16, 64)
PARALLEL = (
    "tfrecord_io.bytes.engine.native:NativeDecoder.feed",
    "tfrecord_io.bytes.engine.native:NativeDecoder.feed_file",
    "tfrecord_io.store.read.plain_file:OpenPlainFile.read_into",
    "tfrecord_io.bytes.compression.stream:PlainStream.readinto",
)
PARTS = {  # of the serial time; the rest is opening, freeing and the work between windows
    "plan": ("tfrecord_io.read.source_resolution:plan_scan",),
    "arrays": ("tfrecord_io.columns.arrow.decode.batch_builder:BatchBuilder.batch",),
}


def serial_share(one: float, two: float) -> float:
    """The serial share by the times with one thread and two, within 0 and 1.

    >>> serial_share(1.0, 0.75)
    0.5
    """
    return min(1.0, max(0.0, 2 * two / one - 1))


def speedup(share: float, cores: int) -> float:
    """Amdahl's law.

    >>> speedup(0.5, 2)
    1.3333333333333333
    """
    return 1 / (share + (1 - share) / cores)


class Stopwatch:
    """The CPU time of this thread in some functions, without that of the functions of other stopwatches inside."""

    running: ClassVar[list[Stopwatch]] = []

    def __init__(self, functions: Iterable[str]) -> None:
        self.seconds = 0.0
        for name in functions:
            module, _, path = name.partition(":")
            owner: Any = importlib.import_module(module)
            *outer, last = path.split(".")
            for each in outer:
                owner = getattr(owner, each)
            setattr(owner, last, self._timed(getattr(owner, last)))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **keywords: Any) -> Any:
            begin = time.thread_time()
            self.running.append(self)
            try:
                return function(*arguments, **keywords)
            finally:
                seconds = time.thread_time() - begin
                self.running.pop()
                self.seconds += seconds
                if self.running:
                    self.running[-1].seconds -= seconds

        return timed


def parts_of_a_read(path: str, repeat: int) -> dict[str, float]:
    """CPU seconds of a read with one thread: all, what is parallel, and the parts of what is not; the least of each."""
    tfr = library()
    watches = {"parallel": Stopwatch(PARALLEL)} | {name: Stopwatch(functions) for name, functions in PARTS.items()}
    least: dict[str, float] = {}
    for _ in range(3 * repeat):
        for watch in watches.values():
            watch.seconds = 0.0
        begin = time.thread_time()
        table = tfr.read_table(tfr.dataset(path, threads=1))
        found = {"all": time.thread_time() - begin} | {name: watch.seconds for name, watch in watches.items()}
        del table
        found["rest"] = found["all"] - sum(watch.seconds for watch in watches.values())
        least = {name: min(seconds, least.get(name, seconds)) for name, seconds in found.items()}
    return least


def measure(name: str, repeat: int) -> dict[str, float]:
    """Times with one thread and two, alternately, and both shares."""
    tfr, path = library(), str(WORKLOADS[name].path)
    best = {1: float("inf"), 2: float("inf")}
    for _ in range(repeat):
        for threads in best:
            begin = time.perf_counter()
            table = tfr.read_table(tfr.dataset(path, threads=threads))
            best[threads] = min(best[threads], time.perf_counter() - begin)
            del table
    parts = parts_of_a_read(path, repeat)
    serial = sum(parts[name] for name in (*PARTS, "rest"))
    shares = {"by_times": serial_share(best[1], best[2]), "by_parts": serial / (serial + parts["parallel"])}
    numbers = {"one": best[1], "two": best[2], **shares, **{f"cpu {name}": parts[name] for name in parts}}
    return {name: round(value, 5) for name, value in numbers.items()}


def rows(settings: Any) -> Iterator[Row]:
    """The serial share of a read of each workload."""
    for name in settings.workloads:
        ensure([name])
        print(f"serial: {name} …", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "benchmarks.serial", name, str(settings.repeat)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        yield Row("serial", name, "read_table", numbers=json.loads(done.stdout))


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
