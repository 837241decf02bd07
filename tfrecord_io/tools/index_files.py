"""Write and check the indexes of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrecord_io.display import error_dict
from tfrecord_io.errors import CorruptRecordError, TFRecordError, printable
from tfrecord_io.index import SUFFIX, RecordIndex, find_indexes, read_index, scan_index
from tfrecord_io.index.index_writer import write_index
from tfrecord_io.options import MAX_RECORD_BYTES, StorageOptions
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.random_access import RandomAccessFile, open_plain
from tfrecord_io.storage.read.source import Source


@dataclass(frozen=True, slots=True)
class FileIndex:
    """The index of one file."""

    path: str
    index: str | None  # path of the index, if it exists
    records: int
    bytes: int  # of the file
    error: TFRecordError | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in self.__slots__}, "error": error_dict(self.error)}


def write_indexes(
    path: Any,
    *,
    max_record_bytes: int = MAX_RECORD_BYTES,
    allow_missing_shards: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> list[FileIndex]:
    """Write the index of each file to ``<path>.index``, by reading the headers of its records.

    The keywords are those of `tfrecord_io.count_records`.

    Raises
    ------
    ValueError
        A file is compressed.
    CorruptRecordError, TruncatedRecordError
        A file is damaged; no index is written for it.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord", embed_schema=False)
    >>> [index.records for index in write_indexes("three.tfrecord")]
    [3]
    >>> print(open("three.tfrecord.index").read(), end="")
    0 30
    30 30
    60 30
    """
    storage = StorageOptions(storage_options, filesystem)
    sources = resolve_inputs(path, storage, allow_missing_shards=allow_missing_shards)
    indexes = []
    for source in sources:
        if source.pipe is not None:
            reason = "an index is for a regular file, and this is a pipe: save it to a file first"
            raise ValueError(f"{printable(source.path)}: {reason}")
        with open_plain(source, "an index") as ranges:
            index = scan_index(source.path, ranges, max_record_bytes)
        fs, target = source.remote or (None, source.path)
        write_index(target + SUFFIX, index, StorageOptions(filesystem=fs))
        indexes.append(FileIndex(source.path, source.path + SUFFIX, len(index), index.end))
    return indexes


def check_indexes(
    path: Any,
    *,
    max_record_bytes: int = MAX_RECORD_BYTES,
    allow_missing_shards: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> list[FileIndex]:
    """Compare the index of each file with all of its headers; errors are reported, not raised.

    The keywords are those of `tfrecord_io.count_records`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "indexed.tfrecord", write_index=True)
    >>> [index.error for index in check_indexes("indexed.tfrecord")]
    [None]
    """
    storage = StorageOptions(storage_options, filesystem)
    sources = resolve_inputs(path, storage, allow_missing_shards=allow_missing_shards)
    checked = []
    for source, file in zip(sources, find_indexes(sources), strict=True):
        with open_plain(source, "an index") as ranges:
            try:
                if file is None:
                    reason = "the file has no index"
                    raise CorruptRecordError(reason, path=source.path, advice="write one with tfr index")
                index, error = compare_index(source, file, ranges, max_record_bytes), None
            except TFRecordError as raised:
                index, error = RecordIndex.of_sizes([]), raised
            checked.append(FileIndex(source.path, None if file is None else file.path, len(index), ranges.size, error))
    return checked


def compare_index(source: Source, file: Source, ranges: RandomAccessFile, max_record_bytes: int) -> RecordIndex:
    """Read the index from `file`, and raise CorruptRecordError if it differs from the headers of the records."""
    index = read_index(file, source, ranges)
    actual = scan_index(source.path, ranges, max_record_bytes)
    if len(index) != len(actual) or not np.array_equal(index.bounds, actual.bounds):
        common = min(len(index), len(actual)) + 1
        record = int(np.argmax(np.append(index.bounds[:common] != actual.bounds[:common], True))) - 1
        ends = index.bounds[record + 1], actual.bounds[record + 1]
        reason = f"the index does not match {source.path}: record {record} ends at byte {ends[0]} in the index, "
        reason, advice = f"{reason}at byte {ends[1]} in the file", "write it again with tfr index"
        raise CorruptRecordError(reason, path=file.path, expected=len(actual), got=len(index), advice=advice)
    return index
