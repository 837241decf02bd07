"""Machine instructions of calls in two checkouts: ``python -m benchmarks.special.instructions ../before``.

Where other programs use the machine, times vary by a tenth, and so does what `make bench-compare` shows. The number of
instructions that a call executes varies by some thousandths. It leaves out what waiting for memory costs.

Both checkouts have a kernel (`make build/kernel/.installed`). Callgrind, of valgrind, counts in one process for each
checkout, on one processor; `c++` compiles the requests by which the process tells it where a call begins and ends.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

_REQUESTS = """
#include <valgrind/callgrind.h>
extern "C" void begin() { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_TOGGLE_COLLECT; }
extern "C" void zero() { CALLGRIND_ZERO_STATS; }
extern "C" void dump(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""
_ROWS, _TIMES = 20_000, 3


def compare(before: Path) -> str:
    """Count in another checkout and in this one; return the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "requests.cc").write_text(_REQUESTS)
        subprocess.run(["c++", "-shared", "-fPIC", "-o", folder / "requests.so", folder / "requests.cc"], check=True)
        trees = (before.resolve(), Path(__file__).parents[2])
        first, second = (_count(tree, folder / str(number), folder) for number, tree in enumerate(trees))
    lines = ["| a call | before, 10^6 instructions | now | times |", "|---|--:|--:|--:|"]
    ratios = {call: second[call] / first[call] for call in first}
    lines += [f"| {call} | {first[call] / 1e6:.2f} | {second[call] / 1e6:.2f} | {ratios[call]:.3f} |" for call in first]
    mean = math.exp(math.fsum(map(math.log, ratios.values())) / len(ratios))
    return "\n".join([*lines, f"| geometric mean | | | {mean:.3f} |"])


def _count(tree: Path, output: Path, folder: Path) -> dict[str, float]:
    """The instructions of each call with the package of a checkout."""
    callgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no"]
    one_processor = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    child = [sys.executable, __file__, "--count", str(folder)]
    variables = {**os.environ, "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1", "PYTHONHASHSEED": "0"}
    command = [*one_processor, *callgrind, f"--callgrind-out-file={output}", *child]
    subprocess.run(command, env=variables, check=True, stderr=subprocess.DEVNULL)
    counted = {}
    for file in folder.glob(f"{output.name}.*"):
        content = file.read_text()
        call = re.search(r"desc: Trigger: Client Request: (.*)", content)
        total = re.search(r"^(?:totals|summary): (\d+)", content, re.MULTILINE)
        if call and total:
            counted[int(file.suffix[1:])] = call[1], int(total[1]) / _TIMES
    return dict(counted[number] for number in sorted(counted))


def _make_calls(folder: Path) -> None:
    requests = ctypes.CDLL(str(folder / "requests.so"))
    with tempfile.TemporaryDirectory() as name:
        calls = _calls(Path(name))
        for call in calls.values():  # the first ones import modules
            call()
            call()
        requests.begin()
        for title, call in calls.items():
            requests.zero()
            for _ in range(_TIMES):
                call()
            requests.dump(title.encode())


def _calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """What users do most, with tables of 10^4 rows and more."""
    import numpy as np
    import pyarrow as pa

    import tfrecord_io as tfr

    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"i{number}": rng.integers(0, 1000, _ROWS) for number in range(5)}
    columns |= {f"f{number}": rng.random(_ROWS, "float32") for number in range(5)}
    wide = pa.table({**columns, "s": [f"t{row % 977}" for row in range(_ROWS)]})
    lists = pa.table({"l": [rng.integers(0, 50_000, 30) for _ in range(_ROWS // 5)], "y": range(_ROWS // 5)})
    nulls = pa.table({"a": [None if row % 7 == 0 else float(row) for row in range(_ROWS)], "b": range(_ROWS)})
    w, ls, n, d, small, out = (str(folder / file) for file in ("w", "l", "n", "d/", "s", "o"))
    for table, path in ((wide, w), (lists, ls), (nulls, n), ({"x": [1, 2, 3]}, small)):
        tfr.write_tfrecord(table, path, write_index=True)
    tfr.write_tfrecord(wide, d, shards=20)

    def iterate(path: str, **options: Any) -> None:
        for _ in tfr.dataset(path).iter_arrays(batch_size=256, **options):
            pass

    declared = {"a": "float32", "b": "int32"}
    shuffled: dict[str, Any] = {"shuffle_buffer": 1000, "seed": 1}
    return {
        "`read_table` of 11 columns": lambda: tfr.read_table(w),
        "`read_table` of two of them": lambda: tfr.read_table(w, columns=["i1", "s"]),
        "`read_table` of lists": lambda: tfr.read_table(ls),
        "`read_table` of 20 files": lambda: tfr.read_table(d),
        "`read_table` of three rows": lambda: tfr.read_table(small),
        "`read_tfrecord`": lambda: tfr.read_tfrecord(w),
        "`filters=` of numbers": lambda: tfr.read_table(w, filters=[("i1", "<", 100)]),
        "`filters=` of text": lambda: tfr.read_table(w, filters=[("s", "==", "t5")]),
        "`count`": lambda: tfr.count(w),
        "`write_tfrecord` of 11 columns": lambda: tfr.write_tfrecord(wide, out),
        "`write_tfrecord` of lists": lambda: tfr.write_tfrecord(lists, out),
        "`write_tfrecord` of 20 files": lambda: tfr.write_tfrecord(wide, out + "d/", shards=20, mode="overwrite"),
        "`write_tfrecord` with `schema=`": lambda: tfr.write_tfrecord(nulls, out, schema=declared),
        "`iter_arrays` with masks": lambda: iterate(n, missing="mask"),
        "`iter_arrays`, shuffled": lambda: iterate(w, **shuffled),
        "`iter_arrays`, lists padded": lambda: iterate(ls, ragged="pad", pad_value=0, **shuffled),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, nargs="?", help="the folder of the other checkout")
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.count:
        _make_calls(arguments.count)
    elif arguments.before:
        print(compare(arguments.before))
    else:
        parser.error("expected the folder of the other checkout")
