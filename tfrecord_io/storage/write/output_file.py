"""A file being written: what all kinds of targets have in common."""

from __future__ import annotations

import errno
import io
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

_PIECE = 8 << 20  # bytes per write: Ctrl-C is heard between two


class OutputFile(ABC):
    """A file being written.

    Attributes
    ----------
    path : str
        What people see.
    offset : int
        Bytes written.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.offset = 0
        self._open = True
        self._failed = False

    def write(self, buffer: Any) -> int:
        """Write all bytes of a contiguous buffer.

        Raises
        ------
        OSError
            With the path. What was begun can only be discarded then.
        """
        if not self._open:
            raise ValueError(f"'{self.path}' is closed")
        view = memoryview(buffer).cast("B")
        done = 0
        try:
            while done < len(view):
                n = self._write(view[done : done + _PIECE])
                done += n
                self.offset += n
        except BaseException as error:
            self._failed = True
            if isinstance(error, OSError) and error.filename is None and error.errno is not None:
                raise OSError(error.errno, f"{error.strerror}, at byte {self.offset}", self.path) from error
            raise
        return done

    def finish(self) -> None:
        """All is written: let go of what is held for writing, so that many files can wait for their `commit`."""
        if not self._open:
            raise ValueError(f"'{self.path}' is closed")
        try:
            self._finish()
        except BaseException as error:
            self._discard_after(error)
            raise

    def commit(self) -> None:
        """Publish the file. If that fails it is discarded."""
        if not self._open:
            raise ValueError(f"'{self.path}' is closed")
        try:
            if self._failed:
                raise ValueError(f"'{self.path}': a write failed, so there is nothing whole to publish")
            self._commit()
        except BaseException as error:
            self._discard_after(error)
            raise
        self._open = False

    def discard(self) -> None:
        """Drop what was written; the target stays as it was. After `commit`, nothing happens."""
        if self._open:
            self._open = False
            self._discard()

    def _discard_after(self, error: BaseException) -> None:
        """Discard because of `error`, which is what people should see."""
        try:
            self.discard()
        except Exception as second:
            error.add_note(f"'{self.path}': dropping what was written failed as well: {second}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
        else:
            self._discard_after(error)

    @abstractmethod
    def _write(self, piece: memoryview) -> int: ...

    def _finish(self) -> None:  # noqa: B027 — most files have nothing to let go of
        pass

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def _discard(self) -> None: ...


class FileObjectOutput(OutputFile):
    """A file object of somebody else, or a device: written as it is."""

    def __init__(self, file: Any, path: str | None = None, *, owned: bool = False) -> None:
        if isinstance(file, io.TextIOBase):
            raise TypeError("the file is open in text mode; open it with mode 'wb'")
        if hasattr(file, "writable") and not file.writable():
            raise ValueError("the file is not open for writing")
        name = getattr(file, "name", None)
        super().__init__(path or (name if isinstance(name, str) else f"<{type(file).__name__}>"))
        self._file, self._owned = file, owned

    def _write(self, piece: memoryview) -> int:
        n = self._file.write(piece)
        if n is None:
            if isinstance(self._file, io.RawIOBase):
                raise BlockingIOError(errno.EAGAIN, "a non-blocking file takes no data now", self.path)
            return len(piece)  # writers of other libraries that do not say take all
        return int(n)

    def _commit(self) -> None:
        if hasattr(self._file, "flush"):
            self._file.flush()
        if self._owned:
            self._file.close()

    def _discard(self) -> None:
        if self._owned:
            self._file.close()


def exists_error(path: str) -> FileExistsError:
    """Word the refusal of ``overwrite=False``."""
    return FileExistsError(errno.EEXIST, "there is a file of this name; overwrite=True replaces it", path)
