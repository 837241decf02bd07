"""Memory that the kernel keeps between reads: it changes no value, is bounded, and is given back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.bytes._native import _kernel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is kept on Linux only")
MIB = 1 << 20


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    """Whatever the environment says."""
    before = _kernel.keep_pages(256 * MIB)
    yield
    _kernel.keep_pages(before)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def table(seed: int, mib: int) -> pa.Table:
    """A column of few long values, one of many short lists and one of numbers; random sizes."""
    random = np.random.default_rng(seed)
    longs = [random.bytes(int(size)) for size in random.integers(0, 2 * MIB, mib)]
    tokens = [random.integers(0, 99, int(size)) for size in random.integers(0, 4 * MIB // 8, mib)]
    return pa.table({"b": longs, "tokens": tokens, "n": random.integers(0, 9, mib)})


@pytest.mark.parametrize("threads", [1, 2])
def test_values_are_the_same_in_memory_that_is_used_again(tmp_path: Path, threads: int) -> None:
    tables = [table(seed, mib) for seed, mib in enumerate([8, 3, 5, rounds(30, 12), 1])]
    for number, each in enumerate(tables):
        tfr.write_tfrecord(each, tmp_path / f"{number}.tfrecord")
    held = []
    for number in [0, 1, 2, 0, 3, 4, 1, 3, 2, 0, 0]:
        read = tfr.read_table(tfr.dataset(tmp_path / f"{number}.tfrecord", threads=threads))
        assert read.equals(tables[number])
        held = [*held[-1:], (read, tables[number])]
        assert all(read.equals(expected) for read, expected in held)


def test_kept_memory_is_bounded_and_given_back(tmp_path: Path) -> None:
    tfr.write_tfrecord({"b": [bytes(MIB)] * 100}, tmp_path / "a.tfrecord")
    _kernel.keep_pages(0)
    tfr.read_table(tmp_path / "a.tfrecord")
    start = resident()
    for most in (32 * MIB, 64 * MIB):
        _kernel.keep_pages(most)
        tfr.read_table(tmp_path / "a.tfrecord")
        assert resident() < start + most + 16 * MIB
    assert _kernel.keep_pages(0) == 64 * MIB
    assert resident() < start + 16 * MIB


@pytest.mark.parametrize(("text", "error"), [("0", ""), ("1000000", ""), ("-1", "'-1'"), ("2x", "'2x'"), ("", "''")])
def test_the_environment_sets_how_much_is_kept(text: str, error: str) -> None:
    code = "from tfrecord_io.bytes.engine import native; print(native._kernel.keep_pages(7))"
    environment = {**os.environ, "TFRECORD_IO_KEPT_BYTES": text}
    made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if error:
        assert f"TFRECORD_IO_KEPT_BYTES={error}: expected a number of bytes from 0 to " in made.stderr
    else:
        assert made.stdout.split() == [text]


FORKING = """
import os, sys
import tfrecord_io as tfr
rows = tfr.read_table(tfr.dataset(sys.argv[1], threads=1)).num_rows
process = os.fork()
if process == 0:
    os._exit(0 if tfr.read_table(tfr.dataset(sys.argv[1], threads=1)).num_rows == rows else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
"""


def test_a_forked_process_reads(tmp_path: Path) -> None:
    tfr.write_tfrecord(table(0, 12), tmp_path / "a.tfrecord")
    environment = {**os.environ, "TFRECORD_IO_KEPT_BYTES": str(256 * MIB)}
    command = [sys.executable, "-c", FORKING, tmp_path / "a.tfrecord"]
    subprocess.run(command, env=environment, check=True, timeout=120)


def test_some_is_kept_by_default() -> None:
    code = "from tfrecord_io.bytes.engine import native; print(native._kernel.keep_pages(7))"
    environment = {name: value for name, value in os.environ.items() if name != "TFRECORD_IO_KEPT_BYTES"}
    made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert made.stdout.split() == [str(256 * MIB)]


REPEATED = """
import resource, sys
import tfrecord_io as tfr

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tfr.read_table(tfr.dataset(sys.argv[1], threads=1))
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(min([faults() for _ in range(8)][3:]))
"""


def vectors(rows: int, size: int, dtype: str) -> pa.Array:
    values = np.random.default_rng(size).integers(0, 99, rows * size).astype(dtype)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), size)


@pytest.mark.parametrize("shape", ["floats", "integers", "bytes"])
def test_repeated_reads_need_no_new_pages(tmp_path: Path, shape: str) -> None:
    """The small buffers of a batch share pages beside its large ones, and neither takes those of the other."""
    tables = {
        "floats": lambda: {"values": vectors(40_000, 768, "f4"), "label": pa.array(range(40_000))},
        "integers": lambda: {"values": vectors(100_000, 100, "i8"), "n": vectors(100_000, 5, "i8")},
        "bytes": lambda: {"image": [bytes([n % 9]) * 784 for n in range(100_000)], "box": vectors(100_000, 4, "f4")},
    }
    tfr.write_tfrecord(pa.table(tables[shape]()), tmp_path / "a.tfrecord")
    environment = {**os.environ, "TFRECORD_IO_KEPT_BYTES": str(256 * MIB)}
    command = [sys.executable, "-c", REPEATED, tmp_path / "a.tfrecord"]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert int(made.stdout) < 20
