"""Formats of paths: by their names, or as ``source_format=`` and ``target_format=`` say."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import tfrecord_io as tfr
from forked import interpreter
from servers import Bucket, Web
from tfrecord_io.store.paths.manifest import Manifest


def test_standard_input_and_output(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2, 3]}, tmp_path / "a.tfrecord")
    command = [*interpreter(), "-m", "tfrecord_io", "convert", "--to", "tfrecord", "-", "-"]
    done = subprocess.run(command, input=(tmp_path / "a.tfrecord").read_bytes(), capture_output=True, check=True)
    assert b"3 records" in done.stderr
    assert done.stdout == (tmp_path / "a.tfrecord").read_bytes()


def test_idx_without_its_name(tmp_path: Path) -> None:
    (tmp_path / "labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    tfr.convert(tmp_path / "labels", tmp_path / "a.tfrecord", source_format="idx")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {"labels": [7, 2, 1]}
    with pytest.raises(ValueError, match="target_format='idx': expected one of None, 'tfrecord', 'csv', "):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "b", target_format="idx")  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["images", "files"])
def test_folders(tmp_path: Path, key: Any) -> None:
    for name in ("cat/1.png", "dog/2.png"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True)
        Image.new("RGB", (4, 3)).save(tmp_path / "photos" / name)
    tfr.convert(tmp_path / "photos", tmp_path / "a.tfrecord", source_format=key)
    assert ("image/height" in tfr.read_table(tmp_path / "a.tfrecord").column_names) == (key == "images")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "out.csv", target_format=key)
    for name in ("cat/1.png", "dog/2.png"):
        assert (tmp_path / "out.csv" / name).read_bytes() == (tmp_path / "photos" / name).read_bytes()
    other = "all" if key == "images" else "images"
    with pytest.raises(TypeError, match="contradict each other"):
        tfr.convert(tmp_path / "photos", tmp_path / "b.tfrecord", source_format=key, files=other)
    with pytest.raises(ValueError, match="source or target must be TFRecord"):
        tfr.convert(tmp_path / "photos", tmp_path / "b", target_format=key)
    with pytest.raises(TypeError, match="files= writes TFRecord to a folder"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "b", files="images", target_format="tfrecord")
    assert not (tmp_path / "b").exists()


def test_a_folder_in_which_a_manifest_is_removed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, at = tmp_path / "d", Manifest.at
    folder.mkdir()
    (folder / "train.csv").write_text("x\n1\n2\n")
    (folder / "_MANIFEST-test.json").write_text("{}")

    def remove_then_read(*args: Any, **keywords: Any) -> Manifest | None:
        (folder / "_MANIFEST-test.json").unlink(missing_ok=True)  # after it was listed
        return at(*args, **keywords)

    monkeypatch.setattr(Manifest, "at", staticmethod(remove_then_read))
    assert tfr.convert(folder, tmp_path / "a.tfrecord").records == 2


def test_a_folder_with_a_link_to_a_manifest_that_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "train.csv").write_text("x\n1\n2\n")
    (folder / "_MANIFEST-test.json").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="_MANIFEST-test"):
        tfr.convert(folder, tmp_path / "a.tfrecord")


@pytest.mark.parametrize("other", ["info.json", "train.parquet", "train.npy"])
def test_a_folder_with_files_of_several_formats_needs_a_choice(tmp_path: Path, other: str) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "train.csv").write_text("x\n1\n2\n")
    (folder / "more.tsv").write_text("x\n3\n")  # which is CSV, too
    for hidden in (".info.json", "_info.json"):
        (folder / hidden).write_text("{}\n")
    tfr.convert(folder, tmp_path / "0.tfrecord")
    (folder / other).write_text('{"name": "d"}\n')
    with pytest.raises(ValueError, match=r"several formats: '.*' is .* and '.*' is .*; source_format= names"):
        tfr.convert(folder, tmp_path / "a.tfrecord")
    tfr.convert(folder, tmp_path / "a.tfrecord", source_format="csv")
    assert tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist() == [3, 1, 2]
    tfr.convert(folder / "*.csv", tmp_path / "a.tfrecord", mode="overwrite")
    assert tfr.count(tmp_path / "a.tfrecord") == 2


def test_a_folder_of_tables_in_a_bucket_is_listed_once(s3: Bucket, tmp_path: Path, monkeypatch: Any) -> None:
    for day in (1, 2):
        pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "a.parquet")
        s3.fs.put(str(tmp_path / "a.parquet"), s3.url(f"rows/day={day}/a.parquet"))
    listings = []
    client = type(s3.fs)
    request = client._call_s3

    async def counted(self: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
        if method.startswith("list_objects") and keywords.get("MaxKeys") != 1:  # which looks for a single name
            listings.append(keywords.get("Prefix"))
        return await request(self, method, *arguments, **keywords)

    monkeypatch.setattr(client, "_call_s3", counted)
    target, source_options = tmp_path / "a.tfrecord", {"storage_options": s3.storage_options}
    tfr.convert(s3.url("rows/"), target, source_options=source_options)
    assert tfr.read_table(target).to_pydict() == {"n": [1, 2, 1, 2], "day": [1, 1, 2, 2]}
    assert len(listings) == 1


def test_the_query_of_a_web_address_has_no_suffix(tmp_path: Path, web: Web) -> None:
    np.save(tmp_path / "squares.npy", np.arange(3) ** 2)
    web.files.update({"rows.csv": b"n\n1\n2\n", "squares.npy": (tmp_path / "squares.npy").read_bytes()})
    tfr.convert(web.url("rows.csv?token=a.b"), tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {"n": [1, 2]}
    tfr.convert(web.url("squares.npy?token=a.b"), tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {"squares": [0, 1, 4]}
    web.files["download"] = b"n\n3\n"
    tfr.convert(web.url("download?file=rows.parquet"), tmp_path / "a.tfrecord", source_format="csv")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {"n": [3]}


@pytest.mark.plugins("vision")
def test_an_unknown_format_names_the_choices(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"source_format='excel': expected one of None, 'tfrecord', 'csv', .*'files'"):
        tfr.convert("a", "b", source_format="excel")  # type: ignore[arg-type]
    command = [*interpreter(), "-m", "tfrecord_io", "convert", "--from", "excel", "a", "b"]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert shown.returncode == 2
    assert "'jsonl'" in shown.stderr
    with pytest.raises(ValueError, match="Parquet files are not compressed as a whole"):
        tfr.convert("a.gz", "b", source_format="parquet")


def test_what_a_target_cannot_be(tmp_path: Path) -> None:
    source = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [1]}, source)
    with pytest.raises(ValueError, match=r"this writes TFRecord, and \.csv is the suffix of another format"):
        tfr.convert(source, tmp_path / "x.csv", target_format="tfrecord")
    for name, question in (("x.parq", r"did you mean \.parquet\? "), ("x.dta", "; use one of ")):
        with pytest.raises(ValueError, match=rf"{question}.*target_format= states the format of other names"):
            tfr.convert(source, tmp_path / name)
        tfr.convert(source, tmp_path / name, target_format="tfrecord")
        assert tfr.read_table(tmp_path / name).num_rows == 1
    (tmp_path / "folder.x").mkdir()
    tfr.convert(source, tmp_path / "folder.x")
    assert tfr.read_table(tmp_path / "folder.x").num_rows == 1
    command = [*interpreter(), "-m", "tfrecord_io", "convert", str(source), str(tmp_path / "x.jsonlines")]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert shown.returncode == 2
    assert "did you mean .jsonl?" in shown.stderr
    assert "--to states the format" in shown.stderr
    command = [*interpreter(), "-m", "tfrecord_io", "convert", "--to", "images", str(source), "-"]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert shown.returncode == 2
    assert "a folder needs a path as TARGET" in shown.stderr


@pytest.mark.parametrize(
    "name", ["b@4.array_record", "c@4.npz", "c.csv@4", "d-{0..3}.nc", "d-{000..003}.npy", "e@*.jsonl", "f@2.h5"]
)
def test_shards_of_other_formats_are_refused(tmp_path: Path, name: str) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord")
    with pytest.raises(
        ValueError,
        match=r"asks for several files, and a conversion to .* writes one|needs their number|cannot be written; ",
    ):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / name)
    with pytest.raises(ValueError, match="asks for several files"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "b@2", target_format="hdf5")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tfrecord"]
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "me@host.csv")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "b@2.tfrecord")
    assert len([*tmp_path.glob("b-0000?-of-00002.tfrecord")]) == 2
