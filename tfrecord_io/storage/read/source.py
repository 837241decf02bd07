"""A file to read."""

from __future__ import annotations

import errno
import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tfrecord_io.compression import Raw
from tfrecord_io.storage.filesystem.local import Entry, FileSystem, lists
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem

if TYPE_CHECKING:
    from tfrecord_io.storage.paths.manifests_found import Shard
    from tfrecord_io.storage.read.range_reader import RangeReader, Window


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: on disk, behind a URL, or an open binary file object.

    Attributes
    ----------
    path : str
        What people see: a local path or a URL; of a file object its name, or its class in ``<>``.
    size : int or None
        Bytes of the file when it was found, None where nobody knows.
    local : bool
        Whether it is a file of the operating system.
    span : tuple of int, optional
        (begin, end): a piece of the file is read, whose bytes and records stand there; `size` is the piece's.
    shard : Shard or None
        What its dataset's manifest says of it.
    partitions : tuple of (str, str or None)
        Names and values that the folders above it stand for, ``label=cat``.
    """

    path: str
    size: int | None
    local: bool
    _fs: Any = field(default=None, repr=False)
    _name: str | None = field(default=None, repr=False)
    _file: _Lent | None = field(default=None, repr=False)
    span: tuple[int, int] | None = None
    shard: Shard | None = None
    partitions: tuple[tuple[str, str | None], ...] = ()
    _info: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)  # what the filesystem said of it
    _ahead: RangeReader | None = field(default=None, repr=False, compare=False)  # open already, with what was asked for

    def open(self) -> Raw:
        """Open for reading from the start; a file object is read from where it stood, and close() leaves it open.

        Raises
        ------
        OSError
            It is a file object that cannot seek, and has been opened before: its first bytes are gone.
        """
        if self._file is not None:
            self._file.rewind()
            return BorrowedFile(self._file.file)
        return self._open() if self.shard is None else self.shard.watch(self._open)

    def _open(self) -> Raw:
        if self._ahead is not None:
            self._ahead.seek(self.begin)
            return BorrowedFile(self._ahead)
        if self.remote:
            return self.open_ranges() or self._open_whole()
        return open(self.path, "rb", buffering=0) if self.shard is None else self.shard.open_local(self.path)

    def open_ranges(self, window: Window | None = None) -> RangeReader | None:
        """Open for reading by ranges; None where the filesystem's own file is what to read."""
        if not self.remote:
            return None
        from tfrecord_io.storage.read.range_reader import RangeReader
        from tfrecord_io.storage.read.range_requests import fetch_of  # imports fsspec

        fetch = fetch_of(self._fs, str(self._name), self._info, self.path)
        end = (self.size or 0) if self.span is None else self.span[1]
        return None if fetch is None else RangeReader(fetch, end, self.path, window, self._open_whole, begin=self.begin)

    def _open_whole(self) -> Raw:
        """Open by the filesystem's own file; a web server's one is one answer."""
        from tfrecord_io.storage.filesystem.errors import told_as_os_error

        with told_as_os_error(self.path):
            if not lists(self._fs):
                return OneAnswer(self._fs.open(self._name, "rb", block_size=0), self.path)
            raw: Raw = self._fs.open(self._name, "rb")
            return raw

    @property
    def is_file_object(self) -> bool:
        return self._file is not None

    @property
    def remote(self) -> tuple[Any, str] | None:
        """The fsspec filesystem, and the file's name there; None of any other file."""
        return None if self._fs is None else (self._fs, str(self._name))

    @property
    def begin(self) -> int:
        """The first byte that is read."""
        return 0 if self.span is None else self.span[0]

    def piece(self, begin: int, end: int) -> Source:
        """A piece of this file, which is plain."""
        return replace(self, size=end - begin, span=(begin, end))


def source_of(tree: FileSystem, entry: Entry) -> Source:
    """Make the source of a file that was found."""
    if isinstance(tree, FsspecFileSystem):
        return Source(tree.shown(entry.name), entry.size, False, tree.fs, entry.name, _info=entry.info)
    return Source(entry.name, entry.size, True)


def read_whole(tree: FileSystem, entry: Entry, limit: int = -1) -> bytes:
    """All bytes of a small file, or a few more than `limit` of a larger one."""
    raw = source_of(tree, entry).open()
    try:
        parts, size = [], 0
        while (limit < 0 or size <= limit) and (n := raw.readinto(buffer := memoryview(bytearray(1 << 16)))):
            parts.append(bytes(buffer[:n]))
            size += n
        return b"".join(parts)
    finally:
        raw.close()


def source_of_file(file: Any) -> Source:
    """Make a source of a binary file object.

    Raises
    ------
    TypeError
        The file is in text mode.
    ValueError
        It is not open for reading.
    """
    if isinstance(file, io.TextIOBase):
        raise TypeError("the file is open in text mode; open it with mode 'rb'")
    if hasattr(file, "readable") and not file.readable():
        raise ValueError("the file is not open for reading")
    name = getattr(file, "name", None)
    return Source(name if isinstance(name, str) else f"<{type(file).__name__}>", None, False, _file=_Lent(file))


class _Lent:
    """A file object of somebody else, and where it stood when it was given."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self._begin: int | None = file.tell() if getattr(file, "seekable", bool)() else None
        self._opened = False

    def rewind(self) -> None:
        """Make it stand there: a schema that is met late is read under from the start."""
        if self._opened:
            if self._begin is None:
                reason = "the file object has to be read once more from its start, and cannot seek"
                raise OSError(errno.ESPIPE, f"{reason}: read it into io.BytesIO, or pass schema=")
            self.file.seek(self._begin)
        self._opened = True


class BorrowedFile:
    """A file object of somebody else: read, and not closed."""

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
            raise TypeError("the file gives text; open it with mode 'rb'")
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


class OneAnswer(BorrowedFile):
    """What a web server sends, as it comes: there is no going back."""

    def __init__(self, file: Any, path: str) -> None:
        super().__init__(file)
        self._path = path

    def readinto(self, buffer: memoryview, /) -> int | None:
        from tfrecord_io.storage.filesystem.errors import told_as_os_error

        with told_as_os_error(self._path):
            return super().readinto(buffer)

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self._file.close()
