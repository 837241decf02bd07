"""Files of the operating system."""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from tfrecord_io.storage import system
from tfrecord_io.storage.filesystem.interface import Entry, escaped_glob, literal_prefix

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
        with suppress(FileNotFoundError):
            os.unlink(system.current.full_name(name))

    def display_path(self, name: str) -> str:
        return name
