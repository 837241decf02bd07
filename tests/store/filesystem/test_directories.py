"""Directories of local files that other processes create and remove meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tfrecord_io.store.filesystem.directories import create_directories, remove_directories


def test_what_was_missing_is_returned_and_removed(tmp_path: Path) -> None:
    created = create_directories(str(tmp_path / "a/b"))
    assert created == (str(tmp_path / "a/b"), str(tmp_path / "a"))
    assert create_directories(str(tmp_path / "a/b")) == ()
    remove_directories(created)
    assert os.listdir(tmp_path) == []


def test_a_directory_that_another_process_has_just_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def create_twice(path: str) -> None:
        if path.endswith("b"):
            mkdir(path)
        mkdir(path)

    monkeypatch.setattr(os, "mkdir", create_twice)
    assert create_directories(str(tmp_path / "a/b")) == (str(tmp_path / "a"),)  # only this may be removed


def test_a_parent_that_another_writer_has_just_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir, removed = os.mkdir, []

    def remove_parent_once(path: str) -> None:
        if path.endswith("b") and not removed:
            removed.append(os.rmdir(tmp_path / "a"))
        mkdir(path)

    monkeypatch.setattr(os, "mkdir", remove_parent_once)
    created = create_directories(str(tmp_path / "a/b"))
    assert removed
    assert set(created) == {str(tmp_path / "a/b"), str(tmp_path / "a")}
    assert (tmp_path / "a/b").is_dir()
