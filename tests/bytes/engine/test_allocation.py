"""Each allocation of the kernel fails once, in a small read and a small write: MemoryError, and the next call succeeds.

The allocations of a process are those of a shim that is loaded before Python; the kernel itself has no such hook. The
same without Python, and a search for leaks: tests/fuzz/allocation.cc, `make sanitize`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SHIM = Path(__file__).parents[2] / "fuzz" / "failing_allocations.cc"
PROGRAM = """
import ctypes, pathlib, sys
import numpy as np, pyarrow as pa
import tfrecord_io as tfr

shim = ctypes.CDLL(None)
table = pa.table({"i": [1, None, 3], "s": ["a", "b", None], "l": [[1.5], [], [2.5, 3.5]], "b": [b"x" * 300] * 3})
path = pathlib.Path(sys.argv[1], "a.tfrecord")


def read():
    assert tfr.read_table(tfr.dataset(path, threads=1)).equals(table.cast(tfr.read_table(path).schema))


def write():
    tfr.write_tfrecord(table, path, mode='overwrite', threads=1)


def attempt(call, number):
    shim.tfr_fail_at(number)
    try:
        call()
    except MemoryError:
        return True
    finally:
        shim.tfr_fail_at(-1)
    return False


for call in (write, read):
    call()
    shim.tfr_fail_at(0)
    call()
    count = shim.tfr_allocations()
    shim.tfr_fail_at(-1)
    refused = sum(attempt(call, number) for number in range(1, count + 1))
    call()
    print(call.__name__, count, refused)
"""


@pytest.fixture(scope="module")
def shim() -> Iterator[Path]:
    compiler = shutil.which("c++") or shutil.which("g++")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C++ compiler")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # LD_PRELOAD is split at spaces, which TMPDIR may have
        path = Path(folder, "failing_allocations.so")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", str(SHIM), "-o", str(path), "-ldl"], check=True)
        yield path


@pytest.mark.fault(63)
def test_each_allocation_that_fails_is_a_memory_error(shim: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(shim), "TFRECORD_IO_ENGINE": "native"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        name, count, refused = line.split()
        assert int(count) > 5, f"{name}: the shim sees no allocations of the kernel"
        assert int(refused) > 3, line
