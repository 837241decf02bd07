"""A FIFO or a device: read once, and kept in a temporary file to be read again.

Tests: tests/store/read/test_pipe.py.
"""

from __future__ import annotations

import errno
import io
import tempfile
import threading

from tfrecord_io.base import LIMITS, quiet_at_exit
from tfrecord_io.store.operating_systems import named_temporary_folder
from tfrecord_io.store.read.plain_file import OffsetReader

_PIECE = 1 << 20


class Pipe:
    """A file that is opened once, by its first reader. What was read is kept in a temporary file to be read again.

    Opening a FIFO waits for its writer, and what was read from it is gone: a second opening would wait for another
    writer, or find the rest of the data.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._raw: io.FileIO | None = None  # None before it is opened, and after its end
        self._kept: tempfile.SpooledTemporaryFile[bytes] | None = None
        self._size = 0  # bytes kept
        self.may_rewind = True  # its codec may go back, or is not known yet
        self._opened = False
        self.is_read_once = False  # by one reader more, if none is open, which then closes the pipe
        self._gone = False  # some of what was read was not kept
        self._lock = threading.Lock()

    def open(self) -> PipeReader:
        """A reader from the first byte."""
        with self._lock:
            if self._gone:
                raise OSError(errno.ESPIPE, "a pipe cannot be read a second time: save it to a file", self.path)
            if not self._opened:
                self._raw = open(self.path, "rb", buffering=0)  # noqa: SIM115
                self._kept = tempfile.SpooledTemporaryFile(LIMITS.spool_memory_bytes, prefix="tfrecord_io-")  # noqa: SIM115
                self._opened = True
        return PipeReader(self)

    @property
    def keeps(self) -> bool:
        return self.may_rewind or not self.is_read_once

    def read_at(self, offset: int, buffer: memoryview) -> int | None:
        """Read into `buffer` like ``readinto``, from a byte that was kept or from the next one."""
        with self._lock:
            if self.keeps:
                while self._size < offset and self._keep(memoryview(bytearray(min(_PIECE, offset - self._size)))):
                    pass
            if offset < self._size:
                assert self._kept is not None
                self._kept.seek(offset)
                data = self._kept.read(len(buffer))
                buffer[: len(data)] = data
                return len(data)
            if self.keeps:
                return self._keep(buffer)
            self._drop()  # all that was kept has been read
            return self._read(buffer)

    def spool(self) -> int:
        """Read to the end, and return the number of bytes."""
        with self._lock:
            piece = memoryview(bytearray(_PIECE))
            while (n := self._keep(piece)) != 0:
                if n is None:
                    raise BlockingIOError(errno.EAGAIN, "a non-blocking file has no data yet", self.path)
            return self._size

    def spooled_descriptor(self) -> int:
        """Read to the end, and return the descriptor of a temporary file with all bytes, which the pipe closes."""
        self.spool()
        assert self._kept is not None
        with named_temporary_folder():
            self._kept.flush()
        return self._kept.fileno()

    def _keep(self, buffer: memoryview) -> int | None:
        n = self._read(buffer)
        if n:
            assert self._kept is not None
            with named_temporary_folder():
                self._kept.seek(self._size)
                self._kept.write(buffer[:n])
            self._size += n
        return n

    def _read(self, buffer: memoryview) -> int | None:
        if self._raw is None:
            return 0
        n = self._raw.readinto(buffer)
        if n == 0 and len(buffer):  # not read again: a FIFO could have another writer by then
            self._raw.close()
            self._raw = None
        return n

    def close(self) -> None:
        """Close the file, so that its writer is stopped, and drop the kept bytes."""
        raw, self._raw = self._raw, None
        if raw is not None:
            raw.close()
        self._drop()

    def _drop(self) -> None:
        kept, self._kept, self._size, self._gone = self._kept, None, 0, True
        if kept is not None:
            kept.close()

    @quiet_at_exit
    def __del__(self) -> None:
        self.close()


class PipeReader(OffsetReader):
    """A raw file that reads a `Pipe` from its start; it can seek as long as the pipe keeps what was read."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def readinto(self, buffer: memoryview, /) -> int | None:
        n = self._pipe.read_at(self._offset, buffer)
        self._offset += n or 0
        return n

    def seekable(self) -> bool:
        return self._pipe.keeps

    def close(self) -> None:
        if self._pipe.is_read_once:
            self._pipe.close()
