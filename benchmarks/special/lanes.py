"""CPU time of ``iter_arrays(parts=16)``, and of many workers, beside one without: ``make bench BENCH_ARGS=--lanes``.

One process, one thread, batches of 256 rows of all workers together, a shuffle buffer of 4,096. The workers of a case
read one after the other, and their times are added. The ways alternate in a random order, and the least time of each
counts. The exit code is 1 if one takes more than the times that its row states.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tfrecord_io as tfr

FLOATS, BYTES = 400_000, 30_000  # rows
LANES, BATCH, BUFFER = 16, 256, 4096


class Way(NamedTuple):
    """A way to read."""

    data: str
    parts: int | None = LANES
    workers: int = 1
    epochs: int = 1

    def seconds(self) -> float:
        """CPU time of one read by all workers."""
        data, begin, rows = tfr.dataset(self.data, threads=1), time.process_time(), 0
        options: dict[str, Any] = {"shuffle_buffer": BUFFER, "seed": 0, "epochs": self.epochs}
        if self.parts is not None:
            options["parts"] = self.parts
        for worker in range(self.workers):
            share: dict[str, Any] = {"worker": (worker, self.workers)} if self.workers > 1 else {}
            for batch in data.iter_arrays(batch_size=BATCH // self.workers, **share, **options):
                rows += len(batch["y"])
        assert rows in (FLOATS * self.epochs, BYTES * self.epochs)
        return time.process_time() - begin


def _write(folder: Path) -> None:
    rng, y = np.random.default_rng(0), np.arange(FLOATS)
    floats = {"x": rng.standard_normal((FLOATS, 64), "float32"), "y": y}
    schema = {"x": tfr.tensor("float32", (64,)), "y": "int64"}
    tfr.write_tfrecord(floats, folder / "files@16.tfrecord", schema=schema)
    tfr.write_tfrecord(floats, folder / "indexed.tfrecord", schema=schema, write_index=True)
    tfr.write_tfrecord(floats, folder / "plain.tfrecord", schema=schema)
    scalars = {f"x{column}": rng.standard_normal(FLOATS, "float32") for column in range(8)}
    tfr.write_tfrecord({**scalars, "y": y}, folder / "scalars.tfrecord", write_index=True)
    images = [rng.bytes(8192) for _ in range(BYTES)]
    tfr.write_tfrecord({"x": images, "y": y[:BYTES]}, folder / "bytes.tfrecord", write_index=True)


def measure(repeat: int = 7) -> tuple[str, bool]:
    """Time all; return the table, and whether all are fast enough."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder)
        files, indexed, scalars, plain, images = (
            str(folder / f"{file}.tfrecord") for file in ("files@16", "indexed", "scalars", "plain", "bytes")
        )
        cases = {  # what is compared with what, and the most times as long
            "16 files": (Way(files), Way(files, None), 1.05),
            "one file with its index": (Way(indexed), Way(indexed, None), 1.05),
            "nine scalar columns, with their index": (Way(scalars), Way(scalars, None), 1.05),
            "rows of 8 KiB, with their index": (Way(images), Way(images, None), 1.05),
            "8 workers of the file with its index, beside one": (Way(indexed, workers=8), Way(indexed), 1.3),
            "the same, by default": (Way(indexed, None, workers=8), Way(indexed, None), 1.3),
            "byte ranges, first epoch": (Way(plain), Way(plain, None), 1.1),
            "byte ranges, four epochs": (Way(plain, epochs=4), Way(plain, None, epochs=4), 1.1),
        }
        ways = list({way: None for of_case in cases.values() for way in of_case[:2]})
        least = dict.fromkeys(ways, float("inf"))
        for _ in range(1 + repeat):
            for way in random.sample(ways, len(ways)):
                least[way] = min(least[way], way.seconds())
    lines, passed = ["| | CPU, s | beside, s | times | at most |", "|---|--:|--:|--:|--:|"], True
    for case, (way, beside, most) in cases.items():
        times = least[way] / least[beside]
        passed &= times <= most
        lines.append(f"| {case} | {least[way]:.3f} | {least[beside]:.3f} | {times:.2f} | {most} |")
    return "\n".join(lines), passed
