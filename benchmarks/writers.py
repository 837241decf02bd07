"""The same libraries writing Arrow columns to a file. Contenders are as in `readers`; ``run`` returns the rows written.

The table is made before the time is taken. Only tfrecord_io syncs the file to disk, so the target is an in-memory
folder if the system has one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.readers import library
from benchmarks.workloads import Workload, kind_of, rows_of


def target(workload: Workload, writer: str) -> str:
    """A path for this process to write to."""
    memory = Path("/dev/shm")
    folder = memory if memory.is_dir() and os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    return str(folder / f"tfrecord-bench-{os.getpid()}-{workload.name}-{writer}{workload.suffix}")


class _Writer:
    """The rows that this contender writes, and their path."""

    name = ""
    limit: int | None = None
    settings: Sequence[Any] = ((),)

    def __init__(self, workload: Workload) -> None:
        rows = min(workload.rows, self.limit or workload.rows)
        self.share = rows / workload.rows
        self.table = workload.table(workload.rows).slice(0, rows)
        self.kinds = {field.name: kind_of(field.type) for field in self.table.schema}
        self.path = target(workload, self.name.replace(" ", "-"))
        self.compression = workload.compression

    def size(self) -> int:
        """Bytes of the file."""
        return Path(self.path).stat().st_size

    def close(self) -> None:
        Path(self.path).unlink(missing_ok=True)

    @staticmethod
    def count(result: int) -> int:
        return result


class TensorFlowWriter(_Writer):
    """A serialized tf.train.Example per row to TFRecordWriter, as in tutorials."""

    name = "tf.train.Example"
    limit = 2_000

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        import tensorflow as tf

        self.tf = tf
        makers = {
            "int64": lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v)),
            "float": lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v)),
            "bytes": lambda v: tf.train.Feature(bytes_list=tf.train.BytesList(value=v)),
        }
        self.makers = {name: makers[kind] for name, kind in self.kinds.items()}

    def run(self, setting: tuple[()]) -> int:
        tf, makers = self.tf, self.makers
        with tf.io.TFRecordWriter(self.path, tf.io.TFRecordOptions(self.compression)) as writer:
            for row in rows_of(self.table):
                feature = {name: makers[name](values) for name, values in row.items()}
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
        return self.table.num_rows


class TfxBslWriter(_Writer):
    """RecordBatchToExamplesEncoder, then TFRecordWriter. Columns are converted to the required lists beforehand."""

    name = "tfx_bsl"
    settings = ((512,), (4096,))

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        import tensorflow as tf
        from tfx_bsl.coders.example_coder import RecordBatchToExamplesEncoder

        self.tf = tf
        self.encode = RecordBatchToExamplesEncoder().encode
        columns = [c if pa.types.is_list(c.type) else _as_lists(c) for c in self.table.columns]
        self.table = pa.table(columns, names=self.table.schema.names)

    def run(self, setting: tuple[int]) -> int:
        with self.tf.io.TFRecordWriter(self.path, self.tf.io.TFRecordOptions(self.compression)) as writer:
            for batch in self.table.to_batches(max_chunksize=setting[0]):
                for payload in self.encode(batch):
                    writer.write(payload)
        return self.table.num_rows


def _as_lists(column: pa.ChunkedArray) -> pa.ListArray:
    values = column.combine_chunks()
    if not values.null_count:
        return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)
    present = np.asarray(values.is_valid())
    offsets = pa.array(np.append(0, np.cumsum(present)), pa.int32())
    return pa.ListArray.from_arrays(offsets, values.drop_null(), mask=pa.array(~present))


class TfrecordWriter(_Writer):
    """The TFRecordWriter of the ``tfrecord`` package: a dict per record."""

    name = "tfrecord"
    limit = 2_000

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        if self.compression:
            raise NotImplementedError("it only writes plain files")
        from tfrecord.writer import TFRecordWriter

        self.writer = TFRecordWriter
        names = {"int64": "int", "float": "float", "bytes": "byte"}
        self.types = {name: names[kind] for name, kind in self.kinds.items()}

    def run(self, setting: tuple[()]) -> int:
        writer = self.writer(self.path)
        for row in rows_of(self.table):
            writer.write({name: (values, self.types[name]) for name, values in row.items()})
        writer.close()
        return self.table.num_rows


class TfrecordIoWriter(_Writer):
    """``write_tfrecord`` with its defaults: atomic, and with an embedded schema.

    With `shards`, to as many files of a folder, with a `codec` if any; as a stream, without its number of rows.
    """

    name = "tfrecord_io"

    def __init__(
        self, workload: Workload, threads: int = 1, shards: int | None = None, codec: str | None = None, **form: bool
    ) -> None:
        super().__init__(workload)
        self.write = library().write_tfrecord
        self.options = {"threads": threads}
        self.folder = None
        self.stream = form.get("stream", False)
        if shards is not None:
            self.folder = f"{self.path}-shards"
            self.path = f"{self.folder}/part"
            self.options |= {"shards": shards, "compression": codec, "mode": "overwrite"}

    def run(self, setting: tuple[()]) -> int:
        self.write(iter(self.table.to_batches()) if self.stream else self.table, self.path, **self.options)
        return self.table.num_rows

    def size(self) -> int:
        return super().size() if self.folder is None else sum(e.stat().st_size for e in os.scandir(self.folder))

    def close(self) -> None:
        if self.folder is None:
            super().close()
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
