"""Conversion of array files, archives and tables in buckets and on web servers, to TFRecord and back."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr
from servers import Bucket, Web

ROWS = 3000
ARRAY = np.arange(ROWS * 40, dtype=np.float32).reshape(ROWS, 40)


def saved(kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "fortran.npy":
        np.save(file, np.asfortranarray(ARRAY))
    elif kind == "x.npy":
        np.save(file, ARRAY)
    elif kind == "x.npz":
        np.savez_compressed(file, x=ARRAY)
    elif kind == "x.parquet":
        pq.write_table(pa.table({"x": ARRAY[:, 0]}), file)
    else:
        with pa.ipc.new_file(file, pa.schema({"x": pa.float32()})) as writer:
            writer.write_table(pa.table({"x": ARRAY[:, 0]}))
    return file.getvalue()


def assert_whole(path: Path) -> None:
    (column,) = tfr.read_arrays(path).values()
    assert (column == (ARRAY if column.ndim > 1 else ARRAY[:, 0])).all()


@pytest.mark.parametrize("kind", ["x.npy", "fortran.npy", "x.npz", "x.parquet", "x.arrow"])
def test_files_of_a_bucket(tmp_path: Path, bucket: Bucket, kind: str) -> None:
    options: dict[str, Any] = {"storage_options": bucket.storage_options}
    bucket.fs.pipe(bucket.url(f"a/{kind}"), saved(kind))
    tfr.convert(bucket.url(f"a/{kind}"), bucket.url("x.tfrecord"), **options)
    bucket.fs.get(bucket.url("x.tfrecord"), str(tmp_path / "x.tfrecord"))
    assert_whole(tmp_path / "x.tfrecord")
    target = bucket.url(f"back/{kind}")
    tfr.convert(bucket.url("x.tfrecord"), target, **options)
    bucket.fs.get(target, str(tmp_path / kind))
    tfr.convert(tmp_path / kind, tmp_path / "again.tfrecord")
    assert_whole(tmp_path / "again.tfrecord")


def test_a_folder_and_globs_of_a_bucket(tmp_path: Path, bucket: Bucket) -> None:
    options: dict[str, Any] = {"storage_options": bucket.storage_options}
    for i in range(3):
        file = io.BytesIO()
        np.savez(file, a=np.full((2, 2), i))
        bucket.fs.pipe(bucket.url(f"objects/{i}.npz"), file.getvalue())
        table = io.BytesIO()
        pq.write_table(pa.table({"x": [i]}), table)
        bucket.fs.pipe(bucket.url(f"tables/{i}.parquet"), table.getvalue())
    stream = tfr.from_npz(bucket.url("objects"), **options)
    tfr.write_tfrecord(stream, tmp_path / "x.tfrecord")
    assert tfr.read_arrays(tmp_path / "x.tfrecord")["a"][:, 0, 0].tolist() == [0, 1, 2]
    tfr.convert(bucket.url("tables/*.parquet"), bucket.url("x.tfrecord"), **options)
    assert tfr.read_table(bucket.url("x.tfrecord"), **options)["x"].to_pylist() == [0, 1, 2]
    for pattern in ("objects/*.npz", "objects/*"):
        with pytest.raises(ValueError, match="matches 3 files"):
            tfr.convert(bucket.url(pattern), bucket.url("y.tfrecord"), **options)
    assert tfr.from_npz(bucket.url("objects/[1]*"), **options).num_rows == 2


@pytest.mark.parametrize("kind", ["x.npy", "fortran.npy", "x.npz", "x.parquet"])
def test_files_of_a_web_server(tmp_path: Path, web: Web, kind: str) -> None:
    web.files[kind] = saved(kind)
    tfr.convert(web.url(kind), tmp_path / "x.tfrecord")
    assert_whole(tmp_path / "x.tfrecord")


@pytest.mark.parametrize("kind", ["x.npy", "fortran.npy"])
def test_without_ranges_a_file_is_read_sequentially(tmp_path: Path, web: Web, kind: str) -> None:
    web.ranges = False
    web.files[kind] = saved(kind)
    tfr.convert(web.url(kind), tmp_path / "x.tfrecord")
    assert_whole(tmp_path / "x.tfrecord")


def test_without_ranges_an_archive_is_an_error(tmp_path: Path, web: Web) -> None:
    web.ranges = False
    web.files["x.npz"] = saved("x.npz")
    with pytest.raises(OSError, match="no ranges"):
        tfr.convert(web.url("x.npz"), tmp_path / "y.tfrecord")
