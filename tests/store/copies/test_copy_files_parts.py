"""The parts of a copy, each made and used alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from tfrecord_io.base.options.options_base import StorageOptions
from tfrecord_io.store.copies import copied_files
from tfrecord_io.store.copies.copied_files import Found
from tfrecord_io.store.copies.copy_files import FileCopyOptions, _list_target, _place, _Target
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.source import Source


def target_of(folder: Path, found: Found, written: set[str] | None = None, **keywords: Any) -> _Target:
    path = f"{folder}/"
    fs, name = Location.of(path, StorageOptions.DEFAULT)
    directory, found = _place(path, fs, name, found)
    listing = _list_target(fs, directory, found, all_files=False)
    options, written = FileCopyOptions(**keywords), set() if written is None else written
    return _Target(
        path=path, fs=fs, directory=directory, listing=listing, options=options, choose=None, written=written
    )


@pytest.fixture
def files(tmp_path: Path) -> list[tuple[str, Source]]:
    (tmp_path / "d").mkdir()
    (tmp_path / "e").mkdir()
    for number, name in enumerate(("a.tfrecord", "b.tfrecord")):
        tfr.write_tfrecord({"x": [number]}, tmp_path / "d" / name)
    (tmp_path / "e" / "a.tfrecord").write_bytes((tmp_path / "d" / "a.tfrecord").read_bytes())
    return [(Path(source.path).name, source) for source in resolve_inputs(tmp_path / "d")]


def test_files_with_equal_content_are_not_changed(files: list[tuple[str, Source]], tmp_path: Path) -> None:
    found = Found(files=files, directories=1)
    assert [name for name, _ in target_of(tmp_path / "e", found, update=True).changed_files(files)] == ["b.tfrecord"]
    assert target_of(tmp_path / "e", found, mode="overwrite").changed_files(files) == files


def test_a_file_of_the_target_is_refused_unless_this_call_wrote_it(
    files: list[tuple[str, Source]], tmp_path: Path
) -> None:
    found = Found(files=files, directories=1)
    with pytest.raises(FileExistsError, match="update=True copies what differs"):
        target_of(tmp_path / "e", found).changed_files(files)
    assert target_of(tmp_path / "e", found, {"a.tfrecord"}).changed_files(files) == files[1:]


def test_files_that_the_source_lost_are_gone(files: list[tuple[str, Source]], tmp_path: Path) -> None:
    found = Found(files=files[1:], directories=1)
    assert target_of(tmp_path / "e", found, update=True).gone(found) == ["a.tfrecord"]
    assert target_of(tmp_path / "e", found).gone(found) == []


def test_a_whole_dataset_is_no_part_because_of_an_append_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`update` refuses a part, as it would remove the other files from the target."""
    source, appended = f"{tmp_path}/d/b@1", [2, 3]
    tfr.write_tfrecord({"x": [1]}, source, mode="append")

    def resolve_beside_a_writer(*arguments: Any) -> Any:
        sources = resolve_inputs(*arguments)
        if appended:
            tfr.write_tfrecord({"x": [appended.pop(0)]}, source, mode="append")
        return sources

    monkeypatch.setattr(copied_files, "resolve_inputs", resolve_beside_a_writer)
    tfr.copy(f"{tmp_path}/d/b", f"{tmp_path}/e/", update=True)
    assert tfr.read_table(f"{tmp_path}/e/")["x"].to_pylist() == [1, 2, 3]
