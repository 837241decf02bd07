"""The checksums of `crc32c`, which Python code uses, and of the kernel, which computes them as it reads and writes."""

from __future__ import annotations

import subprocess
import sys
from array import array
from typing import Any

import crc32c as package
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_comparison import ENGINES
from tfrecord_io.bytes.engine.contract import Engine
from tfrecord_io.bytes.format.framing import FrameHeader, crc32c

SIZES = [*range(70), 127, 128, 129, 255, 256, 1023, 4097, 65_537, (1 << 20) + 3]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: type(engine).__name__)
@pytest.mark.parametrize("value", [0, 1, 0xFFFFFFFF])
def test_kernel_and_package_agree_on_all_sizes(engine: Engine, value: int) -> None:
    data = np.random.default_rng(7).integers(0, 256, max(SIZES) + 8, np.uint8)
    for size in SIZES:
        for begin in (0, 1, 7):
            part = data[begin : begin + size]
            assert engine.crc32c(part, value) == crc32c(part, value) == package.crc32c(part.tobytes(), value)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_a_checksum_goes_on_where_another_ended(first: bytes, second: bytes) -> None:
    assert crc32c(second, crc32c(first)) == crc32c(first + second)


@pytest.mark.parametrize(
    "data", [b"", b"abcd", bytearray(b"abcd"), memoryview(b"abcd"), array("I", [7, 9]), np.arange(6).reshape(2, 3)]
)
def test_anything_with_a_buffer_is_read(data: Any) -> None:
    assert crc32c(data) == package.crc32c(bytes(memoryview(data)))


@given(st.integers(0, 2**64 - 1))
def test_headers_are_recognised_by_their_checksum(length: int) -> None:
    content = length.to_bytes(8, "little")
    header = content + FrameHeader.mask_crc(package.crc32c(content)).to_bytes(4, "little")
    assert FrameHeader(header + b"more").is_intact
    assert not FrameHeader(header[:11]).is_intact
    assert not FrameHeader(content + header[8:11] + bytes([header[11] ^ 1])).is_intact


def test_reading_a_file_does_not_wait_for_the_package(tmp_path: Any) -> None:
    """It takes longer to import than a small file to read."""
    program = (
        "import sys, tfrecord_io as tfr\n"
        "tfr.write_tfrecord({'x': [1]}, sys.argv[1])\n"
        "tfr.read_table(sys.argv[1])\n"
        "assert 'crc32c' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.tfrecord")], check=True)
