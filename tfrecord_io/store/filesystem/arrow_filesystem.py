"""A filesystem of pyarrow as one of fsspec."""

from __future__ import annotations

import re
from typing import Any

from fsspec.implementations.arrow import ArrowFSWrapper

_WITHOUT_HOST = re.compile(r"(subtree|mock|abfs|py::[^:/]*)://")  # such a URL has a path after the slashes, no host


class ArrowFileSystem(ArrowFSWrapper):  # type: ignore[misc]
    """fsspec's wrapper, extended to take the paths it shows.

    In one of them, such as ``subtree://folder/a``, fsspec itself would take ``folder`` for a host.
    """

    # fsspec would cache wrappers by the text of their filesystem. That of a SubTreeFileSystem has the address of an
    # object, which another object may get later: filesystems of two accounts would share a wrapper.
    cachable = False

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        match = _WITHOUT_HOST.match(path) if isinstance(path, str) else None
        return super()._strip_protocol(path) if match is None else path[match.end() :]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **keywords: Any) -> Any:
        return super().cat_file(path, start, end, **{"seekable": True, **keywords})  # fsspec seeks, also to 0
