"""A filesystem of pyarrow as one of fsspec."""

from __future__ import annotations

from typing import Any

from fsspec.implementations.arrow import ArrowFSWrapper

_WITH_HOST = ("hdfs", "viewfs")  # in whose URLs a host precedes the path


class ArrowFileSystem(ArrowFSWrapper):
    """fsspec's wrapper, which takes the paths that it shows: ``subtree://folder/a``, where fsspec takes a host.

    It is made anew each time. fsspec would find it again by the text of the filesystem, which of a SubTreeFileSystem
    has the address of an object that is gone: filesystems of two accounts may have one text.
    """

    cachable = False

    def _strip_protocol(self, path: Any) -> Any:  # type: ignore[override]
        prefix = f"{self.fs.type_name}://"
        if isinstance(path, str) and path.startswith(prefix) and self.fs.type_name not in _WITH_HOST:
            return path.removeprefix(prefix)
        return super()._strip_protocol(path)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **keywords: Any) -> Any:
        return super().cat_file(path, start, end, **{"seekable": True, **keywords})  # fsspec seeks, also to 0
