"""The message about a missing file names the one that was probably meant."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

import tfrecord_io as tfr
from tfrecord_io.options import StorageOptions
from tfrecord_io.storage.filesystem.locate import locate
from tfrecord_io.storage.paths.similar_files import similar_files

FILES = ["train.tfrecord", "test.tfrecord.gz", "big-00000-of-00003", "big-00001-of-00003", "a.tfrecord", ".trein"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("trian.tfrecord", "did you mean 'train.tfrecord'?"),
        ("train.tfrecords", "did you mean 'train.tfrecord'?"),
        ("train", "did you mean 'train.tfrecord'?"),
        ("test.tfrecord", "did you mean 'test.tfrecord.gz'?"),
        ("bigg", "did you mean 'big@3'?"),
        ("big.tfrecord", "did you mean 'big@3'?"),
        ("train.tfrecrd", "did you mean 'train.tfrecord'?"),
        ("test.tfrecord.zg", "did you mean 'test.tfrecord.gz'?"),
        ("b.tfrecord", ""),
        ("other.tfrecord", ""),
        ("nothing/like.it", "there is no directory '{folder}/nothing'"),
        ("train.tfrecord/x", "there is no directory '{folder}/train.tfrecord'"),
    ],
)
def test_hints(tmp_path: Path, name: str, hint: str) -> None:
    for file in FILES:
        (tmp_path / file).write_bytes(b"")
    fs, path = locate(str(tmp_path / name), StorageOptions())
    assert similar_files(fs, path) == hint.format(folder=tmp_path)


def test_it_is_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "train.tfrecord")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no such file; did you mean 'train.tfrecord'\?: 'trian.tfrecord'"):
        tfr.read_table("trian.tfrecord")
    with pytest.raises(FileNotFoundError, match="no such file; there is no directory 'dta'"):
        tfr.read_table("dta/train.tfrecord")


def test_names_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "train\x1b[31m.tfrecord").write_bytes(b"")
    fs, path = locate(str(tmp_path / "train.tfrecord"), StorageOptions())
    assert similar_files(fs, path) == "did you mean 'train\\x1b[31m.tfrecord'?"


def test_directories_of_buckets_are_not_listed() -> None:
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe_file("/bucket/train.tfrecord", b"")
    assert similar_files(*locate("memory://bucket/trian.tfrecord", StorageOptions())) == ""
