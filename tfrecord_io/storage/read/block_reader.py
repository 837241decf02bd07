"""Blocks: the uncompressed bytes of a file in pieces; a record split by the end of one continues in the next."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecord_io.compression import Stream

BLOCK_BYTES = 4 << 20
SPARE = 64  # readable bytes after each block, whose values are not used: kernels load whole vectors

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a file."""

    data: Bytes  # a view of a buffer with at least `SPARE` more readable bytes after it
    start: int  # offset of ``data[0]`` in the uncompressed file
    final: bool  # the file ends with it


class BufferPool:
    """Buffers for reuse; thread-safe. At most `keep` free buffers for blocks of `block_bytes` are kept."""

    def __init__(self, block_bytes: int = BLOCK_BYTES, keep: int = 8) -> None:
        if block_bytes < 1:
            raise ValueError(f"block_bytes={block_bytes}: expected at least 1")
        self.block_bytes = block_bytes
        self._free: deque[Bytes] = deque(maxlen=keep)

    def get(self, size: int) -> Bytes:
        """Take a buffer for `size` bytes, with undefined content."""
        if size <= self.block_bytes:
            try:
                return self._free.pop()
            except IndexError:
                pass
        return np.empty(max(size, self.block_bytes) + SPARE, np.uint8)

    def put(self, buffer: Bytes) -> None:
        """Return a buffer. A larger one, of a large record, is freed."""
        if len(buffer) == self.block_bytes + SPARE and not any(free is buffer for free in self._free):
            self._free.append(buffer)


class BlockReader:
    """Cuts a stream into blocks.

    The caller consumes the whole records of a block with `consume`; the rest is repeated at the start of the next
    block, which is twice as large if nothing was consumed. All blocks from `next_block` share one buffer: a block is
    valid until the next call. Those from `fresh_block` have a buffer each, for threads, until it is returned with
    `release`.

    An error of the stream is raised by a separate call, after a block with the bytes before it. The first block, and
    those before an error or the end, may be smaller than `block_bytes`. The stream's first byte is at the offset
    `start` of the uncompressed file.

    >>> import io
    >>> reader = BlockReader(io.BytesIO(b"abcdefgh"), block_bytes=5)
    >>> block = reader.next_block()
    >>> bytes(block.data), block.start, block.final
    (b'abcde', 0, False)
    >>> reader.consume(4)
    >>> reader.next_block()
    Block(data=array([101, 102, 103, 104], dtype=uint8), start=4, final=True)
    """

    def __init__(self, stream: Stream | Any, block_bytes: int = BLOCK_BYTES, start: int = 0) -> None:
        self.stream = stream
        self._pool = BufferPool(block_bytes)
        self._size = block_bytes
        self._begin = self._end = 0  # of the unconsumed bytes
        self._offset = start  # of `_begin` in the uncompressed file
        self._ended = False
        self._error: Exception | None = None
        self._lock = Lock()  # of the two below
        self._buffer = self._pool.get(0)
        self._in_use = False  # a block of this buffer has not been released

    def next_block(self) -> Block | None:
        """The rest of the last block and new bytes; None at the end. Invalidates the last block."""
        return self._next(fresh=False)

    def fresh_block(self) -> Block | None:
        """As `next_block`, but each block stays valid until `release`."""
        return self._next(fresh=True)

    def release(self, block: Block) -> None:
        """Return the buffer of a block from `fresh_block`, from any thread; its data must not be used any more."""
        buffer = block.data.base
        with self._lock:
            if buffer is self._buffer:
                self._in_use = False
            elif isinstance(buffer, np.ndarray):
                self._pool.put(buffer)

    def close(self) -> None:
        """Does nothing; `tfrecord_io.storage.read.read_ahead.ReadAhead` stops a thread here."""

    def consume(self, n: int) -> None:
        """Mark the next `n` bytes of the last block as used."""
        held = self._end - self._begin
        if not 0 <= n <= held:
            raise ValueError(f"{n} bytes consumed of a block with {held}")
        self._begin += n
        self._offset += n

    def _next(self, *, fresh: bool) -> Block | None:
        held = self._end - self._begin
        if self._error is None:
            room = self._size if held < self._size else 2 * held
            self._make_room(room)
            self._fill(room)
        if self._error is not None and self._end - self._begin == held:
            raise self._error
        self._in_use = fresh
        data = self._buffer[self._begin : self._end]
        return Block(data, self._offset, self._ended) if len(data) else None

    def _make_room(self, room: int) -> None:
        """Move the unconsumed bytes to the start, of another buffer if this one is too small or in use."""
        old, held = self._buffer, self._end - self._begin
        with self._lock:
            if self._in_use or room + SPARE > len(old):
                buffer = self._pool.get(room)
                buffer[:held] = old[self._begin : self._end]
                self._buffer = buffer
                if not self._in_use:
                    self._pool.put(old)
                self._in_use = False
            elif self._begin:
                old[:held] = old[self._begin : self._end]
        self._begin, self._end = 0, held

    def _fill(self, room: int) -> None:
        view = self._buffer.data
        while self._end < room and not self._ended:
            try:
                n = self.stream.readinto(view[self._end : room])
            except Exception as error:  # any error of a filesystem is raised after the bytes before it
                self._error = error
                return
            self._end += n
            self._ended = n == 0
