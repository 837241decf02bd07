"""Tensors as raw bytes, to and from NumPy, against the floor and tf.data: ``make bench BENCH_ARGS=--tensors``.

A record has the bytes of one tensor and beside them its shape and dtype; TensorFlow writes the files. We read them by what the records
say themselves. tf.data is told dtype and shape, and gives a list of batches by its best setting. Contenders take turns as in
`benchmarks.contest`; the best time counts. Ends with code 1 where reading takes more than 1.5 times the floor.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import report
from benchmarks.contest import Result, contest
from benchmarks.floor import Floor
from benchmarks.workloads import WORKLOADS, Workload, ensure
from benchmarks.writers import OursWriter, TensorFlowWriter

__all__ = ["Floor", "TensorFlowWriter", "measure"]  # contenders are found here, where their workloads are

MOST = 1.5
READERS = (
    "benchmarks.tensors:Ours",
    "benchmarks.tensors:OursTwoThreads",
    "benchmarks.tensors:TfData",
    "benchmarks.tensors:Floor",
)
WRITERS = (
    "benchmarks.tensors:OursTensorWriter",
    "benchmarks.tensors:OursTensorWriterTwoThreads",
    "benchmarks.tensors:TensorFlowWriter",
    "benchmarks.tensors:Floor",
)
ARRAYS = {"tensor_vectors": (np.dtype("<f4"), (768,)), "tensor_images": (np.dtype("u1"), (28, 28))}


def values(name: str, rows: int) -> np.ndarray[Any, Any]:
    """The tensors of a workload, one a row."""
    dtype, shape = ARRAYS[name]
    rng = np.random.default_rng(rows)
    return rng.random((rows, *shape), np.float32) if dtype.kind == "f" else rng.integers(0, 256, (rows, *shape), dtype)


def _records(name: str, rows: int) -> pa.Table:
    dtype, shape = ARRAYS[name]
    raw = values(name, rows)
    return pa.table(
        {
            "x": pa.array([row.tobytes() for row in raw], pa.binary()),
            "x/shape": pa.array([shape] * rows, pa.list_(pa.int64())),
            "x/dtype": pa.array([dtype.name.encode()] * rows, pa.binary()),
        }
    )


TENSORS = (
    Workload("tensor_vectors", "60 k × 768 float32", 60_000, lambda rows: _records("tensor_vectors", rows)),
    Workload("tensor_images", "120 k × 28 × 28 uint8", 120_000, lambda rows: _records("tensor_images", rows)),
)
WORKLOADS.update({each.name: each for each in TENSORS})


class Ours:
    """``read_arrays``: one array of all rows."""

    name = "tfrecord_io"
    share = 1.0
    settings = ((),)
    threads = 1

    def __init__(self, workload: Workload) -> None:
        os.environ["TFRECORD_IO_ENGINE"] = "native"
        import tfrecord_io as tfr

        self.read = tfr.read_arrays
        self.path = str(workload.path)

    def run(self, setting: tuple[()]) -> Any:
        return self.read(self.path, threads=self.threads)["x"]

    @staticmethod
    def count(result: Any) -> int:
        return len(result)


class OursTwoThreads(Ours):
    name = "tfrecord_io, 2 threads"
    threads = 2


class TfData:
    """TFRecordDataset → batch → parse_example, decode_raw, reshape."""

    name = "tf.data"
    share = 1.0
    settings = tuple((size, mode) for size in (256, 1024, 4096) for mode in ("map", "serial"))

    def __init__(self, workload: Workload) -> None:
        import tensorflow as tf

        self.tf = tf
        self.path = str(workload.path)
        self.dtype, self.shape = ARRAYS[workload.name]

    def _parse(self, records: Any) -> Any:
        parsed = self.tf.io.parse_example(records, {"x": self.tf.io.FixedLenFeature([], self.tf.string)})
        return self.tf.reshape(self.tf.io.decode_raw(parsed["x"], self.dtype.name), [-1, *self.shape])

    def run(self, setting: tuple[int, str]) -> list[Any]:
        size, mode = setting
        records = self.tf.data.TFRecordDataset(self.path, buffer_size=8 << 20).batch(size)
        return list(records.map(self._parse, -1 if mode == "map" else None).prefetch(-1))

    @staticmethod
    def count(result: list[Any]) -> int:
        return sum(int(batch.shape[0]) for batch in result)


class OursTensorWriter(OursWriter):
    """``write_tfrecord`` of one array."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.arrays = {"x": values(workload.name, workload.rows)}

    def run(self, setting: tuple[()]) -> int:
        return int(self.write(self.arrays, self.path, column_encoding={"x": "raw"}, threads=self.threads).records)


class OursTensorWriterTwoThreads(OursTensorWriter):
    name = "tfrecord_io, 2 threads"
    threads = 2


def _rows(results: Sequence[Result]) -> list[list[str]]:
    floor = results[-1]
    rows = []
    for each in results:
        ratio = "–" if each.error or floor.error else f"{each.seconds / floor.seconds:.2f}×"
        rows.append([each.name, each.setting, each.error or f"{each.seconds:.3f} s", ratio])
    return rows


def measure(repeat: int = 7, budget: float = 15.0) -> tuple[str, bool]:
    """Run all; the tables, and whether reading keeps within 1.5 times the floor."""
    ensure([each.name for each in TENSORS])
    parts, good = [], True
    for direction, specs in (("read", READERS), ("write", WRITERS)):
        for workload in TENSORS:
            print(f"{direction}: {workload.title} …", file=sys.stderr, flush=True)
            results = contest(specs, workload, repeat, budget)
            parts += [
                f"{workload.title}, {direction}",
                report.table(["", "setting", "time", "÷ floor"], _rows(results)),
            ]
            good &= not any(each.error for each in results)
            if direction == "read":
                good &= min(each.seconds for each in results[:2]) <= MOST * results[-1].seconds
    return "\n\n".join(parts), good
