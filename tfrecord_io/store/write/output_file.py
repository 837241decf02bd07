"""A file being written: what all kinds of targets have in common.

Tests: tests/faults/test_killed_copies.py and tests/end_to_end/test_stores.py.
"""

from __future__ import annotations

import errno
import io
from abc import ABC, abstractmethod
from typing import Any, Self

from tfrecord_io.base import NotCopied, for_cli, hide_secrets, undo_after

_PIECE = 8 << 20  # bytes per write; Ctrl-C is handled between two


class OutputFile(NotCopied, ABC):
    """A file being written."""

    states_crc32c = False  # whether a store that compares the CRC32C of what arrives with one is told it

    def __init__(self, path: str) -> None:
        self.path = path  # for messages: a local path or a URL
        self.offset = 0  # bytes written
        self.replaces = False  # whether there was a file of this name when it was opened
        self.is_open = True  # neither published nor discarded
        self._failed = False

    def as_stream(self) -> OutputStream:
        """The file as a Python file object, for other libraries; closing that does not publish the file."""
        return OutputStream(self)

    def expect(self, size: int, crc32c: int | None) -> None:
        """Say how many bytes will be written, and their CRC32C if it is known: a store may be sent them meanwhile.

        The file appears by `commit` all the same, and only if these bytes were written.
        """

    def write(self, buffer: Any) -> int:
        """Write all bytes of a contiguous buffer. After an error the file can only be discarded."""
        self._check_open()
        view = memoryview(buffer).cast("B")
        done = 0
        try:
            while done < len(view):
                n = self._write(view[done : done + _PIECE])
                if n <= 0:
                    raise OSError(errno.EIO, "the file accepts no more data", self.path)
                done += n
                self.offset += n
        except BaseException as error:
            self._failed = True
            if isinstance(error, OSError) and error.filename is None and error.errno is not None:
                raise OSError(error.errno, f"{error.strerror}, at byte {self.offset}", self.path) from error
            raise
        return done

    def finish(self) -> None:
        """Finish writing and release what only writing needs, so that many files can wait for their `commit`."""
        self._check_open()
        try:
            self._finish()
        except BaseException as error:
            undo_after(error, self.discard, self.path)
            raise

    def begin_commit(self) -> None:
        """Begin to publish a file whose `commit` is to follow: where requests can be under way, else by it."""
        self.commit()

    def cancel(self) -> None:
        """Let a `commit` in another thread end early, by an error."""

    def commit(self) -> None:
        """Publish the file. If that fails it is discarded."""
        self._check_open()
        try:
            if self._failed:
                raise ValueError(
                    f"'{hide_secrets(self.path)}': a write failed, so the file is incomplete and cannot be published"
                )
            self._commit()
        except BaseException as error:
            undo_after(error, self.discard, self.path)
            raise
        self.is_open = False

    def discard(self) -> None:
        """Drop what was written; the target stays unchanged. Does nothing after `commit`."""
        if self.is_open:
            self.is_open = False
            self._discard()

    def _check_open(self) -> None:
        if not self.is_open:
            raise ValueError(f"'{hide_secrets(self.path)}' is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.commit()
        else:
            undo_after(error, self.discard, self.path)

    @abstractmethod
    def _write(self, piece: memoryview) -> int:
        """Write at least one byte of `piece`; return how many."""

    def _finish(self) -> None:
        pass

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def _discard(self) -> None: ...


def accepted_bytes(count: int | None, piece: memoryview) -> int:
    """The bytes of `piece` that the ``write`` of another library accepted; it returns None if it accepts all."""
    return len(piece) if count is None else int(count)


class FileObjectOutput(OutputFile):
    """A file object of the caller, or a device, written directly: nothing can be taken back."""

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
        if n is None and isinstance(self._file, io.RawIOBase):
            raise BlockingIOError(errno.EAGAIN, "a non-blocking file accepts no data now", self.path)
        return accepted_bytes(n, piece)

    def _commit(self) -> None:
        if hasattr(self._file, "flush"):
            self._file.flush()
        if self._owned:
            self._file.close()

    def _discard(self) -> None:
        if self._owned:
            self._file.close()


class OutputStream(io.RawIOBase):
    """An `OutputFile` as a Python file object, for other libraries; closing it does not publish the file."""

    def __init__(self, output: OutputFile) -> None:
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        return self._output.write(data)

    def tell(self) -> int:
        return self._output.offset


def exists_error(path: str) -> FileExistsError:
    """The error for ``mode="error"`` and an existing file."""
    error = FileExistsError(errno.EEXIST, "the file exists; mode='overwrite' replaces it", path)
    return for_cli(error, "the file exists; --mode overwrite replaces it")
