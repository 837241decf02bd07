"""Write the index of a file while the file is written."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.select import get_engine
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.index.record_index import SUFFIX, RecordIndex
from tfrecord_io.options import DEFAULT_STORAGE, StorageOptions
from tfrecord_io.storage.write.atomic import open_output


class IndexWriter:
    """Collects the sizes of the records written to a file, and writes its index to a sidecar file."""

    def __init__(self, path: Any, compression: str | None = None, storage: StorageOptions = DEFAULT_STORAGE) -> None:
        check_uncompressed(compression)
        if not isinstance(path, str | os.PathLike):
            raise ValueError("write_index: a file object can have no index file; write to a path")
        self.path = os.fspath(path) + SUFFIX
        self._storage = storage
        self._engine = get_engine()
        self._sizes: list[Array] = []

    def add(self, framed: Any) -> None:
        """Add whole frames as they are written to the file."""
        frames, fault = self._engine.scan(framed, check_crc=False)
        assert fault is None, "only whole frames are written"
        self._sizes.append(frames.lengths + FRAME_BYTES)

    def commit(self) -> None:
        """Write the index, after its file was published, so that it is not older than the file."""
        index = RecordIndex.of_sizes(np.concatenate([np.empty(0, np.int64), *self._sizes]))
        with open_output(self.path, self._storage) as output:
            output.write(index.to_text())


def check_uncompressed(compression: str | None) -> None:
    """Raise ValueError for a compressed file, whose records have no offsets to seek to."""
    if compression is not None:
        reason = f"a compressed file ({compression}) cannot be indexed; write it plain, compression=None"
        raise ValueError(f"write_index: {reason}")
