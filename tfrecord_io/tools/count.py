"""Count the records of files, by the cheapest method that applies to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfrecord_io.engine.select import get_engine
from tfrecord_io.index import find_indexes, scan_sizes
from tfrecord_io.index.known_counts import KnownCounts
from tfrecord_io.options import MAX_RECORD_BYTES, StorageOptions
from tfrecord_io.read.block_walker import frame_step, walk_file
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.prefetch import SourcePrefetcher
from tfrecord_io.storage.read.random_access import codec_of, open_random_access
from tfrecord_io.storage.read.source import Source


def count_records(
    path: Any,
    *,
    compression: str | None = "infer",
    check_crc: bool = False,
    max_record_bytes: int = MAX_RECORD_BYTES,
    allow_missing_shards: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> int:
    """Count the records of files, without decoding them; payloads may have any content.

    The number comes from the dataset's manifest, if there is one (`verify` checks it against the records); else from
    the index of a file, from the ``dataset_info.json`` of TFDS, or from the headers, reading one after the other.
    Compressed files without a manifest are read completely.

    Parameters
    ----------
    path : str, os.PathLike, list or binary file object
        As in `read_tfrecord`.
    compression : {"infer", "gzip", "zlib", "zstd"} or None
        As in `read_tfrecord`.
    check_crc : bool
        True reads and checks every payload, and ignores manifests and indexes.
    max_record_bytes : int
        A longer record is an error.
    allow_missing_shards, storage_options, filesystem
        As in `read_tfrecord`.

    Returns
    -------
    int

    Raises
    ------
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged, and ``records_intact`` is the number of its records before the damage; or a file differs from
        its index.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord")
    >>> tfr.count_records("three.tfrecord")
    3
    """
    storage = StorageOptions(storage_options, filesystem)
    sources = resolve_inputs(path, storage, allow_missing_shards=allow_missing_shards)
    count = KnownCounts(compression, max_record_bytes)
    if check_crc:
        return _by_reading(sources, count, check_crc=True)
    indexes: Sequence[Source | None] = find_indexes(sources) if count.may_be_plain else [None] * len(sources)
    numbers = [_records(source, index, count) for source, index in zip(sources, indexes, strict=True)]
    unknown = [source for source, number in zip(sources, numbers, strict=True) if number is None]
    return sum(filter(None, numbers)) + _by_reading(unknown, count)


_LARGE_BYTES = 8 << 20  # reading only headers pays for larger remote files


def _records(source: Source, index: Source | None, count: KnownCounts) -> int | None:
    known = count.of(source, index)
    return _by_headers(source, count) if known is None else known


def _by_headers(source: Source, count: KnownCounts) -> int | None:
    """Count from the headers, skipping the payloads, for files with random access."""
    small_remote = source.remote is not None and (source.size or 0) < _LARGE_BYTES  # reading many in parallel is faster
    if not source.size or source.span is not None or small_remote or not count.may_be_plain:
        return None
    with open_random_access(source) as ranges:
        if codec_of(ranges, source.path) is not None:
            return None
        return sum(len(sizes) for sizes in scan_sizes(source.path, ranges, count.max_record_bytes))


def _by_reading(sources: list[Source], count: KnownCounts, *, check_crc: bool = False) -> int:
    """Count by reading the files completely."""
    for source in sources:
        source.read_once()
    step = frame_step(get_engine(), check_crc=check_crc, max_record_bytes=count.max_record_bytes)
    with SourcePrefetcher(sources) as prefetched:
        return sum(walk_file(source, step, count.compression)[0] for source in prefetched)
