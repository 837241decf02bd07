"""Listings of local folders: pipes, sockets and links."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

import tfrecord_io as tfr
from tfrecord_io.storage.filesystem.interface import LocalFileSystem


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A regular file, a folder, a pipe, a link to it, a socket and a dangling link."""
    folder = tmp_path / "data"
    (folder / "f.tfrecord").mkdir(parents=True)
    tfr.write_tfrecord({"x": [1, 2]}, folder / "a.tfrecord")
    os.mkfifo(folder / "pipe.tfrecord")
    (folder / "link.tfrecord").symlink_to("pipe.tfrecord")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(folder / "socket.tfrecord"))  # its path may have 107 bytes
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
