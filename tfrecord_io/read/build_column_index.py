"""Write the column indexes of files, with the values that a read of the files gives.

`index_columns` writes an index file next to each data file, and returns a `FileIndex` for it. An index states in three
ways which data it is of, which `tfrecord_io.read.index.find_index.open_columns` compares with the file:

- *version* (`RandomAccessFile.version`): the checksum or tag of an object, which no other content has; of a local file
  the time at which it was written, which another content may have.
- *identity* (`untouched_state`): the inode of a local file and the time of its last change. If it is equal, too,
  nothing was written to the file. It is left out where these times are too coarse to tell.
- *content* (`Fingerprint`): checksums of records. They also fit a copy of the file. They are compared where the others
  leave a doubt.

Tests: tests/read/index/test_column_index.py and tests/read/index/test_find_index_writing.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import (
    LIMITS,
    MIB,
    ProgressMeter,
    ScanOptions,
    Selection,
    StorageOptions,
    counted,
    logger,
    ordered,
)
from tfrecord_io.bytes import Checks
from tfrecord_io.columns import Projection, json_value
from tfrecord_io.errors import ReplacedError, SchemaError, TFRecordError
from tfrecord_io.read.chunks.chunk import ChunkDecoder, first_record_settings
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck
from tfrecord_io.read.index import THREADS
from tfrecord_io.read.index.column_index import (
    ALL_SCALARS,
    COLUMNS_SUFFIX,
    check_fields,
    expand_scalars,
    is_indexable,
    write_columns,
)
from tfrecord_io.read.index.find_index import SUFFIXES
from tfrecord_io.read.index.fingerprint import Fingerprint, untouched_state
from tfrecord_io.read.index.indexed_files import IndexedFiles
from tfrecord_io.read.index_search import indexed_fields
from tfrecord_io.read.plan_random_access import plan_records
from tfrecord_io.read.random_access import RandomAccess
from tfrecord_io.read.scan import Scan
from tfrecord_io.store import Location, RandomAccessFile, Source, find_sidecars, open_output

_MEMORY = 256 * MIB  # for the files in a store that are read at a time
_DECODED = 3  # times the bytes of a part of a file that its records take: as they are read, as columns, as an index


@dataclass(frozen=True, slots=True)
class FileIndex:
    """The index of one file."""

    path: str
    index: str | None  # path of the index, if it exists
    records: int
    bytes: int  # of the file
    error: TFRecordError | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in self.__slots__}, "error": json_value(self.error)}


def index_columns(
    sources: Sequence[Source],
    columns: Sequence[str] | str,
    options: ScanOptions,
    *,
    is_just_written: bool = False,
    is_optional: bool = False,
) -> list[FileIndex]:
    """Write the column index of each file; see `tfrecord_io.build_index`.

    `is_just_written`: this process has written the files. `is_optional`: columns that the files do not have as single
    values are left out.
    """
    options = options.changed(threads=1, include_file_paths=None)
    offsets = find_sidecars(sources, SUFFIXES)  # an old column index is replaced without a look at it
    checks = Checks.from_check_crc(options.check_crc)
    with closing(IndexedFiles([*sources], offsets, options.limits.record_bytes, checks=checks)) as files:
        scan = _plan_columns(files, options, Projection.entries(columns), is_optional=is_optional)
        if scan is None:
            return []
        schema = check_fields(indexed_fields(scan, scan.schema.names))
        stored_names = {*schema.names}
        _refuse_folder_columns(name for name in scan.schema.names if name not in stored_names)
        records = RandomAccess(files, scan)
        with ProgressMeter(options.progress, int(files.first[-1]), "records") as meter:
            build = partial(
                _build_one,
                records,
                files,
                schema=schema,
                meter=meter,
                is_just_written=is_just_written,
                check_crc=options.check_crc,
            )
            indexes = list(
                ordered((partial(build, file) for file in range(len(sources))), files_at_a_time(sources), "index")
            )
    withdraw_if_replaced(sources, COLUMNS_SUFFIX)
    return indexes


def _plan_columns(
    files: IndexedFiles, options: ScanOptions, entries: Sequence[str], *, is_optional: bool
) -> Scan | None:
    """The plan of a read of the columns; None if they are optional and missing."""
    if ALL_SCALARS in entries or is_optional:
        every = plan_records(files, options)
        fields = indexed_fields(every, every.schema.names)
        if is_optional:
            entries = [field.name for field in fields if field.name in entries and is_indexable(field)]
        else:
            entries = expand_scalars(entries, fields, files.sources[0].path if files.sources else None)
    return plan_records(files, options, Selection(tuple(entries))) if entries else None


def _refuse_folder_columns(names: Iterable[str]) -> None:
    """Raise SchemaError if there is a column whose values are those of folders."""
    for name in names:
        reason = "its values are directory names, which already select files"
        hint, hint_cli = "leave it out of columns=", "leave it out of --columns"
        raise SchemaError(reason, feature=name, hint=hint, hint_cli=hint_cli, of_argument=True)


def _build_one(
    records: RandomAccess,
    files: IndexedFiles,
    file: int,
    *,
    schema: pa.Schema,
    meter: ProgressMeter,
    is_just_written: bool,
    check_crc: bool,
) -> FileIndex:
    source, index = files.sources[file], files.indexes[file]
    fs, target = source.index_place(COLUMNS_SUFFIX)
    storage = StorageOptions(filesystem=fs)
    numbers = np.arange(files.first[file], files.first[file + 1], dtype=np.int64)
    model = Location.of(target, storage).status()
    model = model or Location.of(target.removesuffix(COLUMNS_SUFFIX), storage).status()
    name = source.path.rpartition("/")[2]
    has_schema = _has_schema(files, file, check_crc=check_crc)

    def batches() -> Iterator[pa.RecordBatch]:
        for _, batch in records.batches(numbers):
            yield batch
            meter.advance(len(batch))

    opened = files.open_file(file)
    identity = untouched_state(opened, is_complete=is_just_written)  # before the content is read
    content = Fingerprint.from_file(opened, index, None if source.shard is None else source.shard.crc32c)
    with open_output(target, storage, model=model, looks=False) as output:
        is_copied_later = source.shard is not None and source.shard.staged is not None  # to its name
        sink, version = output.as_stream(), "" if is_copied_later else files.version(file)
        write_columns(
            sink,
            name,
            records=index,
            schema=schema,
            batches=batches(),
            fingerprint=content,
            has_schema=has_schema,
            version=version,
            identity=identity,
        )
    if source.local and source.shard is None and _is_replaced(source, opened):
        Location.of(target, storage).remove()  # the writer of the other file removed the index that it found
        raise source.replaced_error()
    shown = target if source.local else source.path + COLUMNS_SUFFIX
    logger.info("written: %s, the index of %s", shown, counted(len(index), "record"))
    return FileIndex(source.path, shown, len(index), index.end)


def _is_replaced(source: Source, opened: RandomAccessFile) -> bool:
    """True if a local file that is open has lost its name to another one, or was written to."""
    try:
        return RandomAccessFile.state_of(source) != opened.state
    except FileNotFoundError:
        return True


def _has_schema(files: IndexedFiles, file: int, *, check_crc: bool) -> bool:
    """True if the first record of a file has an embedded schema."""
    if not files.count(file):
        return False
    (frame,) = files.frames(files.first[[file]])
    settings = first_record_settings(ScanOptions(check_crc=check_crc))
    decoder = ChunkDecoder(settings, EmbeddedSchemaCheck(obey=True))
    return decoder.feed(frame, files.sources[file].path, 0, 0).revision is not None


def files_at_a_time(sources: Sequence[Source]) -> int:
    """How many files are read, and their indexes stored, at a time: of those in a store as many as memory allows."""
    if not any(source.remote is not None for source in sources):
        return 1
    largest = max(min(source.size or MIB, LIMITS.batch_bytes) for source in sources)
    return max(1, min(THREADS, len(sources), _MEMORY // (_DECODED * max(largest, 1))))


def withdraw_if_replaced(sources: Sequence[Source], suffix: str) -> None:
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
            for sibling in sources:
                if sibling.shard is not None and sibling.shard.manifest is manifest:
                    fs, target = sibling.index_place(suffix)
                    Location.of(target, StorageOptions(filesystem=fs)).remove()
            raise
