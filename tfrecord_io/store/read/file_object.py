"""File objects: those that callers pass to be read, and raw files of this package as Python file objects."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from tfrecord_io.base import hide_secrets

if TYPE_CHECKING:
    from tfrecord_io.base import ProgressMeter
    from tfrecord_io.bytes import Stream

NO_RANGES = "the server does not support range requests: the file is read in order only"
_SKIPPED_BYTES = 1 << 20  # read at a time


class CallerFile:
    """A caller's file object, and the position where reading begins: see `first_position`."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self._begin = first_position(file)
        self._opened = False

    def rewind(self) -> None:
        """Go to that position; a file object that cannot seek is there on the first call only."""
        if self._begin is not None:
            self.file.seek(self._begin)
        elif self._opened:
            reason = "the file object has to be read once more from its start, and cannot seek"
            raise OSError(errno.ESPIPE, f"{reason}; read it into io.BytesIO, or pass schema=")
        self._opened = True


def first_position(file: Any) -> int | None:
    """Where a file object is read from: its position, or its start if no byte is left there; None if it cannot seek.

    A buffer that was just written, or was read before, is at its end; as for Parquet in pandas, it needs no seek(0).
    """
    if not getattr(file, "seekable", bool)():
        return None
    position = int(file.tell())
    if position and file.read(1) == b"":
        position = 0
    file.seek(position)
    return position


class BorrowedFile:
    """A file object that is read but not closed."""

    def __init__(self, file: Any) -> None:
        self._file = file
        if not hasattr(file, "readinto"):
            self.readinto = self._readinto_by_read  # type: ignore[method-assign]

    def readinto(self, buffer: memoryview, /) -> int | None:
        n: int | None = self._file.readinto(buffer)
        return n

    def _readinto_by_read(self, buffer: memoryview, /) -> int | None:
        data = self._file.read(len(buffer))
        if data is None:
            return None
        if isinstance(data, str):
            raise TypeError("the file returns text; open it with mode 'rb'")
        buffer[: len(data)] = data
        return len(data)

    def seekable(self) -> bool:
        return bool(getattr(self._file, "seekable", bool)())

    def tell(self) -> int:
        return int(self._file.tell())

    def seek(self, offset: int) -> int:
        return int(self._file.seek(offset))

    def close(self) -> None:
        pass


class OwnedFile(BorrowedFile):
    """A file object that is closed, for example one without ``readinto``."""

    def close(self) -> None:
        self._file.close()


class StoredFile:
    """A file of a remote filesystem, read by the filesystem's own file object, whose errors may be of any library.

    After a transient error the file is opened again and read on from the same byte, as it is if it ends before `size`,
    its size if that is known. `open_file` is passed whether it was open before, and then checks that its version is the
    same. With `in_order`, it cannot seek: what was read before is read again.
    """

    def __init__(
        self, open_file: Callable[[bool], Any], path: str, size: int | None = None, *, in_order: bool = False
    ) -> None:
        from tfrecord_io.store.filesystem.os_errors import request_blocking

        self._open_file, self._path, self._size, self._in_order = open_file, path, size, in_order
        self._offset = self._at = 0  # of the next byte to return, and where the file object is
        self._closed = False
        self._file: OwnedFile | None = OwnedFile(request_blocking(partial(open_file, False), path))
        self._in_order |= not self._file.seekable()

    def readinto(self, buffer: memoryview, /) -> int | None:
        from tfrecord_io.store.filesystem.os_errors import request_blocking

        n = request_blocking(partial(self._read, buffer), self._path)
        self._offset += n or 0
        return n

    def _read(self, buffer: memoryview) -> int | None:
        if self._closed:
            raise ValueError(f"'{hide_secrets(self._path)}' is closed")
        if self._file is None:
            self._file, self._at = OwnedFile(self._open_file(True)), 0
        try:
            self._go_to_offset(self._file)
            n = self._file.readinto(buffer)
            if n == 0 and len(buffer) and self._size is not None and self._offset < self._size:
                raise OSError(errno.EIO, f"the file ended {self._size - self._offset} bytes early")
        except BaseException:
            file, self._file = self._file, None
            with suppress(Exception):  # of a connection that is broken
                file.close()
            raise
        self._at += n or 0
        return n

    def _go_to_offset(self, file: OwnedFile) -> None:
        if self._at != self._offset and not self._in_order:
            self._at = file.seek(self._offset)
        while self._at < self._offset:
            n = file.readinto(memoryview(bytearray(min(self._offset - self._at, _SKIPPED_BYTES))))
            if not n:
                raise OSError(errno.EIO, f"the file ended at byte {self._at}, before byte {self._offset}")
            self._at += n

    def seekable(self) -> bool:
        return not self._in_order

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int) -> int:
        if self._in_order and offset != self._offset:
            raise OSError(errno.ESPIPE, NO_RANGES, self._path)
        self._offset = offset
        return offset

    def close(self) -> None:
        self._closed = True
        if self._file is not None:
            self._file.close()


class SummedFile:
    """A raw file; `size` and `crc` are those of the bytes that were read from its start on, each once."""

    def __init__(self, raw: Any, crc32c: Callable[[memoryview, int], int]) -> None:
        self._raw, self._crc32c, self._at = raw, crc32c, 0
        self.size = self.crc = 0

    def readinto(self, buffer: memoryview, /) -> int | None:
        n: int | None = self._raw.readinto(buffer)
        if n and self._at == self.size:
            self.size, self.crc = self.size + n, self._crc32c(memoryview(buffer)[:n], self.crc)
        self._at += n or 0
        return n

    def seekable(self) -> bool:
        return bool(self._raw.seekable())

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, /) -> int:
        self._at = int(self._raw.seek(offset))
        return self._at

    def close(self) -> None:
        self._raw.close()


class RawFile(io.RawIOBase):
    """A raw file, which has only readinto, tell, seek and close, as a Python file object."""

    Summed: TypeAlias = SummedFile

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
            raise io.UnsupportedOperation(NO_RANGES)
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._size or 0}[whence]
        return int(self._raw.seek(base + offset))

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class DecompressedFile(RawFile):
    """The decompressed content of a file of `size` bytes as a Python file object.

    A `meter`, if there is one, is advanced by the bytes of the file that are read, before decompression.
    """

    def __init__(self, stream: Stream, size: int | None, meter: ProgressMeter | None) -> None:
        super().__init__(stream, None)
        self.compression = stream.compression  # None: the file is not compressed
        self._stream, self._bytes, self._meter, self._counted = stream, size, meter, 0

    def readinto(self, buffer: Any, /) -> int | None:
        count = super().readinto(buffer)
        if self._meter is None:
            return count
        used = self._stream.raw_offset
        if count == 0 and len(buffer) and self._bytes is not None:
            used = self._bytes
        self._meter.advance(max(0, used - self._counted))
        self._counted = max(self._counted, used)
        return count
