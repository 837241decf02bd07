"""Streams of array files: each is consumed once, reading it again is an error, and its files are closed."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr

ROWS = 100_000  # more than a batch


@pytest.fixture
def npy(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.arange(ROWS))
    return tmp_path / "x.npy"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    np.savez_compressed(tmp_path / "x.npz", x=np.asfortranarray(np.ones((ROWS, 3), np.float32)), y=np.arange(ROWS))
    return tmp_path / "x.npz"


def test_a_consumed_stream_does_not_empty_a_file(npy: Path, tmp_path: Path) -> None:
    stream = tfr.formats.open_npy(npy)
    assert tfr.write_tfrecord(stream, tmp_path / "x.tfrecord").records == ROWS
    with pytest.raises(ValueError, match="the stream has been consumed; open it again"):
        tfr.write_tfrecord(stream, tmp_path / "x.tfrecord")
    assert tfr.count(tmp_path / "x.tfrecord") == ROWS


def test_every_way_to_read_a_consumed_stream_raises(npy: Path) -> None:
    stream = tfr.formats.open_npy(npy)
    assert sum(map(len, stream)) == ROWS
    ways: list[Callable[[], object]] = [
        stream.read_all,
        lambda: list(stream),
        lambda: pa.table(stream),
        stream.__arrow_c_stream__,
    ]
    for way in ways:
        with pytest.raises(ValueError, match="consumed"):
            way()
    with pytest.raises(StopIteration):
        stream.read_next_batch()


def test_the_rest_of_a_stream_can_be_read_but_not_written_as_a_whole(npy: Path, tmp_path: Path) -> None:
    stream = tfr.formats.open_npy(npy)
    first = next(stream)
    for way in (lambda: tfr.write_tfrecord(stream, tmp_path / "x.tfrecord"), lambda: pa.table(stream)):
        with pytest.raises(ValueError, match="a part of the stream has been consumed"):
            way()
    assert first.num_rows + stream.read_all().num_rows == ROWS


def test_a_partly_consumed_reader_is_not_written_as_a_whole(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2, 3]}, tmp_path / "x.tfrecord")
    with tfr.open_reader(tmp_path / "x.tfrecord", batch_size=1) as reader:
        next(reader)
        with pytest.raises(ValueError, match="a part of the reader has been consumed"):
            tfr.write_tfrecord(reader, tmp_path / "y.tfrecord")
        assert tfr.write_tfrecord(list(reader), tmp_path / "y.tfrecord").records == 2


def test_damage_is_raised_each_time(archive: Path, tmp_path: Path) -> None:
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 0xFF
    archive.write_bytes(content)
    stream = tfr.formats.open_npz(archive)
    with pytest.raises(tfr.errors.DecodeError, match="damaged"):
        stream.read_all()
    with pytest.raises(tfr.errors.DecodeError, match="damaged"):
        stream.read_next_batch()
    with pytest.raises(ValueError, match="consumed"):
        tfr.write_tfrecord(stream, tmp_path / "x.tfrecord")


def test_repr_shows_rows_files_and_columns(archive: Path, npy: Path) -> None:
    with tfr.formats.open_npz(archive) as stream:
        assert (
            repr(stream) == "<tfrecord_io.typing.ArrayStream 100,000 rows of 1 file (x: tensor<float32>[3], y: int64)>"
        )
        next(stream)
        assert "1 file, partly consumed (" in repr(stream)
        stream.read_all()
        assert ", consumed (" in repr(stream)
    assert ", closed (" in repr(stream)
    assert "2 files (a: int64, b: int64)" in repr(tfr.formats.open_npy({"a": npy, "b": npy}))


# ---- open files


def open_files() -> list[str]:
    """The files that this process has open; not the sockets of other tests' servers and clients, which come and go."""
    links = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            links.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return sorted(link for link in links if link.startswith("/") and not link.startswith("/dev/"))


@pytest.fixture
def no_file_stays_open() -> Iterator[None]:
    if sys.platform != "linux":
        pytest.skip("/proc/self/fd is Linux's")
    gc.collect()
    before = open_files()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
        gc.collect()
    assert open_files() == before


@pytest.mark.usefixtures("no_file_stays_open")
@pytest.mark.parametrize("begun", [False, True])
def test_a_garbage_collected_stream_closes_its_files(archive: Path, npy: Path, tmp_path: Path, begun: bool) -> None:
    (tmp_path / "objects").mkdir()
    np.save(tmp_path / "objects" / "1.npy", np.ones((2, 2)))
    for stream in (
        tfr.formats.open_npz(archive),
        tfr.formats.open_npy([npy]),
        tfr.formats.open_npy(tmp_path / "objects"),
    ):
        if begun:
            next(stream)
    del stream


@pytest.mark.usefixtures("no_file_stays_open")
def test_a_failed_write_closes_the_files(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(tfr.errors.SchemaError):
        tfr.write_tfrecord(tfr.formats.open_npz(archive), tmp_path / "x.tfrecord", schema={"no": "int64"})
    with pytest.raises(FileNotFoundError):
        tfr.formats.open_npy({"x": archive.with_suffix(".npy"), "y": tmp_path / "no.npy"})


@pytest.mark.usefixtures("no_file_stays_open")
def test_damage_closes_the_files(archive: Path) -> None:
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 0xFF
    archive.write_bytes(content)
    stream = tfr.formats.open_npz(archive)
    with pytest.raises(tfr.errors.DecodeError):
        stream.read_all()
    archive.write_bytes(content[:-30])
    with pytest.raises(tfr.errors.DecodeError):
        tfr.formats.open_npz(archive)
