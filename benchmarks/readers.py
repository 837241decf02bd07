"""tfrecord_io and other libraries, reading a file into columns in memory with their best settings.

A contender has ``name``, ``settings`` (all are tried once, the best is repeated), ``share`` (the part of the rows that
it reads, where all would take minutes) and ``run(setting)``, which is timed and returns the columns; ``count`` returns
their number of rows. Constructing a contender, including imports, is not timed.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.workloads import Workload, kind_of

AUTOTUNE = -1  # tf.data.AUTOTUNE


class TfrecordIo:
    """``read_table`` on one thread, with inferred types and all CRCs checked."""

    name = "tfrecord_io"
    share = 1.0
    settings: Any = ((),)
    threads = 1

    def __init__(self, workload: Workload) -> None:
        os.environ["TFRECORD_IO_ENGINE"] = (
            "native"  # without the kernel, fail instead of measuring the reference engine
        )
        import tfrecord_io as tfr

        self.tfr = tfr
        self.path = str(workload.path)

    def run(self, setting: tuple[()]) -> Any:
        return self.tfr.read_table(self.path, threads=self.threads)

    @staticmethod
    def count(result: Any) -> int:
        return len(result)


class TfrecordIoTwoThreads(TfrecordIo):
    name = "tfrecord_io, 2 threads"
    threads = 2


class TfData:
    """TFRecordDataset → batch → parse_example: the result is a list of batches, not concatenated."""

    name = "tf.data"
    share = 1.0

    def __init__(self, workload: Workload) -> None:
        import tensorflow as tf

        self.tf = tf
        self.path = str(workload.path)
        self.compression = workload.compression
        schema = workload.table(8).schema
        lists = [
            field.name for field in schema if pa.types.is_list(field.type) and field.name not in dict(workload.fixed)
        ]
        dense = {f.name: self._dense(f, dict(workload.fixed)) for f in schema if f.name not in lists}
        dtypes = {name: self._dtype(schema.field(name)) for name in lists}
        self.features = {
            "": dense | {name: tf.io.VarLenFeature(t) for name, t in dtypes.items()},
            "ragged": dense | {name: tf.io.RaggedFeature(t) for name, t in dtypes.items()},
        }
        sizes = (64, 512) if workload.rows < 50_000 else (1024, 2048, 8192)
        forms = ("", "ragged") if lists else ("",)
        self.settings = [
            *itertools.product(sizes, ("map", "map+batch", "fused"), ("8M",), forms),
            *itertools.product(sizes[:2], ("map",), ("1M",), forms),
            (sizes[-1], "serial", "8M", forms[-1]),
        ]

    def _dtype(self, field: pa.Field) -> Any:
        return {"int64": self.tf.int64, "float": self.tf.float32, "bytes": self.tf.string}[kind_of(field.type)]

    def _dense(self, field: pa.Field, fixed: dict[str, int]) -> Any:
        shape = [fixed[field.name]] if field.name in fixed else []
        return self.tf.io.FixedLenFeature(shape, self._dtype(field))

    def run(self, setting: tuple[int, str, str, str]) -> list[dict[str, Any]]:
        size, mode, buffer, form = setting
        tf, features = self.tf, self.features[form]
        records = tf.data.TFRecordDataset(self.path, self.compression, buffer_size=int(buffer[:-1]) << 20)
        batches = records.batch(size, num_parallel_calls=AUTOTUNE if mode == "map+batch" else None)
        if mode == "fused":
            parsed = batches.apply(tf.data.experimental.parse_example_dataset(features, AUTOTUNE))
        else:
            parsed = batches.map(lambda s: tf.io.parse_example(s, features), None if mode == "serial" else AUTOTUNE)
        return list(parsed.prefetch(AUTOTUNE))

    @staticmethod
    def count(result: list[dict[str, Any]]) -> int:
        return sum(int(next(iter(batch.values())).shape[0]) for batch in result)


class TfxBsl:
    """TFRecordDataset → bytes → ExamplesToRecordBatchDecoder: a list of Arrow batches, all columns lists."""

    name = "tfx_bsl"
    share = 1.0

    def __init__(self, workload: Workload) -> None:
        import tensorflow as tf
        from tensorflow_metadata.proto.v0 import schema_pb2
        from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

        self.tf = tf
        self.path = str(workload.path)
        self.compression = workload.compression
        types = {"int64": schema_pb2.INT, "float": schema_pb2.FLOAT, "bytes": schema_pb2.BYTES}
        schema = schema_pb2.Schema()
        for field in workload.table(8).schema:
            schema.feature.add(name=field.name, type=types[kind_of(field.type)])
        self.decoders = {
            "inferred": ExamplesToRecordBatchDecoder(),
            "schema": ExamplesToRecordBatchDecoder(schema.SerializeToString()),
        }
        sizes = (64, 512) if workload.rows < 50_000 else (512, 4096)
        self.settings = list(itertools.product(sizes, self.decoders))

    def run(self, setting: tuple[int, str]) -> list[pa.RecordBatch]:
        size, form = setting
        decode = self.decoders[form].DecodeBatch
        records = (
            self.tf.data.TFRecordDataset(self.path, self.compression, buffer_size=8 << 20)
            .batch(size)
            .prefetch(AUTOTUNE)
        )
        return [decode(list(batch)) for batch in records.as_numpy_iterator()]

    @staticmethod
    def count(result: list[pa.RecordBatch]) -> int:
        return sum(batch.num_rows for batch in result)


class Tfrecord:
    """The ``tfrecord`` package: a dict per record, joined to NumPy columns, without checking CRCs."""

    name = "tfrecord"
    settings = ((),)

    def __init__(self, workload: Workload) -> None:
        from tfrecord.reader import tfrecord_loader

        self.load = tfrecord_loader
        self.path = str(workload.path)
        self.compression = workload.compression.lower() or None
        self.rows = min(workload.rows, 10_000)
        self.share = self.rows / workload.rows
        names = {"int64": "int", "float": "float", "bytes": "byte"}
        self.description = {field.name: names[kind_of(field.type)] for field in workload.table(8).schema}

    def run(self, setting: tuple[()]) -> dict[str, Any]:
        columns: dict[str, list] = {name: [] for name in self.description}
        records = self.load(self.path, None, self.description, compression_type=self.compression)
        for record in itertools.islice(records, self.rows):
            for name, values in record.items():
                columns[name].append(values)
        joined = {name: v if isinstance(v[0], bytes) else np.concatenate(v) for name, v in columns.items()}
        return {**joined, "": self.rows}

    @staticmethod
    def count(result: dict[str, Any]) -> int:
        return result[""]
