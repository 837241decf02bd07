"""The checksum of modules below the engine."""

from __future__ import annotations

import crc32c as package
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.format import framing as module


@given(st.binary(max_size=100), st.integers(0, 2**32 - 1))
def test_it_is_that_of_the_package(data: bytes, value: int) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        assert module.crc32c(buffer, value) == package.crc32c(data, value)
