"""Mistakes in public calls, which type checkers find: each line names those that do. Not run.

mypy has no types of pandas and pyarrow, unless their stubs are installed, so results of these are Any to it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tfrecord_io as tfr

path = Path("a.tfrecord")

# unknown and misspelled keywords, and those of other calls
tfr.read_table(path, colums=["a"])  # error: mypy, pyright
tfr.read_table(path, nrows=5)  # error: mypy, pyright
tfr.read_table(path, dtype_backend="pyarrow")  # error: mypy, pyright
tfr.read_table(path, batch_size=5)  # error: mypy, pyright
tfr.infer_schema(path, schema={"a": "int32"})  # error: mypy, pyright
tfr.iter_arrays(path, batch_size=5, batch_bytes=5)  # error: mypy, pyright
tfr.iter_arrays(path, batch_size=5, drop_remainder=True)  # error: mypy, pyright
tfr.open_random(path, limit=5)  # error: mypy, pyright
tfr.write_tfrecord({"x": [1]}, path, num_shards=2)  # error: mypy, pyright
tfr.convert("a.npy", path, nrows=5)  # error: mypy, pyright
tfr.count(path, columns=["a"])  # error: mypy, pyright

# values that a keyword does not have
tfr.read_tfrecord(path, dtype_backend="polars")  # error: mypy, pyright
tfr.read_tfrecord(tfr.dataset(path, compression="lzma"))  # error: mypy, pyright
tfr.read_tfrecord(path, on_error="ignore")  # error: mypy, pyright
tfr.read_table(tfr.dataset(path, record_type="json"))  # error: mypy, pyright
tfr.read_table(path, on_error=True)  # error: mypy, pyright
tfr.open_reader(tfr.dataset(path, on_new="drop"))  # error: mypy, pyright
tfr.open_reader(tfr.dataset(path, sample="most"))  # error: mypy, pyright
tfr.read_arrays(path, ragged="list")  # error: mypy, pyright
tfr.read_arrays(path, missing="nan")  # error: mypy, pyright
tfr.write_tfrecord({"x": [1]}, path, mode="replace")  # error: mypy, pyright
tfr.write_tfrecord({"x": [1]}, path, float64="raise")  # error: mypy, pyright
tfr.open_writer(path, compression="bz2")  # error: mypy, pyright
tfr.RecordReader(path, on_error="ignore")  # error: mypy, pyright
tfr.dataset(path, record_type="tensor")  # error: mypy, pyright
tfr.open_reader(path).read_pandas("polars")  # error: mypy, pyright

# values of a wrong type
tfr.open_reader(path, batch_size="5")  # error: mypy, pyright
tfr.open_reader(path, batch_size=1.5)  # error: mypy, pyright
tfr.read_table(path, limit="5")  # error: mypy, pyright
tfr.read_table(tfr.dataset(path, offset=None))  # error: mypy, pyright
tfr.read_table(path, columns=5)  # error: mypy, pyright
tfr.read_table(path, columns=[5])  # error: mypy, pyright
tfr.read_table(path, schema=5)  # error: mypy, pyright
tfr.read_table(path, schema=["a", "b"])  # error: mypy, pyright
tfr.read_table(path, schema="int64")  # error: mypy, pyright
tfr.read_table(tfr.dataset(path, schema_overrides=[("a", "int32")]))  # error: mypy, pyright
tfr.read_table(tfr.dataset(path, check_crc="no"))  # error: mypy, pyright
tfr.iter_arrays(path, batch_size=32, worker=3)  # error: mypy, pyright
tfr.write_tfrecord({"x": [1]}, path, schema="infer")  # error: mypy, pyright
tfr.write_tfrecord({"x": [1]}, path, column_encoding="raw")  # error: mypy, pyright
tfr.write_tfrecord({"x": [1]}, path, shards=2.0)  # error: mypy, pyright
tfr.write_tfrecord({"x": [1]}, path, mode="yes")  # error: mypy, pyright
tfr.Schema(5)  # error: mypy, pyright
tfr.image((None, None, 3), resize=224)  # error: mypy, pyright

# arguments that are missing, in a wrong place or of a wrong type
tfr.read_table()  # error: mypy, pyright
tfr.read_table(path, ["a"])  # error: mypy, pyright
tfr.read_table(5)  # error: mypy, pyright
tfr.read_table([5])  # error: mypy, pyright
tfr.iter_arrays(path)  # error: mypy, pyright
tfr.iter_arrays(path, 32)  # error: mypy, pyright
tfr.write_tfrecord(path)  # error: mypy, pyright
tfr.write_tfrecord(path, {"x": [1]})  # error: mypy, pyright
tfr.write_tfrecord(5, path)  # error: mypy, pyright
tfr.write_tfrecord("text", path)  # error: mypy, pyright
tfr.open_writer(path).write(5)  # error: mypy, pyright
tfr.RecordWriter(path).write("text")  # error: mypy, pyright
tfr.encode_example([("a", 1)])  # error: mypy, pyright

# results used as something else
number: int = tfr.read_arrays(path)  # error: mypy, pyright
first: str = tfr.write_tfrecord({"x": [1]}, path)  # error: mypy, pyright
text: str = tfr.count(path)  # error: mypy, pyright
tfr.read_arrays(path)["x"].head()  # error: mypy, pyright
tfr.write_tfrecord({"x": [1]}, path).rows  # error: mypy, pyright
tfr.open_reader(path).read()  # error: mypy, pyright
tfr.open_writer(path).report.records  # error: mypy, pyright
tfr.verify(path) + 1  # error: mypy, pyright
for batch in tfr.iter_arrays(path, batch_size=32):
    batch.image  # error: mypy, pyright
    batch[0]  # error: mypy, pyright
for payload in tfr.RecordReader(path):
    payload.features  # error: mypy, pyright

# records by something else than their number
tfr.open_random(path)["a"]  # error: mypy, pyright
tfr.open_random(path)[1.0]  # error: mypy, pyright
tfr.open_random(path)[["a"]]  # error: mypy, pyright
tfr.open_random(path)[np.zeros(3)]  # error: mypy, pyright
tfr.open_random(path)[0].column("a")  # error: mypy, pyright

# names that do not exist
tfr.read_parquet(path)  # error: mypy, pyright
tfr.Reeder  # error: mypy, pyright
