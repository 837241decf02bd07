"""Deflate data made of blocks, each compressed for itself, on threads if there are any: one stream in the end.

A block is compressed with the 32 KiB before it as its dictionary and ends at a whole byte (a sync flush), so that the
blocks one after the other are a stream like any other (RFC 1951). Where blocks begin depends on what is written and not
on threads or time: the same data makes the same bytes on any number of threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Protocol

BLOCK_BYTES = 1 << 20
_SMALL = BLOCK_BYTES // 4  # less than this waits for more
_WINDOW = 32 << 10  # as far as deflate looks back
_LAST = b"\x03\x00"  # an empty block that says it is the last one


class _Trailer(Protocol):
    def add(self, data: Any) -> None: ...

    def pack(self) -> bytes: ...


class DeflateBlocks:
    """One member; see `tfrecord_io.compression.codec.Compressor`.

    A block's thread ends with it: of a thousand files that are open at a time, those that wait have none.

    Parameters
    ----------
    deflate : callable
        Compresses a block behind a window, to raw deflate data that ends at a whole byte.
    header : bytes
        In front of the data.
    trailer : Trailer
        Behind it.
    threads : int
        With 1 the caller compresses.
    """

    def __init__(
        self, deflate: Callable[[memoryview, Any], bytes], header: bytes, trailer: _Trailer, threads: int
    ) -> None:
        self._deflate = deflate
        self._header = header
        self._trailer = trailer
        self._threads = threads
        self._held: list[bytes] = []  # small pieces, for a block
        self._held_bytes = 0
        self._window: Any = b""  # the bytes before the next block
        self._pending: deque[Future[bytes]] = deque()
        self._error: BaseException | None = None

    def compress(self, data: Any, /) -> Iterator[bytes]:
        with self._whole():
            view = memoryview(data).cast("B")
            if not len(view):
                return
            if len(view) < _SMALL:
                self._held.append(bytes(view))
                self._held_bytes += len(view)
                if self._held_bytes >= BLOCK_BYTES:
                    yield from self._add(self._take_held())
                return
            if self._held:
                yield from self._add(self._take_held())
            size = -(-len(view) // -(-len(view) // BLOCK_BYTES))  # as few blocks as can be, of one size
            for at in range(0, len(view), size):
                yield from self._add(view[at : at + size])

    def flush(self) -> Iterator[bytes]:
        with self._whole():
            block = self._take_held()
            last = self._deflate(block, self._pass_over(block)) if len(block) else b""  # meanwhile the threads go on
            yield from self._done(0)
            yield self._header + last + _LAST + self._trailer.pack()
        self.close()

    def close(self) -> None:
        self._pending.clear()  # in milliseconds the threads are done with their blocks

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What is interrupted leaves a hole in the stream: there is no way on."""
        if self._error is not None:
            raise ValueError("compressing has failed, so there is nothing whole to write") from self._error
        try:
            yield
        except BaseException as error:
            self._error = error
            self.close()
            raise

    def _take_held(self) -> memoryview:
        block = memoryview(b"".join(self._held))
        self._held, self._held_bytes = [], 0
        return block

    def _add(self, block: memoryview) -> Iterator[bytes]:
        """Compress a block, or have it compressed; give what is done."""
        if self._header:
            yield self._header
            self._header = b""
        window = self._pass_over(block)
        if self._threads == 1:
            yield self._deflate(block, window)
            return
        yield from self._done(self._threads - 1)
        future: Future[bytes] = Future()
        threading.Thread(target=self._fulfil, args=(future, block, window), name="tfrecord_io compress").start()
        self._pending.append(future)

    def _fulfil(self, future: Future[bytes], block: memoryview, window: Any) -> None:
        try:
            future.set_result(self._deflate(block, window))
        except BaseException as error:  # it is the caller's, who waits for it
            future.set_exception(error)

    def _pass_over(self, block: memoryview) -> Any:
        """The window in front of `block`; the next one is behind it."""
        self._trailer.add(block)
        window = self._window
        self._window = block[-_WINDOW:] if len(block) >= _WINDOW else (bytes(window) + block)[-_WINDOW:]
        return window

    def _done(self, most: int) -> Iterator[bytes]:
        """Blocks that are done, in order, until at most so many are not."""
        while self._pending and (len(self._pending) > most or self._pending[0].done()):
            yield self._pending.popleft().result()
