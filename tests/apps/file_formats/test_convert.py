"""Other formats to TFRecord, and back."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from fsspec.implementations.memory import MemoryFileSystem

import tfrecord_io as tfr
from servers import Bucket
from tfrecord_io.apps.cli import tfr as command
from transfers import convert_flat


def test_npz_and_back(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.eye(3, dtype=np.float32), b=np.arange(3))
    tfr.convert(tmp_path / "x.npz", tmp_path / "x.tfrecord.gz")
    tfr.convert(tmp_path / "x.tfrecord.gz", tmp_path / "y.npz", target_options={"compressed": True})
    with np.load(tmp_path / "y.npz") as archive:
        assert archive["a"].tolist() == np.eye(3).tolist()
        assert archive["b"].tolist() == [0, 1, 2]


def test_tfrecord_to_tfrecord_compresses(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": list(range(100))}, tmp_path / "x.tfrecord")
    assert tfr.convert(tmp_path / "x.tfrecord", tmp_path / "y.tfrecord.gz").compression == "gzip"
    assert tfr.read_table(tmp_path / "y.tfrecord.gz")["x"].to_pylist() == list(range(100))


def test_the_format_of_a_folder_is_detected_from_its_files(tmp_path: Path) -> None:
    for i in range(3):
        np.savez(tmp_path / f"{i}.npz", a=np.full((2, 2), i), label=np.array(i))
    tfr.convert(tmp_path, tmp_path / "x.tfrecord")
    assert tfr.read_arrays(tmp_path / "x.tfrecord")["label"].tolist() == [0, 1, 2]


def test_formats_do_not_mix(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    with pytest.raises(ValueError, match=r"is \.npy and .* is TFRecord"):
        tfr.convert([tmp_path / "x.npy", tmp_path / "x.tfrecord"], tmp_path / "y.tfrecord")
    with pytest.raises(ValueError, match="source or target must be TFRecord"):
        tfr.convert(tmp_path / "x.npy", tmp_path / "y.parquet")


def test_command_zips_idx_files_by_their_leading_axis(data: Path, tmp_path: Path) -> None:
    images, labels = data / "train-images-idx3-ubyte.gz", data / "train-labels-idx1-ubyte.gz"
    done = CliRunner().invoke(command, ["convert", str(images), str(labels), str(tmp_path / "x.tfrecord")])
    assert done.exit_code == 0, done.output
    actual = tfr.read_arrays(tmp_path / "x.tfrecord")
    assert actual["image"].shape[1:] == (28, 28)
    assert len(actual["image"]) == len(actual["label"])
    assert f"{len(actual['label']):,} records" in done.output


def test_command_rejects_lengths_that_differ(data: Path, tmp_path: Path) -> None:
    images, labels = data / "train-images-idx3-ubyte.gz", tmp_path / "few-labels-idx1-ubyte.gz"
    with gzip.open(labels, "wb") as file:
        file.write(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    done = CliRunner().invoke(command, ["convert", str(images), str(labels), str(tmp_path / "x.tfrecord")])
    assert done.exit_code == 1
    assert "has 3 rows, but 'image'" in done.output
    assert not (tmp_path / "x.tfrecord").exists()


def test_the_format_of_a_folder_in_a_bucket_is_detected_from_its_files(tmp_path: Path) -> None:
    bucket = MemoryFileSystem()
    for i in range(3):
        file = io.BytesIO()
        np.savez(file, a=np.full((2, 2), i), label=np.array(i))
        bucket.pipe(f"/objects/{i}.npz", file.getvalue())
    for source, keywords in (("memory://objects", {}), ("/objects/", {"source_options": {"filesystem": bucket}})):
        convert_flat(source, tmp_path / "x.tfrecord", **keywords)
        assert tfr.read_arrays(tmp_path / "x.tfrecord")["label"].tolist() == [0, 1, 2]


OTHER_FORMATS = ["c.txt", "c.xlsx", "c.avro", "c.pkl", "c.csv@4", "c.lance/", "c-idx1-ubyte"]


@pytest.mark.plugins("vision")
@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_names_of_other_formats_are_not_written(tmp_path: Path, name: str) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "x.tfrecord")
    with pytest.raises(
        ValueError,
        match=r"cannot be written; use one of \.csv, .*\.parquet, .*\.npy, .*\.tar.*, or \.tfrecord or no suffix",
    ):
        tfr.convert(tmp_path / "x.tfrecord", tmp_path / name)
    assert os.listdir(tmp_path) == ["x.tfrecord"]


@pytest.mark.parametrize(
    "name", ["y", "y.tfrecord", "y.tfrec.gz", "y.records", "v1.2", "y.tfrecord@2", "train-00000-of-00001"]
)
def test_any_other_name_is_tfrecord(tmp_path: Path, name: str) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "x.tfrecord")
    tfr.convert(tmp_path / "x.tfrecord", tmp_path / name)
    assert tfr.count(tmp_path / name) == 2


def test_data_is_not_accepted_as_a_source(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    with tfr.formats.open_npy(tmp_path / "x.npy") as stream:
        for data in (stream, np.arange(3), [np.arange(3)], {"x": [1]}):
            with pytest.raises(TypeError, match=r"expected a path or a list of paths.*write_tfrecord takes data"):
                tfr.convert(data, tmp_path / "x.tfrecord")
    with pytest.raises(TypeError, match="got a bytes"):
        tfr.convert(b"x.npy", tmp_path / "x.tfrecord")  # type: ignore[arg-type]


def test_a_folder_without_data_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no TFRecord files, no images, and no \.csv, .*\.parquet, .*\.npy, "):
        tfr.convert(tmp_path / "empty", tmp_path / "x.tfrecord")
    (tmp_path / "shards").mkdir()
    tfr.write_tfrecord({"x": [1]}, tmp_path / "shards" / "a-00000-of-00002.tfrecord")
    with pytest.raises(FileNotFoundError, match="shard"):
        tfr.convert(tmp_path / "shards", tmp_path / "x.tfrecord")


def test_a_glob_may_match_one_file_but_not_several(tmp_path: Path, bucket: Bucket) -> None:
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.arange(3))
        np.savez(tmp_path / f"{i}.npz", x=np.arange(3))
        for suffix in ("npy", "npz"):
            bucket.fs.pipe(bucket.url(f"a/{i}.{suffix}"), (tmp_path / f"{i}.{suffix}").read_bytes())
    for folder, options in ((str(tmp_path), {}), (bucket.url("a"), {"storage_options": bucket.storage_options})):
        for make, suffix in ((tfr.formats.open_npy, "npy"), (tfr.formats.open_npz, "npz")):
            assert make(f"{folder}/[1]*.{suffix}", **options).num_rows == 3
            with pytest.raises(
                ValueError,
                match=r"matches 2 files: pass a .*folder for one record per (file|archive).*tfr\.open_writer",
            ):
                make(f"{folder}/*.{suffix}", **options)
            with pytest.raises(FileNotFoundError, match="no file matches the pattern"):
                make(f"{folder}/no*.{suffix}", **options)


def test_a_glob_of_idx_files_is_zipped(data: Path, tmp_path: Path) -> None:
    stream = tfr.formats.open_idx(data / "train-*-idx?-ubyte.gz")
    assert sorted(stream.schema.names) == ["image", "label"]
    tfr.convert(data / "train-*-idx?-ubyte.gz", tmp_path / "x.tfrecord")
    assert tfr.count(tmp_path / "x.tfrecord") == stream.num_rows


MEASURED = """
import resource, sys
from tfrecord_io.apps.cli import tfr
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tfr(["convert", sys.argv[1], sys.argv[2]], standalone_mode=False)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units elsewhere")
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, order: str) -> None:
    """4 GiB take 134 MiB in C order and 149 MiB in Fortran order, including the imports."""
    array = np.lib.format.open_memmap(
        tmp_path / "x.npy", "w+", np.float32, (300_000, 256), fortran_order=order == "F"
    )  # sparse
    array[-1] = 1
    del array
    environment = {**os.environ, "PYTHONPATH": str(Path(tfr.__file__).parents[1])}
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "x.npy"), str(tmp_path / "x.tfrecord")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) < 200 << 20
    assert (tmp_path / "x.tfrecord").stat().st_size > 300 << 20


def test_a_schema_decides_where_embedded_schemas_have_no_common_type(tmp_path: Path) -> None:
    tfr.write_tfrecord({"id": [1], "v": [1]}, tmp_path / "1.tfrecord")
    tfr.write_tfrecord({"id": [2], "v": pa.array([1.5], pa.float32())}, tmp_path / "2.tfrecord")
    sources = [tmp_path / "1.tfrecord", tmp_path / "2.tfrecord"]
    with pytest.raises(tfr.errors.SchemaError, match=r"its type is int64 in .*1\.tfrecord and float in .*2\.tfrecord"):
        tfr.convert(sources, tmp_path / "out.tfrecord")
    tfr.convert(sources, tmp_path / "out.tfrecord", schema={"id": "int64", "v": "float32"})
    assert tfr.read_table(tmp_path / "out.tfrecord").to_pydict() == {"id": [1, 2], "v": [1.0, 1.5]}
    tfr.convert(sources, tmp_path / "out.parquet", schema={"id": "int64"})
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {"id": [1, 2]}


@pytest.mark.parametrize(("source", "side"), [("a.csv", "source_options"), ("a.tfrecord", "target_options")])
def test_an_option_of_one_side_is_named_as_that(tmp_path: Path, source: str, side: str) -> None:
    """Not as an option of the other side, whose format does not have it."""
    (tmp_path / "a.csv").write_text("a\n1\n")
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord")
    target = tmp_path / ("b.tfrecord" if source == "a.csv" else "b.csv")
    with pytest.raises(ValueError, match=r"^delimiter='ab': expected one ASCII character") as caught:
        tfr.convert(tmp_path / source, target, **{side: {"delimiter": "ab"}})
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_advice_about_a_source_names_no_option_of_the_target(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1\n")
    with pytest.raises(tfr.errors.DecodeError, match=r"the delimiter, which delimiter= changes"):
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord")


@pytest.mark.parametrize("name", ["episode_{:06d}.parquet", "file-{:03d}.parquet"])
def test_a_dataset_of_lerobot_is_converted_by_the_name_of_its_folder(tmp_path: Path, name: str) -> None:
    folder, target = tmp_path / "robots", tmp_path / "a.tfrecord"
    for below in ("meta/episodes/chunk-000", "data/chunk-000", "data/chunk-001", "videos"):
        (folder / below).mkdir(parents=True)
    (folder / "meta/info.json").write_text("{}")
    pq.write_table(pa.table({"length": [1]}), folder / "meta/episodes/chunk-000/file-000.parquet")
    for episode in range(3):
        frames = pa.table({"action": [[episode, 0.5]], "episode_index": [episode]})
        pq.write_table(frames, folder / f"data/chunk-{episode % 2:03d}" / name.format(episode))
    with pytest.warns(UserWarning, match="the frames of a LeRobot dataset are converted, left out: 'videos'"):
        tfr.convert(folder, target)
    assert sorted(tfr.read_table(target)["episode_index"].to_pylist()) == [0, 1, 2]
    with pytest.raises(FileNotFoundError) as info:
        tfr.convert(folder / "data", target)
    assert f"its folders have such files: '{folder}/data/*/*.parquet' names all" in str(info.value)
