"""Write the index of a file while the file is written."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.index.column_index import COLUMNS_SUFFIX, OLD_COLUMNS_SUFFIX
from tfrecord_io.index.record_index import SUFFIX, RecordIndex
from tfrecord_io.options import DEFAULT_STORAGE, StorageOptions
from tfrecord_io.storage.write.atomic import file_status, is_local, open_output, remove_file
from tfrecord_io.storage.write.output_file import OutputFile


class IndexWriter:
    """Collects the sizes of the records written to a file, and writes its index to a sidecar file."""

    def __init__(self, path: Any, compression: str | None = None, storage: StorageOptions = DEFAULT_STORAGE) -> None:
        check_uncompressed(compression)
        if not isinstance(path, str | os.PathLike):
            raise ValueError("write_index=True: a file object can have no index file; write to a path")
        self.path = os.fspath(path) + SUFFIX
        self._storage = storage
        self._replaced = file_status(self.path, storage)  # of the old index, which is removed before `commit`
        self._sizes: list[Array] = []
        self._output: OutputFile | None = None  # between `finish` and `commit`

    def add(self, sizes: Array) -> None:
        """Add the bytes of each frame that is written to the file."""
        self._sizes.append(sizes)

    def finish(self) -> None:
        """Write a local index, after its file was completed, so that only its name is missing when that is published.

        In a bucket the index of a file that was copied there would be older than the file.
        """
        if is_local(self.path, self._storage):
            self._output = self._written()
            self._output.finish()

    def commit(self) -> None:
        """Publish the index, after its file was."""
        output = self._output or self._written()
        self._output = None
        output.commit()

    def discard(self) -> None:
        """Remove what was written; after `commit`, do nothing."""
        if self._output is not None:
            self._output.discard()

    def _written(self) -> OutputFile:
        index = RecordIndex.of_sizes(np.concatenate([np.empty(0, np.int64), *self._sizes]))
        return written_index(self.path, index, self._storage, self._replaced)


def write_index(path: str, index: RecordIndex, storage: StorageOptions) -> None:
    """Write the index file of a data file."""
    written_index(path, index, storage).commit()


def written_index(
    path: str, index: RecordIndex, storage: StorageOptions, replaced: os.stat_result | None = None
) -> OutputFile:
    """An index file to commit, with the owner and mode of the index that it replaced, or else of its data file."""
    model = replaced or file_status(path.removesuffix(SUFFIX), storage)
    output = open_output(path, storage, model=model)
    try:
        output.write(index.to_text())
    except BaseException:
        output.discard()
        raise
    return output


def remove_index(path: Any, storage: StorageOptions) -> None:
    """Remove the indexes of a file that is about to be replaced; they would not match the new one."""
    for suffix in (SUFFIX, COLUMNS_SUFFIX, OLD_COLUMNS_SUFFIX):
        remove_file(os.fspath(path) + suffix, storage)


def check_uncompressed(compression: str | None) -> None:
    """Raise ValueError for a compressed file, whose records have no offsets to seek to."""
    if compression is not None:
        reason = f"a compressed file ({compression}) cannot be indexed; write it plain: compression=None"
        raise ValueError(f"write_index=True: {reason}")
