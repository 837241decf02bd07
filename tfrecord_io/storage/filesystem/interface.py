"""The interface of a filesystem that the path rules use."""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from tfrecord_io.storage import system


@dataclass(frozen=True, slots=True)
class Entry:
    """An existing file or directory."""

    name: str  # in its filesystem
    size: int | None
    directory: bool
    info: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)  # fsspec's own description

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
    def can_list(self) -> bool:
        """Whether directories can be listed."""
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

    def below(self, directory: str) -> list[Entry]:
        """All files below the folders of columns (``name=value``) in a directory."""
        ...

    def pages_below(self, directory: str) -> Iterator[tuple[list[Entry], bool]]:
        """The same files and all others below the directory, by the pages of a store, and whether more follow.

        No pages where files are not listed so.
        """
        ...

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        ...

    def display_path(self, name: str) -> str:
        """The path as users write it: a local path or a URL."""
        ...


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


_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


class LocalFileSystem:
    """Files of the operating system; see `FileSystem`."""

    can_list = True

    def entry(self, name: str, *, is_file: bool = False) -> Entry | None:
        try:
            status = os.stat(system.current.full_name(name))
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise
        return Entry(name, status.st_size if stat.S_ISREG(status.st_mode) else None, stat.S_ISDIR(status.st_mode))

    def entries(self, names: Sequence[str], *, are_files: bool = False) -> list[Entry | None]:
        return [self.entry(name) for name in names]

    def listing(self, directory: str) -> list[Entry]:
        names = map(partial(os.path.join, directory), os.listdir(system.current.full_name(directory or ".")))
        return self._existing(map(system.current.plain_name, names))

    def glob(self, pattern: str, literal: int | None = None) -> list[Entry]:
        escaped = escaped_glob(pattern, literal_prefix(self, pattern) if literal is None else literal)
        return self._existing(map(system.current.plain_name, glob.glob(escaped, recursive=True)))

    def below(self, directory: str) -> list[Entry]:
        return [entry for entry in self.glob(f"{glob.escape(directory)}*=*/**") if not entry.directory]

    def pages_below(self, directory: str) -> Iterator[tuple[list[Entry], bool]]:
        return iter(())

    def _existing(self, names: Iterable[str]) -> list[Entry]:
        """Entries of listed names; a file deleted since the listing, such as a writer's temporary file, is skipped.

        A dangling link is a file without a size, so that only opening it fails. Pipes, sockets and devices are left
        out: they are read by their own names only, as reading may block.
        """
        return list(filter(None, map(self._entry_or_link, names)))

    def _entry_or_link(self, name: str) -> Entry | None:
        try:
            entry = self.entry(name)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            entry = None
        if entry is None:
            return Entry(name, None, False) if os.path.islink(name) else None
        return entry if entry.directory or entry.size is not None else None

    def remove(self, name: str) -> None:
        try:
            os.unlink(system.current.full_name(name))
        except OSError as error:
            if error.errno not in _ABSENT:
                raise

    def display_path(self, name: str) -> str:
        return name
