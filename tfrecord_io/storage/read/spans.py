"""A piece of a plain file as a stream."""

from __future__ import annotations

import errno
from typing import Any


class SpanStream:
    """The bytes [begin, end) of a file; a `tfrecord_io.compression.Stream`.

    Parameters
    ----------
    raw : binary file
        It can seek; closed with the stream.
    path : str
        For messages.
    begin, end : int
    """

    compression: str | None = None

    def __init__(self, raw: Any, path: str, begin: int, end: int) -> None:
        self._raw, self._path, self._end = raw, path, end
        self.offset = begin  # of the next byte in the file
        raw.seek(begin)

    @property
    def raw_offset(self) -> int:
        return self.offset

    def readinto(self, buffer: memoryview, /) -> int:
        room = buffer[: max(0, self._end - self.offset)]
        if not len(room):
            return 0
        n: int | None = self._raw.readinto(room)
        if n is None:
            raise BlockingIOError(errno.EAGAIN, "a non-blocking file has no data yet", self._path)
        if n == 0:
            raise OSError(
                errno.EIO,
                f"the file ended at byte {self.offset}, inside of the piece up to byte {self._end}",
                self._path,
            )
        self.offset += n
        return n

    def close(self) -> None:
        self._raw.close()
