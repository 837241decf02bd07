"""Blocks: the uncompressed bytes of a file in pieces, records cut by an end kept for the next one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecord_io.compression import Stream

BLOCK_BYTES = 4 << 20
SPARE = 64  # bytes behind each block that may be read (not used): kernels load whole vectors

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a file.

    Attributes
    ----------
    data : numpy uint8 array
        A view of a buffer that has `SPARE` more readable bytes behind it.
    start : int
        Offset of ``data[0]`` in the uncompressed file.
    final : bool
        Whether the file ends with it.
    """

    data: Bytes
    start: int
    final: bool


class BufferPool:
    """Buffers to be used again, for one or more readers and any threads.

    Parameters
    ----------
    block_bytes : int
        Size of the blocks.
    keep : int
        Buffers kept at most.
    """

    def __init__(self, block_bytes: int = BLOCK_BYTES, keep: int = 8) -> None:
        if block_bytes < 1:
            raise ValueError(f"block_bytes={block_bytes}: a block has a byte at least")
        self.block_bytes = block_bytes
        self._free: deque[Bytes] = deque(maxlen=keep)

    def get(self, size: int) -> Bytes:
        """Give a buffer for `size` bytes; its content is anything."""
        if size <= self.block_bytes:
            try:
                return self._free.pop()
            except IndexError:
                pass
        return np.empty(max(size, self.block_bytes) + SPARE, np.uint8)

    def put(self, buffer: Bytes) -> None:
        """Take a buffer back. Larger ones, of a large record, are freed."""
        if len(buffer) == self.block_bytes + SPARE and not any(b is buffer for b in self._free):
            self._free.append(buffer)


class BlockReader:
    """Cuts a stream into blocks.

    The user of a block says by `consume` how much of it are whole records; the rest comes first in the
    next block. By `next_block` all blocks share one buffer: a block is good until the next call. By
    `fresh_block` each has its own, for threads, until it is given back to `release`.

    An error of the stream is raised in a call of its own, after a block with the bytes before it.

    Parameters
    ----------
    stream : Stream
        Has ``readinto(buffer) -> int``, 0 only at its end.
    block_bytes : int
        Size of a block; the first and those before an error or the end may be smaller.
    pool : BufferPool, optional
        To share buffers with other readers; it decides the size.
    start : int
        Offset in the uncompressed file of the stream's first byte.

    Examples
    --------
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

    def __init__(
        self, stream: Stream | Any, block_bytes: int = BLOCK_BYTES, pool: BufferPool | None = None, start: int = 0
    ) -> None:
        self.stream = stream
        self._pool = pool or BufferPool(block_bytes)
        self._size = self._pool.block_bytes
        self._begin = self._end = 0  # of the bytes not consumed
        self._offset = start  # of `_begin` in the uncompressed file
        self._given = 0  # bytes of the last block that are not consumed; it must grow
        self._ended = False
        self._error: Exception | None = None
        self._lock = Lock()  # of the two below
        self._buffer = self._pool.get(0)
        self._lent = False  # the buffer is that of a block which somebody may be using

    @property
    def offset(self) -> int:
        """Offset in the uncompressed file of the first byte that was not consumed."""
        return self._offset

    def next_block(self) -> Block | None:
        """Read on: the rest of the last block and new bytes; None at the end. The last block's bytes are gone."""
        return self._next(self._room(), lend=False)

    def fresh_block(self) -> Block | None:
        """Do as `next_block` and leave each block's buffer to whoever has it, until `release`."""
        return self._next(self._room(), lend=True)

    def release(self, block: Block) -> None:
        """Give back the buffer of a block of `fresh_block`, from any thread; its data must not be used any more."""
        buffer = block.data.base
        with self._lock:
            if buffer is self._buffer:
                self._lent = False
            elif isinstance(buffer, np.ndarray):
                self._pool.put(buffer)

    def close(self) -> None:
        """Nothing is held that needs it; `tfrecord_io.storage.read.read_ahead.ReadAhead` has a thread."""

    def consume(self, n: int) -> None:
        """Say that `n` more bytes of the last block are done with."""
        if not 0 <= n <= self._given:
            raise ValueError(f"{n} bytes consumed of a block with {self._given}")
        self._begin += n
        self._offset += n
        self._given -= n

    def grow(self, min_bytes: int) -> Block | None:
        """Read on until the block has `min_bytes` or the file ends: for a record that is larger than a block.

        The buffer doubles as bytes arrive: `min_bytes` may be a lie of a damaged file. The block is of the
        kind of the last one.
        """
        lend = self._lent
        held = self._end - self._begin
        while self._end - self._begin < min_bytes and not self._ended and self._error is None:
            self._read(min(min_bytes, max(2 * (self._end - self._begin), self._size)))
        return self._give(held, lend)

    def _room(self) -> int:
        """Bytes that the next block has room for; more than the last one had, or nothing would go on."""
        return self._size if self._given < self._size else 2 * self._given

    def _next(self, room: int, *, lend: bool) -> Block | None:
        held = self._end - self._begin
        if self._error is None:
            self._read(room)
        return self._give(held, lend)

    def _read(self, room: int) -> None:
        self._make_room(max(room, self._end - self._begin))
        self._fill(room)

    def _give(self, held: int, lend: bool) -> Block | None:
        """Give what there is; raise if an error is all that came to the `held` bytes."""
        if self._error is not None and self._end - self._begin == held:
            raise self._error
        self._given = self._end - self._begin
        self._lent = lend
        return Block(self._buffer[self._begin : self._end], self._offset, self._ended) if self._given else None

    def _make_room(self, room: int) -> None:
        """Move what was not consumed to the front, of another buffer where this one is too small or lent."""
        old, held = self._buffer, self._end - self._begin
        with self._lock:
            if self._lent or room + SPARE > len(old):
                buffer = self._pool.get(room)
                buffer[:held] = old[self._begin : self._end]
                self._buffer = buffer
                if not self._lent:
                    self._pool.put(old)
                self._lent = False
            elif self._begin:
                old[:held] = old[self._begin : self._end]
        self._begin, self._end = 0, held

    def _fill(self, room: int) -> None:
        view = self._buffer.data
        while self._end < room and not self._ended:
            try:
                n = self.stream.readinto(view[self._end : room])
            except Exception as error:  # whatever a filesystem raises comes after the bytes before it
                self._error = error
                return
            self._end += n
            self._ended = n == 0
