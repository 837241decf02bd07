"""Searches for files in filesystems that list one folder at a time; fsspec is imported only with this module."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fsspec import AbstractFileSystem

from tfrecord_io.store.filesystem.interface import Entry

_BEFORE_WILDCARDS = re.compile(r"[^*?[]*")


class SearchByFolder(AbstractFileSystem):  # type: ignore[misc]
    """The ``glob`` and ``find`` of fsspec, which raise the error of a folder that cannot be listed.

    A filesystem of fsspec takes such a folder for an empty one, and its files would be missing without a word. A folder
    that is removed during the search has no files.

    Parameters
    ----------
    list_folder : callable
        The entries of a folder whose names begin with a prefix, or all of them: a store may ignore the prefix.

    Examples
    --------
    >>> folders = {"d": [Entry("d/p=1", None, True, {"type": "directory"})], "d/p=1": [Entry("d/p=1/a", 3, False, {})]}
    >>> list(SearchByFolder(lambda folder, prefix: folders[folder]).glob("d/*/a"))
    ['d/p=1/a']
    """

    cachable = False

    def __init__(self, list_folder: Callable[[str, str], list[Entry]]) -> None:
        super().__init__()
        self._list_folder = list_folder

    def glob(self, path: str, maxdepth: int | None = None, **options: Any) -> Any:
        """Match a pattern, as fsspec's ``glob``; `find` lists the names that begin as the pattern does."""
        prefix = _BEFORE_WILDCARDS.match(path)[0].rpartition("/")[2]  # type: ignore[index]  # matches any text
        return super().glob(path, maxdepth, **{**options, "prefix": prefix})

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, prefix: str = "", **_: Any
    ) -> dict[str, Any]:
        """The files below a folder, and with `withdirs` the folders, as fsspec describes them, by name.

        `maxdepth` counts the levels of folders; `prefix` is that of names in the first one.
        """
        infos: dict[str, Any] = {}
        folders, level = [path.rstrip("/")], 0
        while folders and level != maxdepth:
            entries: list[Entry] = []
            for folder in folders:
                with suppress(FileNotFoundError, NotADirectoryError):
                    entries += self._list_folder(folder, prefix if level == 0 else "")
            infos.update((e.name.rstrip("/"), e.info) for e in entries if withdirs or not e.directory)
            folders, level = [entry.name.rstrip("/") for entry in entries if entry.directory], level + 1
        return infos
