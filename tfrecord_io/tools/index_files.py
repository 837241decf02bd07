"""Write and check the indexes of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from tfrecord_io.background import ordered
from tfrecord_io.call_errors import check_keywords
from tfrecord_io.display import error_dict
from tfrecord_io.errors import CorruptRecordError, ReplacedError, SchemaError, TFRecordError, printable, say
from tfrecord_io.index import SUFFIX, RecordIndex, find_indexes, read_index, scan_index
from tfrecord_io.index.column_index import COLUMNS_SUFFIX, check_fields, is_indexable, write_columns
from tfrecord_io.index.fingerprint import Fingerprint, untouched_state
from tfrecord_io.index.indexed_files import IndexedFiles
from tfrecord_io.index.lookup import write_index
from tfrecord_io.index.record_index import SUFFIXES
from tfrecord_io.log import logger
from tfrecord_io.options import LIMITS, MIB, FrameOptions, ReadOptions, StorageOptions
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.read.chunks.chunk import ChunkDecoder, first_record_settings
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck
from tfrecord_io.read.dataset_splits import resolve_sources
from tfrecord_io.read.open_scan import indexed_fields
from tfrecord_io.read.plan_records import plan_records
from tfrecord_io.read.random_access import RandomAccess
from tfrecord_io.read.sources import whole_files
from tfrecord_io.schema.column_selection import entries_of
from tfrecord_io.storage.paths.manifest import find_sidecars
from tfrecord_io.storage.read.random_access_file import RandomAccessFile, open_plain
from tfrecord_io.storage.read.source import Source, total
from tfrecord_io.storage.write.atomic import file_status, open_output, remove_file
from tfrecord_io.storage.write.output_file import OutputStream
from tfrecord_io.typing import FilesLike, InputPath, ProgressLike, SchemaLike

ALL_SCALARS = "*scalars"
_THREADS = 16
_MEMORY = 256 * MIB  # for the files in a store that are read at a time
_DECODED = 3  # times the bytes of a part of a file that its records take: as they are read, as columns, as an index
_OF_OFFSETS = {"limits", "split", "allow_missing_shards", "storage_options", "filesystem", "progress"}


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


@check_keywords
def write_indexes(
    source: InputPath, *, storage_options: Mapping[str, Any] | None = None, progress: ProgressLike = False
) -> list[FileIndex]:
    """Write the index of each file to ``<path>.index``, by reading the headers of its records.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord", embed_schema=False)
    >>> [index.records for index in write_indexes("three.tfrecord")]
    [3]
    >>> print(open("three.tfrecord.index").read(), end="")
    0 30
    30 30
    60 30

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; a `dataset` says more of how files are read.
    storage_options, progress
        As in `read_tfrecord`.

    Raises
    ------
    ValueError
        A file is compressed.
    CorruptRecordError, TruncatedRecordError
        A file is damaged; no index is written for it.
    """
    options = FrameOptions.of_call(write_indexes, locals(), source)
    sources = resolve_sources(whole_files(source, "write_indexes", splits=True), options)
    _refuse_pipes(sources)
    with ProgressMeter(options.progress, total(source.size for source in sources), "bytes") as meter:

        def write_one(source: Source) -> FileIndex:
            with open_plain(source, "an index") as ranges:
                index = scan_index(source.path, ranges, options.limits.record_bytes, meter)
            fs, target = source.remote or (None, source.path)
            write_index(target + SUFFIX, index, StorageOptions(filesystem=fs))
            logger.info("written: %s, the index of %d records", source.path + SUFFIX, len(index))
            return FileIndex(source.path, source.path + SUFFIX, len(index), index.end)

        calls = (partial(write_one, source) for source in sources)
        indexes = list(ordered(calls, _at_a_time(sources), "index"))
    _withdraw_if_replaced(sources, SUFFIX)
    return indexes


def _at_a_time(sources: Sequence[Source]) -> int:
    """How many files are read, and their indexes stored, at a time: of those in a store as many as memory allows."""
    if not any(source.remote is not None for source in sources):
        return 1
    largest = max(min(source.size or MIB, LIMITS.picked_chunk_bytes) for source in sources)
    return max(1, min(_THREADS, len(sources), _MEMORY // (_DECODED * max(largest, 1))))


@check_keywords
def build_index(
    source: FilesLike,
    *,
    columns: Sequence[str] | str,
    schema: SchemaLike | Literal["infer"] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: ProgressLike = False,
) -> list[FileIndex]:
    """Write a column index of each file, from which columns are read, and records found, without reading the file.

    ``x.tfrecord.column_index`` has the offset and the length of each record of ``x.tfrecord``, and the values of the
    columns. A read of these columns alone reads only the index; `RandomAccess.select` and ``filters=`` find records by
    it, and `open_random` takes the offsets from it.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"label": [3, 1], "image": [b"...", b"..."]}, "labeled.tfrecord", embed_schema=False)
    >>> [index.records for index in tfr.build_index("labeled.tfrecord", columns=["label"])]
    [2]
    >>> with tfr.open_random("labeled.tfrecord") as records:
    ...     records.select([("label", "==", 1)]).numbers.tolist()
    [1]

    Parameters
    ----------
    source : str, PathLike, Dataset, or list of those
        As in `read_tfrecord`; a `dataset` says more of how files are read.
        Plain files: the records of a compressed one have no offsets.
    columns : sequence of str
        Names, globs and ``!name``, of columns of single values: numbers, texts, bytes, bools, times, categories. The
        entry "*scalars" stands for all of these.
    schema, storage_options, progress
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
    options = ReadOptions.of_call(build_index, locals(), source)
    return index_columns(whole_files(source, "build_index", splits=True), options)


def index_columns(paths: Any, options: ReadOptions) -> list[FileIndex]:
    """Write a column index of each file, of the columns of the options; see `build_index`."""
    options = replace(options, threads=1)
    sources = resolve_sources(paths, options)
    _refuse_pipes(sources)
    offsets = find_sidecars(sources, SUFFIXES)  # an old column index is replaced without a look at it
    with closing(IndexedFiles(sources, offsets, options.limits.record_bytes)) as files:
        if ALL_SCALARS in (entries := entries_of(options.columns)):
            every = plan_records(files, replace(options, columns=None))
            scalars = [field.name for field in indexed_fields(every, every.schema.names) if is_indexable(field)]
            if not scalars:
                raise SchemaError("no column has single values", path=sources[0].path if sources else None)
            others = [entry for entry in entries if entry != ALL_SCALARS]
            options = replace(options, columns=tuple(dict.fromkeys([*scalars, *others])))
        scan = plan_records(files, options)
        schema = check_fields(indexed_fields(scan, scan.schema.names))
        constant = [name for name in scan.schema.names if name not in schema.names]
        if constant:
            reason = "its values are those of directory names, so that files are left out by them without an index"
            raise SchemaError(reason, feature=constant[0], advice=say("leave it out of {columns=}"))
        records = RandomAccess(files, scan)
        with ProgressMeter(options.progress, int(files.first[-1]), "records") as meter:
            calls = (partial(_build_one, records, files, file, schema, meter) for file in range(len(sources)))
            indexes = list(ordered(calls, _at_a_time(sources), "index"))
    _withdraw_if_replaced(sources, COLUMNS_SUFFIX)
    return indexes


def _build_one(
    records: RandomAccess, files: IndexedFiles, file: int, schema: pa.Schema, meter: ProgressMeter
) -> FileIndex:
    source, index = files.sources[file], files.indexes[file]
    fs, target = source.remote or (None, source.path)
    storage, target = StorageOptions(filesystem=fs), target + COLUMNS_SUFFIX
    numbers = np.arange(files.first[file], files.first[file + 1], dtype=np.int64)
    model = file_status(target, storage) or file_status(target.removesuffix(COLUMNS_SUFFIX), storage)
    name = source.path.rpartition("/")[2]
    has_schema = _has_schema(files, file)

    def batches() -> Iterator[pa.RecordBatch]:
        for _, batch in records.batches(numbers):
            yield batch
            meter.advance(len(batch))

    identity = untouched_state(files.opened(file))  # before the content is read
    content = Fingerprint.of(files.opened(file), index, None if source.shard is None else source.shard.crc32c)
    with open_output(target, storage, model=model, looks=False) as output:
        sink, version = OutputStream(output), files.version(file)
        about: dict[str, Any] = {"has_schema": has_schema, "version": version, "identity": identity}
        write_columns(sink, name, index, schema, batches(), content, **about)
    logger.info("written: %s, the index of %d records", source.path + COLUMNS_SUFFIX, len(index))
    return FileIndex(source.path, source.path + COLUMNS_SUFFIX, len(index), index.end)


def _withdraw_if_replaced(sources: Sequence[Source], suffix: str) -> None:
    """Remove the indexes, and raise ReplacedError, if the dataset of their files was replaced while they were made.

    Who replaces a dataset removes its indexes after that: one that was written before is removed there.
    """
    checked: set[int] = set()
    for source in sources:
        manifest = None if source.shard is None else source.shard.manifest
        if manifest is None or id(manifest) in checked:
            continue
        checked.add(id(manifest))
        try:
            manifest.check_unchanged()
        except ReplacedError:
            for each in sources:
                if each.shard is not None and each.shard.manifest is manifest:
                    fs, target = each.remote or (None, each.path)
                    remove_file(target + suffix, StorageOptions(filesystem=fs))
            raise


def _has_schema(files: IndexedFiles, file: int) -> bool:
    """Whether the first record of a file has an embedded schema."""
    if not files.count(file):
        return False
    (frame,) = files.frames(files.first[[file]])
    decoder = ChunkDecoder(first_record_settings(ReadOptions()), EmbeddedSchemaCheck(obey=True))
    return decoder.feed(frame, files.sources[file].path, 0, 0).revision is not None


def _refuse_pipes(sources: Iterable[Source]) -> None:
    for source in sources:
        if source.pipe is not None:
            reason = "an index is for a regular file, and this is a pipe: save it to a file first"
            raise ValueError(f"{printable(source.path)}: {reason}")


@check_keywords
def check_indexes(
    source: InputPath, *, storage_options: Mapping[str, Any] | None = None, progress: ProgressLike = False
) -> list[FileIndex]:
    """Compare the index of each file with all of its headers; errors are reported, not raised.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "indexed.tfrecord", write_index=True)
    >>> [index.error for index in check_indexes("indexed.tfrecord")]
    [None]

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; a `dataset` says more of how files are read.
    storage_options, progress
        As in `read_tfrecord`.
    """
    options = FrameOptions.of_call(check_indexes, locals(), source)
    sources = resolve_sources(whole_files(source, "check_indexes", splits=True), options)
    with ProgressMeter(options.progress, total(source.size for source in sources), "bytes") as meter:
        calls = (
            partial(_check_one, source, file, options.limits.record_bytes, meter)
            for source, file in zip(sources, find_indexes(sources), strict=True)
        )
        return list(ordered(calls, _at_a_time(sources), "index"))


def _check_one(source: Source, file: Source | None, max_record_bytes: int, meter: ProgressMeter) -> FileIndex:
    with open_plain(source, "an index") as ranges:
        try:
            if file is None:
                reason = "the file has no index"
                raise CorruptRecordError(reason, path=source.path, advice="write one with tfr index")
            index, error = compare_index(source, file, ranges, max_record_bytes, meter), None
        except TFRecordError as raised:
            index, error = RecordIndex.of_sizes([]), raised
        return FileIndex(source.path, None if file is None else file.path, len(index), ranges.size, error)


def compare_index(
    source: Source, file: Source, ranges: RandomAccessFile, max_record_bytes: int, progress: ProgressMeter | None = None
) -> RecordIndex:
    """Read the index from `file`, and raise CorruptRecordError if it differs from the headers of the records."""
    index = read_index(file, source, ranges)
    actual = scan_index(source.path, ranges, max_record_bytes, progress)
    if len(index) != len(actual) or not np.array_equal(index.bounds, actual.bounds):
        common = min(len(index), len(actual)) + 1
        record = int(np.argmax(np.append(index.bounds[:common] != actual.bounds[:common], True))) - 1
        ends = index.bounds[record + 1], actual.bounds[record + 1]
        reason = f"the index does not match {source.path}: record {record} ends at byte {ends[0]} in the index, "
        reason, advice = f"{reason}at byte {ends[1]} in the file", "write it again with tfr index"
        raise CorruptRecordError(reason, path=file.path, expected=len(actual), got=len(index), advice=advice)
    return index
