"""An open plain file of the operating system, read at any offset by several threads."""

from __future__ import annotations

import os

import numpy as np

from tfrecord_io.storage.read.block_reader import SPARE, Bytes


class OpenPlainFile:
    """A descriptor of a plain file for `os.preadv`, used by several threads; it is closed with the last reference."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size  # when it was opened
        self._descriptor = os.dup(descriptor)

    def clip(self, offset: int) -> int:
        """The offset, or the end of the file if that is before it."""
        return min(offset, self.size)

    def ends_by(self, offset: int) -> bool:
        """Whether no byte follows an offset."""
        return offset >= self.size

    def read(self, buffer: Bytes, begin: int, end: int) -> Bytes:
        """The bytes of [begin, end) that the file has; the buffer may hold them, and `SPARE` more are readable."""
        end = self.clip(end)
        if end - begin + SPARE > len(buffer):
            buffer = np.empty(end - begin + SPARE, np.uint8)
        data = buffer[: end - begin]
        if self.read_into(data, begin) < len(data):
            raise OSError("the file was truncated")  # the sequential read that follows raises the error
        return data

    def release(self, offset: int) -> None:
        """Nothing is held."""

    def read_into(self, buffer: Bytes, begin: int) -> int:
        """Read the bytes from `begin` on; fewer than the buffer has room for only if the file was truncated."""
        view = buffer.data
        done = 0
        while done < len(view) and (n := os.preadv(self._descriptor, [view[done:]], begin + done)):
            done += n
        return done

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)
