"""Local files as they are: opened without a buffer, and read at any offset by several threads.

Tests: tests/store/read/test_plain_file.py.
"""

from __future__ import annotations

import io
import os

import numpy as np

from tfrecord_io.base import quiet_at_exit
from tfrecord_io.bytes import PlainStream
from tfrecord_io.store import operating_systems
from tfrecord_io.store.read.block_reader import Bytes


def open_raw(path: str) -> io.FileIO:
    """Open a local file without a buffer."""
    return open(operating_systems.current.full_name(path), "rb", buffering=0)


class OffsetReader:
    """Base class of raw files that read at an offset."""

    _offset = 0

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int) -> int:
        self._offset = offset
        return offset


class OpenPlainFile:
    """A descriptor of a plain file, read at any offset by several threads; it is closed with the last reference.

    Attributes
    ----------
    size : int
        When it was opened.
    descriptor : int or None
        None for a file in memory.
    """

    descriptor: int | None = None

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size
        self.descriptor = os.dup(descriptor)

    def read_into(self, buffer: Bytes, begin: int) -> int:
        """Read the bytes from `begin` on; fewer than the buffer has room for only if the file was truncated."""
        view = buffer.data
        done = 0
        assert self.descriptor is not None
        while done < len(view) and (n := operating_systems.current.read_at(self.descriptor, view[done:], begin + done)):
            done += n
        return done

    @classmethod
    def from_stream(cls, stream: PlainStream) -> OpenPlainFile | None:
        """The file that a stream reads; None if it is not a regular local one, or the system has no pread."""
        if isinstance(stream.raw, PlainFileReader):
            return stream.raw.file
        if not isinstance(stream.raw, io.FileIO) or not stream.size or not operating_systems.current.has_pread:
            return None
        return cls(stream.raw.fileno(), stream.size)

    def stream(self, path: str) -> PlainStream:
        """A stream of all bytes; `path` names the file in messages."""
        return PlainStream(PlainFileReader(self), path, b"", self.size)

    @quiet_at_exit
    def __del__(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)


class PlainFileReader(OffsetReader):
    """A raw file over an `OpenPlainFile`, which may be one in memory."""

    def __init__(self, file: OpenPlainFile) -> None:
        self.file = file

    def readinto(self, buffer: memoryview, /) -> int:
        count = min(len(buffer), self.file.size - self._offset)
        n = self.file.read_into(np.frombuffer(buffer, np.uint8, count), self._offset) if count else 0
        self._offset += n
        return n

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Others may read the file."""
