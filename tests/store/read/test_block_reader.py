"""Blocks join to the file, for any sizes of reads and blocks."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.store.read.block_reader import Block, BlockReader


class Dribble:
    """A stream that returns a few bytes at a time, and optionally raises an error at the end."""

    def __init__(self, data, sizes=(1,), error=None):
        self.data, self.sizes, self.error, self.at, self.calls = data, sizes, error, 0, 0

    def readinto(self, buffer):
        n = min(self.sizes[self.calls % len(self.sizes)], len(buffer), len(self.data) - self.at)
        self.calls += 1
        if n == 0 and self.error is not None:
            raise self.error
        buffer[:n] = self.data[self.at : self.at + n]
        self.at += n
        return n


def whole(reader, consume):
    """Read all blocks, consuming `consume(size)` bytes of each but at least one; return the bytes consumed."""
    out = bytearray()
    while (block := reader.next_block()) is not None:
        assert block.start == len(out)
        n = len(block.data) if block.final else max(1, min(len(block.data), consume(len(block.data))))
        out += bytes(block.data[:n])
        reader.consume(n)
    return bytes(out)


@given(
    st.binary(max_size=300),
    st.integers(1, 40),
    st.lists(st.integers(1, 50), min_size=1),
    st.lists(st.integers(1, 60), min_size=1),
)
def test_blocks_join_to_the_file_for_any_sizes(data, block_bytes, reads, steps):
    reader = BlockReader(Dribble(data, reads), block_bytes)
    turns = iter(steps * 400)
    assert whole(reader, lambda n: next(turns)) == data


def test_short_reads_are_continued_and_only_zero_is_the_end():
    reader = BlockReader(Dribble(b"x" * 100, sizes=(1, 3)), 50)
    block = reader.next_block()
    assert (len(block.data), block.final) == (50, False)
    reader.consume(50)
    block = reader.next_block()
    assert (len(block.data), block.start, block.final) == (50, 50, False)
    reader.consume(50)
    assert reader.next_block() is None
    assert reader.next_block() is None


@pytest.mark.fault(1)
def test_empty_file_has_no_blocks():
    assert BlockReader(io.BytesIO(b"")).next_block() is None


def test_unconsumed_bytes_at_the_end_come_as_the_final_block():
    reader = BlockReader(io.BytesIO(b"abcdef"), 6)
    reader.next_block()
    reader.consume(4)
    block = reader.next_block()
    assert (bytes(block.data), block.start, block.final) == (b"ef", 4, True)


def test_block_grows_if_nothing_is_consumed():
    reader = BlockReader(io.BytesIO(bytes(range(40))), 4)
    sizes = [len(reader.next_block().data) for _ in range(4)]
    assert sizes == [4, 8, 16, 32]


@pytest.mark.fault(9)
@pytest.mark.fault(10)
def test_a_large_record_doubles_the_block_only_as_bytes_arrive_and_blocks_are_small_again_after_it():
    reader = BlockReader(io.BytesIO(bytes(1000)), 16)
    while len((block := reader.next_block()).data) < 500:
        pass
    assert (len(block.data), block.start) == (512, 0)
    reader.consume(512)
    assert len(reader.next_block().data) == 16
    while not (block := reader.next_block()).final:
        pass
    assert len(block.data.base) <= 2 * 1000 + Block.SPARE


def test_bytes_after_a_block_can_be_read():
    block = BlockReader(io.BytesIO(bytes(100)), 64).next_block()
    assert len(block.data.base) >= len(block.data) + Block.SPARE


@pytest.mark.fault(61)
def test_an_error_comes_after_the_bytes_before_it():
    reader = BlockReader(Dribble(b"x" * 30, sizes=(7,), error=OSError(5, "Input/output error")), 64)
    block = reader.next_block()
    assert (len(block.data), block.final) == (30, False)
    reader.consume(20)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            reader.next_block()


@pytest.mark.fault(61)
def test_an_error_in_a_growing_block_comes_after_the_bytes_before_it():
    reader = BlockReader(Dribble(b"x" * 30, sizes=(7,), error=OSError(5, "Input/output error")), 8)
    sizes = [len(reader.next_block().data) for _ in range(3)]
    assert sizes == [8, 16, 30]
    with pytest.raises(OSError, match="Input/output error"):
        reader.next_block()


def test_consuming_more_than_the_block_is_refused():
    reader = BlockReader(io.BytesIO(b"abc"))
    reader.next_block()
    with pytest.raises(ValueError, match="4 bytes consumed of a block with 3"):
        reader.consume(4)


@pytest.mark.parametrize("size", [0, 1, 4096, 1 << 20, (4 << 20) + Block.SPARE])
def test_memory_of_any_size_can_be_written(size):
    memory = Block.memory(size)
    assert len(memory) == size
    memory[:] = 7
    assert memory.sum() == 7 * size


def test_too_much_memory_is_an_error_of_memory():
    with pytest.raises(MemoryError):
        Block.memory(1 << 62)
