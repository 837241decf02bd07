"""Find and read the index files of data files; an index is used only after a check that it matches its file."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import CorruptRecordError, printable
from tfrecord_io.format.framing import HEADER_BYTES, frame_size
from tfrecord_io.index.column_index import COLUMNS_SUFFIX, OLD_COLUMNS_SUFFIX, OLD_FORMAT, REWRITE_COLUMNS, ColumnIndex
from tfrecord_io.index.record_index import REWRITE, SUFFIXES, RecordIndex
from tfrecord_io.options import DEFAULT_STORAGE, StorageOptions
from tfrecord_io.storage.filesystem.locate import is_url, locate
from tfrecord_io.storage.paths.manifest import find_sidecars, modified
from tfrecord_io.storage.read.random_access_file import RandomAccessFile, open_random_access
from tfrecord_io.storage.read.source import Source, source_of


def find_indexes(
    sources: Sequence[Source], index: Any = None, storage: StorageOptions = DEFAULT_STORAGE
) -> list[Source | None]:
    """The index file of each data file: `index` if that names them, else the sidecar; None if there is none.

    Where a file has a column index and no other, that one is found.

    Raises
    ------
    TypeError
        `index` is not a path or a list of paths.
    ValueError
        It has fewer or more paths than there are data files.
    FileNotFoundError
        One of its paths is not a file.
    """
    if index is None:
        return find_sidecars(sources, (*SUFFIXES, COLUMNS_SUFFIX, OLD_COLUMNS_SUFFIX))
    paths = index if isinstance(index, list | tuple) else [index]
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"index={path!r}: expected the path of an index file or a list with one for each file")
    if len(paths) != len(sources):
        names = (
            f"{len(paths)} index file{'s' * (len(paths) != 1)} for {len(sources)} data file{'s' * (len(sources) != 1)}"
        )
        raise ValueError(f"index= names {names}: pass a list with one for each, in the order in which they are read")
    return [_index_source(path, storage) for path in paths]


def _index_source(path: str | os.PathLike[str], storage: StorageOptions) -> Source:
    if not is_url(path):  # storage_options are those of the data, which may be remote
        storage = replace(storage, storage_options=None)
    fs, name = locate(path, storage)
    entry = fs.entry(name)
    if entry is None or entry.directory:
        number = errno.ENOENT if entry is None else errno.EISDIR
        raise OSError(number, f"index=: {os.strerror(number)}", fs.display_path(name))
    return source_of(fs, entry)


def usable_index(
    index_source: Source, source: Source, file: RandomAccessFile, *, named: bool = False
) -> tuple[RecordIndex | None, str]:
    """The index of a file, or None and the text of a StaleIndexWarning if it does not match.

    If the caller `named` the index, this is a CorruptRecordError. An index that was removed since it was listed, as
    happens while its file is replaced, is no index.
    """
    try:
        return read_index(index_source, source, file), ""
    except CorruptRecordError as error:
        if named:
            raise
        return None, f"{error}; the index is not used"
    except FileNotFoundError:
        if named:
            raise
        return None, ""


def read_index(index_source: Source, source: Source, file: RandomAccessFile) -> RecordIndex:
    """Read an index file that matches its data file; it may be a column index, of which the offsets are read.

    It matches the data file `source`, opened as `file`, if its text is valid, it ends where the data file ends, the
    first and the last record have a header of the right size at their offset, and it is not older than the data file,
    if one filesystem has both. Else this is a CorruptRecordError that names both files.
    """
    if index_source.path.endswith(COLUMNS_SUFFIX):
        with open_columns(index_source, source, file) as (_, index):
            assert index is not None
            return index
    if index_source.path.endswith(OLD_COLUMNS_SUFFIX):
        raise CorruptRecordError(OLD_FORMAT, path=index_source.path, advice=f"{REWRITE_COLUMNS}, or delete it")
    with open_random_access(index_source) as opened:
        index = RecordIndex.parse(opened.read(0, opened.size).tobytes(), index_source.path)
    _check(index, index_source, source, file, "index", REWRITE)
    return index


@contextmanager
def open_columns(
    index_source: Source,
    source: Source,
    file: RandomAccessFile,
    span: tuple[int, int] | None = None,
    *,
    most_rows: float = math.inf,
) -> Iterator[tuple[ColumnIndex, RecordIndex | None]]:
    """Open a column index that matches its data file, as an index does, and read the offsets in it.

    With a `span`, those of the records in it, and some before and after it; None if they are more than `most_rows`.
    """
    with open_random_access(index_source) as opened:
        columns = ColumnIndex(opened, index_source.path, file.size, span)
        if columns.rows > most_rows:
            yield columns, None
            return
        index = columns.records()
        same = _check_version(columns, source, file)
        part = columns.first, columns.is_last
        _check(index, index_source, source, file, "column index", REWRITE_COLUMNS, by_age=not same, part=part)
        yield columns, index


def _check_version(columns: ColumnIndex, source: Source, file: RandomAccessFile) -> bool:
    """Whether a column index states the version of its file; CorruptRecordError if it states another one.

    False if one of both is unknown, or of another kind, as after a download.
    """
    stated, current = columns.version, file.version
    (kind, _, then), (kind_now, _, now) = stated.partition("="), current.partition("=")
    if not stated or kind != kind_now:
        return False
    if then != now:
        reason = f"the file was changed or replaced since the index was written ({kind} {now}, the index has {then})"
        reason = f"the column index does not match {printable(source.path)}: {reason}"
        advice = f"{REWRITE_COLUMNS}, or delete it; if both were only copied, copy the file with its time (cp -p)"
        raise CorruptRecordError(reason, path=columns.path, expected=then, got=now, advice=advice)
    return True


def _check(
    index: RecordIndex,
    index_source: Source,
    source: Source,
    file: RandomAccessFile,
    noun: str,
    rewrite: str,
    *,
    by_age: bool = True,
    part: tuple[int, bool] = (0, True),
) -> None:
    """Raise CorruptRecordError if an index does not match its file.

    Of a `part`, this is the number of its first record, and whether the last one of the file is in it.
    """
    first, is_last = part
    advise = f"{rewrite}, or delete it"

    def mismatch(reason: str, expected: Any = None, got: Any = None, advice: str = advise) -> CorruptRecordError:
        text = f"the {noun} does not match {printable(source.path)}: {reason}"
        return CorruptRecordError(text, path=index_source.path, expected=expected, got=got, advice=advice)

    written, changed = modified(index_source), modified(source)
    one_clock = (index_source.remote or (None,))[0] is (source.remote or (None,))[0]  # of one filesystem
    if by_age and one_clock and written is not None and changed is not None and written < changed:
        reason = f"it is {changed - written:.3g} s older, so the file may have been rewritten"
        raise mismatch(reason, advice=f"{advise}; if both were only copied, touch it")
    if index.end != file.size if is_last else index.end > file.size:
        reason = f"its last record ends at byte {index.end}, the file has {file.size}"
        raise mismatch(reason, index.end, file.size)
    for record in sorted({0, len(index) - 1}) if len(index) else ():
        offset, end = int(index.bounds[record]), int(index.bounds[record + 1])
        header = file.read(offset, offset + HEADER_BYTES)
        _, fault = get_engine().scan(header, check_crc=False, final=False)
        if fault is not None:
            raise mismatch(f"there is no record header at byte {offset}, the offset of record {first + record}")
        size = frame_size(header)
        if size != end - offset:
            reason = f"record {first + record} at byte {offset} has {size} bytes, not {end - offset}"
            raise mismatch(reason, end - offset, size)
