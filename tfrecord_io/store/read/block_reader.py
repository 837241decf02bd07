"""Blocks: the uncompressed bytes of a file in pieces; a record split by the end of one continues in the next."""

from __future__ import annotations

import mmap
from typing import Any, ClassVar, TypeAlias

import numpy as np

from tfrecord_io.bytes import Stream

FIRST_BYTES = 256 << 10  # of the first block, which may be all that is needed

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_LEAST_MAPPED = 1 << 20


class Block:
    """A piece of a file."""

    PAGE: ClassVar = 4096  # bytes, of memory and files; the kernel's FileWindows have the same
    SPARE: ClassVar = 64  # readable bytes after each block, whose values are not used: kernels load whole vectors

    def __init__(self, data: Bytes, start: int, final: bool) -> None:
        self.data = data  # a view of a buffer with at least `SPARE` more readable bytes after it
        self.start = start  # offset of ``data[0]`` in the uncompressed file
        self.final = final  # the file ends with it

    @staticmethod
    def memory(size: int) -> Bytes:
        """Memory for `size` bytes of a file.

        Memory for large blocks is returned to the system as soon as nothing uses it; a heap may keep it.
        """
        if size < _LEAST_MAPPED or not hasattr(mmap, "MAP_PRIVATE"):
            return np.empty(size, np.uint8)
        try:
            pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise MemoryError(f"{size} bytes for a block: {error}") from error
        return np.frombuffer(pages, np.uint8)


class BlockReader:
    """Cuts a stream into blocks.

    The caller consumes the whole records of a block with `consume`; the rest is repeated at the start of the next
    block, which is twice as large if nothing was consumed. All blocks share one buffer: a block is valid until the next
    call.

    An error of the stream is raised by a separate call, after a block with the bytes before it. The first block, and
    those before an error or the end, may be smaller than `block_bytes`. The stream's first byte is at the offset
    `start` of the uncompressed file.

    >>> import io
    >>> reader = BlockReader(io.BytesIO(b"abcdefgh"), block_bytes=5)
    >>> block = reader.next_block()
    >>> bytes(block.data), block.start, block.final
    (b'abcde', 0, False)
    >>> reader.consume(4)
    >>> block = reader.next_block()
    >>> bytes(block.data), block.start, block.final
    (b'efgh', 4, True)
    """

    Buffer: TypeAlias = Bytes

    BLOCK_BYTES: ClassVar = 4 << 20  # of a block, by default

    def __init__(self, stream: Stream | Any, block_bytes: int = BLOCK_BYTES, start: int = 0) -> None:
        self.stream = stream
        if block_bytes < 1:
            raise ValueError(f"block_bytes={block_bytes}: expected at least 1")
        self._size = block_bytes
        self._begin = self._end = 0  # of the unconsumed bytes
        self._offset = start  # of `_begin` in the uncompressed file
        self._ended = False
        self._error: Exception | None = None
        self._buffer = np.empty(block_bytes + Block.SPARE, np.uint8)
        self._started = False

    def next_block(self) -> Block | None:
        """The rest of the last block and new bytes; None at the end. Invalidates the last block."""
        unread_bytes = self._end - self._begin
        if self._error is None:
            room = self._size if unread_bytes < self._size else 2 * unread_bytes
            unread = self._buffer[self._begin : self._end]  # moved to the start, of a larger buffer if too small
            if room + Block.SPARE > len(self._buffer):
                self._buffer = Block.memory(room + Block.SPARE)
            self._buffer[:unread_bytes] = unread
            del unread  # the smaller buffer, before the larger one takes memory
            self._begin, self._end = 0, unread_bytes
            self._fill(room if self._started else min(room, FIRST_BYTES))
            self._started = True
        if self._error is not None and self._end - self._begin == unread_bytes:
            raise self._error
        data = self._buffer[self._begin : self._end]
        return Block(data, self._offset, self._ended) if len(data) else None

    def resume(self) -> None:
        """Read on after an error and `close`, as the stream can: the next block begins with the rest of the last."""
        self._error = None

    def close(self) -> None:
        """Does nothing; `tfrecord_io.store.read.blocks_ahead.ReadAhead` stops a thread here."""

    def consume(self, n: int) -> None:
        """Mark the next `n` bytes of the last block as used."""
        unread_bytes = self._end - self._begin
        if not 0 <= n <= unread_bytes:
            raise ValueError(f"{n} bytes consumed of a block with {unread_bytes}")
        self._begin += n
        self._offset += n

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
