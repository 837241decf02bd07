"""Images written to a folder: names that stay in it, all or nothing, and back."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import tfrecord_io as tfr
from folder_trees import content
from rounds import rounds
from servers import Bucket
from tfrecord_io.apps.cli import tfr as command
from transfers import convert_flat

HOSTILE = [
    "../x.png",
    "a/../../x.png",
    "/tmp/x.png",
    "C:\\x.png",
    "C:x.png",
    "a\\..\\x.png",
    "s3://bucket/x.png",
    "",
    ".",
    "a//x.png",
    "./x.png",
    ".bashrc",
    "a/.ssh/x",
    "x.png\n",
    "x\x00.png",
    "CON",
    "nul.png",
    "x" * 300,
    "metadata.csv",
    "a" * 200 + "/" + "b" * 200 + "/" * 1 + "c" * 256,
    "x.png.",
    "metadata.csv/x",
    "a\u2028b.png",
    "a\u202eb.png",
    "a\x85b.png",
]


def test_a_folder_of_images_and_back(tmp_path: Path) -> None:
    for name in ("cat/1.png", "cat/2.png", "dog/1.png"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 3), hash(name) % 255).save(tmp_path / "photos" / name)
    tfr.convert(tmp_path / "photos", tmp_path / "a.tfrecord")
    report = tfr.convert(tmp_path / "a.tfrecord", tmp_path / "again", files="images")
    before, after = content(tmp_path / "photos"), content(tmp_path / "again")
    table = after.pop("metadata.csv").decode()
    assert after == before
    assert report.bytes == sum(map(len, before.values()))
    assert report.records == 3
    (first, *_) = csv.DictReader(table.splitlines())
    assert first == {
        "image/filename": "cat/1.png",
        "image/format": "png",
        "image/height": "3",
        "image/width": "4",
        "label": "0",
        "label/text": "cat",
    }


@pytest.mark.parametrize(("files", "column"), [("images", "image/encoded"), ("file/encoded", "file/encoded")])
def test_lists_are_refused_with_a_way_that_holds_them(tmp_path: Path, files: str, column: str) -> None:
    source = str(tmp_path / "a.tfrecord")
    tfr.write_tfrecord({column: [b"a"], "words": [["a", "b"]]}, source)
    with pytest.raises(tfr.errors.EncodeError, match=r"'words': .* call tfr\.formats\.(\w+) with table=") as caught:
        tfr.convert(source, tmp_path / "out", files=files)
    function = getattr(tfr.formats, str(caught.value).partition("tfr.formats.")[2].partition(" ")[0])
    assert function(source, tmp_path / "out", table="metadata.jsonl").records == 1
    shown = CliRunner().invoke(command, ["convert", source, str(tmp_path / "other"), "--files", files])
    assert "--columns, or write it with another tfr convert" in shown.output
    assert "table=" not in shown.output


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    data = {"image/encoded": [b"a", b"b"], "image/filename": ["ok.png", name]}
    tfr.write_tfrecord(pa.table(data), tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match=r"cannot be used: .*filename=None") as caught:
        tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out" / "images")
    assert (caught.value.path, caught.value.record) == (str(tmp_path / "a.tfrecord"), 1)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [tmp_path / "a.tfrecord"]
    tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "numbered", filename=None)
    assert sorted(os.listdir(tmp_path / "numbered")) == ["00000000.bin", "00000001.bin", "metadata.csv"]


@settings(max_examples=rounds(100), derandomize=True, deadline=None)
@given(name=st.text() | st.lists(st.sampled_from(["a", "..", ".", "", "/", "\\", "C:", "~"])).map("/".join))
def test_no_name_writes_outside(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("names")
    try:
        tfr.write_tfrecord(pa.table({"image/encoded": [b"a"], "image/filename": [name]}), folder / "a.tfrecord")
    except tfr.errors.EncodeError:  # a lone surrogate
        return
    try:
        tfr.formats.write_image_folder(folder / "a.tfrecord", folder / "out", table=None)
    except tfr.errors.EncodeError:
        assert content(folder).keys() == {"a.tfrecord"}
    else:
        assert content(folder).keys() == {"a.tfrecord", f"out/{name}"}


def test_names_in_all_scripts_are_accepted(tmp_path: Path) -> None:
    names = ["at\u202f3.05.png", "a\u3000b.png", "\U0001f469\u200d\U0001f4bb.png", "\u0646\u200c\u0645.png"]
    tfr.write_tfrecord({"image/encoded": [b"a"] * 4, "image/filename": names}, tmp_path / "a.tfrecord")
    tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out", table=None)
    assert content(tmp_path / "out").keys() == set(names)
    tfr.write_tfrecord({"image/encoded": [b"a"], "image/filename": ["a\u202eb"]}, tmp_path / "b.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match=r"U\+202E, which changes the direction of text"):
        tfr.formats.write_image_folder(tmp_path / "b.tfrecord", tmp_path / "none")


def test_a_link_to_an_empty_folder_is_followed(tmp_path: Path) -> None:
    tfr.write_tfrecord({"image": [b"a"]}, tmp_path / "a.tfrecord")
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out", table=None)
    assert (tmp_path / "out").is_symlink()
    assert os.listdir(tmp_path / "real") == ["00000000.bin"]


@pytest.mark.parametrize("names", [["a.png", "a.png"], ["a", "a/b"], ["a/b", "a"], ["a", "a/b/c"], ["a/b/c", "a/b"]])
def test_two_files_of_one_name_are_refused(tmp_path: Path, names: list[str]) -> None:
    tfr.write_tfrecord({"image/encoded": [b"a", b"b"], "image/filename": names}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match="has been written for another record") as caught:
        tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out")
    assert caught.value.record == 1
    assert os.listdir(tmp_path) == ["a.tfrecord"]


def test_the_name_of_a_row_without_an_image_is_in_the_table(tmp_path: Path) -> None:
    data = {"image/encoded": [b"\xff\xd8\xff", None, None], "image/filename": ["a.jpg", "b.jpg", None], "n": [1, 2, 3]}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out")
    assert (tmp_path / "out" / "metadata.csv").read_text() == '"image/filename","n"\n"a.jpg",1\n"b.jpg",2\n,3\n'
    assert sorted(os.listdir(tmp_path / "out")) == ["a.jpg", "metadata.csv"]


def test_the_folder_must_be_new_or_empty(tmp_path: Path) -> None:
    tfr.write_tfrecord({"image": [b"\xff\xd8\xff", None]}, tmp_path / "a.tfrecord")
    (tmp_path / "out").mkdir()
    tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out")
    assert (tmp_path / "out" / "metadata.csv").read_text() == '"image/filename"\n"00000000.jpg"\n\n'
    for taken in (tmp_path / "out", tmp_path / "a.tfrecord"):
        with pytest.raises(FileExistsError):
            tfr.formats.write_image_folder(tmp_path / "a.tfrecord", taken)
    assert sorted(os.listdir(tmp_path)) == ["a.tfrecord", "out"]


def test_the_table_holds_the_other_columns(tmp_path: Path) -> None:
    data = {"picture": [b"\x00\xff", b"\xff"], "name": ["a", "b"], "n": [1, 2], "tags": [["x"], ["y", "z"]]}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match=r"metadata\.jsonl"):
        tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out", filename="name")
    tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "csv", filename="name", columns=["!tags"])
    assert (tmp_path / "csv" / "metadata.csv").read_text() == '"name","n"\n"a",1\n"b",2\n'
    tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out", filename="name", table="metadata.jsonl")
    lines = (tmp_path / "out" / "metadata.jsonl").read_text().splitlines()
    assert json.loads(lines[1]) == {"name": "b", "n": 2, "tags": ["y", "z"]}
    tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "bare", filename="name", table=None, columns=[])
    assert sorted(os.listdir(tmp_path / "bare")) == ["a", "b"]
    for table in ("x.txt", "../x.csv", "a/x.csv"):
        with pytest.raises(ValueError, match="table="):
            tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "new", table=table)


def test_columns_that_do_not_exist_or_fit(tmp_path: Path) -> None:
    tfr.write_tfrecord({"a": [b"\xff"], "b": [b"\xff"], "n": [1]}, tmp_path / "a.tfrecord")
    source, target = tmp_path / "a.tfrecord", tmp_path / "out"
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({}, tfr.errors.FeatureNotFoundError, "columns of bytes: a, b"),
        ({"image": "z"}, tfr.errors.FeatureNotFoundError, "no such column"),
        ({"image": "n"}, tfr.errors.SchemaError, "files are bytes"),
        ({"image": "a", "filename": "z"}, tfr.errors.FeatureNotFoundError, "no such column"),
        ({"image": "a", "filename": "n"}, tfr.errors.SchemaError, "names of files are text"),
        ({"image": "a", "columns": ["z"]}, tfr.errors.FeatureNotFoundError, "'z'"),
    ]
    for keywords, error, reason in cases:
        with pytest.raises(error, match=reason):
            tfr.formats.write_image_folder(source, target, **keywords)
    assert not target.exists()


def test_filters_and_limits(tmp_path: Path) -> None:
    tfr.write_tfrecord({"image": [b"\xff"] * 5, "n": list(range(5))}, tmp_path / "a.tfrecord")
    report = tfr.formats.write_image_folder(
        tfr.dataset(tmp_path / "a.tfrecord", filters=[("n", ">", 2)]), tmp_path / "out", columns=[]
    )
    assert report.records == 2
    assert sorted(os.listdir(tmp_path / "out")) == ["00000000.bin", "00000001.bin", "metadata.csv"]


def test_buckets(tmp_path: Path, bucket: Bucket) -> None:
    tfr.write_tfrecord({"image": [b"\xff", b"\xfe"], "name": ["a/1.jpg", "../1.jpg"]}, tmp_path / "a.tfrecord")
    keywords: dict[str, Any] = {"filename": "name", "storage_options": bucket.storage_options}
    with pytest.raises(tfr.errors.EncodeError):
        tfr.formats.write_image_folder(tmp_path / "a.tfrecord", bucket.url("out"), **keywords)
    assert not bucket.fs.exists(bucket.url("out"))
    tfr.formats.write_image_folder(tfr.dataset(tmp_path / "a.tfrecord", limit=1), bucket.url("out"), **keywords)
    assert bucket.fs.cat(bucket.url("out/a/1.jpg")) == b"\xff"
    assert bucket.fs.cat(bucket.url("out/metadata.csv")) == b'"name"\n"a/1.jpg"\n'
    with pytest.raises(FileExistsError):
        tfr.formats.write_image_folder(tfr.dataset(tmp_path / "a.tfrecord", limit=1), bucket.url("out"), **keywords)


def test_hard_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    """The folder is written under a hidden name of its own, so no link can be put into it beforehand."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").symlink_to(tmp_path / "elsewhere")
    tfr.write_tfrecord({"image/encoded": [b"a"], "image/filename": ["a/b"]}, tmp_path / "a.tfrecord")
    with pytest.raises(FileExistsError):
        tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out")
    assert os.listdir(tmp_path / "elsewhere") == []


# ---- files of any kind

HEADS = {".wav": b"RIFF....WAVE", ".webp": b"RIFF....WEBP", ".flac": b"fLaC", ".npy": b"\x93NUMPY", ".png": b"\x89PNG"}
HEADS |= {".tif": b"II+\0"}


@given(st.dictionaries(st.text("abc", min_size=1), st.binary(), min_size=1))
@settings(max_examples=rounds(20))
def test_a_folder_of_files_and_back(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "in")
        folder.mkdir()
        for name, data in files.items():
            (folder / f"{name}.bin").write_bytes(data)
        overrides = {"file/encoded": "binary"}
        tfr.write_tfrecord(tfr.formats.open_file_folder(folder), Path(temporary, "a.tfrecord"))
        report = tfr.formats.write_file_folder(
            tfr.dataset(f"{temporary}/a.tfrecord", schema_overrides=overrides), Path(temporary, "out"), table=None
        )
        assert content(Path(temporary, "out")) == content(folder)
        assert (report.records, report.bytes) == (len(files), sum(map(len, files.values())))


def test_files_of_any_column(tmp_path: Path) -> None:
    data = {
        "sound": [*HEADS.values(), b"\xff"],
        "picture": [b"\xff"] * 7,
        "key": [f"{n}/é" for n in range(7)],
        "n": [*range(7)],
    }
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "numbered", files="sound", columns=["n"])
    names = [f"{n:08d}{suffix}" for n, suffix in enumerate([*HEADS, ".bin"])]
    assert sorted(os.listdir(tmp_path / "numbered")) == [*names, "metadata.csv"]
    assert (tmp_path / "numbered/metadata.csv").read_text().splitlines()[:2] == ['"file/name","n"', f'"{names[0]}",0']
    keywords: dict[str, Any] = {"columns": ["n"], "filters": [("n", ">", 3)]}
    convert_flat(
        tmp_path / "a.tfrecord", tmp_path / "named", files="picture", target_options={"filename": "key"}, **keywords
    )
    assert content(tmp_path / "named")["4/é"] == b"\xff"
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="columns of bytes: sound, picture"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "out", files="all")
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="no such column"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "out", files="x")
    with pytest.raises(tfr.errors.SchemaError, match="reads text as bytes"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "out", files="key")
    tfr.convert(
        tmp_path / "a.tfrecord",
        tmp_path / "text",
        files="key",
        columns=[],
        source_options={"schema_overrides": {"key": "binary"}},
    )
    assert (tmp_path / "text/00000000.bin").read_text() == "0/é"
    with pytest.raises(ValueError, match="files="):
        tfr.convert(tmp_path / "numbered", tmp_path / "b.tfrecord", files="sound")
    with pytest.raises(TypeError, match=r"has .filename., which Parquet"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "out.parquet", target_options={"filename": "key"})
    tfr.formats.write_file_folder(
        tmp_path / "a.tfrecord", tmp_path / "again", file="sound", filename="key", columns=["n"]
    )
    assert content(tmp_path / "again")["0/é"] == HEADS[".wav"]


def test_files_in_folders_of_classes_come_back_without_the_table(tmp_path: Path) -> None:
    data = {"file/encoded": [b"a", b"b"], "file/name": ["cat/1.x", "dog/1.x"], "label": [0, 1]}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord", schema={"file/encoded": "binary", "file/name": str, "label": int})
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "out", files="all")
    with pytest.warns(UserWarning, match="the table of the files, left out: 'metadata.csv'"):
        stream = tfr.formats.open_file_folder(tmp_path / "out")
    table = stream.read_all()
    assert table.select(list(data)).to_pydict() == data
    assert table["label/text"].to_pylist() == ["cat", "dog"]
    (tmp_path / "out" / "x.csv").touch()
    with pytest.raises(ValueError, match="both in folders"):
        tfr.formats.open_file_folder(tmp_path / "out")


# ---- names without a suffix, records without an image


def picture(format: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 3)).save(file, format)
    return file.getvalue()


SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "GIF": ".gif", "BMP": ".bmp", "WEBP": ".webp", "TIFF": ".tif"}
STEMS = st.text("abé_.-0", min_size=1, max_size=5).filter(lambda n: n.strip(".-") == n)


@settings(max_examples=rounds(30), deadline=None)
@given(st.lists(st.tuples(STEMS, st.sampled_from([*SUFFIXES])), min_size=1, max_size=5, unique_by=lambda i: i[0]))
def test_images_have_the_suffix_of_their_content(images: list[tuple[str, str]]) -> None:
    """``ISIC_0`` was written without one, and the folder read as a folder of CSV."""
    names = [name for name, _ in images]
    pictures = [picture(format) for _, format in images]
    with tempfile.TemporaryDirectory() as temporary:
        data = {"image": pictures, "image_name": names, "target": [*range(len(names))]}
        tfr.write_tfrecord(data, f"{temporary}/a.tfrecord")
        run = CliRunner().invoke(
            command,
            ["convert", f"{temporary}/a.tfrecord", f"{temporary}/out", "--files", "images", "--filename", "image_name"],
        )
        assert run.exit_code == 0, run.output
        written = [f"{name}{SUFFIXES[format]}" for name, format in images]
        assert content(Path(temporary, "out")).keys() == {*written, "metadata.csv"}
        rows = list(csv.DictReader(Path(temporary, "out/metadata.csv").read_text().splitlines()))
        assert [row["image_name"] for row in rows] == written
        with pytest.warns(UserWarning, match=r"not an image, left out: 'metadata\.csv'"):
            tfr.convert(f"{temporary}/out", f"{temporary}/b.tfrecord")
        back = tfr.read_table(f"{temporary}/b.tfrecord")
    assert dict(zip(back["image/filename"].to_pylist(), back["image/encoded"].to_pylist(), strict=True)) == dict(
        zip(written, pictures, strict=True)
    )


def test_a_name_of_another_format_is_kept_and_named(tmp_path: Path) -> None:
    tfr.write_tfrecord({"image": [picture("PNG")] * 3, "n": ["a.png", "b.JPG", "c.jpeg"]}, tmp_path / "a.tfrecord")
    with pytest.warns(
        UserWarning, match=r"2 of 3 images have the suffix of another format, the first: 'b\.JPG' is \.png"
    ):
        tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out", filename="n", table=None)
    assert sorted(os.listdir(tmp_path / "out")) == ["a.png", "b.JPG", "c.jpeg"]


def test_an_image_without_bytes_is_an_error(tmp_path: Path) -> None:
    """It became a file of 0 bytes."""
    tfr.write_tfrecord({"image": [picture("PNG"), b""], "n": ["a.png", "b.png"]}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match="it has no image bytes") as caught:
        tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out", filename="n")
    assert (caught.value.path, caught.value.record, caught.value.feature) == (str(tmp_path / "a.tfrecord"), 1, "image")
    assert os.listdir(tmp_path) == ["a.tfrecord"]
    tfr.formats.write_file_folder(tmp_path / "a.tfrecord", tmp_path / "out", filename="n")  # a file may be empty
    assert content(tmp_path / "out")["b.png"] == b""


def test_records_without_an_image_are_counted(tmp_path: Path) -> None:
    data = pa.table({"image": pa.array([None, picture("PNG"), None]), "n": [1, 2, 3]})
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    with pytest.warns(UserWarning, match=r"out: 2 of 3 records have no image.* the first: record 0"):
        tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["00000001.png", "metadata.csv"]
