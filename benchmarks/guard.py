"""Check that the kernel has its fast paths: ``dev/bench .venv -m benchmarks.guard``, part of CI.

The time in which the kernel decodes a block from memory, divided by that of copying the same bytes and taking their
CRC32C with another library, measured alternately in one process: a ratio that hardly depends on the machine or on what
else runs on it. The best of many rounds counts, and only a ratio that stays above its limit in several attempts fails.
The limits are three times the ratios of the day when they were set, so they find a lost fast path and nothing less.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.readers import library
from benchmarks.workloads import WORKLOADS, Variant

ROWS = {"wide": 2_000, "images": 3_000, "tokens": 1_000}  # of each workload: some 2 MB, which stay in cache
LIMITS = {"wide": 10.0, "images": 5.0, "tokens": 24.0}
ROUNDS, ATTEMPTS = 60, 5


def _seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def ratio(kernel: Callable[[], Any], floor: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """The best time of `kernel` divided by that of `floor`, run alternately."""
    pairs = [(_seconds(kernel), _seconds(floor)) for _ in range(rounds)]
    return min(pair[0] for pair in pairs) / min(pair[1] for pair in pairs)


def framed(name: str) -> Any:
    """The bytes of a file with some rows of a workload."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "records.tfrecord")
        library().write_tfrecord(WORKLOADS[name].table(ROWS[name]), path, embed_schema=False)
        return np.fromfile(path, np.uint8)


def measure(name: str) -> float:
    """The ratio of one workload."""
    import crc32c

    from tfrecord_io.bytes.engine.contract import Plan
    from tfrecord_io.bytes.engine.select import get_engine

    engine, data = get_engine(), framed(name)
    copy = np.empty_like(data)

    def kernel() -> None:
        decoder = engine.decoder(Plan())
        decoder.expect(len(data))
        assert decoder.feed(data).records == ROWS[name]
        decoder.by_feature()

    def floor() -> None:
        np.copyto(copy, data)
        crc32c.crc32c(data)

    return ratio(kernel, floor)


def main() -> int:
    Variant().apply()
    failed = False
    for name, limit in LIMITS.items():
        found = measure(name)
        for _ in range(ATTEMPTS - 1):
            if found <= limit:
                break
            found = min(found, measure(name))
        verdict = "ok" if found <= limit else "TOO SLOW: has the kernel lost a fast path?"
        print(f"{name}: decoding takes {found:.1f} times as long as memcpy + CRC32C (limit {limit:.0f}): {verdict}")
        failed |= found > limit
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
