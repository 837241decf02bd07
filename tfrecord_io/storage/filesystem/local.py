"""Where files are: the local disk, without fsspec, or any filesystem that fsspec knows.

fsspec is imported when a URL or a filesystem is met: its import costs more than reading a small file.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tfrecord_io.errors import MissingDependencyError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)")
_WEB = ("http", "https")
_EXTRAS = {"s3": "tfrecord_io[s3]", "s3a": "tfrecord_io[s3]", "gs": "tfrecord_io[gcs]", "gcs": "tfrecord_io[gcs]"}
_PACKAGES = {
    "http": "aiohttp",
    "https": "aiohttp",
    "abfs": "adlfs",
    "az": "adlfs",
    "hf": "huggingface_hub",
}  # no extra of ours
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a directory that is there."""

    name: str  # in its tree
    size: int | None
    directory: bool
    info: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)  # all that fsspec says of it

    @property
    def basename(self) -> str:
        return self.name.rstrip("/").rpartition("/")[2]


class FileSystem(Protocol):
    """What path rules need to know of a filesystem."""

    @property
    def lists(self) -> bool:
        """Whether directories can be listed."""
        ...

    def entry(self, name: str) -> Entry | None:
        """Look up one name; None if nothing is there."""
        ...

    def entries(self, names: Sequence[str]) -> list[Entry | None]: ...

    def listing(self, directory: str) -> list[Entry]: ...

    def glob(self, pattern: str) -> list[Entry]:
        """Find what matches ``* ? [a-z] **``; leading directories that are there are taken literally."""
        ...

    def shown(self, name: str) -> str:
        """What people call it: a local path or a URL."""
        ...


def locate(
    path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None, filesystem: Any
) -> tuple[FileSystem, str]:
    """Find the tree that a path is in, and its name there.

    Raises
    ------
    MissingDependencyError
        The package for this kind of URL is not installed.
    ValueError
        The kind of URL is unknown, or `storage_options` are given for a local path.
    """
    text = os.fspath(path)
    if isinstance(text, bytes):
        raise TypeError("a path is str or PathLike, not bytes; data in memory is read as io.BytesIO(data)")
    if filesystem is not None:
        if storage_options:
            raise ValueError("storage_options are for URLs; with filesystem= they have no effect")
        fs = as_fsspec(filesystem)
        return _tree(fs, fs._strip_protocol(text))
    if _URL.match(text):
        import fsspec

        try:
            return _tree(*fsspec.core.url_to_fs(text, **(storage_options or {})))
        except ImportError as error:
            raise _missing(text, error) from error
    if storage_options:
        raise ValueError(f"storage_options are for URLs; '{text}' is a local path")
    if text.startswith("~") and not os.path.lexists(text):
        text = os.path.expanduser(text)
    return LocalFileSystem(), text


def _missing(text: str, error: ImportError) -> MissingDependencyError:
    """Name what to install for a URL, of which each part of a chain has a protocol."""
    parts = [part.partition("://")[0] for part in text.split("::")]
    wanted = next((part for table in (_EXTRAS, _PACKAGES) for part in parts if part in table), None)
    if wanted is None:
        return MissingDependencyError(str(error), path=text)
    package = _EXTRAS.get(wanted) or _PACKAGES[wanted]
    return MissingDependencyError(
        f"{wanted}:// needs a package that is not installed: pip install '{package}' ({error})", path=text
    )


def protocols(fs: Any) -> tuple[str, ...]:
    """What URLs of a filesystem begin with."""
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def lists(fs: Any) -> bool:
    """Whether a filesystem can list directories: web servers cannot."""
    return not set(protocols(fs)) & set(_WEB)


def refuse_web(tree: FileSystem, name: str) -> None:
    """Raise OSError where a file is to be written to a web server; it is not even asked."""
    if not tree.lists:
        raise OSError(errno.EROFS, "a web server is only read from", tree.shown(name))


def as_fsspec(filesystem: Any) -> Any:
    """Take an fsspec filesystem as it is, and wrap one of pyarrow."""
    if type(filesystem).__module__.partition(".")[0] == "pyarrow":
        from fsspec.implementations.arrow import ArrowFSWrapper

        return ArrowFSWrapper(filesystem)
    import fsspec

    if not isinstance(filesystem, fsspec.AbstractFileSystem):
        raise TypeError(f"filesystem= takes one of fsspec or pyarrow.fs, not {type(filesystem).__name__}")
    return filesystem


def _tree(fs: Any, name: str) -> tuple[FileSystem, str]:
    from fsspec.implementations.local import LocalFileSystem

    from tfrecord_io.storage.filesystem.remote import FsspecFileSystem

    return (LocalFileSystem(), name) if isinstance(fs, LocalFileSystem) else (FsspecFileSystem(fs), name)


def literal_prefix(tree: FileSystem, pattern: str) -> int:
    """Length of the longest run of leading directories that are there by these very names."""
    for cut in reversed([m.start() for m in re.finditer("/", pattern)]):
        prefix = pattern[:cut]
        if not glob.has_magic(prefix):
            return cut
        if tree.entry(prefix) is not None:
            return cut
    return 0


class LocalFileSystem:
    """Files of the operating system."""

    lists = True

    def entry(self, name: str) -> Entry | None:
        try:
            return self._entry(name)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise

    @staticmethod
    def _entry(name: str) -> Entry:
        status = os.stat(name)
        return Entry(name, status.st_size if stat.S_ISREG(status.st_mode) else None, stat.S_ISDIR(status.st_mode))

    def entries(self, names: Sequence[str]) -> list[Entry | None]:
        return [self.entry(n) for n in names]

    def listing(self, directory: str) -> list[Entry]:
        return self._found(os.path.join(directory, n) for n in os.listdir(directory or "."))

    def glob(self, pattern: str) -> list[Entry]:
        cut = literal_prefix(self, pattern)
        return self._found(glob.glob(glob.escape(pattern[:cut]) + pattern[cut:], recursive=True))

    def _found(self, names: Iterable[str]) -> list[Entry]:
        """The entries of names that were listed, but for those that are gone: writers' temporary files come and go.

        A link that leads nowhere is a file without a size: an error for who opens it, and for nobody else.
        """
        return [entry for name in names if (entry := self._entry_or_link(name)) is not None]

    def _entry_or_link(self, name: str) -> Entry | None:
        try:
            entry = self.entry(name)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            entry = None
        return Entry(name, None, False) if entry is None and os.path.islink(name) else entry

    def shown(self, name: str) -> str:
        return name
