"""The message about a missing file names the one that was probably meant."""

from __future__ import annotations

import re
from pathlib import Path

import fsspec
import pytest

import tfrecord_io as tfr
from tfrecord_io.base import StorageOptions
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.paths.similar_files import similar_files

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
    fs, path = Location.of(str(tmp_path / name), StorageOptions())
    assert similar_files(fs, path) == hint.format(folder=tmp_path)


def test_it_is_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "train.tfrecord")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no such file; did you mean 'train.tfrecord'\?: 'trian.tfrecord'"):
        tfr.read_table("trian.tfrecord")
    with pytest.raises(FileNotFoundError, match="no such file; there is no directory 'dta'"):
        tfr.read_table("dta/train.tfrecord")


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "link.tfrecord").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match=r"'link.tfrecord' is a link to 'nowhere', which does not exist"):
        tfr.count(tmp_path / "link.tfrecord")


def test_names_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "train\x1b[31m.tfrecord").write_bytes(b"")
    fs, path = Location.of(str(tmp_path / "train.tfrecord"), StorageOptions())
    assert similar_files(fs, path) == "did you mean 'train\\x1b[31m.tfrecord'?"


def test_directories_of_buckets_are_not_listed() -> None:
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe_file("/bucket/train.tfrecord", b"")
    assert similar_files(*Location.of("memory://bucket/trian.tfrecord", StorageOptions())) == ""


@pytest.mark.parametrize(
    ("files", "pattern"),
    [
        (["train/a.tfrecord", "test/b.tfrecord"], "*/*.tfrecord"),
        (["train/a.tfrecord", "test/x/b.tfrecord"], "**/*.tfrecord"),
        (["x/y/z/a.tfrec.gz", "x/b.tfrec.gz"], "**/*.tfrec.gz"),
        (["train/m-00000-of-00001", "test/m-00000-of-00001"], "*/m-*"),
        (["train/m-00000-of-00001", "test/k.tfrecord"], "*/{*.tfrecord,m-*}"),
        (["train/a.tfrecord.gz", "test/b.tfrecord"], "*/{*.tfrecord,*.tfrecord.gz}"),
        (["day=1/x/a.tfrecord", "day=2/x/b.tfrecord"], "**/*.tfrecord"),
        (["train/t.tfrecord-00000-of-00001", "test/e.tfrecord-00000-of-00001"], "*/{e.tfrecord-*,t.tfrecord-*}"),
    ],
    ids=str,
)
@pytest.mark.parametrize("root", ["d", "d[1]", "memory://bucket/d"])
def test_a_directory_of_directories_names_a_glob_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], pattern: str, root: str
) -> None:
    monkeypatch.chdir(tmp_path)
    fs = fsspec.filesystem("memory" if "://" in root else "file")
    for name in [*files, "test/notes.txt", "train/_SUCCESS", "README.md"]:
        fs.makedirs(f"{root}/{name}".rpartition("/")[0], exist_ok=True)
        fs.pipe_file(f"{root}/{name}", b"")
    for path in (root, f"{root}/"):
        with pytest.raises(FileNotFoundError, match="its folders have such files: ") as caught:
            tfr.read_table(path)
        every, one = re.findall(r"'([^']*)' (?:names all|those of one folder)", str(caught.value))
        assert every.endswith(f"/{pattern}")
        assert len(resolve_inputs(every)) == len(files)  # the advice works
        assert len(resolve_inputs(one)) == 1
    if "memory" in root:
        fs.rm("/bucket", recursive=True)


def test_many_folders_are_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (tmp_path / f"{number:02d}").mkdir()
    (tmp_path / "25" / "a.tfrecord").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="it has 30 other entries, which a glob can name"):
        tfr.read_table(tmp_path)
    (tmp_path / "05" / "a.tfrecord").write_bytes(b"")
    (tmp_path / "03").chmod(0)
    with pytest.raises(FileNotFoundError, match="/05' those of one folder"):
        tfr.read_table(tmp_path)
    (tmp_path / "03").chmod(0o700)
