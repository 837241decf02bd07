"""Several files are read side by side, and give the rows, numbers and errors of a read in order."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from reading import read_by
from reading_modes import blocks_of, on_disk
from records import example, framed, int64s, written
from tfrecord_io.read.chunks.block_walker import BlockWalker

THREADS = (1, 2, 3, 8)


def numbered(folder: Path, files: int, rows: int) -> list[Path]:
    contents = ([example(x=int64s(file * rows + i)) for i in range(rows)] for file in range(files))
    return [written(folder / f"{file:02}.tfrecord", content) for file, content in enumerate(contents)]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were opened in advance."""
    paths: list[str] = []
    open_ahead = BlockWalker.open_ahead

    def recorded(self: BlockWalker) -> Any:
        file = open_ahead(self)
        if file is not None and self.file is not None:
            paths.append(file.path)
        return file

    monkeypatch.setattr(BlockWalker, "open_ahead", recorded)
    return paths


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("rows", [1, 30, 300])
def test_many_files_are_read_side_by_side(
    engine: str, tmp_path: Path, opened: list[str], threads: int, rows: int
) -> None:
    paths = numbered(tmp_path, 20, rows)
    with blocks_of(1000), tfr.open_reader(tfr.dataset(paths, threads=threads, sample="all")) as reader:
        assert reader.read_all()["x"].to_pylist() == list(range(20 * rows))
    with blocks_of(1000):
        table = tfr.read_table(tfr.dataset(paths, threads=threads, include_file_paths="path"))
    assert table["x"].to_pylist() == list(range(20 * rows))
    assert table["path"].to_pylist() == [str(path) for path in paths for _ in range(rows)]
    assert bool(opened) == (threads > 1)


@pytest.mark.parametrize("threads", THREADS)
def test_compressed_and_empty_files_among_others(engine: str, tmp_path: Path, threads: int) -> None:
    paths = numbered(tmp_path, 9, 50)
    for path in (paths[0], paths[4], paths[5]):
        path.write_bytes(gzip.compress(path.read_bytes()))
    paths[3:3] = [written(tmp_path / "empty.tfrecord", [])]
    with blocks_of(300):
        assert tfr.read_table(tfr.dataset(paths, threads=threads))["x"].to_pylist() == list(range(450))
        assert tfr.read_table(tfr.dataset(paths, threads=threads, offset=170))["x"].to_pylist() == list(range(170, 450))


@pytest.mark.parametrize("threads", THREADS)
def test_compressed_files_are_decompressed_side_by_side(
    engine: str, tmp_path: Path, opened: list[str], threads: int
) -> None:
    paths = numbered(tmp_path, 9, 50)
    for path in paths:
        path.write_bytes(gzip.compress(path.read_bytes()))
    with blocks_of(300):
        assert tfr.read_table(tfr.dataset(paths, threads=threads))["x"].to_pylist() == list(range(450))
        assert bool(opened) == (threads > 1)
        paths[6].write_bytes(paths[6].read_bytes()[:-9])
        with pytest.raises(tfr.errors.CompressionError, match="the file is truncated") as caught:
            tfr.read_table(tfr.dataset(paths, threads=threads))
    assert caught.value.path == str(paths[6])


@pytest.mark.parametrize("threads", THREADS)
def test_the_first_file_with_an_error_is_told(engine: str, tmp_path: Path, threads: int) -> None:
    paths = numbered(tmp_path, 12, 40)
    paths[7].write_bytes(framed(example(x=int64s(1)), b"\xff"))
    paths[8].write_bytes(b"no records")
    paths[9].write_bytes(gzip.compress(paths[9].read_bytes())[:50])
    with blocks_of(200):
        with pytest.raises(tfr.errors.DecodeError) as caught:
            tfr.read_table(tfr.dataset(paths, threads=threads))
        assert (caught.value.path, caught.value.record, caught.value.records_intact) == (str(paths[7]), 1, 281)
        with pytest.warns(tfr.errors.StoppedEarlyWarning):
            assert tfr.read_table(tfr.dataset(paths, threads=threads), on_error="stop").num_rows == 281


@pytest.mark.parametrize("threads", THREADS)
def test_a_file_that_cannot_be_opened_in_advance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """The error is raised when its turn comes: not if the read ends before."""
    paths = numbered(tmp_path, 6, 40)
    paths[3].write_bytes(framed(example(x=int64s(1)), b"\xff"))
    open_next = BlockWalker.open_next

    def without_file(self: BlockWalker) -> bool:
        paths[4].unlink(missing_ok=True)
        return open_next(self)

    monkeypatch.setattr(BlockWalker, "open_next", without_file)
    with blocks_of(200), pytest.raises(tfr.errors.DecodeError):
        tfr.read_table(tfr.dataset(paths, threads=threads))
    numbered(tmp_path, 6, 40)
    with blocks_of(200), pytest.raises(FileNotFoundError, match="04"):
        tfr.read_table(tfr.dataset(paths, threads=threads))


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("places", [[(0, -3)], [(0, 5), (0, -3), (1, 0)], [(1, 700), (2, -1)], [(0, -3), (1, -3)]])
def test_rows_behind_damage_are_read_once(
    engine: str, tmp_path: Path, threads: int, places: list[tuple[int, int]]
) -> None:
    """Where the walk goes on in a file that is decoded ahead, its segments are not used."""
    contents = [bytearray(framed(*(example(x=int64s(400 * i + j)) for j in range(400)))) for i in range(4)]
    for number, at in places:
        contents[number][at] ^= 1
    paths = [tmp_path / f"{i}" for i in range(4)]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    with blocks_of(500), pytest.warns(tfr.errors.DamagedDataWarning):
        table = tfr.read_table(tfr.dataset(paths, threads=threads), on_error="skip")
    assert table["x"].to_pylist() == sorted(set(table["x"].to_pylist()))
    assert table.num_rows == 1600 - len(places)


@given(
    st.lists(st.integers(0, 120) | st.just(60), min_size=2, max_size=6),
    st.sampled_from([10, 20, 30, 60, 80]) | st.integers(1, 130),
    st.none() | st.integers(1, 400),
    st.sets(st.tuples(st.integers(0, 5), st.sampled_from([0, -1]) | st.integers(0, 119)), max_size=3),
)
def test_files_of_any_size_are_read_once(
    sizes: list[int], batch_size: int, limit: int | None, damaged: set[tuple[int, int]]
) -> None:
    """Small files, which have no segments, stand between others; batches and damage end where files end, or do not."""
    contents = [[example(x=int64s(1000 * file + i)) for i in range(rows)] for file, rows in enumerate(sizes)]
    frame = len(framed(example(x=int64s(1000))))
    lost = {(file, record % sizes[file]) for file, record in damaged if file < len(sizes) and sizes[file]}
    rows = [1000 * f + i for f, size in enumerate(sizes) for i in range(size) if (f, i) not in lost]
    with blocks_of(10 * frame), on_disk(contents) as paths, pytest.MonkeyPatch.context() as patch:
        set_limits(patch, decoded_file_bytes=25 * frame)
        for file, record in lost:
            content = bytearray(paths[file].read_bytes())
            content[len(framed(*contents[file][: record + 1])) - 5] ^= 1  # the last byte of the payload
            paths[file].write_bytes(content)
        how = {"schema": {"x": "int64"}, "on_error": "skip"} if lost else {"schema": {"x": "int64"}}
        for threads in THREADS:
            with read_by(tfr.open_reader, paths, threads=threads, batch_size=batch_size, limit=limit, **how) as reader:
                found = [x for batch in reader for x in batch["x"].to_pylist()]
            assert found == rows[:limit]
            assert read_by(tfr.read_table, paths, threads=threads, limit=limit, **how)["x"].to_pylist() == rows[:limit]
