"""Write the index of a file while the file is written."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.index.column_index import COLUMNS_SUFFIX, OLD_COLUMNS_SUFFIX
from tfrecord_io.index.record_index import SUFFIX, RecordIndex
from tfrecord_io.options import DEFAULT_STORAGE, StorageOptions
from tfrecord_io.storage.write.atomic import file_status, open_output, remove_file


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

    def add(self, sizes: Array) -> None:
        """Add the bytes of each frame that is written to the file."""
        self._sizes.append(sizes)

    def commit(self) -> None:
        """Write the index, after its file was published, so that it is not older than the file."""
        index = RecordIndex.of_sizes(np.concatenate([np.empty(0, np.int64), *self._sizes]))
        write_index(self.path, index, self._storage, self._replaced)


def write_index(path: str, index: RecordIndex, storage: StorageOptions, replaced: os.stat_result | None = None) -> None:
    """Write an index file with the owner and mode of the index that it replaced, or else of its data file."""
    model = replaced or file_status(path.removesuffix(SUFFIX), storage)
    with open_output(path, storage, model=model) as output:
        output.write(index.to_text())


def remove_index(path: Any, storage: StorageOptions) -> None:
    """Remove the indexes of a file that is about to be replaced; they would not match the new one."""
    for suffix in (SUFFIX, COLUMNS_SUFFIX, OLD_COLUMNS_SUFFIX):
        remove_file(os.fspath(path) + suffix, storage)


def check_uncompressed(compression: str | None) -> None:
    """Raise ValueError for a compressed file, whose records have no offsets to seek to."""
    if compression is not None:
        reason = f"a compressed file ({compression}) cannot be indexed; write it plain: compression=None"
        raise ValueError(f"write_index=True: {reason}")
