"""Small files that describe the records beside them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tfrecord_io.storage.filesystem.local import locate
from tfrecord_io.storage.read.source import read_whole


class Folder:
    """A directory, on disk or behind a URL, whose small files are read whole.

    Parameters
    ----------
    path : str or PathLike
    storage_options, filesystem
        For fsspec.
    """

    def __init__(
        self, path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None, filesystem: Any = None
    ) -> None:
        self._tree, self._name = locate(path, storage_options, filesystem)

    def shown(self, name: str) -> str:
        """What people call a file of it."""
        return self._tree.shown(self._join(name))

    def read(self, name: str) -> bytes | None:
        """All bytes of a file; None if there is no such file."""
        entry = self._tree.entry(self._join(name))
        if entry is None or entry.directory:
            return None
        return read_whole(self._tree, entry)

    def _join(self, name: str) -> str:
        return f"{self._name.rstrip('/')}/{name}" if self._name.rstrip("/") else f"{self._name}{name}"
