"""How many records files hold, by the cheapest way that knows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import SchemaError, SchemaWarning, printable, warn
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.index import find_indexes, read_index, scan_sizes
from tfrecord_io.options import MAX_RECORD_BYTES
from tfrecord_io.read.record_reader import RecordFile
from tfrecord_io.read.record_walk import scan_step, walk
from tfrecord_io.schema.formats.tfds import shard_lengths
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.prefetch import SourcePrefetcher
from tfrecord_io.storage.read.random_access import codec_of, open_ranges
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
    """Count the records of files, without decoding them; payloads may be of any content.

    The number is that of a dataset's manifest, if there is one, which `verify` holds against the records; else that of the index
    beside a file, else that of TFDS's ``dataset_info.json``, else of the headers, from one to the next. A compressed file
    without a manifest is read through.

    Parameters
    ----------
    path : str, os.PathLike, list or binary file object
        As in `read_tfrecord`.
    compression : {"infer", "gzip", "zlib", "zstd"} or None
        As in `read_tfrecord`.
    check_crc : bool
        True reads every payload and checks it, whatever is said beside the files.
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
        A file is damaged; ``records_intact`` counts the records of that file before the damage. Or its index does not fit it.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord")
    >>> tfr.count_records("three.tfrecord")
    3
    """
    sources = resolve_inputs(
        path, storage_options=storage_options, filesystem=filesystem, allow_missing_shards=allow_missing_shards
    )
    count = _Count(compression, max_record_bytes, check_crc)
    if check_crc:
        return _by_reading(sources, count)
    beside: Sequence[Source | None] = find_indexes(sources) if count.may_be_plain else [None] * len(sources)
    known = [_records(source, index, count) for source, index in zip(sources, beside, strict=True)]
    return sum(filter(None, known)) + _by_reading(
        [s for s, records in zip(sources, known, strict=True) if records is None], count
    )


_LARGE_BYTES = 8 << 20  # a file where going from header to header pays


@dataclass
class _Count:
    """What all the ways go by."""

    compression: str | None
    max_record_bytes: int
    check_crc: bool = False
    said: dict[tuple[int, str], dict[str, int]] = field(default_factory=dict)  # by folder: what TFDS says of its files

    @property
    def may_be_plain(self) -> bool:
        return self.compression in (None, "infer")


def _records(source: Source, index: Source | None, count: _Count) -> int | None:
    return next((records for way in WAYS if (records := way(source, index, count)) is not None), None)


def _from_manifest(source: Source, index: Source | None, count: _Count) -> int | None:
    return None if source.shard is None else source.shard.file.records


def _from_index(source: Source, index: Source | None, count: _Count) -> int | None:
    if index is None:
        return None
    with open_ranges(source) as ranges:
        found = read_index(index, source, ranges)
    too_long = len(found) > 0 and int(found.sizes.max()) > count.max_record_bytes + FRAME_BYTES
    return None if too_long else len(found)  # the headers tell which it is


def _from_tfds(source: Source, index: Source | None, count: _Count) -> int | None:
    if source.is_file_object or source.span is not None or not count.may_be_plain:
        return None
    fs, path = (None, source.path) if source.remote is None else source.remote
    folder, _, name = path.rpartition("/")
    key = (id(fs), folder)
    if key not in count.said:
        count.said[key] = _said(folder or ("/" if path.startswith("/") else "."), fs)
    return count.said[key].get(name)


def _said(folder: str, fs: Any) -> dict[str, int]:
    try:
        return shard_lengths(folder, filesystem=fs)
    except PermissionError:
        return {}  # what a bucket that must not be listed says of a name that is not there
    except SchemaError as error:
        warn(
            f"{printable(folder)}: its dataset_info.json cannot be used ({error}); the records are counted",
            SchemaWarning,
        )
        return {}


def _by_headers(source: Source, index: Source | None, count: _Count) -> int | None:
    """Payloads are passed over where they are large; the files that have places to go to."""
    small_remote = source.remote is not None and (source.size or 0) < _LARGE_BYTES  # many of them are read side by side
    if not source.size or source.span is not None or small_remote or not count.may_be_plain:
        return None
    with open_ranges(source) as ranges:
        if codec_of(ranges, source.path) is not None:
            return None
        return sum(len(sizes) for sizes in scan_sizes(source.path, ranges, count.max_record_bytes))


def _by_reading(sources: list[Source], count: _Count) -> int:
    """All that no way knows is read through."""
    step = scan_step(get_engine(), check_crc=count.check_crc, max_record_bytes=count.max_record_bytes)
    records = 0
    with SourcePrefetcher(sources) as upcoming:
        for source in upcoming:
            file = RecordFile(source, count.compression)
            try:
                records += walk(file, step)[0]
            finally:
                file.close()
    return records


Way = Callable[[Source, Source | None, _Count], int | None]
"""Takes (file, index beside it, what to go by), gives the number of records, or None where it does not know."""

WAYS: tuple[Way, ...] = (_from_manifest, _from_index, _from_tfds, _by_headers)  # the first that knows it counts
