"""Indexes of files: written beside them, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrecord_io.errors import CorruptRecordError, TFRecordError
from tfrecord_io.index import SUFFIX, Index, find_indexes, read_index, scan_index
from tfrecord_io.options import MAX_RECORD_BYTES
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.random_access import RandomAccessFile, open_plain
from tfrecord_io.storage.read.source import Source
from tfrecord_io.storage.write.atomic import open_output


@dataclass(frozen=True, slots=True)
class FileIndex:
    """The index of one file: what it says, or what is wrong with it."""

    path: str
    index: str | None  # path of the index; None: there is none
    records: int
    bytes: int  # of the file
    error: TFRecordError | None = None

    def to_dict(self) -> dict[str, Any]:
        error = None if self.error is None else {"class": type(self.error).__name__, "message": str(self.error)}
        return {**{name: getattr(self, name) for name in ("path", "index", "records", "bytes")}, "error": error}


def write_indexes(
    path: Any,
    *,
    max_record_bytes: int = MAX_RECORD_BYTES,
    allow_missing_shards: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> list[FileIndex]:
    """Write the index of each file beside it, as ``<path>.index``; only headers are looked at.

    Parameters
    ----------
    path : str, os.PathLike or list
        As in `read_tfrecord`.
    max_record_bytes : int
        A longer record is an error.
    allow_missing_shards, storage_options, filesystem
        As in `read_tfrecord`.

    Returns
    -------
    list of FileIndex

    Raises
    ------
    ValueError
        A file is compressed.
    CorruptRecordError, TruncatedRecordError
        A file is damaged; it gets no index.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord", embed_schema=False)
    >>> [found.records for found in write_indexes("three.tfrecord")]
    [3]
    >>> print(open("three.tfrecord.index").read(), end="")
    0 30
    30 30
    60 30
    """
    done = []
    for source in resolve_inputs(
        path, storage_options=storage_options, filesystem=filesystem, allow_missing_shards=allow_missing_shards
    ):
        with open_plain(source, "an index") as ranges:
            index = scan_index(source.path, ranges, max_record_bytes)
        with _open_beside(source) as output:
            output.write(index.to_text())
        done.append(FileIndex(source.path, source.path + SUFFIX, len(index), index.end))
    return done


def check_indexes(
    path: Any,
    *,
    max_record_bytes: int = MAX_RECORD_BYTES,
    allow_missing_shards: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> list[FileIndex]:
    """Hold the index beside each file against all of its headers; what is wrong is reported, not raised.

    Parameters
    ----------
    path, max_record_bytes, allow_missing_shards, storage_options, filesystem
        As in `write_indexes`.

    Returns
    -------
    list of FileIndex

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "indexed.tfrecord", write_index=True)
    >>> [found.error for found in check_indexes("indexed.tfrecord")]
    [None]
    """
    sources = resolve_inputs(
        path, storage_options=storage_options, filesystem=filesystem, allow_missing_shards=allow_missing_shards
    )
    done = []
    for source, beside in zip(sources, find_indexes(sources), strict=True):
        with open_plain(source, "an index") as ranges:
            try:
                index, error = _checked(source, beside, ranges, max_record_bytes), None
            except TFRecordError as found:
                index, error = Index.of_sizes([]), found
            done.append(FileIndex(source.path, None if beside is None else beside.path, len(index), ranges.size, error))
    return done


def _checked(source: Source, beside: Source | None, ranges: RandomAccessFile, max_record_bytes: int) -> Index:
    if beside is None:
        raise CorruptRecordError("there is no index beside the file", path=source.path, advice="write it: tfr index")
    index = read_index(beside, source, ranges)
    found = scan_index(source.path, ranges, max_record_bytes)
    if len(index) != len(found) or not np.array_equal(index.bounds, found.bounds):
        common = min(len(index), len(found)) + 1
        record = int(np.argmax(np.append(index.bounds[:common] != found.bounds[:common], True))) - 1
        raise CorruptRecordError(
            f"the index does not fit {source.path}: it ends record {record} at byte {index.bounds[record + 1]}, the file "
            f"at byte {found.bounds[record + 1]}",
            path=beside.path,
            expected=len(found),
            got=len(index),
            advice="write it anew: tfr index",
        )
    return index


def _open_beside(source: Source) -> Any:
    if source.remote is None:
        return open_output(source.path + SUFFIX)
    fs, name = source.remote
    return open_output(name + SUFFIX, filesystem=fs)
