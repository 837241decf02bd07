"""The six workloads and their files, written by TensorFlow, plain and compressed with gzip.

Values come from a fixed seed, so every run on every machine reads the same columns. The order of the features in a
record is that of TensorFlow's Python protobuf; it differs from process to process. Files are written to ``bench-data/``
once.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

DATA = Path(__file__).resolve().parent.parent / "bench-data"
VERSION = 1  # of the workloads; raise it when their content changes
SEED = 20_260
ANIMALS = [b"cat", b"dog", b"chicken", b"horse", b"goat"]


@dataclass(frozen=True, slots=True)
class Workload:
    """One file to read or write.

    ``table(rows)`` returns the columns as Arrow: int64, float32 or binary, or lists of them; ``fixed`` has the list
    columns of fixed length; ``compression`` is TensorFlow's name of it.
    """

    name: str
    title: str
    rows: int
    table: Callable[[int], pa.Table]
    fixed: tuple[tuple[str, int], ...] = ()
    compression: str = ""

    @property
    def suffix(self) -> str:
        return ".tfrecord.gz" if self.compression else ".tfrecord"

    @property
    def path(self) -> Path:
        return DATA / f"{self.name.removesuffix('.gz')}-v{VERSION}{self.suffix}"


def _generator(name: str) -> np.random.Generator:
    return np.random.default_rng([SEED, *name.encode()])


def _lists(values: np.ndarray, lengths: np.ndarray) -> pa.ListArray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(offsets, pa.array(values))


def _binary(lengths: np.ndarray, content: np.ndarray) -> pa.BinaryArray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def _tutorial(rows: int) -> pa.Table:
    rng = _generator("tutorial")
    feature1 = rng.integers(0, 5, rows)
    return pa.table(
        {
            "feature0": rng.integers(0, 2, rows),
            "feature1": feature1,
            "feature2": pa.array(ANIMALS, pa.binary()).take(pa.array(feature1)),
            "feature3": rng.standard_normal(rows).astype(np.float32),
        }
    )


def _wide(rows: int) -> pa.Table:
    rng = _generator("wide")
    columns: dict[str, object] = {}
    for i in range(16):
        columns[f"count_{i:02}"] = rng.integers(-(2 ** (2 * i + 4)), 2 ** (2 * i + 4), rows)
        columns[f"measure_{i:02}"] = rng.standard_normal(rows).astype(np.float32)
    for i in range(8):
        lengths = rng.integers(3, 21, rows)
        columns[f"code_{i:02}"] = _binary(lengths, rng.integers(97, 123, int(lengths.sum()), np.uint8))
    return pa.table(columns)


def _blobs(rows: int) -> pa.Table:
    rng = _generator("blobs")
    lengths = rng.integers(8 << 10, (32 << 10) + 1, rows)
    content = np.frombuffer(rng.bytes(int(lengths.sum())), np.uint8)
    return pa.table({"data": _binary(lengths, content), "label": rng.integers(0, 1000, rows)})


def _vectors(rows: int) -> pa.Table:
    rng = _generator("vectors")
    values = rng.standard_normal(rows * 768, np.float32)
    return pa.table({"embedding": _lists(values, np.full(rows, 768))})


def _tokens(rows: int) -> pa.Table:
    rng = _generator("tokens")
    lengths = rng.integers(64, 961, rows)
    return pa.table({"tokens": _lists(rng.integers(0, 50_000, int(lengths.sum())), lengths)})


def _images(rows: int) -> pa.Table:
    rng = _generator("images")
    content = np.frombuffer(rng.bytes(rows * 784), np.uint8)
    return pa.table({"image": _binary(np.full(rows, 784), content), "label": rng.integers(0, 10, rows)})


WORKLOADS = {
    w.name: w
    for w in (
        Workload("tutorial", "500 k × 4 scalars", 500_000, _tutorial),
        Workload("wide", "100 k × 40 scalar columns", 100_000, _wide),
        Workload("blobs", "15 k × 8–32 KiB bytes", 15_000, _blobs),
        Workload("vectors", "60 k × 768 floats", 60_000, _vectors, fixed=(("embedding", 768),)),
        Workload("tokens", "60 k × ragged 64–960 int64", 60_000, _tokens),
        Workload("images", "120 k × 784 bytes + label", 120_000, _images),
    )
}
PLAIN = tuple(WORKLOADS)
WORKLOADS |= {f"{name}.gz": replace(WORKLOADS[name], name=f"{name}.gz", compression="GZIP") for name in PLAIN}


def kind_of(column: pa.DataType) -> str:
    """The feature type of a column: "int64", "float" or "bytes".

    >>> kind_of(pa.list_(pa.float32()))
    'float'
    """
    value = column.value_type if pa.types.is_list(column) else column
    return "bytes" if pa.types.is_binary(value) else "float" if pa.types.is_floating(value) else "int64"


def rows_of(table: pa.Table, batch: int = 1024) -> Iterator[dict[str, list]]:
    """Rows as dicts of lists of Python values, as in programs that do not use columns."""
    for part in table.to_batches(max_chunksize=batch):
        columns = [c.to_pylist() for c in part.columns]
        wrapped = [
            c if pa.types.is_list(t) else [[v] for v in c] for c, t in zip(columns, part.schema.types, strict=True)
        ]
        for row in zip(*wrapped, strict=True):
            yield dict(zip(part.schema.names, row, strict=True))


def write(workload: Workload, path: Path) -> None:
    """Write a workload with TensorFlow: one tf.train.Example per row, through TFRecordWriter."""
    import tensorflow as tf

    table = workload.table(workload.rows)
    kinds = {field.name: f"{kind_of(field.type)}_list" for field in table.schema}
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows_of(table):
            example = tf.train.Example()
            for name, values in row.items():
                getattr(example.features.feature[name], kinds[name]).value.extend(values)
            writer.write(example.SerializeToString())


def compress(workload: Workload, path: Path) -> None:
    """Write the records of the workload's plain file again, compressed by TFRecordWriter."""
    import tensorflow as tf

    plain = WORKLOADS[workload.name.removesuffix(".gz")]
    ensure([plain.name])
    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(workload.compression)) as writer:
        for record in tf.data.TFRecordDataset(str(plain.path)).as_numpy_iterator():
            writer.write(record)


def ensure(names: list[str]) -> None:
    """Write the files that do not exist yet."""
    DATA.mkdir(exist_ok=True)
    for name in names:
        workload = WORKLOADS[name]
        if workload.path.exists():
            continue
        begin = time.perf_counter()
        partial = workload.path.with_name(f"{workload.path.name}.partial")
        (compress if workload.compression else write)(workload, partial)
        os.replace(partial, workload.path)
        size = workload.path.stat().st_size / 1e6
        print(f"wrote {workload.path.name}: {size:.0f} MB in {time.perf_counter() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    ensure(sys.argv[1:] or list(PLAIN))
