"""Conversion of array files, archives and tables in buckets and on web servers, to TFRecord and back."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr
from reading import read_by
from servers import Bucket, Web
from transfers import convert_flat

pytestmark = pytest.mark.matrix

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
    convert_flat(bucket.url(f"a/{kind}"), bucket.url("x.tfrecord"), **options)
    bucket.fs.get(bucket.url("x.tfrecord"), str(tmp_path / "x.tfrecord"))
    assert_whole(tmp_path / "x.tfrecord")
    target = bucket.url(f"back/{kind}")
    convert_flat(bucket.url("x.tfrecord"), target, **options)
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
    stream = tfr.formats.open_npz(bucket.url("objects"), **options)
    tfr.write_tfrecord(stream, tmp_path / "x.tfrecord")
    assert tfr.read_arrays(tmp_path / "x.tfrecord")["a"][:, 0, 0].tolist() == [0, 1, 2]
    convert_flat(bucket.url("tables/*.parquet"), bucket.url("x.tfrecord"), **options)
    assert read_by(tfr.read_table, bucket.url("x.tfrecord"), **options)["x"].to_pylist() == [0, 1, 2]
    for pattern in ("objects/*.npz", "objects/*"):
        with pytest.raises(ValueError, match="matches 3 files"):
            convert_flat(bucket.url(pattern), bucket.url("y.tfrecord"), **options)
    assert tfr.formats.open_npz(bucket.url("objects/[1]*"), **options).num_rows == 2


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


FORMATS_OF_NUMBERS = ("tfrecord", "csv", "jsonl", "parquet", "arrow", "orc", "npy", "npz", "h5", "array_record")


def folder_in(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any] | None]:
    """A folder in a store, with the options that only this store takes."""
    if store == "disk":
        return f"{tmp_path}/", None
    if store == "memory":
        return f"memory://{tmp_path.name}/", {"use_listings_cache": False}
    bucket: Bucket = request.getfixturevalue(store)
    return bucket.url(), bucket.storage_options


def source_in(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any] | None]:
    """As `folder_in`; a web server, too."""
    if store != "web":
        return folder_in(store, request, tmp_path)
    web: Web = request.getfixturevalue("web")
    return web.url(""), {"timeout": None}


@pytest.mark.parametrize("source", ["disk", "s3", "gcs", "azure", "memory", "web"])
@pytest.mark.parametrize("target", ["disk", "s3", "gcs", "azure", "memory"])
@pytest.mark.parametrize("suffix", FORMATS_OF_NUMBERS)
def test_each_side_has_options_of_its_own(
    source: str, target: str, suffix: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """From every store to every store, whatever the formats; each side's options are not keywords of the other."""
    tfr.write_tfrecord({"x": [1, 2, 3]}, tmp_path / "made.tfrecord")
    tfr.convert(tmp_path / "made.tfrecord", tmp_path / f"made2.{suffix}")
    to, to_options = folder_in(target, request, tmp_path)
    begin, options = source_in(source, request, tmp_path)
    for name, made in ((f"a.{suffix}", f"made2.{suffix}"), ("a.tfrecord", "made.tfrecord")):
        content = (tmp_path / made).read_bytes()
        if source == "web":
            request.getfixturevalue("web").files[name] = content
        elif source == "disk":
            (tmp_path / name).write_bytes(content)
        else:
            fsspec.filesystem(begin.split(":")[0], **(options or {})).pipe_file(f"{begin}{name}", content)
    sides = {"source_options": {"storage_options": options}, "storage_options": to_options}
    back = {} if to_options is None else {"storage_options": to_options}
    convert_flat(f"{begin}a.{suffix}", f"{to}b.tfrecord", **sides)
    assert read_by(tfr.read_table, f"{to}b.tfrecord", **back).column(0).to_pylist() == [1, 2, 3]
    convert_flat(f"{begin}a.tfrecord", f"{to}c.{suffix}", **sides)
    convert_flat(f"{to}c.{suffix}", tmp_path / "back.tfrecord", **back)
    assert tfr.read_table(tmp_path / "back.tfrecord").column(0).to_pylist() == [1, 2, 3]
