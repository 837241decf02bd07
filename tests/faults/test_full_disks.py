"""Fault 66: a disk without room, a limit of file sizes, a device that takes nothing."""

from __future__ import annotations

import errno
import gzip
import io
import os
import subprocess
import sys
import tempfile
import textwrap
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from forked import interpreter
from tfrecord_io.write.sharded_sink import Spool

pytestmark = pytest.mark.fault(66)

# `write(name)` for each way to write; the target has an old file, or an old dataset.
WRITES = """
import errno, os, sys
import numpy as np
import tfrecord_io as tfr
folder = sys.argv[1]
noise = np.random.default_rng(0).integers(0, 256, 600_000, np.uint8).tobytes()
large = {"x": [noise[at : at + 1000] for at in range(0, len(noise), 1000)]}

def records(path):
    with tfr.RecordWriter(path) as writer:
        for row in large["x"]:
            writer.write(row)

WAYS = {
    "a.tfrecord": lambda path: tfr.write_tfrecord(large, path),
    "b.tfrecord.gz": lambda path: tfr.write_tfrecord(large, path, threads=2),
    "c.tfrecord": lambda path: tfr.write_tfrecord(large, path, write_index=True),
    "d.tfrecord": records,
    "e@2": lambda path: tfr.write_tfrecord(large, path, mode="overwrite"),
}

def old(path):
    tfr.write_tfrecord({"x": [b"old"] * 4}, path, mode="overwrite")

def fails(number):
    before = {name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}
    for name, write in WAYS.items():
        try:
            write(os.path.join(folder, name))
        except OSError as error:
            assert error.errno == number, (name, error)
            assert os.path.basename(error.filename).startswith(name[0]), (name, error)
            assert "at byte " in str(error), (name, error)
        else:
            raise SystemExit(f"{name}: no error")
        after = {name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}
        assert after == before, (name, {*after} ^ {*before})
        assert tfr.read_table(os.path.join(folder, name))["x"].to_pylist() == [b"old"] * 4, name
"""


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    code = WRITES + textwrap.dedent(code)
    command = [*interpreter(), "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_limit_of_file_sizes(engine: str, tmp_path: Path) -> None:
    code = """
        import resource
        for name in WAYS:
            old(os.path.join(folder, name))
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        fails(errno.EFBIG)
    """
    done = run(code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk(engine: str, tmp_path: Path) -> None:
    """Of 400 kB; where this process may make a filesystem of its own."""
    code = """
        for name in WAYS:
            old(os.path.join(folder, name))
        fails(errno.ENOSPC)
    """
    script = 'mount -t tmpfs -o size=400k tmpfs "$1" || exit 77; shift; exec "$@"'
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", tmp_path]
    try:
        done = subprocess.run(
            [*command, sys.executable, "-c", WRITES + textwrap.dedent(code), tmp_path],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("needs unshare, to mount a small filesystem")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"may not mount a small filesystem: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(tmp_path) == []  # the filesystem ended with its process


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no /dev/full")
def test_a_device_that_is_full(engine: str, tmp_path: Path) -> None:
    """By its name, through a link, and as a file object; it can take nothing back, and stays as it is."""
    link = tmp_path / "link.tfrecord"
    link.symlink_to("/dev/full")
    rows = {"x": [os.urandom(1000)] * 100}
    for target, named in (("/dev/full", "/dev/full"), (link, str(link))):
        with pytest.raises(OSError, match="No space left on device, at byte 0") as caught:
            tfr.write_tfrecord(rows, target)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, named)
        with pytest.raises(OSError, match="No space left on device"):
            tfr.write_tfrecord(rows, target, compression="gzip")
        with pytest.raises(OSError, match="No space left on device"), tfr.RecordWriter(target) as writer:
            writer.write(bytes(10))
    with open("/dev/full", "wb", buffering=0) as file:
        with pytest.raises(OSError, match="No space left on device"):
            tfr.write_tfrecord(rows, file)
        assert not file.closed
    file = open("/dev/full", "wb")  # noqa: SIM115 — its buffer reports it at the flush at the end
    with pytest.raises(OSError, match="No space left on device"):
        tfr.write_tfrecord({"x": [1]}, file)
    with suppress(OSError):
        file.close()
    assert link.is_symlink()
    assert os.listdir(tmp_path) == [link.name]


class _FullFile(io.BytesIO):
    """A temporary file on a full disk, whose errors name no file."""

    def write(self, _: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("way", ["rows", "pipe", "columns"])
def test_a_full_folder_of_temporary_files_is_named(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord")
    array = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    with gzip.open(tmp_path / "a.npy.gz", "wb") as file:
        np.save(file, array)
    for name in ("TemporaryFile", "SpooledTemporaryFile"):
        monkeypatch.setattr(tempfile, name, lambda *_, **__: _FullFile())

    def write() -> None:
        if way == "rows":
            with closing(Spool(0)) as rows:
                rows.write(b"framed")
        elif way == "pipe":
            os.mkfifo(tmp_path / "pipe")
            with open(os.open(tmp_path / "pipe", os.O_RDWR), "r+b", buffering=0) as pipe:
                pipe.write((tmp_path / "a.tfrecord").read_bytes())
                tfr.read_table(tmp_path / "pipe")
        else:
            tfr.convert(tmp_path / "a.npy.gz", tmp_path / "b.tfrecord")

    with pytest.raises(OSError, match="TMPDIR names another folder") as caught:
        write()
    assert caught.value.errno == errno.ENOSPC
    assert f"for a temporary file in {tempfile.gettempdir()}" in str(caught.value)


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit of file sizes")
@pytest.mark.parametrize(("library", "suffix"), [("h5py", "h5"), ("h5netcdf", "nc")])
def test_a_temporary_file_that_hdf5_cannot_write(library: str, suffix: str, tmp_path: Path) -> None:
    """Wherever it fails, and when HDF5 closes the file: that ended the process by a segmentation fault."""
    pytest.importorskip(library)
    rows = {"x": np.arange(20_000), "text": [f"text {number}" for number in range(20_000)]}
    tfr.write_tfrecord(rows, tmp_path / "a.tfrecord")
    size = tfr.convert(tmp_path / "a.tfrecord", tmp_path / f"whole.{suffix}").bytes
    code = """
        import resource
        size, suffix = int(sys.argv[2]), sys.argv[3]
        for limit in (size // 9, size // 3, size * 2 // 3, size - 1):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            try:
                tfr.convert(f"{folder}/a.tfrecord", f"{folder}/b.{suffix}")
            except OSError as error:
                assert error.errno == errno.EFBIG and "TMPDIR names another folder" in str(error), error
            else:
                raise SystemExit(f"no error with {limit} of {size} bytes")
    """
    done = run(code, tmp_path, size, suffix)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(os.listdir(tmp_path)) == ["a.tfrecord", f"whole.{suffix}"]
