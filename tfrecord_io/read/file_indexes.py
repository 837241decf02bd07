"""Write and check the indexes of files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from tfrecord_io.base import (
    FrameOptions,
    ProgressMeter,
    ReadOptions,
    StorageOptions,
    check_keywords,
    counted,
    logger,
    ordered,
    printable,
)
from tfrecord_io.bytes import Checks
from tfrecord_io.errors import CorruptRecordError, TFRecordError
from tfrecord_io.read.build_column_index import FileIndex, files_at_a_time, index_columns, withdraw_if_replaced
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.find_sources import resolve_sources
from tfrecord_io.read.index.find_index import find_all_indexes, read_index
from tfrecord_io.read.index.header_scan import scan_index
from tfrecord_io.read.index.record_index import SUFFIX, RecordIndex
from tfrecord_io.read.index.write_index import write_index
from tfrecord_io.store import RandomAccessFile, Source
from tfrecord_io.typing import UNSET, FilesLike, InputPath, ProgressLike, StorageLike, Unset


@check_keywords
def write_indexes(
    source: InputPath, *, storage_options: StorageLike | None = None, progress: ProgressLike | Unset = UNSET
) -> list[FileIndex]:
    """Write the index of each file to ``<path>.index``, by reading the headers of its records.

    That of a file in a read-only folder is written to the user's cache, below ``~/.cache/tfrecord_io/indexes``.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord", embed_schema=False)
    >>> [index.records for index in write_indexes("three.tfrecord")]
    [3]
    >>> print(open("three.tfrecord.index").read(), end="")
    0 30
    30 30
    60 30

    A file that is compressed, or damaged, is an error; no index is written for it.
    """
    options = options_from_call(FrameOptions, write_indexes, source, storage_options=storage_options, progress=progress)
    sources = _files(resolve_sources(CallSource(source).whole_files("write_indexes"), options))
    with ProgressMeter(options.progress, Source.total(source.size for source in sources), "bytes") as meter:

        def write_one(source: Source) -> FileIndex:
            with RandomAccessFile.open_plain(source, "an index") as ranges:
                checks = Checks.from_check_crc(options.check_crc)
                index = scan_index(source.path, ranges, options.limits.record_bytes, meter, checks=checks)
            fs, target = source.index_place(SUFFIX)
            write_index(target, index, StorageOptions(filesystem=fs)).commit()
            shown = target if source.local else source.path + SUFFIX
            logger.info("written: %s, the index of %s", shown, counted(len(index), "record"))
            return FileIndex(source.path, shown, len(index), index.end)

        calls = (partial(write_one, source) for source in sources)
        indexes = list(ordered(calls, files_at_a_time(sources), "index"))
    withdraw_if_replaced(sources, SUFFIX)
    return indexes


@check_keywords
def build_index(
    source: FilesLike,
    *,
    columns: Sequence[str] | str,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> list[FileIndex]:
    """Write a column index of each file, from which columns are read, and records found, without reading the file.

    ``x.tfrecord.column_index`` has the offset and the length of each record of ``x.tfrecord``, and the values of the
    columns. A read of these columns alone reads only the index; `RandomAccess.select` and ``filters=`` find records by
    it, and `open_random` takes the offsets from it. That of a file in a read-only folder is in the user's cache, below
    ``~/.cache/tfrecord_io/indexes``.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"label": [3, 1], "image": [b"...", b"..."]},
    ...     "labeled.tfrecord",
    ...     embed_schema=False,
    ... )
    >>> [index.records for index in tfr.build_index("labeled.tfrecord", columns=["label"])]
    [2]
    >>> with tfr.open_random("labeled.tfrecord") as records:
    ...     records.select([("label", "==", 1)]).numbers.tolist()
    [1]

    Parameters
    ----------
    source : str, PathLike, Dataset, or list of those
        As in `read_tfrecord`; a `dataset` has more reading options.
        The files must not be compressed: records of a compressed file have no offsets.
    columns : str or sequence of str
        Names, globs and ``!name``, of columns of single values: numbers, texts, bytes, bools, times, categories. The
        entry "*scalars" stands for all of these.
    storage_options, progress
        As in `read_tfrecord`.

    Returns
    -------
    list of FileIndex
        With ``path``, ``index``, ``records`` and ``bytes`` of each file.

    Raises
    ------
    ValueError
        A file is compressed; no index is written.
    SchemaError
        A column has lists or tensors, or an entry of `columns` matches nothing.
    CorruptRecordError, TruncatedRecordError, DecodeError
        A file is damaged; no index is written for it.
    """
    if columns is None:  # None means all columns in other calls
        raise TypeError("columns=None: expected names, globs and !names")
    options = options_from_call(
        ReadOptions, build_index, source, columns=columns, storage_options=storage_options, progress=progress
    )
    sources = _files(resolve_sources(CallSource(source).whole_files("build_index"), options))
    return index_columns(sources, columns, options.of_scan) if sources else []


def _files(sources: Iterable[Source]) -> list[Source]:
    """The regular files among some sources: a pipe is refused, and a dataset without rows may have none."""
    files = [source for source in sources if not source.has_no_file]
    for source in files:
        if source.is_pipe:
            reason = "an index is for a regular file, and this is a pipe: save it to a file first"
            raise ValueError(f"{printable(source.path)}: {reason}")
    return files


@check_keywords
def check_indexes(
    source: InputPath, *, storage_options: StorageLike | None = None, progress: ProgressLike | Unset = UNSET
) -> list[FileIndex]:
    """Compare each index of each file with all of its headers; errors are reported, not raised.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "indexed.tfrecord", write_index=True)
    >>> [index.error for index in check_indexes("indexed.tfrecord")]
    [None]
    """
    options = options_from_call(FrameOptions, check_indexes, source, storage_options=storage_options, progress=progress)
    sources = _files(resolve_sources(CallSource(source).whole_files("check_indexes"), options))
    with ProgressMeter(options.progress, Source.total(source.size for source in sources), "bytes") as meter:
        calls = (
            partial(_check_one, source, file, options, meter)
            for source, indexes in zip(sources, find_all_indexes(sources), strict=True)
            for file in indexes or (None,)
        )
        return list(ordered(calls, files_at_a_time(sources), "index"))


def _check_one(source: Source, file: Source | None, options: FrameOptions, meter: ProgressMeter) -> FileIndex:
    with RandomAccessFile.open_plain(source, "an index") as ranges:
        try:
            if file is None:
                reason = "the file has no index"
                raise CorruptRecordError(reason, path=source.path, hint="write one with tfr index")
            index = compare_index(
                source,
                file,
                ranges=ranges,
                max_record_bytes=options.limits.record_bytes,
                progress=meter,
                checks=Checks.from_check_crc(options.check_crc),
            )
            error = None
        except TFRecordError as raised:
            index, error = RecordIndex.from_sizes([]), raised
        return FileIndex(
            source.path, None if file is None else file.path, records=len(index), bytes=ranges.size, error=error
        )


def compare_index(
    source: Source,
    file: Source,
    ranges: RandomAccessFile,
    max_record_bytes: int,
    progress: ProgressMeter | None = None,
    *,
    checks: Checks = Checks.LENGTHS,
) -> RecordIndex:
    """Read the index from `file`, and raise CorruptRecordError if it differs from the headers of the records."""
    index = read_index(file, source, ranges, checks)
    actual = scan_index(source.path, ranges, max_record_bytes, progress, checks=checks)
    if len(index) != len(actual) or not np.array_equal(index.bounds, actual.bounds):
        common = min(len(index), len(actual)) + 1
        record = int(np.argmax(np.append(index.bounds[:common] != actual.bounds[:common], True))) - 1
        ends = index.bounds[record + 1], actual.bounds[record + 1]
        reason = f"the index does not match {source.path}: record {record} ends at byte {ends[0]} in the index, "
        reason, advice = f"{reason}at byte {ends[1]} in the file", "write it again with tfr index"
        raise CorruptRecordError(reason, path=file.path, expected=len(actual), got=len(index), hint=advice)
    return index
