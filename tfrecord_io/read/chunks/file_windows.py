"""Read a plain file at any offset, a window of whole records at a time, on any number of threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tfrecord_io.engine.select import get_engine
from tfrecord_io.format.framing import FRAME_BYTES, HEADER_BYTES, frame_size
from tfrecord_io.options import MIB
from tfrecord_io.storage.read.block_reader import SPARE, Bytes, block_memory
from tfrecord_io.storage.read.source import OpenPlainFile

_BLOCK_BYTES = 2 * MIB  # stays in the processor's cache; smaller ones would make threads wait for the GIL more often
_LARGE_BLOCK_BYTES = 4 * MIB
_SEARCH_BYTES = 64 << 10  # searched for a header at a time
_KEPT_BUFFERS = 4

# Buffers of earlier reads: the system takes as long to make their pages again as to read some of a file into them.
_kept: deque[Bytes] = deque(maxlen=_KEPT_BUFFERS)


class FileWindows:
    """Windows of a file, read into buffers that are used again.

    Parameters
    ----------
    file : OpenPlainFile
    large : bool
        Windows are larger than the processor's cache: there is work to do for each that takes longer than that costs.

    Attributes
    ----------
    size : int
        Of the file, when it was opened.
    """

    def __init__(self, file: OpenPlainFile, *, large: bool = False) -> None:
        self.size = file.size
        self._block_bytes = _LARGE_BLOCK_BYTES if large else _BLOCK_BYTES
        self._file = file
        self._stop = threading.Event()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Let those who read return soon."""
        self._stop.set()

    @contextmanager
    def buffer(self) -> Iterator[Bytes]:
        """A buffer of one thread."""
        size = max(min(self._block_bytes, self.size), _SEARCH_BYTES) + SPARE
        buffer = None
        with suppress(IndexError):
            buffer = _kept.pop()
        if buffer is None or len(buffer) < size:
            buffer = block_memory(size)
        try:
            yield buffer
        finally:
            if len(buffer) > _BLOCK_BYTES:
                _kept.append(buffer)

    def block(self, buffer: Bytes, begin: int, end: int) -> Bytes:
        """Bytes from `begin` on, up to `end`, or the next header if that is longer."""
        return self.read(buffer, begin, max(min(begin + self._block_bytes, end), min(begin + HEADER_BYTES, self.size)))

    def window(
        self, buffer: Bytes, begin: int, end: int, max_record_bytes: int, most_record_bytes: int | None = None
    ) -> tuple[Bytes, bool]:
        """Bytes from `begin` on, up to `end` or with one whole record, and whether the file ends with them.

        There are none if that record has more than `most_record_bytes`.
        """
        data = self.block(buffer, begin, end)
        if len(data) >= HEADER_BYTES and len(data) < frame_size(data[:HEADER_BYTES]) <= max_record_bytes + FRAME_BYTES:
            header, length = data[:HEADER_BYTES], frame_size(data[:HEADER_BYTES])
            _, fault = get_engine().scan(header, max_record_bytes=max_record_bytes, final=False)
            if fault is None and most_record_bytes is not None and length > most_record_bytes:
                return data[:0], False
            if fault is None:
                data = self.read(buffer, begin, min(begin + length, self.size))
        return data, begin + len(data) == self.size

    def read(self, buffer: Bytes, begin: int, end: int) -> Bytes:
        """All bytes of [begin, end), in the buffer if it is large enough."""
        if end - begin + SPARE > len(buffer):
            buffer = block_memory(end - begin + SPARE)
        data = buffer[: end - begin]
        if self._file.read_into(data, begin) < len(data):
            raise OSError("the file was truncated")  # the sequential read that follows raises the error
        return data

    def find_header(self, buffer: Bytes, begin: int, end: int, max_record_bytes: int) -> int | None:
        """Offset of the first record header that begins in [begin, end)."""
        while begin < end and not self.stopped:
            stop = min(begin + _SEARCH_BYTES, end + HEADER_BYTES - 1, self.size)
            if stop - begin < HEADER_BYTES:
                return None
            at = get_engine().find_header(self.read(buffer, begin, stop), max_record_bytes=max_record_bytes)
            if at >= 0:
                return begin + at
            begin = stop - HEADER_BYTES + 1
        return None
