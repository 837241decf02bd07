"""The first table of the README: ``make bench BENCH_ARGS=--footprint``.

Import: fresh processes, alternating, until the functions that read are available; the best time counts. Read: the
records of TensorFlow's tutorial, as in `benchmarks.readers`. Size: the installed files of a package and of everything
it requires, without extras. The exit code is 1 if TensorFlow is better in any of the three.
"""

from __future__ import annotations

import importlib.metadata
import math
import subprocess
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.contest import Contender, Result, contest
from benchmarks.workload_files import ensure
from benchmarks.workloads import WORKLOADS

IMPORTS = {
    "tfrecord_io": "import tfrecord_io; tfrecord_io.read_table, tfrecord_io.write_tfrecord",
    "tensorflow": "import tensorflow; tensorflow.data.TFRecordDataset, tensorflow.io.parse_example",
}
PROGRAM = "import time; begin = time.perf_counter(); {}; print(time.perf_counter() - begin)"
DISTRIBUTIONS = ("tensorflow-cpu", "tensorflow")


def import_seconds(repeat: int) -> list[float]:
    """The best time of each import."""
    best = dict.fromkeys(IMPORTS, math.inf)
    for _ in range(repeat + 1):  # the first fills the page cache
        for name, statement in IMPORTS.items():
            command = [sys.executable, "-c", PROGRAM.format(statement)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            best[name] = min(best[name], float(done.stdout.split()[-1]))
    return list(best.values())


def read_seconds(repeat: int, budget: float) -> list[float]:
    """The best time of each library for the tutorial's records; inf if it failed."""
    workload = WORKLOADS["tutorial"]
    ensure([workload.name])
    own = Contender.of("benchmarks.readers:TfrecordIo", threads=2)
    results: list[Result] = contest([own, Contender.of("benchmarks.readers:TfData")], workload, repeat, budget)
    return [result.seconds if result.error is None else math.inf for result in results]


def required(name: str) -> set[str]:
    """Names of a distribution and of all that it requires here, without extras."""
    from packaging.requirements import Requirement  # TensorFlow requires it

    names: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop().lower().replace("_", "-")
        if current in names:
            continue
        names.add(current)
        requirements = map(Requirement, importlib.metadata.requires(current) or ())
        waiting += [r.name for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})]
    return names


def installed_bytes(name: str) -> int:
    """Size of the files of a distribution and of all that it requires."""
    files: set[Path] = set()
    for distribution in required(name):
        files.update(Path(str(file.locate())).resolve() for file in importlib.metadata.files(distribution) or ())
    return sum(file.stat().st_size for file in files if file.is_file())


def tensorflow_distribution() -> str:
    installed = {distribution.name.replace("_", "-") for distribution in importlib.metadata.distributions()}
    return next(name for name in DISTRIBUTIONS if name in installed)


def measure(repeat: int = 7, budget: float = 30.0) -> tuple[str, bool]:
    """Return the table, and whether tfrecord_io is better throughout."""
    peer = tensorflow_distribution()
    imports, reads = import_seconds(repeat), read_seconds(repeat, budget)
    sizes = [installed_bytes("tfrecord_io"), installed_bytes(peer)]
    rows = []
    for title, (own, other), unit, factor in (
        ("import", imports, "s", 1),
        (f"read {WORKLOADS['tutorial'].title}, 50 MB", reads, "s", 1),
        ("installed, with dependencies", sizes, "MB", 1e-6),
    ):
        shown = [f"{value * factor:.{0 if unit == 'MB' else 3}f} {unit}" for value in (own, other)]
        rows.append([title, *shown, f"{other / own:.1f}×"])
    passed = all(own < other for own, other in (imports, reads, sizes))
    return report.table(["", "tfrecord_io", peer, "ratio"], rows), passed
