"""Several threads read a stream at any offset, as far as it was not released; what follows goes on in order."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.storage.read import held_stream
from tfrecord_io.storage.read.block_reader import SPARE
from tfrecord_io.storage.read.held_stream import HeldStream

NO_BUFFER = np.empty(0, np.uint8)


class Pieces:
    """Returns `data` in pieces of at most `most` bytes, then ends or fails; no two threads may read at a time."""

    def __init__(self, data: bytes, most: int, error: Exception | None = None) -> None:
        self._file, self._most, self._error = io.BytesIO(data), most, error
        self._reading = False

    def readinto(self, buffer: memoryview) -> int:
        assert not self._reading
        self._reading = True
        n = self._file.readinto(buffer[: self._most])
        self._reading = False
        if n == 0 and len(buffer) and self._error is not None:
            raise self._error
        return n


def rest_of(held: HeldStream, offset: int) -> bytes:
    rest, parts = held.rest(offset), []
    while n := rest.readinto(memoryview(buffer := bytearray(7))):
        parts.append(bytes(buffer[:n]))
    return b"".join(parts)


@given(
    data=st.binary(max_size=300),
    most=st.integers(1, 50),
    first=st.integers(1, 40),
    size=st.integers(1, 40),
    ranges=st.lists(st.tuples(st.integers(0, 320), st.integers(0, 90)), max_size=9),
    released=st.integers(0, 200),
    start=st.sampled_from([0, 1000]),
)
def test_any_range_and_what_follows(
    data: bytes, most: int, first: int, size: int, ranges: list[tuple[int, int]], released: int, start: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_stream, "_FIRST_BYTES", first)
        held = HeldStream(Pieces(data, most), start)
    held.clip(start + first)
    held.block_bytes = size
    at = 0
    for begin, count in sorted(ranges):
        if begin <= len(data):
            view = held.read(NO_BUFFER, start + begin, start + begin + count)
            assert view.tobytes() == data[begin : begin + count]
            at = min(begin, released)
            held.release(start + at)
    assert rest_of(held, start + at) == data[at:]


@given(data=st.binary(min_size=1, max_size=300), size=st.integers(1, 40), begin=st.integers(0, 300))
def test_bytes_behind_a_view_can_be_read(data: bytes, size: int, begin: int) -> None:
    held = HeldStream(Pieces(data, 9))
    held.block_bytes = size
    view = held.read(NO_BUFFER, min(begin, len(data)), len(data))
    base: Any = view
    while base.base is not None:
        base = base.base
    assert view.ctypes.data + len(view) + SPARE <= base.ctypes.data + len(base)


def test_threads_share_a_stream() -> None:
    data = bytes(range(256)) * 400
    held = HeldStream(Pieces(data, 700))
    held.block_bytes = 1000

    def read(number: int) -> bool:
        begin = number * 1000
        return held.read(NO_BUFFER, begin, begin + 1100).tobytes() == data[begin : begin + 1100]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(101, -1, -1)))


def test_the_end_is_known_once_it_was_read() -> None:
    held = HeldStream(Pieces(b"abc", 3))
    assert (held.clip(3), held.ends_by(3)) == (3, False)
    assert (held.clip(4), held.ends_by(3), held.ends_by(2)) == (3, True, False)


def test_an_error_follows_the_bytes_before_it() -> None:
    held = HeldStream(Pieces(b"abcdef", 4, ValueError("damaged")))
    assert held.clip(5) == 5
    for _ in range(2):
        with pytest.raises(OSError, match="cannot be read"):
            held.clip(7)
    assert held.read(NO_BUFFER, 2, 6).tobytes() == b"cdef"
    rest, buffer = held.rest(3), bytearray(9)
    assert bytes(buffer[: rest.readinto(memoryview(buffer))]) == b"def"
    for _ in range(2):
        with pytest.raises(ValueError, match="damaged"):
            rest.readinto(memoryview(buffer))


def test_nothing_is_read_once_it_is_stopped() -> None:
    held = HeldStream(Pieces(b"abcdef", 2))
    assert held.clip(2) == 2
    held.stop()
    assert held.read(NO_BUFFER, 0, 2).tobytes() == b"ab"
    with pytest.raises(OSError, match="cannot be read"):
        held.clip(3)


def test_memory_of_released_blocks_is_used_again() -> None:
    held = HeldStream(Pieces(bytes(40_000), 1000))
    held.block_bytes = 1000
    addresses = set()
    for begin in range(0, 40_000, 1000):
        addresses.add(held.read(NO_BUFFER, begin, begin + 1000).ctypes.data)
        held.release(begin)
    assert len(addresses) <= 3


def test_a_large_range_is_read_into_one_block() -> None:
    data = bytes(range(250)) * 40
    held = HeldStream(Pieces(data, 300))
    held.block_bytes = 500
    held.clip(700)
    view = held.read(NO_BUFFER, 600, 9000)
    assert view.tobytes() == data[600:9000]
    assert held.read(NO_BUFFER, 1000, 9000).ctypes.data == view.ctypes.data + 400
    held.release(600)
    assert rest_of(held, 650) == data[650:]
