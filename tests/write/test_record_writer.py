"""RecordWriter: payloads written as records, published when the writer is closed."""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
from collections.abc import Iterator
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
            writer.write(tfr.train.Example())
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
    with pytest.raises(FileExistsError), tfr.RecordWriter(path, mode="error") as writer:
        writer.write(b"new")
    assert list(tfr.RecordReader(path)) == [b"old"]
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("name", ["a.data", "b.parquet", "c.foo.bar", "d.csv.gz", "e.py"])
def test_a_stated_compression_allows_any_name_as_in_tensorflow(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="this writes TFRecord"):
        tfr.RecordWriter(tmp_path / name)
    for number, compression in enumerate(("none", "gzip", "zlib", None)):
        with tfr.RecordWriter(tmp_path / f"{number}{name}", compression=compression) as writer:
            writer.write(b"x")
        with tfr.RecordReader(tmp_path / f"{number}{name}") as reader:
            assert list(reader) == [b"x"]
    for number, options in enumerate((None, "", "NONE", "GZIP", tfr.io.TFRecordOptions("ZLIB"))):
        with tfr.io.TFRecordWriter(str(tmp_path / f"tf{number}{name}"), options) as writer:
            writer.write(b"y")
        assert tfr.count(tmp_path / f"tf{number}{name}") == 1


def test_shards_are_refused(engine: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sharded"):
        tfr.RecordWriter(tmp_path / "train@2")
    assert not list(tmp_path.iterdir())


def test_what_is_not_bytes_is_named_with_the_call_that_encodes_it(tmp_path: Path) -> None:
    with tfr.RecordWriter(tmp_path / "a") as writer:
        for value in ({"a": 1}, 5, None):
            with pytest.raises(TypeError, match=rf"bytes-like object, got {type(value).__name__}; tfr.encode_example"):
                writer.write(value)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"bytes-like object, got list; call write\(\) for each record"):
            writer.write([b"one", b"two"])  # type: ignore[arg-type]


@pytest.fixture
def _frequent_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_frequent_switches")
@pytest.mark.parametrize("run", range(20))
def test_closing_while_threads_write_publishes_what_they_wrote(tmp_path: Path, run: int) -> None:
    path = tmp_path / "a.tfrecord"
    writer = tfr.RecordWriter(path)
    accepted: list[bytes] = []
    refused: list[bytes] = []

    def write(thread: int) -> None:
        for number in range(1 << 30):
            record = struct.pack("<II", thread, number)
            try:
                writer.write(record)
            except ValueError:
                refused.append(record)
                return
            accepted.append(record)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.001 * run)
    writer.close()
    for thread in threads:
        thread.join()
    assert len(refused) == 4
    assert sorted(tfr.RecordReader(path)) == sorted(accepted)


def test_a_record_appended_after_the_writer_was_closed_is_refused(tmp_path: Path) -> None:
    writer = tfr.RecordWriter(tmp_path / "a")
    writer.write(b"one")

    class Late(bytearray):  # its conversion takes until another thread closed the writer
        def __bytes__(self) -> bytes:
            writer.close()
            return b"late"

    with pytest.raises(ValueError, match="closed"):
        writer.write(Late())
    writer.flush()
    assert list(tfr.RecordReader(tmp_path / "a")) == [b"one"]
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"later")
