"""The checksum without an engine: the kernel's where it runs, and the LGPL package is then not imported."""

from __future__ import annotations

import subprocess
import sys

import crc32c as package
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.format import crc32c as module


@given(st.binary(max_size=100), st.integers(0, 2**32 - 1))
def test_it_is_that_of_the_package(data: bytes, value: int) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        assert module.crc32c(buffer, value) == package.crc32c(data, value)


def test_without_the_kernel_it_is_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    module._implementation.cache_clear()
    monkeypatch.setitem(sys.modules, "tfrecord_io._native._kernel", None)
    monkeypatch.delattr("tfrecord_io._native._kernel", raising=False)
    try:
        assert module._implementation() is package.crc32c
    finally:
        module._implementation.cache_clear()


USE = """
import sys
sys.modules["crc32c"] = None  # its import fails
import numpy as np
import tfrecord_io as tfr

tfr.write_tfrecord({"x": np.arange(1000)}, "a.tfrecord")
tfr.write_tfrecord({"x": np.arange(1000)}, "b@2.tfrecord")
tfr.write_tfrecord({"x": np.arange(1000)}, "b@2.tfrecord", mode="append")
tfr.read_table("*.tfrecord"), list(tfr.RecordReader("a.tfrecord")), tfr.decode_example(tfr.encode_example({"x": 1}))
tfr.verify("a.tfrecord"), tfr.build_index("a.tfrecord", columns=["x"]), tfr.open_random("a.tfrecord")[5]
open("c.csv", "w").write("x\\n1\\n")
tfr.convert("c.csv", "d.tfrecord@*", resume=True)
tfr.salvage("a.tfrecord", "e.tfrecord")
"""


def test_the_package_is_not_imported_where_the_kernel_runs(tmp_path: object) -> None:
    pytest.importorskip("tfrecord_io._native._kernel")
    done = subprocess.run([sys.executable, "-c", USE], cwd=str(tmp_path), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
