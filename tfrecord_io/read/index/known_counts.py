"""Numbers of records that are known without reading a file: from manifests, indexes and TFDS.

Tests: tests/read/test_counting.py and tests/read/index/test_find_index.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tfrecord_io.base import FrameOptions, StorageOptions, printable, warn
from tfrecord_io.bytes import Checks, FrameHeader
from tfrecord_io.errors import SchemaError, SchemaWarning
from tfrecord_io.read.index import SMALL_BYTES
from tfrecord_io.read.index.find_index import (
    find_indexes,
    open_columns,
    read_index,
    read_lines,
    unless_stale,
    warn_of_stale,
)
from tfrecord_io.store import Entry, FileName, Source

if TYPE_CHECKING:
    from tfrecord_io.read.index.record_index import LineIndex, RecordIndex
    from tfrecord_io.store import RandomAccessFile

_MOST_TEXT = 1 / 64  # of the size of a file, up to which its text index is read to count its records
_LOOKED_UP = 1000  # files at a time: the first that is missing ends the look-up of millions that an info states

Beside = Mapping[str, Entry] | None  # what was listed of a directory, by name


def _takes_longer(index_source: Source, source: Source) -> bool:
    """True if a text index takes longer to read than the headers of its local file, as for small records.

    Its numbers are parsed one by one, while headers are followed at the speed of memory.
    """
    is_text, size = not index_source.path.endswith(FileName.COLUMN_INDEX_SUFFIX), source.size or 0
    return is_text and source.local and size > SMALL_BYTES and (index_source.size or 0) > _MOST_TEXT * size


def _is_beside(index: Source, source: Source) -> bool:
    return os.path.dirname(index.path) == os.path.dirname(source.path)


class KnownCounts:
    """Numbers of records from manifests, slices, index files and the ``dataset_info.json`` of TFDS.

    By `options` the files are read; the number of a file with a longer record is unknown. `may_scan`: headers are
    followed for an unknown number, which may take less time than an index. `is_checked`: a ``dataset_info.json`` is
    left aside where the files of a split have other sizes than it states; unless it `looks`, none is looked for.
    `all_machines`: only what all machines that reach the files find, so not the indexes in a user's cache.
    """

    def __init__(
        self, options: FrameOptions, *, may_scan: bool = True, is_checked: bool = True, all_machines: bool = False
    ) -> None:
        self.options, self.may_scan, self.is_checked = options, may_scan, is_checked
        self._all_machines = all_machines
        self.looks = True
        self._shard_lengths: dict[tuple[int, str], dict[str, int]] = {}  # of TFDS, by folder
        self._last: tuple[str, LineIndex | RecordIndex] | None = None  # the file whose index was read last

    @property
    def may_be_plain(self) -> bool:
        return self.options.compression in (None, "infer")

    def indexes(self, sources: Sequence[Source]) -> Sequence[Source | None]:
        """The index file next to each file; none for compressed files, and those whose number is known without one."""
        asked = dict[int, Source]()
        for at, source in enumerate(sources if self.may_be_plain else ()):
            if source.records is None and (source.shard is None or source.span is not None):
                asked[at] = source
        indexes = dict(zip(asked, find_indexes([*asked.values()]), strict=True))
        if self._all_machines:
            indexes = {at: index for at, index in indexes.items() if index is None or _is_beside(index, asked[at])}
        return list(map(indexes.get, range(len(sources))))

    def record_counts(self, sources: Sequence[Source]) -> Iterator[int | None]:
        """The number of records of each file, one after the other; None if it is unknown."""
        for source, index in zip(sources, self.indexes(sources), strict=True):
            yield 0 if source.size == 0 else self.record_count(source, index)

    def record_count(self, source: Source, index: Source | None, *, prefer_index: bool = False) -> int | None:
        """The number of records of `source`, whose index file is `index`; None if it is unknown.

        An index that does not match is skipped with a warning. With `prefer_index`, the index is used even where a
        manifest states the number, and it is a CorruptRecordError if it does not match.
        """
        if source.shard is not None and source.span is None and not prefer_index:
            return source.shard.records
        if source.records is not None:
            return source.records
        count = None
        if index is not None and (prefer_index or not (self.may_scan and _takes_longer(index, source))):
            from tfrecord_io.store import RandomAccessFile  # for files with an index only

            with RandomAccessFile.open(source) as file:
                use = partial(self._rows_of, index, source, file)
                count, text = unless_stale(use, is_named=prefer_index)
            warn_of_stale([text])
        return self._from_tfds(source) if count is None else count

    def _rows_of(self, index_source: Source, source: Source, file: RandomAccessFile) -> int | None:
        """The number of records that an index states; None if one of them is longer than the limit."""
        longest = self.options.limits.record_bytes
        if index_source.path.endswith(FileName.COLUMN_INDEX_SUFFIX):
            with open_columns(index_source, source, file, longest=longest) as (columns, index):
                if index is None:
                    return len(columns.numbers)
        elif file.size > longest:
            index = read_index(index_source, source, file, self._checks)
        else:
            self._last = source.path, read_lines(index_source, source, file, self._checks)
            return len(self._last[1])
        return (
            None if index.end > longest and int(index.sizes.max()) > longest + FrameHeader.FRAME_BYTES else len(index)
        )

    @property
    def _checks(self) -> Checks:
        return Checks.from_check_crc(self.options.check_crc)

    def has_index(self, source: Source) -> bool:
        """True if an index that may be used is next to a file."""
        (index,) = find_indexes([source]) if self.may_be_plain else (None,)
        return index is not None and (_is_beside(index, source) or not self._all_machines)

    def record_bounds(self, source: Source, numbers: Sequence[int], count: int) -> list[int] | None:
        """Offsets of some records of a file of `count` ones, or its end for that number, by its index.

        None without an index that matches.
        """
        from tfrecord_io.store import RandomAccessFile  # for files with an index only

        def bounds() -> list[int] | None:
            if self._last is None or self._last[0] != source.path:
                index = find_indexes([source])[0] if self.may_be_plain else None
                if index is None:
                    return None
                with RandomAccessFile.open(source) as file:
                    self._last = source.path, read_lines(index, source, file, self._checks)
            records = self._last[1]
            if len(records) != count:
                return None
            return [records.extent(number)[0] if number < count else records.end for number in numbers]

        found, text = unless_stale(bounds)
        warn_of_stale([text])
        return found

    def _from_tfds(self, source: Source) -> int | None:
        may_look = self.may_be_plain and self.looks and source.may_be_beside(Source.TFDS_INFO)
        if source.is_file_object or source.span is not None or source.derived is not None or not may_look:
            return None
        fs, path = (None, source.path) if source.remote is None else source.remote
        folder, _, name = path.rpartition("/")
        key = (id(fs), folder)
        if key not in self._shard_lengths:
            self._shard_lengths[key] = self._tfds_lengths(
                folder or ("/" if path.startswith("/") else "."), fs, source.beside
            )
        return self._shard_lengths[key].get(name)

    def _tfds_lengths(self, folder: str, fs: Any, beside: Beside) -> dict[str, int]:
        if fs is None and not os.path.exists(os.path.join(folder, Source.TFDS_INFO)):
            return {}
        from tfrecord_io.columns import TfdsInfo
        from tfrecord_io.store import Directory

        storage = StorageOptions(filesystem=fs)
        try:
            info = TfdsInfo.read(Directory(folder, storage))
        except PermissionError:
            return {}  # the response of a bucket without permission to list, for a name that does not exist
        except SchemaError as error:
            text = f"{printable(folder)}: its dataset_info.json cannot be used ({error})"
            warn(text, SchemaWarning)
            return {}
        lengths: dict[str, int] = {}
        for split in () if info is None else info.splits.values():
            if self.is_checked and split.bytes:  # all are there, and have as many bytes together
                size = _total_bytes(split.files, folder, storage, beside)
                if size is None or not split.has_bytes(size):
                    continue
            lengths.update(zip(split.files, split.lengths, strict=True))
        return lengths


def _total_bytes(files: Sequence[str], folder: str, storage: StorageOptions, beside: Beside) -> int | None:
    """The bytes of files of a folder together; None if one is not there, or of unknown size."""
    from tfrecord_io.store import Directory

    size, directory = 0, Directory(folder, storage)
    for first in range(0, len(files), _LOOKED_UP):
        names = [directory.join(file) for file in files[first : first + _LOOKED_UP]]
        entries = (
            directory.fs.entries(names, are_files=True) if beside is None else [beside.get(name) for name in names]
        )
        sizes = [entry.size for entry in entries if entry is not None and entry.size is not None]
        if len(sizes) < len(names):
            return None
        size += sum(sizes)
    return size
