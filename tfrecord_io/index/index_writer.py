"""An index written along with its file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.select import get_engine
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.index.record_index import SUFFIX, Index
from tfrecord_io.options import DEFAULT_STORAGE, StorageOptions
from tfrecord_io.storage.write.atomic import open_output


class IndexWriter:
    """Collects the sizes of the records that are written to a file, and writes its index beside it.

    Parameters
    ----------
    path : str or PathLike
        Of the file.
    compression : str or None
        Name of its compression.
    storage : StorageOptions

    Raises
    ------
    ValueError
        The file is compressed, or a file object: its index would be of no use, or has no place.
    """

    def __init__(self, path: Any, compression: str | None = None, storage: StorageOptions = DEFAULT_STORAGE) -> None:
        refuse_compressed(compression)
        if not isinstance(path, str | os.PathLike):
            raise ValueError("write_index: a file object has no place beside it; write to a path")
        self.path = os.fspath(path) + SUFFIX
        self._storage = storage
        self._engine = get_engine()
        self._sizes: list[Array] = []

    def add(self, framed: Any) -> None:
        """Take note of whole records, framed as they go to the file."""
        frames, fault = self._engine.scan(framed, check_crc=False)
        assert fault is None, "only whole frames are written"
        self._sizes.append(frames.lengths + FRAME_BYTES)

    def commit(self) -> None:
        """Write the index; its file has been published, so that it is the younger one."""
        index = Index.of_sizes(np.concatenate([np.empty(0, np.int64), *self._sizes]))
        with open_output(self.path, self._storage) as output:
            output.write(index.to_text())


def refuse_compressed(compression: str | None) -> None:
    """Raise ValueError where files are compressed: their indexes would be of no use."""
    if compression is not None:
        raise ValueError(
            f"write_index: places in a compressed file ({compression}) lead nowhere; write it plain, compression=None"
        )
