"""Write and remove the index files of records, next to their data files.

Tests: tests/read/index/test_find_index_writing.py and tests/read/index/test_record_index.py.
"""

from __future__ import annotations

import os
from typing import Any

from tfrecord_io.base import StorageOptions, for_cli
from tfrecord_io.bytes import Array
from tfrecord_io.read.index.record_index import SUFFIX, RecordIndex
from tfrecord_io.store import Location, OutputFile, open_output


class IndexWriter:
    """Collects the sizes of the records written to a file, and writes its index to a sidecar file."""

    def __init__(
        self, path: Any, compression: str | None = None, storage: StorageOptions = StorageOptions.DEFAULT
    ) -> None:
        self.check_indexable(path, compression)
        self.path = os.fspath(path) + SUFFIX
        self._storage = storage
        self._replaced = Location.of(self.path, storage).status()  # of the old index, which is removed before `commit`
        self._sizes: list[Array] = []
        self._output: OutputFile | None = None  # between `finish` and `commit`

    def add(self, sizes: Array) -> None:
        """Add the bytes of each frame that is written to the file."""
        self._sizes.append(sizes)

    def finish(self) -> None:
        """Write a local index, after its file was completed, up to its name.

        In a bucket it is uploaded after the file: an index next to the old content would not match it.
        """
        if Location.of(self.path, self._storage).is_local:
            self._output = self._write_index()
            self._output.finish()

    def commit(self) -> None:
        """Publish the index, after its file was."""
        output = self._output or self._write_index()
        self._output = None
        output.commit()

    def discard(self) -> None:
        """Remove what was written; after `commit`, do nothing."""
        if self._output is not None:
            self._output.discard()

    @staticmethod
    def check_indexable(path: Any, compression: str | None) -> None:
        """Raise ValueError for a compressed file, or a file object, which has no name."""
        IndexWriter.check_uncompressed(compression)
        if not isinstance(path, str | os.PathLike):
            raise ValueError("write_index=True: a file object can have no index file; write to a path")

    @staticmethod
    def check_uncompressed(compression: str | None) -> None:
        """Raise ValueError for a compressed file, whose records have no offsets to seek to."""
        if compression is not None:
            reason = f"a compressed file ({compression}) cannot be indexed: write it uncompressed, or without an index"
            raise for_cli(ValueError(f"write_index=: {reason}"), f"--write-index: {reason}")

    def _write_index(self) -> OutputFile:
        index = RecordIndex.from_parts(self._sizes)
        return write_index(self.path, index, self._storage, self._replaced)


def write_index(
    path: str, index: RecordIndex, storage: StorageOptions, replaced: os.stat_result | None = None
) -> OutputFile:
    """Write an index file to commit, with the owner and mode of the old index, or else of its data file."""
    model = replaced or Location.of(path.removesuffix(SUFFIX), storage).status()
    output = open_output(path, storage, model=model, looks=False)
    try:
        for text in index.texts():
            output.write(text)
    except BaseException:
        output.discard()
        raise
    return output
