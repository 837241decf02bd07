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


def library() -> Any:
    """tfrecord_io."""
    os.environ["TFRECORD_IO_ENGINE"] = "native"
    import tfrecord_io as tfr

    return tfr


class TfrecordIo:
    """A function of tfrecord_io that reads a whole file, with inferred types and all CRCs checked.

    `output` is "table", "pandas" or "arrays"; `columns` is how many columns are read, from the middle on, or None;
    `path` replaces that of the workload, and `rows` its rows.
    """

    name = "tfrecord_io"
    share = 1.0
    settings: Any = ((),)

    def __init__(
        self,
        workload: Workload,
        threads: int = 1,
        output: str = "table",
        columns: int | None = None,
        path: str | None = None,
        rows: int | None = None,
    ) -> None:
        self.tfr = tfr = library()
        self.read = {"table": tfr.read_table, "pandas": tfr.read_tfrecord, "arrays": tfr.read_arrays}[output]
        self.path = path or str(workload.path)
        self.rows = rows
        self.threads = threads
        self.options: dict[str, Any] = {}
        if columns is not None:
            self.options["columns"] = selection(workload, columns)
        if output == "arrays":
            self.options["missing"] = "mask"

    def run(self, setting: tuple[()]) -> Any:
        return self.read(self.tfr.dataset(self.path, threads=self.threads), **self.options)

    @staticmethod
    def count(result: Any) -> int:
        return len(next(iter(result.values()))) if isinstance(result, dict) else len(result)


class CountRecords:
    """``count``: hops from header to header."""

    name = "tfrecord_io"
    share = 1.0
    settings = ((),)

    def __init__(self, workload: Workload, threads: int | None = None) -> None:
        self.count_records = library().count
        self.path = str(workload.path)

    def run(self, setting: tuple[()]) -> int:
        return int(self.count_records(self.path))

    @staticmethod
    def count(result: int) -> int:
        return result


class TfDataCount:
    """The records of a TFRecordDataset, counted by ``reduce``."""

    name = "tf.data"
    share = 1.0
    settings = (("8M",),)

    def __init__(self, workload: Workload) -> None:
        import tensorflow as tf

        self.dataset = tf.data.TFRecordDataset(str(workload.path), workload.compression, 8 << 20)
        self.zero, self.add = tf.constant(0, tf.int64), lambda count, record: count + 1

    def run(self, setting: tuple[str]) -> int:
        return int(self.dataset.reduce(self.zero, self.add))

    @staticmethod
    def count(result: int) -> int:
        return result


def paths_of(path: str) -> str | list[str]:
    """The path of a file, or those of the files in a folder."""
    return [entry.path for entry in os.scandir(path)] if os.path.isdir(path) else path


def selection(workload: Workload, columns: int) -> list[str]:
    """Names of `columns` columns, spread over the table."""
    names = workload.table(8).column_names
    return names[len(names) // (2 * columns) :: len(names) // columns][:columns]


class TfData:
    """TFRecordDataset → batch → parse_example: the result is a list of batches, not concatenated."""

    name = "tf.data"
    share = 1.0

    def __init__(
        self, workload: Workload, columns: int | None = None, path: str | None = None, rows: int | None = None
    ) -> None:
        import tensorflow as tf

        self.tf = tf
        self.rows = rows
        self.path = paths_of(path or str(workload.path))
        self.compression = workload.compression
        table, fixed = workload.table(1000), workload.fixed
        schema = table.select(selection(workload, columns)).schema if columns else table.schema
        lists = [field.name for field in schema if pa.types.is_list(field.type) and field.name not in fixed]
        dense = {f.name: self._dense(f, fixed, table[f.name].null_count > 0) for f in schema if f.name not in lists}
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

    def _dense(self, field: pa.Field, fixed: dict[str, int], absent: bool) -> Any:
        shape = [fixed[field.name]] if field.name in fixed else []
        dtype = self._dtype(field)
        default = ("" if dtype == self.tf.string else 0) if absent else None
        return self.tf.io.FixedLenFeature(shape, dtype, default)

    def run(self, setting: tuple[int, str, str, str]) -> list[dict[str, Any]]:
        size, mode, buffer, form = setting
        tf, features = self.tf, self.features[form]
        parallel = AUTOTUNE if isinstance(self.path, list) else None
        records = tf.data.TFRecordDataset(self.path, self.compression, int(buffer[:-1]) << 20, parallel)
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

    def __init__(self, workload: Workload, columns: int | None = None) -> None:
        import tensorflow as tf
        from tensorflow_metadata.proto.v0 import schema_pb2
        from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

        self.tf = tf
        self.path = str(workload.path)
        self.compression = workload.compression
        types = {"int64": schema_pb2.INT, "float": schema_pb2.FLOAT, "bytes": schema_pb2.BYTES}
        schema = schema_pb2.Schema()
        table = workload.table(8)
        for field in table.select(selection(workload, columns)).schema if columns else table.schema:
            schema.feature.add(name=field.name, type=types[kind_of(field.type)])
        self.decoders = {"schema": ExamplesToRecordBatchDecoder(schema.SerializeToString())}
        if not columns:
            self.decoders["inferred"] = ExamplesToRecordBatchDecoder()
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
        self.rows = min(workload.rows, 1_000)
        self.share = self.rows / workload.rows
        names = {"int64": "int", "float": "float", "bytes": "byte"}
        self.sample = workload.table(1000)
        self.description = {field.name: names[kind_of(field.type)] for field in self.sample.schema}

    def run(self, setting: tuple[()]) -> dict[str, Any]:
        if any(values.null_count for values in self.sample.columns):
            raise NotImplementedError("it fails where a feature is absent")
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
