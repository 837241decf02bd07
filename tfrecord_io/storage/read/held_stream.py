"""The bytes of an ordered stream, held so that several threads can read them at any offset."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tfrecord_io.storage.read.block_reader import FIRST_BYTES, SPARE, Bytes

_FIRST_BYTES = FIRST_BYTES  # of the blocks, until they have another size
_MOST_FREE = 4  # blocks whose memory is used again


class Readable(Protocol):
    """What is held: see `tfrecord_io.compression.stream`."""

    def readinto(self, buffer: memoryview, /) -> int: ...


@dataclass(slots=True)
class _HeldBlock:
    """The first `count` bytes of a buffer, which has room for `size`; they begin at `start` in the stream."""

    start: int
    buffer: Bytes
    size: int
    count: int = 0

    @property
    def end(self) -> int:
        return self.start + self.count

    @property
    def is_full(self) -> bool:
        return self.count == self.size


class HeldStream:
    """Reads a stream as far as a thread needs it, and holds what was read until `release`.

    No thread only reads: one that needs bytes that were not read yet reads them, and those before, while others wait or
    use what is held. An error of the stream is an OSError for the bytes behind it, and is raised as it is by `rest`.

    Parameters
    ----------
    stream : Readable
        Used by one thread at a time.
    start : int
        Offset of its next byte in the uncompressed file.

    Attributes
    ----------
    start : int
    block_bytes : int
        Size of the blocks that begin at its multiples from `start` on.
    """

    def __init__(self, stream: Readable, start: int = 0) -> None:
        self.block_bytes = _FIRST_BYTES
        self.start, self._stream = start, stream
        self._blocks: list[_HeldBlock] = []
        self._free: deque[Bytes] = deque()
        self._end = start  # of what was read
        self._ended = False
        self._error: Exception | None = None
        self._stopped = False
        self._reading, self._guard = threading.Lock(), threading.Lock()  # of the stream, and of the list of blocks

    def clip(self, offset: int) -> int:
        """The offset, or the end of the stream if that is before it: all bytes before the result are held."""
        if offset > self._end and not self._ended:
            with self._reading:
                self._load(offset)
        return min(offset, self._end)

    def ends_by(self, offset: int) -> bool:
        """Whether no byte is known to follow an offset, as it is once one was asked for."""
        return self._ended and offset >= self._end

    def read(self, buffer: Bytes, begin: int, end: int) -> Bytes:
        """The bytes of [begin, end) that the stream has, and that were not released; `SPARE` more are readable.

        Valid until they are released. The buffer is not used.
        """
        if end - begin > self.block_bytes:
            self._load_whole(begin, end)
        end = self.clip(end)
        blocks = self._blocks_of(begin, end)
        if len(blocks) == 1:
            return blocks[0].buffer[begin - blocks[0].start : end - blocks[0].start]
        joined = np.empty(end - begin + SPARE, np.uint8)[: end - begin]
        _copy(blocks, joined, begin)
        return joined

    def release(self, offset: int) -> None:
        """Use the memory of the bytes before an offset again: no thread reads them, or has a view of them."""
        with self._guard:
            while self._blocks and self._blocks[0].is_full and self._blocks[0].end <= offset:
                buffer = self._blocks.pop(0).buffer
                if len(buffer) == self.block_bytes + SPARE and len(self._free) < _MOST_FREE:
                    self._free.append(buffer)

    def rest(self, offset: int) -> HeldRest:
        """What follows an offset, as a stream; the threads cannot read any more."""
        self.stop()
        return HeldRest(self, offset)

    def stop(self) -> None:
        """Wait for the thread that uses the stream; none will any more."""
        self._stopped = True
        with self._reading, self._guard:
            self._free.clear()

    def _load(self, offset: int) -> None:
        """Read up to an offset, at least."""
        while self._end < offset and not self._ended:
            if self._error is not None or self._stopped:
                raise OSError("the stream cannot be read")  # the read in order raises the error itself
            block = self._last_block()
            try:
                n = self._stream.readinto(block.buffer.data[block.count : block.size])
            except Exception as error:  # any error of a filesystem is raised after the bytes before it
                self._error = error
                continue
            block.count += n
            self._end += n
            self._ended = n == 0

    def _load_whole(self, begin: int, end: int) -> None:
        """Read the bytes of [begin, end) that were not read yet into one block, with those before them."""
        with self._reading:
            held = self._end - begin
            if held < 0 or end <= self._end or self._ended or self._error is not None or self._stopped:
                return
            try:
                buffer = np.empty(end - begin + SPARE, np.uint8)
            except MemoryError:  # the stream may have fewer bytes
                return
            block = _HeldBlock(begin, buffer, end - begin, held)
            _copy(self._blocks_of(begin, self._end), block.buffer[:held], begin)
            with self._guard:
                if self._blocks:
                    self._blocks[-1].size = self._blocks[-1].count
                self._blocks.append(block)
            self._load(end)

    def _last_block(self) -> _HeldBlock:
        """The block with room for the next bytes."""
        with self._guard:
            last = self._blocks[-1] if self._blocks else None
            if last is None or last.is_full:
                size = self.block_bytes - (self._end - self.start) % self.block_bytes
                is_free = self._free and len(self._free[0]) == self.block_bytes + SPARE
                buffer = self._free.popleft() if is_free else np.empty(self.block_bytes + SPARE, np.uint8)
                last = _HeldBlock(self._end, buffer, size)
                self._blocks.append(last)
            return last

    def _blocks_of(self, begin: int, end: int) -> list[_HeldBlock]:
        """The blocks with the bytes of [begin, end): one, if one has them all."""
        with self._guard:
            blocks = [block for block in self._blocks if block.end > begin and block.start < end]
        whole = [block for block in blocks if block.start <= begin and end <= block.end]
        return whole[:1] or blocks

    def _read_rest(self, buffer: memoryview, offset: int) -> int:
        """Read the bytes at an offset, which are held no longer, or those that follow all held ones."""
        if offset < self._end:
            with self._guard:
                while self._blocks[0].end <= offset:
                    self._blocks.pop(0)
                block = self._blocks[0]
            data = block.buffer.data[offset - block.start : block.count][: len(buffer)]
            buffer[: len(data)] = data
            return len(data)
        with self._guard:
            self._blocks.clear()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._stream.readinto(buffer)


def _copy(blocks: list[_HeldBlock], target: Bytes, begin: int) -> None:
    """Copy the bytes of blocks from `begin` on."""
    end = begin + len(target)
    for block in blocks:
        first, last = max(begin, block.start), min(end, block.end)
        if first < last:
            target[first - begin : last - begin] = block.buffer[first - block.start : last - block.start]


class HeldRest:
    """The stream of what follows an offset of a `HeldStream`."""

    def __init__(self, held: HeldStream, offset: int) -> None:
        self._held, self.offset = held, offset

    def readinto(self, buffer: memoryview, /) -> int:
        n = self._held._read_rest(buffer, self.offset)
        self.offset += n
        return n
