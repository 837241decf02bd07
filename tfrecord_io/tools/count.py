"""Count the records of files, by the cheapest method that applies to each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import SchemaError, SchemaWarning, printable, warn
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.index import find_indexes, read_index, scan_sizes
from tfrecord_io.options import MAX_RECORD_BYTES, StorageOptions
from tfrecord_io.read.block_walker import frame_step, walk_file
from tfrecord_io.schema.formats.tfds import shard_lengths
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
    count = _Count(compression, max_record_bytes, check_crc)
    if check_crc:
        return _by_reading(sources, count)
    indexes: Sequence[Source | None] = find_indexes(sources) if count.may_be_plain else [None] * len(sources)
    numbers = [_records(source, index, count) for source, index in zip(sources, indexes, strict=True)]
    unknown = [source for source, number in zip(sources, numbers, strict=True) if number is None]
    return sum(filter(None, numbers)) + _by_reading(unknown, count)


_LARGE_BYTES = 8 << 20  # reading only headers pays for larger remote files


@dataclass
class _Count:
    """What all methods need."""

    compression: str | None
    max_record_bytes: int
    check_crc: bool = False
    shard_lengths: dict[tuple[int, str], dict[str, int]] = field(default_factory=dict)  # of TFDS, by folder

    @property
    def may_be_plain(self) -> bool:
        return self.compression in (None, "infer")


def _records(source: Source, index: Source | None, count: _Count) -> int | None:
    return next((records for method in METHODS if (records := method(source, index, count)) is not None), None)


def _from_manifest(source: Source, index: Source | None, count: _Count) -> int | None:
    return None if source.shard is None else source.shard.records


def _from_index(source: Source, index: Source | None, count: _Count) -> int | None:
    if index is None:
        return None
    with open_random_access(source) as ranges:
        records = read_index(index, source, ranges)
    too_long = len(records) > 0 and int(records.sizes.max()) > count.max_record_bytes + FRAME_BYTES
    return None if too_long else len(records)  # counting by headers raises the error


def _from_tfds(source: Source, index: Source | None, count: _Count) -> int | None:
    if source.is_file_object or source.span is not None or not count.may_be_plain:
        return None
    fs, path = (None, source.path) if source.remote is None else source.remote
    folder, _, name = path.rpartition("/")
    key = (id(fs), folder)
    if key not in count.shard_lengths:
        count.shard_lengths[key] = _shard_lengths(folder or ("/" if path.startswith("/") else "."), fs)
    return count.shard_lengths[key].get(name)


def _shard_lengths(folder: str, fs: Any) -> dict[str, int]:
    try:
        return shard_lengths(folder, StorageOptions(filesystem=fs))
    except PermissionError:
        return {}  # the response of a bucket without permission to list, for a name that does not exist
    except SchemaError as error:
        text = f"{printable(folder)}: its dataset_info.json cannot be used ({error}); the records are counted"
        warn(text, SchemaWarning)
        return {}


def _by_headers(source: Source, index: Source | None, count: _Count) -> int | None:
    """Count from the headers, skipping the payloads, for files with random access."""
    small_remote = source.remote is not None and (source.size or 0) < _LARGE_BYTES  # reading many in parallel is faster
    if not source.size or source.span is not None or small_remote or not count.may_be_plain:
        return None
    with open_random_access(source) as ranges:
        if codec_of(ranges, source.path) is not None:
            return None
        return sum(len(sizes) for sizes in scan_sizes(source.path, ranges, count.max_record_bytes))


def _by_reading(sources: list[Source], count: _Count) -> int:
    """Count by reading the files completely."""
    step = frame_step(get_engine(), check_crc=count.check_crc, max_record_bytes=count.max_record_bytes)
    with SourcePrefetcher(sources) as prefetched:
        return sum(walk_file(source, step, count.compression)[0] for source in prefetched)


Method = Callable[[Source, Source | None, _Count], int | None]
"""Takes a file, its index, and the options; returns the number of records, or None if the method does not apply."""

METHODS: tuple[Method, ...] = (_from_manifest, _from_index, _from_tfds, _by_headers)  # the first that applies is used
