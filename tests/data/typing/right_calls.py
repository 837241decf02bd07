"""Uses of the public calls that type checkers accept. Not run: the files do not exist."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np

import tfrecord_io as tfr


def reading(path: Path, paths: list[str], options: dict[str, Any]) -> None:
    tfr.read_tfrecord(path, dtype_backend="pyarrow", columns=["a", "!b"], limit=10)
    tfr.read_tfrecord(tfr.dataset("s3://bucket/*.tfrecord", filesystem=None), storage_options={"anon": True})
    tfr.read_tfrecord(os.fspath(path), **options)
    tfr.read_table(tfr.dataset(paths, compression=None, offset=5), schema="infer", on_error="stop")
    tfr.read_table(tfr.dataset((path, "b.tfrecord"), threads=2), columns="a", schema={"a": int, "b": "list<float>"})
    tfr.read_table(
        tfr.dataset(io.BytesIO(b""), record_type="bytes", compression="gzip", schema_overrides={"x": "int32"})
    )
    with open(path, "rb") as file:
        tfr.read_table(file, schema=tfr.Schema({"a": tfr.scalar("int32", default=0)}), progress=True)
    tfr.read_table([io.BytesIO(b""), io.BytesIO(b"")], schema=tfr.infer_schema(path))
    tfr.read_table(path, progress=tfr.typing.UNSET)
    with tfr.open_reader(
        tfr.dataset(path, sample="all", on_new="ignore"), batch_size=100, batch_bytes=1 << 20
    ) as reader:
        for batch in reader:
            print(batch.num_rows)
        print(reader.read_all(), reader.read_pandas("numpy_nullable"), reader.schema)
    with tfr.dataset(path).limit(3).to_batches() as rows, tfr.dataset(path).pieces(2)[0].to_batches() as piece:
        print(rows.read_all(), rows.report.skipped, piece.read_pandas())
    inferred: tfr.typing.InferredSchema = tfr.infer_schema(tfr.dataset(path, stable_types=True))
    print(inferred.evidence, tfr.describe(tfr.dataset(path, sample="all")).columns[0].maximum)


def arrays(path: Path) -> dict[str, Any]:
    filled = tfr.read_arrays(path, ragged="pad", pad_value=-1, missing="mask", out={"x": np.zeros(3)})
    print(filled["x"].shape, tfr.read_arrays(path)["y"].mean())
    batches = tfr.iter_arrays(path, batch_size=32, shuffle_buffer=1000, seed=1, epochs=None, worker=(0, 2))
    for batch in batches:
        print(batch["image"].astype(np.float32) / 255, batches.seed)
        break
    state: dict[str, Any] = batches.state()
    for batch in tfr.iter_arrays([path], batch_size=32, drop_last=True, ragged="offsets", state=state):
        values, offsets = batch["tokens"]
        print(values, offsets)
    return state


def random_access(path: Path) -> None:
    with tfr.open_random(path, columns=["x"]) as records:
        row: dict[str, Any] = records[-1]
        print(row["x"], records[np.int64(3)]["x"], len(records))
        print(records[2:5], records[[1, 2]], records[np.arange(3)], records[range(4)])
    with tfr.RecordReader(tfr.dataset(path, compression="zlib", check_crc=False), on_error="stop") as payloads:
        lengths: list[int] = [len(payload) for payload in payloads]
    print(lengths)


def writing(path: Path, options: dict[str, Any]) -> None:
    report: tfr.typing.WriteReport = tfr.write_tfrecord({"x": [1, 2], "y": np.zeros((2, 3))}, path, mode="overwrite")
    print(report.records, report.files[0].path, report.columns)
    tfr.write_tfrecord([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}], f"{path}@8", mode="overwrite")
    tfr.write_tfrecord(tfr.open_reader(path), io.BytesIO(), float64="raw", column_encoding={"x": "tensor_proto"})
    tfr.write_tfrecord(({"x": [i]} for i in range(3)), path, shards=4, write_index=True, index=False)
    tfr.write_tfrecord(tfr.read_table(path), path, compression="zstd", max_shard_bytes=1 << 28, nan_to_null=False)
    tfr.write_tfrecord(tfr.read_tfrecord(path), path, schema={"x": "float32"}, **options)
    with tfr.open_writer(path, {"x": "int64"}, record_type="sequence_example", embed_schema=False) as writer:
        writer.write({"x": [[1], [2, 3]]})
    print(None if writer.report is None else writer.report.bytes)
    with tfr.RecordWriter(path, compression="gzip") as records:
        records.write(b"payload")
        records.write(memoryview(b"payload"))
        records.write(tfr.encode_example({"label": 3, "name": "cat"}))


def other_calls(path: Path) -> None:
    tfr.convert("a.npy", path, compression="gzip", shards=2)
    tfr.convert(path, "a.npy", target_options={"column": "x"}, limit=5)
    tfr.convert(
        [path, "b.tfrecord"],
        "a.npz",
        columns=["x*"],
        target_options={"compressed": True},
        source_options={"batch_size": 10},
    )
    tfr.formats.write_npy(tfr.dataset(path, columns=["x"]), "x.npy", "x", mode="overwrite")
    tfr.formats.write_npz(tfr.dataset(path, schema={"x": "int64"}), "x.npz", compressed=True)
    with tfr.formats.open_npy({"image": "images.npy", "label": "labels.npy"}) as stream:
        tfr.write_tfrecord(stream, path)
    count: int = tfr.count(tfr.dataset(path, compression="infer"), check_crc=True)
    ok: bool = tfr.verify(tfr.dataset(path, record_type="sequence_example")).ok
    print(count, ok, tfr.read_metadata(path).files[0].compression)
    schema = tfr.Schema({"x": tfr.tensor("uint8", (28, 28)), "y": "int32", "z": tfr.list_(float, 3)})
    print(schema["x"].type, [field.column for field in schema], schema.names, tfr.Schema(schema).select(["x"]))
    description = {"a": tfr.io.FixedLenFeature([], "int64", 0), "b": tfr.io.VarLenFeature("string")}
    print(tfr.io.parse_example([b"", b""], description), tfr.decode_example(b"")["a"])
    try:
        tfr.read_table(path)
    except tfr.errors.CorruptRecordError as error:
        print(error.path, error.record, error.records_intact)
    print(tfr.__version__.split("."))
