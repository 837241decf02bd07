"""File objects: those that callers pass to be read, and raw files of this package as Python file objects."""

from __future__ import annotations

import errno
import io
import os
from typing import Any

from tfrecord_io.errors import say


class CallerFile:
    """A file object that a caller passed, and its position at that time."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self._begin: int | None = file.tell() if getattr(file, "seekable", bool)() else None
        self._opened = False

    def rewind(self) -> None:
        """Go back to that position; on the first call it is still there."""
        if self._opened:
            if self._begin is None:
                reason = "the file object has to be read once more from its start, and cannot seek"
                raise OSError(errno.ESPIPE, say("{}", reason) & "read it into io.BytesIO" | say("pass {schema=}"))
            self.file.seek(self._begin)
        self._opened = True


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


class StoredFile(OwnedFile):
    """The file object of a remote filesystem, whose errors may be of any library."""

    def __init__(self, file: Any, path: str) -> None:
        super().__init__(file)
        self._path = path

    def readinto(self, buffer: memoryview, /) -> int | None:
        from tfrecord_io.storage.filesystem.os_errors import raise_os_errors

        with raise_os_errors(self._path):
            return super().readinto(buffer)


class SequentialResponse(StoredFile):
    """The response of a web server, which can only be read in order."""

    def seekable(self) -> bool:
        return False


class RawFile(io.RawIOBase):
    """A raw file, which has only readinto, tell, seek and close, as a Python file object."""

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
            raise io.UnsupportedOperation("the server does not support range requests: the file is read in order only")
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._size or 0}[whence]
        return int(self._raw.seek(base + offset))

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()
