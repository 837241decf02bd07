"""Filesystems of pyarrow: a folder of one, and any that names it shows are read from."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs as pyarrow_fs

import tfrecord_io as tfr
from reading import read_by


def mock() -> Any:
    return pyarrow_fs._MockFileSystem()


def inside(filesystem: Any) -> Any:
    filesystem.create_dir("folder/inner")
    return pyarrow_fs.SubTreeFileSystem("folder/inner", filesystem)


FILESYSTEMS: dict[str, Callable[[Path], tuple[Any, str]]] = {
    "local": lambda path: (pyarrow_fs.LocalFileSystem(), f"{path}/"),
    "folder": lambda path: (pyarrow_fs.SubTreeFileSystem(str(path), pyarrow_fs.LocalFileSystem()), ""),
    "folder of a folder": lambda path: (
        inside(pyarrow_fs.SubTreeFileSystem(str(path), pyarrow_fs.LocalFileSystem())),
        "",
    ),
    "memory": lambda path: (mock(), ""),
    "folder in memory": lambda path: (inside(mock()), ""),
}
TABLE = pa.table({"n": range(20)})


@pytest.mark.parametrize("kind", FILESYSTEMS)
@pytest.mark.parametrize("name", ["a.tfrecord", "out/", "train@2.tfrecord", "grown/"])
def test_names_that_are_shown_are_read(tmp_path: Path, kind: str, name: str) -> None:
    filesystem, root = FILESYSTEMS[kind](tmp_path)
    storage, path = {"storage_options": filesystem}, f"{root}{name}"
    tfr.write_tfrecord({"n": [-1]}, f"{root}other.tfrecord", **storage)
    if name == "grown/":
        for rows in (TABLE[:5], TABLE[5:]):
            tfr.write_tfrecord(rows, path, mode="append", **storage)
    else:
        tfr.write_tfrecord(TABLE, path, shards=2 if name == "out/" else None, **storage)
    dataset = tfr.dataset(path, **storage)
    for read in (path, dataset.files):
        assert read_by(tfr.read_table, read, **storage).equals(TABLE)
        assert read_by(tfr.count, read, **storage) == 20
        with read_by(tfr.open_random, read, **storage) as rows:
            assert rows[19] == {"n": 19}
    if "memory" not in kind:  # which pyarrow cannot pickle
        assert pickle.loads(pickle.dumps(dataset)).to_table().equals(TABLE)
    tfr.merge(dataset.files, f"{root}merged/", **storage)
    assert read_by(tfr.read_table, f"{root}merged/", **storage).equals(TABLE)
    with pytest.raises(FileNotFoundError, match=r"none\.tfrecord"):
        read_by(tfr.read_table, f"{root}none.tfrecord", **storage)


def test_two_folders_of_one_name_are_two() -> None:
    """A filesystem is not found again by a text in which the other one's address stands."""
    both = [inside(mock()) for _ in range(20)]
    for number, filesystem in enumerate(both):
        tfr.write_tfrecord({"n": [number]}, "a.tfrecord", filesystem=filesystem)
    for number, filesystem in enumerate(both):
        assert tfr.read_table(tfr.dataset("a.tfrecord", filesystem=filesystem))["n"].to_pylist() == [number]
