"""A small remote object as a raw file, read once while the response of one request arrives."""

from __future__ import annotations

import asyncio
import errno
from contextlib import aclosing, suppress
from queue import Empty, SimpleQueue

from tfrecord_io.base import Task, hide_secrets, quiet_at_exit
from tfrecord_io.store.read.range_requests import RemoteObject, receive

_MOST_BYTES = 512 << 10  # that wait for the reader


class ArrivingObject:
    """A raw file over the pieces of one response; memory holds only a few pieces at a time.

    One thread reads. A reader that is slower than the network makes it wait.
    """

    def __init__(self, remote: RemoteObject, size: int) -> None:
        self._remote, self._size = remote, size
        self._pieces: SimpleQueue[bytes | Exception] = SimpleQueue()
        self._rest = memoryview(b"")
        self._used = 0  # bytes of the pieces that were taken
        self._room = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None  # of a request that waits for room
        self._error: Exception | None = None
        self._ended = False
        self._request = remote.submit(self._receive())
        self._closed = False

    async def _receive(self) -> None:
        count = 0
        try:
            async with aclosing(receive(self._remote.pieces, 0, self._size, self._remote.path)) as pieces:
                async for piece in pieces:
                    count += len(piece)
                    self._pieces.put(piece)
                    while count - self._used > _MOST_BYTES:
                        await self._wait(count)
            self._pieces.put(b"")
        except Exception as error:  # for the reader
            self._pieces.put(error)

    async def _wait(self, count: int) -> None:
        self._room.clear()
        self._loop = asyncio.get_running_loop()
        if count - self._used > _MOST_BYTES:
            await self._room.wait()
        self._loop = None

    def readinto(self, buffer: memoryview, /) -> int:
        """Read the next bytes into `buffer`: 0 only at the end."""
        if self._closed:
            raise ValueError(f"'{hide_secrets(self._remote.path)}' is closed")
        if not self._rest and not self._take():
            return 0
        n = min(len(buffer), len(self._rest))
        buffer[:n] = self._rest[:n]
        self._rest = self._rest[n:]
        return n

    def _take(self) -> bool:
        """Wait for the next piece; False at the end."""
        if self._error is not None:
            raise self._error
        if self._ended:
            return False
        piece = self._next()
        if isinstance(piece, Exception):
            self._error = piece
            raise piece
        self._rest, self._ended = memoryview(piece), not piece
        self._used += len(piece)
        if (loop := self._loop) is not None:
            loop.call_soon_threadsafe(self._room.set)
        return not self._ended

    def _next(self) -> bytes | Exception:
        while True:
            with suppress(Empty):
                return self._pieces.get(timeout=Task.WAIT_SECONDS)
            if self._request.done() and self._pieces.empty():
                return OSError(errno.EIO, "the request was cancelled", self._remote.path)

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._request.cancel()

    @quiet_at_exit
    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close()
