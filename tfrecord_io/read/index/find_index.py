"""Find and read index files; an index is used only after a check that it matches its data file."""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tfrecord_io.base import LIMITS, StorageOptions, and_more, for_cli, logger, printable, warn
from tfrecord_io.bytes import Checks, FrameHeader, get_engine
from tfrecord_io.errors import CorruptRecordError, ReplacedError, StaleIndexWarning
from tfrecord_io.read.index import SMALL_BYTES
from tfrecord_io.store import FileName, Location, Source, find_sidecars

if TYPE_CHECKING:
    from tfrecord_io.read.index.column_index import ColumnIndex
    from tfrecord_io.read.index.record_index import LineIndex, RecordIndex
    from tfrecord_io.store import RandomAccessFile

SUFFIXES = (FileName.INDEX_SUFFIX, *FileName.INDEX_SUFFIXES_OF_TOOLS)  # of the index files that are looked up
_MD5 = re.compile('(?:ETag|etag)="?[0-9a-f]{32}"?|(?:md5Hash|content_md5)=.+')
_HEADERS = {True: 64, False: 4}  # of a large file that are compared with a text index, by whether it is on a disk

T = TypeVar("T")


def find_indexes(
    sources: Sequence[Source],
    index: Any = None,
    storage: StorageOptions = StorageOptions.DEFAULT,
    *,
    suffixes: Sequence[str] = (*SUFFIXES, FileName.COLUMN_INDEX_SUFFIX),
) -> list[Source | None]:
    """The index file of each data file: `index` if that names them, else the sidecar; None without one.

    Where a file has several, that with the first of the `suffixes` is found. TypeError if `index` is not a path or a
    list of paths, ValueError if it has fewer or more paths than there are data files, FileNotFoundError if one of its
    paths is not a file.
    """
    if index is None:
        sidecars = find_sidecars(sources, suffixes)
        sidecars = [None if sidecar is not None and _is_pickle(sidecar) else sidecar for sidecar in sidecars]
        logger.debug("files with an index: %d of %d", len(sidecars) - sidecars.count(None), len(sidecars))
        return sidecars
    paths = index if isinstance(index, list | tuple) else [index]
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"index={path!r}: expected the path of an index file or a list with one for each file")
    if len(paths) != len(sources):
        names = f"{len(paths)} index file{'s' * (len(paths) != 1)}"
        names += f" for {len(sources)} data file{'s' * (len(sources) != 1)}"
        raise ValueError(f"index= names {names}: pass a list with one for each, in the order in which they are read")
    return [_index_source(path, storage) for path in paths]


def find_all_indexes(sources: Sequence[Source]) -> list[tuple[Source, ...]]:
    """All index files next to each data file: one of all records, and one with values of columns."""
    first = find_indexes(sources)
    both = [
        source
        for source, index in zip(sources, first, strict=True)
        if index is not None and not _is_column_index(index)
    ]
    columns = iter(find_indexes(both, suffixes=(FileName.COLUMN_INDEX_SUFFIX,)))
    indexes_by_file = [
        (index,) if index is None or _is_column_index(index) else (index, next(columns)) for index in first
    ]
    return [tuple(index for index in indexes if index is not None) for indexes in indexes_by_file]


def _is_column_index(index: Source) -> bool:
    return index.path.endswith(FileName.COLUMN_INDEX_SUFFIX)


def find_again(source: Source, *suffixes: str) -> Source | None:
    """Look up the index of a file again, where the one listed is gone or was written again."""
    (index,) = find_indexes(
        [source.replace(beside=None)], suffixes=suffixes or (*SUFFIXES, FileName.COLUMN_INDEX_SUFFIX)
    )
    return index


def _is_pickle(sidecar: Source) -> bool:
    """True if a local file is the index of tfd-utils, which is named as one of this package may be."""
    if not sidecar.local or _is_column_index(sidecar):
        return False
    from tfrecord_io.read.index.record_index import is_pickle

    with suppress(OSError), open(sidecar.path, "rb") as file:
        return is_pickle(file.read(2))
    return False


def _index_source(path: str | os.PathLike[str], storage: StorageOptions) -> Source:
    if not Location.is_url(path):  # storage_options are those of the data, which may be remote
        storage = storage._replace(storage_options=None)
    fs, name = Location.of(path, storage)
    entry = fs.entry(name)
    if entry is None or entry.directory:
        number = errno.ENOENT if entry is None else errno.EISDIR
        reason = os.strerror(number)
        raise for_cli(OSError(number, f"index=: {reason}", fs.display_path(name)), f"--index: {reason}")
    return Source.from_entry(fs, entry)


def unless_stale(use: Callable[[], T | None], *, is_named: bool = False) -> tuple[T | None, str]:
    """Use an index; None and the text of a warning if it is damaged or does not match its file.

    An index that was removed or written again since it was listed is none, without a warning: it changes the cost of a
    call, never its result, so that no other call is needed. One that the caller has named raises these errors.
    """
    if is_named:
        return use(), ""
    try:
        return use(), ""
    except (FileNotFoundError, ReplacedError):
        return None, ""
    except CorruptRecordError as error:
        return None, f"{error}; the index is not used"


def warn_of_stale(texts: Iterable[str]) -> None:
    """Warn, once, of the indexes that are not used; texts are empty for the others."""
    distinct = list(dict.fromkeys(filter(None, texts)))
    if distinct:
        warn(distinct[0] + and_more(len(distinct) - 1, "such file"), StaleIndexWarning)


def read_lines(
    index_source: Source, source: Source, file: RandomAccessFile, checks: Checks = Checks.LENGTHS
) -> LineIndex | RecordIndex:
    """Read an index file as `read_index`; a text index of a large file is parsed where it is asked."""
    from tfrecord_io.read.index.record_index import LineIndex
    from tfrecord_io.store import RandomAccessFile

    if index_source.path.endswith(FileName.COLUMN_INDEX_SUFFIX) or file.size <= SMALL_BYTES:
        return read_index(index_source, source, file, checks)
    with RandomAccessFile.open(index_source) as opened:
        lines = LineIndex.read(opened)
    if not _fits_some(lines, index_source, source=source, file=file, checks=checks):
        return read_index(index_source, source, file, checks)
    logger.debug("index used: %s", index_source.path)
    return lines


def read_index(
    index_source: Source, source: Source, file: RandomAccessFile, checks: Checks = Checks.LENGTHS
) -> RecordIndex:
    """Read an index file that matches its data file; it may be a column index, of which the offsets are read.

    A text index matches the data file `source`, opened as `file`, if it ends where that ends, and the file has records
    of its sizes at its offsets: all of a small file are compared, of a larger one some. A column index matches by its
    `Fingerprint`. Else this is a CorruptRecordError that names both files.
    """
    if index_source.path.endswith(FileName.COLUMN_INDEX_SUFFIX):
        with open_columns(index_source, source, file) as (_, index):
            assert index is not None
            return index
    from tfrecord_io.read.index.record_index import RecordIndex
    from tfrecord_io.store import RandomAccessFile

    with RandomAccessFile.open(index_source) as opened:
        index = RecordIndex.read(opened)
    _check_records(index, index_source, source=source, file=file, checks=checks)
    logger.debug("index used: %s", index_source.path)
    return index


@contextmanager
def open_columns(
    index_source: Source,
    source: Source,
    file: RandomAccessFile,
    span: tuple[int, int] | None = None,
    *,
    most_rows: float = math.inf,
    known: RecordIndex | None = None,
    longest: int | None = None,
) -> Iterator[tuple[ColumnIndex, RecordIndex | None]]:
    """Open a column index that matches its data file, and read the offsets.

    With a `span`, those of the records in it, and some before and after it; None if they are more than `most_rows`.
    Offsets that are `known`, from an index of the file, are not read; nor are any if the file was not touched, and none
    of its records can be longer than `longest`, of its payload. Afterwards, ``columns.is_certain`` says whether the
    content of the whole file is known to be that of the index.
    """
    from tfrecord_io.read.index.column_index import REWRITE_COLUMNS, ColumnIndex
    from tfrecord_io.store import RandomAccessFile

    with RandomAccessFile.open(index_source) as opened:
        columns = ColumnIndex(opened, index_source.path, file.size, span)
        if len(columns.numbers) > most_rows:
            yield columns, None
            return
        # It was written for this very file, by what differs once anything was written to that.
        is_untouched = bool(columns.identity) and columns.identity == file.identity
        is_same = bool(file.version) and columns.version == file.version
        columns.is_certain = is_same and (is_untouched or _is_tag(file.version))
        if columns.is_certain and longest is not None and columns.most_bytes <= longest:
            yield columns, None
            return
        index = known if known is not None and len(columns.numbers) == len(known) else columns.records()
        if reason := _mismatch(columns, index, index_source=index_source, source=source, file=file):
            reason = f"the column index does not match {printable(source.path)}: {reason}"
            raise CorruptRecordError(reason, path=columns.path, hint=f"{REWRITE_COLUMNS}, or delete it")
        logger.debug("column index used: %s", index_source.path)
        yield columns, index


def _mismatch(
    columns: ColumnIndex, index: RecordIndex, index_source: Source, source: Source, file: RandomAccessFile
) -> str:
    """Why a column index is not of the content of a file; empty if it may be."""
    version, content = file.version, columns.content
    is_same = bool(version) and columns.version == version
    if not (index.end == file.size if columns.is_last else index.end <= file.size):
        return f"its last record ends at byte {index.end}, but the file has {file.size} bytes"
    if columns.is_certain:
        return ""
    if not is_same and _is_checksum(columns.version, version):
        return f"the file has another checksum ({version}, the index states {columns.version})"
    crc32c = None if source.shard is None else source.shard.crc32c
    if crc32c is not None and content.crc32c is not None and crc32c != content.crc32c:
        return f"its dataset's manifest states the CRC32C {crc32c:08x}, the index {content.crc32c:08x}"
    is_younger = file.is_local and index_source.local and source.modification_time > index_source.modification_time
    columns.is_certain = content.compares_all(file, index, is_younger=is_younger)
    is_rewritten = not is_same and _is_tag(columns.version) and _is_tag(version)
    if is_rewritten and not columns.is_certain and (crc32c is None or content.crc32c is None):
        reason = f"the object was written again since ({version}, the index states {columns.version})"
        return f"{reason}, and no checksum of its content is known to compare"
    return content.mismatch(file, index, every=columns.is_certain)


def _is_checksum(*versions: str) -> bool:
    """True if all versions are checksums of one kind: equal for equal content, unless a server encrypts by users' keys.

    A tag of another form, as of an upload in parts, is not.
    """
    kinds = {version.partition("=")[0] for version in versions}
    return len(kinds) == 1 and all(_MD5.fullmatch(version) is not None for version in versions)


def _is_tag(version: str) -> bool:
    """True if a version is a checksum or tag that a server gives to no other content."""
    return bool(version) and "mtime" not in version.partition("=")[0]


def _check_records(
    index: RecordIndex, index_source: Source, source: Source, file: RandomAccessFile, checks: Checks
) -> None:
    """Compare an index with the records of its file: with some, or with all if the file is small or one differs."""
    from tfrecord_io.read.index.header_scan import scan_sizes

    if _fits_some(index, index_source, source=source, file=file, checks=checks) and file.size > SMALL_BYTES:
        return
    parts = [np.empty(0, np.int64)]
    with suppress(CorruptRecordError):  # up to the first header that is damaged: an index may lead past it
        for some in scan_sizes(source.path, file, LIMITS.MAX_RECORD_BYTES, checks):
            parts.append(some)
    actual = np.concatenate(parts)
    differs = np.flatnonzero(index.sizes[: len(actual)] != actual[: len(index)])
    if len(differs):
        number = int(differs[0])
        size, expected = int(actual[number]), int(index.sizes[number])
        reason = f"record {number} at byte {int(index.bounds[number])} has {size} bytes, not {expected}"
        raise _other_records(source, index_source, reason, expected=expected, got=size)


def _fits_some(
    index: RecordIndex | LineIndex, index_source: Source, source: Source, file: RandomAccessFile, checks: Checks
) -> bool:
    """True if some records of a file are where its index says; CorruptRecordError if the first or last one is not."""
    from tfrecord_io.read.index.fingerprint import some_records

    if index.end != file.size:
        reason = f"its last record ends at byte {index.end}, but the file has {file.size} bytes"
        raise _other_records(source, index_source, reason, expected=index.end, got=file.size)
    records = some_records(len(index), _HEADERS[file.is_local]).tolist()
    extents = list(map(index.extent, records))
    bounds = [bound for begin, size in extents for bound in (begin, begin + size)]
    if bounds != sorted(bounds):  # a text index, which is read to the line that does not follow the one before
        return False
    begins = np.array(bounds[::2], np.int64)
    ends = begins + FrameHeader.BYTES
    if (data := file.read_local([file], np.zeros(len(begins), np.int64), begins, ends)) is None:
        data = np.concatenate([np.empty(0, np.uint8), *file.read_all(begins.tolist(), ends.tolist(), gap=0)])
    headers, engine = data.reshape(-1, FrameHeader.BYTES), get_engine()
    are_headers = [engine.scan(header, checks=checks, final=False)[1] is None for header in headers]
    lengths = FrameHeader.payload_lengths(data, np.arange(0, len(data), FrameHeader.BYTES)).tolist()
    sizes = [length + FrameHeader.FRAME_BYTES for length in lengths]
    for at in sorted({0, len(sizes) - 1}) if sizes else ():
        number, (offset, expected), size = records[at], extents[at], sizes[at]
        if not are_headers[at]:
            reason = f"no record header at byte {offset}, the offset of record {number}"
            raise _other_records(source, index_source, reason)
        if size != expected:
            reason = f"record {number} at byte {offset} has {size} bytes, not {expected}"
            raise _other_records(source, index_source, reason, expected=expected, got=size)
    return all(are_headers) and sizes == [size for _, size in extents]


def _other_records(
    source: Source, index_source: Source, reason: str, expected: Any = None, got: Any = None
) -> CorruptRecordError:
    from tfrecord_io.read.index.record_index import REWRITE

    text = f"the index does not match {printable(source.path)}: {reason}"
    advice = f"{REWRITE}, or delete it"
    return CorruptRecordError(text, path=index_source.path, expected=expected, got=got, hint=advice)
