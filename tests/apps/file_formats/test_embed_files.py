"""Files that a table names: in order, missing ones, and paths that leave a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from limited import set_limits
from servers import Bucket
from tfrecord_io.apps.file_formats import embed_files
from transfers import convert_flat


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = []
    for i in range(30):
        (tmp_path / f"{i}.bin").write_bytes(bytes([i]) * (i * 10))
        paths.append(str(tmp_path / f"{i}.bin"))
    return paths


@pytest.mark.parametrize("threads", [1, 3])
def test_files_in_the_order_of_the_rows(files: list[str], threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, file_batch_bytes=1000)
    monkeypatch.setattr(embed_files, "_ROWS", 7)
    frame = pd.DataFrame({"n": range(30), "uri": files, "other": files[::-1]})
    stream = tfr.formats.embed_files(frame, {"a": "uri", "b": "other"}, threads=threads)
    assert stream.schema.names == ["n", "uri", "other", "a", "b"]
    table = stream.read_all()
    contents = [Path(path).read_bytes() for path in files]
    assert table["a"].to_pylist() == contents
    assert table["b"].to_pylist() == contents[::-1]
    assert table["n"].to_pylist() == list(range(30))
    assert table["a"].num_chunks > 5


def test_a_column_is_replaced(files: list[str]) -> None:
    assert tfr.formats.embed_files({"x": files[:2]}, {"x": "x"}).read_all().to_pydict() == {"x": [b"", b"\x01" * 10]}
    codes = pa.table({"x": pa.array(files[:2]).dictionary_encode()})
    assert tfr.formats.embed_files(codes, {"y": "x"}).read_all()["y"].to_pylist() == [b"", b"\x01" * 10]


def test_paths_are_views_or_run_ends(files: list[str]) -> None:
    views = pa.array(files[1:2], pa.string_view())
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(files[1:2]))
    for paths in (views, runs, pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), views)):
        stream = tfr.formats.embed_files(pa.table({"x": paths}), {"y": "x"})
        assert stream.read_all().to_pylist() == [{"x": files[1], "y": b"\x01" * 10}]


def test_missing_files_and_paths(files: list[str], tmp_path: Path) -> None:
    data = {"x": [files[1], None, str(tmp_path / "none")]}
    with pytest.raises(FileNotFoundError, match=r"row 2, column 'x'.*missing=\"null\".*none"):
        tfr.formats.embed_files(data, {"y": "x"}).read_all()
    read = tfr.formats.embed_files(data, {"y": "x"}, missing="null").read_all()
    assert read["y"].to_pylist() == [b"\x01" * 10, None, None]
    with pytest.raises(IsADirectoryError, match="row 0"):
        tfr.formats.embed_files({"x": [str(tmp_path)]}, {"y": "x"}).read_all()
    assert tfr.formats.embed_files({"x": pa.nulls(2)}, {"y": "x"}).read_all()["y"].to_pylist() == [None, None]


@pytest.mark.parametrize("path", ["../0.bin", "/etc/passwd", "a/../../0.bin", "memory://x", "file:///etc/passwd", ""])
def test_paths_stay_below_a_folder(files: list[str], tmp_path: Path, path: str) -> None:
    assert tfr.formats.embed_files({"x": ["1.bin"]}, {"y": "x"}, folder=tmp_path).read_all()["y"].to_pylist() == [
        b"\x01" * 10
    ]
    with pytest.raises(tfr.errors.EncodeError, match="does not stay below the folder") as caught:
        tfr.formats.embed_files({"x": ["1.bin", path]}, {"y": "x"}, folder=tmp_path).read_all()
    assert (caught.value.record, caught.value.feature) == (1, "x")


def test_paths_below_a_folder_may_have_empty_parts_but_no_link_out_of_it(files: list[str], tmp_path: Path) -> None:
    paths = ["./1.bin", ".//1.bin", "in/1.bin"]
    (tmp_path / "in").symlink_to(tmp_path)
    read = tfr.formats.embed_files({"x": paths}, {"y": "x"}, folder=tmp_path).read_all()
    assert read["y"].to_pylist() == [b"\x01" * 10] * 3
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/out").symlink_to(tmp_path)
    with pytest.raises(tfr.errors.EncodeError, match="a link leads out of it"):
        tfr.formats.embed_files({"x": ["out/1.bin"]}, {"y": "x"}, folder=tmp_path / "inside").read_all()


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"y": "z"}, tfr.errors.FeatureNotFoundError),
        ({"y": "n"}, tfr.errors.SchemaError),
        ({"n": "x"}, tfr.errors.SchemaError),
        (["x"], TypeError),
    ],
)
def test_columns_that_do_not_fit(columns: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        tfr.formats.embed_files({"x": ["a"], "n": [1]}, columns)


def test_urls(tmp_path: Path, bucket: Bucket, files: list[str]) -> None:
    bucket.fs.pipe(bucket.url("a/1.bin"), b"one")
    options = {"storage_options": bucket.storage_options}
    stream = tfr.formats.embed_files(
        {"x": [bucket.url("a/1.bin"), bucket.url("a/2.bin")]}, {"y": "x"}, missing="null", **options
    )
    assert stream.read_all()["y"].to_pylist() == [b"one", None]
    stream = tfr.formats.embed_files({"x": ["1.bin"]}, {"y": "x"}, folder=bucket.url("a"), **options)
    assert stream.read_all()["y"].to_pylist() == [b"one"]


def test_convert_embeds_files_of_a_csv(tmp_path: Path, files: list[str]) -> None:
    (tmp_path / "labels.csv").write_text("image_uri,label\n" + "".join(f"{path},{i}\n" for i, path in enumerate(files)))
    tfr.convert(tmp_path / "labels.csv", tmp_path / "a.tfrecord", target_options={"embed": {"image": "image_uri"}})
    assert tfr.read_table(tmp_path / "a.tfrecord", schema={"image": "binary"})["image"].to_pylist()[1] == b"\x01" * 10
    (tmp_path / "labels.csv").write_text("image_uri\n1.bin\nnone.bin\n")
    keywords: dict[str, Any] = {"embed": {"image_uri": "image_uri"}, "embed_folder": tmp_path, "columns": ["image_uri"]}
    with pytest.raises(FileNotFoundError):
        convert_flat(tmp_path / "labels.csv", tmp_path / "b.tfrecord", **keywords)
    assert not (tmp_path / "b.tfrecord").exists()
    convert_flat(tmp_path / "labels.csv", tmp_path / "b.tfrecord", **keywords, target_options={"missing_files": "null"})
    assert tfr.count(tmp_path / "b.tfrecord") == 2
    tfr.convert(
        tmp_path / "a.tfrecord",
        tmp_path / "c.tfrecord",
        target_options={"embed": {"again": "image_uri"}},
        columns=["image_uri"],
    )
    assert tfr.read_table(tmp_path / "c.tfrecord").column_names == ["image_uri", "again"]
    with pytest.raises(TypeError, match="has 'embed', which Parquet"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "c.parquet", target_options={"embed": {"again": "image_uri"}})
    with pytest.raises(TypeError, match="embed_folder"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "c.tfrecord", target_options={"embed_folder": tmp_path})


def test_an_embedded_column_is_not_one_to_read(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_bytes(b"one")
    (tmp_path / "a.csv").write_text("n,path\n1,1.txt\n")
    options = {"embed": {"text": "path"}, "embed_folder": tmp_path}
    with pytest.raises(ValueError, match=r"embed= adds 'text' to .*: omit it in columns=, .*: \{'path': 'path'\}"):
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", columns=["n", "text"], target_options=options)
    options["embed"] = {"path": "path"}
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", columns=["n", "path"], target_options=options)
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {"n": [1], "path": [b"one"]}
