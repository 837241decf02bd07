"""A filesystem of pyarrow as one of fsspec."""

from __future__ import annotations

import re
from typing import Any

from fsspec.implementations.arrow import ArrowFSWrapper

_WITHOUT_HOST = re.compile(r"(subtree|mock|abfs|py::[^:/]*)://")  # before a path


class ArrowFileSystem(ArrowFSWrapper):  # type: ignore[misc]
    """fsspec's wrapper, extended to take the paths it shows: ``subtree://folder/a``, where fsspec takes a host.

    It is made again each time. fsspec would find it again by the text of the filesystem, which of a SubTreeFileSystem
    has the address of an object that is gone: filesystems of two accounts may have one text.
    """

    cachable = False

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        match = _WITHOUT_HOST.match(path) if isinstance(path, str) else None
        return super()._strip_protocol(path) if match is None else path[match.end() :]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **keywords: Any) -> Any:
        return super().cat_file(path, start, end, **{"seekable": True, **keywords})  # fsspec seeks, also to 0
