"""An open plain file of the operating system, read at any offset by several threads."""

from __future__ import annotations

import os

from tfrecord_io.closing import quiet_at_exit
from tfrecord_io.storage.read.block_reader import Bytes


class OpenPlainFile:
    """A descriptor of a plain file for `os.preadv`, used by several threads; it is closed with the last reference."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size  # when it was opened
        self._descriptor = os.dup(descriptor)

    def read_into(self, buffer: Bytes, begin: int) -> int:
        """Read the bytes from `begin` on; fewer than the buffer has room for only if the file was truncated."""
        view = buffer.data
        done = 0
        while done < len(view) and (n := os.preadv(self._descriptor, [view[done:]], begin + done)):
            done += n
        return done

    @quiet_at_exit
    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)
