"""Shuffled batches for training, beside the libraries that make such: ``make bench BENCH_ARGS=--training``.

The records: images of Fashion-MNIST's size as tutorials write them, ``image``, 28 × 28 × 1 float32, and ``label``, 10
float64, both as raw bytes; 16 to 511 tokens, int64, padded to the longest of their batch; 40 columns, of which 8 have
words; 12 texts of a log; and 768 floats. Contenders shuffle through a buffer of 500 images, else 2,000 records, or all
records, and return dicts of NumPy arrays, or of tensors from a DataLoader. Each has its own format, written once by its
own writer (`benchmarks.special.training_peers`). They run in alternating processes, as in `benchmarks.contest`, and the
best time counts; slow ones get a tenth of the records, and ten times their time counts. The exit code is 1 if tf.data
takes less than `MIN_RATIO` times as long, or one worker of a DataLoader less than `MIN_WORKERS` times as long as two.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import report
from benchmarks.contest import Contender, Result, contest
from benchmarks.readers import library
from benchmarks.workload_files import ensure
from benchmarks.workloads import WORKLOADS, Workload

ROWS = 60_000
HERE = "benchmarks.special.training"
PEERS = "benchmarks.special.training_peers"
MIN_RATIO, MIN_WORKERS = 2.5, 1.8
PACKAGES = (
    *("tfrecord_io", "numpy", "pyarrow", "tensorflow-cpu", "torch"),
    *("webdataset", "grain", "array_record", "datasets", "mosaicml-streaming"),
)


def _records(rows: int) -> pa.Table:
    rng = np.random.default_rng(rows)
    image = rng.random((rows, 28 * 28), np.float32)
    label = np.eye(10)[rng.integers(0, 10, rows)]
    raw = {name: [row.tobytes() for row in values] for name, values in {"image": image, "label": label}.items()}
    return pa.table({name: pa.array(values, pa.binary()) for name, values in raw.items()})


def _texts(rows: int) -> pa.Table:
    rng = np.random.default_rng(rows)
    lengths = rng.integers(16, 512, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.table({"tokens": pa.ListArray.from_arrays(offsets, rng.integers(0, 50_000, offsets[-1]))})


@dataclass(frozen=True, slots=True)
class Batches:
    """What contenders make of a workload."""

    workload: Workload
    size: int = 128
    buffer: int = 2_000
    tensors: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)  # dtype and shape of raw bytes

    @property
    def padded(self) -> list[str]:
        """Columns of lists of different lengths."""
        lists = [field.name for field in self.workload.table(8).schema if pa.types.is_list(field.type)]
        return [name for name in lists if name not in self.workload.fixed]


TASKS = {
    task.workload.name: task
    for task in (
        Batches(
            Workload("training", "images and labels", ROWS, _records),
            *(16, 500),
            {"image": ("float32", (28, 28, 1)), "label": ("float64", (10,))},
        ),
        Batches(Workload("training-tokens", "padded tokens", ROWS, _texts)),
        Batches(WORKLOADS["wide"]),
        Batches(WORKLOADS["log"]),
        Batches(WORKLOADS["vectors"]),
    )
}
for added in TASKS.values():
    WORKLOADS.setdefault(added.workload.name, added.workload)


class TfrecordIo:
    """``iter_arrays``."""

    name = "tfrecord_io, iter_arrays"
    share = 1.0
    settings: Any = ((),)

    def __init__(self, workload: Workload, threads: int) -> None:
        self.tfr, self.task = library(), TASKS[workload.name]
        self.data = self.dataset(str(workload.path), threads)
        self.options = {"shuffle_buffer": self.task.buffer, "seed": 0, "ragged": "pad" if self.task.padded else None}

    def dataset(self, path: str, threads: int) -> Any:
        schema = {name: self.tfr.tensor(*of_raw) for name, of_raw in self.task.tensors.items()}
        return self.tfr.dataset(path, schema=schema or None, threads=threads)

    def run(self, setting: tuple[()]) -> int:
        batches = self.data.iter_arrays(batch_size=self.task.size, **self.options)
        return sum(len(next(iter(batch.values()))) for batch in batches)

    @staticmethod
    def count(result: int) -> int:
        return result


class ToTorch(TfrecordIo):
    """``to_torch`` in a DataLoader, whose workers have been started; each reads a file of its own."""

    name = "tfrecord_io, to_torch"

    def __init__(self, workload: Workload, workers: int) -> None:
        super().__init__(workload, 1)
        from torch.utils.data import DataLoader

        if workers > 1:
            shards = str(workload.path).replace(".tfrecord", f"@{workers}.tfrecord")
            with suppress(FileExistsError):
                self.tfr.merge(str(workload.path), shards)
            self.data = self.dataset(shards, 1)

        stream = self.data.to_torch(batch_size=self.task.size, workers=workers, **self.options)
        self.batches = DataLoader(stream, batch_size=None, num_workers=workers, persistent_workers=True)
        self.run(())

    def run(self, setting: tuple[()]) -> int:
        return sum(len(next(iter(batch.values()))) for batch in self.batches)


def measure(repeat: int = 7, budget: float = 3.0) -> tuple[str, bool]:
    """Run all; return the table, and whether tf.data and one worker take as many times as long as they should."""
    columns, passed = list[list[str]](), True
    for task in TASKS.values():
        results = _results(task.workload, repeat, budget)
        fastest = min(result.seconds for result in results[:2])
        columns.append([_cell(result, fastest, task.workload.rows) for result in results])
        passed &= _passed(results)
    titles = [f"{task.workload.title}, batches of {task.size}" for task in TASKS.values()]
    rows = [[result.name, *cells] for result, *cells in zip(results, *columns, strict=True)]
    note = "µs a record, and in brackets how many times as long as the faster `iter_arrays`."
    return f"{report.table(['', *titles], rows)}\n\n{note}", passed


def _results(workload: Workload, repeat: int, budget: float) -> list[Result]:
    """Of all contenders: first `iter_arrays`, then `to_torch`, then others, of which tf.data is the first."""
    ensure([workload.name])
    arrays = [Contender.of(f"{HERE}:TfrecordIo", threads=number) for number in (1, 2)]
    torch = [
        Contender(f"{HERE}:ToTorch", f"{ToTorch.name}, {number} worker{'s' * (number > 1)}", {"workers": number})
        for number in (1, 2)
    ]
    peers = [Contender.of(f"{PEERS}:{name}") for name in ("TfData", "WebDataset", "Grain", "HfDatasets", "Streaming")]
    return contest([*arrays, *torch, *peers], workload, repeat, budget)


def _cell(result: Result, fastest: float, rows: int) -> str:
    if result.error:
        return f"failed: {result.error}"
    return f"{result.seconds / rows * 1e6:.1f} ({result.seconds / fastest:.1f}×)"


def _passed(results: list[Result]) -> bool:
    one, two, torch_one, torch_two, tf_data, *_ = (result.seconds for result in results)
    failed = any(result.error for result in results)
    return not failed and tf_data >= MIN_RATIO * min(one, two) and torch_one >= MIN_WORKERS * torch_two
