"""Listings of local folders: pipes, sockets and links."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import socket
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.store.filesystem.interface import LocalFileSystem


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A regular file, a folder, a pipe, a link to it, a socket and a dangling link."""
    folder = tmp_path / "data"
    (folder / "f.tfrecord").mkdir(parents=True)
    tfr.write_tfrecord({"x": [1, 2]}, folder / "a.tfrecord")
    os.mkfifo(folder / "pipe.tfrecord")
    (folder / "link.tfrecord").symlink_to("pipe.tfrecord")
    with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.tfrecord")  # a path may have 107 bytes
    (folder / "dangling.tfrecord").symlink_to("nowhere")
    return folder


def test_what_may_block_is_not_listed(folder: Path) -> None:
    files = LocalFileSystem()
    expected = ["a.tfrecord", "dangling.tfrecord", "f.tfrecord"]
    assert sorted(entry.basename for entry in files.listing(str(folder))) == expected
    assert sorted(entry.basename for entry in files.glob(f"{folder}/*.tfrecord")) == expected
    pipe = files.entry(str(folder / "link.tfrecord"))
    assert pipe is not None
    assert pipe.size is None


@pytest.mark.timeout(30)
def test_folders_with_pipes_are_read(folder: Path) -> None:
    (folder / "dangling.tfrecord").unlink()
    for path in (folder, f"{folder}/*.tfrecord"):
        assert tfr.read_table(path)["x"].to_pylist() == [1, 2]
    with tfr.formats.open_file_folder(folder) as rows:
        assert rows.read_all()["file/name"].to_pylist() == ["a.tfrecord"]


@pytest.mark.parametrize("target", ["nowhere", "b.tfrecord"])
def test_a_dangling_link_is_a_file_that_does_not_open(tmp_path: Path, target: str) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord")
    (tmp_path / "b.tfrecord").symlink_to(target)  # the second one to itself
    calls = {
        "adopt": lambda: tfr.adopt(tmp_path),
        "build_index": lambda: tfr.build_index(tmp_path, columns=["x"]),
        "write_indexes": lambda: write_indexes(tmp_path),
    }
    for name, call in calls.items():
        with pytest.raises(OSError, match=r"b\.tfrecord") as raised:
            call()
        assert raised.value.errno == (errno.ENOENT if target == "nowhere" else errno.ELOOP), name


@pytest.mark.parametrize("length", [242, 243, 249, 250, 255])
def test_names_as_long_as_the_system_allows(tmp_path: Path, length: int) -> None:
    """Those of their indexes would be longer, so that there are none."""
    path = tmp_path / f"{'x' * (length - 9)}.tfrecord"
    for rows in (2, 3):
        tfr.write_tfrecord({"x": range(rows)}, path, mode="overwrite")
        assert tfr.count(path) == rows
        assert tfr.read_table(path, filters=[("x", "<", 1)]).num_rows == 1
    with tfr.open_random(path, key="x") as records:
        assert records.lookup(2) == {"x": 2}
    tfr.copy(path, tmp_path / "copy/")
    assert tfr.verify(tmp_path / "copy").ok


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Folders in folders, some of them hidden or links, with files."""
    for name in ("a.rec", "x/b.rec", "x/.h/c.rec", ".h/d.rec", "x/y/x/e.rec", "x/[z]/f.rec", "k=1/g.rec", "x/y/.i.rec"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "k=1" / "linked").symlink_to("../x/y")
    (tmp_path / "x" / "self").symlink_to("self")
    return tmp_path


def test_a_folder_that_may_not_be_listed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        tfr.write_tfrecord({"x": [1, 2]}, f"{tmp_path}/a/k={number}/b@1")
        (tmp_path / f"a/k={number}/_MANIFEST-b.json").unlink()
    real, refused = os.scandir, [errno.EACCES]

    def scandir(path: str) -> Any:
        if os.path.basename(path.rstrip("/")) == "k=2":
            raise OSError(refused[0], os.strerror(refused[0]), path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    for path in (f"{tmp_path}/a", f"{tmp_path}/a/**/b-*", f"{tmp_path}/a/*/b-*", f"{tmp_path}/a/k=[12]/*"):
        with pytest.raises(PermissionError, match="k=2"):
            tfr.count(path)
    refused[0] = errno.ENOENT
    assert tfr.count(tmp_path / "a") == tfr.count(f"{tmp_path}/a/*/b-*") == 2


def test_a_file_in_a_folder_that_may_not_be_entered_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be one of the files of a pattern that ends in a name."""
    for number in (1, 2):
        (tmp_path / f"k={number}").mkdir()
        tfr.write_tfrecord({"x": [1, 2]}, tmp_path / f"k={number}" / "b.tfrecord")
    real = os.lstat

    def lstat(path: str, **keywords: Any) -> os.stat_result:
        if path.endswith("k=2/b.tfrecord"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, **keywords)

    monkeypatch.setattr(os, "lstat", lstat)
    with pytest.raises(PermissionError, match=r"k=2/b\.tfrecord"):
        tfr.count(f"{tmp_path}/*/b.tfrecord")


PATTERNS = ["**", "**/*", "**/*.rec", "x/**", "*/**", "*=*/**", "**/x/**", "**/x/**/*.rec", "**/.h/*", ".h/**", "**/.*"]
PATTERNS += [
    "*",
    "*/*",
    "*/",
    "*/*/",
    ".*",
    "*/.*",
    "x/*/*.rec",
    "*/a.rec",
    "*/b.rec",
    "[x]/[[]z]/f.rec",
    "x/[[]z]/*",
    "nothing",
]
PATTERNS += [
    "*/self",
    "*/self/*",
    "x//*.rec",
    "*/y//x/*",
    "./*/../*.rec",
    "**/**/e.rec",
    "**/nothing",
    "x/**/",
    "x//**//*.rec",
    "x**/*",
    "**x/*",
    "[x]/**/[a-e].rec",
    "nothing/**",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_as_those_of_python(tree: Path, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    monkeypatch.chdir(tree)
    for prefix in ("", "./", f"{tree}/"):
        expected = [name for name in glob.glob(prefix + pattern, recursive=True) if os.path.isfile(name)]
        found = [entry.name for entry in LocalFileSystem().glob(prefix + pattern) if entry.size is not None]
        assert sorted(found) == sorted(set(expected))


@pytest.mark.timeout(30)
@pytest.mark.parametrize("pattern", ["**", "**/*.tfrecord", "**/b/*", "**/b/**/*.tfrecord"])
def test_a_link_to_a_folder_that_it_is_in_is_not_followed(tmp_path: Path, pattern: str) -> None:
    """Its files would be read once for each of the 40 links that the system follows, or of their 2**40 orders."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a/b/c.tfrecord")
    for name in ("up", "up2", "here"):
        (tmp_path / "a" / "b" / name).symlink_to("." if name == "here" else "..")
    assert tfr.count(f"{tmp_path}/a/{pattern}") == 2
