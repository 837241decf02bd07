"""Reading ahead returns the same bytes, ends and errors as reading block by block."""

from __future__ import annotations

import gc
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from running_threads import running
from tfrecord_io.store.read import blocks_ahead
from tfrecord_io.store.read.block_reader import Block
from tfrecord_io.store.read.blocks_ahead import ReadAhead


class Stream:
    """Returns `data` in pieces of at most `most` bytes, then ends or fails."""

    def __init__(self, data: bytes, most: int, error: Exception | None = None) -> None:
        self._file = io.BytesIO(data)
        self._most = most
        self._error = error

    def readinto(self, buffer: memoryview) -> int:
        n = self._file.readinto(buffer[: self._most])
        if n == 0 and len(buffer) and self._error is not None:
            raise self._error
        return n


def read_all(reader: ReadAhead, wishes: list[int]) -> bytes:
    """Consume the amounts in `wishes`, repeatedly, and all of the final block."""
    found = bytearray()
    turn = 0
    while (block := reader.next_block()) is not None:
        assert block.start == len(found)
        assert block.data.base is not None
        take = len(block.data) if block.final else min(wishes[turn % len(wishes)], len(block.data))
        found += block.data[:take].tobytes()
        reader.consume(take)
        turn += 1
    reader.close()
    return bytes(found)


@given(
    data=st.binary(max_size=300),
    most=st.integers(1, 50),
    size=st.integers(1, 40),
    head=st.sampled_from([0, 3, 1 << 16]),
    wishes=st.lists(st.integers(0, 60), min_size=1, max_size=4).filter(any),
)
def test_all_bytes_come_in_order_however_they_are_consumed(
    data: bytes, most: int, size: int, head: int, wishes: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_ahead, "_SPLIT_RECORD_BYTES", head)
        assert read_all(ReadAhead(Stream(data, most), size), wishes) == data


@pytest.mark.parametrize("size", [1, 7, 100])
def test_an_error_comes_after_the_bytes_before_it(size: int) -> None:
    reader = ReadAhead(Stream(b"x" * 20, 3, OSError("broken")), size)
    got: list[int] = []

    def read_on() -> None:
        while (block := reader.next_block()) is not None:
            assert not block.final
            got.append(len(block.data))
            reader.consume(len(block.data))

    with pytest.raises(OSError, match="broken"):
        read_on()
    assert sum(got) == 20
    with pytest.raises(OSError, match="broken"):
        reader.next_block()
    reader.close()


def test_a_record_larger_than_a_block_makes_the_block_grow() -> None:
    reader = ReadAhead(Stream(bytes(range(200)), 64), 10)
    sizes = []
    while (block := reader.next_block()) is not None and not block.final:
        sizes.append(len(block.data))
        assert bytes(block.data) == bytes(range(len(block.data)))
        assert block.data.base.nbytes >= len(block.data) + Block.SPARE
    assert sizes[:4] == [10, 20, 40, 80]
    reader.close()


def threads() -> list[Any]:
    return list(running("read ahead"))


def test_no_thread_remains() -> None:
    closed = ReadAhead(Stream(bytes(1000), 100), 10)
    dropped = ReadAhead(Stream(bytes(1000), 100), 10)
    for reader in (closed, dropped):
        for _ in range(3):
            block = reader.next_block()
            assert block is not None
            reader.consume(len(block.data))
    waiting = threads()
    closed.close()
    del dropped, reader
    gc.collect()
    for thread in waiting:
        thread.join(5)
    assert not threads()
