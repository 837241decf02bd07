"""A source as a file object of Python, for libraries that read one: zipfile, pyarrow."""

from __future__ import annotations

import io
import os
from typing import Any

from tfrecord_io.storage.read.source import Source

_BUFFER = 8 << 10  # small: columns of an array are read in pieces


def open_file(source: Source) -> Any:
    """Open a source as a binary file: read, readinto, and seek where the storage can; read gives all that was asked for."""
    raw: Any = source.open()
    try:
        return io.BufferedReader(raw if isinstance(raw, io.RawIOBase) else _RawFile(raw, source.size), _BUFFER)
    except BaseException:
        raw.close()
        raise


class _RawFile(io.RawIOBase):
    """What a remote source is read by has no more than readinto, tell and seek."""

    def __init__(self, raw: Any, size: int | None) -> None:
        self._raw, self._size = raw, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._size is not None and bool(self._raw.seekable())

    def readinto(self, buffer: Any, /) -> int | None:
        count: int | None = self._raw.readinto(memoryview(buffer).cast("B"))
        return count

    def tell(self) -> int:
        return int(self._raw.tell())

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if not self.seekable():
            raise io.UnsupportedOperation("the server gives no ranges, only the file from its start on")
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._size or 0}[whence]
        return int(self._raw.seek(base + offset))

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()
