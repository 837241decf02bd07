"""Read a file at any offset, a window of whole records at a time, on any number of threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from tfrecord_io.engine.select import get_engine
from tfrecord_io.format.framing import FRAME_BYTES, HEADER_BYTES, frame_size
from tfrecord_io.options import MIB
from tfrecord_io.storage.read.block_reader import SPARE, Bytes

_BLOCK_BYTES = 2 * MIB  # stays in the processor's cache; smaller ones would make threads wait for the GIL more often
_LARGE_BLOCK_BYTES = 4 * MIB
_SEARCH_BYTES = 64 << 10  # searched for a header at a time


class OpenFile(Protocol):
    """A file that several threads read: an `OpenPlainFile`, or a `HeldStream`."""

    def clip(self, offset: int) -> int: ...

    def ends_by(self, offset: int) -> bool: ...

    def read(self, buffer: Bytes, begin: int, end: int) -> Bytes: ...

    def release(self, offset: int) -> None: ...


class FileWindows:
    """Windows of a file, read into buffers that are used again, or in place.

    Parameters
    ----------
    file : OpenFile
    large : bool
        Windows are larger than the processor's cache: there is work to do for each that takes longer than that costs.

    Attributes
    ----------
    file : OpenFile
    """

    def __init__(self, file: OpenFile, *, large: bool = False) -> None:
        self.file = file
        self._block_bytes = _LARGE_BLOCK_BYTES if large else _BLOCK_BYTES
        self._buffers: deque[Bytes] = deque()
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
        try:
            buffer = self._buffers.pop()
        except IndexError:
            buffer = np.empty(max(self._block_bytes, _SEARCH_BYTES) + SPARE, np.uint8)
        try:
            yield buffer
        finally:
            self._buffers.append(buffer)

    def block(self, buffer: Bytes, begin: int, end: int) -> Bytes:
        """Bytes from `begin` on, up to `end`, which is in the file, or the next header if that is longer."""
        return self.read(buffer, begin, max(min(begin + self._block_bytes, end), begin + HEADER_BYTES))

    def window(
        self, buffer: Bytes, begin: int, end: int, max_record_bytes: int, most_record_bytes: int | None = None
    ) -> tuple[Bytes, bool]:
        """Bytes from `begin` on, up to `end`, which is in the file, or with one whole record, and whether they end it.

        There are none if that record has more than `most_record_bytes`.
        """
        data = self.block(buffer, begin, end)
        if len(data) >= HEADER_BYTES and len(data) < frame_size(data[:HEADER_BYTES]) <= max_record_bytes + FRAME_BYTES:
            header, length = data[:HEADER_BYTES], frame_size(data[:HEADER_BYTES])
            _, fault = get_engine().scan(header, max_record_bytes=max_record_bytes, final=False)
            if fault is None and most_record_bytes is not None and length > most_record_bytes:
                return data[:0], False
            if fault is None:
                data = self.read(buffer, begin, begin + length)
        return data, self.file.ends_by(begin + len(data))

    def read(self, buffer: Bytes, begin: int, end: int) -> Bytes:
        """The bytes of [begin, end) that the file has; the buffer may hold them."""
        return self.file.read(buffer, begin, end)

    def find_header(self, buffer: Bytes, begin: int, end: int, max_record_bytes: int) -> int | None:
        """Offset of the first record header that begins in [begin, end)."""
        while begin < end and not self.stopped:
            stop = self.file.clip(min(begin + _SEARCH_BYTES, end + HEADER_BYTES - 1))
            if stop - begin < HEADER_BYTES:
                return None
            at = get_engine().find_header(self.read(buffer, begin, stop), max_record_bytes=max_record_bytes)
            if at >= 0:
                return begin + at
            begin = stop - HEADER_BYTES + 1
        return None
