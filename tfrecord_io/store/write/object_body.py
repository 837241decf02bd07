"""The content of an object, which is sent in slices, also before all of it is there."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator
from typing import Any

from tfrecord_io.store.read.block_reader import Block

_SLICE = 256 << 10  # what a connection cannot send at once is copied: no more than this


class ObjectBody:
    """The content of an object of a known size, as a body of a request of botocore; it is held once.

    A request may begin before all bytes are there. It cannot end before `complete`, as the last byte is held back, and
    stores drop what ends early: so a writer that finds an error publishes nothing. A request that is made again begins
    with the first byte again.

    One thread appends; requests are made in the event loop `loop`. `crc32c` is that of all bytes, if it is known.
    """

    def __init__(self, size: int, loop: asyncio.AbstractEventLoop, crc32c: int | None = None) -> None:
        self.content, self.crc32c = Block.memory(size).data, crc32c
        self.is_complete = False
        self._loop, self._arrived, self._position = loop, 0, 0
        self._change = asyncio.Event()

    @classmethod
    def from_content(cls, content: bytearray, loop: asyncio.AbstractEventLoop) -> ObjectBody:
        """A body of which all is there; `content` is not changed any more."""
        body = cls(0, loop)
        body.content, body._arrived, body.is_complete = memoryview(content), len(content), True
        return body

    def __len__(self) -> int:
        return len(self.content)

    def append(self, piece: memoryview) -> None:
        """Add bytes, no more than the size has room for."""
        self.content[self._arrived : self._arrived + len(piece)] = piece
        self._arrived += len(piece)
        self._loop.call_soon_threadsafe(self._change.set)

    def complete(self) -> None:
        """Let requests end."""
        self.is_complete = True
        self._loop.call_soon_threadsafe(self._change.set)

    async def __aiter__(self) -> AsyncGenerator[memoryview]:
        at = 0
        while at < len(self):
            end = min(at + _SLICE, self._arrived if self.is_complete else min(self._arrived, len(self) - 1))
            if end > at:
                yield self.content[at:end]
                at = end
            else:
                await self._change.wait()
                self._change.clear()

    # ---- what botocore signs, where a signature is of the content

    def read(self, size: int = -1) -> bytes:
        """The next bytes; io.UnsupportedOperation before all are there."""
        if not self.is_complete:
            raise io.UnsupportedOperation("not all of the content is there")
        begin = self._position
        self._position = len(self) if size is None or size < 0 else min(begin + size, len(self))
        return bytes(self.content[begin : self._position])

    def tell(self) -> int:
        return self._position

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        self._position = position + (0, self._position, len(self))[whence]
        return self._position


def sign_without_body(request: Any, **_: Any) -> None:
    """Let botocore leave a body out of the signature over TLS, as it does if it has computed the checksum itself.

    An event handler of a client of S3.
    """
    if isinstance(request.data, ObjectBody):
        algorithm = {"algorithm": "crc32c", "in": "header", "name": "x-amz-checksum-crc32c"}
        request.context.setdefault("checksum", {}).setdefault("request_algorithm", algorithm)


def send_at_once(request: Any, **_: Any) -> None:
    """Send a body without waiting for the server to ask for it, which costs a round trip; servers may never ask.

    An event handler of a client of S3.
    """
    if isinstance(request.body, ObjectBody):
        request.headers.pop("Expect", None)
