"""Which objects are held while a call reads them."""

from __future__ import annotations

from typing import Any

import fsspec
import pytest

from limited import set_limits
from tfrecord_io.read.index import indexed_files
from tfrecord_io.read.index.indexed_files import hold_small_objects
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.random_access_file import RandomAccessFile
from tfrecord_io.store.read.source import Source


@pytest.fixture
def objects() -> list[Source]:
    fs: Any = fsspec.filesystem("memory")
    for at, size in enumerate([100, 300, 100, 100]):
        fs.pipe(f"/held/{at}", bytes([at]) * size)
    return resolve_inputs([f"memory://held/{at}" for at in range(4)])


def test_small_objects_are_held_as_far_as_memory_reaches(
    objects: list[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, whole_object_bytes=200)
    monkeypatch.setattr(indexed_files, "_HELD_BYTES", 250)
    held = hold_small_objects(objects)
    assert [source.held is not None for source in held] == [True, False, True, False]
    assert hold_small_objects([objects[0].replace(size=None)])[0].held is None


def test_what_is_held_is_read_by_all_until_it_is_dropped(objects: list[Source]) -> None:
    first = hold_small_objects(objects)[0]
    with RandomAccessFile.open(first) as file:
        assert file.read(10, 12).tobytes() == b"\0\0"
    fs: Any = fsspec.filesystem("memory")
    fs.pipe("/held/0", b"other")
    buffer = bytearray(200)
    assert first.open().readinto(memoryview(buffer)) == 100
    with RandomAccessFile.open(first) as file:
        assert file.read(0, 100).tobytes() == bytes(100)
        assert file.read(5, 5).tobytes() == b""
    assert first.held is not None
    first.held.drop()
    assert first.open().readinto(memoryview(buffer)) == 5
    assert first.drop_held_content().held is not first.held


def test_a_local_file_is_not_held(tmp_path: Any) -> None:
    (tmp_path / "a").write_bytes(b"x")
    sources = resolve_inputs(tmp_path / "a")
    assert hold_small_objects(sources) == sources
    assert hold_small_objects(sources)[0].held is None
    assert sources[0].drop_held_content() is sources[0]
