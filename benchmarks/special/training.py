"""Shuffled batches for training, in comparison with tf.data: ``make bench BENCH_ARGS=--training``.

The records are those of Fashion-MNIST as tutorials write them: ``image``, 28 × 28 × 1 float32, and ``label``, 10
float64, both as raw bytes; and texts of 16 to 511 tokens, int64, which are padded to the longest of their batch. All
contenders shuffle through a buffer (of 500 images, 2,000 texts), return batches (of 16, 128) as NumPy arrays and
check every CRC; tf.data with the best of four settings. They run in alternating processes, as in `benchmarks.contest`,
and the best time counts. The exit code is 1 if tf.data takes less than five times as long for images, or less than
twice as long for texts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import report
from benchmarks.contest import Contender, contest
from benchmarks.readers import library
from benchmarks.workload_files import ensure
from benchmarks.workloads import WORKLOADS, Workload

ROWS = 60_000
BATCH, BUFFER = 16, 500
TOKENS_BATCH, TOKENS_BUFFER = 128, 2_000
HERE = "benchmarks.special.training"


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


TRAINING = Workload("training", "60 k × 28 × 28 float32 + 10 float64, shuffled", ROWS, _records)
TOKENS = Workload("training-tokens", "60 k × 16 to 511 int64, shuffled, padded", ROWS, _texts)
MIN_RATIO = {TRAINING.name: 5.0, TOKENS.name: 2.0}
for added in (TRAINING, TOKENS):
    WORKLOADS.setdefault(added.name, added)


class TfrecordIo:
    """``iter_arrays``."""

    name = "tfrecord_io"
    share = 1.0
    settings: Any = ((),)

    def __init__(self, workload: Workload, threads: int) -> None:
        self.tfr, self.path, self.threads = library(), str(workload.path), threads
        self.schema = {"image": self.tfr.tensor("float32", (28, 28, 1)), "label": self.tfr.tensor("float64", (10,))}

    def run(self, setting: tuple[()]) -> int:
        batches = self.tfr.iter_arrays(
            self.tfr.dataset(self.path, threads=self.threads),
            batch_size=BATCH,
            shuffle_buffer=BUFFER,
            seed=0,
            schema=self.schema,
        )
        return sum(len(batch["image"]) for batch in batches)

    @staticmethod
    def count(result: int) -> int:
        return result


class TfData:
    """TFRecordDataset → shuffle → batch → parse_example, decode_raw → as_numpy_iterator."""

    name = "tf.data"
    share = 1.0
    settings = (("serial",), ("parallel",), ("serial", "prefetch"), ("parallel", "prefetch"))

    def __init__(self, workload: Workload) -> None:
        import tensorflow as tf

        self.tf = tf
        self.path = str(workload.path)
        self.features: Any = {name: tf.io.FixedLenFeature([], tf.string) for name in ("image", "label")}
        self.buffer, self.batch = BUFFER, BATCH

    def _parse(self, records: Any) -> tuple[Any, Any]:
        parsed = self.tf.io.parse_example(records, self.features)
        image = self.tf.reshape(self.tf.io.decode_raw(parsed["image"], self.tf.float32), [-1, 28, 28, 1])
        return image, self.tf.io.decode_raw(parsed["label"], self.tf.float64)

    def run(self, setting: tuple[str, ...]) -> int:
        records = (
            self.tf.data.TFRecordDataset(self.path, buffer_size=8 << 20).shuffle(self.buffer, seed=0).batch(self.batch)
        )
        batches = records.map(self._parse, -1 if "parallel" in setting else None)
        batches = batches.prefetch(-1) if "prefetch" in setting else batches
        return sum(len(first) for first, _ in batches.as_numpy_iterator())

    @staticmethod
    def count(result: int) -> int:
        return result


class PaddedTokens(TfrecordIo):
    """``iter_arrays(ragged="pad")``."""

    def __init__(self, workload: Workload, threads: int) -> None:
        super().__init__(workload, threads)
        self.schema = {"tokens": self.tfr.list_("int64")}

    def run(self, setting: tuple[()]) -> int:
        batches = self.tfr.iter_arrays(
            self.tfr.dataset(self.path, threads=self.threads),
            batch_size=TOKENS_BATCH,
            shuffle_buffer=TOKENS_BUFFER,
            seed=0,
            ragged="pad",
            schema=self.schema,
        )
        return sum(len(batch["tokens"]) for batch in batches)


class TfPaddedTokens(TfData):
    """TFRecordDataset → shuffle → batch → parse_example, to_tensor → as_numpy_iterator."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.features = {"tokens": self.tf.io.RaggedFeature(self.tf.int64)}
        self.buffer, self.batch = TOKENS_BUFFER, TOKENS_BATCH

    def _parse(self, records: Any) -> tuple[Any, Any]:
        tokens = self.tf.io.parse_example(records, self.features)["tokens"]
        return tokens.to_tensor(), tokens.row_lengths()


def measure(repeat: int = 7, budget: float = 15.0) -> tuple[str, bool]:
    """Run all; return the table, and whether tf.data takes as many times as long as it should."""
    images, passed = _compared(TRAINING, "TfrecordIo", "TfData", repeat, budget)
    tokens, tokens_passed = _compared(TOKENS, "PaddedTokens", "TfPaddedTokens", repeat, budget)
    return f"{images}\n\n{tokens}", passed and tokens_passed


def _compared(workload: Workload, own: str, other: str, repeat: int, budget: float) -> tuple[str, bool]:
    ensure([workload.name])
    contenders = [Contender.of(f"{HERE}:{own}", threads=number) for number in (1, 2)]
    results = contest([*contenders, Contender.of(f"{HERE}:{other}")], workload, repeat, budget)
    tf_data = results[-1]
    rows = []
    for result in results:
        ratio = "–" if result.error or tf_data.error else f"{tf_data.seconds / result.seconds:.1f}×"
        time = result.error or f"{result.seconds:.3f} s"
        rows.append([result.name, result.setting, time, f"{result.seconds / ROWS * 1e6:.1f} µs", ratio])
    table = report.table([workload.title, "setting", "time", "per record", "tf.data ÷ this"], rows)
    passed = not any(result.error for result in results)
    fastest = min(result.seconds for result in results[:-1])
    return table, passed and tf_data.seconds / fastest >= MIN_RATIO[workload.name]
