"""Where the indexes of files are whose folders cannot be written: in the user's cache, by the paths of the files.

The index of ``/input/a.tfrecord`` is ``~/.cache/tfrecord_io/indexes/input/a.tfrecord.index``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence


def cached_path(path: str) -> str:
    """The path in the cache that belongs to a local path."""
    drive, rest = os.path.splitdrive(os.path.abspath(path))
    parts = (part for part in (drive.strip("\\/:"), rest.strip("\\/")) if part)
    return os.path.join(_folder(), *parts)


def place_for(path: str, suffix: str) -> str:
    """The path to write an index of a local file to: next to the file, or in the cache if its folder is read-only."""
    beside = path + suffix
    if _is_writable(os.path.dirname(path) or "."):
        return beside
    cached = cached_path(path) + suffix
    os.makedirs(os.path.dirname(cached), exist_ok=True)
    return cached


class CachedIndexes:
    """Looks up the indexes of local files in the cache: of files without one, a folder costs one request."""

    def __init__(self) -> None:
        self._names: dict[str, frozenset[str]] = {}  # of the files of a folder of the cache
        self.is_empty = not os.path.isdir(_folder())

    def find(self, path: str, suffixes: Sequence[str]) -> str | None:
        """The path of a file's index with the first of these suffixes; None without one."""
        folder, name = os.path.split(cached_path(path))
        if folder not in self._names:
            self._names[folder] = _names_in(folder)
        found = next((name + suffix for suffix in suffixes if name + suffix in self._names[folder]), None)
        return None if found is None else os.path.join(folder, found)


def _folder() -> str:
    cache = os.environ.get("XDG_CACHE_HOME")
    return os.path.join(*([cache] if cache else [os.path.expanduser("~"), ".cache"]), "tfrecord_io", "indexes")


def _is_writable(folder: str) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _names_in(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()
