"""Compress data in blocks that refer to no byte of each other, on threads if there are several.

Deflate blocks end at a byte boundary (a flush), so that the concatenated blocks are a valid stream (RFC 1951); blocks
of LZ4 are frames. Of a damaged file, the blocks after the damage can be read (see
`tfrecord_io.bytes.compression.recovering_stream`).
That makes deflate files 0.04 to 0.2 % larger than with the 32 KiB before each block as its dictionary. All blocks but
the last one have the same size: the same data gives the same bytes on any number of threads, in whatever pieces it is
written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tfrecord_io.base import LIMITS, Task


class Trailer:
    """The checksums after the data of a member. Those of a format are a subclass.

    This one has no checksum: of a member whose start was not read, or of one without a trailer.
    """

    size: int = 0

    def __init__(self, size: int = 0) -> None:
        self.size = size

    def add(self, data: Any) -> None:
        """Add uncompressed bytes."""

    def pack(self) -> bytes:
        """The trailer of the bytes added."""
        return bytes(self.size)

    def check(self, stored: bytes) -> None:
        """Raise `Damage` if `stored` is not the trailer of the bytes added."""


class BlockCompressor:
    """Compresses one member; see `tfrecord_io.bytes.compression.codec.Compressor`.

    A thread ends with its block, so that of a thousand open files those that wait have no threads. Blocks are given to
    it, not taken from a source: `background.ordered` does not fit.

    `compress_block` compresses a block. With one of `threads`, the caller compresses. Blocks without `end` are members
    themselves, between no header and no trailer.
    """

    def __init__(
        self,
        compress_block: Callable[[memoryview], bytes],
        header: bytes,
        trailer: Trailer,
        threads: int,
        *,
        end: bytes = b"",
    ) -> None:
        self._compress_block, self._threads = compress_block, threads
        self._header, self._end, self._trailer = header, end, trailer
        self._held = bytearray()  # the next block, while it is incomplete
        self._pending: deque[Task[bytes]] = deque()
        self._error: BaseException | None = None

    def compress(self, data: Any, /) -> Iterator[bytes]:
        with self._fail_permanently():
            view = memoryview(data)
            view = view.cast("B") if view.nbytes else memoryview(b"")
            while len(view):
                part = view[: LIMITS.compression_block_bytes - len(self._held)]
                self._held += part
                view = view[len(part) :]
                if len(self._held) == LIMITS.compression_block_bytes:
                    yield from self._add(self._take_held())

    def flush(self) -> Iterator[bytes]:
        with self._fail_permanently():
            block = self._take_held()
            self._trailer.add(block)
            last = self._compress_block(block) if len(block) or not self._end else b""  # while the threads go on
            yield from self._take_completed(0)
            yield self._header + last + self._end + self._trailer.pack()
        self.close()

    def close(self) -> None:
        self._pending.clear()  # the threads finish their blocks within milliseconds

    @contextmanager
    def _fail_permanently(self) -> Iterator[None]:
        """After an error the stream has a gap, so all later calls fail."""
        if self._error is not None:
            raise ValueError("compression has failed, so the data is incomplete") from self._error
        try:
            yield
        except BaseException as error:
            self._error = error
            self.close()
            raise

    def _take_held(self) -> memoryview:
        block, self._held = memoryview(self._held), bytearray()
        return block

    def _add(self, block: memoryview) -> Iterator[bytes]:
        """Compress a block, in a thread if there are several, and return completed ones."""
        if self._header:
            yield self._header
            self._header = b""
        self._trailer.add(block)
        if self._threads == 1:
            yield self._compress_block(block)
            return
        yield from self._take_completed(self._threads - 1)
        self._pending.append(Task.start(partial(self._compress_block, block), "compress"))

    def _take_completed(self, most: int) -> Iterator[bytes]:
        """Completed blocks, in order; waits until at most `most` are pending."""
        while self._pending and (len(self._pending) > most or self._pending[0].is_done):
            yield self._pending.popleft().result()
