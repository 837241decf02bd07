"""The interface of a filesystem that the path rules use."""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol

from tfrecord_io.store import operating_systems

PAGE_FILES = 1000  # that a bucket lists by a request: the most in S3 and Google's storage


class Entry:
    """An existing file or directory."""

    __slots__ = ("directory", "info", "name", "size")

    def __init__(self, name: str, size: int | None, directory: bool, info: Mapping[str, Any] | None = None) -> None:
        self.name = name  # in its filesystem
        self.size = size
        self.directory = directory
        self.info = info  # fsspec's own description

    def __eq__(self, other: object) -> bool:
        """Equal if name, size and kind are: descriptions differ by how the entry was found."""
        if not isinstance(other, Entry):
            return NotImplemented
        return (self.name, self.size, self.directory) == (other.name, other.size, other.directory)

    def __repr__(self) -> str:
        return f"Entry({self.name!r}, {self.size!r}, {self.directory!r})"

    @property
    def basename(self) -> str:
        return self.name.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> str:
        """The directory, with its slash."""
        return self.name[: len(self.name) - len(self.basename)]


class FileSystem(Protocol):
    """A filesystem: `LocalFileSystem` or `FsspecFileSystem`."""

    @property
    def is_local(self) -> bool:
        """True for files of the operating system."""
        ...

    @property
    def can_list(self) -> bool:
        """True if directories can be listed."""
        ...

    def entry(self, name: str, *, is_file: bool = False) -> Entry | None:
        """Look up one name; None if it does not exist.

        Where it can only be that of a file, `is_file`, some stores need fewer requests.
        """
        ...

    def entries(self, names: Sequence[str], *, are_files: bool = False) -> list[Entry | None]: ...

    def listing(self, directory: str) -> list[Entry]: ...

    def glob(self, pattern: str, literal: int | None = None) -> list[Entry]:
        """Find what matches ``* ? [a-z] **``; leading directories that exist by that name are taken literally.

        `literal` is the length of these, if it is known: see `literal_prefix`.
        """
        ...

    def files_in_partition_folders(self, directory: str) -> list[Entry]:
        """All files below the folders of columns (``name=value``) in a directory."""
        ...

    def pages_below(self, directory: str) -> Iterator[tuple[list[Entry], bool]]:
        """Files at any depth below the directory, by the pages of a store, and whether more pages follow.

        No pages where files are not listed so.
        """
        ...

    def beginning(self, prefix: str) -> list[Entry] | None:
        """The objects of a store whose names begin so, by one request; None where there is no such request."""
        ...

    def read_range(self, name: str, begin: int, end: int | None) -> bytes:
        """Bytes of a file, to its end if `end` is None, or the last ones if `begin` is negative."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        ...

    def display_path(self, name: str) -> str:
        """The path as users write it: a local path or a URL."""
        ...


def existing_files(fs: FileSystem, names: Sequence[str]) -> dict[str, Entry]:
    """Look up several names together; the entries of existing files, by name."""
    entries = fs.entries(names, are_files=True)
    return {entry.name: entry for entry in entries if entry is not None and not entry.directory}


def escaped_glob(pattern: str, literal: int) -> str:
    """The pattern for a glob function: its literal prefix escaped, and ``**/**/``, which is slow, as ``**/``."""
    return glob.escape(pattern[:literal]) + re.sub(r"(?<![^/])(\*\*/+){2,}", "**/", pattern[literal:])


def literal_prefix(fs: FileSystem, pattern: str) -> int:
    """Length of the longest leading part of `pattern` that has no wildcards or is the name of an existing directory."""
    for slash in reversed([m.start() for m in re.finditer("/", pattern)]):
        prefix = pattern[:slash]
        if not glob.has_magic(prefix) or fs.entry(prefix) is not None:
            return slash
    return 0


_Folder = tuple[int, int]  # its device and number
_ANY_FOLDERS = r"(?:^|(?<=/))\*\*(/+|$)"
_ESCAPED = r"\[([*?[])\]"  # by `glob.escape`


def _matching(pattern: str) -> Iterator[str]:
    """As `glob.iglob` with ``**``, which follows links to folders; but not to a folder that the link is in.

    That would find its files again and again, until the system refuses the path. A folder that may not be listed is an
    OSError, as its files would be missing without a word.
    """
    wildcard = re.search(_ANY_FOLDERS, pattern)
    if wildcard is None:
        yield from _matching_names(pattern)
        return
    head, tail = re.sub("(?<=[^/])/+$", "/", pattern[: wildcard.start()]), pattern[wildcard.end() :]
    names = tail if tail or wildcard[1] else "*"  # of what is below the folders
    for top in _matching_names(head) if head else [""]:
        if not tail and top:
            yield top
        below = _walk(top, frozenset([_identity(top or ".")]))
        if names and "/" not in names and not names.startswith((".", "**")):
            yield from (folder + name for folder, name, _ in below if fnmatch.fnmatch(name, names))
        else:
            for folder in [top, *(f"{folder}{name}/" for folder, name, is_folder in below if is_folder)]:
                yield from _matching(glob.escape(folder) + tail)


def _matching_names(pattern: str) -> Iterator[str]:
    """Names of local files matching a pattern without ``**``."""
    head, tail = os.path.split(pattern)
    for folder in _matching_names(head) if _has_wildcards(head) else [re.sub(_ESCAPED, r"\1", head)]:
        if _has_wildcards(tail):
            names = (entry.name for entry in _entries(folder) if tail.startswith(".") or not entry.name.startswith("."))
            yield from (os.path.join(folder, name) for name in fnmatch.filter(names, tail))
        elif _exists(name := os.path.join(folder, re.sub(_ESCAPED, r"\1", tail))):
            yield name


def _has_wildcards(pattern: str) -> bool:
    return glob.has_magic(re.sub(_ESCAPED, "", pattern))


def _exists(name: str) -> bool:
    with _nothing_there():
        os.lstat(operating_systems.current.full_name(name))
        return True
    return False


@contextmanager
def _nothing_there() -> Iterator[None]:
    """Ignore that a name is that of nothing, or of a link to itself."""
    try:
        yield
    except OSError as error:
        if error.errno not in (*_ABSENT, errno.ELOOP):
            raise


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Entries of a folder; none if the folder was removed meanwhile."""
    with _nothing_there(), os.scandir(operating_systems.current.full_name(folder or ".")) as listed:
        return list(listed)
    return []


def _walk(folder: str, within: frozenset[_Folder | None]) -> Iterator[tuple[str, str, bool]]:
    """Walk a folder, without hidden entries: of each its folder (with a slash), name, and whether it is a folder.

    `within` are that folder and those that it is in; a link to one of these does not count as a folder.
    """
    for entry in _entries(folder):
        if entry.name.startswith("."):
            continue
        identity = None
        with suppress(OSError):  # of links that lead to each other
            identity = _identity(folder + entry.name) if entry.is_dir() else None
        is_folder = identity is not None and identity not in within
        yield folder, entry.name, is_folder
        if is_folder:
            yield from _walk(f"{folder}{entry.name}/", within | {identity})


def _identity(folder: str) -> _Folder | None:
    with suppress(OSError):
        status = os.stat(operating_systems.current.full_name(folder))
        return status.st_dev, status.st_ino
    return None


_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


def is_dangling(name: str) -> bool:
    """True if a local path is a link to itself or to a missing file."""
    return os.path.islink(name) and not os.path.exists(name)


class LocalFileSystem:
    """Files of the operating system; see `FileSystem`."""

    is_local = True
    can_list = True

    def entry(self, name: str, *, is_file: bool = False) -> Entry | None:
        try:
            status = os.stat(operating_systems.current.full_name(name))
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise
        return Entry(name, status.st_size if stat.S_ISREG(status.st_mode) else None, stat.S_ISDIR(status.st_mode))

    def entries(self, names: Sequence[str], *, are_files: bool = False) -> list[Entry | None]:
        return [self.entry(name) for name in names]

    def listing(self, directory: str) -> list[Entry]:
        names = map(partial(os.path.join, directory), os.listdir(operating_systems.current.full_name(directory or ".")))
        return self._existing(map(operating_systems.current.plain_name, names))

    def glob(self, pattern: str, literal: int | None = None) -> list[Entry]:
        escaped = escaped_glob(pattern, literal_prefix(self, pattern) if literal is None else literal)
        return self._existing(map(operating_systems.current.plain_name, dict.fromkeys(_matching(escaped))))

    def files_in_partition_folders(self, directory: str) -> list[Entry]:
        return [entry for entry in self.glob(f"{glob.escape(directory)}*=*/**") if not entry.directory]

    def pages_below(self, directory: str) -> Iterator[tuple[list[Entry], bool]]:
        return iter(())

    def beginning(self, prefix: str) -> list[Entry] | None:
        return None

    def read_range(self, name: str, begin: int, end: int | None) -> bytes:
        with open(operating_systems.current.full_name(name), "rb") as file:
            file.seek(begin, os.SEEK_SET if begin >= 0 else os.SEEK_END)
            return file.read(-1 if end is None else max(0, end - file.tell()))

    def _existing(self, names: Iterable[str]) -> list[Entry]:
        """Entries of listed names; a file deleted since the listing, such as a writer's temporary file, is skipped.

        A dangling link is a file without a size, so that only opening it fails. Pipes, sockets and devices are left
        out: they are read by their own names only, as reading may block.
        """
        entries = []
        for name in names:
            entry = None
            with _nothing_there():
                entry = self.entry(name)
            if entry is None and os.path.islink(name):
                entries.append(Entry(name, None, False))
            elif entry is not None and (entry.directory or entry.size is not None):
                entries.append(entry)
        return entries

    def remove(self, name: str) -> None:
        try:
            os.unlink(operating_systems.current.full_name(name))
        except OSError as error:
            if error.errno not in _ABSENT:
                raise

    def display_path(self, name: str) -> str:
        return name
