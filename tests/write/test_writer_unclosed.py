"""A writer that is dropped without being closed publishes nothing, leaves nothing, and says so."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr

OPENERS: dict[str, Callable[[str], Any]] = {
    "table": lambda path: tfr.open_writer(path),
    "compressed": lambda path: tfr.open_writer(f"{path}.gz", threads=2),
    "shards": lambda path: tfr.open_writer(f"{path}@3"),
    "records": lambda path: tfr.RecordWriter(path),
}


def write_rows(writer: Any) -> None:
    if isinstance(writer, tfr.RecordWriter):
        for _ in range(1234):
            writer.write(b"x")
    else:
        writer.write({"n": list(range(1234))})


@pytest.mark.parametrize("name", OPENERS)
def test_a_dropped_writer_warns_with_path_and_number_of_records(tmp_path: Path, name: str) -> None:
    writer = OPENERS[name](f"{tmp_path}/out.tfrecord")
    write_rows(writer)
    message = r"out\.tfrecord.*never closed: 1,234 records are discarded; use it as"
    with pytest.warns(ResourceWarning, match=message) as caught:  # noqa: PT031
        del writer
        gc.collect()
    assert caught[0].filename == __file__  # the line that opened it
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", OPENERS)
def test_a_dropped_writer_without_records(tmp_path: Path, name: str) -> None:
    with pytest.warns(ResourceWarning, match="never closed: nothing is written; use it as"):  # noqa: PT031
        OPENERS[name](f"{tmp_path}/out.tfrecord")
        gc.collect()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", OPENERS)
@pytest.mark.filterwarnings("error")
def test_closed_and_discarded_writers_do_not_warn(tmp_path: Path, name: str) -> None:
    with OPENERS[name](f"{tmp_path}/out.tfrecord") as writer:
        write_rows(writer)
    del writer
    with pytest.raises(KeyError), OPENERS[name](f"{tmp_path}/other.tfrecord") as writer:
        raise KeyError
    del writer
    gc.collect()


def test_a_process_that_ends_warns_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, tfrecord_io as tfr\n"
        "writers = [tfr.RecordWriter(sys.argv[1] + '/a.tfrecord'), tfr.open_writer(sys.argv[1] + '/b@2')]\n"
        "writers[0].write(b'x')\n"
        "writers[1].write({'n': [1, 2, 3]})\n"
    )
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", code, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "a.tfrecord: the writer was never closed: 1 record is discarded" in done.stderr
    assert "b@2: the writer was never closed: 3 records are discarded" in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_forked_process_does_not_discard_the_writer_of_its_parent(tmp_path: Path) -> None:
    code = (
        "import os, sys, tfrecord_io as tfr\n"
        "writer = tfr.RecordWriter(sys.argv[1] + '/a.tfrecord')\n"
        "writer.write(b'x')\n"
        "writer.flush()\n"
        "if os.fork() == 0: sys.exit()\n"
        "os.wait()\n"
        "writer.write(b'y')\n"
        "writer.close()\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)
    with tfr.RecordReader(tmp_path / "a.tfrecord") as records:
        assert list(records) == [b"x", b"y"]


def test_a_refused_directory_leaves_no_temporary_file_open(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    tfr.write_tfrecord({"n": [1]}, tmp_path / "other.tfrecord")
    with pytest.raises(FileExistsError, match="choose another directory"):
        tfr.write_tfrecord({"n": [1]}, tmp_path, shards=2)
    gc.collect()
    assert not [str(warning.message) for warning in recwarn]
