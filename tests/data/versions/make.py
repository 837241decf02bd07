"""Write the files of this version that all later ones must read: ``python tests/data/versions/make.py``.

A released version's files are never made again: the folder of a new version is added beside them.
"""

from __future__ import annotations

import datetime as dt
import decimal
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import tfrecord_io as tfr

FOLDER = Path(__file__).parent
WRITTEN = 10**18  # ns


def every_type() -> pa.Table:
    """A column of each kind, with nulls."""
    stamp = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)
    structs = pa.struct({"x": pa.int32(), "tags": pa.list_(pa.string())})
    return pa.table(
        {
            "bool": pa.array([True, None, False]),
            "int8": pa.array([-128, None, 127], pa.int8()),
            "int64": pa.array([-(2**63), None, 2**63 - 1]),
            "uint64": pa.array([0, None, 2**63 - 1], pa.uint64()),
            "float32": pa.array([1.5, None, float("inf")], pa.float32()),
            "float64": pa.array([0.1, None, -0.0]),
            "text": ["Ünïcode", None, ""],
            "bytes": pa.array([b"\xff\x00", None, b""]),
            "date": pa.array([dt.date(1970, 1, 1), None, dt.date(9999, 12, 31)]),
            "time": pa.array([dt.time(1, 2, 3), None, dt.time(23, 59, 59)], pa.time64("us")),
            "timestamp": pa.array([stamp, None, stamp], pa.timestamp("us", "Europe/Berlin")),
            "duration": pa.array([dt.timedelta(1), None, dt.timedelta(0, 1)], pa.duration("ms")),
            "decimal": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-99.99")], pa.decimal128(6, 2)),
            "category": pa.array(["a", None, "b"]).dictionary_encode(),
            "list": [[1, 2], None, []],
            "texts": [["a", "b"], None, []],
            "list_of_lists": pa.array([[[1], []], None, [[2, 3]]], pa.list_(pa.list_(pa.int64()))),
            "nulls_inside": pa.array([[1, None], None, [None]], pa.list_(pa.int64())),
            "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "struct": pa.array([{"x": 1, "tags": ["a"]}, None, {"x": None, "tags": []}], structs),
            "fixed": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        }
    )


def main() -> None:
    folder = FOLDER / tfr.__version__
    folder.mkdir()
    table = every_type()
    with pa.OSFile(str(folder / "every_type.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    tfr.write_tfrecord(table, folder / "every_type.tfrecord", float64="raw")
    for suffix in (".gz", ".zlib", ".lz4"):
        tfr.write_tfrecord(table, folder / f"every_type.tfrecord{suffix}", float64="raw")
    frame = pd.DataFrame({"x": np.arange(3)}, index=pd.Index(["a", "b", "c"], name="key"))
    tfr.write_tfrecord(frame, folder / "frame.tfrecord")
    arrays = {"image": np.arange(24, dtype=np.uint8).reshape(2, 3, 4), "half": np.ones((2, 2), np.float16)}
    tfr.write_tfrecord(arrays, folder / "arrays.tfrecord")
    tfr.write_tfrecord(arrays, folder / "protos.tfrecord", column_encoding=dict.fromkeys(arrays, "tensor_proto"))
    rows = {"id": [f"id{number:03}" for number in range(60)], "day": [number % 3 for number in range(60)]}
    tfr.write_tfrecord(rows, folder / "indexed.tfrecord", write_index=True)
    os.utime(folder / "indexed.tfrecord", ns=(WRITTEN, WRITTEN))  # which the index has; a checkout has another
    tfr.build_index(folder / "indexed.tfrecord", columns=["id"])
    tfr.write_tfrecord(rows, folder / "shards" / "train@3")
    tfr.write_tfrecord(rows, f"{folder}/parts/", partition_by="day")
    for _ in range(2):
        tfr.write_tfrecord(rows, f"{folder}/grown/", mode="append")
    with tfr.RecordWriter(folder / "plain.tfrecord") as writer:  # as another program's, without a schema
        for number in range(3):
            writer.write(tfr.encode_example({"n": number}))


if __name__ == "__main__":
    main()
