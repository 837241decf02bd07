"""The time of ``import tfrecord_io`` after numpy and pyarrow: ``python -m benchmarks.import_time``.

Each measurement is a fresh process; the best time counts. The exit code is 1 if the import takes 50 ms or more, or
imports pandas.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.results import Row

LIMIT = 0.050
REPEAT = 15
PROGRAM = """\
import sys, time
import numpy, pyarrow
begin = time.perf_counter()
import tfrecord_io
print(time.perf_counter() - begin, "pandas" in sys.modules)
"""


def measure() -> tuple[float, bool]:
    """Seconds after numpy and pyarrow, and whether pandas was imported."""
    answers = [
        subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(REPEAT)
    ]
    return min(float(seconds) for seconds, _ in answers), any(pandas == "True" for _, pandas in answers)


def rows(settings: Any) -> Iterator[Row]:
    yield Row("import", "after numpy and pyarrow", "tfrecord_io", seconds=measure()[0])


def main() -> int:
    seconds, pandas = measure()
    cost = f"{seconds * 1e3:.1f} ms after numpy and pyarrow (limit {LIMIT * 1e3:.0f})"
    print(f"import tfrecord_io: {cost}, pandas imported: {'yes' if pandas else 'no'}")
    return 1 if pandas or seconds >= LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
