"""Files are read in order, whatever is prefetched."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from servers import Web
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.files_ahead import SourcePrefetcher
from tfrecord_io.store.read.source import Source


def content(source: Source) -> bytes:
    raw = source.open()
    out = bytearray()
    buffer = memoryview(bytearray(1000))
    while n := raw.readinto(buffer):
        out += buffer[:n]
    raw.close()
    return bytes(out)


@pytest.fixture
def mixed(web: Web, tmp_path: Path) -> list[Any]:
    """Local files, files of a web server, empty files and file objects, alternating."""
    paths: list[Any] = []
    for i in range(20):
        data = bytes([i]) * (i * 37 % 11 * 1000)
        if i % 4 == 0:
            (tmp_path / str(i)).write_bytes(data)
            paths.append(tmp_path / str(i))
        elif i % 4 == 1:
            paths.append(io.BytesIO(data))
        else:
            web.files[str(i)] = data
            paths.append(web.url(str(i)))
    return paths


@pytest.mark.parametrize("stream", [True, False])
def test_files_of_all_kinds_come_in_order(mixed: list[Any], stream: bool) -> None:
    with SourcePrefetcher(resolve_inputs(mixed), stream=stream) as upcoming:
        for i, source in enumerate(upcoming):
            assert content(source) == bytes([i]) * (i * 37 % 11 * 1000)
    with pytest.raises(StopIteration):
        next(upcoming)


def test_files_may_be_left_unread(mixed: list[Any]) -> None:
    with SourcePrefetcher(resolve_inputs(mixed)) as upcoming:
        for i, source in enumerate(upcoming):
            if i % 3 == 2:
                assert content(source) == bytes([i]) * (i * 37 % 11 * 1000)


def test_rewinding_the_first_file_repeats_no_request(web: Web) -> None:
    web.files.update((name, name.encode() * 10_000) for name in "ab")
    sources = resolve_inputs([web.url("a"), web.url("b")])
    with SourcePrefetcher(sources) as upcoming:
        for _ in range(2):
            assert content(next(upcoming)) == b"a" * 10_000
            assert upcoming.rewind()
        assert [content(source) for source in upcoming] == [b"a" * 10_000, b"b" * 10_000]
        assert not upcoming.rewind()
    assert sum(r.startswith("GET a") for r in web.requests) == 1


def test_closing_ends_reading(web: Web) -> None:
    web.files["a"] = bytes(10)
    upcoming = SourcePrefetcher(resolve_inputs(web.url("a")))
    raw = next(upcoming).open()
    upcoming.close()
    with pytest.raises(ValueError, match="closed"):
        raw.readinto(memoryview(bytearray(1)))
    assert not upcoming.rewind()
