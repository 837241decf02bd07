"""Files that a path means.

Tests: tests/test_kit.py.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tfrecord_io.base import Options
from tfrecord_io.store import Location, PathMatch, Source


@dataclass(frozen=True, slots=True)
class File:
    """A file to read, on disk or behind a URL.

    Attributes
    ----------
    path : str
    size : int or None
        In bytes; None if it is unknown.
    """

    path: str
    size: int | None
    _source: Source

    @staticmethod
    def plain_name(path: str) -> str:
        """Return a path in lower case, without a query and the suffix of a compression."""
        from tfrecord_io.store import FileName

        return FileName.without_compression(path)

    def open(self) -> io.BufferedReader:
        """Open the content, decompressed, as a binary file to read in order."""
        return self._source.open_decompressed()


class Files:
    """The files that a path means: a file, a directory or a pattern.

    >>> from pathlib import Path
    >>> for name in ("a.txt", "b.txt"):
    ...     _ = Path(name).write_text(name)
    >>> [file.open().read() for file in Files.find("?.txt", ".txt")]
    [b'a.txt', b'b.txt']
    """

    def __init__(self, match: PathMatch) -> None:
        self._match = match

    @classmethod
    def find(cls, path: Any, suffix: str, storage_options: Any = None) -> Files:
        """Find files; of a directory those whose names end with `suffix`. FileNotFoundError if there is none."""
        return cls(PathMatch.find(path, suffix, Options.from_keywords({"storage_options": storage_options}).storage))

    @staticmethod
    def filesystem(path: str | os.PathLike[str], options: Options) -> Any:
        """The fsspec filesystem of a URL, by the `storage_options` among options; None for a local path."""
        return Location.of(path, options.storage).fsspec if Location.is_url(path) else None

    def __len__(self) -> int:
        return len(self._match.sources)

    def __iter__(self) -> Iterator[File]:
        return (File(source.path, source.size, source) for source in self._match.sources)

    def single(self, advice: str) -> File:
        """Return the only file; IsADirectoryError for a directory, for several files ValueError with `advice`."""
        source = self._match.single(advice)
        return File(source.path, source.size, source)
