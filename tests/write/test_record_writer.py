"""RecordWriter: payloads written as records, published when the writer is closed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tfrecord_io as tfr
from records import written


def test_payloads_are_copied(engine: str, tmp_path: Path) -> None:
    buffer = bytearray(b"first")
    with tfr.RecordWriter(tmp_path / "a") as writer:
        writer.write(buffer)
        buffer[:] = b"other"
        writer.write(memoryview(buffer)[1:3])
        with pytest.raises(TypeError, match="encode"):
            writer.write("text")
        with pytest.raises(TypeError):
            writer.write(5)
        with pytest.raises(TypeError, match=r"got Example; write its SerializeToString\(\)"):
            writer.write(tfr.Example())
    assert list(tfr.RecordReader(tmp_path / "a")) == [b"first", b"th"]


def test_an_exception_in_the_block_leaves_existing_files(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [b"old"])
    with pytest.raises(RuntimeError, match="mine"), tfr.RecordWriter(path) as writer:  # noqa: PT012
        writer.write(b"new" * 1_000_000)
        writer.flush()
        assert list(tfr.RecordReader(path)) == [b"old"]
        raise RuntimeError("mine")
    assert list(tfr.RecordReader(path)) == [b"old"]
    assert os.listdir(tmp_path) == ["a"]
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"late")


def test_overwrite_false_refuses_an_existing_file(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [b"old"])
    with pytest.raises(FileExistsError), tfr.RecordWriter(path, overwrite=False) as writer:
        writer.write(b"new")
    assert list(tfr.RecordReader(path)) == [b"old"]
    assert os.listdir(tmp_path) == ["a"]


def test_shards_are_refused(engine: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sharded"):
        tfr.RecordWriter(tmp_path / "train@2")
    assert not list(tmp_path.iterdir())
