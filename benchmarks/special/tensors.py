"""Tensors as raw bytes, to and from NumPy, in comparison with the floor and tf.data.

``make bench BENCH_ARGS=--tensors``. A record has the bytes of one tensor, with its shape and dtype; TensorFlow writes
the files. tfrecord_io takes dtype and shape from the records; tf.data is given both, and returns a list of batches
with its best setting. Contenders alternate as in `benchmarks.contest`, and the best time counts. The exit code is 1 if
reading takes more than 1.5 times as long as the floor.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import report
from benchmarks.contest import Contender, Result, contest
from benchmarks.floor import Floor
from benchmarks.readers import TfrecordIo as TableReader
from benchmarks.workload_files import ensure
from benchmarks.workloads import WORKLOADS, Workload
from benchmarks.writers import TensorFlowWriter, TfrecordIoWriter

__all__ = ["Floor", "TensorFlowWriter", "measure"]  # contenders are imported from here, with their workloads

MAX_RATIO = 1.5
HERE = "benchmarks.special.tensors"
READERS = (f"{HERE}:TfrecordIo", f"{HERE}:TfData", f"{HERE}:Floor")
WRITERS = (f"{HERE}:TfrecordIoTensorWriter", f"{HERE}:TensorFlowWriter", f"{HERE}:Floor")
ARRAYS = {"tensor_vectors": (np.dtype("<f4"), (768,)), "tensor_images": (np.dtype("u1"), (28, 28))}


def values(name: str, rows: int) -> np.ndarray[Any, Any]:
    """The tensors of a workload, one per row."""
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
WORKLOADS.update({workload.name: workload for workload in TENSORS})


class TfrecordIo(TableReader):
    """``read_arrays``: one array of all rows."""

    def __init__(self, workload: Workload, threads: int) -> None:
        super().__init__(workload, threads, "arrays")


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


class TfrecordIoTensorWriter(TfrecordIoWriter):
    """``write_tfrecord`` of one array."""

    def __init__(self, workload: Workload, threads: int) -> None:
        super().__init__(workload, threads)
        self.arrays = {"x": values(workload.name, workload.rows)}

    def run(self, setting: tuple[()]) -> int:
        return int(self.write(self.arrays, self.path, column_encoding={"x": "raw"}, **self.options).records)


def _rows(results: Sequence[Result]) -> list[list[str]]:
    floor = results[-1]
    rows = []
    for result in results:
        ratio = "–" if result.error or floor.error else f"{result.seconds / floor.seconds:.2f}×"
        rows.append([result.name, result.setting, result.error or f"{result.seconds:.3f} s", ratio])
    return rows


def measure(repeat: int = 7, budget: float = 15.0) -> tuple[str, bool]:
    """Run all; return the tables, and whether reading takes at most 1.5 times as long as the floor."""
    ensure([workload.name for workload in TENSORS])
    parts, passed = [], True
    for direction, specs in (("read", READERS), ("write", WRITERS)):
        for workload in TENSORS:
            print(f"{direction}: {workload.title} …", file=sys.stderr, flush=True)
            own, *others = specs
            contenders = [*(Contender.of(own, threads=n) for n in (1, 2)), *map(Contender.of, others)]
            results = contest(contenders, workload, repeat, budget)
            parts += [
                f"{workload.title}, {direction}",
                report.table(["", "setting", "time", "÷ floor"], _rows(results)),
            ]
            passed &= not any(result.error for result in results)
            if direction == "read":
                passed &= min(result.seconds for result in results[:2]) <= MAX_RATIO * results[-1].seconds
    return "\n\n".join(parts), passed
