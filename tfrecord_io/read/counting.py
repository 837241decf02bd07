"""Count the records of files, by the cheapest method that applies to each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from tfrecord_io.base import LIMITS, FrameOptions, ProgressMeter, check_keywords
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.chunks.count_frames import count_by_reading, count_each
from tfrecord_io.read.find_sources import find_sources, resolve_sources
from tfrecord_io.read.index.find_index import find_indexes
from tfrecord_io.read.index.known_counts import KnownCounts
from tfrecord_io.store import Source, Sources
from tfrecord_io.typing import UNSET, InputPath, OnError, Path, ProgressLike, StorageLike, Unset

if TYPE_CHECKING:
    from tfrecord_io.read.chunks.recovery import Recovery


@check_keywords
def count(
    source: InputPath,
    *,
    check_crc: bool | None = None,
    index: Path | Iterable[Path] | None = None,
    on_error: OnError | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> int:
    """Count the records of files, without decoding them; payloads may have any content.

    The number comes from the dataset's manifest, if there is one (`verify` checks it against the records); else from
    the index of a file, from the ``dataset_info.json`` of TFDS, or from the headers. Compressed files without a
    manifest are read completely.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord")
    >>> tfr.count("three.tfrecord")
    3

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; a `dataset` has more reading options.
    check_crc : bool, optional
        True reads and checks every payload, and ignores manifests and indexes. By default the checksums of lengths are
        compared where headers are read; False compares none.
    index : str, os.PathLike or list of those, optional
        The index file, or one for each data file in the order in which they are read, as in `open_random`. It is
        preferred to a manifest.
    on_error : {"raise", "stop", "skip"} or callable, optional
        As in `RecordReader`. The records of a damaged file are those that it would return; without
        ``check_crc=True`` payloads are not checked, and a number that a manifest or an index states is taken as it is.
    storage_options, progress
        As in `read_tfrecord`.

    Returns
    -------
    int

    Raises
    ------
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged, and ``records_intact`` is the number of its records before the damage; or `index` does
        not match it. Other index files that do not match are skipped with a StaleIndexWarning.
    ValueError
        `index` names more or fewer files than `source`, is given for compressed data, or together with `check_crc`.
    """
    options = options_from_call(
        FrameOptions,
        count,
        source,
        check_crc=UNSET if check_crc is None else check_crc,
        on_error=on_error,
        storage_options=storage_options,
        progress=progress,
    )
    reads_all = bool(check_crc)
    if isinstance(source, str | os.PathLike):
        sources = find_sources(source, options)
    else:
        from tfrecord_io.read.scan import Scan
        from tfrecord_io.read.scan_rows import ScanRows  # a path needs nothing that decodes records
        from tfrecord_io.read.source_resolution import resolve_source

        found = resolve_source(source, options)
        if isinstance(found, Scan) and (found.row_selection or found.chooses_columns):
            found = replace(found.with_selection(columns=None), selected=None)
            if index is None and not reads_all and options.damage.is_strict:
                return ScanRows(found).count()
        sources = resolve_sources(found, options) if isinstance(found, Scan) else found.sources
    if sources.are_of_manifest and not reads_all and index is None and (stated := sources.stated_records) is not None:
        return stated
    recovery: Recovery | None = None
    if options.damage.goes_on:
        from tfrecord_io.read.chunks.recovery import Recovery

        recovery = Recovery(options.on_error, sources)
    record_counts = KnownCounts(options)
    indexes = _indexes_of(sources, index, record_counts, options, reads_all=reads_all)
    threads = options.thread_count
    numbers: Iterator[int]
    counted = 0
    is_wanted = options.progress is not False  # a function may be an object that is false, such as an empty list
    with ProgressMeter(options.progress, sources.bytes, "bytes") if is_wanted else nullcontext() as bar:
        if reads_all:
            numbers = count_by_reading(
                sources, record_counts, check_crc=True, recover=recovery, threads=threads, progress=bar
            )
        else:
            named = index is not None
            numbers = count_each(
                sources, indexes, record_counts, named=named, recover=recovery, threads=threads, progress=bar
            )
        try:
            for number in numbers:
                counted += number
        except TFRecordError as error:
            options.damage.end_read(error)
            counted += error.records_intact or 0
    if recovery is not None:
        recovery.skipped.warn()
    return counted


def _indexes_of(
    sources: Sources,
    index: Path | Iterable[Path] | None,
    counts: KnownCounts,
    options: FrameOptions,
    *,
    reads_all: bool,
) -> Sequence[Source | None]:
    """The index by which the records of each file are counted; None for the files that are read, once.

    Raises
    ------
    ValueError
        The caller named indexes that cannot be used.
    """
    if index is not None and (reads_all or not counts.may_be_plain):
        plain = f"compression={options.compression!r}: only plain files have one"
        reason = "check_crc=True reads all records" if reads_all else plain
        raise ValueError(f"index= cannot be used: {reason}")
    indexes: Sequence[Source | None] = [None] * len(sources)
    if index is None and len(sources) == 1 and _is_one_request(sources[0]):
        counts.looks = False
    elif counts.may_be_plain and not reads_all:
        indexes = counts.indexes(sources) if index is None else find_indexes(sources, index, options.storage)
    for source, index_source in zip(sources, indexes, strict=True):
        if index_source is None:
            source.read_once()
    return indexes


def _is_one_request(source: Source) -> bool:
    """True if one request reads the whole remote file, no slower than a look for its index."""
    if source.remote is None or source.shard is not None or source.span is not None:
        return False
    return source.size is not None and source.size <= LIMITS.first_range_bytes
