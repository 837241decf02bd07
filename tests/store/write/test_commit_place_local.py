"""The directories of sharded datasets on the local disk."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tfrecord_io as tfr
from tfrecord_io.store import operating_systems
from tfrecord_io.store.paths import manifest_files


def test_a_directory_that_another_process_creates_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exists = os.path.lexists

    def created_meanwhile(path: str) -> bool:
        (tmp_path / "d").mkdir(exist_ok=True)
        return exists(path)

    monkeypatch.setattr(os.path, "lexists", created_meanwhile)
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "d" / "train@2", threads=1)
    assert tfr.read_table(tmp_path / "d")["x"].to_pylist() == [1, 2]


@pytest.fixture
def in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a dataset whose manifest is in parts."""
    for name, value in {"many": 1, "large_bytes": 0, "tail": 0}.items():
        monkeypatch.setattr(manifest_files.SIZES, name, value)
    tfr.write_tfrecord({"x": [0, 1, 2], "day": [0, 1, 2]}, tmp_path / "d/", partition_by="day")
    return tmp_path / "d"


def directory_of_mark(directory: Path) -> int | None:
    number: int | None = json.loads((directory / "_MANIFEST.json").read_text()).get("alone_in")
    return number


def listed_directories(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The directories that are listed from now on."""
    listed, listdir = [], os.listdir

    def note(path: str) -> list[str]:
        listed.append(path)
        return listdir(path)

    monkeypatch.setattr(os, "listdir", note)
    return listed


def test_the_directory_of_a_manifest_that_is_alone_is_not_listed(
    in_parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert directory_of_mark(in_parts) == in_parts.stat().st_ino
    listed = listed_directories(monkeypatch)
    assert tfr.count(in_parts) == tfr.read_table(in_parts).num_rows == 3
    tfr.write_tfrecord({"x": [3], "day": [3]}, f"{in_parts}/", partition_by="day", mode="append")
    tfr.delete(in_parts, filters="day = 0")
    assert f"{in_parts}/" not in listed
    assert tfr.read_table(in_parts)["x"].to_pylist() == [1, 2, 3]


def write_by_name(directory: Path) -> None:
    tfr.write_tfrecord({"x": [7, 8]}, directory / "train@2")


def append_by_name(directory: Path) -> None:
    tfr.write_tfrecord({"x": [7, 8]}, directory / "train@*", mode="append")


def copy_by_name(directory: Path) -> None:
    tfr.write_tfrecord({"x": [7, 8]}, directory.parent / "other" / "train@2")
    tfr.copy(directory.parent / "other" / "train@2", f"{directory}/")


@pytest.mark.parametrize("put_beside", [write_by_name, append_by_name, copy_by_name])
def test_another_manifest_is_seen(in_parts: Path, put_beside: Callable[[Path], None]) -> None:
    assert tfr.count(in_parts) == 3
    put_beside(in_parts)
    assert directory_of_mark(in_parts) is None
    assert tfr.count(in_parts) == 5  # of all files in it and its folders
    assert tfr.count(in_parts / "train@*") == 2
    tfr.write_tfrecord({"x": [3], "day": [3]}, f"{in_parts}/", partition_by="day", mode="append")
    assert directory_of_mark(in_parts) is None
    for path in in_parts.glob("*train*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    tfr.write_tfrecord({"x": [4], "day": [3]}, f"{in_parts}/", partition_by="day", mode="append")
    assert directory_of_mark(in_parts) == in_parts.stat().st_ino
    assert tfr.count(in_parts) == 5


def test_the_mark_goes_before_the_other_manifest_comes(in_parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced, replace = [], operating_systems.current.replace

    def stop_at(source: str, target: str) -> None:
        replaced.append(os.path.basename(target))
        if "train" in target:
            raise OSError(errno.EIO, "broken", target)
        replace(source, target)

    monkeypatch.setattr(operating_systems.current, "replace", stop_at)
    with pytest.raises(OSError, match="broken"):
        tfr.write_tfrecord({"x": [7, 8]}, in_parts / "train@*", mode="append")
    assert replaced[0] == "_MANIFEST.json"
    assert directory_of_mark(in_parts) is None
    assert tfr.count(in_parts) == 3


def test_the_mark_is_that_of_one_directory(in_parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_by_name(in_parts.parent / "copy")
    shutil.copytree(in_parts, in_parts.parent / "copy", dirs_exist_ok=True)
    assert directory_of_mark(in_parts.parent / "copy") == directory_of_mark(in_parts)
    assert tfr.count(in_parts.parent / "copy") == 5
    in_parts.rename(in_parts.parent / "moved")
    listed = listed_directories(monkeypatch)
    assert tfr.count(in_parts.parent / "moved") == 3
    assert not listed


def test_a_filesystem_without_locks_has_no_mark(in_parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(operating_systems.current), "_lock", lambda *_, **__: False)
    with pytest.raises(OSError, match="has no locks"):
        write_by_name(in_parts)
    assert not [*in_parts.glob("_MANIFEST-*")]
    assert directory_of_mark(in_parts) is not None
    other = in_parts.parent / "other"
    write_by_name(other)
    assert tfr.count(other) == 2
